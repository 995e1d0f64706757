"""Gives a world what fails and is repaired, and copies of what that changes."""

from fabric.engine.fault cimport Fault
from fabric.engine.types cimport NEVER, i64, u32
from fabric.engine.world cimport World


cdef const void* kept_of_faults(_Memory memory, object faults, str name, dtype) except? NULL:
    """The memory of an array of the faults."""
    memory.arrays["faults." + name] = _np.ascontiguousarray(getattr(faults, name), dtype=dtype)
    return pointer(memory.arrays["faults." + name])


cdef void* own(_Memory memory, object lowered, str name, dtype) except? NULL:
    """The memory of a copy of a lowered array, which the run may change."""
    memory.arrays["own " + name] = _np.array(getattr(lowered, name), dtype=dtype, copy=True)
    return <void*>pointer(memory.arrays["own " + name])


cdef take_faults(World* w, _Memory memory, object lowered):
    faults = lowered.faults
    w.faults.next_ps = NEVER
    if faults is None or len(faults.changes) == 0:
        return
    w.faults.changes = <const Fault*>kept_of_faults(memory, faults, "changes", _layout.FAULT)
    w.faults.n_changes = len(faults.changes)
    w.faults.next_ps = w.faults.changes[0].time_ps
    w.faults.route_base = <const i64*>kept_of_faults(memory, faults, "route_base", _np.int64)
    w.faults.route_place = <const i64*>kept_of_faults(memory, faults, "route_place", _np.int64)
    w.faults.route_value = <const u32*>kept_of_faults(memory, faults, "route_value", _np.uint32)
    w.faults.move_base = <const i64*>kept_of_faults(memory, faults, "move_base", _np.int64)
    w.faults.move_flow = <const u32*>kept_of_faults(memory, faults, "move_flow", _np.uint32)
    w.faults.move_port = <const u32*>kept_of_faults(memory, faults, "move_port", _np.uint32)
    w.faults.port_rate_bps = <i64*>own(memory, lowered, "port_rate_bps", _np.int64)
    w.faults.port_loss = <double*>own(memory, lowered, "port_loss", _np.float64)
    w.faults.port_ber_rate = <double*>own(memory, lowered, "port_ber_rate", _np.float64)
    w.faults.flow_port = <u32*>own(memory, lowered, "flow_port", _np.uint32)
    w.faults.route_entry = <u32*>own(memory, lowered, "route_entry", _np.uint32)
    w.port_rate_bps = w.faults.port_rate_bps
    w.port_loss = w.faults.port_loss
    w.port_ber_rate = w.faults.port_ber_rate
    w.flow_port = w.faults.flow_port
