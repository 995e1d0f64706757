"""Deadlocks of a run: as tables, and each as an object that says what happened.

A deadlock is a set of links of a class, all paused, each of whose far ends can never resume because what
it holds waits for links of the set (`docs/design.md`, section 13). Within it, a link *waits for* another if
frames that came over the one stand in the queue of the other. The shortest cycle of these is what a person
looks at.

The flow that closed it: whose frame made the far end of the last paused link send that PAUSE, or if a
frame's arrival was the last straw, the flow of that frame.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fabric.lowered import Lowered

from .labels import Labels
from .table import Array, Category, Table
from .text import counted, size_text, time_text

__all__ = ["Deadlock", "deadlock_frame_table", "deadlock_link_table", "deadlocks_of", "watchdog_table"]

NO_FLOW = 0xFFFFFFFF
WATCHDOG_EVENTS = ("mitigated", "restored")
LISTED_FLOWS = 8


def deadlock_link_table(channels: Array, *, lowered: Lowered, labels: Labels) -> Table:
    """Return the table of links in deadlocks: one row a deadlock, link and class.

    Parameters
    ----------
    channels : numpy.ndarray of `fabric.lowered.DEADLOCK_CHANNEL`
    lowered : Lowered
    labels : Labels
    """
    return Table(
        {
            "deadlock": channels["deadlock"],
            "link": Category(channels["port"], labels.links),
            "traffic_class": Category(channels["class"], labels.classes),
            "formed_ps": channels["formed_ps"],
            "broken_ps": channels["broken_ps"],
            "paused_ps": channels["since_ps"],
            "queue_bytes": channels["bytes"],
            "queue_frames": channels["frames"],
            "cause": _flow_names(channels["cause_flow"], labels),
        },
        name="deadlock_links",
        optional=("broken_ps",),
    )


def deadlock_frame_table(frames: Array, *, lowered: Lowered, labels: Labels) -> Table:
    """Return the table of frames in deadlocks, as they waited when it formed.

    Parameters
    ----------
    frames : numpy.ndarray of `fabric.lowered.DEADLOCK_FRAME`
    lowered : Lowered
    labels : Labels
    """
    kinds = np.array(("DATA", "ACK", "NACK", "CNP", "PFC"))
    return Table(
        {
            "deadlock": frames["deadlock"],
            "link": Category(frames["port"], labels.links),
            "traffic_class": Category(frames["class"], labels.classes),
            "came_over": Category(lowered.port_peer[frames["ingress"]], labels.links),
            "flow": _flow_names(frames["flow"], labels),
            "kind": Category(frames["kind"], kinds),
            "sequence": frames["sequence"],
            "destination": Category(frames["destination"], labels.nodes),
            "size_bytes": frames["size_bytes"],
            "since_ps": frames["since_ps"],
            "ttl": frames["ttl"],
        },
        name="deadlock_frames",
    )


def watchdog_table(rows: Array, *, labels: Labels) -> Table:
    """Return the table of what watchdogs did: one row each time that a queue was mitigated or restored."""
    return Table(
        {
            "time_ps": rows["time_ps"],
            "link": Category(rows["port"], labels.links),
            "traffic_class": Category(rows["class"], labels.classes),
            "event": Category(rows["kind"], np.array(WATCHDOG_EVENTS)),
            "queue_bytes": rows["value"],
            "dropped_frames": rows["sequence"],
        },
        name="watchdog",
    )


def _flow_names(flows: Array, labels: Labels) -> Category:
    names = np.append(labels.flows, "") if len(labels.flows) else np.array([""])
    return Category(np.where(flows == NO_FLOW, len(labels.flows), flows), names)


@dataclass(frozen=True, eq=False, repr=False)
class Deadlock:
    """A deadlock, as it stood when it formed.

    Attributes
    ----------
    formed_ps : int
        The first instant at which it could be proven.
    broken_ps : int
        When a watchdog or a failure let frames of it go, or lost them; -1: it stands.
    links : Table
        Its links, a part of ``Result.tables["deadlock_links"]``.
    frames : Table
        What waits for them, a part of ``Result.tables["deadlock_frames"]``.
    cycle : tuple of str
        The shortest cycle of links, each waiting for the next, and the last for the first; it begins with
        the one that was paused last.
    closing_link, closing_flow : str
        The link whose pause, or whose queue, closed it, and the flow whose frame did.
    """

    formed_ps: int
    broken_ps: int
    links: Table
    frames: Table
    cycle: tuple[str, ...]
    closing_link: str
    closing_flow: str

    @property
    def flows(self) -> tuple[str, ...]:
        """Flows with frames in it, in order of name."""
        return tuple(sorted({str(name) for name in self.frames["flow"]} - {""}))

    @property
    def queue_bytes(self) -> int:
        """Bytes that wait in it."""
        return int(self.links["queue_bytes"].sum())

    def to_dict(self) -> dict[str, Any]:
        """Return the main numbers as a dictionary that JSON can hold."""
        return {
            "formed_ps": self.formed_ps,
            "broken_ps": None if self.broken_ps < 0 else self.broken_ps,
            "links": len(self.links),
            "frames": len(self.frames),
            "queue_bytes": self.queue_bytes,
            "flows": list(self.flows),
            "cycle": list(self.cycle),
            "closing_link": self.closing_link,
            "closing_flow": self.closing_flow,
        }

    def lines(self) -> Iterator[str]:
        """Say what happened, in a few lines."""
        first = self.cycle[:1]
        ends = "it stands" if self.broken_ps < 0 else f"broken at {time_text(self.broken_ps)}"
        yield f"formed at {time_text(self.formed_ps)}; {ends}"
        yield f"closed by flow {self.closing_flow} at {self.closing_link}"
        yield f"cycle: {', '.join((*self.cycle, *first))}"
        queued = dict(zip(self.links["link"], self.links["queue_bytes"], strict=True))
        paused = dict(zip(self.links["link"], self.links["paused_ps"], strict=True))
        for link in self.cycle:
            since = time_text(int(paused[link]))
            yield f"  {link}: {size_text(int(queued[link]))} wait, paused since {since}"
        names = self.flows
        more = f" and {len(names) - LISTED_FLOWS} more" if len(names) > LISTED_FLOWS else ""
        yield (
            f"{counted(len(self.links), 'link')} and {counted(len(self.frames), 'frame')} "
            f"({size_text(self.queue_bytes)}) of {counted(len(names), 'flow')} wait for ever: "
            f"{', '.join(names[:LISTED_FLOWS])}{more}"
        )

    def __repr__(self) -> str:
        return "\n".join(self.lines())


def deadlocks_of(tables: Mapping[str, Table]) -> tuple[Deadlock, ...]:
    """Return the deadlocks that the tables of a result tell of, in order of time."""
    links, frames = tables.get("deadlock_links"), tables.get("deadlock_frames")
    if links is None or frames is None:
        return ()
    numbers = sorted({int(number) for number in links["deadlock"]})
    return tuple(
        _deadlock(links[links["deadlock"] == number], frames[frames["deadlock"] == number])
        for number in numbers
    )


Channel = tuple[str, str]
"""Link and class."""


def _deadlock(links: Table, frames: Table) -> Deadlock:
    formed_ps = int(links["formed_ps"][0])
    channels = [(str(a), str(b)) for a, b in zip(links["link"], links["traffic_class"], strict=True)]
    cycle = _shortest_cycle(channels, _waits(channels, frames))
    since = dict(zip(channels, links["paused_ps"].tolist(), strict=True))
    last = max(cycle, key=lambda one: since[one])
    at = cycle.index(last)
    cycle = cycle[at:] + cycle[:at]
    closing_link, closing_flow = last[0], str(links["cause"][channels.index(last)])
    came = frames["since_ps"] == formed_ps
    if since[last] != formed_ps and came.any():
        row = frames[came][0]
        closing_link, closing_flow = str(row["link"]), str(row["flow"])
    return Deadlock(
        formed_ps=formed_ps,
        broken_ps=int(links["broken_ps"][0]),
        links=links,
        frames=frames,
        cycle=tuple(link for link, _ in cycle),
        closing_link=closing_link,
        closing_flow=closing_flow,
    )


def _waits(channels: Sequence[Channel], frames: Table) -> dict[Channel, list[Channel]]:
    """For each channel, those that frames which came over it wait for."""
    after: defaultdict[Channel, set[Channel]] = defaultdict(set)
    known = set(channels)
    columns = (frames[name] for name in ("came_over", "link", "traffic_class"))
    for came_over, link, name in set(zip(*(column.tolist() for column in columns), strict=True)):
        if (came_over, name) in known:
            after[came_over, name].add((link, name))
    return {one: sorted(after[one]) for one in channels}


def _shortest_cycle(channels: Sequence[Channel], after: Mapping[Channel, Sequence[Channel]]) -> list[Channel]:
    """The shortest cycle; of several, one of the first channel that is on any."""
    best: list[Channel] = []
    for start in channels:
        before: dict[Channel, Channel | None] = {start: None}
        queue = deque([start])
        while queue:
            here = queue.popleft()
            if start in after[here]:
                way = [here]
                while (previous := before[way[-1]]) is not None:
                    way.append(previous)
                if not best or len(way) < len(best):
                    best = way[::-1]
                break
            for there in after[here]:
                if there not in before:
                    before[there] = here
                    queue.append(there)
    return best
