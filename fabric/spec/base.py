"""`Spec`: the base of every description, which checks itself when it is made.

A spec is frozen. Its fields may be given in any form that a scenario file could hold (a text for a
quantity, a list for a tuple, a dictionary for a spec); `__post_init__` turns them into the declared
types, lets the spec `settle` what follows from other fields, and asks for its `problems`. The first
is raised as a `SpecError` whose path starts at the class ("Ecn.kmin"); decoding a document replaces
that start by the place in the document ("switch.ecn.kmin").

A field with a default that may also be off is `None` when off. TOML has no null, so there 0 (for a
quantity) or `false` (for a spec) says the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, ClassVar, Self

import msgspec

from fabric.errors import SpecError
from fabric.spec.decode import convert, field_types, joined

__all__ = ["Problem", "Spec", "outside", "quantity"]

Problem = tuple[str, object, str]
"""What is wrong: the field (dotted, relative to the spec), its value, what is allowed."""

SHOWN_AS_POWER = 2**20
"""Limits from here on are shown as powers of two where they are just below one."""


def outside(name: str, value: int, *, low: int, high: int) -> Iterator[Problem]:
    """Yield the problem of a whole number that is not in [low, high].

    Examples
    --------
    >>> list(outside("seed", -1, low=0, high=2**63 - 1))
    [('seed', -1, 'an integer from 0 to 2^63-1')]
    """
    if not low <= value <= high:
        is_power = high >= SHOWN_AS_POWER and high & (high + 1) == 0
        yield name, value, f"an integer from {low} to {f'2^{high.bit_length()}-1' if is_power else high}"


def quantity(default: str | int) -> Any:
    """Declare the default of a quantity by its text, which is what the schema then shows."""
    return default


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A frozen, validated description; see the module for how it comes about."""

    FILES: ClassVar[tuple[str, ...]] = ()
    """The fields that may name a file."""
    ROOT: ClassVar[bool] = False
    """Whether paths start inside this spec instead of at its name."""

    def __post_init__(self) -> None:
        path = "" if self.ROOT else type(self).__name__
        for name, annotation in field_types(type(self)).items():
            given = getattr(self, name)
            value = convert(given, annotation, path=joined(path, name))
            if value is not given:
                msgspec.structs.force_setattr(self, name, value)
        self.settle()
        for field, value, allowed in self.problems():
            raise SpecError(joined(path, field), value, allowed)

    def settle(self) -> None:
        """Fill in what follows from other fields; for specs where something does."""

    def problems(self) -> Iterator[Problem]:
        """Yield what cannot be run, most important first; for specs where something can be wrong."""
        return iter(())

    def implied(self) -> Mapping[str, Any]:
        """Return what each field that is not required would be if it were left out.

        A field that equals it need not be written to a scenario file.
        """
        return _defaults(type(self))

    def replace(self, **changes: Any) -> Self:
        """Return a checked copy with some fields changed.

        What the spec has only because it follows from other fields follows anew.

        Examples
        --------
        >>> from fabric.spec import Pfc
        >>> changed = Pfc(headroom="90KB").replace(xoff="1MB")
        >>> changed.xoff, changed.headroom
        (Size("1MB"), Size("90KB"))
        """
        implied = self.implied()
        kept = {name: getattr(self, name) for name in self.__struct_fields__}
        kept = {name: value for name, value in kept.items() if name not in implied or value != implied[name]}
        return type(self)(**kept | changes)


@cache
def _defaults(cls: type[Spec]) -> dict[str, Any]:
    """What each field that is not required is when left out, before specs settle."""
    types = field_types(cls)
    return {
        field.name: convert(_default(field), types[field.name])
        for field in msgspec.structs.fields(cls)
        if not field.required
    }


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default is not msgspec.NODEFAULT:
        return field.default
    return field.default_factory()
