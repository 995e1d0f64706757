# The clock: lookahead windows.
#
# Everything that one node does to another travels at least `lookahead` over a link. So within a window
# no longer than that each node can be run alone, to the window's end, in any order of nodes; there is no
# global event queue. Where nothing is due the clock jumps. Windows are cut at will (a bound of the run, a
# shorter `window_ps`, the next failure or repair), and left and taken up again between two nodes (the end of a chunk): the bits do
# not depend on it.

from fabric.engine.ahead cimport look_ahead, prefetch_hosts
from fabric.engine.elsewhere cimport cut_window
from fabric.engine.halts cimport HALT_DEADLOCK, HALT_GO_ON, HALT_OVER, Halt, ends_in_deadlock, halt, next_halt_or
from fabric.engine.host cimport host_window
from fabric.engine.audit cimport balanced
from fabric.engine.left cimport all_done, anything_left, pauses_left
from fabric.engine.node cimport HOST, Node
from fabric.engine.start cimport schedule_start
from fabric.engine.switch cimport switch_window
from fabric.engine.types cimport NEVER, i64, sooner, u32, u64, unlikely
from fabric.engine.world cimport (
    ERROR_INVARIANT,
    ERROR_MEMORY,
    NO_WINDOW,
    STOP_BUDGET,
    STOP_DEADLOCK,
    STOP_ERROR,
    STOP_FINISHED,
    STOP_STALLED,
    STOP_UNTIL,
    StopReason,
    World,
)


cdef inline void run_node(World* w, u32 word) noexcept nogil:
    """Runs the node of a wake word to the end of the window."""
    cdef Node* n = &w.nodes[w.wake_node[word]]
    cdef i64 due_ps
    if n.kind == HOST:
        due_ps = host_window(w, n)
    else:
        look_ahead(w, n.turn)
        due_ps = switch_window(w, n)
    if due_ps < w.wakes[n.first_wake].due_ps:
        w.wakes[n.first_wake].due_ps = due_ps


cdef inline bint run_window(World* w, u64 enough_hops) noexcept nogil:
    """Runs what is left of the window; False if it stopped in its midst, at `enough_hops` or an error."""
    while w.window_cursor < w.n_wakes:
        if w.wakes[w.window_cursor].due_ps < w.window_end_ps:
            w.window_used = 1
            prefetch_hosts(w, w.window_cursor)
            run_node(w, w.window_cursor)
        w.window_cursor += 1
        if unlikely(w.error != 0 or w.out_of_memory != 0 or w.hops >= enough_hops):
            return w.error == 0 and w.out_of_memory == 0 and w.window_cursor == w.n_wakes
    return True


cdef inline i64 next_due(const World* w) noexcept nogil:
    cdef u32 word
    cdef i64 due_ps = NEVER
    for word in range(w.n_wakes):
        due_ps = sooner(due_ps, w.wakes[word].due_ps)
    return due_ps


cdef inline StopReason stop(World* w, StopReason reason) noexcept nogil:
    """The reason for a stop, or that the books do not balance."""
    if balanced(w):
        return reason
    w.error = ERROR_INVARIANT
    return STOP_ERROR


cdef inline void open_window(World* w, i64 until_ps) noexcept nogil:
    w.window_end_ps = sooner(sooner(w.now_ps + w.window_ps, until_ps), w.halt_ps)
    w.window_cursor = 0
    w.window_used = 0
    if unlikely(w.waits_elsewhere):
        cut_window(w)


cdef inline bint starts_elsewhere(World* w) noexcept nogil:
    """Flows that have become due at the window's last instant are set to start; the window is then run again."""
    cdef u32 k
    for k in range(w.due_elsewhere.count):
        schedule_start(w, w.due_elsewhere.flows[k], w.window_end_ps - 1)
    w.window_cursor = 0
    k = w.due_elsewhere.count
    w.due_elsewhere.count = 0
    return k != 0


cdef inline bint close_window(World* w, i64 until_ps) noexcept nogil:
    """Moves the clock to the window's end, or to what is due next if nothing was; False if nothing is."""
    cdef i64 due_ps
    w.window_cursor = NO_WINDOW
    if w.window_used:
        w.now_ps = w.window_end_ps
        return True
    due_ps = next_halt_or(w, next_due(w))
    if due_ps != NEVER:
        w.now_ps = sooner(due_ps, until_ps)
    return due_ps != NEVER


cdef inline StopReason run_windows(World* w, i64 until_ps, u64 max_hops) noexcept nogil:
    """Runs to `until_ps`, to the end of all events, or for about `max_hops` arrivals.

    A run that stopped for its hops in the midst of a window first finishes that window.
    """
    cdef u64 enough_hops = w.hops + max_hops
    cdef Halt halted = HALT_GO_ON
    while w.window_cursor != NO_WINDOW or w.now_ps < until_ps:
        if w.window_cursor == NO_WINDOW:
            halted = halt(w)
            if unlikely(halted == HALT_DEADLOCK):
                return stop(w, STOP_DEADLOCK)
            if unlikely(halted == HALT_OVER):
                break
            open_window(w, until_ps)
        if not run_window(w, enough_hops):
            if w.out_of_memory:
                w.error = ERROR_MEMORY
            return STOP_ERROR if w.error else STOP_BUDGET
        if unlikely(w.due_elsewhere.count != 0) and starts_elsewhere(w):
            continue
        if not close_window(w, until_ps):
            break
        if w.hops >= enough_hops:
            return STOP_BUDGET
    if halted != HALT_OVER and (anything_left(w) or pauses_left(w)):
        return stop(w, STOP_UNTIL)
    if ends_in_deadlock(w):
        return stop(w, STOP_DEADLOCK)
    return stop(w, STOP_FINISHED if all_done(w) else STOP_STALLED)
