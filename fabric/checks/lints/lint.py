"""A lint: something in a scenario that runs, and that an engineer would ask about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Lint"]


@dataclass(frozen=True)
class Lint:
    """Something to look at: "warning" what is likely wrong, "note" what one should know.

    Attributes
    ----------
    level : {"warning", "note"}
    path : str
        Where the setting stands in the scenario.
    text : str
        What is the case, with the figures, and what to do.
    """

    level: Literal["warning", "note"]
    path: str
    text: str
