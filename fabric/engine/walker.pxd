# Walking a program: who enters what when, and which transfers that sets off (docs/design.md section 11).
#
# Everything here happens at one host, in the order of its events: the arrival of a message, an
# acknowledgement, a timer. Nothing calls itself: a task that is left sets timers for those after it, a
# copy takes a timer, and joins wait in a list that is threaded through the counters they need no more.

from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from fabric.engine.flow cimport Sender
from fabric.engine.message cimport Connection, Message, load_message, message_push, message_slot
from fabric.engine.nic cimport make_ready, nic_next_start, nic_start
from fabric.engine.node cimport TIMER_BEGIN, TIMER_COPIED, TIMER_ENTER, Node, timer_push
from fabric.engine.port cimport ODD_TURNS, Port
from fabric.engine.profile cimport TransportProfile
from fabric.engine.program cimport (
    Program,
    TaskState,
    connection_of,
    first_rank,
    operation_of,
    transfer_bytes,
)
from fabric.engine.slowness cimport compute_end_ps
from fabric.engine.start cimport open_sender
from fabric.engine.turns cimport host_advance, host_try, turns_join
from fabric.engine.types cimport i64, later, u8, u32, unlikely
from fabric.engine.world cimport ERROR_FRAMES, ERROR_MEMORY, World

cdef enum:
    MOST_FRAMES = 0xFFFFFFFF

cdef struct Visit:          # a task at one instant
    u32 operation
    u32 task
    u32 rank                # its row
    u32 first_lane          # of its pattern
    u32 end_lane
    u32 first_transfer      # of its pattern
    i64 time_ps
    TaskState* state
    u32* waits              # by transfer: what it waits for; a join that is put aside: 1 + the next such
    u32* posted             # by lane: transfers that have been posted


cdef inline void advance_ports(World* w, Node* n, i64 time_ps) noexcept nogil:
    """Before a task acts at an instant: all that the host's ports start by then."""
    cdef u32 port
    for port in range(n.port_base, n.port_base + n.n_ports):
        host_advance(w, n, port, &w.ports[port], time_ps)


cdef inline void advance_other_ports(World* w, Node* n, u32 done, i64 time_ps) noexcept nogil:
    """The same, but for a port that was advanced before the event began to act."""
    cdef u32 port
    for port in range(n.port_base, n.port_base + n.n_ports):
        if port != done:
            host_advance(w, n, port, &w.ports[port], time_ps)


cdef inline void try_ports(World* w, Node* n, i64 time_ps) noexcept nogil:
    """After all that an event has set off: what has been posted may begin."""
    cdef u32 port
    cdef Port* p
    cdef u8 candidates
    for port in range(n.port_base, n.port_base + n.n_ports):
        p = &w.ports[port]
        if unlikely(p.odd & ODD_TURNS):
            host_try(w, n, port, p, time_ps)
            continue
        while p.busy_ps <= time_ps and p.backlog and nic_next_start(w, n, port, p, time_ps, &candidates) <= time_ps:
            nic_start(w, n, port, p, candidates, time_ps)


cdef inline bint new_state(Program* p, const Visit* v, u32 n_transfers) noexcept nogil:
    """Begins to keep count for a task; False without memory."""
    cdef u32 n_lanes = v.end_lane - v.first_lane
    cdef size_t words = <size_t>n_transfers + n_lanes
    cdef TaskState* state = <TaskState*>malloc(sizeof(TaskState) + words * sizeof(u32))
    if state == NULL:
        return False
    state.remaining = p.pattern_receives[p.rank_pattern[v.rank]] + n_transfers
    state.joins = 0
    state.begun = 0
    memcpy(<u32*>(state + 1), p.transfer_waits + v.first_transfer, <size_t>n_transfers * sizeof(u32))
    memset(<u32*>(state + 1) + n_transfers, 0, <size_t>n_lanes * sizeof(u32))
    p.states[v.task] = state
    return True


cdef inline bint visit(World* w, Visit* v, u32 operation, u32 rank, i64 time_ps) noexcept nogil:
    """Looks at the task of a rank (a row) in an operation; False without memory."""
    cdef Program* p = &w.program
    cdef u32 n_transfers
    v.operation = operation
    v.rank = rank
    v.task = p.operation_task_base[operation] + (rank - first_rank(p, operation))
    v.first_lane = p.pattern_lane_base[p.rank_pattern[rank]]
    v.end_lane = p.pattern_lane_base[p.rank_pattern[rank] + 1]
    v.first_transfer = p.lane_transfer_base[v.first_lane]
    v.time_ps = time_ps
    n_transfers = p.lane_transfer_base[v.end_lane] - v.first_transfer
    if p.states[v.task] == NULL and not new_state(p, v, n_transfers):
        w.error = ERROR_MEMORY
        return False
    v.state = p.states[v.task]
    v.waits = <u32*>(v.state + 1)
    v.posted = v.waits + n_transfers
    return True


cdef inline void post_message(World* w, u32 connection, Message* message, i64 size_bytes, i64 time_ps) noexcept nogil:
    """Posts a message of so many bytes on a connection."""
    cdef u32 flow = w.first_connection + connection
    cdef Sender* s = &w.senders[flow]
    cdef Connection* c = &w.connections[connection]
    cdef const TransportProfile* t = &w.transports[w.flow_transport[flow]]
    cdef i64 frames = (size_bytes + t.payload_bytes - 1) // t.payload_bytes if size_bytes else 1
    cdef i64 last_bytes = size_bytes - (frames - 1) * t.payload_bytes + t.frame_bytes - t.payload_bytes
    cdef bint was_idle = c.sending == c.tail
    if c.frames + frames > MOST_FRAMES:
        w.error = ERROR_FRAMES
        return
    if c.frames == 0:
        open_sender(w, flow, s, time_ps)
        if unlikely(w.turn_ports != NULL):
            turns_join(w, flow, s)
    c.frames += <u32>frames
    message.end = c.frames
    message.last_frame_bytes = <u32>later(last_bytes, t.least_frame_bytes)
    if not message_push(c, message):
        w.error = ERROR_MEMORY
        return
    if was_idle:
        load_message(c, s)
    make_ready(w, flow, s, time_ps)


cdef inline void copy_message(World* w, Node* n, u32 connection, const Message* message, i64 size_bytes, i64 time_ps) noexcept nogil:
    """Copies a message between ranks of this host."""
    cdef Connection* c = &w.connections[connection]
    cdef const Program* p = &w.program
    cdef i64 copy_ps = 0
    if p.local_rate_bps:
        copy_ps = <i64>(<double>size_bytes * 8e12 / <double>p.local_rate_bps)
        copy_ps = (copy_ps + p.local_tick_ps - 1) // p.local_tick_ps * p.local_tick_ps
    c.busy_ps = later(c.busy_ps, time_ps) + copy_ps
    if not message_push(c, message) or not timer_push(
        n, c.busy_ps + p.local_latency_ps, TIMER_COPIED, connection
    ):
        w.error = ERROR_MEMORY


cdef inline void send(World* w, Node* n, Visit* v, u32 lane, u32 transfer) noexcept nogil:
    """Gets a transfer on its way."""
    cdef Program* p = &w.program
    cdef i64 size_bytes = transfer_bytes(p, v.operation, v.rank, transfer)
    cdef u32 connection = connection_of(p, v.operation, v.rank, lane - v.first_lane)
    cdef Message message
    message.end = 0
    message.last_frame_bytes = 0
    message.operation = v.operation
    message.transfer = transfer
    p.sent_bytes[v.operation] += size_bytes
    if connection < p.n_connections:
        post_message(w, connection, &message, size_bytes, v.time_ps)
    else:
        copy_message(w, n, connection, &message, size_bytes, v.time_ps)


cdef inline void advance_lane(World* w, Node* n, Visit* v, u32 lane) noexcept nogil:
    """Posts what can be posted of a lane; puts a join aside that has nothing to wait for."""
    cdef const Program* p = &w.program
    cdef u32* posted = &v.posted[lane - v.first_lane]
    cdef u32 transfer = p.lane_transfer_base[lane] + posted[0]
    while transfer < p.lane_transfer_base[lane + 1] and v.waits[transfer - v.first_transfer] == 0:
        posted[0] += 1
        if p.lane_joins[lane]:
            v.waits[transfer - v.first_transfer] = v.state.joins
            v.state.joins = 1 + transfer - v.first_transfer
        else:
            send(w, n, v, lane, transfer)
            if p.operation_eager[v.operation]:
                v.state.remaining -= 1
        transfer += 1


cdef inline void release(World* w, Node* n, Visit* v, u32 own) noexcept nogil:
    """A transfer, the first of which is 0, waits for one less."""
    v.waits[own] -= 1
    if v.waits[own] == 0 and v.state.begun:
        advance_lane(w, n, v, v.first_lane + w.program.transfer_lane[v.first_transfer + own])


cdef inline void take(World* w, Node* n, Visit* v, u32 transfer) noexcept nogil:
    """Lets a transfer have arrived; what comes after it waits for one less."""
    cdef const Program* p = &w.program
    cdef u32 k
    v.state.remaining -= 1
    for k in range(p.transfer_next_base[transfer], p.transfer_next_base[transfer + 1]):
        release(w, n, v, p.transfer_next[k])


cdef inline void take_joins(World* w, Node* n, Visit* v) noexcept nogil:
    cdef u32 own
    while v.state.joins:
        own = v.state.joins - 1
        v.state.joins = v.waits[own]
        take(w, n, v, v.first_transfer + own)


cdef inline void schedule_entry(World* w, u32 task, i64 time_ps) noexcept nogil:
    """Sets the timer with which a rank enters an operation, not before the operation's start."""
    cdef Program* p = &w.program
    cdef Node* n = &w.nodes[p.task_host[task]]
    cdef i64 entry_ps = later(time_ps, p.operation_start_ps[operation_of(p, task)])
    if not timer_push(n, entry_ps, TIMER_ENTER, task):
        w.error = ERROR_MEMORY
    if entry_ps < w.wakes[n.first_wake].due_ps:
        w.wakes[n.first_wake].due_ps = entry_ps


cdef inline void leave_if_done(World* w, const Visit* v) noexcept nogil:
    cdef Program* p = &w.program
    cdef u32 k, waiting
    if not v.state.begun or v.state.remaining:
        return
    free(v.state)
    p.states[v.task] = NULL
    p.left_ps[v.task] = v.time_ps
    p.n_left += 1
    for k in range(p.task_next_base[v.task], p.task_next_base[v.task + 1]):
        waiting = p.task_next[k]
        p.task_waits[waiting] -= 1
        if p.task_waits[waiting] == 0:
            schedule_entry(w, waiting, v.time_ps)


cdef inline void on_arrived(World* w, Node* n, u32 connection, const Message* message, i64 time_ps) noexcept nogil:
    """A transfer has arrived at its destination."""
    cdef const Program* p = &w.program
    cdef u32 rank = first_rank(p, message.operation) + p.connection_destination[connection]
    cdef Visit v
    if visit(w, &v, message.operation, rank, time_ps):
        take(w, n, &v, message.transfer)
        take_joins(w, n, &v)
        leave_if_done(w, &v)


cdef inline void on_acknowledged(World* w, Node* n, u32 connection, const Message* message, i64 time_ps) noexcept nogil:
    """The source of a transfer knows that it has arrived."""
    cdef const Program* p = &w.program
    cdef bint is_eager = p.operation_eager[message.operation] != 0
    cdef u32 k = 0, end = 0
    cdef Visit v
    if p.transfer_follower_base != NULL:
        k = p.transfer_follower_base[message.transfer]
        end = p.transfer_follower_base[message.transfer + 1]
    if is_eager and k == end:
        return
    if visit(w, &v, message.operation, first_rank(p, message.operation) + p.connection_source[connection], time_ps):
        if not is_eager:
            v.state.remaining -= 1
        while k < end:
            release(w, n, &v, p.transfer_follower[k])
            k += 1
        take_joins(w, n, &v)
        leave_if_done(w, &v)


cdef inline void on_copied(World* w, Node* n, u32 connection, i64 time_ps) noexcept nogil:
    """The first of the messages that are being copied on a local connection is there."""
    cdef Connection* c = &w.connections[connection]
    cdef Message message = message_slot(c, c.head)[0]
    c.head += 1
    on_arrived(w, n, connection, &message, time_ps)
    on_acknowledged(w, n, connection, &message, time_ps)


cdef inline void on_begin(World* w, Node* n, u32 task, i64 time_ps) noexcept nogil:
    """A rank has computed what its operation has to begin with."""
    cdef const Program* p = &w.program
    cdef u32 operation = operation_of(p, task), lane
    cdef Visit v
    if not visit(w, &v, operation, first_rank(p, operation) + task - p.operation_task_base[operation], time_ps):
        return
    v.state.begun = 1
    for lane in range(v.first_lane, v.end_lane):
        advance_lane(w, n, &v, lane)
    take_joins(w, n, &v)
    leave_if_done(w, &v)


cdef inline void on_enter(World* w, Node* n, u32 task, i64 time_ps) noexcept nogil:
    """A rank enters an operation."""
    cdef i64 compute_ps = w.program.operation_compute_ps[operation_of(&w.program, task)]
    cdef i64 end_ps = time_ps + compute_ps
    w.program.entered_ps[task] = time_ps
    if compute_ps == 0:
        on_begin(w, n, task, time_ps)
        return
    if w.program.slow_base != NULL:
        end_ps = compute_end_ps(&w.program, task, time_ps, compute_ps)
    if not timer_push(n, end_ps, TIMER_BEGIN, task):
        w.error = ERROR_MEMORY


cdef inline void on_program_timer(World* w, Node* n, u8 kind, u32 id, i64 time_ps) noexcept nogil:
    advance_ports(w, n, time_ps)
    if kind == TIMER_COPIED:
        on_copied(w, n, id, time_ps)
    elif kind == TIMER_ENTER:
        on_enter(w, n, id, time_ps)
    else:
        on_begin(w, n, id, time_ps)
    try_ports(w, n, time_ps)


cdef inline bint program_done(const World* w) noexcept nogil:
    """Whether every rank has done everything, and no connection waits for an acknowledgement."""
    cdef u32 k
    if w.program.n_left != w.program.n_tasks:
        return False
    for k in range(w.program.n_connections):
        if w.connections[k].head != w.connections[k].tail:
            return False
    return True
