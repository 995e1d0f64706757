"""Exact detection of PFC deadlock, by its definition, at every instant at which something about it changes.

A *channel* is a class of a link between two switches. It is *frozen* while the account at its far end has
paused it and no PFC frame of it is on its way. The deadlocked set is the greatest set of frozen channels
whose accounts can never resume, because what they hold waits for channels of the set (`docs/design.md`,
section 13). It is found by striking channels that may be resumed one day, until none is left to strike.

The set can change when a channel is frozen, when a frame joins the queue of one, when a frame leaves an
account that has paused its sender, and when everything that was on the wire of a frozen channel has surely
arrived. The native engine looks only every so often and works the instant out; here it is looked for
at each of these. What both report is what still stands at one of the *looks*, at multiples of 64 lookaheads.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fabric.lowered import DEADLOCK_CHANNEL, DEADLOCK_FRAME, Lowered

from .buffer import IngressAccount
from .port import Port

if TYPE_CHECKING:
    from .queues import Waiting
    from .switch import Switch

__all__ = ["DeadlockSearch"]

OFF, STOP = 0, 2
LOOKAHEADS_A_LOOK = 64
"""From one look to the next."""

Channel = tuple[int, int]
"""Port that sends on a link, and class."""

Place = tuple[int, int]
"""Port at which frames come in, and class."""


@dataclass(slots=True, eq=False)
class Deadlock:
    """One that has formed.

    Attributes
    ----------
    formed_ps : int
    since_ps : dict
        Its channels, and when each was paused.
    channels, frames : list of tuple
        Rows of `DEADLOCK_CHANNEL` and `DEADLOCK_FRAME`, but for the number of the deadlock.
    broken_ps : int
        When it no longer stood, -1 if it does.
    """

    formed_ps: int
    since_ps: dict[Channel, int]
    channels: list[tuple[int, ...]]
    frames: list[tuple[int, ...]]
    broken_ps: int = -1


class DeadlockSearch:
    """All deadlocks of a run.

    Parameters
    ----------
    lowered : Lowered
    ports : list of Port
    holds : function
        Whether a PAUSE lasts at a port until the RESUME. Where it runs out nothing waits for ever.
    """

    def __init__(self, lowered: Lowered, *, ports: list[Port], holds: Callable[[Port], bool]) -> None:
        self._holds = holds
        self._mode = lowered.deadlock
        self._ports = ports
        self._first_switch = lowered.n_hosts
        self._switches: Mapping[int, Switch] = {}
        self._lookahead_ps = min((port.delay_ps for port in ports), default=1)
        self._interval_ps = LOOKAHEADS_A_LOOK * self._lookahead_ps
        sizes = lowered.transports["frame_bytes"], lowered.transports["control_bytes"]
        self._largest_frame_bytes = max(int(size.max(initial=0)) for size in sizes)
        self._now_ps = 0
        self._is_due = False
        self._paused: set[Channel] = set()
        self._settled: list[int] = []
        self._pending: list[Deadlock] = []
        self._reported: list[Deadlock] = []
        self._once: set[tuple[Channel, int]] = set()
        """Channels that have been in a deadlock, and since when they were paused then."""

    def watch(self, switches: Iterable[Switch]) -> None:
        """These are the switches."""
        self._switches = {switch.number: switch for switch in switches}

    def touch(self) -> None:
        """Something has happened that matters, at the instant that is going on."""
        self._is_due = True

    def on_pause(self, port: Port, traffic_class: int, *, pause: bool, now_ps: int) -> None:
        """A class of `port` may not send any more from now on, or may again."""
        if self._mode == OFF or not self._is_trunk(port):
            return
        self._is_due = True
        if pause:
            self._paused.add((port.number, traffic_class))
            heapq.heappush(self._settled, now_ps + self._wire_ps(port))
        else:
            self._paused.discard((port.number, traffic_class))

    def pass_to(self, time_ps: int) -> None:
        """Nothing happens between the instant that was going on and `time_ps`, which comes next."""
        if self._mode == OFF or time_ps <= self._now_ps:
            return
        if self._is_due:
            self._is_due = False
            self._evaluate(self._now_ps)
        while self._settled and self._settled[0] < time_ps:
            self._evaluate(max(self._now_ps, heapq.heappop(self._settled)))
        self._look(self._now_ps, time_ps)
        self._now_ps = time_ps

    def report(self, now_ps: int) -> None:
        """Look out of turn: somebody is about to break what stands now."""
        for deadlock in self._pending:
            self._reported.append(deadlock)
        self._pending.clear()
        self.note_broken(now_ps)

    def finish(self, end_ps: int) -> None:
        """Nothing is left to happen in a run that ends at `end_ps`."""
        if self._mode == OFF:
            return
        now_ps = self._now_ps
        self.pass_to(end_ps)
        self.report(self._first_look_from(now_ps))

    def stop_ps(self) -> int | None:
        """When the run ends that a deadlock stops, if one has to."""
        if self._mode != STOP:
            return None
        for deadlock in (*self._reported, *self._pending):
            return self._first_look_from(deadlock.formed_ps + self._lookahead_ps)
        return None

    def rows(self) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
        """Channels and frames of all deadlocks so far, in order of deadlock, port and class, then of time."""
        found = [*self._reported, *self._pending]
        channels = [
            (d.formed_ps, d.broken_ps, *row[:2], number, *row[2:])
            for number, d in enumerate(found)
            for row in sorted(d.channels, key=lambda row: (row[2], row[5]))
        ]
        frames = [
            (row[0], number, *row[1:])
            for number, d in enumerate(found)
            for row in sorted(d.frames, key=lambda row: (row[1], row[7], row[0], row[2]))
        ]
        return np.array(channels, dtype=DEADLOCK_CHANNEL), np.array(frames, dtype=DEADLOCK_FRAME)

    def _look(self, after_ps: int, until_ps: int) -> None:
        """The looks that lie after an instant and not after another; nothing happens between these."""
        first_ps = self._first_look_from(after_ps + 1)
        if first_ps > until_ps:
            return
        self.note_broken(first_ps)
        last_ps = until_ps // self._interval_ps * self._interval_ps
        while self._pending and self._pending[0].formed_ps + self._lookahead_ps <= last_ps:
            self._reported.append(self._pending.pop(0))

    def note_broken(self, look_ps: int) -> None:
        """Whatever was reported and stands no more was broken by now."""
        for deadlock in self._reported:
            if deadlock.broken_ps < 0 and not self._stands(deadlock):
                deadlock.broken_ps = look_ps

    def _first_look_from(self, time_ps: int) -> int:
        return -(-time_ps // self._interval_ps) * self._interval_ps

    def _evaluate(self, now_ps: int) -> None:
        """Whether what formed still stands, and whether something else has formed."""
        standing = [d for d in self._reported if d.broken_ps < 0 and self._stands(d)]
        known = {channel for d in standing for channel in d.since_ps}
        kept: list[Deadlock] = []
        for deadlock in self._pending:
            if self._stands(deadlock):
                kept.append(deadlock)
                known.update(deadlock.since_ps)
        self._pending = kept
        frozen = {one for one in self._paused if self._is_frozen(one)}
        while found := self._waiting_for_ever(frozen - known, now_ps):
            formed_ps = now_ps
            if any((one, self._paused_since(one)) in self._once for one in found):
                formed_ps, found = self._first_instant(found)
            self._pending.append(self._describe(found, formed_ps))
            self._once.update(self._pending[-1].since_ps.items())
            known |= found
        self._pending.sort(key=lambda deadlock: deadlock.formed_ps)

    def _stands(self, deadlock: Deadlock) -> bool:
        return all(
            self._is_frozen(channel) and self._paused_since(channel) == since_ps
            for channel, since_ps in deadlock.since_ps.items()
        )

    def _first_instant(self, found: set[Channel]) -> tuple[int, set[Channel]]:
        """When some of what is left of a broken deadlock came to wait by itself, and which: what each channel
        was when the deadlock formed, it has been since."""
        instants: set[int] = set()
        for channel in found:
            since_ps, port = self._paused_since(channel), self._ports[channel[0]]
            account = self._account((port.peer, channel[1]))
            instants |= {since_ps, since_ps + self._wire_ps(port), account.released_ps}
            instants |= {waiting.since_ps for waiting in self._waiting_for(channel)}
        for time_ps in sorted(instants):
            if waiting := self._waiting_for_ever(found, time_ps):
                return time_ps, waiting
        raise AssertionError("what waits for ever has never begun to")

    def _waiting_for_ever(self, channels: set[Channel], time_ps: int) -> set[Channel]:
        """The greatest set of some frozen channels that wait for each other, as of an instant."""
        channels = {one for one in channels if self._paused_since(one) <= time_ps}
        while channels:
            kept = self._bytes_kept(channels, time_ps)
            may_resume = {one for one in channels if not self._never_resumes(one, kept, time_ps)}
            if not may_resume:
                break
            channels -= may_resume
        return channels

    def _never_resumes(self, channel: Channel, kept: Mapping[Place, int], time_ps: int) -> bool:
        """Whether the account at the far end of a channel, which keeps so much, will never resume it."""
        port = self._ports[channel[0]]
        place = port.peer, channel[1]
        account, bytes_kept = self._account(place), kept[place]
        others = sum(
            _surely_shared(self._account(other), size)
            for other, size in kept.items()
            if self._ports[other[0]].node == self._ports[place[0]].node and other != place
        )
        share = max(0, bytes_kept - account.profile.reserved_bytes)
        pool = self._switches[self._ports[place[0]].node].pool
        highest = account.profile.limit_bytes
        if account.profile.alpha_q16:
            highest = (pool.size_bytes - others - share) * account.profile.alpha_q16 >> 16
        if share > 0 and share + account.profile.xon_offset_bytes > highest:
            return True
        holds_nothing_else = bytes_kept > 0 and bytes_kept == account.bytes + account.headroom_bytes
        settled_ps = max(self._paused_since(channel) + self._wire_ps(port), account.released_ps)
        return holds_nothing_else and time_ps >= settled_ps

    def _bytes_kept(self, channels: set[Channel], time_ps: int) -> Mapping[Place, int]:
        """Bytes that waited for the channels at an instant, by where they came in."""
        kept: defaultdict[Place, int] = defaultdict(int)
        for number, c in channels:
            switch = self._switches[self._ports[number].node]
            for waiting in self._waiting_for((number, c)):
                if waiting.since_ps <= time_ps:
                    kept[switch.ports[waiting.ingress].number, c] += waiting.frame.size_bytes
        return kept

    def _waiting_for(self, channel: Channel) -> Iterable[Waiting]:
        """The frames in the queue of a channel."""
        port = self._ports[channel[0]]
        return self._switches[port.node].queues[port.local][channel[1]].waiting()

    def _describe(self, found: set[Channel], formed_ps: int) -> Deadlock:
        channels: list[tuple[int, ...]] = []
        frames: list[tuple[int, ...]] = []
        for number, c in found:
            port = self._ports[number]
            switch = self._switches[port.node]
            waiting = [one for one in self._waiting_for((number, c)) if one.since_ps <= formed_ps]
            size_bytes = sum(one.frame.size_bytes for one in waiting)
            cause_flow = self._account((port.peer, c)).cause_flow
            channels.append(
                (self._paused_since((number, c)), size_bytes, number, len(waiting), cause_flow, c)
            )
            for since_ps, frame, ingress in ((w.since_ps, w.frame, switch.ports[w.ingress]) for w in waiting):
                place = number, ingress.number, frame.flow, frame.sequence, frame.destination
                frames.append((since_ps, *place, frame.size_bytes, c, frame.kind, frame.ttl))
        return Deadlock(formed_ps, {one: self._paused_since(one) for one in found}, channels, frames)

    def _is_trunk(self, port: Port) -> bool:
        joins_switches = port.node >= self._first_switch and self._ports[port.peer].node >= self._first_switch
        return joins_switches and self._holds(port)

    def _is_frozen(self, channel: Channel) -> bool:
        port = self._ports[channel[0]]
        pause, account = port.pauses[channel[1]], self._account((port.peer, channel[1]))
        return pause.is_paused and account.paused and account.pauses_sent == pause.taken

    def _paused_since(self, channel: Channel) -> int:
        since_ps = self._ports[channel[0]].pauses[channel[1]].since_ps
        return -1 if since_ps is None else since_ps

    def _account(self, place: Place) -> IngressAccount:
        port = self._ports[place[0]]
        return self._switches[port.node].accounts[port.local][place[1]]

    def _wire_ps(self, port: Port) -> int:
        """So long after a PAUSE takes effect every frame on the link has surely arrived."""
        return port.serialization_ps(self._largest_frame_bytes + port.gap_bytes) + int(port.delay_ps)


def _surely_shared(account: IngressAccount, bytes_kept: int) -> int:
    """What so many bytes of an account occupy of the pool at least: its headroom may hold some of them."""
    beside = account.profile.headroom_bytes + account.profile.reserved_bytes
    return max(0, bytes_kept - beside)
