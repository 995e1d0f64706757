# A node, its timers, and the wake words through which links call it.
#
# A wake word stands for up to 64 ingress ports of one node: a bit says that the port's link holds
# frames, `due_ps` bounds from below the next instant at which the node has something to do. A window
# looks at wake words only, so idle parts of a fabric cost next to nothing.

from libc.stdlib cimport realloc

from fabric.engine.types cimport NEVER, i64, u8, u16, u32, u64

cdef enum NodeKind:
    HOST = 0
    SWITCH = 1

cdef enum TimerKind:        # in the order in which they act at one instant
    TIMER_PFC_EFFECT = 0    # id: port * 16 + class * 2 + on
    TIMER_RTO = 1           # id: flow
    TIMER_FLOW_START = 2    # id: flow

cdef struct Timer:
    i64 time_ps
    u64 key                 # kind << 56 | id

cdef struct TimerHeap:
    Timer* slots
    u32 count
    u32 capacity

cdef struct Wake:
    u64 bits
    i64 due_ps

cdef struct Node:
    u32 port_base
    u32 n_ports
    u32 first_wake
    u32 n_wakes
    u8 kind
    u8 per_ingress_arbiter
    u16 scheduler
    u32 salt
    u64 tie_key
    i64 pfc_response_ps
    i64 next_timer_ps       # of the first timer, NEVER without one
    TimerHeap timers
    # switches only
    i64 shared_bytes        # size of the shared pool
    i64 shared_used         # exact while any ingress is paused, else an upper bound within a window
    i64 settle_from_ps      # no port of this switch starts a waiting frame before this instant
    u32 n_paused            # (ingress port, class) pairs that this switch has paused
    u64* backlog            # local egress ports with something to send
    const u32* route_entry  # by destination edge
    const u16* route_ports


cdef inline bint timer_before(const Timer* a, const Timer* b) noexcept nogil:
    return a.time_ps < b.time_ps or (a.time_ps == b.time_ps and a.key < b.key)


cdef inline bint timer_push(Node* n, i64 time_ps, u8 kind, u32 id) noexcept nogil:
    """Sets a timer; False when there is no memory for it."""
    cdef TimerHeap* heap = &n.timers
    cdef Timer timer
    cdef Timer* slots
    cdef u32 i, parent, capacity
    if heap.count == heap.capacity:
        capacity = 4 if heap.capacity == 0 else 2 * heap.capacity
        slots = <Timer*>realloc(heap.slots, <u64>capacity * sizeof(Timer))
        if slots == NULL:
            return False
        heap.slots = slots
        heap.capacity = capacity
    timer.time_ps = time_ps
    timer.key = (<u64>kind << 56) | id
    i = heap.count
    heap.count += 1
    while i > 0:
        parent = (i - 1) >> 1
        if not timer_before(&timer, &heap.slots[parent]):
            break
        heap.slots[i] = heap.slots[parent]
        i = parent
    heap.slots[i] = timer
    n.next_timer_ps = heap.slots[0].time_ps
    return True


cdef inline Timer timer_pop(Node* n) noexcept nogil:
    """Takes the first timer off; there must be one."""
    cdef TimerHeap* heap = &n.timers
    cdef Timer first = heap.slots[0]
    cdef Timer last
    cdef u32 i = 0, child
    heap.count -= 1
    last = heap.slots[heap.count]
    while True:
        child = 2 * i + 1
        if child >= heap.count:
            break
        if child + 1 < heap.count and timer_before(&heap.slots[child + 1], &heap.slots[child]):
            child += 1
        if not timer_before(&heap.slots[child], &last):
            break
        heap.slots[i] = heap.slots[child]
        i = child
    heap.slots[i] = last
    n.next_timer_ps = heap.slots[0].time_ps if heap.count else NEVER
    return first
