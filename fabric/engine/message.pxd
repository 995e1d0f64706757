# Messages on a connection: a queue pair of a program of collectives.
#
# A connection is a flow whose frame numbers run on over the messages that are posted on it. Its ring holds
# those that are posted and not acknowledged; numbers of messages run on, too. The sender's `frames` and
# `last_frame_bytes` are those of the message that its next frame is in, so that a frame is sent on a
# connection as on any flow; the end of a message, and whatever moves `next` elsewhere, comes here. The
# receiver reads the same ring: what it looks for was written a link delay before it can ask.
# A local connection, between ranks of one host, uses the ring as a queue of copies.

from libc.stdlib cimport free, malloc

from fabric.engine.flow cimport Sender
from fabric.engine.types cimport i64, u16, u32

cdef enum:
    FIRST_MESSAGES = 2

cdef struct Message:
    u32 end                 # number of the first frame after it
    u32 last_frame_bytes
    u32 operation
    u32 transfer

cdef struct Connection:
    Message* ring
    u32 capacity            # a power of two, or 0
    u32 head                # the first message that is not acknowledged
    u32 tail                # the next to be posted
    u32 sending             # the one that the sender's next frame is in; `tail`: all are sent
    u32 arrived             # the first that has not arrived
    u32 frames              # of all that were posted
    i64 busy_ps             # local: when its copies are done


cdef inline Message* message_slot(const Connection* c, u32 number) noexcept nogil:
    return &c.ring[number & (c.capacity - 1)]


cdef inline bint message_push(Connection* c, const Message* message) noexcept nogil:
    """Posts a message; False without memory."""
    cdef Message* moved
    cdef u32 k, capacity
    if c.tail - c.head == c.capacity:
        capacity = 2 * c.capacity if c.capacity else FIRST_MESSAGES
        moved = <Message*>malloc(<size_t>capacity * sizeof(Message))
        if moved == NULL:
            return False
        for k in range(c.head, c.head + c.capacity):
            moved[k & (capacity - 1)] = message_slot(c, k)[0]
        free(c.ring)
        c.ring = moved
        c.capacity = capacity
    message_slot(c, c.tail)[0] = message[0]
    c.tail += 1
    return True


cdef inline void load_message(const Connection* c, Sender* s) noexcept nogil:
    """Lets the sender see the message that its next frame is in."""
    if c.sending == c.tail:
        s.frames = s.next
        return
    s.frames = message_slot(c, c.sending).end
    s.last_frame_bytes = <u16>message_slot(c, c.sending).last_frame_bytes


cdef inline bint next_message(Connection* c, Sender* s) noexcept nogil:
    """The last frame of a message has been sent: whether there is another one to go on with."""
    if c.sending != c.tail:
        c.sending += 1
        load_message(c, s)
    return s.next < s.frames


cdef inline void find_message(Connection* c, Sender* s) noexcept nogil:
    """The sender's next frame is not the one after the last."""
    c.sending = c.head
    while c.sending != c.tail and message_slot(c, c.sending).end <= s.next:
        c.sending += 1
    load_message(c, s)
