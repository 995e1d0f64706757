# When a rank is done computing that is slower for a while (docs/design.md section 11).
#
# A rank has stretches of time, in order and apart, in each of which everything takes longer by a factor of at least
# 1. What is computed is a time at full speed; it is used up along the clock. The arithmetic is that of doubles,
# cut to whole picoseconds after each stretch, as in the readable engine.

from fabric.engine.program cimport Program
from fabric.engine.types cimport i64, u32


cdef inline i64 compute_end_ps(const Program* p, u32 task, i64 time_ps, i64 compute_ps) noexcept nogil:
    """When a task that begins to compute now is done with it."""
    cdef u32 rank = p.task_rank[task]
    cdef u32 k
    cdef i64 left_ps = compute_ps
    cdef double needed_ps
    for k in range(p.slow_base[rank], p.slow_base[rank + 1]):
        if p.slow_end_ps[k] <= time_ps:
            continue
        if p.slow_begin_ps[k] > time_ps:
            if left_ps <= p.slow_begin_ps[k] - time_ps:
                break
            left_ps -= p.slow_begin_ps[k] - time_ps
            time_ps = p.slow_begin_ps[k]
        needed_ps = <double>left_ps * p.slow_factor[k]
        if needed_ps <= <double>(p.slow_end_ps[k] - time_ps):
            return time_ps + <i64>needed_ps
        left_ps -= <i64>(<double>(p.slow_end_ps[k] - time_ps) / p.slow_factor[k])
        time_ps = p.slow_end_ps[k]
    return time_ps + left_ps
