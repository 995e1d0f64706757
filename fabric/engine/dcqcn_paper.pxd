# DCQCN as published: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015.
#
# A congestion notification cuts the rate at once by alpha/2 and restarts both increase clocks. The rate
# recovers in events, of a timer (T) and of a byte counter (B): first halving the distance to the
# target (fast recovery, F events), then raising the target additively, then faster and faster. Alpha
# decays while no notification comes. Timers act lazily, at the next send or mark: alpha matters only
# at a mark, and the rate only at a send. `cut_mark_ps` of the state counts the bytes here.

from fabric.engine.flow cimport CC_ACTIVE, Sender
from fabric.engine.numbers cimport least, most, pow_int
from fabric.engine.pace cimport kept_rate, mean_rate, note_rate
from fabric.engine.profile cimport TransportProfile
from fabric.engine.types cimport i64, u32, u64
from fabric.engine.world cimport World


cdef inline void paper_increase(
    World* w, u32 flow, Sender* s, const TransportProfile* p, double line_bps, i64 time_ps
) noexcept nogil:
    """One increase event, of either clock."""
    cdef u32 both = s.cc.dcqcn.timer_events
    cdef u32 either = s.cc.dcqcn.timer_events
    cdef double before = s.cc.rate
    if p.byte_counter:
        both = s.cc.dcqcn.byte_events if s.cc.dcqcn.byte_events < both else both
        either = s.cc.dcqcn.byte_events if s.cc.dcqcn.byte_events > either else either
    if either >= p.fast_recovery:
        if both > p.fast_recovery:
            s.cc.dcqcn.target += <double>(both - p.fast_recovery + 1) * p.hai_bps
        else:
            s.cc.dcqcn.target += p.ai_bps
    s.cc.dcqcn.target = least(s.cc.dcqcn.target, line_bps)
    s.cc.rate = mean_rate(p, s.cc.rate, s.cc.dcqcn.target)
    note_rate(w, flow, s, before, time_ps)


cdef inline void paper_catch_up(
    World* w, u32 flow, Sender* s, const TransportProfile* p, double line_bps, i64 before_ps
) noexcept nogil:
    """Lets the increase timer's expiries before an instant act."""
    while s.cc.dcqcn.increase_base_ps + p.increase_period_ps < before_ps:
        s.cc.dcqcn.increase_base_ps += p.increase_period_ps
        s.cc.dcqcn.timer_events += 1
        paper_increase(w, flow, s, p, line_bps, s.cc.dcqcn.increase_base_ps)


cdef inline void paper_sent(
    World* w, u32 flow, Sender* s, const TransportProfile* p, double line_bps, u32 wire_bytes, i64 time_ps
) noexcept nogil:
    """Counts sent bytes towards the byte clock."""
    if not p.byte_counter:
        return
    s.cc.dcqcn.cut_mark_ps += wire_bytes
    if s.cc.dcqcn.cut_mark_ps >= p.byte_counter:
        s.cc.dcqcn.cut_mark_ps -= p.byte_counter
        s.cc.dcqcn.byte_events += 1
        paper_increase(w, flow, s, p, line_bps, time_ps)


cdef inline void paper_mark(
    World* w, u32 flow, Sender* s, const TransportProfile* p, double line_bps, i64 time_ps
) noexcept nogil:
    """A congestion notification."""
    cdef i64 periods
    cdef double before = s.cc.rate
    if s.cc_flags & CC_ACTIVE:
        paper_catch_up(w, flow, s, p, line_bps, time_ps)
        before = s.cc.rate
        periods = (time_ps - s.cc.dcqcn.alpha_base_ps - 1) // p.alpha_period_ps
        if periods > 0:
            s.cc.dcqcn.alpha *= pow_int(1.0 - p.g, <u64>periods)
    else:
        s.cc_flags |= CC_ACTIVE
        s.cc.rate = line_bps
        s.cc.dcqcn.alpha = 1.0
        before = line_bps
    s.cc.dcqcn.target = s.cc.rate
    s.cc.rate = most(p.min_rate_bps, kept_rate(p, s.cc.rate * (1.0 - s.cc.dcqcn.alpha / 2.0)))
    s.cc.dcqcn.alpha = (1.0 - p.g) * s.cc.dcqcn.alpha + p.g
    s.cc.dcqcn.timer_events = 0
    s.cc.dcqcn.byte_events = 0
    s.cc.dcqcn.cut_mark_ps = 0
    s.cc.dcqcn.alpha_base_ps = time_ps
    s.cc.dcqcn.increase_base_ps = time_ps
    note_rate(w, flow, s, before, time_ps)
