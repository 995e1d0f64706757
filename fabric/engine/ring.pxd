# A growing ring of frames: the FIFO of every link and every queue.
#
# Empty rings own no memory. The first push takes 4 slots, a full ring doubles: capacity is cache
# footprint, so it starts small. Counters run on and wrap; `tail - head` is the number of frames.
# When memory runs out the push goes to a scratch frame and the ring remembers: the run then ends
# with an error instead of a crash.

from libc.stdlib cimport free

from fabric.engine.packet cimport Packet
from fabric.engine.types cimport u8, u32, unlikely

cdef enum:
    RING_FIRST_SLOTS = 4

cdef struct Ring:
    Packet* slots
    u32 capacity        # a power of two; 0 before the first push
    u32 head
    u32 tail
    u32 tag             # free for the owner (a link keeps its wake bit here)


cdef extern from *:
    """
    #include <stdint.h>
    #include <stdlib.h>
    #include <string.h>
    /* Moves the slots from `head` on into twice the room; NULL, with nothing changed, without memory.
       In C for the sake of its attributes: kept out of line, it leaves the hot path its registers. */
    static void* __attribute__((noinline, cold))
    fabric_ring_double(void* slots, uint32_t capacity, uint32_t bigger, uint32_t head, size_t slot_bytes)
    {
        char* moved = (char*)malloc((size_t)bigger * slot_bytes);
        uint32_t i, position;
        if (moved == NULL) return NULL;
        for (i = 0; i < capacity; i++) {
            position = head + i;
            memcpy(moved + (size_t)(position & (bigger - 1)) * slot_bytes,
                   (char*)slots + (size_t)(position & (capacity - 1)) * slot_bytes, slot_bytes);
        }
        free(slots);
        return moved;
    }
    """
    void* ring_double "fabric_ring_double" (void*, u32, u32, u32, size_t) noexcept nogil


cdef inline bint ring_grow(Ring* ring) noexcept nogil:
    """Doubles a full ring; False when there is no memory for it."""
    cdef u32 bigger = 2 * ring.capacity if ring.capacity else RING_FIRST_SLOTS
    cdef void* slots = ring_double(ring.slots, ring.capacity, bigger, ring.head, sizeof(Packet))
    if slots == NULL:
        return False
    ring.slots = <Packet*>slots
    ring.capacity = bigger
    return True


cdef inline Packet* ring_slot(const Ring* ring, u32 position) noexcept nogil:
    """Where the frame at a running position lies."""
    return &ring.slots[position & (ring.capacity - 1)]


cdef inline bint ring_full(const Ring* ring) noexcept nogil:
    return ring.tail - ring.head == ring.capacity


cdef inline Packet* ring_push(Ring* ring, Packet* scratch, u8* out_of_memory) noexcept nogil:
    """The slot for one more frame; the caller fills it."""
    cdef Packet* slot
    if unlikely(ring_full(ring)):
        if not ring_grow(ring):
            out_of_memory[0] = 1
            return scratch
    slot = ring_slot(ring, ring.tail)
    ring.tail += 1
    return slot


cdef inline bint ring_empty(const Ring* ring) noexcept nogil:
    return ring.head == ring.tail


cdef inline Packet* ring_front(const Ring* ring) noexcept nogil:
    return ring_slot(ring, ring.head)


cdef inline void ring_pop(Ring* ring) noexcept nogil:
    ring.head += 1


cdef inline void ring_pop_queue(Ring* ring) noexcept nogil:
    """Pops, and starts over at the first slot when that empties the ring: a short queue stays in one line."""
    cdef u32 head = ring.head + 1
    cdef u32 still = 0 - <u32>(head != ring.tail)       # all ones, or 0 where nothing is left: no branch
    ring.head = head & still
    ring.tail &= still


cdef inline void ring_free(Ring* ring) noexcept nogil:
    free(ring.slots)
    ring.slots = NULL
