"""Pauses that run out, and switches that say PAUSE again before they do.

A pause ends by itself so long after the last PAUSE took effect, which is a timer of the paused node.
Switches repeat every PAUSE that stands at multiples of one period. Where repetitions are sure to come in
time a pause lasts until the ingress lets go; so when nothing else is left, nothing is left.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fabric.lowered import Lowered

from .clock import Clock, TimerKind
from .pfc import Wish, encode_effect
from .port import Port
from .tally import Tally

if TYPE_CHECKING:
    from .switch import Switch

__all__ = ["Quanta"]


class Quanta:
    """How long the pauses of all ports hold.

    Parameters
    ----------
    lowered : Lowered
    clock, tally
        Where timers are set; where pauses that ran out are counted.
    """

    def __init__(self, lowered: Lowered, *, clock: Clock, tally: Tally) -> None:
        self._port_ps: list[int] = lowered.port_pause_ps.tolist()
        self._port_holds: list[int] = lowered.port_pause_holds.tolist()
        self._period_ps = lowered.pfc_refresh_ps
        self._clock = clock
        self._tally = tally
        self._switches: list[Switch] = []
        self._of_port: dict[int, Switch] = {}
        self.next_ps: int | None = self._period_ps or None

    def watch(self, switches: Iterable[Switch]) -> None:
        """These pause their peers."""
        self._switches = list(switches)
        self._of_port = {port.number: switch for switch in self._switches for port in switch.ports}

    def holds(self, port: Port) -> bool:
        """Whether a PAUSE lasts until the RESUME."""
        return not self._port_ps or bool(self._port_holds[port.number])

    def on_wish(self, port: Port, traffic_class: int, wish: int, now_ps: int) -> None:
        """A PFC frame takes effect at a port."""
        if not self._port_ps:
            return
        pause = port.pauses[traffic_class]
        pause.until_ps = None
        if wish in (Wish.PAUSE, Wish.REPEAT):
            pause.until_ps = now_ps + self._port_ps[port.number]
            ident = encode_effect(port.number, traffic_class, Wish.RESUME)
            self._clock.schedule_timer(pause.until_ps, port.node, TimerKind.QUANTA, ident)

    def runs_out(self, port: Port, traffic_class: int, now_ps: int) -> bool:
        """A timer has come: whether the pause ends now."""
        ends = port.pauses[traffic_class].until_ps == now_ps
        self._tally.pauses_run_out += ends
        return ends

    def will_run_out(self, port: Port, traffic_class: int, time_ps: int) -> bool:
        """Whether a timer will let something be sent, if nothing else happens before."""
        if port.pauses[traffic_class].until_ps != time_ps or port.queues[traffic_class].is_empty():
            return False
        switch = self._of_port[port.peer]
        stands = switch.accounts[port.peer - switch.ports[0].number][traffic_class].paused
        return not (self.holds(port) and stands)

    def repeat(self) -> None:
        """Every PAUSE that stands is said again."""
        assert self.next_ps is not None
        now_ps = self.next_ps
        self.next_ps += self._period_ps
        for switch in self._switches:
            switch.repeat_pauses(now_ps)
