# Congestion control as the NIC sees it: a rate at each send, and news of marks.
#
# One file an algorithm; this one only says which is which. Until its first mark a flow runs at line
# rate and its congestion control is not asked.

from fabric.engine.dcqcn_paper cimport paper_catch_up, paper_mark, paper_sent
from fabric.engine.dcqcn_vendor cimport vendor_catch_up, vendor_mark
from fabric.engine.flow cimport CC_ACTIVE, Sender
from fabric.engine.profile cimport (
    CONGESTION_DCQCN_PAPER,
    CONGESTION_DCQCN_VENDOR,
    TransportProfile,
)
from fabric.engine.types cimport i64, later, u32
from fabric.engine.world cimport World


cdef inline double line_rate(const World* w, const Sender* s) noexcept nogil:
    return <double>w.port_rate_bps[s.port]


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
    else:
        vendor_catch_up(w, flow, s, p, line_bps, start_ps)
        rate = s.cc.rate
    if rate >= line_bps:
        return serialisation_ps
    return later(serialisation_ps, <i64>(<double>wire_bytes * 8e12 / rate))


cdef inline void on_mark(World* w, u32 flow, Sender* s, i64 time_ps) noexcept nogil:
    """The sender hears that a frame of the flow was marked."""
    cdef const TransportProfile* p = &w.transports[s.transport]
    if p.congestion == CONGESTION_DCQCN_PAPER:
        paper_mark(w, flow, s, p, line_rate(w, s), time_ps)
    elif p.congestion == CONGESTION_DCQCN_VENDOR:
        vendor_mark(w, flow, s, p, line_rate(w, s), time_ps)
