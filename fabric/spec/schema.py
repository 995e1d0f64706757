"""The JSON Schema of scenario files, for editors that check and complete them.

msgspec derives the structure from the specs; added here are what it cannot know: how quantities are
written, and each field's description, which is read from the docstring of its spec, so that there
is one text for both.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import msgspec

from fabric.spec.base import Spec
from fabric.spec.scenario import Scenario
from fabric.units import LARGEST, Quantity

__all__ = ["field_help", "json_schema"]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_NUMBER = r"([0-9][0-9_]*(\.[0-9]+)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?"
_PARAMETER = re.compile(r"(\w+(?:, \w+)*)(?: : .*)?")


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a scenario file.

    Examples
    --------
    >>> json_schema()["$defs"]["Ecn"]["properties"]["kmin"]["default"]
    '800KB'
    """
    raw = msgspec.json.schema(Scenario, schema_hook=_quantity_schema)
    schema = msgspec.json.decode(msgspec.json.encode(raw))
    specs = {cls.__name__: cls for cls in _all_specs(Spec)}
    for name, definition in schema["$defs"].items():
        definition["description"] = _summary(specs[name])
        for field, text in field_help(specs[name]).items():
            definition["properties"][field]["description"] = text
    return {"$schema": _DIALECT, "title": "fabric scenario", **schema}


def field_help(cls: type[Spec]) -> dict[str, str]:
    """Return the description of each documented field of a spec, from its docstring.

    Parameters
    ----------
    cls : type
        A spec.

    Returns
    -------
    dict
        One line of text by field; fields documented together share theirs.
    """
    help_by_field: dict[str, str] = {}
    names: list[str] = []
    for line in _parameter_lines(cls):
        if line and not line.startswith(" "):
            found = _PARAMETER.fullmatch(line)
            names = found[1].split(", ") if found else []
            help_by_field |= dict.fromkeys(names, "")
        else:
            for name in names:
                help_by_field[name] = f"{help_by_field[name]} {line.strip()}".strip()
    return {name: help_by_field.get(name, "") for name in cls.__struct_fields__}


def _parameter_lines(cls: type[Spec]) -> list[str]:
    """The lines of the docstring's section "Parameters"."""
    lines = inspect.cleandoc(cls.__doc__ or "").splitlines()
    if "Parameters" not in lines:
        return []
    section = lines[lines.index("Parameters") + 2 :]
    for index, line in enumerate(section):
        if line and set(line) == {"-"}:
            return section[: index - 1]
    return section


def _summary(cls: type[Spec]) -> str:
    return inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0].replace("\n", " ")


def _all_specs(base: type[Spec]) -> list[type[Spec]]:
    return [spec for cls in base.__subclasses__() for spec in (cls, *_all_specs(cls))]


def _quantity_schema(kind: type) -> dict[str, Any]:
    if not issubclass(kind, Quantity):
        raise NotImplementedError(kind)
    units = "|".join(unit.replace("/", "\\/") for unit in sorted(kind.UNITS, key=len, reverse=True))
    return {
        "anyOf": [
            {"type": "string", "pattern": f"^{_NUMBER} *({units})?$"},
            {"type": "integer", "minimum": 0, "maximum": LARGEST},
        ],
        "examples": list(kind.EXAMPLES),
        "title": f"{kind.KIND}; a bare number is in {kind.BASE_UNIT}",
    }
