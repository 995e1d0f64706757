# A NIC port: what it sends next, and when.
#
# A class has its control frames (ACK, NACK, CNP) first, then its flows by eligibility. The port starts
# at the first instant at which it is free and any unpaused class has something to send, and then the
# node's scheduler chooses among the classes that have. Like a switch port it is lazy: `nic_advance`
# starts everything up to an instant, and whoever handles an event at t calls it first and `nic_try`
# afterwards.

from fabric.engine.congestion cimport pacing_gap
from fabric.engine.flow cimport (
    SENDER_LOGS,
    SENDER_READY,
    SENDER_RTO_ARMED,
    SENDER_SELECTIVE,
    SENDER_SPREADS,
    Sender,
)
from fabric.engine.heap cimport Heap, heap_pop, heap_push, heap_remove, heap_settle_top
from fabric.engine.link cimport announce, begin_frame, transmit
from fabric.engine.message cimport find_message, next_message
from fabric.engine.node cimport TIMER_RTO, Node, timer_push
from fabric.engine.packet cimport DATA, Packet
from fabric.engine.port cimport ODD_TURNS, Port
from fabric.engine.profile cimport PATHS_IN_TURN, SHARED_LEVEL, Scheduler, TransportProfile
from fabric.engine.ring cimport Ring, ring_empty, ring_front, ring_pop_queue, ring_push
from fabric.engine.rng cimport entropy_hash, mix64
from fabric.engine.scheduler cimport dwrr_pick, top_level
from fabric.engine.selective cimport selective_sent
from fabric.engine.telemetry cimport log_frame
from fabric.engine.types cimport NEVER, i64, later, likely, prefetch, trailing_zeros, u8, u16, u32, u64, unlikely
from fabric.engine.world cimport ERROR_MEMORY, World


cdef inline bint window_open(const Sender* s) noexcept nogil:
    return s.window_frames == 0 or s.next - s.acked < s.window_frames


cdef inline bint sendable(const Sender* s) noexcept nogil:
    return s.next < s.frames and window_open(s)


cdef inline u32 next_frame_bytes(const World* w, const Sender* s) noexcept nogil:
    return s.last_frame_bytes if s.next + 1 == s.frames else w.transports[s.transport].frame_bytes


cdef inline void make_ready(World* w, u32 flow, Sender* s, i64 time_ps) noexcept nogil:
    """Lets a flow that may (again) send wait for its turn."""
    cdef u32 index = s.port * w.n_classes + s.traffic_class
    if s.flags & SENDER_READY or not sendable(s):
        return
    if not heap_push(&w.ready[index], later(s.next_time_ps, time_ps), flow):
        w.error = ERROR_MEMORY
        return
    s.flags |= SENDER_READY
    w.ports[s.port].backlog |= <u8>(1 << s.traffic_class)


cdef inline void clear_if_idle(World* w, Port* p, u32 index, u8 c) noexcept nogil:
    """Drops the class from the port's backlog when it has neither control frames nor flows."""
    if w.ready[index].count == 0 and ring_empty(&w.queues[index].frames):
        p.backlog &= ~<u8>(1 << c)


cdef inline void leave_ready(World* w, u32 flow, Sender* s) noexcept nogil:
    """Takes a flow off the heap in which it waits for its turn."""
    cdef u32 index = s.port * w.n_classes + s.traffic_class
    s.flags &= ~SENDER_READY
    heap_remove(&w.ready[index], flow)
    clear_if_idle(w, &w.ports[s.port], index, s.traffic_class)


cdef inline i64 class_eligible(const World* w, u32 index) noexcept nogil:
    """From when on a class has something to send; control frames can always go."""
    if not ring_empty(&w.queues[index].frames):
        return 0
    return w.ready[index].slots[0].time_ps if w.ready[index].count else NEVER


cdef inline u8 open_classes(const World* w, const Node* n, u32 port, const Port* p) noexcept nogil:
    """The classes that have something to send which PFC does not hold."""
    cdef u8 classes = p.backlog & ~p.paused
    cdef u8 held = p.backlog & p.paused
    cdef u8 c
    if unlikely(n.control_ignores_pause != 0):
        while held:
            c = <u8>trailing_zeros(held)
            held &= held - 1
            if not ring_empty(&w.queues[port * w.n_classes + c].frames):
                classes |= <u8>(1 << c)
    return classes


cdef inline i64 nic_next_start(
    const World* w, const Node* n, u32 port, const Port* p, i64 from_ps, u8* candidates
) noexcept nogil:
    """When a port starts its next frame, not before an instant; NEVER if it stays idle.

    `candidates` become the classes that have something to send then.
    """
    cdef u8 classes = open_classes(w, n, port, p), bit
    cdef i64 first_ps = NEVER, eligible_ps
    candidates[0] = 0
    while classes:
        eligible_ps = later(from_ps, class_eligible(w, port * w.n_classes + trailing_zeros(classes)))
        bit = classes & (~classes + 1)
        classes ^= bit
        if eligible_ps < first_ps:
            first_ps = eligible_ps
            candidates[0] = bit
        elif eligible_ps == first_ps:
            candidates[0] |= bit
    return first_ps


cdef inline void send_control(World* w, Port* p, u32 index, u8 c, i64 start_ps) noexcept nogil:
    cdef Ring* ring = &w.queues[index].frames
    transmit(w, p, ring_front(ring), start_ps)
    ring_pop_queue(ring)
    clear_if_idle(w, p, index, c)


cdef inline u32 spread_hash(const World* w, const Sender* s) noexcept nogil:
    """The path hash of the next frame of a flow that spreads over several."""
    cdef const TransportProfile* p = &w.transports[s.transport]
    cdef u32 sent = s.high + s.retransmitted
    if p.path_mode == PATHS_IN_TURN:
        return entropy_hash(s.path_hash, sent % p.path_count)
    return entropy_hash(s.path_hash, <u32>((mix64((<u64>s.path_hash << 32) | sent) >> 32) * p.path_count >> 32))


cdef inline void count_sent(Sender* s) noexcept nogil:
    """Frame `next` has been sent."""
    if likely(s.next == s.high):
        s.high += 1
    else:
        s.retransmitted += 1
    s.next += 1


cdef inline void count_special(World* w, u32 flow, Sender* s, Packet* frame) noexcept nogil:
    """Frame `next` has been sent, by a flow that spreads over paths or repeats selectively."""
    if s.flags & SENDER_SPREADS:
        frame.path_hash = spread_hash(w, s)
    if s.flags & SENDER_SELECTIVE:
        selective_sent(w, flow, s)
        if flow >= w.first_connection:
            find_message(&w.connections[flow - w.first_connection], s)
    else:
        count_sent(s)


cdef inline void arm_rto(World* w, Node* n, u32 flow, Sender* s, i64 from_ps) noexcept nogil:
    """Sets the retransmission timer, if the transport has one."""
    cdef i64 rto_ps = w.transports[s.transport].rto_ps
    if rto_ps:
        s.flags |= SENDER_RTO_ARMED
        if not timer_push(n, from_ps + rto_ps, TIMER_RTO, flow):
            w.error = ERROR_MEMORY


cdef inline bint goes_on(World* w, u32 flow, Sender* s) noexcept nogil:
    """Whether a flow that has just sent a frame may send another."""
    if likely(s.next != s.frames):
        return window_open(s)
    if flow < w.first_connection or not next_message(&w.connections[flow - w.first_connection], s):
        return False
    return window_open(s)


cdef inline void send_data(World* w, Node* n, Port* p, u32 index, u8 c, i64 start_ps) noexcept nogil:
    """Starts the next frame of the flow that has been eligible longest."""
    cdef Heap* heap = &w.ready[index]
    cdef u32 flow = <u32>heap.slots[0].key
    cdef Sender* s = &w.senders[flow]
    cdef u32 size_bytes = next_frame_bytes(w, s)
    cdef Packet* frame = begin_frame(w, p, size_bytes, start_ps)
    frame.flow = flow
    frame.sequence = s.next
    frame.destination = s.destination
    frame.path_hash = s.path_hash
    frame.ingress = 0
    frame.kind = DATA
    frame.traffic_class = c
    frame.mark_ttl = w.ttl_bits
    frame.spare = 0
    if unlikely(s.flags & SENDER_LOGS != 0) and s.next == s.high:
        frame.spare = log_frame(w, flow, s, start_ps)
    announce(w, p, frame, start_ps)
    if s.next == s.acked:
        s.progress_ps = start_ps
    if unlikely(s.flags & (SENDER_SELECTIVE | SENDER_SPREADS)):
        count_special(w, flow, s, frame)
    else:
        count_sent(s)
    s.next_time_ps = start_ps + pacing_gap(
        w, flow, s, size_bytes + p.gap_bytes, p.busy_ps - start_ps, start_ps
    )
    if unlikely(not s.flags & SENDER_RTO_ARMED):
        arm_rto(w, n, flow, s, start_ps)
    if likely(goes_on(w, flow, s)):
        heap.slots[0].time_ps = s.next_time_ps
        heap_settle_top(heap)
    else:
        s.flags &= ~SENDER_READY
        heap_pop(heap)
        clear_if_idle(w, p, index, c)
    if heap.count > 1:
        prefetch(&w.senders[<u32>heap.slots[0].key])


cdef inline u8 nic_pick(World* w, const Node* n, u32 port, u8 candidates) noexcept nogil:
    """The class that the scheduler serves next, of those with something to send now."""
    cdef const Scheduler* scheduler = n.scheduler
    cdef u8 c = scheduler.first[candidates]
    cdef u8 level, rest
    cdef u32 head_bytes[8]
    cdef u32 index
    if likely(c != SHARED_LEVEL):
        return c
    level = top_level(scheduler, candidates)
    rest = scheduler.level_mask[level] & candidates
    while rest:
        c = <u8>trailing_zeros(rest)
        rest &= rest - 1
        index = port * w.n_classes + c
        if not ring_empty(&w.queues[index].frames):
            head_bytes[c] = ring_front(&w.queues[index].frames).size_bytes
        else:
            head_bytes[c] = next_frame_bytes(w, &w.senders[<u32>w.ready[index].slots[0].key])
    return dwrr_pick(w, port, scheduler, level, candidates, head_bytes)


cdef inline void nic_start(World* w, Node* n, u32 port, Port* p, u8 candidates, i64 start_ps) noexcept nogil:
    """Starts what goes next at a free port, of the classes that have something to send."""
    cdef u8 c = nic_pick(w, n, port, candidates)
    cdef u32 index = port * w.n_classes + c
    if ring_empty(&w.queues[index].frames):
        send_data(w, n, p, index, c, start_ps)
    else:
        send_control(w, p, index, c, start_ps)
    if not p.backlog >> c & 1:
        w.queues[index].deficit = 0


cdef inline void nic_advance(World* w, Node* n, u32 port, Port* p, i64 time_ps) noexcept nogil:
    """Lets a port start everything that it starts at or before an instant."""
    cdef i64 start_ps
    cdef u8 candidates
    while p.busy_ps <= time_ps and p.backlog:
        start_ps = nic_next_start(w, n, port, p, p.busy_ps, &candidates)
        if start_ps > time_ps:
            return
        nic_start(w, n, port, p, candidates, start_ps)


cdef inline void nic_try(World* w, Node* n, u32 port, Port* p, i64 time_ps) noexcept nogil:
    """An event at `time_ps` may have made a start possible."""
    cdef u8 candidates
    if p.busy_ps <= time_ps and p.backlog and nic_next_start(w, n, port, p, time_ps, &candidates) <= time_ps:
        nic_start(w, n, port, p, candidates, time_ps)


cdef inline bint free_for_control(const World* w, const Node* n, const Port* p, u8 c, i64 time_ps) noexcept nogil:
    """Whether a control frame starts at once at a port that has been advanced to `time_ps`."""
    return (
        p.busy_ps <= time_ps
        and not p.odd & ODD_TURNS
        and (n.control_ignores_pause or not p.paused >> c & 1)
        and not n.scheduler.shared_classes >> c & 1
    )


cdef inline Packet* queue_control(World* w, Port* p, u8 c, u32 size_bytes, i64 time_ps) noexcept nogil:
    """The slot for a control frame that has to wait its turn."""
    cdef u32 port = <u32>(p - w.ports)
    cdef Packet* slot = ring_push(&w.queues[port * w.n_classes + c].frames, &w.scratch, &w.out_of_memory)
    slot.time_ps = time_ps
    slot.size_bytes = <u16>size_bytes
    if likely(not w.out_of_memory):
        p.backlog |= <u8>(1 << c)
    return slot
