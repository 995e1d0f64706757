"""Gives a world the tables of a program, and says what its ranks wait for."""

from fabric.engine.build cimport allocate_program
from fabric.engine.message cimport Connection, message_slot
from fabric.engine.program cimport Program, TaskState, operation_of
from fabric.engine.types cimport i64, u8, u32
from fabric.engine.walker cimport schedule_entry
from fabric.engine.world cimport World


cdef take_program(World* w, _Memory memory, object program):
    """The tables of a program, where they lie; what changes while it runs is the world's own."""
    cdef Program* p = &w.program
    w.first_connection = w.n_flows
    if program is None:
        return
    w.first_connection = w.n_flows - program.n_connections
    p.n_operations = len(program.operation_template)
    p.n_tasks = len(program.task_host)
    p.n_connections = program.n_connections
    p.n_local = program.n_local
    p.local_rate_bps = program.local_rate_bps
    p.local_latency_ps = program.local_latency_ps
    p.local_tick_ps = program.local_tick_ps
    p.template_rank_base = <const u32*>memory.keep(program, "template_rank_base", _np.uint32)
    p.template_pieces = <const u32*>memory.keep(program, "template_pieces", _np.uint32)
    p.rank_pattern = <const u32*>memory.keep(program, "rank_pattern", _np.uint32)
    p.rank_piece = <const u32*>memory.keep(program, "rank_piece", _np.uint32)
    p.rank_lane_base = <const u32*>memory.keep(program, "rank_lane_base", _np.uint32)
    p.pattern_lane_base = <const u32*>memory.keep(program, "pattern_lane_base", _np.uint32)
    p.pattern_receives = <const u32*>memory.keep(program, "pattern_receives", _np.uint32)
    p.lane_transfer_base = <const u32*>memory.keep(program, "lane_transfer_base", _np.uint32)
    p.lane_joins = <const u8*>memory.keep(program, "lane_joins", _np.uint8)
    p.transfer_lane = <const u32*>memory.keep(program, "transfer_lane", _np.uint32)
    p.transfer_piece = <const u32*>memory.keep(program, "transfer_piece", _np.uint32)
    p.transfer_count = <const u32*>memory.keep(program, "transfer_count", _np.uint32)
    p.transfer_waits = <const u32*>memory.keep(program, "transfer_waits", _np.uint32)
    p.transfer_next_base = <const u32*>memory.keep(program, "transfer_next_base", _np.uint32)
    p.transfer_next = <const u32*>memory.keep(program, "transfer_next", _np.uint32)
    if len(program.transfer_follower):
        p.transfer_follower_base = <const u32*>memory.keep(program, "transfer_follower_base", _np.uint32)
        p.transfer_follower = <const u32*>memory.keep(program, "transfer_follower", _np.uint32)
    p.operation_template = <const u32*>memory.keep(program, "operation_template", _np.uint32)
    p.operation_bytes = <const i64*>memory.keep(program, "operation_bytes", _np.int64)
    p.operation_pieces = <const i64*>memory.keep(program, "operation_pieces", _np.int64)
    p.operation_start_ps = <const i64*>memory.keep(program, "operation_start_ps", _np.int64)
    p.operation_compute_ps = <const i64*>memory.keep(program, "operation_compute_ps", _np.int64)
    p.operation_eager = <const u8*>memory.keep(program, "operation_eager", _np.uint8)
    p.operation_lanes = <const i64*>memory.keep(program, "operation_lanes", _np.int64)
    p.operation_task_base = <const u32*>memory.keep(program, "operation_task_base", _np.uint32)
    p.piece_offset_bytes = <const i64*>memory.keep(program, "piece_offset_bytes", _np.int64)
    p.lane_connection = <const u32*>memory.keep(program, "lane_connection", _np.uint32)
    p.connection_source = <const u32*>memory.keep(program, "connection_source", _np.uint32)
    p.connection_destination = <const u32*>memory.keep(program, "connection_destination", _np.uint32)
    p.task_rank = <const u32*>memory.keep(program, "task_rank", _np.uint32)
    p.task_host = <const u32*>memory.keep(program, "task_host", _np.uint32)
    if len(program.slow_factor):
        p.slow_base = <const u32*>memory.keep(program, "slow_base", _np.uint32)
        p.slow_begin_ps = <const i64*>memory.keep(program, "slow_begin_ps", _np.int64)
        p.slow_end_ps = <const i64*>memory.keep(program, "slow_end_ps", _np.int64)
        p.slow_factor = <const double*>memory.keep(program, "slow_factor", _np.float64)
    p.task_next_base = <const u32*>memory.keep(program, "task_next_base", _np.uint32)
    p.task_next = <const u32*>memory.keep(program, "task_next", _np.uint32)
    memory.arrays["task_waits"] = _np.array(program.task_waits, dtype=_np.uint32)
    p.task_waits = <u32*>pointer(memory.arrays["task_waits"])
    memory.program_results = {
        "task_entered_ps": _np.full(p.n_tasks + 1, -1, dtype=_np.int64),
        "task_left_ps": _np.full(p.n_tasks + 1, -1, dtype=_np.int64),
        "operation_sent_bytes": _np.zeros(p.n_operations + 1, dtype=_np.int64),
    }
    p.entered_ps = <i64*>pointer(memory.program_results["task_entered_ps"])
    p.left_ps = <i64*>pointer(memory.program_results["task_left_ps"])
    p.sent_bytes = <i64*>pointer(memory.program_results["operation_sent_bytes"])


cdef fill_program(World* w):
    cdef u32 task
    if not allocate_program(w):
        raise MemoryError(f"no memory for {w.program.n_tasks} tasks of a program")
    for task in range(w.program.n_tasks):
        if w.program.task_waits[task] == 0:
            schedule_entry(w, task, 0)
    if w.error:
        raise MemoryError(f"no memory for the start of {w.program.n_tasks} tasks of a program")


cdef tuple waiting_in(World* w):
    """Transfers posted by the lanes of tasks at work; messages on their way (see `Engine.waiting`)."""
    cdef Program* p = &w.program
    cdef u32 task, lane, k, n_lanes
    cdef TaskState* state
    cdef u32* lanes_posted
    cdef const Connection* c
    cdef u32 operation, rank, first, end
    posted = []
    for task in range(p.n_tasks):
        state = p.states[task]
        if state == NULL:
            continue
        operation = operation_of(p, task)
        rank = p.template_rank_base[p.operation_template[operation]] + task - p.operation_task_base[operation]
        first = p.pattern_lane_base[p.rank_pattern[rank]]
        end = p.pattern_lane_base[p.rank_pattern[rank] + 1]
        n_lanes = end - first
        lanes_posted = <u32*>(state + 1) + (p.lane_transfer_base[end] - p.lane_transfer_base[first])
        for lane in range(n_lanes):
            posted.append((task, p.rank_lane_base[rank] + lane, lanes_posted[lane]))
    sent = []
    for connection in range(p.n_connections + p.n_local):
        c = &w.connections[connection]
        for k in range(c.arrived if connection < p.n_connections else c.head, c.tail):
            sent.append((connection, message_slot(c, k).operation, message_slot(c, k).transfer))
    return _np.array(posted, dtype=_layout.POSTED), _np.array(sent, dtype=_layout.ON_ITS_WAY)
