"""Specs back into plain data, and plain data into TOML text.

`to_plain` says as little as it can: a field that would come out the same if left out is left out,
so a written scenario shows what is particular about it. `to_toml` knows what plain specs consist of
(texts, numbers, truth values, lists of them, tables, lists of tables) and nothing else of TOML 1.0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from fabric.spec.base import Spec
from fabric.spec.decode import chosen_class, field_types, joined, tag_of
from fabric.units import Quantity

__all__ = ["default_of", "to_plain", "to_toml"]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
"""A key that TOML takes without quotes."""


def to_plain(spec: Spec) -> dict[str, Any]:
    """Return the dictionary from which an equal spec is decoded.

    Examples
    --------
    >>> from fabric.spec import Ecn, Switch
    >>> to_plain(Switch(ecn=Ecn(kmin="1MB"), buffer="64MB"))
    {'ecn': {'kmin': '1MB'}}
    """
    cls = type(spec)
    tag = tag_of(cls)
    plain: dict[str, Any] = {} if tag is None else {"kind": tag}
    implied = spec.implied()
    for name in cls.__struct_fields__:
        value = getattr(spec, name)
        if name in implied and value == implied[name]:
            continue
        if value is not None:
            plain[name] = _plain_value(value)
        elif not _none_when_left_out(cls, name):
            plain[name] = _off(cls, name)
    return plain


def default_of(cls: type[msgspec.Struct], name: str) -> Any:
    """Return, as plain data, what a field is when left out; None if it must be given."""
    for field in msgspec.structs.fields(cls):
        if field.name != name:
            continue
        if field.default is not msgspec.NODEFAULT:
            return _plain_value(field.default)
        if field.default_factory is not msgspec.NODEFAULT:
            value = field.default_factory()
            return None if value is msgspec.UNSET else _plain_value(value)
    return None


@cache
def _none_when_left_out(cls: type[Spec], name: str) -> bool:
    """Whether None is what a field is declared as, so that leaving it out says it."""
    return any(field.name == name and field.default is None for field in msgspec.structs.fields(cls))


def _off(cls: type[Spec], name: str) -> bool | int:
    """What stands for None in a field that is not None when left out."""
    return False if chosen_class(field_types(cls)[name], None) else 0


def _plain_value(value: Any) -> Any:
    if isinstance(value, Spec):
        return to_plain(value)
    if isinstance(value, Quantity):
        return str(value)
    if isinstance(value, tuple | list):
        return [_plain_value(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain_value(each) for key, each in value.items()}
    return value


def to_toml(table: Mapping[str, Any]) -> str:
    """Return a plain dictionary as TOML text.

    Examples
    --------
    >>> print(to_toml({"a": {"b": "9KB", "c": [1, 2]}}), end="")
    [a]
    b = "9KB"
    c = [1, 2]
    """
    return "\n".join(_table_lines(table, "")).strip("\n") + "\n"


def _table_lines(table: Mapping[str, Any], path: str) -> list[str]:
    lines = [f"{_key(key)} = {_toml_value(value)}" for key, value in table.items() if not _is_nested(value)]
    for key, value in table.items():
        name = joined(path, _key(key))
        if isinstance(value, Mapping):
            implicit = bool(value) and all(_is_nested(each) for each in value.values())
            lines += [*([] if implicit else ["", f"[{name}]"]), *_table_lines(value, name)]
        elif _is_nested(value):
            for element in value:
                lines += ["", f"[[{name}]]", *_table_lines(element, name)]
    return lines


def _is_nested(value: Any) -> bool:
    """Whether a value is a table, or a list of tables, and so gets headers of its own."""
    return isinstance(value, Mapping) or (
        isinstance(value, list) and bool(value) and all(isinstance(each, Mapping) for each in value)
    )


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _toml_value(name)


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(_toml_value(each) for each in value)}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key(key)} = {_toml_value(each)}' for key, each in value.items())}}}"
    raise TypeError(f"no TOML for {value!r}")
