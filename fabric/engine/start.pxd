# How flows start: at their time, and after the flows that they wait for; connections with their first message.

from fabric.engine.congestion cimport congestion_start
from fabric.engine.elsewhere cimport ON_COMPLETE_ELSEWHERE
from fabric.engine.flow cimport SENDER_CONNECTION, SENDER_SELECTIVE, SENDER_SPREADS, Sender
from fabric.engine.flow_list cimport list_append
from fabric.engine.link cimport START_PHASE_PS
from fabric.engine.nic cimport make_ready
from fabric.engine.node cimport TIMER_FLOW_START, Node, timer_push
from fabric.engine.pace cimport line_rate
from fabric.engine.port cimport Port
from fabric.engine.recorder cimport FLOW_RECORD_RATE, record_rate
from fabric.engine.turns cimport host_advance, host_try, turns_join
from fabric.engine.types cimport i64, later, u8, u16, u32, unlikely
from fabric.engine.world cimport ERROR_MEMORY, World

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
        elif not list_append(&w.due_elsewhere, dependent):
            w.error = ERROR_MEMORY


cdef inline void open_sender(World* w, u32 flow, Sender* s, i64 time_ps) noexcept nogil:
    """Brings the sending end of a flow to life."""
    s.frames = w.flow_frames[flow]
    s.last_frame_bytes = <u16>w.flow_last_frame_bytes[flow]
    s.destination = w.flow_destination[flow]
    s.path_hash = w.flow_hash[flow]
    s.port = w.flow_port[flow]
    s.transport = w.flow_transport[flow]
    s.window_frames = w.transports[s.transport].window_frames
    s.traffic_class = w.flow_class[flow]
    s.record = w.flow_record[flow]
    s.progress_ps = time_ps
    s.flags = SENDER_CONNECTION if flow >= w.first_connection else 0
    congestion_start(w, s)
    if w.transports[s.transport].selective:
        s.flags |= SENDER_SELECTIVE
    if w.transports[s.transport].path_mode:
        s.flags |= SENDER_SPREADS
    w.flow_started_ps[flow] = time_ps
    if w.ties_by_start and flow < w.first_connection:
        w.flow_started_ps[flow] -= START_PHASE_PS
    if s.record & FLOW_RECORD_RATE:
        record_rate(w, flow, time_ps, line_rate(w, s), s.window_frames)


cdef inline void start_flow(World* w, Node* n, u32 flow, i64 time_ps) noexcept nogil:
    cdef Sender* s = &w.senders[flow]
    cdef u32 port = w.flow_port[flow]
    cdef Port* p = &w.ports[port]
    host_advance(w, n, port, p, time_ps)
    open_sender(w, flow, s, time_ps)
    if unlikely(w.turn_ports != NULL):
        turns_join(w, flow, s)
    make_ready(w, flow, s, time_ps)
    host_try(w, n, port, p, time_ps)
