# What is left to happen: whether a run is over.
#
# Timers that will find nothing to do are not worth waiting for, nor are PAUSEs that are only said again.

from fabric.engine.expiry cimport will_run_out
from fabric.engine.flow cimport SENDER_COMPLETE, Sender
from fabric.engine.heap cimport Due
from fabric.engine.mitigation cimport watchdog_may_act
from fabric.engine.nic cimport open_classes
from fabric.engine.node cimport TIMER_ACK, TIMER_PFC_EFFECT, TIMER_QUANTA, TIMER_RTO, Node
from fabric.engine.packet cimport PFC_REPEAT
from fabric.engine.port cimport ODD_TURNS, Port
from fabric.engine.quanta cimport NOT_PAUSED
from fabric.engine.ring cimport ring_empty
from fabric.engine.turns cimport startable, turns_left
from fabric.engine.types cimport NEVER, i64, u8, u32
from fabric.engine.walker cimport program_done
from fabric.engine.world cimport World


cdef inline bint has_something(const World* w, u32 port, u8 traffic_class) noexcept nogil:
    """Whether a class of a port has something to send, now or later."""
    cdef const Port* p = &w.ports[port]
    cdef u32 index = port * w.n_classes + traffic_class
    if p.odd & ODD_TURNS:
        return not ring_empty(&w.queues[index].frames) or startable(w, &w.turn_queues[index])
    return p.backlog >> traffic_class & 1


cdef inline bint timer_matters(const World* w, const Due* timer) noexcept nogil:
    """Whether a timer will do anything: a retransmission timer of a flow with nothing outstanding will not,
    nor that of an ACK that has been sent, nor what only makes a pause last."""
    cdef const Sender* s
    cdef u32 port
    cdef u8 c
    if timer.key >> 56 == TIMER_ACK:
        return w.reassembly[<u32>timer.key].ack_due_ps != 0
    if timer.key >> 56 == TIMER_PFC_EFFECT:
        return <u32>timer.key & 3 != PFC_REPEAT
    if timer.key >> 56 == TIMER_QUANTA:
        port, c = <u32>timer.key >> 5, <u8>(timer.key >> 2 & 7)
        return will_run_out(w, port, c) and has_something(w, port, c)
    if timer.key >> 56 != TIMER_RTO:
        return True
    s = &w.senders[<u32>timer.key]
    return not s.flags & SENDER_COMPLETE and s.next != s.acked


cdef inline bint all_done(const World* w) noexcept nogil:
    """Every flow is complete, and every rank of a program done."""
    return w.completed_flows == w.first_connection and program_done(w)


cdef inline bint pauses_left(const World* w) noexcept nogil:
    """Whether a pause has yet to run out, or a repetition to act: of a bounded run it is not known if it is over."""
    cdef u32 node, k, id
    cdef i64 until_ps
    cdef u8 kind
    cdef const Node* n
    if w.quanta.pauses == NULL:
        return False
    if w.quanta.repeats_in_flight:
        return True
    for node in range(w.n_nodes):
        n = &w.nodes[node]
        for k in range(n.timers.count):
            kind, id = <u8>(n.timers.slots[k].key >> 56), <u32>n.timers.slots[k].key
            if kind == TIMER_PFC_EFFECT and id & 3 == PFC_REPEAT:
                return True
            if kind == TIMER_QUANTA:
                until_ps = w.quanta.pauses[(id >> 5) * w.n_classes + (id >> 2 & 7)].until_ps
                if until_ps != NOT_PAUSED and until_ps != NEVER:
                    return True
    return False


cdef inline bint anything_left(const World* w) noexcept nogil:
    """Whether anything can still happen; a look at everything, for the end of a bounded run."""
    cdef u32 node, k
    cdef const Node* n
    cdef const Port* p
    if w.frames_started != w.hops + w.faults.lost_frames + w.quanta.repeats_in_flight:
        return True
    if w.faults.next_ps != NEVER and not all_done(w):
        return True
    if watchdog_may_act(w):
        return True
    for node in range(w.n_nodes):
        n = &w.nodes[node]
        for k in range(n.timers.count):
            if timer_matters(w, &n.timers.slots[k]):
                return True
        for k in range(n.port_base, n.port_base + n.n_ports):
            p = &w.ports[k]
            if p.odd & ODD_TURNS:
                if turns_left(w, n, k, p):
                    return True
            elif p.mac_pending or open_classes(w, n, k, p):
                return True
    return False
