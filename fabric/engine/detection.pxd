# Exact detection of PFC deadlock: who waits for ever, proven, and since when.
#
# `waiting.pxd` has the rule by which a set D of links is deadlocked. Nothing leaves D, so it only grows. Hence
# no event has to be watched: every now and then somebody looks, and the instant at which D came about follows
# from the times that frames and pauses carry: D at an earlier instant is what the same rule makes of the
# channels that were paused then and the frames that were there.

from libc.stdlib cimport calloc

from fabric.engine.deadlock cimport DEADLOCK_OFF, DEADLOCK_STOP, LOOKAHEADS_A_LOOK, DeadlockChannel, Deadlocks
from fabric.engine.deadlock_rows cimport report_channel
from fabric.engine.port cimport ODD_TRUNK
from fabric.engine.types cimport NEVER, i64, later, u8, u32, u64
from fabric.engine.waiting cimport (
    wire_ps,
    frozen,
    forget_members,
    keep_waiting,
    gather_members,
    wait_at,
    first_instant,
)
from fabric.engine.world cimport World


cdef inline i64 next_look_ps(const Deadlocks* d, i64 after_ps) noexcept nogil:
    """The first instant after another at which to look, if anything is paused."""
    return (after_ps // d.interval_ps + 1) * d.interval_ps


cdef inline void prepare_detection(World* w) noexcept nogil:
    """What the search has to know of the fabric."""
    cdef Deadlocks* d = &w.deadlocks
    cdef u32 port
    d.interval_ps = LOOKAHEADS_A_LOOK * d.lookahead_ps
    d.stop_ps = NEVER
    if d.mode == DEADLOCK_OFF:
        return
    for port in range(w.n_ports):
        d.longest_wire_ps = later(d.longest_wire_ps, wire_ps(w, port))
        if w.quanta.port_ps != NULL and not w.quanta.port_holds[port]:
            continue
        if w.port_node[port] >= w.n_hosts and w.port_node[w.port_peer[port]] >= w.n_hosts:
            w.ports[port].odd |= ODD_TRUNK


cdef inline bint allocate_detection(World* w) noexcept nogil:
    """Scratch of the search, before the first; False without memory."""
    cdef Deadlocks* d = &w.deadlocks
    cdef u64 pairs = <u64>w.n_ports * w.n_classes + 1
    if d.pooled != NULL:
        return True
    d.caught = <u32*>calloc(pairs, sizeof(u32))
    d.waits = <u8*>calloc(pairs, 1)
    d.kept = <i64*>calloc(pairs, sizeof(i64))
    if d.caught != NULL and d.waits != NULL and d.kept != NULL:
        d.pooled = <i64*>calloc(<u64>w.n_nodes + 1, sizeof(i64))
    return d.pooled != NULL


cdef inline void find_deadlocks(World* w, i64 last_ps, i64 latest_ps) noexcept nogil:
    """Reports what formed at or before `latest_ps`, seen from the state at the end of `last_ps`."""
    cdef Deadlocks* d = &w.deadlocks
    cdef i64 formed_ps
    cdef u32 k
    if d.paused_links == 0:
        return
    if not allocate_detection(w):
        w.out_of_memory = 1
        return
    while True:
        gather_members(w)
        if w.out_of_memory or d.n_members == 0 or not wait_at(w, last_ps):
            break
        keep_waiting(d)
        formed_ps = first_instant(w, last_ps)
        if formed_ps > latest_ps:
            break
        wait_at(w, formed_ps)
        keep_waiting(d)
        for k in range(d.n_members):
            report_channel(w, d.members[k], formed_ps)
        d.count += 1
        d.standing += 1
        forget_members(d)
    forget_members(d)


cdef inline void find_broken(World* w, i64 now_ps) noexcept nogil:
    """Notes which deadlocks no longer stand, because somebody let frames of them go."""
    cdef Deadlocks* d = &w.deadlocks
    cdef u64 k, first = 0, end
    cdef DeadlockChannel* row
    cdef bint stands
    while first < d.n_channels:
        stands = True
        end = first
        while end < d.n_channels and d.channels[end].deadlock == d.channels[first].deadlock:
            row = &d.channels[end]
            end += 1
            stands = stands and (
                frozen(w, row.port, row.traffic_class)
                and w.pauses[row.port * w.n_classes + row.traffic_class].since_ps == row.since_ps
            )
        if not stands and d.channels[first].broken_ps < 0:
            d.standing -= 1
            for k in range(first, end):
                d.channels[k].broken_ps = now_ps
                d.caught[d.channels[k].port * w.n_classes + d.channels[k].traffic_class] = 0
        first = end


cdef inline i64 first_stop_ps(const Deadlocks* d, u32 deadlock) noexcept nogil:
    """When a run ends that a deadlock stops: at the first look that every lookahead window has come to."""
    cdef u64 k = 0
    while d.channels[k].deadlock != deadlock:
        k += 1
    return next_look_ps(d, d.channels[k].formed_ps + d.lookahead_ps - 1)


cdef inline void look_for_deadlock(World* w, i64 latest_ps) noexcept nogil:
    """Looks at a fabric in which everything before `now_ps` has happened, and nothing else."""
    cdef Deadlocks* d = &w.deadlocks
    cdef u32 before = d.count
    if d.looked_hops != w.hops:
        d.looked_hops = w.hops
        d.quiet_ps = w.now_ps + d.longest_wire_ps + d.lookahead_ps + d.interval_ps
    if d.standing:
        find_broken(w, w.now_ps)
    if d.paused_links:
        find_deadlocks(w, w.now_ps - 1, latest_ps)
    if d.mode == DEADLOCK_STOP and d.count != before and d.stop_ps == NEVER:
        d.stop_ps = later(w.now_ps, first_stop_ps(d, before))
