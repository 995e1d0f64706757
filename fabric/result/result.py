"""`Result`: what a run left behind, as tables, counts and its provenance.

A result is data: it is frozen, holds no engine and no network, and two runs of one scenario with one
seed have equal tables and equal fingerprints. Tables that were not recorded are empty and not in
`recorded`. Times are picoseconds of simulated time from 0; -1 is "did not happen".
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from .provenance import Provenance
from .table import Table
from .text import counted, time_text

if TYPE_CHECKING:
    from .deadlocks import Deadlock
    from .summary import Summary

__all__ = ["STATUSES", "Result"]

STATUSES = ("FINISHED", "STALLED", "DEADLOCK", "UNTIL", "BUDGET", "INTERRUPTED")
"""Why a run can end; `Result.stopped` says it in words."""

LISTED_WAITS = 3
"""Waiting ranks that `Result.stopped` names."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Result:
    """What happened in a run.

    Attributes
    ----------
    status : str
        Why the run ended, one of :data:`STATUSES`.
    tables : mapping of str to Table
        Every table by its name; each is an attribute too.
    recorded : frozenset of str
        Names of the time series that the scenario asked for.
    counters : mapping of str to int
        Totals of the engine: ``hops`` (frames that arrived over a link), ``frames_started``,
        ``frames_arrived``, ``in_flight``, ``end_ps``, ``fingerprint``.
    drops_by_reason : mapping of str to int
        Dropped frames.
    duration_ps : int
        Simulated time.
    wall_s : float
        Time that the run took, in seconds; the only thing here that differs from run to run.
    provenance : Provenance
        Scenario, seed and versions.
    """

    status: str
    tables: Mapping[str, Table]
    recorded: frozenset[str]
    counters: Mapping[str, int]
    drops_by_reason: Mapping[str, int]
    duration_ps: int
    provenance: Provenance
    wall_s: float = field(default=0.0)

    @property
    def flows(self) -> Table:
        """One row a flow: who, how much, when, how long against the ideal, what it cost."""
        return self.tables["flows"]

    @property
    def ports(self) -> Table:
        """One row a port: bytes sent, utilisation, queue, marks, drops, pauses."""
        return self.tables["ports"]

    @property
    def classes(self) -> Table:
        """One row a port and traffic class: queue, thresholds, headroom, marks, drops, pauses."""
        return self.tables["classes"]

    @property
    def nodes(self) -> Table:
        """One row a host or switch: tier, ports, shared buffer."""
        return self.tables["nodes"]

    @property
    def operations(self) -> Table:
        """One row a collective operation: ranks, sizes, when, how long, bandwidths."""
        return self.tables["operations"]

    @property
    def ranks(self) -> Table:
        """One row a rank of a collective operation: when it entered and left, how long it took."""
        return self.tables["ranks"]

    @property
    def connections(self) -> Table:
        """One row a connection of a job: bytes, first and last message, what was sent again."""
        return self.tables["connections"]

    @property
    def waiting(self) -> Table:
        """After a run that stalled: one row for each thing that a rank in an operation waits for."""
        return self.tables["waiting"]

    @cached_property
    def deadlocks(self) -> tuple[Deadlock, ...]:
        """PFC deadlocks that formed, in order of time; none, if none did or none was looked for."""
        from .deadlocks import deadlocks_of

        return deadlocks_of(self.tables)

    @property
    def watchdog(self) -> Table:
        """What the watchdogs of switches did: one row for each queue that was mitigated or restored."""
        return self.tables["watchdog"]

    @property
    def queue(self) -> Table:
        """Queue depth over time: one row a change (or sample) of a recorded queue."""
        return self.tables["queue"]

    @property
    def throughput(self) -> Table:
        """Bytes sent in each interval by each recorded port; intervals without any have no row."""
        return self.tables["throughput"]

    @property
    def pauses(self) -> Table:
        """PFC pauses: one row for each interval in which a port was not allowed to send a class."""
        return self.tables["pauses"]

    @property
    def rates(self) -> Table:
        """Sending rates over time: one row a change of a recorded flow's rate."""
        return self.tables["rates"]

    @property
    def marks(self) -> Table:
        """ECN marks: one row each."""
        return self.tables["marks"]

    @property
    def drops(self) -> Table:
        """Dropped frames: one row each."""
        return self.tables["drops"]

    @property
    def packets(self) -> Table:
        """Frames sent by recorded ports and flows: one row each."""
        return self.tables["packets"]

    @property
    def fingerprint(self) -> str:
        """Hash of everything that happened: 16 hexadecimal digits, equal for equal runs."""
        return f"{self.counters.get('fingerprint', 0):016x}"

    @property
    def stopped(self) -> str:
        """Why the run ended, as a sentence."""
        unfinished = int((self.flows["delivered_ps"] < 0).sum())
        left = f"{unfinished} of {len(self.flows)} flows not delivered"
        if len(self.operations):
            undone = int((self.operations["left_ps"] < 0).sum())
            undone_text = f"{undone} of {len(self.operations)} operations not done"
            left = f"{undone_text}, {left}" if len(self.flows) else undone_text
        shown = range(min(LISTED_WAITS, len(self.waiting)))
        left = "; ".join([left, *(self._waiting_text(row) for row in shown)])
        return {
            "FINISHED": "every flow is complete" if len(self.flows) else "every rank is done",
            "STALLED": f"nothing is left to happen, {left}",
            "DEADLOCK": f"a deadlock was to stop the run, {left}",
            "UNTIL": f"the end of the run at {time_text(self.duration_ps)} was reached, {left}",
            "BUDGET": f"the run was left at {time_text(self.duration_ps)}, {left}",
            "INTERRUPTED": f"interrupted at {time_text(self.duration_ps)}, {left}",
        }[self.status]

    def _waiting_text(self, number: int) -> str:
        """What a rank waits for, in words."""
        row = self.waiting[number]
        missing = counted(row["transfers"], "transfer")
        what = f"{missing} from" if row["lacks"] == "data" else f"the acknowledgement of {missing} to"
        absent = "" if row["peer_has_entered"] else ", which has not entered"
        return f"rank {row['rank']} waits in {row['operation']} for {what} rank {row['peer']}{absent}"

    @cached_property
    def summary(self) -> Summary:
        """Headline numbers: a mapping that prints as a table."""
        from .summary import Summary

        return Summary.of(self)

    def save(self, directory: str | os.PathLike[str], *, pictures: Mapping[str, bytes] | None = None) -> None:
        """Write the result into a directory, whole or not at all.

        Parameters
        ----------
        directory : path
            Made with its parents; an older result in its place is replaced.
        pictures : mapping of str to bytes
            Image files to lie beside the tables, by name.

        Raises
        ------
        FabricError
            If there is something at `directory` that is not a result.
        """
        from fabric.io.directory import save

        save(self, directory=directory, pictures=pictures or {})

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Result:
        """Read a result that :meth:`save` wrote.

        Raises
        ------
        FabricError
            If there is no result at `directory`, or it cannot be read.
        """
        from fabric.io.directory import load

        return load(directory)

    def __repr__(self) -> str:
        return str(self.summary)

    def _repr_html_(self) -> str:
        from .html import result_html

        return result_html(self)
