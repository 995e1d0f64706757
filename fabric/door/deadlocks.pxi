"""Gives a world what it needs to find deadlocks and to break them, and what it has found as arrays."""

from libc.string cimport memcpy

from fabric.engine.deadlock cimport DEADLOCK_OFF, DeadlockChannel, DeadlockFrame
from fabric.engine.deadlock_rows cimport forget_deadlocks
from fabric.engine.detection cimport find_deadlocks
from fabric.engine.types cimport i64, u8, u32
from fabric.engine.world cimport NO_WINDOW, World


cdef take_deadlocks(World* w, object lowered):
    w.deadlocks.mode = lowered.deadlock
    w.deadlocks.until_ps = lowered.until_ps
    w.deadlocks.lookahead_ps = int(lowered.port_delay_ps.min()) if lowered.n_ports else 1
    sizes = (lowered.transports["frame_bytes"], lowered.transports["control_bytes"])
    w.deadlocks.largest_frame_bytes = max(int(size.max(initial=0)) for size in sizes)


cdef take_watchdog(World* w, object lowered):
    w.watchdog.poll_ps = lowered.watchdog_poll_ps
    w.watchdog.detect_polls = lowered.watchdog_detect_polls
    w.watchdog.restore_polls = lowered.watchdog_restore_polls
    w.watchdog.restores_by_time = lowered.watchdog_restores_by_time
    w.watchdog.action = lowered.watchdog_action
    w.watchdog.drops_ingress = lowered.watchdog_drops_ingress


cdef take_quanta(World* w, _Memory memory, object lowered):
    w.quanta.refresh_ps = lowered.pfc_refresh_ps
    if len(lowered.port_pause_ps):
        w.quanta.port_ps = <const i64*>memory.keep(lowered, "port_pause_ps", _np.int64)
        w.quanta.port_holds = <const u8*>memory.keep(lowered, "port_pause_holds", _np.uint8)


cdef object found_deadlocks(World* w):
    """Channels and frames of all deadlocks up to now, in order of deadlock, port and class, then of time."""
    cdef u32 count = w.deadlocks.count
    if w.deadlocks.mode != DEADLOCK_OFF and not w.exhausted and w.window_cursor == NO_WINDOW:
        find_deadlocks(w, w.now_ps - 1, w.now_ps - 1)
    channels = _np.zeros(w.deadlocks.n_channels, dtype=_layout.DEADLOCK_CHANNEL)
    frames = _np.zeros(w.deadlocks.n_frames, dtype=_layout.DEADLOCK_FRAME)
    assert channels.itemsize == sizeof(DeadlockChannel) and frames.itemsize == sizeof(DeadlockFrame)
    if len(channels):
        memcpy(<void*>pointer(channels), w.deadlocks.channels, channels.nbytes)
    if len(frames):
        memcpy(<void*>pointer(frames), w.deadlocks.frames, frames.nbytes)
    forget_deadlocks(w, count)
    if w.out_of_memory:
        raise _SimulationError("memory has run out while deadlocks were collected")
    order = ("ingress", "since_ps", "class", "port", "deadlock")
    channels = channels[_np.lexsort([channels[name] for name in order[2:]])]
    return channels, frames[_np.lexsort([frames[name] for name in order])]
