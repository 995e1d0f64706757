# What a flow's sender remembers of its frames in flight: when each left, and what switches saw.
#
# One memory a frame, in a ring that is indexed by frame number and grown to hold all from the first
# that is not acknowledged to the last that was sent. A memory has room for so many hops as the longest
# path so far has needed. It is what a frame would carry in its header, and an ACK back; kept here, a
# frame stays 32 bytes, and flows that look at no memories have none. A frame is remembered when it is
# sent for the first time, so a memory belongs to one frame on the wire.

from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from fabric.engine.types cimport i64, u8, u32, u64

cdef enum:
    LOG_FIRST_FRAMES = 16
    LOG_FIRST_HOPS = 3
    CACHE_LINE_BYTES = 64
    SENT_MASK = 0xFFFFFFFFFFFF

cdef extern from "<stdlib.h>":
    void* aligned_alloc(size_t, size_t) noexcept nogil

cdef struct HopRecord:      # at a switch port, when the frame began to leave; 24 bytes: these must be many
    i64 time_ps
    u64 counts              # 48 bits of what `hop_sent` tells, the upper 16 of 48 of `hop_queued`
    u32 queued_low
    u32 port

cdef struct FrameMemory:    # followed by `FrameLog.room` hop records
    i64 sent_ps
    u32 sequence
    u32 further_hops        # beyond those that the frame itself counts

cdef struct FrameLog:
    u8* slots
    u32 capacity            # a power of two; 0 before the first frame and after the last ACK
    u32 room                # hop records a memory has space for
    u32 slot_bytes          # of a memory with that space
    u32 first               # memories before this frame's may have been given to others
    u32 n_seen
    HopRecord* seen         # those of the last frame that congestion control looked at


cdef inline void note_hop(HopRecord* record, u32 port, i64 time_ps, i64 tx_bytes, i64 queued_bytes) noexcept nogil:
    record.time_ps = time_ps
    record.counts = <u64>tx_bytes << 16 | <u64>queued_bytes >> 32
    record.queued_low = <u32>queued_bytes
    record.port = port


cdef inline i64 hop_sent(const HopRecord* record) noexcept nogil:
    """Wire bytes that the port had begun to send before, as far as 48 bits tell."""
    return <i64>(record.counts >> 16)


cdef inline i64 hop_queued(const HopRecord* record) noexcept nogil:
    """Bytes in all queues of the port, without the frame."""
    return <i64>((record.counts & 0xFFFF) << 32 | record.queued_low)


cdef inline i64 sent_between(const HopRecord* then, const HopRecord* now) noexcept nogil:
    """Wire bytes that a port began to send from one record to the next, fewer than 2^48."""
    return <i64>((now.counts >> 16) - (then.counts >> 16) & SENT_MASK)


cdef inline u64 memory_bytes(u32 room) noexcept nogil:
    """Of three hops: two memories are three cache lines."""
    return sizeof(FrameMemory) + (<u64>room * sizeof(HopRecord) + 15 & ~<u64>15)


cdef inline FrameMemory* log_slot(const FrameLog* log, u32 sequence) noexcept nogil:
    return <FrameMemory*>(log.slots + <u64>(sequence & (log.capacity - 1)) * log.slot_bytes)


cdef inline HopRecord* hop_records(FrameMemory* memory) noexcept nogil:
    return <HopRecord*>(memory + 1)


cdef inline bint log_resize(FrameLog* log, u32 capacity, u32 room) noexcept nogil:
    """Moves all memories to a ring of another shape, not smaller; False, and nothing changed, without memory."""
    cdef FrameLog bigger = log[0]
    cdef FrameMemory* memory
    cdef u32 k
    bigger.slots = <u8*>aligned_alloc(CACHE_LINE_BYTES, <u64>capacity * memory_bytes(room))
    if bigger.slots == NULL:
        return False
    bigger.capacity = capacity
    bigger.room = room
    bigger.slot_bytes = <u32>memory_bytes(room)
    for k in range(capacity):
        log_slot(&bigger, k).sequence = ~k      # of another slot: holds nothing
    for k in range(log.capacity):
        memory = log_slot(log, k)
        if memory.sequence & (log.capacity - 1) == k:
            memcpy(log_slot(&bigger, memory.sequence), memory, log.slot_bytes)
    free(log.slots)
    log[0] = bigger
    return True


cdef inline bint log_open(FrameLog* log, u32 acked, u32 sequence, bint with_hops) noexcept nogil:
    """Makes room for one more frame in flight; False without memory."""
    log.first = acked
    if log.capacity == 0:
        return log_resize(log, LOG_FIRST_FRAMES, LOG_FIRST_HOPS if with_hops else 0)
    if sequence - acked >= log.capacity:
        return log_resize(log, 2 * log.capacity, log.room)
    return True


cdef inline bint log_keep(FrameLog* log, FrameMemory* memory, u32 hops) noexcept nogil:
    """Keeps a memory's hop records as those seen last; False without memory."""
    cdef HopRecord* seen
    if hops != log.n_seen:
        seen = <HopRecord*>malloc(<u64>hops * sizeof(HopRecord))
        if seen == NULL:
            return False
        free(log.seen)
        log.seen = seen
        log.n_seen = hops
    memcpy(log.seen, hop_records(memory), hops * sizeof(HopRecord))
    return True


cdef inline void log_free(FrameLog* log) noexcept nogil:
    free(log.slots)
    free(log.seen)
    log.slots = NULL
    log.seen = NULL
    log.capacity = 0
    log.room = 0
    log.slot_bytes = 0
    log.n_seen = 0
