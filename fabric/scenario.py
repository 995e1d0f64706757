"""Scenario files: TOML text to `Scenario` and back, `--set`, and everything wrong with a file.

A file holds the fields of `fabric.spec.Scenario` as tables. Quantities are texts with a unit, or
bare numbers in base units. File names in it are relative to it. Every error is one `SpecError` that
names the dotted path of the value, the value, and what would be accepted.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import msgspec

from fabric.errors import SpecError
from fabric.formats.words import read_text
from fabric.spec.base import Spec
from fabric.spec.decode import (
    chosen_class,
    convert,
    element_type,
    field_types,
    joined,
    member_type,
    missing_field,
)
from fabric.spec.plain import default_of, to_plain, to_toml
from fabric.spec.scenario import Scenario
from fabric.spec.schema import json_schema
from fabric.spec.sweep import PATH
from fabric.spec.traffic import DISTRIBUTIONS

__all__ = [
    "apply_overrides",
    "dump_scenario",
    "json_schema",
    "load_scenario",
    "override_value",
    "parse_toml",
    "scenario_errors",
    "with_values",
]

_OVERRIDE = 'a path and a value, such as "switch.ecn.kmin=200KB" or "traffic[0].size=4MB"'
FILE_FIELDS = ("file", "distribution")
"""Fields of topologies, traffic and failures that name files."""
LISTS_OF_TABLES = ("traffic", "failures")

_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def load_scenario(source: str | Path, *, overrides: Iterable[str] = ()) -> Scenario:
    """Read a scenario.

    Parameters
    ----------
    source : str or Path
        The name of a TOML file, or (a string with a line break or "=") TOML text.
    overrides : iterable of str
        Values to set before anything is checked, as `apply_overrides` takes them.

    Returns
    -------
    Scenario
        Checked, except for what depends on the built network.

    Raises
    ------
    SpecError
        If the file cannot be read, is not TOML, or is not a scenario.

    Examples
    --------
    >>> text = '''
    ... topology = {kind = "single_switch", hosts = 9}
    ... traffic = [{kind = "incast", senders = 8, size = "1MB"}]
    ... '''
    >>> load_scenario(text, overrides=["traffic[0].size=2MB"]).traffic[0].size
    Size("2MB")
    """
    with _bounded_depth(source):
        document, folder = _read(source)
        document = apply_overrides(document, overrides)
        return _located(convert(document, Scenario), folder)


def dump_scenario(scenario: Scenario) -> str:
    """Return TOML text that loads back to an equal scenario.

    Parameters
    ----------
    scenario : Scenario
        Any; what equals its default is not written.

    Returns
    -------
    str
        TOML 1.0.
    """
    return to_toml(to_plain(scenario))


def scenario_errors(source: str | Path, *, overrides: Iterable[str] = ()) -> list[SpecError]:
    """Return what is wrong with a scenario: one error for each of its parts that has one.

    Parameters
    ----------
    source, overrides
        As for `load_scenario`.

    Returns
    -------
    list of SpecError
        Empty if the scenario loads. Checks between parts are only made when every part is right.
    """
    try:
        with _bounded_depth(source):
            document, folder = _read(source)
            document = apply_overrides(document, overrides)
            errors = list(_part_errors(document))
            if not errors:
                _located(convert(document, Scenario), folder)
            return errors
    except SpecError as error:
        return [error]


def apply_overrides(document: dict[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """Set values in a scenario's plain data by path.

    Parameters
    ----------
    document : dict
        As TOML is read; not changed.
    overrides : iterable of str
        Each "path=value". A path is dotted, elements of lists are `[0]` or `.0`. The value is read
        as TOML ("3", "true", "[1, 2]"), and as a string if it is none ("200KB"). Tables and lists
        on the way that the document leaves out begin as their defaults.

    Returns
    -------
    dict
        A changed copy.

    Raises
    ------
    SpecError
        If a path leads nowhere.

    Examples
    --------
    >>> apply_overrides({}, ["switch.ecn.kmin=200KB", "run.seed=7"])
    {'switch': {'ecn': {'kmin': '200KB'}}, 'run': {'seed': 7}}
    """
    document = _copied(document)
    for override in [overrides] if isinstance(overrides, str) else overrides:
        path, equals, text = override.partition("=")
        path = path.strip()
        if not equals or not PATH.fullmatch(path):
            raise SpecError("--set", override, _OVERRIDE)
        _assign(document, _steps(path), override_value(text.strip()))
    return document


def with_values(scenario: Scenario, values: Mapping[str, Any]) -> Scenario:
    """Return a scenario with values set by path.

    Parameters
    ----------
    scenario : Scenario
        Not changed.
    values : mapping
        By path, as for `apply_overrides`, plain data: texts, numbers, lists, dictionaries.

    Raises
    ------
    SpecError
        If a path leads nowhere, or what comes of it is no scenario.

    Examples
    --------
    >>> from fabric.spec import Incast, SingleSwitch
    >>> scenario = Scenario(topology=SingleSwitch(hosts=9), traffic=[Incast(senders=8, size="1MB")])
    >>> with_values(scenario, {"traffic[0].size": "2MB", "switch.buffer": "16MB"}).switch.buffer
    Size("16MB")
    """
    document = _copied(to_plain(scenario))
    for path, value in values.items():
        _assign(document, _steps(path), _copied(value))
    return cast("Scenario", convert(document, Scenario))


def _steps(path: str) -> list[str | int]:
    return [int(step) if step.isdigit() else step for step in re.findall(r"\w+", path)]


@contextmanager
def _bounded_depth(source: str | Path) -> Iterator[None]:
    """Turn Python's limit on nested calls into an error about the document."""
    try:
        yield
    except RecursionError:
        raise _too_deep("scenario" if _is_text(source) else str(source)) from None


def _too_deep(path: str) -> SpecError:
    value = "lists or tables nested too deeply"
    return SpecError(path, value, "at most some hundred, one within the other")


def _is_text(source: str | Path) -> bool:
    """Whether a source is TOML itself and not the name of a file."""
    return isinstance(source, str) and ("\n" in source or "=" in source) and not source.endswith(".toml")


def _read(source: str | Path) -> tuple[dict[str, Any], Path | None]:
    """Return the plain data of a file or text, and the folder of the file."""
    if isinstance(source, str) and _is_text(source):
        return parse_toml(source, name="scenario"), None
    return parse_toml(read_text(source, what="scenario file"), name=str(source)), Path(source).parent


def parse_toml(text: str, *, name: str) -> dict[str, Any]:
    """Return TOML text as plain data.

    Parameters
    ----------
    text : str
    name : str
        Of the file, for errors.

    Raises
    ------
    SpecError
        If it is not TOML, with its line and column.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(text, str(error), name) from None


def _syntax_error(text: str, message: str, name: str) -> SpecError:
    """Say where `tomllib` gave up, and show the line."""
    lines = text.splitlines() or [""]
    line, column = len(lines), len(lines[-1]) + 1
    if found := _TOML_PLACE.search(message):
        message = message[: found.start()]
        if found[1]:
            line, column = int(found[1]), int(found[2])
    shown = lines[min(line, len(lines)) - 1].strip()
    return SpecError(f"{name}, line {line}, column {column}", shown, f"TOML ({message})")


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_copied(each) for each in value]
    return value


def override_value(text: str) -> Any:
    """Read a value as `--set` does: as TOML, and as a string if it is none.

    Examples
    --------
    >>> override_value("3"), override_value("200KB"), override_value("[1, 2]")
    (3, '200KB', [1, 2])
    """
    try:
        document = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    except RecursionError:
        raise _too_deep("--set") from None
    return document["value"] if len(document) == 1 else text


def _assign(document: dict[str, Any], steps: list[str | int], value: Any) -> None:
    """Set the value at the end of `steps`, making what is left out on the way."""
    at: Any = document
    annotation: Any = Scenario
    path = ""
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        _check_step(at, step, path)
        last = following is None
        if isinstance(step, int):
            path, annotation = f"{path}[{step}]", element_type(annotation)
            if last:
                at[step] = value
            at = at[step]
            continue
        path = joined(path, step)
        if last:
            at[step] = value
        elif step not in at:
            at[step] = _begin(annotation, at, step, following)
        annotation, at = member_type(annotation, at, step), at[step]


def _check_step(at: Any, step: str | int, path: str) -> None:
    if isinstance(step, str) and not isinstance(at, dict):
        raise SpecError(path, at, f"a table, to set {step} in it")
    if isinstance(step, int) and not isinstance(at, list):
        raise SpecError(path, at, f"a list, to set its element {step}")
    if isinstance(step, int) and step >= len(at):
        allowed = f"an index from 0 to {len(at) - 1}" if at else "no index: the list is empty"
        raise SpecError(f"{path}[{step}]", step, allowed)


def _begin(annotation: Any, at: dict[str, Any], name: str, following: str | int | None) -> Any:
    """What a table or list that the document leaves out is, before something in it is set."""
    cls = chosen_class(annotation, at)
    default = default_of(cls, name) if cls is not None and name in field_types(cls) else None
    if isinstance(default, dict | list):
        return default
    return [] if isinstance(following, int) else {}


def _part_errors(document: dict[str, Any]) -> Iterator[SpecError]:
    """Decode every part of a scenario by itself."""
    types = field_types(Scenario)
    for field in msgspec.structs.fields(Scenario):
        if field.required and field.name not in document:
            yield missing_field(field.name, Scenario, document)
    for name, value in document.items():
        if name not in types:
            yield from _errors_of({name: value}, Scenario, "")
        elif name in LISTS_OF_TABLES and isinstance(value, list):
            for index, entry in enumerate(value):
                yield from _errors_of(entry, element_type(types[name]), f"{name}[{index}]")
        else:
            yield from _errors_of(value, types[name], name)


def _errors_of(value: Any, annotation: Any, path: str) -> Iterator[SpecError]:
    try:
        convert(value, annotation, path=path)
    except SpecError as error:
        yield error


def _located(scenario: Scenario, folder: Path | None) -> Scenario:
    """Make the file names in a scenario that was read from a file relative to its folder."""
    if folder is None:
        return scenario
    topology = _with_files(scenario.topology, folder, "topology")
    traffic = tuple(
        _with_files(entry, folder, f"traffic[{index}]") for index, entry in enumerate(scenario.traffic)
    )
    failures = tuple(
        _with_files(entry, folder, f"failures[{index}]") for index, entry in enumerate(scenario.failures)
    )
    sweep = {
        path: _swept_files(value, path, folder, f"sweep.{path}") for path, value in scenario.sweep.items()
    }
    if (
        topology is scenario.topology
        and all(map(_same, traffic, scenario.traffic))
        and all(map(_same, failures, scenario.failures))
        and sweep == scenario.sweep
    ):
        return scenario
    return scenario.replace(topology=topology, traffic=traffic, failures=failures, sweep=sweep)


def _swept_files(value: Any, key: str, folder: Path, path: str) -> Any:
    """Swept values with the file names in them relative to a folder."""
    if isinstance(value, list):
        return [_swept_files(each, key, folder, f"{path}[{index}]") for index, each in enumerate(value)]
    if isinstance(value, dict):
        named = key.endswith(FILE_FIELDS)
        return {
            name: _swept_files(each, key if named else name, folder, joined(path, name))
            for name, each in value.items()
        }
    if not isinstance(value, str) or not key.endswith(FILE_FIELDS) or value in DISTRIBUTIONS:
        return value
    return _existing(value, folder, path)


def _same(one: object, other: object) -> bool:
    return one is other


def _with_files(spec: Any, folder: Path, path: str) -> Any:
    assert isinstance(spec, Spec)
    located: dict[str, Any] = {}
    for field in spec.__struct_fields__:
        part = getattr(spec, field)
        if isinstance(part, Spec) and (found := _with_files(part, folder, joined(path, field))) is not part:
            located[field] = found
    for field in spec.FILES:
        name = getattr(spec, field)
        if name is None or name in DISTRIBUTIONS:
            continue
        located[field] = _existing(name, folder, joined(path, field))
    return spec.replace(**located) if located else spec


def _existing(name: str, folder: Path, path: str) -> str:
    file = os.path.normpath(folder / name)
    if not os.path.isfile(file):
        raise SpecError(path, name, f"an existing file (there is no {file})")
    return file
