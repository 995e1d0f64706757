# Which class of a port goes next: strict priority between levels, deficit round robin within one.
#
# Shreedhar and Varghese, "Efficient fair queueing using deficit round robin" (SIGCOMM 1995): a class
# whose turn it is may send while its deficit covers the frame at its head; coming to a class adds its
# quantum. A class whose queue empties loses what it had saved. A level with one class keeps no state.

from fabric.engine.profile cimport Scheduler
from fabric.engine.types cimport i32, trailing_zeros, u8, u32
from fabric.engine.world cimport World


cdef inline u8 top_level(const Scheduler* scheduler, u8 candidates) noexcept nogil:
    """The first level with a candidate class; there must be one."""
    cdef u8 level = 0
    while not candidates & scheduler.level_mask[level]:
        level += 1
    return level


cdef inline bint shared_level(u8 level_mask) noexcept nogil:
    return level_mask & (level_mask - 1) != 0


cdef inline u8 next_in_level(u8 mask, u8 after) noexcept nogil:
    """The class in `mask` that follows `after`, cyclically; `mask` is not empty."""
    cdef u8 above = mask & ~<u8>((2 << after) - 1)
    return <u8>trailing_zeros(above if above else mask)


cdef inline u8 dwrr_turn(World* w, u32 port, u8 level, u8 level_mask) noexcept nogil:
    """The class whose turn it is (initially the lowest of the level)."""
    cdef u8 current = w.dwrr_current[port * 8 + level]
    return current - 1 if current else <u8>trailing_zeros(level_mask)


cdef inline u8 dwrr_pick(
    World* w, u32 port, const Scheduler* scheduler, u8 level, u8 candidates, const u32* head_bytes
) noexcept nogil:
    """The class to serve in a shared level; its deficit is charged. `head_bytes` is by class."""
    cdef u8 mask = scheduler.level_mask[level] & candidates
    cdef u8 c = dwrr_turn(w, port, level, scheduler.level_mask[level])
    cdef u32 base = port * w.n_classes
    if not (mask >> c & 1 and w.queues[base + c].deficit >= <i32>head_bytes[c]):
        while True:
            c = next_in_level(mask, c)
            w.queues[base + c].deficit += <i32>scheduler.quantum[c]
            if w.queues[base + c].deficit >= <i32>head_bytes[c]:
                break
    w.queues[base + c].deficit -= <i32>head_bytes[c]
    w.dwrr_current[port * 8 + level] = c + 1
    return c
