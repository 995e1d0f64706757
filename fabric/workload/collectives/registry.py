"""Algorithms by collective and name, and how a user adds one.

    @algorithm("all_reduce", "my_way")
    def my_way(n_ranks: int, *, width: int = 2) -> Template:
        '''One line: what it does, and its source.'''
        rows = Rows()
        ...
        return rows.build("my_way", "all_reduce", n_ranks=n_ranks, n_pieces=n_ranks)

From then on `build_template("all_reduce", algorithm="my_way", n_ranks=8, width=4)` gives it, `channels`,
`chunks` and `slices` work for it (`fabric.workload.collectives.split`), and `check_template` proves it.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from fabric.errors import SpecError
from fabric.workload.collectives.kinds import kind_of
from fabric.workload.collectives.split import split
from fabric.workload.collectives.template import MOST_RANKS, Template

__all__ = ["algorithm", "algorithm_names", "algorithm_options", "build_template", "forget_templates"]

Builder = Callable[..., Template]

SPLITS = ("channels", "chunks", "slices")
KEPT_TEMPLATES = 8
"""The last ones stay although nobody uses them; those that someone uses stay anyway."""

_BUILDERS: dict[tuple[str, str], Builder] = {}
_IN_USE: WeakValueDictionary[tuple[Builder, int, tuple[tuple[str, Any], ...]], Template] = (
    WeakValueDictionary()
)
_RECENT: deque[Template] = deque(maxlen=KEPT_TEMPLATES)


def algorithm(collective: str, name: str) -> Callable[[Builder], Builder]:
    """Register a function that makes templates of an algorithm.

    Parameters
    ----------
    collective : str
        What it does, a key of `COLLECTIVES`.
    name : str
        How scenarios call the algorithm; not "auto".

    Returns
    -------
    callable
        Decorator. The function takes the number of ranks and options by keyword, and returns a `Template`.

    Raises
    ------
    SpecError
        If the collective does not exist, or another function has the name.
    """
    kind_of(collective)

    def register(builder: Builder) -> Builder:
        present = _BUILDERS.get((collective, name))
        if name == "auto" or (present is not None and present.__qualname__ != builder.__qualname__):
            raise SpecError("algorithm", name, f"a name that no other algorithm for {collective} has")
        _BUILDERS[collective, name] = builder
        return builder

    return register


def algorithm_names(collective: str) -> list[str]:
    """Return the names of the algorithms for a collective.

    Examples
    --------
    >>> algorithm_names("barrier")
    ['dissemination']
    """
    kind_of(collective)
    return sorted(name for each, name in _BUILDERS if each == collective)


def algorithm_options(collective: str, name: str) -> dict[str, Any]:
    """Return the options of an algorithm with their defaults, without `channels`, `chunks` and `slices`."""
    parameters = list(inspect.signature(_builder(collective, name)).parameters.values())[1:]
    return {each.name: each.default for each in parameters}


def build_template(collective: str, *, algorithm: str, n_ranks: int, **options: Any) -> Template:
    """Return the template of an algorithm on some ranks; the same object for the same question (with
    options that are tuples, numbers and texts, not arrays or lists).

    Parameters
    ----------
    collective, algorithm : str
    n_ranks : int
        At least 1.
    **options
        Of the algorithm. `channels`, `chunks`, `slices` (all 1 unless given) cut every
        piece and run the parts over connections of their own, one after the other, or step by step.

    Returns
    -------
    Template

    Raises
    ------
    SpecError
        If there is no such algorithm or option, or the algorithm is none for that many ranks.

    Examples
    --------
    >>> template = build_template("all_reduce", algorithm="ring", n_ranks=4, channels=2)
    >>> template.n_messages, template.n_steps, template.n_pieces
    (48, 6, 8)
    """
    builder = _builder(collective, algorithm)
    if not isinstance(n_ranks, int) or not 1 <= n_ranks <= MOST_RANKS:
        raise SpecError("n_ranks", n_ranks, f"1 to {MOST_RANKS} ranks")
    known = algorithm_options(collective, algorithm) if options else {}
    for name, value in options.items():
        if name not in known and name not in SPLITS:
            allowed = f"for {collective} by {algorithm} one of the options {', '.join([*known, *SPLITS])}"
            raise SpecError(name, value, allowed)
        _check_kind(builder, name, value)
    given = tuple(sorted(options.items()))
    if any(isinstance(value, np.ndarray | list) for value in options.values()):
        return _build(builder, n_ranks, given)
    return _built(builder, n_ranks, given)


def _check_kind(builder: Builder, name: str, value: Any) -> None:
    """Refuse a value that is not what the function's annotation says, as far as it is one of `KINDS`."""
    parameter = inspect.signature(builder).parameters.get(name)
    annotation = "int" if parameter is None else str(parameter.annotation)
    for kind, (fits, allowed) in KINDS.items():
        if annotation in (kind, f"{kind} | None"):
            if not (fits(value) or (value is None and annotation != kind)):
                raise SpecError(name, value, allowed)
            return


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _all(value: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str) and all(map(fits, value))


KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "int": (_is_whole, "a whole number"),
    "Sequence[int]": (lambda value: _all(value, _is_whole), "a list of whole numbers"),
    "Sequence[str] | str": (
        lambda value: isinstance(value, str) or _all(value, lambda each: isinstance(each, str)),
        "a name, or a list of names",
    ),
    "Sequence[Sequence[int]]": (
        lambda value: _all(value, lambda each: _all(each, _is_whole)),
        "a list of lists of whole numbers",
    ),
}
"""What annotations of options demand, and what an error says of it."""


def _builder(collective: str, name: str) -> Builder:
    names = algorithm_names(collective)
    if name not in names:
        raise SpecError("algorithm", name, f"for {collective} one of {', '.join(names)}")
    return _BUILDERS[collective, name]


def _build(builder: Builder, n_ranks: int, options: tuple[tuple[str, Any], ...]) -> Template:
    given = dict(options)
    parts = {name: given.pop(name) for name in SPLITS if name in given}
    template = builder(n_ranks, **given)
    return split(template, **parts) if parts else template


def _built(builder: Builder, n_ranks: int, options: tuple[tuple[str, Any], ...]) -> Template:
    key = (builder, n_ranks, options)
    template = _IN_USE.get(key)
    if template is None:
        template = _IN_USE[key] = _build(builder, n_ranks, options)
    _RECENT.append(template)
    return template


def forget_templates() -> None:
    """Let go of the templates that are kept for the next question."""
    _RECENT.clear()
