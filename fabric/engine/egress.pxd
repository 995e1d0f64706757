# Egress of a switch: lazy ports that catch up when somebody looks.
#
# `advance` lets one port start everything that it would have started up to an instant; `settle` does so
# for the whole switch in order of time (and port, at one instant), which is what makes releases, RESUME
# tests and thresholds exact. While no ingress is paused nobody can see the order in which ports of one
# switch started their frames, so only the port in question is advanced; as soon as one is paused, every
# event settles first.

from fabric.engine.buffer cimport profile_of, release
from fabric.engine.ecn cimport ecn_mark
from fabric.engine.link cimport transmit
from fabric.engine.node cimport Node
from fabric.engine.packet cimport PFC_RESUME, SPARE_STAMPED, Packet
from fabric.engine.pfc cimport note_backlog, send_pfc, start_mac_frame
from fabric.engine.port cimport RECORD_QUEUE, ClassQueue, Port
from fabric.engine.profile cimport ECN_AT_DEQUEUE, SHARED_LEVEL, ClassProfile, Scheduler
from fabric.engine.queues cimport queue_front, queue_pop
from fabric.engine.recorder cimport record_queue
from fabric.engine.scheduler cimport dwrr_pick, top_level
from fabric.engine.telemetry cimport prefetch_stamp, stamp
from fabric.engine.types cimport NEVER, i64, likely, prefetch, trailing_zeros, u8, u32, u64, unlikely
from fabric.engine.world cimport World, check


cdef inline bint holds_frames(const Port* p) noexcept nogil:
    return (p.mac_pending | p.backlog) != 0


cdef inline bint may_start(const Port* p) noexcept nogil:
    return (p.mac_pending | (p.backlog & ~p.paused)) != 0


cdef inline u8 pick_class(World* w, const Node* n, u32 port, u8 candidates) noexcept nogil:
    """The class that the scheduler serves next, of those with a frame that may go."""
    cdef const Scheduler* scheduler = n.scheduler
    cdef u8 c = scheduler.first[candidates]
    cdef u8 level, rest
    cdef u32 head_bytes[8]
    if likely(c != SHARED_LEVEL):
        return c
    level = top_level(scheduler, candidates)
    rest = scheduler.level_mask[level] & candidates
    while rest:
        c = <u8>trailing_zeros(rest)
        rest &= rest - 1
        head_bytes[c] = queue_front(w, n, port * w.n_classes + c).size_bytes
    return dwrr_pick(w, port, scheduler, level, candidates, head_bytes)


cdef inline void start_queued(World* w, Node* n, u32 local, Port* p, i64 start_ps) noexcept nogil:
    """Starts the frame that the scheduler picks; there must be one that may go."""
    cdef u32 port = n.port_base + local
    cdef u8 c = pick_class(w, n, port, p.backlog & ~p.paused)
    cdef u32 index = port * w.n_classes + c
    cdef ClassQueue* q = &w.queues[index]
    cdef const ClassProfile* outward = profile_of(w, port, c)
    cdef Packet* frame = queue_front(w, n, index)
    cdef u32 ingress = frame.ingress
    cdef u32 size_bytes = frame.size_bytes
    cdef bint resume
    q.bytes -= size_bytes
    q.wait_integral += <double>size_bytes * <double>(start_ps - frame.time_ps)
    if unlikely(q.bytes > outward.ecn_kmin_bytes) and outward.ecn_mode == ECN_AT_DEQUEUE:
        ecn_mark(w, outward, port, frame, q.bytes, start_ps)
    check(w, q.bytes >= 0 and start_ps >= frame.time_ps)
    resume = release(w, n, n.port_base + ingress, c, size_bytes, start_ps)
    if unlikely(frame.spare & SPARE_STAMPED != 0):
        stamp(w, frame, port, start_ps)
    transmit(w, p, frame, start_ps)
    prefetch(frame + 1)
    queue_pop(w, n, index)
    if q.bytes == 0:
        p.backlog &= ~<u8>(1 << c)
        q.deficit = 0
    elif unlikely(w.logs != NULL):
        prefetch_stamp(w, queue_front(w, n, index))
    if unlikely(p.record & RECORD_QUEUE != 0):
        record_queue(w, port, c, start_ps)
    if unlikely(resume):
        send_pfc(w, n, ingress, c, PFC_RESUME, start_ps)


cdef inline void start_next(World* w, Node* n, u32 local, Port* p, i64 start_ps) noexcept nogil:
    """Starts what goes next at a free port that has something that may go."""
    if unlikely(p.mac_pending != 0):
        start_mac_frame(w, p, n.port_base + local, start_ps)
    else:
        start_queued(w, n, local, p, start_ps)


cdef inline void advance(World* w, Node* n, u32 local, Port* p, i64 time_ps) noexcept nogil:
    """Lets one port start everything that it starts at or before an instant."""
    while (p.busy_ps <= time_ps) & may_start(p):
        start_next(w, n, local, p, p.busy_ps)


cdef inline void try_start(World* w, Node* n, u32 local, Port* p, i64 time_ps) noexcept nogil:
    """An event at `time_ps` may have made a start possible."""
    if may_start(p):
        if p.busy_ps <= time_ps:
            start_next(w, n, local, p, time_ps)
        if may_start(p):
            note_backlog(n, local, p)


cdef inline void settle(World* w, Node* n, i64 time_ps) noexcept nogil:
    """Lets every port start what it starts at or before an instant, in order of time and port."""
    cdef i64 first_ps
    cdef u32 first = 0, word, local
    cdef u64 bits, bit
    cdef Port* p
    while n.settle_from_ps <= time_ps:
        first_ps = NEVER
        for word in range(n.n_wakes):
            bits = n.backlog[word]
            while bits:
                local = word * 64 + trailing_zeros(bits)
                bit = bits & (~bits + 1)
                bits ^= bit
                p = &w.ports[n.port_base + local]
                if not holds_frames(p):
                    n.backlog[word] ^= bit
                elif p.busy_ps < first_ps and may_start(p):
                    first_ps = p.busy_ps
                    first = local
        n.settle_from_ps = first_ps
        if first_ps <= time_ps:
            start_next(w, n, first, &w.ports[n.port_base + first], first_ps)


cdef inline void catch_up(World* w, Node* n, i64 time_ps) noexcept nogil:
    """What `settle` does, in any order of ports; for the end of a window of a switch with no pause."""
    cdef u32 word, local
    cdef u64 bits, bit
    cdef Port* p
    n.settle_from_ps = NEVER
    for word in range(n.n_wakes):
        bits = n.backlog[word]
        while bits:
            local = word * 64 + trailing_zeros(bits)
            bit = bits & (~bits + 1)
            bits ^= bit
            p = &w.ports[n.port_base + local]
            advance(w, n, local, p, time_ps)
            if not holds_frames(p):
                n.backlog[word] ^= bit
            elif p.busy_ps < n.settle_from_ps and may_start(p):
                n.settle_from_ps = p.busy_ps
