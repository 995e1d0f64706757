# The receiving end of a flow: order, acknowledgements, and news of congestion.
#
# Go-back-N: only the next frame in order counts. A gap is answered by one NACK per expected frame (and
# again when the sender is seen to have started over, or after an interval), a repeated frame by an ACK
# of what is there. Marked frames turn into CNPs, at most one an interval and flow, or into an echo in
# the next ACK or NACK.

from fabric.engine.flow cimport Receiver
from fabric.engine.link cimport announce, begin_frame
from fabric.engine.nic cimport free_for_control, nic_advance, nic_try, queue_control
from fabric.engine.node cimport Node
from fabric.engine.packet cimport ACK, CNP, NACK, SPARE_STAMPED, Packet
from fabric.engine.port cimport Port
from fabric.engine.profile cimport FEEDBACK_CNP, FEEDBACK_ECHO, TransportProfile
from fabric.engine.sender cimport ON_DELIVERED, release_dependents
from fabric.engine.types cimport i64, likely, u8, u16, u32, unlikely
from fabric.engine.world cimport World

cdef enum:
    NO_ANSWER = 0xFF


cdef inline void receiver_start(World* w, Receiver* r, u32 flow) noexcept nogil:
    r.alive = 1
    r.frames = w.flow_frames[flow]
    r.source = w.flow_source[flow]
    r.path_hash = w.flow_hash[flow]
    r.transport = w.flow_transport[flow]


cdef inline void answer(
    World* w, Node* n, u32 port, const Receiver* r, u32 flow, u8 kind, u32 sequence, u8 mark, u8 spare, i64 time_ps
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
    frame.path_hash = r.path_hash
    frame.ingress = 0
    frame.kind = kind
    frame.traffic_class = c
    frame.mark = mark
    frame.spare = spare
    if at_once:
        announce(w, p, frame, time_ps)
    else:
        nic_try(w, n, port, p, time_ps)


cdef inline bint nack_due(const Receiver* r, const TransportProfile* p, u32 sequence, i64 time_ps) noexcept nogil:
    """Whether a frame beyond the expected one is answered."""
    if not p.nack_enabled:
        return False
    if r.nacked_for != r.expected + 1:
        return True
    if p.nack_on_rewind and sequence <= r.last_out_of_order:
        return True
    return p.nack_interval_ps > 0 and time_ps - r.last_nack_ps >= p.nack_interval_ps


cdef inline u8 take_in_order(World* w, Receiver* r, u32 flow, const TransportProfile* p, i64 time_ps) noexcept nogil:
    """The expected frame is here: the kind of answer it gets."""
    r.expected += 1
    if unlikely(r.expected == r.frames):
        w.flow_delivered_ps[flow] = time_ps
        w.delivered_flows += 1
        release_dependents(w, flow, ON_DELIVERED, time_ps)
        return ACK
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


cdef inline void on_data(World* w, Node* n, u32 port, const Packet* frame, i64 time_ps) noexcept nogil:
    """A data frame has arrived at a host port."""
    cdef u32 flow = frame.flow
    cdef Receiver* r = &w.receivers[flow]
    cdef const TransportProfile* p
    cdef u8 kind, logged = 0
    if unlikely(not r.alive):
        receiver_start(w, r, flow)
    p = &w.transports[r.transport]
    nic_advance(w, n, port, &w.ports[port], time_ps)
    if likely(frame.sequence == r.expected):
        kind = take_in_order(w, r, flow, p, time_ps)
        logged = frame.spare & ~SPARE_STAMPED
    elif frame.sequence > r.expected:
        kind = take_out_of_order(r, p, frame.sequence, time_ps)
    else:
        kind = ACK if p.ack_duplicates else NO_ANSWER
    if frame.mark:
        r.marked += 1
        if p.feedback == FEEDBACK_ECHO:
            r.mark_to_echo = 1
        elif p.feedback == FEEDBACK_CNP and (r.cnps == 0 or time_ps - r.last_cnp_ps >= p.cnp_interval_ps):
            r.cnps += 1
            r.last_cnp_ps = time_ps
            answer(w, n, port, r, flow, CNP, 0, 0, 0, time_ps)
    if kind != NO_ANSWER:
        answer(w, n, port, r, flow, kind, r.expected, r.mark_to_echo, logged, time_ps)
        r.mark_to_echo = 0
