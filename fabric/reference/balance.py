"""How a switch chooses among next hops of equal cost, frame by frame.

ECMP hashes the flow, so flows collide but frames keep their order; what it hashes is a number of the flow, or
(as real switches, and the HPCC simulator) its addresses and ports. Spraying disregards flows: at random
by a draw that belongs to this frame at this port and instant, or round robin with a turn for each
(group, class). The adaptive choice takes the port that holds the least of the frame's class; of equal
queues one that could start at once. Flowlets are adaptive too, but a flow moves only after a gap in
which none of its frames came; they live in a table of fixed size, as in a switch chip, so that flows
whose hashes share a slot move together (CONGA, SIGCOMM 2014; LetFlow, NSDI 2017).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from .frame import Frame
from .rng import GOLDEN, GOLDEN32, MASK32, fmix32, mix64, murmur3
from .sockets import Sockets

__all__ = ["Balancer", "Candidate", "Choice"]

FLOWLET_SLOT_BITS = 12
"""A switch has so many bits' worth of flowlets."""


class Choice:
    """How a switch chooses (`Lowered.node_choice`)."""

    HASH, RANDOM, ROUND_ROBIN, ADAPTIVE, FLOWLET, TUPLE = range(6)


class Candidate(Protocol):
    """What the adaptive choice asks of a port."""

    def queue_cost(self, traffic_class: int, now_ps: int) -> int:
        """How unattractive the port is for a frame of a class."""


class Balancer:
    """The path choice of one switch and what it remembers.

    Parameters
    ----------
    choice : int
        A `Choice`.
    salt : int
        The switch's, for hashes.
    key : int
        Of the draws of the run.
    flowlet_gap_ps : int
        A flowlet that was idle for so long may move.
    sockets : Sockets
        Addresses and ports of frames, where they are hashed.
    """

    __slots__ = ("_choose", "_flowlet_gap_ps", "_flowlets", "_key", "_salt", "_sockets", "_turns")

    def __init__(self, choice: int, *, salt: int, key: int, flowlet_gap_ps: int, sockets: Sockets) -> None:
        self._sockets = sockets
        self._salt = salt
        self._key = key
        self._flowlet_gap_ps = flowlet_gap_ps
        self._turns: dict[tuple[int, int], int] = {}
        self._flowlets: dict[int, tuple[int, int]] = {}
        choices: dict[int, Callable[..., int]] = {
            Choice.HASH: self._by_hash,
            Choice.RANDOM: self._at_random,
            Choice.ROUND_ROBIN: self._in_turn,
            Choice.ADAPTIVE: self._shortest,
            Choice.FLOWLET: self._by_flowlet,
            Choice.TUPLE: self._by_tuple,
        }
        self._choose = choices[choice]

    def choose(
        self, frame: Frame, *, offset: int, candidates: Sequence[Candidate], ingress: int, now_ps: int
    ) -> int:
        """Index of the port that a frame takes, of two candidates or more; `offset` names the group."""
        return self._choose(frame, offset=offset, candidates=candidates, ingress=ingress, now_ps=now_ps)

    def _by_hash(self, frame: Frame, *, candidates: Sequence[Candidate], **_: int) -> int:
        return fmix32(frame.path_hash ^ self._salt) * len(candidates) >> 32

    def _by_tuple(self, frame: Frame, *, candidates: Sequence[Candidate], **_: int) -> int:
        return murmur3(self._sockets.words_of(frame), seed=self._salt) % len(candidates)

    def _at_random(
        self, _frame: Frame, *, candidates: Sequence[Candidate], ingress: int, now_ps: int, **_: int
    ) -> int:
        return self._drawn(len(candidates), ingress, now_ps)

    def _in_turn(self, frame: Frame, *, offset: int, candidates: Sequence[Candidate], **_: int) -> int:
        count = len(candidates)
        index = self._turns.get((offset, frame.traffic_class), self._salt * count >> 32)
        self._turns[offset, frame.traffic_class] = (index + 1) % count
        return index

    def _shortest(
        self, frame: Frame, *, candidates: Sequence[Candidate], ingress: int, now_ps: int, **_: int
    ) -> int:
        costs = [candidate.queue_cost(frame.traffic_class, now_ps) for candidate in candidates]
        best = [index for index, cost in enumerate(costs) if cost == min(costs)]
        return best[0] if len(best) == 1 else best[self._drawn(len(best), ingress, now_ps)]

    def _by_flowlet(
        self, frame: Frame, *, offset: int, candidates: Sequence[Candidate], ingress: int, now_ps: int
    ) -> int:
        mixed = (frame.path_hash ^ self._salt) + offset * GOLDEN32
        slot = fmix32(mixed & MASK32) >> 32 - FLOWLET_SLOT_BITS
        last_ps, index = self._flowlets.get(slot, (None, 0))
        if last_ps is None or now_ps - last_ps >= self._flowlet_gap_ps or index >= len(candidates):
            index = self._shortest(frame, candidates=candidates, ingress=ingress, now_ps=now_ps)
        self._flowlets[slot] = (now_ps, index)
        return index

    def _drawn(self, count: int, ingress: int, now_ps: int) -> int:
        """One of `count`; at one port and instant there is one frame."""
        return (mix64((now_ps ^ self._key) + (ingress + 1) * GOLDEN) >> 32) * count >> 32
