# Selective repeat at the sender: what has arrived, what is lost, what to send next.
#
# Every frame that comes out of order is reported by itself. A frame is lost when one at least
# `reorder_frames` beyond it has arrived: late frames of a longer path are given that much time. A frame
# that was sent again counts from the newest frame of that moment, so a second loss is seen as the first
# was. What no later frame can tell (the tail of a message) the time-out does: then everything not known to
# have arrived is lost. After IRN (Mittal et al., SIGCOMM 2018), with a distance where it has 1.
#
# Both ways to be lost are monotone: first sendings in the order of numbers (`scan`, `limit`), repeated
# ones in the order in which they were sent (`resent`). So each frame is looked at once per sending.

from libc.stdlib cimport malloc, free

from fabric.engine.flow cimport Resent, Selective, Sender
from fabric.engine.packet cimport NACK, Packet
from fabric.engine.rng cimport entropy_number
from fabric.engine.sequence_set cimport set_add, set_has, set_take
from fabric.engine.types cimport i64, u32, u64
from fabric.engine.world cimport ERROR_MEMORY, World

cdef enum:
    FIRST_RESENT = 16


cdef inline u32 next_to_send(Selective* x, const Sender* s, u32 reorder_frames) noexcept nogil:
    """The frame to send next: one that was lost again, else one that was lost, else the first new one."""
    cdef const Resent* again
    while x.resent_head != x.resent_tail:
        again = &x.resent[x.resent_head & (x.resent_capacity - 1)]
        if again.frame >= s.acked and not set_has(&x.arrived, s.acked, again.frame):
            if <u64>x.top >= <u64>again.base + reorder_frames:
                return again.frame
            break
        x.resent_head += 1
    if x.scan < s.acked:
        x.scan = s.acked
    while x.scan < x.limit:
        if not set_has(&x.arrived, s.acked, x.scan):
            return x.scan
        x.scan += 1
    return s.high


cdef inline bint note_resent(Selective* x, u32 frame, u32 base) noexcept nogil:
    """Remembers that a frame was sent again; False without memory."""
    cdef Resent* moved
    cdef u32 k, capacity
    if x.resent_tail - x.resent_head == x.resent_capacity:
        capacity = 2 * x.resent_capacity if x.resent_capacity else FIRST_RESENT
        moved = <Resent*>malloc(<u64>capacity * sizeof(Resent))
        if moved == NULL:
            return False
        for k in range(x.resent_capacity):
            moved[(x.resent_head + k) & (capacity - 1)] = x.resent[(x.resent_head + k) & (x.resent_capacity - 1)]
        free(x.resent)
        x.resent = moved
        x.resent_capacity = capacity
    x.resent[x.resent_tail & (x.resent_capacity - 1)].frame = frame
    x.resent[x.resent_tail & (x.resent_capacity - 1)].base = base
    x.resent_tail += 1
    return True


cdef inline void selective_sent(World* w, u32 flow, Sender* s) noexcept nogil:
    """Frame `next` has been sent: counts it, and finds the one after it."""
    cdef Selective* x = &w.selective[flow]
    if s.next == s.high:
        s.high += 1
    else:
        s.retransmitted += 1
        if x.resent_head != x.resent_tail and x.resent[x.resent_head & (x.resent_capacity - 1)].frame == s.next:
            x.resent_head += 1
        else:
            x.scan = s.next + 1
        if not note_resent(x, s.next, s.high):
            w.error = ERROR_MEMORY
    s.next = next_to_send(x, s, w.transports[s.transport].reorder_frames)


cdef inline void selective_news(World* w, u32 flow, Sender* s, const Packet* frame, i64 time_ps) noexcept nogil:
    """An ACK or a NACK says what has arrived."""
    cdef Selective* x = &w.selective[flow]
    cdef u32 number, reorder_frames = w.transports[s.transport].reorder_frames
    if frame.sequence > s.acked:
        for number in range(s.acked, frame.sequence):
            if x.arrived.count == 0:
                break
            set_take(&x.arrived, s.acked, number)
        s.acked = frame.sequence
        s.progress_ps = time_ps
        if x.top < s.acked:
            x.top = s.acked
    if frame.kind == NACK:
        number = entropy_number(w.flow_hash[flow], frame.path_hash)
        if number >= s.acked and not set_has(&x.arrived, s.acked, number):
            if not set_add(&x.arrived, s.acked, number):
                w.error = ERROR_MEMORY
            s.progress_ps = time_ps
            if x.top < number + 1:
                x.top = number + 1
    if x.top > reorder_frames and x.limit < x.top - reorder_frames:
        x.limit = x.top - reorder_frames
    s.next = next_to_send(x, s, reorder_frames)


cdef inline void selective_timeout(Selective* x, const Sender* s) noexcept nogil:
    """Everything that is not known to have arrived is lost."""
    x.resent_head = x.resent_tail
    x.scan = s.acked
    x.limit = s.high
