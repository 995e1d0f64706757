"""The sending half of a flow: go-back-N with a window and a pace that congestion control gives.

Frames are numbered from 0. `next_frame` is the one to send next, `acked` the first that the receiver is
not known to have, and what lies between is outstanding. A NACK or a time-out goes back to `acked`. The
pace is a gap between the beginnings of two frames: the time of the frame at the rate that the
congestion control gives, never less than it occupies the link. A window is fixed, or follows the rate; then
it is evaluated after each send, acknowledgement, notification and time-out, and at no other time.

With selective repeat (`selective.py`) nothing is ever gone back over: `next_frame` is then a frame that was
lost, or the first that was never sent. The frames of a flow may be spread over several path hashes.

When and on which port a frame begins is the host's business (`host.py`); this file knows the state of
one flow.
"""

from __future__ import annotations

from .clock import Phases
from .control import Acknowledgement, CongestionControl
from .frame import DATA, NACK, Frame
from .messages import Messages
from .port import Port, serialization_ps
from .rng import MASK32, entropy_hash, entropy_number, mix64
from .selective import SelectiveRepeat
from .tables import Flow, PathMode, TelemetryKind
from .telemetry import Memory

__all__ = ["Sender"]

BITS_TIMES_PS_PER_SECOND = 8e12
"""Picoseconds that a byte takes at 1 bit/s."""


class Sender:
    """One flow at its source.

    Parameters
    ----------
    flow : Flow
        The flow.
    port : Port
        The port that it sends from.
    control : CongestionControl
        Gives its rate.
    messages : Messages
        What it sends.
    phases : Phases
        Of the instants of a nanosecond.
    """

    __slots__ = (
        "_highest",
        "_last_ps",
        "_last_wire_bytes",
        "_path_hash",
        "_phases",
        "_selective",
        "acked",
        "completed_ps",
        "control",
        "flow",
        "has_moved",
        "is_ready",
        "line_bps",
        "messages",
        "next_frame",
        "next_time_ps",
        "port",
        "progress_ps",
        "retransmitted",
        "sent",
        "started_ps",
        "timeouts",
        "timer_is_pending",
        "window_frames",
    )

    def __init__(
        self, flow: Flow, port: Port, control: CongestionControl, messages: Messages, phases: Phases
    ) -> None:
        self._phases = phases
        self.flow = flow
        self.port = port
        self.line_bps = float(port.rate_bps)
        self._path_hash = flow.path_hash
        self.messages = messages
        self.control = control
        self.started_ps = -1
        self.completed_ps = -1
        self.next_frame = 0
        self.acked = 0
        self.next_time_ps = 0
        self.progress_ps = 0
        self.is_ready = False
        self.has_moved = False
        self.timer_is_pending = False
        self.sent = 0
        self.retransmitted = 0
        self.timeouts = 0
        self._highest = 0
        transport = flow.transport
        self._selective = SelectiveRepeat(transport.reorder_frames) if transport.selective else None
        self._last_ps = 0
        self._last_wire_bytes = 0
        self.window_frames = 0
        self._follow_rate(0)

    @property
    def is_complete(self) -> bool:
        """Every frame has been acknowledged, and there will be no more."""
        return self.completed_ps >= 0 and not self.flow.is_connection

    @property
    def is_idle(self) -> bool:
        """Every frame that there is so far has been acknowledged."""
        return self.acked == self.messages.frames

    @property
    def has_outstanding(self) -> bool:
        """Something was sent and not acknowledged."""
        return self.next_frame > self.acked

    @property
    def is_sendable(self) -> bool:
        """Started, with a frame left to send that the window allows."""
        window = self.window_frames
        in_window = window == 0 or self.next_frame - self.acked < window
        return self.started_ps >= 0 and self.next_frame < self.messages.frames and in_window

    @property
    def retransmit_ps(self) -> int:
        """When the retransmission timer runs out, if something is outstanding then."""
        return self.progress_ps + self.flow.transport.rto_ps

    def next_frame_bytes(self) -> int:
        """Size of the frame that would be sent next."""
        return self.messages.frame_bytes(self.next_frame)

    def begin_frame(self, now_ps: int) -> Frame:
        """Make the next frame, which begins now, and set the pace for the one after."""
        flow, sequence = self.flow, self.next_frame
        path_hash = self._next_path_hash()
        size_bytes = self.next_frame_bytes()
        self._last_ps, self._last_wire_bytes = now_ps, size_bytes + self.port.gap_bytes
        rate_bps = self.control.on_send(now_ps, wire_bytes=self._last_wire_bytes)
        self._pause_at(rate_bps)
        if not self.has_outstanding:
            self.progress_ps = now_ps
        self.sent += 1
        is_again = sequence < self._highest
        self.retransmitted += is_again
        self._highest = max(self._highest, sequence + 1)
        if self._selective is None:
            self.next_frame += 1
        else:
            if is_again:
                self._selective.on_sent_again(sequence, newest=self._highest)
            self.next_frame = self._selective.next_frame(acked=self.acked, newest=self._highest)
        memory = None
        if flow.transport.telemetry and not is_again:
            memory = Memory(now_ps, wants_hops=flow.transport.telemetry == TelemetryKind.HOPS)
        self._follow_rate(now_ps)
        return Frame(
            DATA,
            flow.number,
            sequence,
            flow.traffic_class,
            size_bytes,
            flow.destination,
            path_hash,
            memory=memory,
        )

    def on_acknowledgement(self, frame: Frame, now_ps: int) -> None:
        """An ACK or a NACK has come, for a flow that is not complete."""
        acknowledged = max(0, frame.sequence - self.acked)
        if acknowledged:
            self.acked = frame.sequence
            self.progress_ps = now_ps
            self.next_frame = max(self.next_frame, self.acked)
        if self.is_idle and not self.flow.is_connection:
            self.completed_ps = now_ps
            return
        if self._selective is not None:
            self._learn(frame, self._selective, now_ps)
        elif frame.kind == NACK:
            self._rewind(now_ps)
        before_bps = self.control.rate_at(now_ps) if self.control.moves_pauses else 0.0
        self.control.on_acknowledgement(
            Acknowledgement(
                now_ps,
                sequence=frame.sequence,
                acknowledged=acknowledged,
                next_frame=self.next_frame if self._selective is None else self._highest,
                mark=frame.mark,
                memory=frame.memory if acknowledged else None,
            )
        )
        self._follow_rate(now_ps)
        if self.control.moves_pauses and self.control.rate_at(now_ps) != before_bps:
            self._pause_at(self.control.rate_at(now_ps))
            self.has_moved = True

    def on_notification(self, now_ps: int) -> None:
        """A CNP has come."""
        self.control.on_notification(now_ps)
        self._follow_rate(now_ps)

    def on_congestion_timer(self, timer: int, *, number: int, now_ps: int) -> None:
        """A timer of the congestion control has come as an event."""
        self.control.on_timer(timer, number=number, now_ps=now_ps)
        self._follow_rate(now_ps)

    def on_timeout(self, now_ps: int) -> None:
        """Nothing was heard for too long: send again from the first frame not acknowledged."""
        self.timeouts += 1
        if self._selective is not None:
            self._selective.on_timeout(acked=self.acked, newest=self._highest)
        if self.flow.transport.repath:
            self._path_hash = entropy_hash(self._path_hash, 1)
        self._rewind(now_ps)
        self._follow_rate(now_ps)

    def _learn(self, frame: Frame, selective: SelectiveRepeat, now_ps: int) -> None:
        """Selective repeat: a NACK names by its path hash the frame that has arrived."""
        selective.on_acknowledged(self.acked)
        if frame.kind == NACK:
            number = entropy_number(self.flow.path_hash, frame.path_hash)
            if selective.on_arrived(number, acked=self.acked):
                self.progress_ps = now_ps
        self.next_frame = selective.next_frame(acked=self.acked, newest=self._highest)

    def _next_path_hash(self) -> int:
        """The path hash of the next frame; spread over several, a frame that is sent again has another."""
        transport, path_hash = self.flow.transport, self._path_hash
        sent = self.sent & MASK32
        if transport.path_mode == PathMode.IN_TURN:
            return entropy_hash(path_hash, sent % transport.path_count)
        if transport.path_mode == PathMode.RANDOM:
            return entropy_hash(path_hash, (mix64(path_hash << 32 | sent) >> 32) * transport.path_count >> 32)
        return path_hash

    def _rewind(self, now_ps: int) -> None:
        self.next_frame = self.acked
        self.progress_ps = now_ps

    def _follow_rate(self, now_ps: int) -> None:
        """Let the window take the size that goes with the rate."""
        transport = self.flow.transport
        if transport.variable_window:
            rate_bps = self.control.rate_at(now_ps)
            self.window_frames = transport.window_at(rate_bps, line_bps=self.line_bps)
        else:
            self.window_frames = transport.window_frames

    def _pause_at(self, rate_bps: float) -> None:
        """Let the next frame wait for as long as the last one takes at a rate."""
        gap_ps = self._gap_at(self._last_wire_bytes, rate_bps)
        self.next_time_ps = self._phases.tick(self._last_ps) + gap_ps + self._phases.free_ps

    def _gap_at(self, wire_bytes: int, rate_bps: float) -> int:
        line_ps = self.port.serialization_ps(wire_bytes)
        if rate_bps >= self.line_bps:
            return line_ps
        if self.flow.transport.whole_rates:
            return serialization_ps(wire_bytes, rate_bps=int(rate_bps), tick_timing=True)
        return max(line_ps, int(float(wire_bytes) * BITS_TIMES_PS_PER_SECOND / rate_bps))
