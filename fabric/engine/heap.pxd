# A binary heap of (time, key): what is due first, and of what is due at one instant the smallest key.
#
# Two uses. A node's timers, keyed by kind and entity. And the flows of one host port and class that may
# send, by the instant from which they may, keyed by flow: serving the flow that has been eligible
# longest is round robin among flows at line rate and pacing for the others, with no wake-up timers, for
# the port's next start follows from the top. A host with one flow pays nothing for it, one with a
# thousand a few comparisons.

from libc.stdlib cimport realloc

from fabric.engine.types cimport i64, u32, u64

cdef struct Due:
    i64 time_ps
    u64 key

cdef struct Heap:
    Due* slots
    u32 count
    u32 capacity


cdef inline bint due_before(const Due* a, const Due* b) noexcept nogil:
    return a.time_ps < b.time_ps or (a.time_ps == b.time_ps and a.key < b.key)


cdef inline bint heap_reserve(Heap* heap) noexcept nogil:
    """Room for one more; False when there is no memory for it."""
    cdef u32 capacity = 2 * heap.capacity if heap.capacity else 4
    cdef Due* slots
    if heap.count < heap.capacity:
        return True
    slots = <Due*>realloc(heap.slots, <u64>capacity * sizeof(Due))
    if slots == NULL:
        return False
    heap.slots = slots
    heap.capacity = capacity
    return True


cdef inline void heap_rise(Heap* heap, u32 i, const Due* entry) noexcept nogil:
    """Puts `entry` where it belongs on the way from place `i` to the top."""
    cdef u32 parent
    while i > 0:
        parent = (i - 1) >> 1
        if not due_before(entry, &heap.slots[parent]):
            break
        heap.slots[i] = heap.slots[parent]
        i = parent
    heap.slots[i] = entry[0]


cdef inline u32 heap_sink(Heap* heap, u32 i, const Due* entry) noexcept nogil:
    """Moves smaller entries up past place `i`; returns the place that is left for `entry`."""
    cdef u32 child
    while True:
        child = 2 * i + 1
        if child >= heap.count:
            break
        if child + 1 < heap.count and due_before(&heap.slots[child + 1], &heap.slots[child]):
            child += 1
        if not due_before(&heap.slots[child], entry):
            break
        heap.slots[i] = heap.slots[child]
        i = child
    return i


cdef inline bint heap_push(Heap* heap, i64 time_ps, u64 key) noexcept nogil:
    """Adds an entry; False when there is no memory for it."""
    cdef Due entry
    if not heap_reserve(heap):
        return False
    entry.time_ps = time_ps
    entry.key = key
    heap.count += 1
    heap_rise(heap, heap.count - 1, &entry)
    return True


cdef inline void heap_settle_top(Heap* heap) noexcept nogil:
    """Restores the order after the top has been put off."""
    cdef Due top
    if heap.count > 1:
        top = heap.slots[0]
        heap.slots[heap_sink(heap, 0, &top)] = top


cdef inline void heap_pop(Heap* heap) noexcept nogil:
    """Takes the top off; there must be one."""
    heap.count -= 1
    heap.slots[0] = heap.slots[heap.count]
    heap_settle_top(heap)


cdef inline void heap_remove(Heap* heap, u64 key) noexcept nogil:
    """Takes the entry of a key off, wherever it stands; there must be one."""
    cdef u32 i = 0
    cdef Due last
    while heap.slots[i].key != key:
        i += 1
    heap.count -= 1
    if i < heap.count:
        last = heap.slots[heap.count]
        heap_rise(heap, heap_sink(heap, i, &last), &last)
