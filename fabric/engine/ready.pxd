# The flows of one host port and class that may send, by the instant from which they may.
#
# Serving the flow that has been eligible longest is round robin among flows at line rate, and pacing
# for the others, with no wake-up timers: the port's next start follows from the top of the heap. A
# host with one flow pays nothing for it, one with a thousand a few comparisons.

from libc.stdlib cimport realloc

from fabric.engine.types cimport i64, u32, u64
from fabric.engine.world cimport ReadyFlow, ReadyHeap


cdef inline bint ready_before(const ReadyFlow* a, const ReadyFlow* b) noexcept nogil:
    return a.eligible_ps < b.eligible_ps or (a.eligible_ps == b.eligible_ps and a.flow < b.flow)


cdef inline bint ready_push(ReadyHeap* heap, i64 eligible_ps, u32 flow) noexcept nogil:
    """Adds a flow; False when there is no memory for it."""
    cdef ReadyFlow entry
    cdef ReadyFlow* slots
    cdef u32 i, parent, capacity
    if heap.count == heap.capacity:
        capacity = 4 if heap.capacity == 0 else 2 * heap.capacity
        slots = <ReadyFlow*>realloc(heap.slots, <u64>capacity * sizeof(ReadyFlow))
        if slots == NULL:
            return False
        heap.slots = slots
        heap.capacity = capacity
    entry.eligible_ps = eligible_ps
    entry.flow = flow
    entry.spare = 0
    i = heap.count
    heap.count += 1
    while i > 0:
        parent = (i - 1) >> 1
        if not ready_before(&entry, &heap.slots[parent]):
            break
        heap.slots[i] = heap.slots[parent]
        i = parent
    heap.slots[i] = entry
    return True


cdef inline void ready_sift_down(ReadyHeap* heap, u32 i, const ReadyFlow* moved) noexcept nogil:
    """Lets `moved` sink from place `i`."""
    cdef ReadyFlow entry = moved[0]
    cdef u32 child
    while True:
        child = 2 * i + 1
        if child >= heap.count:
            break
        if child + 1 < heap.count and ready_before(&heap.slots[child + 1], &heap.slots[child]):
            child += 1
        if not ready_before(&heap.slots[child], &entry):
            break
        heap.slots[i] = heap.slots[child]
        i = child
    heap.slots[i] = entry


cdef inline void ready_settle_top(ReadyHeap* heap) noexcept nogil:
    """Restores the order after the top has been put off."""
    cdef ReadyFlow top
    if heap.count > 1:
        top = heap.slots[0]
        ready_sift_down(heap, 0, &top)


cdef inline void ready_pop(ReadyHeap* heap) noexcept nogil:
    """Takes the top off; there must be one."""
    heap.count -= 1
    heap.slots[0] = heap.slots[heap.count]
    ready_settle_top(heap)


cdef inline void ready_remove(ReadyHeap* heap, u32 flow) noexcept nogil:
    """Takes a flow off, wherever it stands; it must be there."""
    cdef u32 i = 0, parent
    cdef ReadyFlow moved
    while heap.slots[i].flow != flow:
        i += 1
    heap.count -= 1
    if i == heap.count:
        return
    moved = heap.slots[heap.count]
    while i > 0 and ready_before(&moved, &heap.slots[(i - 1) >> 1]):
        parent = (i - 1) >> 1
        heap.slots[i] = heap.slots[parent]
        i = parent
    ready_sift_down(heap, i, &moved)
