# DCQCN as NICs ship it: the "Mellanox" form of the HPCC simulator (Li et al., SIGCOMM 2019, open code).
#
# Three clocks. Alpha is updated every alpha period, with a gain if a mark came in it. The rate is cut
# at most once a cut period, and only if a mark came since the last cut; the target follows the rate
# only if an increase came in between (or `clamp_target`). The increase timer restarts with every cut.
# The first mark starts the clocks and leaves the rate (or scales it by `first_cut`). The cut clock runs
# 1 ns late, so that a cut follows the alpha update of its instant. All clocks act lazily.

from fabric.engine.flow cimport CC_ACTIVE, CC_ALPHA, CC_CUT, CC_INCREASING, Sender
from fabric.engine.numbers cimport least, most, pow_int
from fabric.engine.pace cimport kept_rate, mean_rate, note_rate
from fabric.engine.profile cimport TransportProfile
from fabric.engine.types cimport i64, sooner, u32, u64
from fabric.engine.world cimport World

cdef enum:
    CUT_LAG_PS = 1000


cdef inline void vendor_alpha(Sender* s, const TransportProfile* p, i64 before_ps) noexcept nogil:
    """Lets the alpha clock's ticks before an instant act."""
    cdef i64 ticks = (before_ps - s.cc.dcqcn.alpha_base_ps - 1) // p.alpha_period_ps
    if ticks <= 0:
        return
    s.cc.dcqcn.alpha = (1.0 - p.g) * s.cc.dcqcn.alpha + (p.g if s.cc_flags & CC_ALPHA else 0.0)
    s.cc_flags &= ~CC_ALPHA
    s.cc.dcqcn.alpha *= pow_int(1.0 - p.g, <u64>(ticks - 1))
    s.cc.dcqcn.alpha_base_ps += ticks * p.alpha_period_ps


cdef inline void vendor_increases(
    World* w, u32 flow, Sender* s, const TransportProfile* p, double line_bps, i64 before_ps
) noexcept nogil:
    """Lets the increase clock's ticks before an instant act."""
    cdef double before
    if not s.cc_flags & CC_INCREASING:
        return
    while s.cc.dcqcn.increase_base_ps + p.increase_period_ps < before_ps:
        s.cc.dcqcn.increase_base_ps += p.increase_period_ps
        before = s.cc.rate
        if s.cc.dcqcn.timer_events == p.fast_recovery:
            s.cc.dcqcn.target = least(s.cc.dcqcn.target + p.ai_bps, line_bps)
        elif s.cc.dcqcn.timer_events > p.fast_recovery:
            s.cc.dcqcn.target = least(s.cc.dcqcn.target + p.hai_bps, line_bps)
        s.cc.rate = mean_rate(p, s.cc.rate, s.cc.dcqcn.target)
        s.cc.dcqcn.timer_events += 1
        note_rate(w, flow, s, before, s.cc.dcqcn.increase_base_ps)


cdef inline i64 vendor_cut_tick(const Sender* s, const TransportProfile* p) noexcept nogil:
    """The first tick of the cut clock at or after the mark that asked for a cut."""
    cdef i64 ticks = (s.cc.dcqcn.cut_mark_ps - s.cc.dcqcn.cut_base_ps + p.cut_period_ps - 1) // p.cut_period_ps
    return s.cc.dcqcn.cut_base_ps + (ticks if ticks > 1 else 1) * p.cut_period_ps


cdef inline void vendor_cut(World* w, u32 flow, Sender* s, const TransportProfile* p, i64 tick_ps) noexcept nogil:
    cdef double before = s.cc.rate
    vendor_alpha(s, p, tick_ps + 1)
    if p.clamp_target or s.cc.dcqcn.timer_events > 0:
        s.cc.dcqcn.target = s.cc.rate
    s.cc.rate = most(p.min_rate_bps, kept_rate(p, s.cc.rate * (1.0 - s.cc.dcqcn.alpha / 2.0)))
    s.cc.dcqcn.timer_events = 0
    s.cc_flags = (s.cc_flags & ~CC_CUT) | CC_INCREASING
    s.cc.dcqcn.increase_base_ps = tick_ps
    note_rate(w, flow, s, before, tick_ps)


cdef inline void vendor_catch_up(
    World* w, u32 flow, Sender* s, const TransportProfile* p, double line_bps, i64 before_ps
) noexcept nogil:
    """Lets every clock's ticks before an instant act, in order: alpha, increase, cut at one instant."""
    cdef i64 tick_ps
    if s.cc_flags & CC_CUT:
        tick_ps = vendor_cut_tick(s, p)
        vendor_increases(w, flow, s, p, line_bps, sooner(before_ps, tick_ps + 1))
        if tick_ps >= before_ps:
            return
        vendor_cut(w, flow, s, p, tick_ps)
    vendor_increases(w, flow, s, p, line_bps, before_ps)


cdef inline void vendor_mark(
    World* w, u32 flow, Sender* s, const TransportProfile* p, double line_bps, i64 time_ps
) noexcept nogil:
    """A congestion notification."""
    if not s.cc_flags & CC_ACTIVE:
        s.cc_flags |= CC_ACTIVE | CC_CUT
        s.cc.rate = kept_rate(p, line_bps * p.first_cut)
        s.cc.dcqcn.target = s.cc.rate
        s.cc.dcqcn.alpha = 1.0
        s.cc.dcqcn.alpha_base_ps = time_ps
        s.cc.dcqcn.cut_base_ps = time_ps + CUT_LAG_PS
        s.cc.dcqcn.cut_mark_ps = time_ps
        s.cc.dcqcn.timer_events = 0
        note_rate(w, flow, s, line_bps, time_ps)
        return
    vendor_catch_up(w, flow, s, p, line_bps, time_ps)
    vendor_alpha(s, p, time_ps)
    if not s.cc_flags & CC_CUT:
        s.cc.dcqcn.cut_mark_ps = time_ps
    s.cc_flags |= CC_ALPHA | CC_CUT
