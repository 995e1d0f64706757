"""The compiled module: builds a `World` from a `Lowered`, runs it in chunks, hands out columns.

This is the door to the engine, with `fabric/door/*.pxi`; the engine itself is in `fabric/engine/*.pxd`.
Nothing here knows a model, and nothing there knows Python.
"""

import numpy as _np

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.string cimport memset

from fabric.engine.build cimport allocate, allocate_turns, free_world, place_nodes
from fabric.engine.detection cimport prepare_detection
from fabric.engine.expiry cimport allocate_quanta
from fabric.engine.mitigation cimport allocate_watchdog
from fabric.engine.types cimport i64, u64
from fabric.engine.window cimport run_windows
from fabric.engine.world cimport (
    ERROR_FRAMES,
    ERROR_INVARIANT,
    ERROR_MEMORY,
    N_REASONS,
    STOP_ERROR,
    StopReason,
    World,
)

from fabric import lowered as _layout
from fabric.errors import SimulationError as _SimulationError

_CAUSES = {
    ERROR_MEMORY: "memory has run out",
    ERROR_INVARIANT: "an invariant is violated",
    ERROR_FRAMES: "a connection has more than 2^32 - 1 frames",
}
_STOP_REASONS = ("FINISHED", "STALLED", "UNTIL", "BUDGET", "ERROR", "DEADLOCK")

include "door/tables.pxi"
include "door/faults.pxi"
include "door/program.pxi"
include "door/columns.pxi"
include "door/deadlocks.pxi"


cdef class Engine:
    """One run of a lowered scenario on the native engine.

    Parameters
    ----------
    lowered : fabric.lowered.Lowered
        The scenario as arrays; they must not change while the engine lives.

    Raises
    ------
    MemoryError
        If there is no memory for the fabric's state.
    """

    cdef World* w
    cdef _Memory memory
    cdef i64 until_ps

    def __cinit__(self, lowered):
        self.w = <World*>PyMem_Malloc(sizeof(World))
        if self.w == NULL:
            raise MemoryError("no memory for a run")
        memset(self.w, 0, sizeof(World))
        self.memory = _Memory()
        self.until_ps = lowered.until_ps
        take_scalars(self.w, lowered)
        take_deadlocks(self.w, lowered)
        take_watchdog(self.w, lowered)
        take_quanta(self.w, self.memory, lowered)
        take_arrays(self.w, self.memory, lowered)
        take_faults(self.w, self.memory, lowered)
        take_program(self.w, self.memory, lowered.program)
        if not allocate(
            self.w,
            bool(_np.any(lowered.node_arbiter)),
            lowered.record_queue_interval_ps > 0 or lowered.record_queue_delta > 0,
            lowered.record_throughput_interval_ps > 0,
            bool(_np.any(lowered.transports["telemetry"])),
        ):
            raise MemoryError(f"no memory for {lowered.n_nodes} nodes and {lowered.n_flows} flows")
        fill_nodes(self.w, self.memory, lowered)
        fill_paths(self.w, self.memory, lowered)
        fill_ports(self.w, self.memory, lowered)
        fill_profiles(self.w, self.memory, lowered)
        if _np.any(lowered.node_takes_turns) and not allocate_turns(self.w):
            raise MemoryError(f"no memory for {lowered.n_hosts} hosts")
        if not place_nodes(self.w):
            raise MemoryError(f"no memory for {lowered.n_nodes} nodes")
        prepare_detection(self.w)
        if not allocate_watchdog(self.w) or not allocate_quanta(self.w):
            raise MemoryError(f"no memory for {lowered.n_ports} ports")
        fill_flows(self.w)
        if lowered.program is not None:
            fill_program(self.w)

    def __dealloc__(self):
        if self.w != NULL:
            free_world(self.w)
            PyMem_Free(self.w)

    def run(self, until_ps=None, max_hops=None):
        """Runs on; returns why it stopped: FINISHED, STALLED, DEADLOCK, UNTIL or BUDGET.

        Parameters
        ----------
        until_ps : int, optional
            Events before this instant happen (default, and at most: the scenario's end).
        max_hops : int, optional
            Stop after about so many frames have arrived; calling again goes on. Not observable in
            any result.

        Raises
        ------
        SimulationError
            If memory runs out, or (in a checked build) an invariant of the engine is violated.
        """
        cdef i64 until = self.until_ps if until_ps is None else min(self.until_ps, <i64>until_ps)
        cdef u64 budget = <u64>1 << 62 if max_hops is None else <u64>max_hops
        cdef StopReason reason
        with nogil:
            reason = run_windows(self.w, until, budget)
        if reason == STOP_ERROR:
            cause = _CAUSES[self.w.error]
            raise _SimulationError(f"the run stopped at {self.w.now_ps} ps after {self.w.hops} hops: {cause}")
        return _STOP_REASONS[<int>reason]

    @property
    def now_ps(self):
        """Every event before this instant has happened."""
        return self.w.now_ps

    @property
    def hops(self):
        """Frames that have arrived so far."""
        return self.w.hops

    @property
    def delivered_flows(self):
        """Flows whose last byte has arrived so far."""
        return self.w.delivered_flows

    @property
    def completed_flows(self):
        """Flows whose last frame has been acknowledged so far."""
        return self.w.completed_flows

    def columns(self):
        """What happened, as arrays: the columns that `docs/design.md` section 9 lists."""
        result = {name: array[: self.w.n_flows].copy() for name, array in self.memory.results.items()}
        result.update({name: array[: len(array) - 1].copy() for name, array in self.memory.program_results.items()})
        result.update(flow_columns(self.w))
        result.update(port_columns(self.w))
        result["shared_used"] = shared_used(self.w)
        reasons = _np.zeros(N_REASONS, dtype=_np.uint64)
        cdef u64[::1] view = reasons
        cdef int k
        for k in range(N_REASONS):
            view[k] = self.w.drops_by_reason[k]
        result["drops_by_reason"] = reasons
        result["counters"] = counters(self.w)
        return result

    def waiting(self):
        """What the ranks of a program that are at work lack: see `fabric.reference.Simulator.waiting`.

        Returns
        -------
        numpy.ndarray of `fabric.lowered.POSTED`
            For each lane of each such task, how many of its transfers have been posted.
        numpy.ndarray of `fabric.lowered.ON_ITS_WAY`
            The messages that have been posted and have not arrived, by connection.
        """
        return waiting_in(self.w)

    def deadlocks(self):
        """The deadlocks that have formed so far; see `docs/design.md`, section 13.

        Returns
        -------
        numpy.ndarray of `fabric.lowered.DEADLOCK_CHANNEL`
            The links of each deadlock, in order of deadlock, port and class.
        numpy.ndarray of `fabric.lowered.DEADLOCK_FRAME`
            The frames that waited for them when it formed, for each in order of time.

        Raises
        ------
        SimulationError
            If memory has run out.
        """
        return found_deadlocks(self.w)

    def rows(self, stream):
        """The recorded rows of one stream so far, in `fabric.lowered.ROW_ORDER` (see `fabric.lowered.ROW`).

        Raises
        ------
        SimulationError
            If there is no memory for the rows that are still open.
        """
        return recorded_rows(self.w, _layout.STREAMS.index(stream))
