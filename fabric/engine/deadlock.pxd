# What the search for deadlocks keeps: a run's settings, scratch, and the deadlocks that it has found.
#
# `detection.pxd` fills it. `DeadlockChannel` and `DeadlockFrame` have the memory layout of the NumPy
# records of their names in `fabric.lowered` (aligned).

from libc.stdlib cimport free, realloc

from fabric.engine.types cimport i64, u8, u16, u32, u64

cdef enum DeadlockMode:
    DEADLOCK_OFF = 0
    DEADLOCK_REPORT = 1
    DEADLOCK_STOP = 2

cdef enum:
    LOOKAHEADS_A_LOOK = 64      # from one look to the next
    SOMETHING_HAPPENED = 0xFFFFFFFF

cdef struct DeadlockChannel:    # a (link, class) that never sends again, at the instant at which the deadlock forms
    i64 formed_ps
    i64 broken_ps               # somebody let frames of it go, or lose them; -1: it stands
    i64 since_ps                # the PAUSE took effect
    i64 bytes                   # of the class that wait for the link
    u32 deadlock
    u32 port                    # that sends on the link
    u32 frames
    u32 cause_flow              # its frame made the far end send the PAUSE
    u8 traffic_class

cdef struct DeadlockFrame:      # a frame that waits for such a channel
    i64 since_ps
    u32 deadlock
    u32 port
    u32 ingress                 # global port at which it came in
    u32 flow
    u32 sequence
    u32 destination
    u16 size_bytes
    u8 traffic_class
    u8 kind
    u8 ttl

cdef struct Deadlocks:
    u8 mode
    i64 until_ps                # end of the whole run
    i64 lookahead_ps            # the smallest delay of any link
    i64 interval_ps             # from one look to the next
    i64 stop_ps                 # a run that a deadlock stops ends here; NEVER: none does
    i64 longest_wire_ps         # that a frame can be on a link, from the start of its transmission
    i64 quiet_ps                # until then, a look may find more even if nothing happens
    u64 looked_hops             # arrivals up to the last look (SOMETHING_HAPPENED: a pause has begun since)
    u32 largest_frame_bytes     # of the run
    u32 paused_links            # (port, class) pairs between switches that are paused
    u32 count                   # deadlocks found
    u32 standing                # of them, those that are not broken
    u32* caught                 # by pair: 1 + the standing deadlock that it belongs to
    u8* waits                   # by pair: it is in the set that is being looked for
    i64* kept                   # by pair: bytes of an ingress that wait for the set
    i64* pooled                 # by node: what these occupy of the pool at least
    u32* members                # pairs that may be in the set
    u32 n_members
    u32 most_members
    DeadlockChannel* channels
    u64 n_channels
    u64 most_channels
    DeadlockFrame* frames
    u64 n_frames
    u64 most_frames


cdef inline void* room_for_one(void* rows, u64 count, u64* most, size_t row_bytes) noexcept nogil:
    """The rows with room for one more; NULL, and the rows as they were, without memory."""
    cdef u64 capacity = 2 * most[0] if most[0] else 64
    cdef void* grown
    if count < most[0]:
        return rows
    grown = realloc(rows, capacity * row_bytes)
    if grown != NULL:
        most[0] = capacity
    return grown


cdef inline void free_deadlocks(Deadlocks* d) noexcept nogil:
    free(d.caught)
    free(d.waits)
    free(d.kept)
    free(d.pooled)
    free(d.members)
    free(d.channels)
    free(d.frames)
