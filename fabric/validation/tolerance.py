"""What a run may differ by: nothing, a share, or an amount, as `index.csv` writes it.

"exact" is no difference at all; "0.5%" a share of their value; "54" and "12576 B" an amount in the unit of
what is compared; "stat" and "goodput" leave it to the rules of `grades`; nothing is no comparison.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["RULES", "Tolerance", "parse_tolerance"]

RULES = ("stat", "goodput")
"""Tolerances that are rules of their own."""

_NUMBER = re.compile(r"(\d+(?:\.\d+)?)(%| B)?")


@dataclass(frozen=True)
class Tolerance:
    """The largest difference that is met.

    Attributes
    ----------
    share : Fraction
        Of their value.
    amount : Fraction
        In its unit. One of the two is 0.
    """

    share: Fraction = Fraction(0)
    amount: Fraction = Fraction(0)

    def is_met(self, ours: float, theirs: float) -> bool:
        """Whether two values are that close.

        Examples
        --------
        >>> Tolerance(share=Fraction(1, 100)).is_met(101, 100), Tolerance().is_met(101, 100)
        (True, False)
        """
        allowed = self.amount + self.share * abs(Fraction(theirs))
        return abs(Fraction(ours) - Fraction(theirs)) <= allowed

    def __str__(self) -> str:
        if self.share:
            return f"{float(100 * self.share):g} %"
        return f"±{float(self.amount):g}" if self.amount else "exact"


def parse_tolerance(text: str) -> Tolerance | None:
    """Return the tolerance that a cell of `index.csv` states; None if there is none.

    Raises
    ------
    ValueError
        If it is no tolerance.

    Examples
    --------
    >>> [str(parse_tolerance(text)) for text in ("exact", "0.5%", "12576 B", "54", "")]
    ['exact', '0.5 %', '±12576', '±54', 'None']
    """
    if text in ("", *RULES):
        return None
    if text == "exact":
        return Tolerance()
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise ValueError(text)
    number = Fraction(found[1])
    return Tolerance(share=number / 100) if found[2] == "%" else Tolerance(amount=number)
