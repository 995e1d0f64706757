# The clock: lookahead windows.
#
# Everything that one node does to another travels at least `lookahead` over a link. So within a window
# no longer than that each node can be run alone, to the window's end, in any order of nodes; there is no
# global event queue. Where nothing is due the clock jumps. Windows are cut at will (the end of a chunk,
# a shorter `window_ps`): the bits do not depend on it.

from fabric.engine.host cimport host_window
from fabric.engine.audit cimport balanced
from fabric.engine.flow cimport SENDER_COMPLETE, Sender
from fabric.engine.node cimport HOST, TIMER_RTO, Node, Timer, Wake
from fabric.engine.port cimport Port
from fabric.engine.ring cimport ring_slot
from fabric.engine.switch cimport switch_window
from fabric.engine.types cimport NEVER, i64, prefetch, sooner, u32, u64, unlikely
from fabric.engine.world cimport (
    ERROR_INVARIANT,
    ERROR_MEMORY,
    STOP_BUDGET,
    STOP_ERROR,
    STOP_FINISHED,
    STOP_STALLED,
    STOP_UNTIL,
    StopReason,
    World,
)


cdef inline const Port* first_link(const World* w, u32 word) noexcept nogil:
    """The port that sends to the first port of a wake word's node."""
    return &w.ports[w.port_peer[w.node_port_base[w.wake_node[word]]]]


cdef inline void prefetch_flow(const World* w, const Port* p) noexcept nogil:
    """Asks for both ends of the flow whose frame comes next over a link."""
    cdef u32 flow
    if p.link.head != p.link.tail:
        flow = ring_slot(&p.link, p.link.head).flow
        if flow < w.n_flows:
            prefetch(&w.senders[flow])
            prefetch(&w.senders[flow].cc)
            prefetch(&w.receivers[flow])


cdef inline void prefetch_ahead(const World* w, u32 word) noexcept nogil:
    """Asks, a few nodes ahead of the window's walk, for what the next nodes are read from.

    Waves of dependent loads: the node; its port, queues and ready flows; the link that it hears;
    the frames on it; the flows of these.
    """
    cdef const Port* p
    cdef u32 node, port, first
    if word + 8 >= w.n_wakes:
        return
    prefetch(&w.nodes[w.wake_node[word + 8]])
    prefetch(<const char*>&w.nodes[w.wake_node[word + 8]] + 64)
    node = w.wake_node[word + 6]
    port = w.node_port_base[node]
    prefetch(&w.ports[port])
    prefetch(first_link(w, word + 6))
    if node < w.n_hosts:
        first = port * w.n_classes
        prefetch(&w.ready[first])
        prefetch(&w.queues[first])
        prefetch(&w.queues[first + w.n_classes - 1])
    p = first_link(w, word + 4)
    prefetch(ring_slot(&p.link, p.link.head))
    prefetch(ring_slot(&p.link, p.link.head + 2))
    prefetch(ring_slot(&p.link, p.link.head + 4))
    prefetch(ring_slot(&p.link, p.link.head + 6))
    node = w.wake_node[word + 4]
    if node < w.n_hosts:
        prefetch(w.ready[w.node_port_base[node] * w.n_classes].slots)
        p = &w.ports[w.node_port_base[node]]
        prefetch(ring_slot(&p.link, p.link.tail))
        prefetch(ring_slot(&p.link, p.link.tail + 2))
    prefetch_flow(w, first_link(w, word + 2))


cdef inline bint run_window(World* w, i64 start_ps, i64 end_ps) noexcept nogil:
    """Runs every node that is due before the window's end; False if none was."""
    cdef u32 word
    cdef Node* n
    cdef i64 due_ps
    cdef bint any_due = False
    for word in range(w.n_wakes):
        if w.wakes[word].due_ps >= end_ps:
            continue
        any_due = True
        prefetch_ahead(w, word)
        n = &w.nodes[w.wake_node[word]]
        if n.kind == HOST:
            due_ps = host_window(w, n, start_ps, end_ps)
        else:
            due_ps = switch_window(w, n, start_ps, end_ps)
        if due_ps < w.wakes[n.first_wake].due_ps:
            w.wakes[n.first_wake].due_ps = due_ps
        if unlikely(w.error != 0 or w.out_of_memory != 0):
            break
    return any_due


cdef inline i64 next_due(const World* w) noexcept nogil:
    cdef u32 word
    cdef i64 due_ps = NEVER
    for word in range(w.n_wakes):
        due_ps = sooner(due_ps, w.wakes[word].due_ps)
    return due_ps


cdef inline bint timer_matters(const World* w, const Timer* timer) noexcept nogil:
    """Whether a timer will do anything: a retransmission timer of a flow with nothing outstanding will not."""
    cdef const Sender* s
    if timer.key >> 56 != TIMER_RTO:
        return True
    s = &w.senders[<u32>timer.key]
    return not s.flags & SENDER_COMPLETE and s.next != s.acked


cdef inline bint anything_left(const World* w) noexcept nogil:
    """Whether anything can still happen; a look at everything, for the end of a bounded run."""
    cdef u32 node, k
    cdef const Node* n
    cdef const Port* p
    if w.frames_started != w.hops:
        return True
    for node in range(w.n_nodes):
        n = &w.nodes[node]
        for k in range(n.timers.count):
            if timer_matters(w, &n.timers.slots[k]):
                return True
        for k in range(n.port_base, n.port_base + n.n_ports):
            p = &w.ports[k]
            if p.mac_pending or p.backlog & ~p.paused:
                return True
    return False


cdef inline StopReason stop(World* w, StopReason reason) noexcept nogil:
    """The reason for a stop, or that the books do not balance."""
    if balanced(w):
        return reason
    w.error = ERROR_INVARIANT
    return STOP_ERROR


cdef inline StopReason run_windows(World* w, i64 until_ps, u64 max_hops) noexcept nogil:
    """Runs to `until_ps`, to the end of all events, or for about `max_hops` arrivals."""
    cdef u64 enough = w.hops + max_hops
    cdef i64 end_ps, due_ps
    while w.now_ps < until_ps:
        end_ps = sooner(w.now_ps + w.window_ps, until_ps)
        if run_window(w, w.now_ps, end_ps):
            w.now_ps = end_ps
            if unlikely(w.out_of_memory != 0):
                w.error = ERROR_MEMORY
            if unlikely(w.error != 0):
                return STOP_ERROR
            if w.hops >= enough:
                return STOP_BUDGET
            continue
        due_ps = next_due(w)
        if due_ps == NEVER:
            break
        w.now_ps = sooner(due_ps, until_ps)
    if anything_left(w):
        return stop(w, STOP_UNTIL)
    return stop(w, STOP_FINISHED if w.completed_flows == w.n_flows else STOP_STALLED)
