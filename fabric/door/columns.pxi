"""What a world has counted and recorded, as arrays."""

from libc.string cimport memcpy

from fabric.engine.recorder cimport append_pending_rows
from fabric.engine.types cimport i64, u32, u64
from fabric.engine.world cimport N_STREAMS, Row, World


def _row_order(table):
    """The order of `fabric.lowered.ROW_ORDER`: by place, where rows most often came in order of time."""
    place = table["port"].astype(_np.uint64) << 35 | table["class"].astype(_np.uint64) << 32 | table["flow"]
    order = _np.argsort(place, kind="stable")
    time_ps = table["time_ps"][order]
    if _np.any((_np.diff(time_ps) < 0) & (_np.diff(place[order]) == 0)):
        return _np.lexsort((table["time_ps"], place))
    return order


cdef dict flow_columns(World* w):
    names = ("sent", "retransmitted", "timeouts", "cnps", "nacks", "marked")
    table = _np.zeros((len(names), w.n_flows), dtype=_np.uint64)
    cdef u64[:, ::1] view = table
    cdef u32 flow
    for flow in range(w.n_flows):
        view[0, flow] = <u64>w.senders[flow].high + w.senders[flow].retransmitted
        view[1, flow] = w.senders[flow].retransmitted
        view[2, flow] = w.senders[flow].timeouts
        view[3, flow] = w.receivers[flow].cnps
        view[4, flow] = w.receivers[flow].nacks
        view[5, flow] = w.receivers[flow].marked
    return {f"flow_{name}": table[i] for i, name in enumerate(names)}


cdef dict port_columns(World* w):
    names = (
        "queue_bytes", "queue_peak_bytes", "queue_marks", "queue_drops", "ingress_bytes",
        "headroom_bytes", "headroom_peak_bytes", "pauses_sent", "paused_ps",
    )
    table = _np.zeros((len(names), w.n_ports, w.n_classes), dtype=_np.int64)
    waits = _np.zeros((w.n_ports, w.n_classes))
    tx_bytes = _np.zeros(w.n_ports, dtype=_np.int64)
    cdef i64[:, :, ::1] view = table
    cdef double[:, ::1] wait_view = waits
    cdef i64[::1] tx_view = tx_bytes
    cdef u32 port, c, index
    for port in range(w.n_ports):
        tx_view[port] = w.ports[port].tx_bytes
        for c in range(w.n_classes):
            index = port * w.n_classes + c
            view[0, port, c] = w.queues[index].bytes
            view[1, port, c] = w.queues[index].peak_bytes
            view[2, port, c] = <i64>w.queues[index].marks
            view[3, port, c] = w.queues[index].drops
            view[4, port, c] = w.ingress[index].bytes
            view[5, port, c] = w.ingress[index].headroom_used
            view[6, port, c] = w.pauses[index].headroom_peak
            view[7, port, c] = <i64>w.pauses[index].pauses_sent
            view[8, port, c] = w.pauses[index].paused_ps
            if w.ports[port].paused >> c & 1 and w.end_ps > w.pauses[index].since_ps:
                view[8, port, c] += w.end_ps - w.pauses[index].since_ps
            wait_view[port, c] = w.queues[index].wait_integral
    columns = {name: table[i] for i, name in enumerate(names)}
    columns["queue_wait_integral"] = waits
    columns["port_tx_bytes"] = tx_bytes
    return columns


cdef object shared_used(World* w):
    used = _np.zeros(w.n_nodes, dtype=_np.int64)
    cdef i64[::1] view = used
    cdef u32 node
    for node in range(w.n_nodes):
        view[node] = w.nodes[node].shared_used
    return used


cdef dict counters(World* w):
    cdef u32 port
    cdef u64 in_flight = 0
    for port in range(w.n_ports):
        in_flight += w.ports[port].link.tail - w.ports[port].link.head
    return {
        "hops": w.hops,
        "frames_started": w.frames_started,
        "frames_arrived": w.hops,
        "in_flight": in_flight,
        "lost_in_flight": w.faults.lost_frames,
        "end_ps": w.end_ps,
        "pauses_repeated": w.quanta.repeated,
        "pauses_run_out": w.quanta.ran_out,
        "fingerprint": w.fingerprint,
    }


cdef object recorded_rows(World* w, int stream):
    """The rows of one stream so far, in `fabric.lowered.ROW_ORDER`."""
    cdef u64 counts[8]
    cdef int k
    for k in range(N_STREAMS):
        counts[k] = w.streams[k].count
    append_pending_rows(w)
    cdef u64 count = w.streams[stream].count
    table = _np.zeros(count, dtype=_layout.ROW)
    if count:
        memcpy(<void*>pointer(table), w.streams[stream].rows, count * sizeof(Row))
    for k in range(N_STREAMS):
        w.streams[k].count = counts[k]
    if w.error:
        raise _SimulationError("memory has run out while rows were collected")
    return table[_row_order(table)]
