# Deadlocks as rows: the links of each and the frames that wait for them, as they were when it formed.

from fabric.engine.deadlock cimport DeadlockChannel, DeadlockFrame, Deadlocks, room_for_one
from fabric.engine.node cimport Node
from fabric.engine.packet cimport TTL_SHIFT, Packet
from fabric.engine.ring cimport Ring, ring_slot
from fabric.engine.types cimport i64, u8, u32
from fabric.engine.world cimport World


cdef inline void report_ring(World* w, DeadlockChannel* channel, const Node* n, const Ring* ring) noexcept nogil:
    cdef Deadlocks* d = &w.deadlocks
    cdef u32 position = ring.head
    cdef const Packet* frame
    cdef DeadlockFrame* row
    cdef void* rows
    while position != ring.tail:
        frame = ring_slot(ring, position)
        position += 1
        if frame.time_ps > channel.formed_ps:
            continue
        rows = room_for_one(d.frames, d.n_frames, &d.most_frames, sizeof(DeadlockFrame))
        if rows == NULL:
            w.out_of_memory = 1
            return
        d.frames = <DeadlockFrame*>rows
        row = &d.frames[d.n_frames]
        d.n_frames += 1
        row.since_ps = frame.time_ps
        row.deadlock = channel.deadlock
        row.port = channel.port
        row.ingress = n.port_base + frame.ingress
        row.flow = frame.flow
        row.sequence = frame.sequence
        row.destination = frame.destination
        row.size_bytes = frame.size_bytes
        row.traffic_class = frame.traffic_class
        row.kind = frame.kind
        row.ttl = frame.mark_ttl >> TTL_SHIFT
        channel.bytes += frame.size_bytes
        channel.frames += 1


cdef inline void report_channel(World* w, u32 pair, i64 formed_ps) noexcept nogil:
    """Writes down a channel of a deadlock, and the frames that wait for it."""
    cdef Deadlocks* d = &w.deadlocks
    cdef u32 port = pair // w.n_classes, c = pair % w.n_classes, k
    cdef const Node* n = &w.nodes[w.port_node[port]]
    cdef DeadlockChannel channel
    cdef void* rows = room_for_one(d.channels, d.n_channels, &d.most_channels, sizeof(DeadlockChannel))
    if rows == NULL:
        w.out_of_memory = 1
        return
    d.channels = <DeadlockChannel*>rows
    channel.formed_ps = formed_ps
    channel.broken_ps = -1
    channel.since_ps = w.pauses[pair].since_ps
    channel.bytes = 0
    channel.deadlock = d.count
    channel.port = port
    channel.frames = 0
    channel.cause_flow = w.pauses[w.port_peer[port] * w.n_classes + c].cause_flow
    channel.traffic_class = <u8>c
    if not n.per_ingress_arbiter:
        report_ring(w, &channel, n, &w.queues[pair].frames)
    elif w.ingress_queues[pair] != NULL:
        for k in range(w.ingress_queues[pair].n_ports):
            report_ring(w, &channel, n, &w.ingress_queues[pair].by_ingress[k])
    d.channels[d.n_channels] = channel
    d.n_channels += 1
    d.caught[pair] = d.count + 1


cdef inline void forget_deadlocks(World* w, u32 count) noexcept nogil:
    """Takes back all but the first deadlocks, so that a look leaves no trace."""
    cdef Deadlocks* d = &w.deadlocks
    cdef const DeadlockChannel* row
    while d.n_channels and d.channels[d.n_channels - 1].deadlock >= count:
        row = &d.channels[d.n_channels - 1]
        d.caught[row.port * w.n_classes + row.traffic_class] = 0
        d.n_frames -= row.frames
        d.n_channels -= 1
    d.standing -= d.count - count
    d.count = count
