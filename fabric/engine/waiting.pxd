# Who waits for ever: the greatest set of paused links that PFC will never let go.
#
# A *channel* is a class of a link between two switches. It is *frozen* while the far end's ingress has paused
# it and no PFC frame of it is on its way. Deadlocked is the greatest set D of frozen channels, each of whose
# far ends can never resume: either so many of the ingress' bytes wait for channels of D that with all else
# gone from the switch, when thresholds are highest, it is above XON still; or all of them do and none is on
# the wire, so that no frame will ever leave, and only then an ingress is tested for RESUME (`docs/design.md`,
# section 13, has the proof that this is exact). The set is found by striking channels until none is to strike.

from libc.stdlib cimport realloc

from fabric.engine.buffer cimport pool_share, profile_of, threshold
from fabric.engine.deadlock cimport Deadlocks
from fabric.engine.link cimport serialisation_ps
from fabric.engine.node cimport Node
from fabric.engine.packet cimport Packet
from fabric.engine.port cimport ODD_TRUNK, IngressQueues, Port
from fabric.engine.profile cimport ClassProfile
from fabric.engine.ring cimport Ring, ring_slot
from fabric.engine.types cimport NEVER, i64, later, sooner, trailing_zeros, u8, u32
from fabric.engine.world cimport World


cdef inline i64 wire_ps(const World* w, u32 port) noexcept nogil:
    """So long after a PAUSE takes effect every frame on the link has surely arrived."""
    cdef const Port* p = &w.ports[port]
    return serialisation_ps(w, p, w.deadlocks.largest_frame_bytes + p.gap_bytes) + p.delay_ps


cdef inline bint frozen(const World* w, u32 port, u32 c) noexcept nogil:
    """Whether a class of a link is paused, and no PFC frame that could change that is on its way."""
    cdef u32 far = w.port_peer[port] * w.n_classes + c
    return (
        w.ports[port].paused >> c & 1
        and w.ingress[far].paused
        and w.pauses[far].pauses_sent == w.pauses[port * w.n_classes + c].pauses_taken
    )


cdef inline bint leads_on(const World* w, u32 port, u32 c) noexcept nogil:
    """Whether the far end of a link has a frozen channel of the class that leads on to a switch."""
    cdef const Node* n = &w.nodes[w.port_node[w.port_peer[port]]]
    cdef u32 k
    for k in range(n.port_base, n.port_base + n.n_ports):
        if w.deadlocks.waits[k * w.n_classes + c]:
            return True
    return False


cdef inline void add_member(World* w, u32 pair) noexcept nogil:
    cdef Deadlocks* d = &w.deadlocks
    cdef u32 capacity = 2 * d.most_members if d.most_members else 64
    cdef void* grown
    if d.n_members == d.most_members:
        grown = realloc(d.members, capacity * sizeof(u32))
        if grown == NULL:
            w.out_of_memory = 1
            return
        d.members = <u32*>grown
        d.most_members = capacity
    d.members[d.n_members] = pair
    d.n_members += 1
    d.waits[pair] = 1


cdef inline void forget_members(Deadlocks* d) noexcept nogil:
    cdef u32 k
    for k in range(d.n_members):
        d.waits[d.members[k]] = 0
    d.n_members = 0


cdef inline bint keep_waiting(Deadlocks* d) noexcept nogil:
    """Takes those off the list that do not wait; whether there were any."""
    cdef u32 k, kept = 0
    cdef bint struck
    for k in range(d.n_members):
        if d.waits[d.members[k]]:
            d.members[kept] = d.members[k]
            kept += 1
    struck = kept != d.n_members
    d.n_members = kept
    return struck


cdef inline void gather_members(World* w) noexcept nogil:
    """The frozen channels of no deadlock so far, without those that plainly wait for nothing frozen."""
    cdef Deadlocks* d = &w.deadlocks
    cdef u32 node, port, c, k, pair
    cdef u8 paused
    cdef const Node* n
    d.n_members = 0
    for node in range(w.n_hosts, w.n_nodes):
        n = &w.nodes[node]
        for port in range(n.port_base, n.port_base + n.n_ports):
            paused = w.ports[port].paused
            if paused and w.ports[port].odd & ODD_TRUNK:
                while paused:
                    c = trailing_zeros(paused)
                    paused &= paused - 1
                    pair = port * w.n_classes + c
                    if not d.caught[pair] and frozen(w, port, c):
                        add_member(w, pair)
                        if w.out_of_memory:
                            return
    while True:
        for k in range(d.n_members):
            pair = d.members[k]
            d.waits[pair] = leads_on(w, pair // w.n_classes, pair % w.n_classes)
        if not keep_waiting(d):
            return


cdef inline i64 surely_pooled(const World* w, u32 pair) noexcept nogil:
    """What the kept bytes of an ingress occupy of the pool at least: no more than its headroom lies beside it."""
    cdef const ClassProfile* profile = profile_of(w, pair // w.n_classes, pair % w.n_classes)
    return pool_share(profile, later(0, w.deadlocks.kept[pair] - profile.headroom_bytes))


cdef inline void keep_ring(World* w, const Node* n, u32 c, const Ring* ring, i64 time_ps, i64 sign) noexcept nogil:
    cdef u32 position = ring.head, pair
    cdef const Packet* frame
    cdef i64* pooled = &w.deadlocks.pooled[n - w.nodes]
    while position != ring.tail:
        frame = ring_slot(ring, position)
        position += 1
        if frame.time_ps <= time_ps:
            pair = (n.port_base + frame.ingress) * w.n_classes + c
            pooled[0] -= surely_pooled(w, pair)
            w.deadlocks.kept[pair] += sign * frame.size_bytes
            pooled[0] += surely_pooled(w, pair)


cdef inline void keep_queue(World* w, u32 pair, i64 time_ps, i64 sign) noexcept nogil:
    """Adds the frames that waited for a channel at an instant to what their ingresses keep, or takes them off."""
    cdef const Node* n = &w.nodes[w.port_node[pair // w.n_classes]]
    cdef const IngressQueues* queues
    cdef u32 k
    if not n.per_ingress_arbiter:
        keep_ring(w, n, pair % w.n_classes, &w.queues[pair].frames, time_ps, sign)
        return
    queues = w.ingress_queues[pair]
    if queues != NULL:
        for k in range(queues.n_ports):
            keep_ring(w, n, pair % w.n_classes, &queues.by_ingress[k], time_ps, sign)


cdef inline bint never_resumes(const World* w, u32 pair, i64 time_ps) noexcept nogil:
    """Whether, at an instant, the far end of a frozen channel is sure to keep it paused for ever."""
    cdef u32 port = pair // w.n_classes, c = pair % w.n_classes
    cdef u32 far_port = w.port_peer[port]
    cdef u32 far = far_port * w.n_classes + c
    cdef const Node* n = &w.nodes[w.port_node[far_port]]
    cdef const ClassProfile* profile = profile_of(w, far_port, c)
    cdef i64 kept = w.deadlocks.kept[far]
    cdef i64 share = pool_share(profile, kept)
    cdef i64 others = w.deadlocks.pooled[n - w.nodes] - surely_pooled(w, far)
    if share > 0 and share + profile.xon_offset_bytes > threshold(
        profile.alpha_q16, profile.limit_bytes, n.shared_bytes - others - share
    ):
        return True
    return (
        kept > 0
        and kept == w.ingress[far].bytes + w.ingress[far].headroom_used
        and time_ps >= w.pauses[pair].since_ps + wire_ps(w, port)
        and time_ps >= w.pauses[far].released_ps
    )


cdef inline u32 wait_at(World* w, i64 time_ps) noexcept nogil:
    """Strikes the members that do not wait for ever, as of an instant; returns how many do."""
    cdef Deadlocks* d = &w.deadlocks
    cdef u32 k, pair, count = 0
    cdef bint struck = True
    for k in range(d.n_members):
        pair = d.members[k]
        d.waits[pair] = w.pauses[pair].since_ps <= time_ps
        if d.waits[pair]:
            count += 1
            keep_queue(w, pair, time_ps, 1)
    while struck:
        struck = False
        for k in range(d.n_members):
            pair = d.members[k]
            if d.waits[pair] and not never_resumes(w, pair, time_ps):
                d.waits[pair] = 0
                count -= 1
                keep_queue(w, pair, time_ps, -1)
                struck = True
    for k in range(d.n_members):
        if d.waits[d.members[k]]:
            keep_queue(w, d.members[k], time_ps, -1)
    return count


cdef inline i64 first_instant(World* w, i64 last_ps) noexcept nogil:
    """The first instant at which some members wait for ever, as they do at the last one."""
    cdef Deadlocks* d = &w.deadlocks
    cdef i64 before_ps = NEVER, middle_ps
    cdef u32 k
    for k in range(d.n_members):
        before_ps = sooner(before_ps, w.pauses[d.members[k]].since_ps - 1)
    while last_ps - before_ps > 1:
        middle_ps = before_ps + (last_ps - before_ps) // 2
        if wait_at(w, middle_ps):
            last_ps = middle_ps
        else:
            before_ps = middle_ps
    return last_ps
