# In-band telemetry: a sender remembers its frames, switches write down what those meet, an ACK looks
# it up.
#
# Only frames of flows whose congestion control wants it carry the bits that make hosts and switches
# look here, and only those that are sent for the first time: a repeated frame is not told apart from
# the first one by its number (Karn and Partridge, "Improving Round-Trip Time Estimates in Reliable
# Transport Protocols", SIGCOMM 1987). Values are whole and have 64 bits; paths may have any length.

from fabric.engine.flow cimport Sender
from fabric.engine.frame_log cimport (
    CACHE_LINE_BYTES,
    FrameLog,
    FrameMemory,
    hop_records,
    log_open,
    log_resize,
    log_slot,
    note_hop,
)
from fabric.engine.packet cimport ACK, SPARE_HOP_SHIFT, SPARE_LOGGED, SPARE_MOST_HOPS, SPARE_STAMPED, Packet
from fabric.engine.port cimport Port
from fabric.engine.profile cimport TELEMETRY_HOPS
from fabric.engine.types cimport i64, likely, prefetch, trailing_zeros, u8, u32, unlikely
from fabric.engine.world cimport World


cdef inline u8 log_frame(World* w, u32 flow, const Sender* s, i64 start_ps) noexcept nogil:
    """Remembers the frame `s.next`, which leaves for the first time; the bits that it then carries."""
    cdef FrameLog* log = &w.logs[flow]
    cdef FrameMemory* memory
    cdef bint with_hops = w.transports[s.transport].telemetry == TELEMETRY_HOPS
    if not log_open(log, s.acked, s.next, with_hops):
        w.out_of_memory = 1
        return 0
    memory = log_slot(log, s.next)
    prefetch(log_slot(log, s.next + 1))
    memory.sent_ps = start_ps
    memory.sequence = s.next
    memory.further_hops = 0
    return SPARE_LOGGED | SPARE_STAMPED if with_hops else SPARE_LOGGED


cdef inline void stamp(World* w, Packet* frame, u32 port, i64 start_ps) noexcept nogil:
    """A switch port begins to send a frame that collects telemetry.

    It writes and does not read: the memory is not in the cache. That an old frame's memory has passed to
    another can be seen early, while nodes of one window are handled out of order, but then its sender
    knows of its arrival, and nobody looks at it any more.
    """
    cdef FrameLog* log = &w.logs[frame.flow]
    cdef FrameMemory* memory
    cdef const Port* p = &w.ports[port]
    cdef u8 classes = p.backlog
    cdef i64 queued_bytes = 0
    cdef u32 hop = frame.spare >> SPARE_HOP_SHIFT
    if unlikely(log.capacity == 0 or frame.sequence < log.first):
        return
    memory = log_slot(log, frame.sequence)
    if likely(hop < SPARE_MOST_HOPS):
        frame.spare += 1 << SPARE_HOP_SHIFT
    else:
        hop += memory.further_hops
        memory.further_hops += 1
    if unlikely(hop >= log.room):
        if not log_resize(log, log.capacity, 2 * log.room):
            w.out_of_memory = 1
            return
        memory = log_slot(log, frame.sequence)
    while classes:
        queued_bytes += w.queues[port * w.n_classes + trailing_zeros(classes)].bytes
        classes &= classes - 1
    note_hop(hop_records(memory) + hop, port, start_ps, p.tx_bytes, queued_bytes)


cdef inline u32 hops_of(const Packet* ack, const FrameMemory* memory) noexcept nogil:
    """Hop records of the frame that caused an ACK."""
    return (ack.spare >> SPARE_HOP_SHIFT) + memory.further_hops


cdef inline void prefetch_stamp(const World* w, const Packet* frame) noexcept nogil:
    """Asks for where a frame that a switch will send soon will be stamped."""
    cdef const FrameLog* log = &w.logs[frame.flow]
    if frame.spare & SPARE_STAMPED and log.capacity:
        prefetch(hop_records(log_slot(log, frame.sequence)) + (frame.spare >> SPARE_HOP_SHIFT))


cdef inline void prefetch_recall(const World* w, const Packet* frame) noexcept nogil:
    """Asks for what an ACK that arrives soon will look up."""
    cdef const FrameLog* log = &w.logs[frame.flow]
    cdef const u8* memory
    if frame.kind != ACK or not frame.spare & SPARE_LOGGED or log.capacity == 0:
        return
    memory = <const u8*>log_slot(log, frame.sequence - 1)
    prefetch(memory)
    prefetch(memory + CACHE_LINE_BYTES)
    prefetch(log.seen)
    prefetch(<const u8*>log.seen + CACHE_LINE_BYTES)
    prefetch(&w.senders[frame.flow].cc)


cdef inline FrameMemory* recall(World* w, u32 flow, const Packet* ack, u32 acknowledged) noexcept nogil:
    """The memory of the frame that caused an ACK; NULL if it has none, or says nothing new."""
    if acknowledged == 0 or not ack.spare & SPARE_LOGGED:
        return NULL
    return log_slot(&w.logs[flow], ack.sequence - 1)
