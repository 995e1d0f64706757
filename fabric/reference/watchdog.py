"""The PFC watchdog of switches: finds queues that stay paused, and empties them or lets them go.

All switches poll at multiples of one period, before anything else of that instant. A queue is *stalled* at a
poll if it holds frames and its peer has paused it since the poll before, or longer. After so many stalled
polls in a row it is mitigated: its frames are dropped, and all that come for it; or it ignores PAUSE; or
nothing but an alert is given. What comes in at the port of a queue that is dropped may be dropped as well, as
some switches do. It is restored after so many polls in a row between which the peer has not
paused it (SONiC), or after a time (Junos). A poll begins no frame: ports that may send because of it
are tried at that instant, in the order of all starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.lowered import Lowered

from .clock import Clock
from .port import Port
from .recorder import Recorder

if TYPE_CHECKING:
    from .switch import Switch

__all__ = ["Watchdog"]

ALERT, DROP = 0, 1
DETECTED, RESTORED = 0, 1


@dataclass(slots=True)
class Watched:
    """A class queue.

    Attributes
    ----------
    polls : int
        In a row that found it stalled; while mitigated, quiet, or since then.
    is_mitigated : bool
    is_paused, changed_ps : bool, int
        While mitigated, what the peer wants, and since when.
    """

    polls: int = 0
    is_mitigated: bool = False
    is_paused: bool = False
    changed_ps: int = 0


class Watchdog:
    """The watchdogs of all switches.

    Parameters
    ----------
    lowered : Lowered
    clock, recorder
        Where ports are tried; where it is written down what was done.
    """

    def __init__(self, lowered: Lowered, *, clock: Clock, recorder: Recorder) -> None:
        self._poll_ps = lowered.watchdog_poll_ps
        self._detect_polls = lowered.watchdog_detect_polls
        self._restore_polls = lowered.watchdog_restore_polls
        self._restores_by_time = bool(lowered.watchdog_restores_by_time)
        self._action = lowered.watchdog_action
        self._drops_ingress = bool(lowered.watchdog_drops_ingress)
        self._clock = clock
        self._recorder = recorder
        self._switches: list[Switch] = []
        self._watched: dict[tuple[int, int], Watched] = {}
        self._mitigated: set[tuple[int, int]] = set()
        self.next_ps: int | None = self._poll_ps or None

    def watch(self, switches: Iterable[Switch]) -> None:
        """Watch the lossless queues of these."""
        self._switches = list(switches)
        if self._poll_ps:
            self._watched = {(port.number, c): Watched() for _, port, c in self._queues()}

    def may_act(self) -> bool:
        """Whether a poll may still do something if nothing else ever happens."""
        if not self._poll_ps:
            return False
        for switch, port, c in self._queues():
            watched = self._watched[port.number, c]
            if watched.is_mitigated:
                if self._restores_by_time or not watched.is_paused:
                    return True
            elif port.pauses[c].is_paused and switch.queues[port.local][c].bytes:
                return True
        return False

    def poll(self) -> None:
        """All switches poll."""
        assert self.next_ps is not None
        now_ps = self.next_ps
        self.next_ps += self._poll_ps
        for switch, port, c in self._queues():
            watched = self._watched[port.number, c]
            if not watched.is_mitigated:
                counts = self._is_stalled(switch, port, c, now_ps)
            else:
                is_quiet = not watched.is_paused and watched.changed_ps <= now_ps - self._poll_ps
                counts = self._restores_by_time or is_quiet
            watched.polls = watched.polls + 1 if counts else 0
            if not watched.is_mitigated and watched.polls >= self._detect_polls:
                self._mitigate(switch, port, c, now_ps)
            elif watched.is_mitigated and watched.polls >= self._restore_polls:
                self._restore(switch, port, c, now_ps)

    def closes(self, port: Port, traffic_class: int) -> bool:
        """Whether what comes for a queue is dropped."""
        return self._action == DROP and (port.number, traffic_class) in self._mitigated

    def closes_ingress(self, port: Port, traffic_class: int) -> bool:
        """Whether what comes in at a port is dropped, wherever it goes."""
        return self._drops_ingress and self.closes(port, traffic_class)

    def ignores(self, port: Port, traffic_class: int, *, pause: bool, now_ps: int) -> bool:
        """Whether a queue takes no notice of a PAUSE or RESUME that takes effect now."""
        if (port.number, traffic_class) not in self._mitigated:
            return False
        watched = self._watched[port.number, traffic_class]
        if watched.is_paused != pause:
            watched.is_paused = pause
            watched.changed_ps = now_ps
        return self._action != ALERT

    def _queues(self) -> Iterator[tuple[Switch, Port, int]]:
        """The lossless class queues of all switches, in order."""
        for switch in self._switches:
            for port in switch.ports:
                for c, account in enumerate(switch.accounts[port.local]):
                    if account.profile.lossless:
                        yield switch, port, c

    def _is_stalled(self, switch: Switch, port: Port, c: int, now_ps: int) -> bool:
        since_ps = port.pauses[c].since_ps
        is_held = since_ps is not None and since_ps <= now_ps - self._poll_ps
        return is_held and switch.queues[port.local][c].bytes > 0

    def _mitigate(self, switch: Switch, port: Port, c: int, now_ps: int) -> None:
        watched, size_bytes, frames = self._watched[port.number, c], switch.queues[port.local][c].bytes, 0
        since_ps = port.pauses[c].since_ps
        assert since_ps is not None
        watched.is_mitigated, watched.polls = True, 0
        watched.is_paused, watched.changed_ps = True, since_ps
        if self._action != ALERT:
            switch.end_pause(port, c, now_ps)
        self._mitigated.add((port.number, c))
        if self._action == DROP:
            frames = switch.drop_queue(port, c, now_ps)
        self._recorder.on_watchdog(
            port=port.number,
            traffic_class=c,
            kind=DETECTED,
            frames=frames,
            size_bytes=size_bytes,
            now_ps=now_ps,
        )
        self._clock.schedule_start(now_ps, switch.number, port.number, ends_frame=False)

    def _restore(self, switch: Switch, port: Port, c: int, now_ps: int) -> None:
        watched = self._watched[port.number, c]
        watched.is_mitigated, watched.polls = False, 0
        self._mitigated.discard((port.number, c))
        if self._action != ALERT and watched.is_paused:
            switch.begin_pause(port, c, now_ps)
        size_bytes = switch.queues[port.local][c].bytes
        self._recorder.on_watchdog(
            port=port.number, traffic_class=c, kind=RESTORED, frames=0, size_bytes=size_bytes, now_ps=now_ps
        )
