# DCTCP: Alizadeh et al., "Data Center TCP", SIGCOMM 2010; RFC 8257; as a rate, as in the HPCC simulator.
#
# Once a window alpha moves towards the share of acknowledged frames whose ACK carried a mark. The first
# mark cuts the rate by alpha/2, at most once a window; a window without a cut in it ends with a step up.
# With a window that follows the rate this is DCTCP's window, sent at window / base round trip.

from fabric.engine.flow cimport CC_ACTIVE, CC_COUNTING, CC_REDUCED, SENDER_SELECTIVE, Sender
from fabric.engine.numbers cimport least, most
from fabric.engine.pace cimport kept_rate, note_rate
from fabric.engine.profile cimport TransportProfile
from fabric.engine.types cimport i64, u8, u32
from fabric.engine.world cimport World


cdef inline void dctcp_new_window(Sender* s, const TransportProfile* p, u32 sequence, u32 following) noexcept nogil:
    """Everything that was in flight when this window began has been acknowledged."""
    cdef double share
    if s.cc_flags & CC_COUNTING:
        share = least(<double>s.cc.dctcp.marked / <double>s.cc.dctcp.batch, 1.0)
        s.cc.dctcp.alpha = (1.0 - p.g) * s.cc.dctcp.alpha + p.g * share
        s.cc.dctcp.marked = 0
        s.cc.dctcp.batch = following - sequence + 1
    else:
        s.cc_flags |= CC_COUNTING
        s.cc.dctcp.batch = following + 1
    s.cc.dctcp.last = following


cdef inline void dctcp_ack(
    World* w, u32 flow, Sender* s, const TransportProfile* p, double line_bps, u32 sequence, u32 acknowledged,
    u8 mark, i64 time_ps
) noexcept nogil:
    """An ACK or a NACK."""
    cdef double before = s.cc.rate
    cdef bint window_begins = sequence > s.cc.dctcp.last
    cdef u32 following = s.high if s.flags & SENDER_SELECTIVE else s.next
    s.cc_flags |= CC_ACTIVE
    if mark:
        s.cc.dctcp.marked += acknowledged
    if window_begins:
        dctcp_new_window(s, p, sequence, following)
    if s.cc_flags & CC_REDUCED and sequence > s.cc.dctcp.high:
        s.cc_flags &= ~CC_REDUCED
    if mark and not s.cc_flags & CC_REDUCED:
        s.cc.rate = most(p.min_rate_bps, kept_rate(p, s.cc.rate * (1.0 - s.cc.dctcp.alpha / 2.0)))
        s.cc_flags |= CC_REDUCED
        s.cc.dctcp.high = following
    if window_begins and not s.cc_flags & CC_REDUCED:
        s.cc.rate = least(line_bps, s.cc.rate + p.ai_bps)
    note_rate(w, flow, s, before, time_ps)
