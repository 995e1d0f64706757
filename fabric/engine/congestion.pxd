# Congestion control as a sender sees it: what it tells, and the rate and window that it gets.
#
# One file an algorithm; this one says which is which. An algorithm hears of the start of its flow, of
# each send, of ACKs and NACKs with what they carry (the frames they acknowledge, a mark, the memory of
# the frame that caused the ACK) and of CNPs; it keeps `cc.rate`. Timers act lazily, when it is next
# asked or told. Until it has a rate of its own (`CC_ACTIVE`) a flow runs at line rate and is not asked.
# The window that goes with the rate, and when it is evaluated: `pace`.

from fabric.engine.dcqcn_paper cimport paper_catch_up, paper_mark, paper_sent
from fabric.engine.dcqcn_vendor cimport vendor_catch_up, vendor_mark
from fabric.engine.dctcp cimport dctcp_ack
from fabric.engine.flow cimport CC_ACTIVE, SENDER_LISTENS, SENDER_LOGS, Sender
from fabric.engine.frame_log cimport FrameMemory
from fabric.engine.hpcc cimport hpcc_ack, hpcc_sent, hpcc_start
from fabric.engine.pace cimport gap_at, line_rate, window_at
from fabric.engine.packet cimport Packet, marked
from fabric.engine.profile cimport (
    CONGESTION_DCQCN_PAPER,
    CONGESTION_DCQCN_VENDOR,
    CONGESTION_DCTCP,
    CONGESTION_HPCC,
    TransportProfile,
)
from fabric.engine.telemetry cimport hops_of, recall
from fabric.engine.timely cimport timely_ack
from fabric.engine.types cimport i64, u32, unlikely
from fabric.engine.world cimport World


cdef inline void congestion_start(World* w, Sender* s) noexcept nogil:
    """A flow starts, at line rate."""
    cdef const TransportProfile* p = &w.transports[s.transport]
    if p.variable_window or p.congestion > CONGESTION_DCQCN_VENDOR:
        s.flags |= SENDER_LISTENS
        s.cc.rate = line_rate(w, s)
        s.window_frames = window_at(p, s.cc.rate, s.cc.rate)
    if p.congestion == CONGESTION_DCTCP:
        s.cc.dctcp.alpha = 1.0
    elif p.congestion == CONGESTION_HPCC:
        hpcc_start(s)
    if p.telemetry:
        s.flags |= SENDER_LOGS


cdef inline void follow_rate(World* w, Sender* s, const TransportProfile* p, double line_bps) noexcept nogil:
    """Lets a variable window take the size that goes with the rate."""
    if p.variable_window:
        s.window_frames = window_at(p, s.cc.rate, line_bps)


cdef inline void congestion_catch_up(World* w, u32 flow, Sender* s, i64 time_ps) noexcept nogil:
    """Lets timers that expired before an instant act; then the window follows. A time-out does no more."""
    cdef const TransportProfile* p = &w.transports[s.transport]
    cdef double line_bps = line_rate(w, s)
    if s.cc_flags & CC_ACTIVE:
        if p.congestion == CONGESTION_DCQCN_PAPER:
            paper_catch_up(w, flow, s, p, line_bps, time_ps)
        elif p.congestion == CONGESTION_DCQCN_VENDOR:
            vendor_catch_up(w, flow, s, p, line_bps, time_ps)
    follow_rate(w, s, p, line_bps)


cdef inline i64 pacing_gap(
    World* w, u32 flow, Sender* s, u32 wire_bytes, i64 serialisation_ps, i64 start_ps
) noexcept nogil:
    """The time from the start of this frame to the earliest start of the flow's next one."""
    cdef const TransportProfile* p
    cdef double line_bps, rate
    if not s.cc_flags & CC_ACTIVE:
        return serialisation_ps
    p = &w.transports[s.transport]
    line_bps = line_rate(w, s)
    if p.congestion == CONGESTION_DCQCN_PAPER:
        paper_catch_up(w, flow, s, p, line_bps, start_ps)
        rate = s.cc.rate
        paper_sent(w, flow, s, p, line_bps, wire_bytes, start_ps)
        follow_rate(w, s, p, line_bps)
    elif p.congestion == CONGESTION_DCQCN_VENDOR:
        vendor_catch_up(w, flow, s, p, line_bps, start_ps)
        rate = s.cc.rate
        follow_rate(w, s, p, line_bps)
    else:
        rate = s.cc.rate
        if p.congestion == CONGESTION_HPCC:
            hpcc_sent(s, wire_bytes, serialisation_ps, start_ps)
    return gap_at(w, p, rate, line_bps, wire_bytes, serialisation_ps, start_ps)


cdef inline void hear_mark(World* w, u32 flow, Sender* s, const TransportProfile* p, i64 time_ps) noexcept nogil:
    """DCQCN hears that a frame of the flow was marked; others do not learn of it in this way."""
    if p.congestion == CONGESTION_DCQCN_PAPER:
        paper_mark(w, flow, s, p, line_rate(w, s), time_ps)
    elif p.congestion == CONGESTION_DCQCN_VENDOR:
        vendor_mark(w, flow, s, p, line_rate(w, s), time_ps)


cdef inline void hear_cnp(World* w, u32 flow, Sender* s, i64 time_ps) noexcept nogil:
    cdef const TransportProfile* p = &w.transports[s.transport]
    hear_mark(w, flow, s, p, time_ps)
    follow_rate(w, s, p, line_rate(w, s))


cdef inline void hear_acknowledgement(
    World* w, u32 flow, Sender* s, const Packet* frame, u32 acknowledged, i64 time_ps
) noexcept nogil:
    """An ACK or NACK that acknowledges so many frames for the first time; `s` has taken it already."""
    cdef const TransportProfile* p = &w.transports[s.transport]
    cdef double line_bps = line_rate(w, s)
    cdef FrameMemory* memory
    if p.congestion <= CONGESTION_DCQCN_VENDOR:
        if marked(frame):
            hear_mark(w, flow, s, p, time_ps)
        if unlikely(p.variable_window != 0):
            congestion_catch_up(w, flow, s, time_ps)
        return
    if p.congestion == CONGESTION_DCTCP:
        dctcp_ack(w, flow, s, p, line_bps, frame.sequence, acknowledged, marked(frame), time_ps)
    else:
        memory = recall(w, flow, frame, acknowledged)
        if memory != NULL:
            if p.congestion == CONGESTION_HPCC:
                hpcc_ack(w, flow, s, p, line_bps, frame.sequence, memory, hops_of(frame, memory), time_ps)
            else:
                timely_ack(w, flow, s, p, line_bps, frame.sequence, memory, time_ps)
    follow_rate(w, s, p, line_bps)
