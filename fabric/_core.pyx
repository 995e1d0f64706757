"""The compiled module: builds a `World` from a `Lowered`, runs it in chunks, hands out columns.

This is the door to the engine; the engine itself is in `fabric/engine/*.pxd`. Nothing here knows a
model, and nothing there knows Python.
"""

import numpy as _np

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.string cimport memcmp, memcpy, memset

from fabric.engine.build cimport (
    allocate,
    allocate_paths,
    allocate_program,
    allocate_turns,
    free_world,
    place_nodes,
    prepare_choice,
)
from fabric.engine.fault cimport Fault
from fabric.engine.elsewhere cimport ON_COMPLETE_ELSEWHERE
from fabric.engine.link cimport set_rate
from fabric.engine.message cimport Connection, message_slot
from fabric.engine.node cimport HOST, Node
from fabric.engine.packet cimport TTL_SHIFT
from fabric.engine.port cimport ODD_RECORDED, ODD_TICKS, RECORD_CHOSEN_FLOWS, Port
from fabric.engine.profile cimport ECN_AT_ENQUEUE, SHARED_LEVEL, ClassProfile, Scheduler, TransportProfile
from fabric.engine.program cimport Program, TaskState, operation_of
from fabric.engine.recorder cimport FLOW_RECORD_PACKETS, append_pending_rows
from fabric.engine.rng cimport mix64
from fabric.engine.scheduler cimport shared_level, top_level
from fabric.engine.start cimport schedule_start
from fabric.engine.types cimport NEVER, i64, trailing_zeros, u8, u16, u32, u64
from fabric.engine.walker cimport schedule_entry
from fabric.engine.window cimport run_windows
from fabric.engine.world cimport (
    ERROR_FRAMES,
    ERROR_INVARIANT,
    ERROR_MEMORY,
    N_REASONS,
    N_STREAMS,
    NO_WINDOW,
    STOP_ERROR,
    Row,
    StopReason,
    World,
)

from fabric import lowered as _layout
from fabric.errors import SimulationError as _SimulationError

cdef enum:
    LEAST_PORT_BITS = 12
    LARGEST_FRAME_BYTES = 0xFFFF
    PURPOSE_ECN = 1
    PURPOSE_LINK_LOSS = 2
    PURPOSE_PATH_CHOICE = 32

_CAUSES = {
    ERROR_MEMORY: "memory has run out",
    ERROR_INVARIANT: "an invariant is violated",
    ERROR_FRAMES: "a connection has more than 2^32 - 1 frames",
}
_STOP_REASONS = ("FINISHED", "STALLED", "UNTIL", "BUDGET")


cdef const void* pointer(object array) except? NULL:
    """The address of an array's first element (arrays are kept alive by the engine)."""
    return <const void*><size_t>array.ctypes.data


cdef u64 purpose_key(u64 seed, u64 purpose):
    return mix64(seed * <u64>0x9E3779B97F4A7C15 + purpose)


def _row_order(table):
    """The order of `fabric.lowered.ROW_ORDER`: by place, where rows most often came in order of time."""
    place = table["port"].astype(_np.uint64) << 35 | table["class"].astype(_np.uint64) << 32 | table["flow"]
    order = _np.argsort(place, kind="stable")
    time_ps = table["time_ps"][order]
    if _np.any((_np.diff(time_ps) < 0) & (_np.diff(place[order]) == 0)):
        return _np.lexsort((table["time_ps"], place))
    return order


def _class_profiles(profiles, half_pool_bytes, per_ingress):
    """Rows of `ClassProfile`; where nothing is marked no depth is above Kmin."""
    derived = [(name, _np.int64) for name in ("easy_bytes", "easy_egress_bytes", "direct_bytes")]
    fields = [(name, _layout.PROFILE[name]) for name in _layout.PROFILE.names]
    table = _np.zeros(profiles.shape, dtype=_np.dtype(fields + derived, align=True))
    for name in _layout.PROFILE.names:
        table[name] = profiles[name]
    table["ecn_kmin_bytes"][table["ecn_mode"] == 0] = _np.iinfo(_np.int64).max
    anything = _np.iinfo(_np.int64).max
    for lossless, alpha, limit, easy in (
        (1, "alpha_q16", "limit_bytes", "easy_bytes"),
        (0, "egress_alpha_q16", "egress_limit_bytes", "easy_egress_bytes"),
    ):
        dynamic = half_pool_bytes * table[alpha].astype(_np.int64) >> 16
        threshold = _np.where(table[alpha] > 0, dynamic, table[limit])
        # a lossless class pauses its peer when it reaches the threshold
        table[easy] = _np.where(table["lossless"] == lossless, threshold - lossless, anything)
    table["direct_bytes"] = _np.where(profiles["ecn_mode"] == ECN_AT_ENQUEUE, profiles["ecn_kmin_bytes"], anything)
    if per_ingress:
        table["direct_bytes"] = -1
    return table


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
    cdef object lowered
    cdef dict arrays        # every array whose memory the world points to
    cdef dict results
    cdef dict program_results
    cdef i64 until_ps

    def __cinit__(self, lowered):
        self.w = <World*>PyMem_Malloc(sizeof(World))
        if self.w == NULL:
            raise MemoryError("no memory for a run")
        memset(self.w, 0, sizeof(World))
        self.lowered = lowered
        self.arrays = {}
        self.results = {}
        self.program_results = {}
        self._take_scalars()
        self._take_arrays()
        self._take_faults()
        self._take_program()
        if not allocate(
            self.w,
            bool(_np.any(lowered.node_arbiter)),
            lowered.record_queue_interval_ps > 0 or lowered.record_queue_delta > 0,
            lowered.record_throughput_interval_ps > 0,
            bool(_np.any(lowered.transports["telemetry"])),
        ):
            raise MemoryError(f"no memory for {lowered.n_nodes} nodes and {lowered.n_flows} flows")
        self._fill_nodes()
        self._fill_paths()
        self._fill_ports()
        self._fill_profiles()
        if _np.any(lowered.node_takes_turns) and not allocate_turns(self.w):
            raise MemoryError(f"no memory for {lowered.n_hosts} hosts")
        if not place_nodes(self.w):
            raise MemoryError(f"no memory for {lowered.n_nodes} nodes")
        self._fill_flows()
        self._fill_program()

    def __dealloc__(self):
        if self.w != NULL:
            free_world(self.w)
            PyMem_Free(self.w)

    cdef _take_scalars(self):
        cdef World* w = self.w
        lowered = self.lowered
        w.n_nodes = lowered.n_nodes
        w.n_hosts = lowered.n_hosts
        w.n_ports = lowered.n_ports
        w.n_classes = lowered.n_classes
        w.n_flows = lowered.n_flows
        w.n_host_ports = int(lowered.node_port_base[lowered.n_hosts])
        degrees = _np.diff(lowered.node_port_base.astype(_np.int64))
        w.n_wakes = int(_np.sum(_np.maximum(1, (degrees + 63) // 64)))
        self.until_ps = lowered.until_ps
        w.key_ecn = purpose_key(lowered.seed, PURPOSE_ECN)
        w.key_loss = purpose_key(lowered.seed, PURPOSE_LINK_LOSS)
        w.key_path = purpose_key(lowered.seed, PURPOSE_PATH_CHOICE)
        w.flowlet_gap_ps = lowered.flowlet_gap_ps
        w.ttl_bits = <u8>(lowered.ttl << TTL_SHIFT)
        w.port_bits = max(LEAST_PORT_BITS, int(degrees.max(initial=1) - 1).bit_length())
        w.port_mask = (1 << w.port_bits) - 1
        w.window_ps = self._longest_window_ps()
        w.window_cursor = NO_WINDOW
        w.fingerprint_on = lowered.fingerprint
        w.pfc_frame_bytes = lowered.pfc_frame_bytes
        w.ties_by_start = lowered.ties_by_start
        w.record = lowered.record
        w.queue_interval_ps = lowered.record_queue_interval_ps
        w.queue_delta = lowered.record_queue_delta
        w.throughput_interval_ps = lowered.record_throughput_interval_ps

    cdef i64 _longest_window_ps(self):
        """Within this time nodes can be run one by one, and a timer set at a start does not expire."""
        lowered = self.lowered
        bounds = [1 << (32 - self.w.port_bits)]
        if lowered.n_ports:
            bounds.append(int(lowered.port_delay_ps.min()))
        if lowered.window_ps:
            bounds.append(int(lowered.window_ps))
        rto_ps = lowered.transports["rto_ps"]
        return min(bounds + rto_ps[rto_ps > 0].tolist())

    cdef const void* _keep(self, str name, dtype) except? NULL:
        """The memory of a lowered array, contiguous and of the type that the engine expects."""
        array = _np.ascontiguousarray(getattr(self.lowered, name), dtype=dtype)
        self.arrays[name] = array
        return pointer(array)

    cdef void* _result(self, str name, size, dtype, fill) except? NULL:
        array = _np.full(max(1, size), fill, dtype=dtype)
        self.results[name] = array
        return <void*>pointer(array)

    cdef _take_arrays(self):
        cdef World* w = self.w
        w.transports = <TransportProfile*>self._keep("transports", _layout.TRANSPORT)
        # one more than there are, so that a look at the first port of a node without ports stays inside
        self.arrays["port_peer"] = _np.append(self.lowered.port_peer, 0).astype(_np.uint32)
        w.port_peer = <const u32*>pointer(self.arrays["port_peer"])
        w.port_node = <const u32*>self._keep("port_node", _np.uint32)
        w.port_rate_bps = <const i64*>self._keep("port_rate_bps", _np.int64)
        w.port_line_bps = w.port_rate_bps
        w.port_loss = <const double*>self._keep("port_loss", _np.float64)
        w.port_ber_rate = <const double*>self._keep("port_ber_rate", _np.float64)
        w.host_edge = <const u32*>self._keep("host_edge", _np.uint32)
        w.node_port_base = <const u32*>self._keep("node_port_base", _np.uint32)
        w.flow_source = <const u32*>self._keep("flow_source", _np.uint32)
        w.flow_destination = <const u32*>self._keep("flow_destination", _np.uint32)
        w.flow_port = <const u32*>self._keep("flow_port", _np.uint32)
        w.flow_class = <const u8*>self._keep("flow_class", _np.uint8)
        w.flow_transport = <const u16*>self._keep("flow_transport", _np.uint16)
        w.flow_frames = <const u32*>self._keep("flow_frames", _np.uint32)
        w.flow_last_frame_bytes = <const u32*>self._keep("flow_last_frame_bytes", _np.uint32)
        w.flow_start_ps = <const i64*>self._keep("flow_start_ps", _np.int64)
        w.flow_hash = <const u32*>self._keep("flow_hash", _np.uint32)
        w.dep_base = <const u32*>self._keep("dep_base", _np.uint32)
        w.dep_flow = <const u32*>self._keep("dep_flow", _np.uint32)
        w.dep_delay_ps = <const i64*>self._keep("dep_delay_ps", _np.int64)
        w.dep_on = <const u8*>self._keep("dep_on", _np.uint8)
        w.waits_elsewhere = bool(_np.any(self.lowered.dep_on == ON_COMPLETE_ELSEWHERE))
        w.flow_record = <const u8*>self._keep("flow_record", _np.uint8)
        w.host_address = <const u32*>self._keep("host_address", _np.uint32)
        w.flow_ports = <const u32*>self._keep("flow_ports", _np.uint32)
        self.arrays["flow_waits"] = _np.array(self.lowered.flow_waits, dtype=_np.uint32, copy=True)
        self.arrays["flow_ready_ps"] = _np.array(self.lowered.flow_start_ps, dtype=_np.int64, copy=True)
        w.flow_waits = <u32*>pointer(self.arrays["flow_waits"])
        w.flow_ready_ps = <i64*>pointer(self.arrays["flow_ready_ps"])
        w.flow_started_ps = <i64*>self._result("flow_started_ps", w.n_flows, _np.int64, -1)
        w.flow_delivered_ps = <i64*>self._result("flow_delivered_ps", w.n_flows, _np.int64, -1)
        w.flow_completed_ps = <i64*>self._result("flow_completed_ps", w.n_flows, _np.int64, -1)

    cdef const void* _own(self, str name, dtype) except? NULL:
        """As `_keep`, a copy that the run may change."""
        self.arrays[name] = _np.array(getattr(self.lowered, name), dtype=dtype, copy=True)
        return pointer(self.arrays[name])

    cdef const void* _keep_fault(self, str name, dtype) except? NULL:
        """As `_keep`, an array of the faults."""
        array = _np.ascontiguousarray(getattr(self.lowered.faults, name), dtype=dtype)
        self.arrays["fault_" + name] = array
        return pointer(array)

    cdef _take_faults(self):
        """What fails and is repaired, and copies of what that changes."""
        cdef World* w = self.w
        faults = self.lowered.faults
        w.faults.next_ps = NEVER
        if faults is None or len(faults.changes) == 0:
            return
        w.faults.changes = <const Fault*>self._keep_fault("changes", _layout.FAULT)
        w.faults.n_changes = len(faults.changes)
        w.faults.next_ps = w.faults.changes[0].time_ps
        w.faults.route_base = <const i64*>self._keep_fault("route_base", _np.int64)
        w.faults.route_place = <const i64*>self._keep_fault("route_place", _np.int64)
        w.faults.route_value = <const u32*>self._keep_fault("route_value", _np.uint32)
        w.faults.move_base = <const i64*>self._keep_fault("move_base", _np.int64)
        w.faults.move_flow = <const u32*>self._keep_fault("move_flow", _np.uint32)
        w.faults.move_port = <const u32*>self._keep_fault("move_port", _np.uint32)
        self.arrays["port_line_bps"] = self.arrays["port_rate_bps"]
        w.faults.port_rate_bps = <i64*>self._own("port_rate_bps", _np.int64)
        w.port_rate_bps = w.faults.port_rate_bps
        w.faults.port_loss = <double*>self._own("port_loss", _np.float64)
        w.port_loss = w.faults.port_loss
        w.faults.port_ber_rate = <double*>self._own("port_ber_rate", _np.float64)
        w.port_ber_rate = w.faults.port_ber_rate
        w.faults.flow_port = <u32*>self._own("flow_port", _np.uint32)
        w.flow_port = w.faults.flow_port
        w.faults.route_entry = <u32*>self._own("route_entry", _np.uint32)

    cdef _fill_profiles(self):
        """Gives each port the rows of its classes, with what the engine derives from them."""
        cdef World* w = self.w
        cdef const u16* profile = <const u16*>self._keep("port_profile", _np.uint16)
        cdef const u16* row
        cdef const ClassProfile* rows
        cdef const Node* n
        cdef u32 node, port, before = 0
        cdef u64 row_bytes = w.n_classes * sizeof(u16)
        cdef object kind, classes
        tables = {}     # by kind of port
        for node in range(w.n_nodes):
            n = &w.nodes[node]
            rows = NULL
            for port in range(n.port_base, n.port_base + n.n_ports):
                row = profile + <u64>port * w.n_classes
                if rows == NULL or memcmp(row, profile + <u64>before * w.n_classes, row_bytes):
                    classes = [row[c] for c in range(w.n_classes)]
                    kind = (n.shared_bytes, n.per_ingress_arbiter, *classes)
                    if kind not in tables:
                        tables[kind] = _class_profiles(
                            self.lowered.profiles[classes], n.shared_bytes // 2, n.per_ingress_arbiter
                        )
                    rows = <const ClassProfile*>pointer(tables[kind])
                w.gates[port].profiles = rows
                before = port
        self.arrays["profiles"] = list(tables.values())

    cdef Scheduler* _schedulers(self) except? NULL:
        """The schedulers, with what the engine derives from them."""
        table = _np.zeros((len(self.lowered.schedulers), sizeof(Scheduler)), dtype=_np.uint8)
        self.arrays["schedulers"] = table
        cdef Scheduler* rows = <Scheduler*>pointer(table)
        cdef int level, c, candidates
        cdef u8 mask
        for i, row in enumerate(self.lowered.schedulers):
            rows[i].n_levels = row["n_levels"]
            for level in range(8):
                rows[i].level_mask[level] = row["level_mask"][level]
                if shared_level(rows[i].level_mask[level]):
                    rows[i].shared_classes |= rows[i].level_mask[level]
            for c in range(8):
                rows[i].quantum[c] = row["quantum"][c]
            for candidates in range(1, 1 << self.w.n_classes):
                mask = rows[i].level_mask[top_level(&rows[i], candidates)]
                rows[i].first[candidates] = SHARED_LEVEL if shared_level(mask) else <u8>trailing_zeros(mask)
        return rows

    cdef _fill_nodes(self):
        cdef World* w = self.w
        cdef Node* n
        cdef u32 node
        cdef const u8* kind = <const u8*>self._keep("node_kind", _np.uint8)
        cdef const u8* arbiter = <const u8*>self._keep("node_arbiter", _np.uint8)
        cdef const u8* unpausable = <const u8*>self._keep("node_control_unpausable", _np.uint8)
        cdef const u16* scheduler = <const u16*>self._keep("node_scheduler", _np.uint16)
        cdef const Scheduler* schedulers = self._schedulers()
        cdef const u32* salt = <const u32*>self._keep("node_salt", _np.uint32)
        cdef const u64* tie_key = <const u64*>self._keep("node_tie_key", _np.uint64)
        cdef const i64* response_ps = <const i64*>self._keep("node_pfc_response_ps", _np.int64)
        cdef const i64* shared_bytes = <const i64*>self._keep("node_shared_bytes", _np.int64)
        cdef const i64* route_base = <const i64*>self._keep("route_base", _np.int64)
        cdef const i64* ports_base = <const i64*>self._keep("route_ports_base", _np.int64)
        cdef const u32* route_entry = w.faults.route_entry
        cdef const u16* route_ports = <const u16*>self._keep("route_ports", _np.uint16)
        if route_entry == NULL:
            route_entry = <const u32*>self._keep("route_entry", _np.uint32)
        for node in range(w.n_nodes):
            n = &w.nodes[node]
            n.port_base = w.node_port_base[node]
            n.n_ports = w.node_port_base[node + 1] - n.port_base
            n.kind = kind[node]
            n.per_ingress_arbiter = arbiter[node]
            n.control_ignores_pause = unpausable[node]
            n.scheduler = schedulers + scheduler[node]
            n.salt = salt[node]
            n.tie_key = tie_key[node]
            n.pfc_response_ps = response_ps[node]
            n.shared_bytes = shared_bytes[node]
            n.easy_used = n.shared_bytes // 2 - LARGEST_FRAME_BYTES
            if n.kind != HOST:
                n.route_entry = route_entry + route_base[node]
                n.route_ports = route_ports + ports_base[node]

    cdef _fill_paths(self):
        """What switches need that do more than ECMP, and flows that do more than go-back-N."""
        cdef World* w = self.w
        lowered = self.lowered
        cdef const u8* choice = <const u8*>self._keep("node_choice", _np.uint8)
        cdef const u32* pin_base = <const u32*>self._keep("pin_base", _np.uint32)
        cdef const u64* pin_key = <const u64*>self._keep("pin_key", _np.uint64)
        cdef const u16* pin_port = <const u16*>self._keep("pin_port", _np.uint16)
        cdef bint everywhere = w.ttl_bits != 0
        cdef u32 node, pool_ports
        transports = lowered.transports
        if not allocate_paths(
            w,
            lowered.n_edges,
            everywhere or bool(_np.any(lowered.node_choice)) or len(lowered.pin_key) > 0,
            bool(_np.any(transports["selective"]) or _np.any(transports["ack_delay_ps"]))
            or lowered.program is not None,
        ):
            raise MemoryError(f"no memory for {w.n_nodes} nodes and {w.n_flows} flows")
        pools = _np.append(lowered.route_ports_base[w.n_hosts:], len(lowered.route_ports))
        for node in range(w.n_hosts, w.n_nodes):
            if not (everywhere or choice[node] or pin_base[node + 1] > pin_base[node]):
                continue
            w.paths[node].n_pins = pin_base[node + 1] - pin_base[node]
            w.paths[node].pin_key = pin_key + pin_base[node]
            w.paths[node].pin_port = pin_port + pin_base[node]
            pool_ports = pools[node - w.n_hosts + 1] - pools[node - w.n_hosts]
            if not prepare_choice(w, node, choice[node], pool_ports):
                raise MemoryError(f"no memory for the path choice of {w.n_nodes} nodes")

    cdef _fill_ports(self):
        cdef World* w = self.w
        cdef Port* p
        cdef u32 port
        cdef const i64* delay_ps = <const i64*>self._keep("port_delay_ps", _np.int64)
        cdef const u16* gap_bytes = <const u16*>self._keep("port_gap_bytes", _np.uint16)
        cdef const u16* cut_bytes = <const u16*>self._keep("port_cut_bytes", _np.uint16)
        cdef const u8* record = <const u8*>self._keep("port_record", _np.uint8)
        cdef const u8* ticks = <const u8*>self._keep("port_tick_timing", _np.uint8)
        cdef u8 chosen = RECORD_CHOSEN_FLOWS if _np.any(self.lowered.flow_record & FLOW_RECORD_PACKETS) else 0
        for port in range(w.n_ports):
            p = &w.ports[port]
            p.delay_ps = delay_ps[port]
            p.gap_bytes = gap_bytes[port]
            p.cut_bytes = cut_bytes[port]
            p.record = record[port] | chosen
            p.odd = (ODD_TICKS if ticks[port] else 0) | (ODD_RECORDED if p.record else 0)
            set_rate(p, <u64>w.port_rate_bps[port])

    cdef _fill_flows(self):
        cdef World* w = self.w
        cdef u32 flow
        for flow in range(w.first_connection):
            if w.flow_waits[flow] == 0:
                schedule_start(w, flow, w.flow_start_ps[flow])
        if w.error:
            raise MemoryError(f"no memory for the start of {w.n_flows} flows")

    cdef const void* _keep_program(self, str name, dtype) except? NULL:
        """As `_keep`, an array of the program."""
        array = _np.append(getattr(self.lowered.program, name), 0).astype(dtype)
        self.arrays[name] = array
        return pointer(array)

    cdef _take_program(self):
        """The tables of a program; one more row than there are, so that none is empty."""
        cdef World* w = self.w
        cdef Program* p = &w.program
        program = self.lowered.program
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
        p.template_rank_base = <const u32*>self._keep_program("template_rank_base", _np.uint32)
        p.template_pieces = <const u32*>self._keep_program("template_pieces", _np.uint32)
        p.rank_lane_base = <const u32*>self._keep_program("rank_lane_base", _np.uint32)
        p.rank_receives = <const u32*>self._keep_program("rank_receives", _np.uint32)
        p.lane_transfer_base = <const u32*>self._keep_program("lane_transfer_base", _np.uint32)
        p.lane_destination = <const u32*>self._keep_program("lane_destination", _np.uint32)
        p.transfer_lane = <const u32*>self._keep_program("transfer_lane", _np.uint32)
        p.transfer_piece = <const u32*>self._keep_program("transfer_piece", _np.uint32)
        p.transfer_count = <const u32*>self._keep_program("transfer_count", _np.uint32)
        p.transfer_waits = <const u32*>self._keep_program("transfer_waits", _np.uint32)
        p.transfer_next_base = <const u32*>self._keep_program("transfer_next_base", _np.uint32)
        p.transfer_next = <const u32*>self._keep_program("transfer_next", _np.uint32)
        if len(program.transfer_follower):
            p.transfer_follower_base = <const u32*>self._keep_program("transfer_follower_base", _np.uint32)
            p.transfer_follower = <const u32*>self._keep_program("transfer_follower", _np.uint32)
        p.operation_template = <const u32*>self._keep_program("operation_template", _np.uint32)
        p.operation_bytes = <const i64*>self._keep_program("operation_bytes", _np.int64)
        p.operation_pieces = <const i64*>self._keep_program("operation_pieces", _np.int64)
        p.operation_start_ps = <const i64*>self._keep_program("operation_start_ps", _np.int64)
        p.operation_compute_ps = <const i64*>self._keep_program("operation_compute_ps", _np.int64)
        p.operation_eager = <const u8*>self._keep_program("operation_eager", _np.uint8)
        p.operation_lanes = <const i64*>self._keep_program("operation_lanes", _np.int64)
        p.operation_task_base = <const u32*>self._keep_program("operation_task_base", _np.uint32)
        p.piece_offset_bytes = <const i64*>self._keep_program("piece_offset_bytes", _np.int64)
        p.lane_connection = <const u32*>self._keep_program("lane_connection", _np.uint32)
        p.task_host = <const u32*>self._keep_program("task_host", _np.uint32)
        p.task_waits = <u32*>self._keep_program("task_waits", _np.uint32)
        p.task_next_base = <const u32*>self._keep_program("task_next_base", _np.uint32)
        p.task_next = <const u32*>self._keep_program("task_next", _np.uint32)
        lanes = _np.diff(program.rank_lane_base.astype(_np.int64))
        self.arrays["lane_source"] = _np.append(_np.repeat(_np.arange(len(lanes)), lanes), 0).astype(_np.uint32)
        p.lane_source = <const u32*>pointer(self.arrays["lane_source"])
        self.program_results = {
            "task_entered_ps": _np.full(p.n_tasks + 1, -1, dtype=_np.int64),
            "task_left_ps": _np.full(p.n_tasks + 1, -1, dtype=_np.int64),
            "operation_sent_bytes": _np.zeros(p.n_operations + 1, dtype=_np.int64),
        }
        p.entered_ps = <i64*>pointer(self.program_results["task_entered_ps"])
        p.left_ps = <i64*>pointer(self.program_results["task_left_ps"])
        p.sent_bytes = <i64*>pointer(self.program_results["operation_sent_bytes"])

    cdef _fill_program(self):
        cdef World* w = self.w
        cdef u32 task
        if self.lowered.program is None:
            return
        if not allocate_program(w):
            raise MemoryError(f"no memory for {w.program.n_tasks} tasks of a program")
        for task in range(w.program.n_tasks):
            if w.program.task_waits[task] == 0:
                schedule_entry(w, task, 0)
        if w.error:
            raise MemoryError(f"no memory for the start of {w.program.n_tasks} tasks of a program")

    def run(self, until_ps=None, max_hops=None):
        """Runs on; returns why it stopped: FINISHED, STALLED, UNTIL or BUDGET.

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
        result = {name: array[: self.w.n_flows].copy() for name, array in self.results.items()}
        result.update({name: array[: len(array) - 1].copy() for name, array in self.program_results.items()})
        result.update(self._flow_columns())
        result.update(self._port_columns())
        result["shared_used"] = self._shared_used()
        reasons = _np.zeros(N_REASONS, dtype=_np.uint64)
        cdef u64[::1] view = reasons
        cdef int k
        for k in range(N_REASONS):
            view[k] = self.w.drops_by_reason[k]
        result["drops_by_reason"] = reasons
        result["counters"] = self._counters()
        return result

    cdef dict _flow_columns(self):
        cdef World* w = self.w
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

    cdef dict _port_columns(self):
        cdef World* w = self.w
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

    cdef object _shared_used(self):
        used = _np.zeros(self.w.n_nodes, dtype=_np.int64)
        cdef i64[::1] view = used
        cdef u32 node
        for node in range(self.w.n_nodes):
            view[node] = self.w.nodes[node].shared_used
        return used

    cdef dict _counters(self):
        cdef World* w = self.w
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
            "fingerprint": w.fingerprint,
        }

    def waiting(self):
        """What the ranks of a program that are at work lack: see `fabric.reference.Simulator.waiting`.

        Returns
        -------
        numpy.ndarray of `fabric.lowered.POSTED`
            For each lane of each such task, how many of its transfers have been posted.
        numpy.ndarray of `fabric.lowered.ON_ITS_WAY`
            The messages that have been posted and have not arrived, by connection.
        """
        cdef World* w = self.w
        cdef Program* p = &w.program
        cdef u32 task, lane, k
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
            first, end = p.rank_lane_base[rank], p.rank_lane_base[rank + 1]
            lanes_posted = <u32*>(state + 1) + (p.lane_transfer_base[end] - p.lane_transfer_base[first])
            for lane in range(first, end):
                posted.append((task, lane, lanes_posted[lane - first]))
        sent = []
        for connection in range(p.n_connections + p.n_local):
            c = &w.connections[connection]
            for k in range(c.arrived if connection < p.n_connections else c.head, c.tail):
                sent.append((connection, message_slot(c, k).operation, message_slot(c, k).transfer))
        return _np.array(posted, dtype=_layout.POSTED), _np.array(sent, dtype=_layout.ON_ITS_WAY)

    def rows(self, stream):
        """The recorded rows of one stream so far, in `fabric.lowered.ROW_ORDER` (see `fabric.lowered.ROW`).

        Raises
        ------
        SimulationError
            If there is no memory for the rows that are still open.
        """
        cdef int number = _layout.STREAMS.index(stream)
        cdef u64 counts[7]
        cdef int k
        cdef World* w = self.w
        for k in range(N_STREAMS):
            counts[k] = w.streams[k].count
        append_pending_rows(w)
        cdef u64 count = w.streams[number].count
        table = _np.zeros(count, dtype=_layout.ROW)
        if count:
            memcpy(<void*>pointer(table), w.streams[number].rows, count * sizeof(Row))
        for k in range(N_STREAMS):
            w.streams[k].count = counts[k]
        if w.error:
            raise _SimulationError("memory has run out while rows were collected")
        return table[_row_order(table)]
