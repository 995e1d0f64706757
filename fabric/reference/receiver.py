"""The receiving half of a flow: accept in order, acknowledge, report gaps and congestion.

Only the frame that is expected next is accepted; a gap is reported by a NACK (once for each expected
frame, and again when the sender evidently went back and lost the frame once more, or after an
interval), and anything older by an ACK, since the sender cannot have heard. A congestion mark is
reported either by a CNP, limited in frequency for each flow (Zhu et al., SIGCOMM 2015, section 3.1), or
as an echo in the next ACK or NACK. The ACK of a frame that came in order returns its telemetry.

With selective repeat every frame is kept. One that comes out of order is answered by a NACK that names
it: its path hash is that of the entropy with the frame's number. No answer returns telemetry then. With
delayed ACKs a frame that is taken without an answer has one by a certain instant; such an ACK, which no
frame causes, returns none either.
"""

from __future__ import annotations

from .frame import ACK, CNP, NACK, Frame
from .messages import Messages
from .rng import entropy_hash
from .tables import Feedback, Flow

__all__ = ["Receiver"]


class Receiver:
    """One flow at its destination."""

    __slots__ = (
        "_arrived",
        "_echo",
        "_last_cnp_ps",
        "_last_nack_ps",
        "_last_out_of_order",
        "_nack_sent_for",
        "_path_hash",
        "ack_due_ps",
        "ack_port",
        "cnps",
        "delivered_ps",
        "expected",
        "flow",
        "marked",
        "messages",
        "nacks",
        "timer_is_pending",
    )

    def __init__(self, flow: Flow, messages: Messages) -> None:
        self.flow = flow
        self.messages = messages
        self.expected = 0
        self.delivered_ps = -1
        self.marked = 0
        self.cnps = 0
        self.nacks = 0
        self.ack_due_ps: int | None = None
        self.ack_port = 0
        self.timer_is_pending = False
        self._arrived: set[int] = set()
        self._echo = 0
        self._last_cnp_ps: int | None = None
        self._last_nack_ps = 0
        self._nack_sent_for = -1
        self._last_out_of_order = -1
        self._path_hash = flow.path_hash

    def on_data(self, frame: Frame, now_ps: int) -> list[Frame]:
        """Take a DATA frame; returns the control frames that answer it, first to be queued first."""
        if frame.sequence < self.expected and self.flow.transport.repath:
            self._path_hash = entropy_hash(self._path_hash, 1)
        self._echo |= frame.mark
        replies = self._report_mark(now_ps) if frame.mark else []
        before = self.expected
        answer = self._keep if self.flow.transport.selective else self._take
        acknowledgements = answer(frame, now_ps)
        if acknowledgements:
            self.ack_due_ps = None
        elif self.expected > before and self.flow.transport.ack_delay_ps and self.ack_due_ps is None:
            self.ack_due_ps = now_ps + self.flow.transport.ack_delay_ps
        return replies + acknowledgements

    def delayed_ack(self) -> Frame:
        """The ACK that has become due."""
        self.ack_due_ps = None
        return self._acknowledge(ACK)

    def _keep(self, frame: Frame, now_ps: int) -> list[Frame]:
        """Selective repeat: keep any frame; in order is what continues what is there."""
        if frame.sequence < self.expected:
            return [self._acknowledge(ACK)]
        if frame.sequence > self.expected:
            self._arrived.add(frame.sequence)
            self.nacks += 1
            return [self._acknowledge(NACK, path_hash=entropy_hash(self.flow.path_hash, frame.sequence))]
        first = self.expected
        has_ended = self._accept()
        while self.expected in self._arrived:
            self._arrived.remove(self.expected)
            has_ended |= self._accept()
        fills_gap = self.expected - first > 1
        if has_ended or fills_gap or self.expected % self.flow.transport.ack_every == 0:
            return [self._acknowledge(ACK)]
        return []

    def _take(self, frame: Frame, now_ps: int) -> list[Frame]:
        """Go-back-N: take the expected frame and no other."""
        replies: list[Frame] = []
        if frame.sequence == self.expected:
            has_ended = self._accept()
            if has_ended or self.expected % self.flow.transport.ack_every == 0:
                replies.append(self._acknowledge(ACK))
                replies[-1].memory = frame.memory
        elif frame.sequence < self.expected:
            if self.flow.transport.ack_duplicates:
                replies.append(self._acknowledge(ACK))
        else:
            if self._must_report_gap(frame.sequence, now_ps):
                self.nacks += 1
                self._nack_sent_for = self.expected
                self._last_nack_ps = now_ps
                replies.append(self._acknowledge(NACK))
            self._last_out_of_order = frame.sequence
        return replies

    def _accept(self) -> bool:
        """Take the expected frame; whether it is the last of a message."""
        self.expected += 1
        return self.messages.has_end(self.expected)

    def _must_report_gap(self, sequence: int, now_ps: int) -> bool:
        transport = self.flow.transport
        if not transport.nack_enabled:
            return False
        if self._nack_sent_for != self.expected:
            return True
        if transport.nack_on_rewind and sequence <= self._last_out_of_order:
            return True
        interval_ps = transport.nack_interval_ps
        return interval_ps > 0 and now_ps - self._last_nack_ps >= interval_ps

    def _report_mark(self, now_ps: int) -> list[Frame]:
        """Count a marked frame; a CNP if that is how marks are reported and none went out lately."""
        self.marked += 1
        transport = self.flow.transport
        if transport.feedback != Feedback.CNP:
            return []
        if self._last_cnp_ps is not None and now_ps - self._last_cnp_ps < transport.cnp_interval_ps:
            return []
        self._last_cnp_ps = now_ps
        self.cnps += 1
        return [self._control_frame(CNP, 0, 0)]

    def _acknowledge(self, kind: int, *, path_hash: int | None = None) -> Frame:
        """An ACK or a NACK; with echo it carries the marks since the last one."""
        echo = self._echo if self.flow.transport.feedback == Feedback.ECHO else 0
        self._echo = 0
        return self._control_frame(kind, self.expected, echo, path_hash=path_hash)

    def _control_frame(self, kind: int, sequence: int, mark: int, *, path_hash: int | None = None) -> Frame:
        flow, transport = self.flow, self.flow.transport
        return Frame(
            kind,
            flow.number,
            sequence,
            transport.control_class,
            transport.control_bytes,
            flow.source,
            self._path_hash if path_hash is None else path_hash,
            mark,
        )
