# A program of collectives as the engine sees it: tables that do not change, and what ranks are at.
#
# Tables belong to the arrays of a `LoweredProgram` (docs/design.md section 11): what ranks do as patterns, which
# they share, lane by lane; operations; tasks. A task has a state from the first event that concerns it to its
# last, so a program takes memory for what is active.

from fabric.engine.types cimport i64, u8, u32

cdef struct TaskState:      # followed by a word for each of its transfers and a word for each of its lanes
    u32 remaining           # transfers, its own and those to it, that are not done
    u32 joins               # 1 + place of the join to take next; 0: none
    u32 begun

cdef struct Program:
    u32 n_operations
    u32 n_tasks
    u32 n_connections       # between hosts
    u32 n_local
    i64 local_rate_bps      # 0: copies take no time
    i64 local_latency_ps
    i64 local_tick_ps       # copies take a multiple of it
    const u32* template_rank_base
    const u32* template_pieces
    const u32* rank_pattern
    const u32* rank_piece
    const u32* rank_lane_base
    const u32* pattern_lane_base
    const u32* pattern_receives
    const u32* lane_transfer_base
    const u8* lane_joins
    const u32* transfer_lane
    const u32* transfer_piece
    const u32* transfer_count
    const u32* transfer_waits
    const u32* transfer_next_base
    const u32* transfer_next
    const u32* transfer_follower_base   # NULL: no transfer follows another
    const u32* transfer_follower
    const u32* operation_template
    const i64* operation_bytes
    const i64* operation_pieces
    const i64* operation_start_ps
    const i64* operation_compute_ps
    const u8* operation_eager
    const i64* operation_lanes
    const u32* operation_task_base
    const i64* piece_offset_bytes
    const u32* lane_connection
    const u32* connection_source
    const u32* connection_destination
    const u32* task_rank
    const u32* task_host
    const u32* task_next_base
    const u32* task_next
    const u32* slow_base    # by rank; NULL: no rank is slow for a while
    const i64* slow_begin_ps
    const i64* slow_end_ps
    const double* slow_factor
    u32* task_waits         # tasks before it that are not left
    TaskState** states      # by task
    i64* entered_ps
    i64* left_ps
    i64* sent_bytes         # by operation
    u32 n_left


cdef inline i64 offset_bytes(const Program* p, u32 operation, u32 piece) noexcept nogil:
    """Where a piece begins in the data of an operation: in its table, or the first pieces are a byte larger."""
    cdef i64 pieces, larger
    if p.operation_pieces[operation] >= 0:
        return p.piece_offset_bytes[p.operation_pieces[operation] + piece]
    pieces = p.template_pieces[p.operation_template[operation]]
    larger = p.operation_bytes[operation] % pieces
    return piece * (p.operation_bytes[operation] // pieces) + (piece if piece < larger else larger)


cdef inline i64 transfer_bytes(const Program* p, u32 operation, u32 rank, u32 transfer) noexcept nogil:
    """What a rank (a row) sends with a transfer; its pieces are so many further than those of its pattern."""
    cdef u32 piece = p.transfer_piece[transfer] + p.rank_piece[rank]
    cdef u32 pieces = p.template_pieces[p.operation_template[operation]]
    if piece >= pieces:
        piece -= pieces
    return offset_bytes(p, operation, piece + p.transfer_count[transfer]) - offset_bytes(p, operation, piece)


cdef inline u32 first_rank(const Program* p, u32 operation) noexcept nogil:
    """The row of rank 0 of an operation's template."""
    return p.template_rank_base[p.operation_template[operation]]


cdef inline u32 connection_of(const Program* p, u32 operation, u32 rank, u32 lane) noexcept nogil:
    """The connection that a rank (a row) takes on a lane of its own, the first of which is 0."""
    cdef u32 before = p.rank_lane_base[rank] - p.rank_lane_base[first_rank(p, operation)]
    return p.lane_connection[p.operation_lanes[operation] + before + lane]


cdef inline u32 operation_of(const Program* p, u32 task) noexcept nogil:
    """The operation that a task is a part of."""
    cdef u32 low = 0, high = p.n_operations, middle
    while high - low > 1:
        middle = low + (high - low) // 2
        if p.operation_task_base[middle] <= task:
            low = middle
        else:
            high = middle
    return low
