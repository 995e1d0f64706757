"""Which algorithm the collectives of a foreign file take: files say what is done, hardly ever how."""

from __future__ import annotations

from collections.abc import Mapping

from fabric.errors import SpecError
from fabric.workload.collectives import Collective
from fabric.workload.collectives.kinds import kind_of

__all__ = ["check_algorithms", "choose_collective"]

AUTO = "auto"


def check_algorithms(algorithms: Mapping[str, str], *, path: str = "algorithms") -> None:
    """Refuse a choice for a collective that does not exist.

    Raises
    ------
    SpecError
    """
    for kind in algorithms:
        kind_of(kind, path=path)


def choose_collective(
    kind: str, *, n_ranks: int, size_bytes: int, algorithms: Mapping[str, str], said: str = "", path: str
) -> Collective:
    """Return a collective with the algorithm that was asked for, else that of the file, else NCCL's choice.

    Parameters
    ----------
    kind : str
    n_ranks, size_bytes : int
    algorithms : mapping of str to str
        Asked for, by collective.
    said : str
        By the file; "": nothing.
    path : str
        Where in the file, for errors about what it says.

    Raises
    ------
    SpecError
        If there is no such algorithm, or it is none for so many ranks.
    """
    asked = algorithms.get(kind, "")
    collective = Collective(
        kind=kind, n_ranks=n_ranks, size_bytes=size_bytes, algorithm=asked or said or AUTO
    )
    try:
        collective.template()
    except SpecError as error:
        where = f"algorithms.{kind}" if asked else f"{path} algorithm"
        raise SpecError(where, error.value, error.allowed) from None
    return collective
