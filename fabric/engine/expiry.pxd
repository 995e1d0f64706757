# A pause that nobody repeats in time runs out: IEEE 802.3, annex 31B.
#
# It ends by itself so long after the last PAUSE took effect, which is a timer of the paused node. The timer is
# set once, and when it fires too early set again.

from libc.stdlib cimport calloc

from fabric.engine.node cimport TIMER_QUANTA, timer_push
from fabric.engine.packet cimport PFC_RESUME, PFC_STORM
from fabric.engine.quanta cimport NOT_PAUSED, Held
from fabric.engine.types cimport NEVER, i64, u8, u32, u64
from fabric.engine.world cimport ERROR_MEMORY, World

cdef inline bint allocate_quanta(World* w) noexcept nogil:
    """What pauses that run out need, if they do; False without memory."""
    w.quanta.next_ps = w.quanta.refresh_ps if w.quanta.refresh_ps else NEVER
    if w.quanta.port_ps == NULL:
        return True
    w.quanta.pauses = <Held*>calloc(<u64>w.n_ports * w.n_classes + 1, sizeof(Held))
    return w.quanta.pauses != NULL


cdef inline void await_end(World* w, Held* held, u32 port, u8 traffic_class) noexcept nogil:
    held.timer = 1
    if not timer_push(
        &w.nodes[w.port_node[port]], held.until_ps, TIMER_QUANTA, port * 32 + traffic_class * 4
    ):
        w.error = ERROR_MEMORY


cdef inline void hold_pause(World* w, u32 port, u8 traffic_class, u8 wish, i64 time_ps) noexcept nogil:
    """The peer's PAUSE, its repetition, or its RESUME acts on a port."""
    cdef Held* held = &w.quanta.pauses[port * w.n_classes + traffic_class]
    if wish == PFC_RESUME:
        held.until_ps = NOT_PAUSED
    elif wish == PFC_STORM:
        held.until_ps = NEVER
    else:
        held.until_ps = time_ps + w.quanta.port_ps[port]
        if not held.timer:
            await_end(w, held, port, traffic_class)


cdef inline bint runs_out(World* w, u32 port, u8 traffic_class, i64 time_ps) noexcept nogil:
    """A timer has fired: whether the pause ends now."""
    cdef Held* held = &w.quanta.pauses[port * w.n_classes + traffic_class]
    held.timer = 0
    if held.until_ps > time_ps and held.until_ps != NEVER:
        await_end(w, held, port, traffic_class)
    if held.until_ps != time_ps:
        return False
    w.quanta.ran_out += 1
    return True


cdef inline bint will_run_out(const World* w, u32 port, u8 traffic_class) noexcept nogil:
    """Whether the pause of a class ends by itself, if nothing else happens."""
    cdef u32 index = port * w.n_classes + traffic_class
    cdef i64 until_ps = w.quanta.pauses[index].until_ps
    if until_ps == NOT_PAUSED or until_ps == NEVER:
        return False
    return not w.quanta.port_holds[port] or not w.ingress[w.port_peer[port] * w.n_classes + traffic_class].paused
