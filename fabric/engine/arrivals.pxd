# The arrivals of one node in one window, in canonical order.
#
# Each ingress link is a FIFO, so what arrives before the window's end is a prefix of its ring. The
# frames stay where they are; small integer keys (offset in the window, local port) are sorted, by
# buckets of time and then by insertion. Ports that tie at one instant are put in the order of a keyed
# hash of that instant.

from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from fabric.engine.node cimport Node, Wake
from fabric.engine.port cimport Port
from fabric.engine.ring cimport Ring, ring_slot
from fabric.engine.rng cimport tie_break
from fabric.engine.types cimport NEVER, i64, likely, prefetch, trailing_zeros, u32, u64, unlikely
from fabric.engine.world cimport ERROR_MEMORY, ArrivalKeys, World, check

cdef enum:
    SMALL_SORT = 24
    N_BUCKETS = 256
    PREFETCH_FRAMES = 12        # of each link: what a window holds at full load


cdef inline bint reserve_keys(World* w, u64 count) noexcept nogil:
    cdef ArrivalKeys* a = &w.arrivals
    cdef u64 capacity = a.capacity if a.capacity else 1024
    cdef u64* keys
    if count <= a.capacity:
        return True
    while capacity < count:
        capacity *= 2
    keys = <u64*>realloc(a.keys, capacity * sizeof(u64))
    if keys == NULL:
        return False
    a.keys = keys
    keys = <u64*>realloc(a.sorted, capacity * sizeof(u64))
    if keys == NULL:
        return False
    a.sorted = keys
    a.capacity = capacity
    return True


cdef inline void insertion_sort(u64* keys, u64 count) noexcept nogil:
    cdef u64 i, j, key
    for i in range(1, count):
        key = keys[i]
        j = i
        while j > 0 and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            j -= 1
        keys[j] = key


cdef inline void sort_keys(World* w, u64 count, i64 window_ps) noexcept nogil:
    """Sorts keys whose upper half is an offset below `window_ps`."""
    cdef u32 starts[257]
    cdef u64* keys = w.arrivals.keys
    cdef u64* placed = w.arrivals.sorted
    cdef u32 shift = 32, i, bucket
    cdef u64 k
    if count > SMALL_SORT:
        while (<u64>window_ps >> (shift - 32)) >= N_BUCKETS:
            shift += 1
        memset(starts, 0, sizeof(starts))
        for k in range(count):
            starts[(keys[k] >> shift) + 1] += 1
        for i in range(1, <u32>N_BUCKETS):
            starts[i] += starts[i - 1]
        for k in range(count):
            bucket = <u32>(keys[k] >> shift)
            placed[starts[bucket]] = keys[k]
            starts[bucket] += 1
        memcpy(keys, placed, count * sizeof(u64))
    insertion_sort(keys, count)


cdef inline void break_ties(u64* keys, u64 count, u64 tie_key, i64 window_start_ps) noexcept nogil:
    """Reorders runs of one instant by (tie, port); `count` keys are sorted by (offset, port)."""
    cdef u64 i = 0, end, k, offset
    cdef u32 local
    while i + 1 < count:
        offset = keys[i] >> 32
        if likely(keys[i + 1] >> 32 != offset):
            i += 1
            continue
        end = i
        while end < count and keys[end] >> 32 == offset:
            local = <u32>(keys[end] & 0xFFFF)
            keys[end] |= tie_break(tie_key, window_start_ps + <i64>offset, local) << 16
            end += 1
        insertion_sort(keys + i, end - i)
        i = end


cdef inline void prefetch_links(World* w, const Node* n) noexcept nogil:
    """Asks for the links that gathering will read, and the ports that handling will: two waves of loads."""
    cdef u64 bits
    cdef u32 word, local, ahead
    cdef const Ring* ring
    for word in range(n.n_wakes):
        bits = w.wakes[n.first_wake + word].bits
        while bits:
            local = n.port_base + word * 64 + trailing_zeros(bits)
            bits &= bits - 1
            prefetch(&w.ports[w.ports[local].peer])
    for word in range(n.n_wakes):
        bits = w.wakes[n.first_wake + word].bits
        while bits:
            local = n.port_base + word * 64 + trailing_zeros(bits)
            bits &= bits - 1
            ring = &w.ports[w.ports[local].peer].link
            for ahead in range(0, <u32>PREFETCH_FRAMES, 2):
                prefetch(ring_slot(ring, ring.head + ahead))
            ring = &w.ports[local].link
            prefetch(ring_slot(ring, ring.tail))
            prefetch(ring_slot(ring, ring.tail + 2))
            prefetch(&w.ingress[local * w.n_classes])
            prefetch(&w.queues[local * w.n_classes])


cdef inline u64 gather_arrivals(World* w, Node* n, i64 start_ps, i64 end_ps) noexcept nogil:
    """Fills the sorted keys of what arrives in [start, end); returns how many.

    The node's wake words are reset to what remains on the links.
    """
    cdef u64 count = 0, bits, word_bits
    cdef u32 word, local, head, tail
    cdef Wake* wake
    cdef Ring* ring
    cdef i64 due_ps, time_ps = 0
    if n.n_ports > 1:
        prefetch_links(w, n)
    for word in range(n.n_wakes):
        wake = &w.wakes[n.first_wake + word]
        bits = wake.bits
        due_ps = NEVER
        while bits:
            local = word * 64 + trailing_zeros(bits)
            word_bits = bits & (~bits + 1)
            bits ^= word_bits
            ring = &w.ports[w.ports[n.port_base + local].peer].link
            head = ring.head
            tail = ring.tail
            if unlikely(count + (tail - head) > w.arrivals.capacity) and not reserve_keys(w, count + (tail - head)):
                w.error = ERROR_MEMORY
                return 0
            while head != tail:
                time_ps = ring_slot(ring, head).time_ps
                if time_ps >= end_ps:
                    break
                check(w, time_ps >= start_ps)
                w.arrivals.keys[count] = (<u64>(time_ps - start_ps) << 32) | local
                count += 1
                head += 1
            if head == tail:
                wake.bits ^= word_bits
            elif time_ps < due_ps:
                due_ps = time_ps
        wake.due_ps = due_ps
    if count > 1 and n.n_ports > 1:
        sort_keys(w, count, end_ps - start_ps)
        break_ties(w.arrivals.keys, count, n.tie_key, start_ps)
    return count
