"""The receiving half of a flow: accept in order, acknowledge, report gaps and congestion.

Only the frame that is expected next is accepted; a gap is reported by a NACK (once for each expected
frame, and again when the sender evidently went back and lost the frame once more, or after an
interval), and anything older by an ACK, since the sender cannot have heard. A congestion mark is
reported either by a CNP, limited in frequency for each flow (Zhu et al., SIGCOMM 2015, section 3.1), or
as an echo in the next ACK or NACK. The ACK of a frame that came in order returns its telemetry.
"""

from __future__ import annotations

from .frame import ACK, CNP, NACK, Frame
from .tables import Feedback, Flow

__all__ = ["Receiver"]


class Receiver:
    """One flow at its destination."""

    __slots__ = (
        "_echo",
        "_last_cnp_ps",
        "_last_nack_ps",
        "_last_out_of_order",
        "_nack_sent_for",
        "cnps",
        "delivered_ps",
        "expected",
        "flow",
        "marked",
        "nacks",
    )

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.expected = 0
        self.delivered_ps = -1
        self.marked = 0
        self.cnps = 0
        self.nacks = 0
        self._echo = 0
        self._last_cnp_ps: int | None = None
        self._last_nack_ps = 0
        self._nack_sent_for = -1
        self._last_out_of_order = -1

    @property
    def is_delivered(self) -> bool:
        """Every frame has come."""
        return self.delivered_ps >= 0

    def on_data(self, frame: Frame, now_ps: int) -> list[Frame]:
        """Take a DATA frame; returns the control frames that answer it, first to be queued first."""
        self._echo |= frame.mark
        replies = self._report_mark(now_ps) if frame.mark else []
        if frame.sequence == self.expected:
            self._accept(now_ps)
            if self.is_delivered or self.expected % self.flow.transport.ack_every == 0:
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

    def _accept(self, now_ps: int) -> None:
        self.expected += 1
        if self.expected == self.flow.frames:
            self.delivered_ps = now_ps

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

    def _acknowledge(self, kind: int) -> Frame:
        """An ACK or a NACK; with echo it carries the marks since the last one."""
        echo = self._echo if self.flow.transport.feedback == Feedback.ECHO else 0
        self._echo = 0
        return self._control_frame(kind, self.expected, echo)

    def _control_frame(self, kind: int, sequence: int, mark: int) -> Frame:
        flow, transport = self.flow, self.flow.transport
        return Frame(
            kind,
            flow.number,
            sequence,
            transport.control_class,
            transport.control_bytes,
            flow.source,
            flow.path_hash,
            mark,
        )
