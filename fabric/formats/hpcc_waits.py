"""Which flows of a `flow.txt` wait for which: lines `flow predecessor`, both counted from 0.

A flow starts when all of its predecessors are complete. The HPCC simulator itself has no such file; its
configurations name one with DEP_FILE where it was extended so (to run collectives, as SimAI does).
"""

from __future__ import annotations

from pathlib import Path

from fabric.errors import SpecError
from fabric.formats.words import place, read_text, whole

__all__ = ["parse_waits"]


def parse_waits(file: str | Path, *, n_flows: int) -> list[tuple[int, int, int]]:
    """Read waits.

    Parameters
    ----------
    file : str or Path
    n_flows : int
        Flows that there are.

    Returns
    -------
    list of (flow, predecessor, line)

    Raises
    ------
    SpecError
        Naming file and line: a line without two numbers of different flows.
    """
    waits = []
    for number, row in enumerate(read_text(file).splitlines(), start=1):
        words = row.split("#", 1)[0].split()
        if not words:
            continue
        where = place(file, number)
        if len(words) != 2:
            raise SpecError(where, row.strip(), "two numbers of flows: one that waits, and its predecessor")
        flow, predecessor = (whole(word, where=where, high=n_flows - 1) for word in words)
        if flow == predecessor:
            raise SpecError(where, row.strip(), "two different flows")
        waits.append((flow, predecessor, number))
    return waits
