"""What hosts and switches share: trying a port, and obeying PFC.

To *try* a port is to begin a frame on it if that is possible now: the port is idle, and a PFC frame
waits, or a class that has something to send and is not paused. Whatever may have made a start possible
(an arrival, a RESUME, the end of the frame before) ends in a try, within its own handling, so a port
that could send is never found idle. A PFC frame takes effect after the node's response time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from .clock import TimerKind
from .environment import Environment
from .frame import PFC, Frame
from .pfc import Wish, encode_effect
from .port import Port

__all__ = ["Node"]


class Node(ABC):
    """A host or a switch.

    Parameters
    ----------
    number : int
        Its number.
    ports : list of Port
        Its ports, by local number.
    pfc_response_ps : int
        Time from the arrival of a PFC frame to its effect.
    """

    def __init__(
        self, number: int, ports: list[Port], *, pfc_response_ps: int, environment: Environment
    ) -> None:
        self.number = number
        self.ports = ports
        self.environment = environment
        self._pfc_response_ps = pfc_response_ps

    @abstractmethod
    def on_frame(self, frame: Frame, *, port: Port, now_ps: int) -> None:
        """A frame other than PFC has arrived at `port`."""

    @abstractmethod
    def _begin_class(self, port: Port, traffic_class: int, now_ps: int) -> None:
        """Take the next frame of a class out of its queue and begin it on `port`, which is idle."""

    @abstractmethod
    def _on_idle(self, port: Port, now_ps: int) -> None:
        """`port`, which is idle, has nothing to send now."""

    def on_arrival(self, frame: Frame, *, port: Port, now_ps: int) -> None:
        """A frame has arrived at `port`, and was not lost."""
        if frame.kind != PFC:
            self.on_frame(frame, port=port, now_ps=now_ps)
            return
        self.environment.tally.consumed += 1
        if self._pfc_response_ps == 0:
            self.apply_pfc(port, frame.traffic_class, wish=frame.sequence, now_ps=now_ps)
            return
        effect = encode_effect(port.number, frame.traffic_class, frame.sequence)
        effect_ps = now_ps + self._pfc_response_ps
        self.environment.clock.schedule_timer(effect_ps, self.number, TimerKind.PFC_EFFECT, effect)

    def apply_pfc(self, port: Port, traffic_class: int, *, wish: int, now_ps: int) -> None:
        """Let a PAUSE or a RESUME of the peer take effect."""
        self.heed(port, traffic_class, wish=wish, now_ps=now_ps)
        if wish == Wish.RESUME:
            self.try_port(port, now_ps)

    def heed(self, port: Port, traffic_class: int, *, wish: int, now_ps: int) -> None:
        """Take notice of what the peer of a port wishes; the port is not tried."""
        if wish == Wish.PAUSE:
            port.pauses[traffic_class].taken += 1
        self.environment.quanta.on_wish(port, traffic_class, wish, now_ps)
        pause = wish != Wish.RESUME
        if self.environment.watchdog.ignores(port, traffic_class, pause=pause, now_ps=now_ps):
            return
        if pause:
            self.begin_pause(port, traffic_class, now_ps)
        else:
            self.end_pause(port, traffic_class, now_ps)

    def on_quanta(self, port: Port, traffic_class: int, now_ps: int) -> None:
        """The time has come at which a pause was to run out."""
        if self.environment.quanta.runs_out(port, traffic_class, now_ps):
            self.apply_pfc(port, traffic_class, wish=Wish.RESUME, now_ps=now_ps)

    def begin_pause(self, port: Port, traffic_class: int, now_ps: int) -> None:
        """A class of a port may not send from now on."""
        state = port.pauses[traffic_class]
        if not state.is_paused:
            self.environment.deadlocks.on_pause(port, traffic_class, pause=True, now_ps=now_ps)
        state.on_pause(now_ps)

    def end_pause(self, port: Port, traffic_class: int, now_ps: int) -> None:
        """A class of a port may send again; the port is not tried."""
        began_ps = port.pauses[traffic_class].on_resume(now_ps)
        if began_ps is not None:
            self.environment.deadlocks.on_pause(port, traffic_class, pause=False, now_ps=now_ps)
            self.environment.recorder.on_pause_end(
                port=port.number, traffic_class=traffic_class, began_ps=began_ps, now_ps=now_ps
            )

    @abstractmethod
    def on_link_up(self, port: Port) -> None:
        """The link of a port has come up again."""

    def on_link_down(self, port: Port, now_ps: int) -> None:
        """The link that ends at a port has gone down: no PAUSE that came over it holds any more."""
        for traffic_class in range(len(port.pauses)):
            self.heed(port, traffic_class, wish=Wish.RESUME, now_ps=now_ps)
        port.deaf_until_ps = now_ps + self._pfc_response_ps

    def has_moved_wake(self, port: Port, number: int) -> bool:
        """Whether the event of this number is a wake-up of `port` that will not act."""
        return False

    def wake(self, port: Port, time_ps: int) -> None:
        """Try `port` when the starts of that instant come."""
        self.environment.clock.schedule_start(time_ps, self.number, port.number, ends_frame=False)

    def on_wake(self, port: Port, number: int, now_ps: int) -> None:
        """An instant has come at which `port` was to be tried; `number` is that of the event."""
        self.try_port(port, now_ps)

    def try_port(self, port: Port, now_ps: int) -> None:
        """Begin a frame on `port` now, if that is possible."""
        if port.is_sending:
            return
        if port.mac_queue:
            self.environment.links.begin(port, port.mac_queue.popleft(), now_ps=now_ps)
            return
        chosen = port.scheduler.choose(port.candidates(now_ps), port.head_bytes)
        if chosen is None:
            self._on_idle(port, now_ps)
            return
        size_bytes = port.head_bytes(chosen)
        self._begin_class(port, chosen, now_ps)
        port.scheduler.charge(chosen, size_bytes, queue_is_empty=port.queues[chosen].is_empty())
