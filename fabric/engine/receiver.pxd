# The receiving end of a flow: order, acknowledgements, and news of congestion.
#
# Go-back-N: only the next frame in order counts. A gap is answered by one NACK per expected frame (and
# again when the sender is seen to have started over, or after an interval), a repeated frame by an ACK
# of what is there. Marked frames turn into CNPs, at most one an interval and flow, or into an echo in
# the next ACK or NACK. Selective repeat keeps frames beyond the expected one and reports each by a NACK,
# whose path hash says which it was; delayed ACKs have a timer. A host that changes paths by itself does so
# for its answers when frames come again (Wetherall et al., "Improving Network Availability with Protective ReRoute", SIGCOMM 2023).

from fabric.engine.elsewhere cimport watch_delivered
from fabric.engine.flow cimport RECEIVER_PLAIN, RECEIVER_SPECIAL, Reassembly, Receiver
from fabric.engine.link cimport announce, begin_frame
from fabric.engine.message cimport Connection, Message, message_slot
from fabric.engine.nic cimport free_for_control, queue_control
from fabric.engine.node cimport TIMER_ACK, Node, timer_push
from fabric.engine.packet cimport ACK, CNP, NACK, SPARE_STAMPED, Packet, marked
from fabric.engine.port cimport Port
from fabric.engine.profile cimport FEEDBACK_CNP, FEEDBACK_ECHO, TransportProfile
from fabric.engine.rng cimport entropy_hash
from fabric.engine.sequence_set cimport set_add, set_has, set_take
from fabric.engine.start cimport ON_DELIVERED, release_dependents
from fabric.engine.turns cimport host_advance, host_try
from fabric.engine.types cimport i64, likely, u8, u32, unlikely
from fabric.engine.walker cimport advance_other_ports, advance_ports, on_arrived, try_ports
from fabric.engine.world cimport ERROR_MEMORY, World

cdef enum:
    NO_ANSWER = 0xFF


cdef inline void await_message(const Connection* c, Receiver* r) noexcept nogil:
    """Learns where the message ends that the expected frame is in; frames of older ones may come before it is posted."""
    if c.arrived == c.tail:
        r.alive = RECEIVER_SPECIAL
        r.frames = r.expected
    else:
        r.frames = message_slot(c, c.arrived).end


cdef inline void receiver_start(World* w, Receiver* r, u32 flow) noexcept nogil:
    r.alive = RECEIVER_PLAIN
    r.frames = w.flow_frames[flow]
    r.source = w.flow_source[flow]
    if r.expected == 0:
        r.path_hash = w.flow_hash[flow]
    r.transport = w.flow_transport[flow]
    if w.transports[r.transport].selective or w.transports[r.transport].ack_delay_ps:
        r.alive = RECEIVER_SPECIAL
    if flow >= w.first_connection:
        await_message(&w.connections[flow - w.first_connection], r)


cdef inline void answer(
    World* w, Node* n, u32 port, const Receiver* r, u32 flow, u8 kind, u32 sequence, u8 mark, u8 spare,
    u32 path_hash, i64 time_ps
) noexcept nogil:
    """Sends a control frame back to the flow's source; it is written where it goes, not copied there."""
    cdef const TransportProfile* transport = &w.transports[r.transport]
    cdef Port* p = &w.ports[port]
    cdef u8 c = transport.control_class
    cdef bint at_once = free_for_control(w, n, p, c, time_ps)
    cdef Packet* frame
    if at_once:
        frame = begin_frame(w, p, transport.control_bytes, time_ps)
    else:
        frame = queue_control(w, p, c, transport.control_bytes, time_ps)
    frame.flow = flow
    frame.sequence = sequence
    frame.destination = r.source
    frame.path_hash = path_hash
    frame.ingress = 0
    frame.kind = kind
    frame.traffic_class = c
    frame.mark_ttl = mark | w.ttl_bits
    frame.spare = spare
    if at_once:
        announce(w, p, frame, time_ps)
    else:
        host_try(w, n, port, p, time_ps)


cdef inline bint nack_due(const Receiver* r, const TransportProfile* p, u32 sequence, i64 time_ps) noexcept nogil:
    """Whether a frame beyond the expected one is answered."""
    if not p.nack_enabled:
        return False
    if r.nacked_for != r.expected + 1:
        return True
    if p.nack_on_rewind and sequence <= r.last_out_of_order:
        return True
    return p.nack_interval_ps > 0 and time_ps - r.last_nack_ps >= p.nack_interval_ps


cdef inline u8 deliver(World* w, u32 flow, i64 time_ps) noexcept nogil:
    """Every frame is here, of the flow or of a message: the kind of answer that the last one gets."""
    if flow >= w.first_connection:
        return ACK
    w.flow_delivered_ps[flow] = time_ps
    w.delivered_flows += 1
    release_dependents(w, flow, ON_DELIVERED, time_ps)
    if unlikely(w.waits_elsewhere):
        watch_delivered(w, flow)
    return ACK


cdef inline u8 take_in_order(World* w, Receiver* r, u32 flow, const TransportProfile* p, i64 time_ps) noexcept nogil:
    """The expected frame is here: the kind of answer it gets."""
    r.expected += 1
    if unlikely(r.expected == r.frames):
        return deliver(w, flow, time_ps)
    if p.ack_every == 1 or r.expected % p.ack_every == 0:
        return ACK
    return NO_ANSWER


cdef inline u8 take_out_of_order(Receiver* r, const TransportProfile* p, u32 sequence, i64 time_ps) noexcept nogil:
    """A frame beyond the expected one is here: the kind of answer it gets."""
    cdef bint due = nack_due(r, p, sequence, time_ps)
    r.last_out_of_order = sequence
    if not due:
        return NO_ANSWER
    r.nacked_for = r.expected + 1
    r.last_nack_ps = time_ps
    r.nacks += 1
    return NACK


cdef inline u8 take_again(Receiver* r, const TransportProfile* p) noexcept nogil:
    """A frame that was here before: the kind of answer it gets. The sender did not hear the last one."""
    if p.repath:
        r.path_hash = entropy_hash(r.path_hash, 1)
    return ACK if p.ack_duplicates or p.selective else NO_ANSWER


cdef inline void report_mark(World* w, Node* n, u32 port, Receiver* r, u32 flow, const TransportProfile* p, i64 time_ps) noexcept nogil:
    """A marked frame has come: a CNP now, or an echo with the next ACK or NACK."""
    r.marked += 1
    if p.feedback == FEEDBACK_ECHO:
        r.mark_to_echo = 1
    elif p.feedback == FEEDBACK_CNP and (r.cnps == 0 or time_ps - r.last_cnp_ps >= p.cnp_interval_ps):
        r.cnps += 1
        r.last_cnp_ps = time_ps
        answer(w, n, port, r, flow, CNP, 0, 0, 0, r.path_hash, time_ps)


cdef inline u8 take_selectively(
    World* w, Receiver* r, Reassembly* x, u32 flow, const TransportProfile* p, u32 sequence, i64 time_ps
) noexcept nogil:
    """Keeps a frame wherever it belongs: the kind of answer it gets."""
    cdef u32 first = r.expected
    if sequence < r.expected:
        return take_again(r, p)
    if sequence > r.expected:
        r.nacks += 1
        if not set_has(&x.arrived, r.expected, sequence) and not set_add(&x.arrived, r.expected, sequence):
            w.error = ERROR_MEMORY
        return NACK
    r.expected += 1
    while set_take(&x.arrived, r.expected, r.expected):
        r.expected += 1
    if r.expected >= r.frames:
        return deliver(w, flow, time_ps)
    if r.expected - first > 1 or r.expected % p.ack_every == 0:
        return ACK
    return NO_ANSWER


cdef inline void put_off_answer(World* w, Node* n, u32 port, Reassembly* x, u32 flow, i64 due_ps) noexcept nogil:
    """A frame was taken without an answer: one is due at `due_ps`, unless there is one before."""
    if x.ack_due_ps:
        return
    x.ack_due_ps = due_ps
    x.ack_port = port
    if not x.timer_set:
        x.timer_set = 1
        if not timer_push(n, due_ps, TIMER_ACK, flow):
            w.error = ERROR_MEMORY


cdef inline void on_ack_timer(World* w, Node* n, u32 flow, i64 time_ps) noexcept nogil:
    """The timer of a delayed ACK has expired; the ACK may have been sent since, and another be due."""
    cdef Reassembly* x = &w.reassembly[flow]
    cdef Receiver* r = &w.receivers[flow]
    x.timer_set = 0
    if x.ack_due_ps == 0:
        return
    if x.ack_due_ps > time_ps:
        x.timer_set = 1
        if not timer_push(n, x.ack_due_ps, TIMER_ACK, flow):
            w.error = ERROR_MEMORY
        return
    x.ack_due_ps = 0
    host_advance(w, n, x.ack_port, &w.ports[x.ack_port], time_ps)
    answer(w, n, x.ack_port, r, flow, ACK, r.expected, r.mark_to_echo, 0, r.path_hash, time_ps)
    r.mark_to_echo = 0


cdef inline void take_messages(World* w, Node* n, Receiver* r, u32 flow, i64 time_ps) noexcept nogil:
    """Lets the messages that have come in full arrive."""
    cdef Connection* c = &w.connections[flow - w.first_connection]
    cdef Message message
    while c.arrived != c.tail and message_slot(c, c.arrived).end <= r.expected:
        message = message_slot(c, c.arrived)[0]
        c.arrived += 1
        r.alive = 0
        w.flow_delivered_ps[flow] = time_ps
        on_arrived(w, n, flow - w.first_connection, &message, time_ps)
    if r.alive == 0:
        try_ports(w, n, time_ps)
    if c.arrived == c.tail:
        r.alive = 0


cdef inline void on_special_data(World* w, Node* n, u32 port, Receiver* r, const Packet* frame, i64 time_ps) noexcept nogil:
    """A data frame of a flow with selective repeat or delayed ACKs; or one of a connection whose messages have all come."""
    cdef u32 flow = frame.flow, path_hash, before = r.expected
    cdef Reassembly* x = &w.reassembly[flow]
    cdef const TransportProfile* p = &w.transports[r.transport]
    cdef u8 kind, logged = 0
    if flow < w.first_connection:
        host_advance(w, n, port, &w.ports[port], time_ps)
    else:
        advance_ports(w, n, time_ps)
    if p.selective:
        kind = take_selectively(w, r, x, flow, p, frame.sequence, time_ps)
    elif frame.sequence == r.expected:
        kind = take_in_order(w, r, flow, p, time_ps)
        logged = frame.spare & ~SPARE_STAMPED
    elif frame.sequence > r.expected:
        kind = take_out_of_order(r, p, frame.sequence, time_ps)
    else:
        kind = take_again(r, p)
    if marked(frame):
        report_mark(w, n, port, r, flow, p, time_ps)
    if kind != NO_ANSWER:
        path_hash = r.path_hash
        if p.selective and kind == NACK:
            path_hash = entropy_hash(w.flow_hash[flow], frame.sequence)
        answer(w, n, port, r, flow, kind, r.expected, r.mark_to_echo, logged, path_hash, time_ps)
        r.mark_to_echo = 0
        x.ack_due_ps = 0
    elif p.ack_delay_ps and r.expected != before:
        put_off_answer(w, n, port, x, flow, time_ps + p.ack_delay_ps)
    if flow >= w.first_connection:
        take_messages(w, n, r, flow, time_ps)


cdef inline void on_data(World* w, Node* n, u32 port, const Packet* frame, i64 time_ps) noexcept nogil:
    """A data frame has arrived at a host port."""
    cdef u32 flow = frame.flow
    cdef Receiver* r = &w.receivers[flow]
    cdef const TransportProfile* p
    cdef u8 kind, logged = 0
    if unlikely(r.alive != RECEIVER_PLAIN):
        if not r.alive:
            receiver_start(w, r, flow)
        if r.alive != RECEIVER_PLAIN:
            on_special_data(w, n, port, r, frame, time_ps)
            return
    p = &w.transports[r.transport]
    host_advance(w, n, port, &w.ports[port], time_ps)
    if likely(frame.sequence == r.expected):
        kind = take_in_order(w, r, flow, p, time_ps)
        logged = frame.spare & ~SPARE_STAMPED
    elif frame.sequence > r.expected:
        kind = take_out_of_order(r, p, frame.sequence, time_ps)
    else:
        kind = take_again(r, p)
    if marked(frame):
        report_mark(w, n, port, r, flow, p, time_ps)
    if kind != NO_ANSWER:
        answer(w, n, port, r, flow, kind, r.expected, r.mark_to_echo, logged, r.path_hash, time_ps)
        r.mark_to_echo = 0
        if unlikely(r.expected == r.frames) and flow >= w.first_connection:
            advance_other_ports(w, n, port, time_ps)
            take_messages(w, n, r, flow, time_ps)
