# TIMELY: Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015.
#
# Once a window the round-trip time of a frame moves the rate: below a low threshold up, above a high one
# down, and between them against the averaged gradient of the round-trip time. After some increases in a
# row the steps become larger. A round trip begins when the frame begins to leave, and ends with its ACK.

from fabric.engine.flow cimport CC_ACTIVE, Sender
from fabric.engine.frame_log cimport FrameMemory
from fabric.engine.link cimport PS_PER_TICK
from fabric.engine.numbers cimport least, most
from fabric.engine.pace cimport kept_rate, note_rate
from fabric.engine.profile cimport TransportProfile
from fabric.engine.types cimport i64, u32, unlikely
from fabric.engine.world cimport World


cdef inline void timely_rise(Sender* s, const TransportProfile* p, double line_bps) noexcept nogil:
    s.cc.rate = least(line_bps, s.cc.rate + (p.ai_bps if s.cc.timely.rises < p.max_stage else p.hai_bps))
    s.cc.timely.rises += 1


cdef inline void timely_fall(Sender* s, const TransportProfile* p, double factor) noexcept nogil:
    s.cc.rate = most(p.min_rate_bps, kept_rate(p, s.cc.rate * factor))
    s.cc.timely.rises = 0


cdef inline void timely_update(Sender* s, const TransportProfile* p, double line_bps, i64 rtt_ps) noexcept nogil:
    """The rate from the next sample of the round-trip time."""
    cdef double gradient
    s.cc.timely.difference = (1.0 - p.g) * s.cc.timely.difference + p.g * <double>(rtt_ps - s.cc.timely.rtt_ps)
    gradient = s.cc.timely.difference / <double>p.base_rtt_ps
    if rtt_ps < p.rtt_low_ps:
        timely_rise(s, p, line_bps)
    elif rtt_ps > p.rtt_high_ps:
        timely_fall(s, p, 1.0 - p.beta * (1.0 - <double>p.rtt_high_ps / <double>rtt_ps))
    elif gradient <= 0.0:
        timely_rise(s, p, line_bps)
    else:
        timely_fall(s, p, most(0.0, 1.0 - p.beta * gradient))


cdef inline void timely_ack(
    World* w, u32 flow, Sender* s, const TransportProfile* p, double line_bps, u32 sequence,
    const FrameMemory* memory, i64 time_ps
) noexcept nogil:
    """An ACK of a frame whose start is remembered."""
    cdef double before = s.cc.rate
    cdef i64 rtt_ps = time_ps - memory.sent_ps
    if unlikely(p.whole_rates):
        rtt_ps += memory.sent_ps % PS_PER_TICK
    if sequence <= s.cc.timely.last:
        return
    if s.cc_flags & CC_ACTIVE:
        timely_update(s, p, line_bps, rtt_ps)
        note_rate(w, flow, s, before, time_ps)
    s.cc_flags |= CC_ACTIVE
    if s.next > s.cc.timely.last:
        s.cc.timely.last = s.next
        s.cc.timely.rtt_ps = rtt_ps
