# The PFC watchdog of switches: finds queues that stay paused, and empties them or lets them go.
#
# All switches poll at multiples of one period, before anything else of that instant. A queue is *stalled* at
# a poll if it holds frames and its peer has paused it since the poll before, or longer. After so many stalled
# polls in a row it is mitigated: its frames are dropped, and all that come for it; or it ignores PAUSE; or
# nothing but an alert is given. It is restored after so many polls in a row between which the peer has not
# paused it (SONiC), or after a time (Junos). Nothing is begun here: ports that may send start by themselves.
#
# A queue whose frames are dropped is closed by what its port shows: a threshold at the egress below
# everything, so that the common path of a frame does not know of watchdogs. Where what comes in at the port is
# dropped as well, the link that ends there says so, as one does that loses frames.

from libc.stdlib cimport calloc, malloc
from libc.string cimport memcpy

from fabric.engine.buffer cimport profile_of, release
from fabric.engine.node cimport Node
from fabric.engine.packet cimport PFC_RESUME, Packet
from fabric.engine.pfc cimport begin_pause, end_pause, queue_pfc
from fabric.engine.port cimport LINK_CLOSED, RECORD_QUEUE, ClassQueue, Port
from fabric.engine.profile cimport ClassProfile
from fabric.engine.queues cimport queue_front, queue_pop
from fabric.engine.recorder cimport append_row, make_row, record_drop, record_queue
from fabric.engine.touch cimport touch
from fabric.engine.types cimport i64, u8, u32, u64
from fabric.engine.watchdog cimport (
    WATCHDOG_ALERT,
    WATCHDOG_DETECTED,
    WATCHDOG_DROP,
    WATCHDOG_RESTORED,
    Watchdog,
    Watched,
)
from fabric.engine.world cimport STREAM_WATCHDOG, Row, World

cdef enum:
    DROPPED_BY_WATCHDOG = 7     # a drop reason
    BELOW_EVERYTHING = -0x3FFFFFFFFFFFFFFF


cdef inline bint allocate_watchdog(World* w) noexcept nogil:
    """What a watchdog needs, if there is one; False without memory."""
    cdef Watchdog* dog = &w.watchdog
    if dog.poll_ps == 0:
        return True
    dog.next_ps = dog.poll_ps
    dog.queues = <Watched*>calloc(<u64>w.n_ports * w.n_classes + 1, sizeof(Watched))
    dog.closed = <ClassProfile**>calloc(<u64>w.n_ports + 1, sizeof(ClassProfile*))
    dog.open = <const ClassProfile**>calloc(<u64>w.n_ports + 1, sizeof(ClassProfile*))
    return dog.queues != NULL and dog.closed != NULL and dog.open != NULL


cdef inline void write_event(World* w, u32 port, u8 c, u8 kind, u32 frames, i64 size_bytes) noexcept nogil:
    cdef Row row = make_row(w.now_ps, size_bytes, port, 0, c)
    row.kind = kind
    row.sequence = frames
    append_row(w, STREAM_WATCHDOG, &row)


cdef inline bint show_closed(World* w, u32 port, u8 c, bint closed) noexcept nogil:
    """Closes a class of an egress port, or opens it again; False without memory."""
    cdef Watchdog* dog = &w.watchdog
    cdef u64 size = w.n_classes * sizeof(ClassProfile)
    if dog.closed[port] == NULL:
        dog.closed[port] = <ClassProfile*>malloc(size)
        if dog.closed[port] == NULL:
            return False
        dog.open[port] = w.gates[port].profiles
        memcpy(dog.closed[port], dog.open[port], size)
        w.gates[port].profiles = dog.closed[port]
    dog.closed[port][c] = dog.open[port][c]
    if closed:
        dog.closed[port][c].easy_egress_bytes = BELOW_EVERYTHING
    return True


cdef inline void close_ingress(World* w, u32 port) noexcept nogil:
    """Whether a switch has to look at what comes in at a port: frames of some class are dropped."""
    cdef u32 c
    w.gates[port].link.tag &= ~<u32>LINK_CLOSED
    for c in range(w.n_classes):
        if w.watchdog.drops_ingress and w.watchdog.queues[port * w.n_classes + c].mitigated:
            w.gates[port].link.tag |= LINK_CLOSED


cdef inline void drop_queue(World* w, Node* n, u32 local, u8 c) noexcept nogil:
    """Drops all that waits in a class queue, which may let senders go on."""
    cdef u32 port = n.port_base + local, index = port * w.n_classes + c
    cdef Port* p = &w.ports[port]
    cdef ClassQueue* q = &w.queues[index]
    cdef Packet* frame
    cdef u32 ingress
    while q.bytes:
        frame = queue_front(w, n, index)
        ingress = frame.ingress
        q.bytes -= frame.size_bytes
        q.wait_integral += <double>frame.size_bytes * <double>(w.now_ps - frame.time_ps)
        record_drop(w, port, frame, w.now_ps, DROPPED_BY_WATCHDOG)
        if release(w, n, n.port_base + ingress, c, frame.size_bytes, w.now_ps):
            queue_pfc(w, n, ingress, c, PFC_RESUME, w.now_ps)
            touch(w, n.port_base + ingress, w.now_ps)
        queue_pop(w, n, index)
    p.backlog &= ~<u8>(1 << c)
    q.deficit = 0
    if p.record & RECORD_QUEUE:
        record_queue(w, port, c, w.now_ps)


cdef inline void mitigate(World* w, Node* n, u32 local, u8 c) noexcept nogil:
    """A queue has been stalled for long enough."""
    cdef u32 port = n.port_base + local, index = port * w.n_classes + c
    cdef Port* p = &w.ports[port]
    cdef Watched* watched = &w.watchdog.queues[index]
    cdef i64 size_bytes = w.queues[index].bytes
    cdef u32 drops = w.queues[index].drops
    watched.mitigated = 1
    watched.polls = 0
    watched.paused = 1
    watched.changed_ps = w.pauses[index].since_ps
    w.watchdog.mitigated += 1
    if w.watchdog.action != WATCHDOG_ALERT:
        end_pause(w, port, p, c, w.now_ps)
    if w.watchdog.action == WATCHDOG_DROP:
        if not show_closed(w, port, c, True):
            w.out_of_memory = 1
            return
        drop_queue(w, n, local, c)
        close_ingress(w, port)
    write_event(w, port, c, WATCHDOG_DETECTED, w.queues[index].drops - drops, size_bytes)
    touch(w, port, w.now_ps)


cdef inline void restore(World* w, Node* n, u32 local, u8 c) noexcept nogil:
    """A mitigated queue is as others again."""
    cdef u32 port = n.port_base + local, index = port * w.n_classes + c
    cdef Watched* watched = &w.watchdog.queues[index]
    watched.mitigated = 0
    watched.polls = 0
    w.watchdog.mitigated -= 1
    if w.watchdog.action == WATCHDOG_DROP and not show_closed(w, port, c, False):
        w.out_of_memory = 1
        return
    close_ingress(w, port)
    if w.watchdog.action != WATCHDOG_ALERT and watched.paused:
        begin_pause(w, port, &w.ports[port], c, w.now_ps)
    write_event(w, port, c, WATCHDOG_RESTORED, 0, w.queues[index].bytes)


cdef inline void poll_queue(World* w, Node* n, u32 local, u8 c) noexcept nogil:
    cdef u32 port = n.port_base + local, index = port * w.n_classes + c
    cdef Watchdog* dog = &w.watchdog
    cdef Watched* watched = &dog.queues[index]
    cdef i64 last_ps = w.now_ps - dog.poll_ps
    cdef bint counts
    if not watched.mitigated:
        counts = (
            w.ports[port].paused >> c & 1 and w.pauses[index].since_ps <= last_ps and w.queues[index].bytes != 0
        )
    else:
        counts = dog.restores_by_time or (not watched.paused and watched.changed_ps <= last_ps)
    watched.polls = watched.polls + 1 if counts else 0
    if not watched.mitigated and watched.polls >= dog.detect_polls:
        mitigate(w, n, local, c)
    elif watched.mitigated and watched.polls >= dog.restore_polls:
        restore(w, n, local, c)


cdef inline void poll(World* w) noexcept nogil:
    """All switches poll, at `now_ps`."""
    cdef u32 node, local
    cdef u8 c
    cdef Node* n
    w.watchdog.next_ps += w.watchdog.poll_ps
    for node in range(w.n_hosts, w.n_nodes):
        n = &w.nodes[node]
        for local in range(n.n_ports):
            for c in range(<u8>w.n_classes):
                if profile_of(w, n.port_base + local, c).lossless:
                    poll_queue(w, n, local, c)


cdef inline bint watchdog_may_act(const World* w) noexcept nogil:
    """Whether a poll may still do something if nothing else ever happens."""
    cdef const Watched* watched
    cdef u32 port, c, index
    if w.watchdog.poll_ps == 0:
        return False
    for port in range(w.n_host_ports, w.n_ports):
        for c in range(w.n_classes):
            index = port * w.n_classes + c
            watched = &w.watchdog.queues[index]
            if watched.mitigated:
                if w.watchdog.restores_by_time or not watched.paused:
                    return True
            elif w.ports[port].paused >> c & 1 and w.queues[index].bytes and profile_of(w, port, c).lossless:
                return True
    return False
