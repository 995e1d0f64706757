"""Which link was the slowest in a run of collectives, and why.

With several at once it is the slowest of all their links: the one with the largest sum of the time for which
it sent, the time for which its peer forbade it to, and the time for which a frame waited there on average.

What it lost, in time:

* **retransmission**: frames that were sent again and time-outs, of the connections that begin or end at the
  link's host; for other links, frames that were dropped there. At most the time for which it was idle, and
  that for the frames themselves.
* **pauses**: for how long PFC kept it from sending.
* **collision**: what it carried beyond the mean of the links that were equally good (all of a leaf's to
  spines, all of the spines' to a leaf, and so on, of the same rate): hashed paths fall unevenly. None is as
  good as a link to or from a switch whose reducer is in use.
* **queueing**: how long a frame waited here on average, once for each message of the longest chain of the
  algorithm, in which every message waits for the one before.

The cause is the largest of the first three, if that is at least 2 % of the time that the collective took;
queueing, which the three bring about as well, only if none is. With no cause a link is busy for at least half
of the time (then its rate is the limit), or it is not (then latency is).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fabric.result.table import Array

if TYPE_CHECKING:
    from fabric.result.result import Result

__all__ = ["CAUSES", "Slowest", "slowest_link"]

CAUSES = ("retransmission", "pauses", "collision", "queueing", "line rate", "latency")
"""Why a link can be the slowest."""

LEAST_SHARE = 0.02
"""Of the collective's time, from which on something lost is a cause."""

BUSY_SHARE = 0.5
TIERS = ("leaf", "spine", "core")
"""Of switches, from the bottom up, between which there is a choice of links."""

PS_PER_S, BITS_PER_BYTE = 10**12, 8


@dataclass(frozen=True, kw_only=True)
class Slowest:
    """A link, and what it lost.

    Attributes
    ----------
    link : str
        Such as "leaf0->host3"; empty if no link sent anything.
    cause : str
        One of `CAUSES`.
    busy_ps : int
        For which it sent.
    lost_ps : mapping of str to int
        By each of the first four causes.
    """

    link: str
    cause: str
    busy_ps: int
    lost_ps: Mapping[str, int]


def slowest_link(result: Result, *, duration_ps: int, chain: int) -> Slowest:
    """Find the slowest link of a run.

    Parameters
    ----------
    result : Result
        Of a run with collectives.
    duration_ps : int
        What these took.
    chain : int
        Messages of the longest chain (`Explanation.depth`), of all repetitions.

    Returns
    -------
    Slowest
    """
    ports = result.ports
    busy = ports["tx_bytes"] * float(BITS_PER_BYTE * PS_PER_S) / ports["rate_bps"]
    if not busy.any():
        return Slowest(link="", cause="latency", busy_ps=0, lost_ps=dict.fromkeys(CAUSES[:4], 0))
    paused = ports["paused_ps"].astype(float)
    waited = ports["queue_mean_bytes"] * float(result.duration_ps) / np.maximum(ports["tx_bytes"], 1)
    port = int(np.argmax(busy + paused + waited))
    idle_ps = max(duration_ps - busy[port], 0.0)
    lost = {
        "retransmission": _sent_again_ps(result, port, idle_ps=idle_ps),
        "pauses": float(paused[port]),
        "collision": max(busy[port] - float(busy[_equally_good(result, port)].mean()), 0.0),
        "queueing": min(float(waited[port]) * chain, float(duration_ps)),
    }
    least = LEAST_SHARE * duration_ps
    cause = max(CAUSES[:3], key=lambda name: lost[name])
    if lost[cause] < least:
        cause = "queueing" if lost["queueing"] >= least else "latency"
    if cause == "latency" and busy[port] >= BUSY_SHARE * duration_ps:
        cause = "line rate"
    return Slowest(
        link=str(ports["link"][port]),
        cause=cause,
        busy_ps=round(float(busy[port])),
        lost_ps={name: round(value) for name, value in lost.items()},
    )


def _equally_good(result: Result, port: int) -> Array:
    """Links between the same tiers at the same rate, of the same lower switch; a host's link: itself."""
    ports = result.ports
    sender, _, receiver = str(ports["tier"][port]).partition("->")
    if sender not in TIERS or receiver not in TIERS:
        return np.array([port])
    ends = str(ports["link"][port]).partition("->")[::2]
    if any(end in _reducing(result) for end in ends):
        return np.array([port])
    end = 0 if TIERS.index(sender) < TIERS.index(receiver) else 2
    lower = np.array([link.partition("->")[end] for link in ports["link"].tolist()])
    alike = (lower == lower[port]) & (ports["tier"] == ports["tier"][port])
    return np.flatnonzero(alike & (ports["rate_bps"] == ports["rate_bps"][port]))


def _reducing(result: Result) -> set[str]:
    """Switches whose reducers have sent something."""
    ports = result.ports
    from_reducer = np.char.startswith(ports["tier"].astype(np.str_), "reducer->") & (ports["tx_bytes"] > 0)
    return {link.partition("->")[2] for link in ports["link"][from_reducer].tolist()}


def _sent_again_ps(result: Result, port: int, *, idle_ps: float) -> float:
    ports, connections = result.ports, result.connections
    sender, _, receiver = str(ports["link"][port]).partition("->")
    own = (connections["source"] == sender) | (connections["destination"] == receiver)
    fresh = connections["sent"].astype(np.int64) - connections["retransmitted"].astype(np.int64)
    bytes_per_frame = connections["size_bytes"].sum() / max(int(fresh.sum()), 1)
    frames, held_ps = (
        int(connections["retransmitted"][own].sum()),
        float(connections["timeout_ps"][own].sum()),
    )
    if not own.any():
        frames = int(ports["drops"][port])
    frame_ps = bytes_per_frame * BITS_PER_BYTE * PS_PER_S / float(ports["rate_bps"][port])
    return float(frames * frame_ps + min(held_ps, idle_ps))
