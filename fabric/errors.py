"""The errors that `fabric` raises, each of which says what to change.

Every error that a user can cause derives from :class:`FabricError`. An error about a description
(:class:`SpecError`) names the path of the value in the scenario ("switch.ecn.kmin"), the value and
what is allowed there.
"""

from __future__ import annotations

__all__ = ["MISSING", "FabricError", "Said", "SimulationError", "SpecError"]


class Said(str):
    """A text that errors show as it is: what stands in place of a value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


MISSING = Said("(missing)")
"""In place of a value that is not there."""


class FabricError(Exception):
    """Base of everything that `fabric` raises on purpose."""


class SpecError(FabricError, ValueError):
    """A description that cannot be run.

    Parameters
    ----------
    path : str
        Where the value stands, dotted from the scenario's root ("switch.ecn.kmin").
    value : object
        The offending value.
    allowed : str
        What would be accepted, as a sentence fragment ("a size, at most switch.ecn.kmax (200KB)").
    """

    def __init__(self, path: str, value: object, allowed: str) -> None:
        self.path = path
        self.value = value
        self.allowed = allowed
        super().__init__(path, value, allowed)

    def __str__(self) -> str:
        where = self.path or "scenario"
        return f"{where}: {_shown(self.value)} is not allowed; expected {self.allowed}"


def _shown(value: object) -> str:
    """A value as a scenario file writes it: quantities ("1MB") are integers with a text of their own."""
    return str(value) if isinstance(value, int) else repr(value)


class SimulationError(FabricError, RuntimeError):
    """A run that could not go on; names the simulated time, the node and the cause."""
