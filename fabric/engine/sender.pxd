# The sending end of a flow: acknowledgements, go-back-N, time-out, what follows when it or a message ends.
# Selective repeat has its own idea of what to send next (`selective.pxd`).
#
# ACKs and NACKs are cumulative. A NACK rewinds to what it asks for; so does the retransmission time-out,
# which counts from the last progress and needs something outstanding. Its timer is lazy: it is set once
# and, when it expires early, set again for where the time-out has moved.

from fabric.engine.congestion cimport congestion_catch_up, hear_acknowledgement, hear_cnp
from fabric.engine.flow cimport (
    CC_MOVED,
    SENDER_COMPLETE,
    SENDER_CONNECTION,
    SENDER_LISTENS,
    SENDER_LOGS,
    SENDER_READY,
    SENDER_RTO_ARMED,
    SENDER_SELECTIVE,
    Sender,
)
from fabric.engine.frame_log cimport log_free
from fabric.engine.message cimport Connection, Message, find_message, message_slot
from fabric.engine.nic cimport arm_rto, leave_ready, make_ready, sendable
from fabric.engine.node cimport Node
from fabric.engine.packet cimport CNP, NACK, Packet, marked
from fabric.engine.port cimport Port
from fabric.engine.profile cimport CONGESTION_HPCC
from fabric.engine.rng cimport entropy_hash
from fabric.engine.selective cimport selective_news, selective_timeout
from fabric.engine.start cimport ON_COMPLETE, release_dependents, release_elsewhere
from fabric.engine.turns cimport host_advance, host_try, wake_earlier
from fabric.engine.types cimport i64, u32, unlikely
from fabric.engine.walker cimport advance_ports, on_acknowledged, try_ports
from fabric.engine.world cimport World, check


cdef inline void complete(World* w, u32 flow, Sender* s, i64 time_ps) noexcept nogil:
    """The last frame has been acknowledged."""
    if s.flags & SENDER_READY and w.turn_ports == NULL:
        leave_ready(w, flow, s)
    if unlikely(s.flags & SENDER_LOGS != 0):
        log_free(&w.logs[flow])
    s.flags |= SENDER_COMPLETE
    w.flow_completed_ps[flow] = time_ps
    w.completed_flows += 1
    release_dependents(w, flow, ON_COMPLETE, time_ps)
    if unlikely(w.waits_elsewhere):
        release_elsewhere(w, flow, time_ps)
    if unlikely(w.turn_ports != NULL):
        host_try(w, &w.nodes[w.flow_source[flow]], s.port, &w.ports[s.port], time_ps)


cdef inline void settle_ready(World* w, u32 flow, Sender* s, i64 time_ps) noexcept nogil:
    """Whether and when a flow may send can have changed, either way: a window can shrink with its rate, and all
    that a connection was to send again can have been acknowledged."""
    if unlikely(s.flags & (SENDER_LISTENS | SENDER_SELECTIVE | SENDER_CONNECTION)) and s.flags & SENDER_READY and w.turn_ports == NULL:
        if s.cc_flags & CC_MOVED or not sendable(s):
            leave_ready(w, flow, s)
    s.cc_flags &= ~CC_MOVED
    make_ready(w, flow, s, time_ps)


cdef inline void on_cnp(World* w, Node* n, u32 flow, Sender* s, Port* p, i64 time_ps) noexcept nogil:
    hear_cnp(w, flow, s, time_ps)
    if unlikely(s.flags & SENDER_LISTENS != 0 or w.turn_ports != NULL):
        settle_ready(w, flow, s, time_ps)
        host_try(w, n, s.port, p, time_ps)


cdef inline void act_on_news(
    World* w, Node* n, u32 flow, Sender* s, Port* p, const Packet* frame, u32 acknowledged, i64 time_ps
) noexcept nogil:
    """An ACK or NACK that does not end the flow has been taken: congestion control, and what may now be sent."""
    check(w, s.acked <= s.next and s.next <= s.high and (s.high <= s.frames or s.flags & SENDER_CONNECTION))
    if unlikely(marked(frame) | (s.flags & SENDER_LISTENS)):
        hear_acknowledgement(w, flow, s, frame, acknowledged, time_ps)
        if w.turn_ports != NULL and w.transports[s.transport].congestion == CONGESTION_HPCC:
            wake_earlier(w, s, time_ps)
    settle_ready(w, flow, s, time_ps)
    host_try(w, n, s.port, p, time_ps)


cdef inline u32 go_back_news(Sender* s, const Packet* frame, i64 time_ps) noexcept nogil:
    """An ACK or NACK says what has arrived, a NACK that the rest has not; how many frames are news."""
    cdef u32 acknowledged = 0
    if frame.sequence > s.acked:
        acknowledged = frame.sequence - s.acked
        s.acked = frame.sequence
        s.progress_ps = time_ps
        if s.next < s.acked:
            s.next = s.acked
    if frame.kind == NACK:
        s.next = s.acked
        s.progress_ps = time_ps
    return acknowledged


cdef inline void take_acknowledged(World* w, Node* n, u32 flow, const Sender* s, Connection* c, i64 time_ps) noexcept nogil:
    """Lets the messages of a connection be done that have been acknowledged in full."""
    cdef Message message
    while c.head != c.tail and message_slot(c, c.head).end <= s.acked:
        message = message_slot(c, c.head)[0]
        c.head += 1
        w.flow_completed_ps[flow] = time_ps
        on_acknowledged(w, n, flow - w.first_connection, &message, time_ps)
    try_ports(w, n, time_ps)


cdef inline void on_special_feedback(World* w, Node* n, u32 flow, Sender* s, Port* p, const Packet* frame, i64 time_ps) noexcept nogil:
    """An ACK, NACK or CNP of a flow with selective repeat, or of a connection, which is never complete."""
    cdef Connection* c = NULL
    cdef bint ends = False
    cdef u32 acked = s.acked, next_frame
    if s.flags & SENDER_CONNECTION:
        c = &w.connections[flow - w.first_connection]
        ends = frame.kind != CNP and c.head != c.tail and frame.sequence >= message_slot(c, c.head).end
    if ends:
        advance_ports(w, n, time_ps)
    else:
        host_advance(w, n, s.port, p, time_ps)
    if frame.kind == CNP:
        on_cnp(w, n, flow, s, p, time_ps)
        return
    next_frame = s.next
    if s.flags & SENDER_SELECTIVE:
        selective_news(w, flow, s, frame, time_ps)
    else:
        go_back_news(s, frame, time_ps)
    if c != NULL:
        if s.next != next_frame:
            find_message(c, s)
    elif s.acked == s.frames:
        complete(w, flow, s, time_ps)
        return
    act_on_news(w, n, flow, s, p, frame, s.acked - acked, time_ps)
    if ends:
        take_acknowledged(w, n, flow, s, c, time_ps)


cdef inline void on_feedback(World* w, Node* n, const Packet* frame, i64 time_ps) noexcept nogil:
    """An ACK, NACK or CNP has arrived."""
    cdef u32 flow = frame.flow
    cdef Sender* s = &w.senders[flow]
    cdef Port* p = &w.ports[s.port]
    cdef u32 acknowledged
    if unlikely(s.flags & (SENDER_COMPLETE | SENDER_SELECTIVE | SENDER_CONNECTION)):
        if not s.flags & SENDER_COMPLETE:
            on_special_feedback(w, n, flow, s, p, frame, time_ps)
        return
    host_advance(w, n, s.port, p, time_ps)
    if frame.kind == CNP:
        on_cnp(w, n, flow, s, p, time_ps)
        return
    acknowledged = go_back_news(s, frame, time_ps)
    if acknowledged and s.acked == s.frames:
        complete(w, flow, s, time_ps)
        return
    act_on_news(w, n, flow, s, p, frame, acknowledged, time_ps)


cdef inline void on_rto_timer(World* w, Node* n, u32 flow, i64 time_ps) noexcept nogil:
    """The retransmission timer of a flow has expired; the time-out may have moved on since it was set."""
    cdef Sender* s = &w.senders[flow]
    cdef Port* p = &w.ports[s.port]
    cdef i64 deadline_ps
    if not s.flags & SENDER_COMPLETE:
        host_advance(w, n, s.port, p, time_ps)
    s.flags &= ~SENDER_RTO_ARMED
    if s.flags & SENDER_COMPLETE or s.next == s.acked:
        return
    deadline_ps = s.progress_ps + w.transports[s.transport].rto_ps
    if deadline_ps > time_ps:
        arm_rto(w, n, flow, s, s.progress_ps)
        return
    s.timeouts += 1
    if s.flags & SENDER_SELECTIVE:
        selective_timeout(&w.selective[flow], s)
    s.next = s.acked
    s.progress_ps = time_ps
    if w.transports[s.transport].repath:
        s.path_hash = entropy_hash(s.path_hash, 1)
    if s.flags & SENDER_CONNECTION:
        find_message(&w.connections[flow - w.first_connection], s)
    if unlikely(s.flags & SENDER_LISTENS != 0):
        congestion_catch_up(w, flow, s, time_ps)
    settle_ready(w, flow, s, time_ps)
    host_try(w, n, s.port, p, time_ps)
