"""`Summary`: the headline numbers of a result, as a mapping and as a short table.

The mapping holds plain numbers, text, lists and dictionaries (so JSON can hold it), with units in the
keys. The table says the same to a person: what ran, how long it took, how long flows took against an
empty network, which were slowest, where queues were fullest, and what was paused, dropped, marked and
sent again; of collectives how fast they were, and the slowest link with its cause. Percentiles are order
statistics of the flows that were delivered.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from fabric.analysis.stats import percentiles

from .summary_collectives import collective_rows, collectives_text, slowest_link_row, slowest_link_text
from .summary_training import apart_from_training, training_rows, training_text
from .table import Array, Table
from .text import align, count_text, counted, size_text, time_text

if TYPE_CHECKING:
    from .result import Result

__all__ = ["Summary"]

LISTED = 3
"""Slowest flows and fullest queues that are named."""

LISTED_LINKS = 4
"""Links of a deadlock that are named."""

LISTED_PATTERNS = 8
"""Traffic patterns up to which each has completion times of its own."""

LINE_LETTERS = 100
"""Letters at which a long text is broken into lines."""


class Summary(Mapping[str, Any]):
    """Headline numbers of a result.

    Examples
    --------
    ``result.summary["fct_ps"]["p99"]`` is a number, ``print(result.summary)`` the table.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    @classmethod
    def of(cls, result: Result) -> Summary:
        """Return the summary of a result."""
        return cls(
            {
                "name": result.provenance.name,
                "question": result.provenance.question,
                "expect": result.provenance.expect,
                "status": result.status,
                "stopped": result.stopped,
                **_size(result),
                **_effort(result),
                "fct_ps": _spread(result.flows["fct_ps"]),
                "slowdown": _spread(result.flows["slowdown"]),
                "patterns": _patterns(result.flows),
                "collectives": collective_rows(apart_from_training(result)),
                "training": training_rows(result),
                "slowest_link": slowest_link_row(result),
                "slowest_flows": _slowest_flows(result.flows),
                "fullest_queues": _fullest_queues(result.classes),
                **_losses(result),
                "deadlocks": [one.to_dict() for one in result.deadlocks],
                "watchdog": _watchdog(result),
                "fingerprint": result.fingerprint,
            }
        )

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as a dictionary that JSON can hold."""
        return dict(self._values)

    def title(self) -> str:
        """Return the scenario's name and its question."""
        return ": ".join(part for part in (self["name"], self["question"]) if part) or "result"

    def lines(self) -> list[tuple[str, str]]:
        """Return the table as (label, text) pairs; a text may have several lines."""
        pairs = [
            ("expected", "\n".join(wrap(self["expect"], LINE_LETTERS))),
            ("ran", self._ran_text()),
            ("took", self._took_text()),
            ("ended", self["stopped"]),
            ("collectives", collectives_text(self["collectives"][:LISTED_PATTERNS])),
            ("training", training_text(self["training"])),
            ("slowest link", slowest_link_text(self["slowest_link"])),
            ("completion", self._completion_text()),
            ("slowest flows", self._slowest_text()),
            ("fullest queues", self._queues_text()),
            ("paused", self._pauses_text()),
            ("deadlock", self._deadlocks_text()),
            ("watchdog", self._watchdog_text()),
            ("dropped", self._drops_text()),
            ("marked", self._marks_text()),
            ("sent again", self._again_text()),
            ("fingerprint", self["fingerprint"]),
        ]
        return [(label, text) for label, text in pairs if text]

    def __str__(self) -> str:
        width = max(len(label) for label, _ in self.lines())
        rows = wrap(self.title(), LINE_LETTERS)
        for label, text in self.lines():
            first, *more = text.split("\n")
            rows.append(f"  {label.ljust(width)}  {first}".rstrip())
            rows += [f"  {' ' * width}  {line}" for line in more]
        return "\n".join(rows)

    __repr__ = __str__

    def _ran_text(self) -> str:
        parts = (
            counted(self["hosts"], "host"),
            *([counted(self["reducers"], "reducer")] if self["reducers"] else []),
            counted(self["switches"], "switch", "switches"),
            counted(self["cables"], "cable"),
        )
        carried = [
            f"{counted(self[f'{noun}s'], noun)}, {size_text(self[f'{noun}_bytes'])}"
            for noun in ("flow", "connection")
            if self[f"{noun}s"]
        ]
        return ", ".join([*parts, *(carried or ["no flow"])])

    def _took_text(self) -> str:
        return (
            f"{time_text(self['duration_ps'])} simulated in {self['wall_s']:.3g} s: "
            f"{count_text(self['hops'])} hops, {count_text(self['hops_per_s'])} hops/s "
            f"({self['engine']} engine)"
        )

    def _completion_text(self) -> str:
        if not self["fct_ps"]["count"]:
            jobs = self["collectives"] or self["training"]
            return "no flow was delivered" if self["flows"] or not jobs else ""
        parts = self["patterns"] if len(self["patterns"]) <= LISTED_PATTERNS else {"all": self}
        header = ["", "flows", "time: median", "99 %", "longest", "slowdown: median", "99 %", "largest"]
        rows = [[name, *_spread_texts(part)] for name, part in parts.items()]
        return "\n".join(align([header, *rows], right=range(1, len(header))))

    def _slowest_text(self) -> str:
        rows = [
            [
                f"{row['name'] or row['flow']}",
                f"{row['source']} -> {row['destination']}",
                size_text(row["size_bytes"]),
                time_text(row["fct_ps"]) if row["fct_ps"] >= 0 else "not delivered",
                _times(row["slowdown"]),
            ]
            for row in self["slowest_flows"]
        ]
        return "\n".join(align(rows, right=(2, 3, 4)))

    def _queues_text(self) -> str:
        rows = [
            [
                row["link"],
                row["traffic_class"],
                f"{size_text(row['queue_peak_bytes'])} at most",
                f"{size_text(round(row['queue_mean_bytes']))} on average",
            ]
            for row in self["fullest_queues"]
        ]
        return "\n".join(align(rows, right=(2, 3))) or "none: no switch held a frame"

    def _pauses_text(self) -> str:
        pauses = self["pauses"]
        if not pauses["sent"] and not pauses["paused_ports"]:
            return "never"
        tiers = ", ".join(f"{count_text(count)} {tier}" for tier, count in pauses["paused_by_tier"].items())
        ran_out = (
            f"\n{counted(pauses['run_out'], 'pause')} ran out before the RESUME" if pauses["run_out"] else ""
        )
        return (
            f"{tiers} {'port' if pauses['paused_ports'] == 1 else 'ports'}\n"
            f"{time_text(pauses['paused_ps'])} in all, by {counted(pauses['sent'], 'PAUSE frame')}, "
            f"longest {pauses['longest_link']} for {time_text(pauses['longest_ps'])}{ran_out}"
        )

    def _deadlocks_text(self) -> str:
        """Nothing if there is none: a run without pauses need not say so."""
        texts = []
        for one in self["deadlocks"][:LISTED]:
            cycle = one["cycle"]
            ends = "stands" if one["broken_ps"] is None else f"broken at {time_text(one['broken_ps'])}"
            links = ", ".join(cycle[:LISTED_LINKS]) + (", ..." if len(cycle) > LISTED_LINKS else "")
            texts.append(
                f"formed at {time_text(one['formed_ps'])}, {ends}: "
                f"{counted(len(cycle), 'link')} wait in a circle: {links}\n"
                f"  closed by flow {one['closing_flow']} at {one['closing_link']}; in all "
                f"{counted(one['links'], 'link')} and {counted(one['frames'], 'frame')} "
                f"({size_text(one['queue_bytes'])}) of {counted(len(one['flows']), 'flow')}"
            )
        if len(self["deadlocks"]) > LISTED:
            texts.append(f"and {len(self['deadlocks']) - LISTED} more")
        return "\n".join(texts)

    def _watchdog_text(self) -> str:
        done = self["watchdog"]
        if not done["mitigated"]:
            return ""
        return (
            f"{counted(done['mitigated'], 'queue')} mitigated, the first at {time_text(done['first_ps'])}, "
            f"{count_text(done['restored'])} restored"
        )

    def _drops_text(self) -> str:
        reasons = [f"{count_text(count)} by {reason}" for reason, count in self["drops"].items() if count]
        return ", ".join(reasons) or "nothing"

    def _marks_text(self) -> str:
        if not self["marks"]:
            return "nothing"
        return f"{counted(self['marks'], 'frame')}, answered by {counted(self['cnps'], 'CNP')}"

    def _again_text(self) -> str:
        if not self["retransmitted"] and not self["timeouts"]:
            return "nothing"
        parts = (
            counted(self["retransmitted"], "frame"),
            f"after {counted(self['timeouts'], 'time-out')}",
            f"and {counted(self['nacks'], 'NACK')}",
        )
        return " ".join(parts)


def _spread_texts(part: Mapping[str, Any]) -> list[str]:
    """Return the number of flows, percentiles of their completion times, and of their slowdowns."""
    fct, slowdown = part["fct_ps"], part["slowdown"]
    delivered, count = count_text(fct["count"]), count_text(part["flows"])
    shares = ("p50", "p99", "max")
    return [
        count if delivered == count else f"{delivered} of {count}",
        *("-" if fct[key] is None else time_text(fct[key]) for key in shares),
        *(_times(slowdown[key]) for key in shares),
    ]


def _times(slowdown: float | None) -> str:
    return "-" if slowdown is None else f"{slowdown:.2f}x"


def _size(result: Result) -> dict[str, Any]:
    kinds = result.nodes["kind"]
    reducers = int((result.nodes["tier"] == "reducer").sum())
    return {
        "hosts": int((kinds == "host").sum()) - reducers,
        "reducers": reducers,
        "switches": int((kinds == "switch").sum()),
        "cables": len(result.ports) // 2,
        "flows": len(result.flows),
        "flow_bytes": int(result.flows["size_bytes"].sum()),
        "connections": len(result.connections),
        "connection_bytes": int(result.connections["size_bytes"].sum()),
        "delivered_flows": int((result.flows["delivered_ps"] >= 0).sum()),
    }


def _effort(result: Result) -> dict[str, Any]:
    hops = int(result.counters.get("hops", 0))
    return {
        "duration_ps": result.duration_ps,
        "wall_s": result.wall_s,
        "hops": hops,
        "hops_per_s": hops / result.wall_s if result.wall_s > 0 else 0.0,
        "engine": result.provenance.engine,
    }


def _spread(values: Array) -> dict[str, Any]:
    """Return count, mean, median, 99th percentile and maximum of what was delivered."""
    known = values[values >= 0]
    if not len(known):
        return {"count": 0, "mean": None, "p50": None, "p99": None, "max": None}
    p50, p99, top = percentiles(known, q=(50, 99, 100)).tolist()
    return {"count": len(known), "mean": float(known.mean()), "p50": p50, "p99": p99, "max": top}


def _patterns(flows: Table) -> dict[str, dict[str, Any]]:
    """Return number of flows, completion times and slowdown of each traffic pattern."""
    of = flows.category("pattern")
    parts = ((str(of.labels[code]), flows[of.codes == code]) for code in np.unique(of.codes).tolist())
    return {
        name: {
            "flows": len(part),
            "fct_ps": _spread(part["fct_ps"]),
            "slowdown": _spread(part["slowdown"]),
        }
        for name, part in parts
    }


def _slowest_flows(flows: Table) -> list[dict[str, Any]]:
    """Return the slowest flows: those that were never delivered, then by slowdown."""
    never = flows["delivered_ps"] < 0
    slowdown = np.where(np.isnan(flows["slowdown"]), -1.0, flows["slowdown"])
    order = np.lexsort((np.arange(len(flows)), -slowdown, ~never))[:LISTED]
    keep = ("flow", "name", "source", "destination", "size_bytes", "fct_ps", "slowdown")
    return [{key: _plain(row[key]) for key in keep} for row in flows[order]]


def _fullest_queues(classes: Table) -> list[dict[str, Any]]:
    order = np.argsort(-classes["queue_peak_bytes"].astype(np.int64), kind="stable")[:LISTED]
    keep = ("link", "traffic_class", "queue_peak_bytes", "queue_mean_bytes")
    rows = (row for row in classes[order] if row["queue_peak_bytes"] > 0)
    return [{key: _plain(row[key]) for key in keep} for row in rows]


def _losses(result: Result) -> dict[str, Any]:
    """Return what congestion did: pauses, drops, marks, and frames sent again."""
    paused = result.ports["paused_ps"]
    tiers, counts = np.unique(result.ports["tier"][paused > 0], return_counts=True)
    longest = int(np.argmax(paused)) if len(paused) else 0
    totals = ("retransmitted", "timeouts", "cnps", "nacks")
    return {
        "pauses": {
            "sent": int(result.ports["pauses_sent"].sum()),
            "run_out": int(result.counters.get("pauses_run_out", 0)),
            "paused_ports": int((paused > 0).sum()),
            "paused_by_tier": dict(zip(tiers.tolist(), counts.tolist(), strict=True)),
            "paused_ps": int(paused.sum()),
            "longest_ps": int(paused.max(initial=0)),
            "longest_link": str(result.ports["link"][longest]) if len(paused) else "",
        },
        "drops": dict(result.drops_by_reason),
        "marks": int(result.ports["marks"].sum()),
        **{name: int(result.flows[name].sum() + result.connections[name].sum()) for name in totals},
    }


def _watchdog(result: Result) -> dict[str, Any]:
    """Return how often watchdogs mitigated queues and restored them, and when first."""
    table = result.tables.get("watchdog")
    if table is None or not len(table):
        return {"mitigated": 0, "restored": 0, "first_ps": None}
    mitigated = table["event"] == "mitigated"
    return {
        "mitigated": int(mitigated.sum()),
        "restored": int((~mitigated).sum()),
        "first_ps": int(table["time_ps"][mitigated].min()),
    }


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold: NaN becomes None."""
    return None if isinstance(value, float) and math.isnan(value) else value
