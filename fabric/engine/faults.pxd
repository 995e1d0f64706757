# Failures and repairs: links that go down and come up, slow and corrupting links, ports that are paused for
# good, new next hops, flows that move to another port of their host.
#
# A window never reaches beyond the next change. So when the clock stands at it, every node has done all that
# it does before that instant and nothing of it, and a change may touch any node: it comes before everything
# else that happens then. What a change makes possible is not begun here: the port is free no earlier than
# that instant, and starts by itself in the order of all starts (`touch`).
#
# A link that is down loses what is on it. Its port goes on taking frames off its queues at line rate, and
# loses them, until routes lead elsewhere: a black hole, of which neighbours see no back-pressure. PAUSE does
# not outlive a link: both ends forget it, and an ingress that is still over its threshold when the link
# comes back says so again.

from fabric.engine.heap cimport heap_remove
from fabric.engine.fault cimport (
    FAULT_CUT,
    FAULT_DOWN,
    FAULT_LOSS,
    FAULT_MOVES,
    FAULT_PAUSE,
    FAULT_RATE,
    FAULT_ROUTES,
    FAULT_UP,
    Fault,
    Faults,
)
from fabric.engine.flow cimport SENDER_COMPLETE, SENDER_READY, Sender
from fabric.engine.link cimport LINK_DOWN, lose_pfc, set_loss, set_rate
from fabric.engine.nic cimport leave_ready, make_ready
from fabric.engine.node cimport SWITCH, TIMER_PFC_EFFECT, Node
from fabric.engine.packet cimport PFC_PAUSE, PFC_RESUME, PFC_STORM
from fabric.engine.pfc cimport queue_pfc, take_pfc
from fabric.engine.port cimport LINK_WAKE_BIT, ODD_DOWN, ODD_TIMING, Port
from fabric.engine.recorder cimport record_drop
from fabric.engine.ring cimport ring_empty, ring_front, ring_pop
from fabric.engine.touch cimport touch
from fabric.engine.turns cimport turns_join, turns_leave
from fabric.engine.types cimport NEVER, i64, u8, u16, u32, u64
from fabric.engine.world cimport World


cdef inline void lose_frames(World* w, u32 port, i64 time_ps) noexcept nogil:
    """Everything that is on the link of a port is lost."""
    cdef Port* p = &w.ports[port]
    cdef u32 bit = p.link.tag & LINK_WAKE_BIT
    while not ring_empty(&p.link):
        record_drop(w, port, ring_front(&p.link), time_ps, LINK_DOWN)
        lose_pfc(w, port, ring_front(&p.link))
        ring_pop(&p.link)
        w.faults.lost_frames += 1
    w.wakes[bit >> 6].bits &= ~(<u64>1 << (bit & 63))


cdef inline void forget_pfc(World* w, Node* n, u32 port) noexcept nogil:
    """PFC frames that have come in at a port and not acted yet will not."""
    cdef u32 k = 0
    cdef u64 key
    while k < n.timers.count:
        key = n.timers.slots[k].key
        if key >> 56 == TIMER_PFC_EFFECT and <u32>key >> 5 == port:
            w.pauses[port * w.n_classes + (key >> 2 & 7)].pauses_taken += key & 3 == PFC_PAUSE
            heap_remove(&n.timers, key)
            k = 0
        else:
            k += 1
    n.next_timer_ps = n.timers.slots[0].time_ps if n.timers.count else NEVER


cdef inline void set_down(World* w, u32 port, bint loses, i64 time_ps) noexcept nogil:
    """The link of a port goes down in its direction."""
    cdef Port* p = &w.ports[port]
    cdef u32 peer = w.port_peer[port]
    cdef u8 c
    p.odd |= ODD_DOWN | ODD_TIMING
    if loses:
        lose_frames(w, port, time_ps)
    for c in range(<u8>w.n_classes):
        take_pfc(w, peer, c, PFC_RESUME, time_ps)
    forget_pfc(w, &w.nodes[w.port_node[peer]], peer)
    touch(w, peer, time_ps)


cdef inline void set_up(World* w, u32 port, i64 time_ps) noexcept nogil:
    """The link of a port comes up in its direction."""
    cdef Port* p = &w.ports[port]
    cdef Node* n = &w.nodes[w.port_node[port]]
    cdef u8 c
    p.odd &= ~<u32>ODD_DOWN
    set_rate(p, <u64>w.port_rate_bps[port])
    if n.kind == SWITCH:
        for c in range(<u8>w.n_classes):
            if w.ingress[port * w.n_classes + c].paused:
                queue_pfc(w, n, port - n.port_base, c, PFC_PAUSE, time_ps)
    touch(w, port, time_ps)


cdef inline void set_routes(World* w, i64 number) noexcept nogil:
    cdef i64 k
    for k in range(w.faults.route_base[number], w.faults.route_base[number + 1]):
        w.faults.route_entry[w.faults.route_place[k]] = w.faults.route_value[k]


cdef inline void move_flow(World* w, u32 flow, u32 port, i64 time_ps) noexcept nogil:
    """A flow leaves its host by another port from now on."""
    cdef Sender* s = &w.senders[flow]
    w.faults.flow_port[flow] = port
    if w.flow_started_ps[flow] < 0 or s.flags & SENDER_COMPLETE:
        return
    if w.turn_ports != NULL:
        turns_leave(w, flow, s)
        s.port = port
        turns_join(w, flow, s)
    else:
        if s.flags & SENDER_READY:
            leave_ready(w, flow, s)
        s.port = port
        make_ready(w, flow, s, time_ps)
    touch(w, port, time_ps)


cdef inline void apply_fault(World* w, const Fault* fault) noexcept nogil:
    cdef i64 k, time_ps = fault.time_ps
    cdef u32 port = fault.port
    if fault.kind == FAULT_DOWN:
        set_down(w, port, fault.value != 0, time_ps)
    elif fault.kind == FAULT_UP:
        set_up(w, port, time_ps)
    elif fault.kind == FAULT_RATE:
        w.faults.port_rate_bps[port] = fault.value
        set_rate(&w.ports[port], <u64>fault.value)
    elif fault.kind == FAULT_LOSS:
        w.faults.port_loss[port] = fault.loss
        w.faults.port_ber_rate[port] = fault.ber_rate
        set_loss(&w.ports[port], fault.loss, fault.ber_rate)
    elif fault.kind == FAULT_PAUSE:
        take_pfc(w, port, <u8>(fault.value >> 1), PFC_STORM if fault.value & 1 else PFC_RESUME, time_ps)
        touch(w, port, time_ps)
    elif fault.kind == FAULT_ROUTES:
        set_routes(w, fault.value)
    elif fault.kind == FAULT_CUT:
        w.ports[port].cut_bytes = <u16>fault.value
        set_rate(&w.ports[port], <u64>w.port_rate_bps[port])
    elif fault.kind == FAULT_MOVES:
        for k in range(w.faults.move_base[fault.value], w.faults.move_base[fault.value + 1]):
            move_flow(w, w.faults.move_flow[k], w.faults.move_port[k], time_ps)


cdef inline void apply_faults(World* w) noexcept nogil:
    """Lets all changes of the instant at which the clock stands happen."""
    cdef Faults* faults = &w.faults
    while faults.next_ps <= w.now_ps:
        apply_fault(w, &faults.changes[faults.next])
        faults.next += 1
        faults.next_ps = faults.changes[faults.next].time_ps if faults.next < faults.n_changes else NEVER
