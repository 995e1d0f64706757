# What a flow's sender remembers of its frames in flight: when each left, and what switches saw.
#
# One memory a frame, in a ring that is indexed by frame number and grown to hold all from the first
# that is not acknowledged to the last that was sent. A memory has room for so many hops as the longest
# path so far has needed. It is what a frame would carry in its header, and an ACK back; kept here, a
# frame stays 32 bytes, and flows that look at no memories have none. A frame is remembered when it is
# sent for the first time, so a memory belongs to one frame on the wire.

from libc.stdlib cimport free
from libc.string cimport memcpy

from fabric.engine.types cimport i64, u8, u32, u64

cdef enum:
    LOG_FIRST_FRAMES = 16
    LOG_FIRST_HOPS = 3
    CACHE_LINE_BYTES = 64

cdef extern from "<stdlib.h>":
    void* aligned_alloc(size_t, size_t) noexcept nogil

cdef struct HopRecord:      # at a switch port, when the frame began to leave
    i64 time_ps
    i64 tx_bytes            # wire bytes that the port had begun to send before
    i64 queue_bytes         # in all queues of the port, without the frame
    u32 port
    u32 spare

cdef struct FrameMemory:    # followed by `FrameLog.room` hop records
    i64 sent_ps
    u32 sequence
    u32 further_hops        # beyond those that the frame itself counts
    u64 unused[2]           # so that two hop records share a cache line and none has two

cdef struct FrameLog:
    u8* slots
    u32 capacity            # a power of two; 0 before the first frame and after the last ACK
    u32 room                # hop records a memory has space for
    u32 slot_bytes          # of a memory with that space
    u32 first               # memories before this frame's may have been given to others
    u32 n_seen
    HopRecord* seen         # those of the last frame that congestion control looked at


cdef inline u64 memory_bytes(u32 room) noexcept nogil:
    return (sizeof(FrameMemory) + <u64>room * sizeof(HopRecord) + CACHE_LINE_BYTES - 1) & ~<u64>(CACHE_LINE_BYTES - 1)


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


cdef inline bint log_open(FrameLog* log, u32 acked, u32 sequence) noexcept nogil:
    """Makes room for one more frame in flight; False without memory."""
    log.first = acked
    if log.capacity == 0:
        return log_resize(log, LOG_FIRST_FRAMES, LOG_FIRST_HOPS)
    if sequence - acked >= log.capacity:
        return log_resize(log, 2 * log.capacity, log.room)
    return True


cdef inline bint log_keep(FrameLog* log, FrameMemory* memory, u32 hops) noexcept nogil:
    """Keeps a memory's hop records as those seen last; False without memory."""
    cdef HopRecord* seen
    if hops != log.n_seen:
        seen = <HopRecord*>aligned_alloc(CACHE_LINE_BYTES, memory_bytes(hops))
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
