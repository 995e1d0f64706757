# Priority flow control (IEEE 802.1Qbb): PAUSE and RESUME as frames of their own.
#
# A PFC frame waits for the frame being sent and then goes before everything else; it is never paused
# itself. It acts when it has arrived whole and the receiver's response time has passed; a frame being
# sent is finished. XOFF holds until XON, or until its quanta run out (`expiry.pxd`).

from fabric.engine.deadlock cimport SOMETHING_HAPPENED
from fabric.engine.expiry cimport hold_pause
from fabric.engine.link cimport transmit
from fabric.engine.node cimport TIMER_PFC_EFFECT, Node, timer_push
from fabric.engine.packet cimport NO_FLOW, PFC, PFC_PAUSE, PFC_REPEAT, PFC_RESUME, Packet
from fabric.engine.port cimport ODD_TRUNK, PauseStat, Port
from fabric.engine.recorder cimport record_pause
from fabric.engine.ring cimport ring_empty, ring_front, ring_pop, ring_push
from fabric.engine.types cimport i64, likely, u8, u32, u64, unlikely
from fabric.engine.watchdog cimport WATCHDOG_ALERT, Watched
from fabric.engine.world cimport ERROR_MEMORY, World


cdef inline void note_backlog(Node* n, u32 local, const Port* p) noexcept nogil:
    """A port of a switch has something to send, once it is free."""
    n.backlog[local >> 6] |= <u64>1 << (local & 63)
    if p.busy_ps < n.settle_from_ps:
        n.settle_from_ps = p.busy_ps


cdef inline void start_mac_frame(World* w, Port* p, u32 port, i64 start_ps) noexcept nogil:
    """Starts the first waiting PFC frame; there must be one."""
    w.quanta.repeats_in_flight += ring_front(&w.mac[port]).sequence == PFC_REPEAT
    transmit(w, p, ring_front(&w.mac[port]), start_ps)
    ring_pop(&w.mac[port])
    p.mac_pending = not ring_empty(&w.mac[port])


cdef inline void queue_pfc(World* w, const Node* n, u32 local, u8 traffic_class, u8 wish, i64 time_ps) noexcept nogil:
    """Lets a PAUSE or RESUME for a class wait at a port, for its peer."""
    cdef u32 port = n.port_base + local
    cdef Port* p = &w.ports[port]
    cdef Packet* frame = ring_push(&w.mac[port], &w.scratch, &w.out_of_memory)
    frame.time_ps = time_ps
    frame.flow = NO_FLOW
    frame.sequence = wish
    frame.destination = 0
    frame.path_hash = 0
    frame.size_bytes = w.pfc_frame_bytes
    frame.ingress = 0
    frame.kind = PFC
    frame.traffic_class = traffic_class
    frame.mark_ttl = 0
    frame.spare = 0
    if wish == PFC_PAUSE:
        w.pauses[port * w.n_classes + traffic_class].pauses_sent += 1
    if likely(not w.out_of_memory):
        p.mac_pending = 1


cdef inline void send_pfc(World* w, Node* n, u32 local, u8 traffic_class, u8 wish, i64 time_ps) noexcept nogil:
    """Sends PAUSE or RESUME for a class to the peer of a port; at once if the port is free."""
    cdef u32 port = n.port_base + local
    cdef Port* p = &w.ports[port]
    queue_pfc(w, n, local, traffic_class, wish, time_ps)
    if w.out_of_memory:
        return
    if p.busy_ps <= time_ps:
        start_mac_frame(w, p, port, time_ps)
    if p.mac_pending:
        note_backlog(n, local, p)


cdef inline void begin_pause(World* w, u32 port, Port* p, u8 traffic_class, i64 time_ps) noexcept nogil:
    p.paused |= <u8>(1 << traffic_class)
    w.pauses[port * w.n_classes + traffic_class].since_ps = time_ps
    if p.odd & ODD_TRUNK:
        w.deadlocks.paused_links += 1
        w.deadlocks.looked_hops = SOMETHING_HAPPENED


cdef inline void end_pause(World* w, u32 port, Port* p, u8 traffic_class, i64 time_ps) noexcept nogil:
    cdef PauseStat* stat = &w.pauses[port * w.n_classes + traffic_class]
    p.paused &= ~<u8>(1 << traffic_class)
    stat.paused_ps += time_ps - stat.since_ps
    record_pause(w, port, traffic_class, stat.since_ps, time_ps)
    stat.since_ps = time_ps
    if p.odd & ODD_TRUNK:
        w.deadlocks.paused_links -= 1


cdef inline bint ignores_peer(World* w, u32 port, u8 traffic_class, bint on, i64 time_ps) noexcept nogil:
    """Whether a watchdog has made a queue ignore its peer, whose wish is then only noted."""
    cdef Watched* watched = &w.watchdog.queues[port * w.n_classes + traffic_class]
    if not watched.mitigated:
        return False
    if watched.paused != on:
        watched.paused = on
        watched.changed_ps = time_ps
    return w.watchdog.action != WATCHDOG_ALERT


cdef inline bint acts_later(World* w, Node* n, u32 port, const Packet* frame) noexcept nogil:
    """A PFC frame has arrived; whether it acts only when the node's response time has passed."""
    w.quanta.repeats_in_flight -= frame.sequence == PFC_REPEAT
    if n.pfc_response_ps == 0:
        return False
    if not timer_push(
        n, frame.time_ps + n.pfc_response_ps, TIMER_PFC_EFFECT, port * 32 + frame.traffic_class * 4 + frame.sequence
    ):
        w.error = ERROR_MEMORY
    return True


cdef inline void take_pfc(World* w, u32 port, u8 traffic_class, u8 wish, i64 time_ps) noexcept nogil:
    """The peer's PAUSE or RESUME acts on a port; the caller then tries the port."""
    cdef Port* p = &w.ports[port]
    cdef u8 bit = <u8>(1 << traffic_class)
    cdef bint on = wish != PFC_RESUME
    if wish == PFC_PAUSE:
        w.pauses[port * w.n_classes + traffic_class].pauses_taken += 1
    if unlikely(w.quanta.pauses != NULL):
        hold_pause(w, port, traffic_class, wish, time_ps)
    if unlikely(w.watchdog.mitigated != 0) and ignores_peer(w, port, traffic_class, on, time_ps):
        return
    if on:
        if not p.paused & bit:
            begin_pause(w, port, p, traffic_class, time_ps)
    elif p.paused & bit:
        end_pause(w, port, p, traffic_class, time_ps)
