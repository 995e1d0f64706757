# The sending end of a flow: start, acknowledgements, go-back-N, time-out, what follows when it ends.
# Selective repeat has its own idea of what to send next (`selective.pxd`).
#
# ACKs and NACKs are cumulative. A NACK rewinds to what it asks for; so does the retransmission time-out,
# which counts from the last progress and needs something outstanding. Its timer is lazy: it is set once
# and, when it expires early, set again for where the time-out has moved.

from fabric.engine.congestion cimport congestion_catch_up, congestion_start, hear_acknowledgement, hear_cnp
from fabric.engine.elsewhere cimport ON_COMPLETE_ELSEWHERE, list_append
from fabric.engine.flow cimport (
    CC_MOVED,
    SENDER_COMPLETE,
    SENDER_LISTENS,
    SENDER_LOGS,
    SENDER_READY,
    SENDER_RTO_ARMED,
    SENDER_SELECTIVE,
    SENDER_SPREADS,
    SENDER_STARTED,
    Sender,
)
from fabric.engine.frame_log cimport log_free
from fabric.engine.link cimport START_PHASE_PS
from fabric.engine.nic cimport arm_rto, leave_ready, make_ready, sendable
from fabric.engine.node cimport TIMER_FLOW_START, Node, timer_push
from fabric.engine.pace cimport line_rate
from fabric.engine.packet cimport CNP, NACK, Packet, marked
from fabric.engine.port cimport Port
from fabric.engine.profile cimport CONGESTION_HPCC
from fabric.engine.recorder cimport FLOW_RECORD_RATE, record_rate
from fabric.engine.selective cimport selective_news, selective_timeout
from fabric.engine.turns cimport host_advance, host_try, turns_join, wake_earlier
from fabric.engine.types cimport i64, later, u8, u16, u32, unlikely
from fabric.engine.world cimport ERROR_MEMORY, World, check

cdef enum DependencyOn:
    ON_DELIVERED = 0
    ON_COMPLETE = 1


cdef inline void schedule_start(World* w, u32 flow, i64 time_ps) noexcept nogil:
    """Sets the timer that starts a flow, at the node that sends it."""
    cdef Node* n = &w.nodes[w.flow_source[flow]]
    time_ps += START_PHASE_PS if w.ties_by_start else 0
    if not timer_push(n, time_ps, TIMER_FLOW_START, flow):
        w.error = ERROR_MEMORY
    if time_ps < w.wakes[n.first_wake].due_ps:
        w.wakes[n.first_wake].due_ps = time_ps


cdef inline void release_dependents(World* w, u32 flow, u8 event, i64 time_ps) noexcept nogil:
    """A flow has been delivered, or has completed: the flows that wait for that may be due."""
    cdef u32 k, dependent
    cdef i64 ready_ps
    for k in range(w.dep_base[flow], w.dep_base[flow + 1]):
        if w.dep_on[k] != event:
            continue
        dependent = w.dep_flow[k]
        ready_ps = time_ps + w.dep_delay_ps[k]
        if ready_ps > w.flow_ready_ps[dependent]:
            w.flow_ready_ps[dependent] = ready_ps
        w.flow_waits[dependent] -= 1
        if w.flow_waits[dependent] == 0:
            schedule_start(w, dependent, w.flow_ready_ps[dependent])


cdef inline void release_elsewhere(World* w, u32 flow, i64 time_ps) noexcept nogil:
    """A flow has completed: flows of other hosts that wait for that may be due, at once."""
    cdef u32 k, dependent
    for k in range(w.dep_base[flow], w.dep_base[flow + 1]):
        if w.dep_on[k] != ON_COMPLETE_ELSEWHERE:
            continue
        dependent = w.dep_flow[k]
        w.flow_ready_ps[dependent] = later(w.flow_ready_ps[dependent], time_ps)
        w.flow_waits[dependent] -= 1
        if w.flow_waits[dependent]:
            continue
        if w.flow_ready_ps[dependent] > time_ps or w.ties_by_start:
            schedule_start(w, dependent, w.flow_ready_ps[dependent])
        else:
            list_append(w, &w.due_elsewhere, dependent)


cdef inline void start_flow(World* w, Node* n, u32 flow, i64 time_ps) noexcept nogil:
    cdef Sender* s = &w.senders[flow]
    cdef u32 port = w.flow_port[flow]
    cdef Port* p = &w.ports[port]
    host_advance(w, n, port, p, time_ps)
    s.frames = w.flow_frames[flow]
    s.last_frame_bytes = <u16>w.flow_last_frame_bytes[flow]
    s.destination = w.flow_destination[flow]
    s.path_hash = w.flow_hash[flow]
    s.port = port
    s.transport = w.flow_transport[flow]
    s.window_frames = w.transports[s.transport].window_frames
    s.traffic_class = w.flow_class[flow]
    s.record = w.flow_record[flow]
    s.progress_ps = time_ps
    s.flags = SENDER_STARTED
    congestion_start(w, s)
    if w.transports[s.transport].selective:
        s.flags |= SENDER_SELECTIVE
    if w.transports[s.transport].path_mode:
        s.flags |= SENDER_SPREADS
    w.flow_started_ps[flow] = time_ps - (START_PHASE_PS if w.ties_by_start else 0)
    if s.record & FLOW_RECORD_RATE:
        record_rate(w, flow, time_ps, line_rate(w, s), s.window_frames)
    if unlikely(w.turn_ports != NULL):
        turns_join(w, flow, s)
    make_ready(w, flow, s, time_ps)
    host_try(w, n, port, p, time_ps)


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
    """Whether and when a flow may send can have changed, either way: a window can shrink with its rate."""
    if unlikely(s.flags & (SENDER_LISTENS | SENDER_SELECTIVE)) and s.flags & SENDER_READY and w.turn_ports == NULL:
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
    check(w, s.acked <= s.next and s.next <= s.high and s.high <= s.frames)
    if unlikely(marked(frame) | (s.flags & SENDER_LISTENS)):
        hear_acknowledgement(w, flow, s, frame, acknowledged, time_ps)
        if w.turn_ports != NULL and w.transports[s.transport].congestion == CONGESTION_HPCC:
            wake_earlier(w, s, time_ps)
    settle_ready(w, flow, s, time_ps)
    host_try(w, n, s.port, p, time_ps)


cdef inline void on_selective_feedback(World* w, Node* n, u32 flow, Sender* s, Port* p, const Packet* frame, i64 time_ps) noexcept nogil:
    """An ACK, NACK or CNP of a flow with selective repeat."""
    cdef u32 before
    host_advance(w, n, s.port, p, time_ps)
    if frame.kind == CNP:
        on_cnp(w, n, flow, s, p, time_ps)
        return
    before = s.acked
    selective_news(w, flow, s, frame, time_ps)
    if s.acked == s.frames:
        complete(w, flow, s, time_ps)
    else:
        act_on_news(w, n, flow, s, p, frame, s.acked - before, time_ps)


cdef inline void on_feedback(World* w, Node* n, const Packet* frame, i64 time_ps) noexcept nogil:
    """An ACK, NACK or CNP has arrived."""
    cdef u32 flow = frame.flow
    cdef Sender* s = &w.senders[flow]
    cdef Port* p = &w.ports[s.port]
    cdef u32 acknowledged = 0
    if unlikely(s.flags & (SENDER_COMPLETE | SENDER_SELECTIVE)):
        if not s.flags & SENDER_COMPLETE:
            on_selective_feedback(w, n, flow, s, p, frame, time_ps)
        return
    host_advance(w, n, s.port, p, time_ps)
    if frame.kind == CNP:
        on_cnp(w, n, flow, s, p, time_ps)
        return
    if frame.sequence > s.acked:
        acknowledged = frame.sequence - s.acked
        s.acked = frame.sequence
        s.progress_ps = time_ps
        if s.next < s.acked:
            s.next = s.acked
        if s.acked == s.frames:
            complete(w, flow, s, time_ps)
            return
    if frame.kind == NACK:
        s.next = s.acked
        s.progress_ps = time_ps
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
    if unlikely(s.flags & SENDER_LISTENS != 0):
        congestion_catch_up(w, flow, s, time_ps)
    settle_ready(w, flow, s, time_ps)
    host_try(w, n, s.port, p, time_ps)
