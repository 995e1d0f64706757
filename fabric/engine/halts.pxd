# Instants at which the fabric is looked at as a whole, between two windows.
#
# Everything before such an instant has happened, and nothing of it or after it. Looks for deadlock are at
# multiples of a number of lookaheads, while something is paused. They stand for themselves: when windows end
# otherwise, how long they are, and where a run is cut into chunks is not observable.

from fabric.engine.deadlock cimport DEADLOCK_OFF, DEADLOCK_STOP
from fabric.engine.detection cimport find_broken, find_deadlocks, look_for_deadlock, next_look_ps
from fabric.engine.faults cimport apply_faults
from fabric.engine.left cimport anything_left
from fabric.engine.mitigation cimport poll, watchdog_may_act
from fabric.engine.refresh cimport repeat_pauses
from fabric.engine.types cimport NEVER, i64, sooner
from fabric.engine.world cimport World


cdef enum Halt:
    HALT_GO_ON = 0
    HALT_DEADLOCK = 1           # one ends the run
    HALT_OVER = 2               # nothing is left but PAUSEs to repeat


cdef inline bint looks(const World* w) noexcept nogil:
    """Whether there is anything to look for."""
    return w.deadlocks.mode != DEADLOCK_OFF and (w.deadlocks.paused_links != 0 or w.deadlocks.standing != 0)


cdef inline Halt halt(World* w) noexcept nogil:
    """Does what is due at `now_ps`, and sets when to halt next; or says why the run is over."""
    cdef bint polls = w.watchdog.poll_ps != 0 and w.now_ps >= w.watchdog.next_ps
    cdef bint changes = w.faults.next_ps <= w.now_ps
    if looks(w):
        if polls or changes:
            look_for_deadlock(w, w.now_ps - 1)
        elif w.now_ps % w.deadlocks.interval_ps == 0:
            look_for_deadlock(w, w.now_ps - w.deadlocks.lookahead_ps)
    if w.now_ps >= w.deadlocks.stop_ps:
        return HALT_DEADLOCK
    if polls:
        poll(w)
    if changes:
        apply_faults(w)
    if (polls or changes) and w.deadlocks.standing:
        find_broken(w, w.now_ps)
    if w.now_ps >= w.quanta.next_ps:
        if not anything_left(w):
            return HALT_OVER
        repeat_pauses(w)
    w.halt_ps = sooner(sooner(w.faults.next_ps, w.quanta.next_ps), w.deadlocks.stop_ps)
    if w.watchdog.poll_ps:
        w.halt_ps = sooner(w.halt_ps, w.watchdog.next_ps)
    if looks(w):
        w.halt_ps = sooner(w.halt_ps, next_look_ps(&w.deadlocks, w.now_ps))
    return HALT_GO_ON


cdef inline i64 next_halt_or(const World* w, i64 due_ps) noexcept nogil:
    """How far the clock may jump where nothing is due before an instant."""
    if due_ps == NEVER and w.faults.next_ps == NEVER and not watchdog_may_act(w):
        return NEVER
    due_ps = sooner(due_ps, sooner(sooner(w.faults.next_ps, w.quanta.next_ps), w.deadlocks.stop_ps))
    if w.watchdog.poll_ps:
        due_ps = sooner(due_ps, w.watchdog.next_ps)
    if looks(w) and (w.hops != w.deadlocks.looked_hops or w.now_ps < w.deadlocks.quiet_ps):
        due_ps = sooner(due_ps, next_look_ps(&w.deadlocks, w.now_ps))
    return due_ps


cdef inline bint ends_in_deadlock(World* w) noexcept nogil:
    """Nothing is left to happen: a last look; whether it is a deadlock that was to stop the run."""
    w.exhausted = 1
    if looks(w):
        find_broken(w, next_look_ps(&w.deadlocks, w.now_ps - 1))
        find_deadlocks(w, w.deadlocks.until_ps - 1, w.deadlocks.until_ps)
    return w.deadlocks.mode == DEADLOCK_STOP and w.deadlocks.count != 0
