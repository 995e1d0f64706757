# The arrivals of one node in one window, in canonical order.
#
# Each ingress link is a FIFO, so what arrives before the window's end is a prefix of its ring. The
# frames stay where they are; 32-bit keys (offset in the window, local port) are sorted, by buckets of
# time and then by insertion. Ports that tie at one instant are put in the order of a keyed hash of that
# instant when their turn comes. A key has as many bits for the port as the largest node needs, at least
# 12, and the others for the offset: 2^20 ps is the longest window, less where a node has over 4,096 ports.

from libc.stdlib cimport qsort, realloc
from libc.string cimport memset

from fabric.engine.link cimport seen_after_ps
from fabric.engine.node cimport HOST, Node, Wake
from fabric.engine.packet cimport Packet
from fabric.engine.port cimport Port
from fabric.engine.ring cimport Ring, ring_front, ring_pop, ring_slot
from fabric.engine.rng cimport tie_break
from fabric.engine.telemetry cimport prefetch_recall, prefetch_stamp
from fabric.engine.types cimport NEVER, bit_length, i64, later, trailing_zeros, u32, u64, unlikely
from fabric.engine.world cimport ERROR_MEMORY, ArrivalKeys, World, check

cdef enum:
    SMALL_SORT = 24
    LARGE_SORT = 4096
    KEY_BITS = 32
    MOST_BUCKET_BITS = 8


cdef inline u32 key_port(const World* w, u32 key) noexcept nogil:
    return key & w.port_mask


cdef inline i64 key_offset(const World* w, u32 key) noexcept nogil:
    return key >> w.port_bits


cdef inline bint same_instant(const World* w, u32 a, u32 b) noexcept nogil:
    return a ^ b <= w.port_mask


cdef inline bint reserve_keys(World* w, u64 count) noexcept nogil:
    """Room for `count` keys and the one that ends them."""
    cdef ArrivalKeys* a = &w.arrivals
    cdef u64 capacity = a.capacity if a.capacity else 1024
    cdef void* grown
    if count < a.capacity:
        return True
    while capacity <= count:
        capacity *= 2
    grown = realloc(a.keys, capacity * sizeof(u32))
    if grown == NULL:
        return False
    a.keys = <u32*>grown
    grown = realloc(a.sorted, capacity * sizeof(u32))
    if grown == NULL:
        return False
    a.sorted = <u32*>grown
    grown = realloc(a.ties, capacity * sizeof(u64))
    if grown == NULL:
        return False
    a.ties = <u64*>grown
    a.capacity = capacity
    return True


cdef inline void insertion_sort(u32* keys, u64 count) noexcept nogil:
    cdef u64 i, j
    cdef u32 key
    for i in range(1, count):
        key = keys[i]
        j = i
        while j > 0 and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            j -= 1
        keys[j] = key


cdef inline void counting_pass(World* w, u64 count, u32 shift, u32 bits) noexcept nogil:
    """Orders the keys by some bits from `shift` on, keys that agree in these as they were."""
    cdef u32 starts[257]
    cdef u32* keys = w.arrivals.keys
    cdef u32* placed = w.arrivals.sorted
    cdef u32 n_buckets = <u32>1 << bits, sum = 0
    cdef u32 mask = n_buckets - 1, i, bucket
    cdef u64 k
    memset(starts, 0, n_buckets * sizeof(u32))
    for k in range(count):
        starts[keys[k] >> shift & mask] += 1
    for i in range(n_buckets):
        bucket = starts[i]
        starts[i] = sum
        sum += bucket
    for k in range(count):
        bucket = keys[k] >> shift & mask
        placed[starts[bucket]] = keys[k]
        starts[bucket] += 1
    w.arrivals.keys = placed
    w.arrivals.sorted = keys


cdef inline void sort_keys(World* w, u64 count) noexcept nogil:
    """Sorts the keys: into about one bucket for two keys and then by insertion; very many by all their bits."""
    cdef u32 used_bits, bits
    if count > LARGE_SORT:
        used_bits = 0
        while used_bits < KEY_BITS:
            counting_pass(w, count, used_bits, MOST_BUCKET_BITS)
            used_bits += MOST_BUCKET_BITS
        return
    if count > SMALL_SORT:
        used_bits = w.port_bits + bit_length(<u64>(w.window_end_ps - w.now_ps - 1))
        bits = bit_length(count) - 1
        if bits > MOST_BUCKET_BITS:
            bits = MOST_BUCKET_BITS
        counting_pass(w, count, used_bits - bits, bits)
    insertion_sort(w.arrivals.keys, count)


cdef inline int compare_ties(const void* a, const void* b) noexcept nogil:
    cdef u64 x = (<const u64*>a)[0], y = (<const u64*>b)[0]
    return -1 if x < y else x > y


cdef inline u64 start_rank(const World* w, const Node* n, u32 local, u32 ahead) noexcept nogil:
    """Smaller for an arrival whose transmission began earlier; so many frames are ahead of it on its link."""
    cdef u32 sender = w.port_peer[n.port_base + local]
    cdef const Port* p = &w.ports[sender]
    cdef u32 wire_bytes = <u32>ring_slot(&p.link, p.link.head + ahead).size_bytes + p.gap_bytes
    return (<u64>1 << 47) - 1 - <u64>(p.delay_ps + seen_after_ps(w, p, wire_bytes))


cdef inline u64 break_ties(World* w, const Node* n, u64 first, i64 time_ps) noexcept nogil:
    """Puts the run of one instant that begins at key `first` in order of (tie, port); returns its end."""
    cdef u32* keys = w.arrivals.keys
    cdef u64* ties = w.arrivals.ties
    cdef u64 end = first, i, j, tie
    cdef u32 offset = keys[first] - key_port(w, keys[first]), local, ahead = 0
    while same_instant(w, keys[first], keys[end]):
        local = key_port(w, keys[end])
        if w.ties_by_start:
            ahead = ahead + 1 if end > first and keys[end] == keys[end - 1] else 0
            tie = start_rank(w, n, local, ahead) << 16 | local
        else:
            tie = tie_break(n.tie_key, time_ps, local) << 16 | local
        i = end
        while end - first < SMALL_SORT and i > first and ties[i - 1] > tie:
            ties[i] = ties[i - 1]
            i -= 1
        ties[i] = tie
        end += 1
    if end - first > SMALL_SORT:
        qsort(ties + first, end - first, sizeof(u64), compare_ties)
    for j in range(first, end):
        keys[j] = offset | <u32>(ties[j] & 0xFFFF)
    return end


cdef inline void prefetch_memories(World* w, const Node* n) noexcept nogil:
    """Asks for the memories of all frames that arrive in the window."""
    cdef u64 bits
    cdef u32 word, local, position
    cdef const Ring* ring
    cdef const Packet* frame
    for word in range(n.n_wakes):
        bits = w.wakes[n.first_wake + word].bits
        while bits:
            local = n.port_base + word * 64 + trailing_zeros(bits)
            bits &= bits - 1
            ring = w.gates[local].link
            position = ring.head
            while position != ring.tail and ring_slot(ring, position).time_ps < w.window_end_ps:
                frame = ring_slot(ring, position)
                if frame.spare:
                    if n.kind == HOST:
                        prefetch_recall(w, frame)
                    else:
                        prefetch_stamp(w, frame)
                position += 1


cdef inline u64 gather_arrivals(World* w, const Node* n) noexcept nogil:
    """Fills the keys of what arrives in the window, sorted but for ties; returns how many.

    A key that ties with nothing ends them. The node's wake words are reset to what remains on the links.
    """
    cdef u64 count = 0, bits, word_bits
    cdef u32 word, local, head, tail, mask
    cdef u32* keys
    cdef Wake* wake
    cdef const Ring* ring
    cdef const Packet* slots
    cdef i64 due_ps, time_ps = 0
    cdef i64 start_ps = w.now_ps, end_ps = w.window_end_ps
    if unlikely(w.logs != NULL):
        prefetch_memories(w, n)
    for word in range(n.n_wakes):
        wake = &w.wakes[n.first_wake + word]
        bits = wake.bits
        due_ps = NEVER
        while bits:
            local = word * 64 + trailing_zeros(bits)
            word_bits = bits & (~bits + 1)
            bits ^= word_bits
            ring = w.gates[n.port_base + local].link
            slots = ring.slots
            mask = ring.capacity - 1
            head = ring.head
            tail = ring.tail
            if unlikely(count + (tail - head) >= w.arrivals.capacity) and not reserve_keys(w, count + (tail - head)):
                w.error = ERROR_MEMORY
                return 0
            keys = w.arrivals.keys
            while head != tail:
                time_ps = slots[head & mask].time_ps
                if time_ps >= end_ps:
                    break
                check(w, time_ps >= start_ps)
                keys[count] = (<u32>(time_ps - start_ps) << w.port_bits) | local
                count += 1
                head += 1
            if head == tail:
                wake.bits ^= word_bits
            elif time_ps < due_ps:
                due_ps = time_ps
        wake.due_ps = due_ps
    if count > 1 and n.n_ports > 1:
        sort_keys(w, count)
    if count:
        w.arrivals.keys[count] = ~w.arrivals.keys[count - 1]
    return count


cdef inline u32 next_port(World* w, const Node* n, u64 k, u64* tied_until) noexcept nogil:
    """The local port of the `k`-th arrival of the window.

    Ties are broken when their first arrival is looked for; `tied_until` starts at 0.
    """
    cdef u32* keys = w.arrivals.keys
    if unlikely(same_instant(w, keys[k], keys[k + 1])) and k >= tied_until[0]:
        tied_until[0] = break_ties(w, n, k, w.now_ps + key_offset(w, keys[k]))
    return key_port(w, keys[k])


cdef inline Packet* take_frame(Ring* link) noexcept nogil:
    """The first frame, off its link, where it stays readable."""
    cdef Packet* frame = ring_front(link)
    ring_pop(link)
    return frame


cdef inline void count_arrivals(World* w, u64 count) noexcept nogil:
    """All arrivals of the window have been handled."""
    if count:
        w.hops += count
        w.end_ps = later(w.end_ps, w.now_ps + key_offset(w, w.arrivals.keys[count - 1]))
