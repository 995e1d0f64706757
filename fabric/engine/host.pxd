# A host: what it does with a frame, its timers, and its windows.

from fabric.engine.ahead cimport prefetch_connection, prefetch_step
from fabric.engine.arrivals cimport count_arrivals, gather_arrivals, next_port, take_frame
from fabric.engine.expiry cimport runs_out
from fabric.engine.heap cimport Due
from fabric.engine.link cimport lost_on_link
from fabric.engine.nic cimport nic_next_start
from fabric.engine.node cimport (
    TIMER_ACK,
    TIMER_BEGIN,
    TIMER_FLOW_START,
    TIMER_PFC_EFFECT,
    TIMER_RTO,
    Node,
    timer_pop,
)
from fabric.engine.packet cimport DATA, PFC, PFC_RESUME, Packet
from fabric.engine.pfc cimport acts_later, take_pfc
from fabric.engine.port cimport LINK_LOSES, ODD_TURNS, Port
from fabric.engine.receiver cimport on_ack_timer, on_data
from fabric.engine.recorder cimport fingerprint_arrival, record_drop
from fabric.engine.ring cimport Ring
from fabric.engine.sender cimport on_feedback, on_rto_timer
from fabric.engine.start cimport start_flow
from fabric.engine.turns cimport host_advance, host_try, turns_advance, turns_due
from fabric.engine.types cimport NEVER, i64, likely, sooner, u8, u32, u64, unlikely
from fabric.engine.walker cimport on_program_timer
from fabric.engine.world cimport World

cdef enum:
    LINK_LOSS = 0


cdef inline void pfc_effect_at_host(World* w, Node* n, u32 port, u8 traffic_class, u8 wish, i64 time_ps) noexcept nogil:
    cdef Port* p = &w.ports[port]
    host_advance(w, n, port, p, time_ps)
    take_pfc(w, port, traffic_class, wish, time_ps)
    if wish == PFC_RESUME:
        host_try(w, n, port, p, time_ps)


cdef inline void host_arrival(World* w, Node* n, u32 port, u32 link_tag, Packet* frame) noexcept nogil:
    """A frame has arrived at a port at `frame.time_ps`."""
    cdef i64 time_ps = frame.time_ps
    if w.fingerprint_on:
        fingerprint_arrival(w, port, frame)
    if unlikely(link_tag & LINK_LOSES) and lost_on_link(w, w.port_peer[port], frame):
        record_drop(w, w.port_peer[port], frame, time_ps, LINK_LOSS)
    elif frame.kind == DATA:
        on_data(w, n, port, frame, time_ps)
    elif likely(frame.kind != PFC):
        on_feedback(w, n, frame, time_ps)
    elif not acts_later(w, n, port, frame):
        pfc_effect_at_host(w, n, port, frame.traffic_class, <u8>frame.sequence, time_ps)


cdef inline void host_timers(World* w, Node* n, i64 before_ps) noexcept nogil:
    """Lets the timers that expire before an instant act."""
    cdef Due timer
    cdef u32 id
    cdef u8 kind
    while n.next_timer_ps < before_ps:
        timer = timer_pop(n)
        id = <u32>timer.key
        kind = <u8>(timer.key >> 56)
        if kind == TIMER_FLOW_START:
            start_flow(w, n, id, timer.time_ps)
        elif kind == TIMER_RTO:
            on_rto_timer(w, n, id, timer.time_ps)
        elif kind == TIMER_ACK:
            on_ack_timer(w, n, id, timer.time_ps)
        elif kind == TIMER_PFC_EFFECT:
            pfc_effect_at_host(w, n, id >> 5, <u8>(id >> 2 & 7), <u8>(id & 3), timer.time_ps)
        elif kind <= TIMER_BEGIN:
            on_program_timer(w, n, kind, id, timer.time_ps)
        elif runs_out(w, id >> 5, <u8>(id >> 2 & 7), timer.time_ps):
            pfc_effect_at_host(w, n, id >> 5, <u8>(id >> 2 & 7), PFC_RESUME, timer.time_ps)


cdef inline i64 host_window(World* w, Node* n) noexcept nogil:
    """Everything that happens at a host in the window; returns when it is next due by itself."""
    cdef u64 count = gather_arrivals(w, n)
    cdef u64 k, tied_until = 0
    cdef u32 port
    cdef Port* p
    cdef Ring* link
    cdef Packet* frame
    cdef i64 due_ps = NEVER
    cdef u8 candidates
    for k in range(count):
        port = n.port_base + next_port(w, n, k, &tied_until)
        link = w.gates[port].link
        prefetch_step(w)
        if w.n_flows != w.first_connection:
            prefetch_connection(w, link)
        frame = take_frame(link)
        if unlikely(n.next_timer_ps < frame.time_ps):
            host_timers(w, n, frame.time_ps)
        host_arrival(w, n, port, link.tag, frame)
    count_arrivals(w, count)
    if unlikely(n.next_timer_ps < w.window_end_ps):
        host_timers(w, n, w.window_end_ps)
    for port in range(n.port_base, n.port_base + n.n_ports):
        p = &w.ports[port]
        if unlikely(p.odd & ODD_TURNS):
            turns_advance(w, n, port, p, w.window_end_ps - 1)
            due_ps = sooner(due_ps, turns_due(w, port, p))
        elif p.backlog:
            host_advance(w, n, port, p, w.window_end_ps - 1)
            due_ps = sooner(due_ps, nic_next_start(w, n, port, p, p.busy_ps, &candidates))
    return sooner(due_ps, n.next_timer_ps)
