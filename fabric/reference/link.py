"""Links: a frame begins, occupies its link, and arrives, or is lost on the way.

A frame that begins at s occupies the link for the serialisation time of its wire bytes (size and gap),
rounded up for each frame. It arrives when its last bit has, plus the delay of the link; with cut-through
when so many bytes have as the receiver needs to act. Loss is decided on arrival, by a draw keyed by the
sending port, the instant and the frame, from a loss probability per frame and a bit error rate; PFC
frames are never lost. While a link is down, frames occupy the port for as long as ever and are lost there;
what was on it when it went down is lost too. The probability of a bit error in a frame, 1 - (1 - ber)^bits,
is evaluated as the first four terms of 1 - exp(-x).
"""

from __future__ import annotations

from fabric.lowered import DropReason

from .clock import Clock, Phases
from .frame import PFC, Frame
from .pfc import Wish
from .port import BITS_PER_BYTE, Port
from .recorder import Recorder
from .rng import draw, mix64, unit
from .tally import Tally

__all__ = ["Links", "loss_probability"]


def loss_probability(wire_bytes: int, *, loss: float, ber_rate: float) -> float:
    """Probability that a frame of so many wire bytes is lost.

    Examples
    --------
    >>> round(loss_probability(4160, loss=0.0, ber_rate=1e-12), 12)
    3.328e-08
    """
    x = float(BITS_PER_BYTE * wire_bytes) * ber_rate
    q = x - x * x / 2.0 + x * x * x / 6.0 - x * x * x * x / 24.0
    return loss + (1.0 - loss) * q


class Links:
    """All links of a run.

    Parameters
    ----------
    ports : list of Port
        By global number; a link is named by the port that sends on it.
    clock, tally, recorder
        Where arrivals are scheduled, counted and written down.
    loss_key : int
        Key of the draws for loss.
    phases : Phases
        Of the instants of a nanosecond.
    """

    def __init__(
        self,
        ports: list[Port],
        *,
        clock: Clock,
        tally: Tally,
        recorder: Recorder,
        loss_key: int,
        phases: Phases,
    ) -> None:
        self._phases = phases
        self._ports = ports
        self._clock = clock
        self._tally = tally
        self._recorder = recorder
        self._loss_key = loss_key

    def begin(self, port: Port, frame: Frame, *, now_ps: int) -> None:
        """Begin `frame` on the link of an idle `port`."""
        wire_bytes = frame.size_bytes + port.gap_bytes
        needed_bytes = min(wire_bytes, port.cut_bytes) if port.cut_bytes else wire_bytes
        began_ps = self._phases.tick(now_ps)
        port.busy_ps = max(now_ps, began_ps + port.serialization_ps(wire_bytes) + self._phases.free_ps)
        port.is_sending = port.busy_ps > now_ps  # in ticks of ns-3 a short frame takes no time
        self._clock.schedule_start(port.busy_ps, port.node, port.number, ends_frame=True)
        if port.is_down:
            self._drop(frame, port, now_ps)
            return
        port.tx_bytes += wire_bytes
        self._tally.started += 1
        self._recorder.on_start(frame, port=port.number, wire_bytes=wire_bytes, now_ps=now_ps)
        port.on_link.append(frame)
        peer = self._ports[port.peer]
        arrival_ps = began_ps + port.serialization_ps(needed_bytes) + port.delay_ps
        self._clock.schedule_arrival(arrival_ps, peer.node, peer.local, frame, began_ps=began_ps)

    def arrives(self, frame: Frame, *, sender: Port) -> bool:
        """Take a frame that has come off its link; False if that has gone down since the frame began."""
        if not frame.is_lost:
            sender.on_link.popleft()
        return not frame.is_lost

    def lose_all(self, port: Port, *, now_ps: int) -> None:
        """Everything that is on the link of a port is lost."""
        while port.on_link:
            frame = port.on_link.popleft()
            frame.is_lost = True
            self._tally.lost_in_flight += 1
            self._drop(frame, port, now_ps)

    def _drop(self, frame: Frame, port: Port, now_ps: int) -> None:
        self._tally.on_drop(frame, port=port.number, reason=DropReason.LINK_DOWN, now_ps=now_ps)
        self._recorder.on_drop(frame, port=port.number, reason=DropReason.LINK_DOWN, now_ps=now_ps)
        if frame.kind == PFC and frame.sequence == Wish.PAUSE:
            self._ports[port.peer].pauses[frame.traffic_class].taken += 1

    def loses(self, frame: Frame, *, sender: Port, now_ps: int) -> bool:
        """Whether a frame that arrives now, sent by the port `sender`, was lost on its way."""
        if frame.kind == PFC or (sender.loss == 0.0 and sender.ber_rate == 0.0):
            return False
        probability = loss_probability(
            frame.size_bytes + sender.gap_bytes, loss=sender.loss, ber_rate=sender.ber_rate
        )
        chance = unit(draw(self._loss_key, sender.number, now_ps ^ mix64(frame.identity)))
        return chance < probability
