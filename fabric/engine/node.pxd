# A node, its timers, and the wake words through which links call it.
#
# A wake word stands for up to 64 ingress ports of one node: a bit says that the port's link holds
# frames, `due_ps` bounds from below the next instant at which the node has something to do. A window
# looks at wake words only, so idle parts of a fabric cost next to nothing.

from fabric.engine.choice cimport Paths
from fabric.engine.heap cimport Due, Heap, heap_pop, heap_push
from fabric.engine.profile cimport Scheduler
from fabric.engine.types cimport NEVER, i64, u8, u16, u32, u64

cdef enum NodeKind:
    HOST = 0
    SWITCH = 1

cdef enum TimerKind:        # in the order in which they act at one instant
    TIMER_PFC_EFFECT = 0    # id: port * 32 + class * 4 + PfcWish
    TIMER_RTO = 1           # id: flow
    TIMER_FLOW_START = 2    # id: flow
    TIMER_ACK = 3           # id: flow
    TIMER_COPIED = 4        # id: local connection
    TIMER_ENTER = 5         # id: task
    TIMER_BEGIN = 6         # id: task
    TIMER_QUANTA = 7        # id: port * 32 + class * 4

cdef struct Wake:
    u64 bits
    i64 due_ps

cdef struct Node:
    u32 port_base
    u32 n_ports
    u32 first_wake
    u32 n_wakes
    u32 turn                # of a switch: its place in the order of a window
    u8 kind
    u8 per_ingress_arbiter
    u8 control_ignores_pause
    u32 salt
    u32 n_paused            # of a switch: (ingress port, class) pairs that this switch has paused
    const Scheduler* scheduler
    u64 tie_key
    i64 pfc_response_ps
    i64 next_timer_ps       # of the first timer, NEVER without one
    Heap timers             # key: kind << 56 | id
    # switches only
    i64 shared_bytes        # size of the shared pool
    i64 easy_used           # with no more used, half of the pool is free even after one more frame
    i64 shared_used         # exact while any ingress is paused, else an upper bound within a window
    i64 settle_from_ps      # no port of this switch starts a waiting frame before this instant
    u64* backlog            # local egress ports that may have something to send
    const u32* route_entry  # by destination edge
    const u16* route_ports
    Paths* paths            # path choice beyond plain ECMP; NULL: none


cdef inline bint timer_push(Node* n, i64 time_ps, u8 kind, u32 id) noexcept nogil:
    """Sets a timer; False when there is no memory for it."""
    if not heap_push(&n.timers, time_ps, (<u64>kind << 56) | id):
        return False
    n.next_timer_ps = n.timers.slots[0].time_ps
    return True


cdef inline Due timer_pop(Node* n) noexcept nogil:
    """Takes the first timer off; there must be one."""
    cdef Due first = n.timers.slots[0]
    heap_pop(&n.timers)
    n.next_timer_ps = n.timers.slots[0].time_ps if n.timers.count else NEVER
    return first
