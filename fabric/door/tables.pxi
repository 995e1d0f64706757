"""Gives a world what the arrays of a lowered scenario say: nodes, ports, classes, flows, paths."""

from libc.string cimport memcmp

from fabric.engine.build cimport allocate_paths, prepare_choice
from fabric.engine.elsewhere cimport ON_COMPLETE_ELSEWHERE
from fabric.engine.link cimport START_PHASE_PS, set_rate
from fabric.engine.node cimport HOST, Node
from fabric.engine.packet cimport TTL_SHIFT
from fabric.engine.port cimport ODD_RECORDED, ODD_TICKS, RECORD_CHOSEN_FLOWS, Port
from fabric.engine.profile cimport ECN_AT_ENQUEUE, SHARED_LEVEL, ClassProfile, Scheduler, TransportProfile
from fabric.engine.recorder cimport FLOW_RECORD_PACKETS
from fabric.engine.rng cimport mix64
from fabric.engine.scheduler cimport shared_level, top_level
from fabric.engine.start cimport schedule_start
from fabric.engine.types cimport i64, trailing_zeros, u8, u16, u32, u64
from fabric.engine.world cimport NO_WINDOW, World

cdef enum:
    LEAST_PORT_BITS = 12
    LARGEST_FRAME_BYTES = 0xFFFF
    PURPOSE_ECN = 1
    PURPOSE_LINK_LOSS = 2
    PURPOSE_PATH_CHOICE = 32


cdef const void* pointer(object array) except? NULL:
    """The address of an array's first element (arrays are kept alive by the engine)."""
    return <const void*><size_t>array.ctypes.data


cdef class _Memory:
    """Every array whose memory a world points to: of the scenario, and of what comes out."""

    cdef dict arrays
    cdef dict results
    cdef dict program_results

    def __cinit__(self):
        self.arrays = {}
        self.results = {}
        self.program_results = {}

    cdef const void* keep(self, object lowered, str name, dtype) except? NULL:
        """The memory of a lowered array, contiguous and of the type that the engine expects."""
        array = _np.ascontiguousarray(getattr(lowered, name), dtype=dtype)
        self.arrays[name] = array
        return pointer(array)

    cdef void* result(self, str name, size, dtype, fill) except? NULL:
        """The memory of a new array of a result."""
        array = _np.full(max(1, size), fill, dtype=dtype)
        self.results[name] = array
        return <void*>pointer(array)


cdef u64 purpose_key(u64 seed, u64 purpose):
    return mix64(seed * <u64>0x9E3779B97F4A7C15 + purpose)


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


cdef take_scalars(World* w, object lowered):
    w.n_nodes = lowered.n_nodes
    w.n_hosts = lowered.n_hosts
    w.n_ports = lowered.n_ports
    w.n_classes = lowered.n_classes
    w.n_flows = lowered.n_flows
    w.n_host_ports = int(lowered.node_port_base[lowered.n_hosts])
    degrees = _np.diff(lowered.node_port_base.astype(_np.int64))
    w.n_wakes = int(_np.sum(_np.maximum(1, (degrees + 63) // 64)))
    w.key_ecn = purpose_key(lowered.seed, PURPOSE_ECN)
    w.key_loss = purpose_key(lowered.seed, PURPOSE_LINK_LOSS)
    w.key_path = purpose_key(lowered.seed, PURPOSE_PATH_CHOICE)
    w.flowlet_gap_ps = lowered.flowlet_gap_ps
    w.ttl_bits = <u8>(lowered.ttl << TTL_SHIFT)
    w.port_bits = max(LEAST_PORT_BITS, int(degrees.max(initial=1) - 1).bit_length())
    w.port_mask = (1 << w.port_bits) - 1
    w.window_ps = longest_window_ps(w, lowered)
    w.window_cursor = NO_WINDOW
    w.fingerprint_on = lowered.fingerprint
    w.pfc_frame_bytes = lowered.pfc_frame_bytes
    w.ties_by_start = lowered.ties_by_start
    w.record = lowered.record
    w.queue_interval_ps = lowered.record_queue_interval_ps
    w.queue_delta = lowered.record_queue_delta
    w.throughput_interval_ps = lowered.record_throughput_interval_ps


cdef i64 longest_window_ps(World* w, object lowered):
    """Within this time nodes can be run one by one, and a timer set at a start does not expire."""
    bounds = [1 << (32 - w.port_bits)]
    if lowered.n_ports:
        # a frame that takes no time counts from the beginning of its nanosecond
        bounds.append(int(lowered.port_delay_ps.min()) - (START_PHASE_PS if lowered.ties_by_start else 0))
    if lowered.window_ps:
        bounds.append(int(lowered.window_ps))
    rto_ps = lowered.transports["rto_ps"]
    return min(bounds + rto_ps[rto_ps > 0].tolist())


cdef take_arrays(World* w, _Memory memory, object lowered):
    w.transports = <TransportProfile*>memory.keep(lowered, "transports", _layout.TRANSPORT)
    # one more than there are, so that a look at the first port of a node without ports stays inside
    memory.arrays["port_peer"] = _np.append(lowered.port_peer, 0).astype(_np.uint32)
    w.port_peer = <const u32*>pointer(memory.arrays["port_peer"])
    w.port_node = <const u32*>memory.keep(lowered, "port_node", _np.uint32)
    w.port_rate_bps = <const i64*>memory.keep(lowered, "port_rate_bps", _np.int64)
    w.port_line_bps = w.port_rate_bps
    w.port_loss = <const double*>memory.keep(lowered, "port_loss", _np.float64)
    w.port_ber_rate = <const double*>memory.keep(lowered, "port_ber_rate", _np.float64)
    w.host_edge = <const u32*>memory.keep(lowered, "host_edge", _np.uint32)
    w.node_port_base = <const u32*>memory.keep(lowered, "node_port_base", _np.uint32)
    w.flow_source = <const u32*>memory.keep(lowered, "flow_source", _np.uint32)
    w.flow_destination = <const u32*>memory.keep(lowered, "flow_destination", _np.uint32)
    w.flow_port = <const u32*>memory.keep(lowered, "flow_port", _np.uint32)
    w.flow_class = <const u8*>memory.keep(lowered, "flow_class", _np.uint8)
    w.flow_transport = <const u16*>memory.keep(lowered, "flow_transport", _np.uint16)
    w.flow_frames = <const u32*>memory.keep(lowered, "flow_frames", _np.uint32)
    w.flow_last_frame_bytes = <const u32*>memory.keep(lowered, "flow_last_frame_bytes", _np.uint32)
    w.flow_start_ps = <const i64*>memory.keep(lowered, "flow_start_ps", _np.int64)
    w.flow_hash = <const u32*>memory.keep(lowered, "flow_hash", _np.uint32)
    w.dep_base = <const u32*>memory.keep(lowered, "dep_base", _np.uint32)
    w.dep_flow = <const u32*>memory.keep(lowered, "dep_flow", _np.uint32)
    w.dep_delay_ps = <const i64*>memory.keep(lowered, "dep_delay_ps", _np.int64)
    w.dep_on = <const u8*>memory.keep(lowered, "dep_on", _np.uint8)
    w.waits_elsewhere = bool(_np.any(lowered.dep_on == ON_COMPLETE_ELSEWHERE))
    w.flow_record = <const u8*>memory.keep(lowered, "flow_record", _np.uint8)
    w.host_address = <const u32*>memory.keep(lowered, "host_address", _np.uint32)
    w.flow_ports = <const u32*>memory.keep(lowered, "flow_ports", _np.uint32)
    memory.arrays["flow_waits"] = _np.array(lowered.flow_waits, dtype=_np.uint32, copy=True)
    memory.arrays["flow_ready_ps"] = _np.array(lowered.flow_start_ps, dtype=_np.int64, copy=True)
    w.flow_waits = <u32*>pointer(memory.arrays["flow_waits"])
    w.flow_ready_ps = <i64*>pointer(memory.arrays["flow_ready_ps"])
    w.flow_started_ps = <i64*>memory.result("flow_started_ps", w.n_flows, _np.int64, -1)
    w.flow_delivered_ps = <i64*>memory.result("flow_delivered_ps", w.n_flows, _np.int64, -1)
    w.flow_completed_ps = <i64*>memory.result("flow_completed_ps", w.n_flows, _np.int64, -1)


cdef fill_profiles(World* w, _Memory memory, object lowered):
    """Gives each port the rows of its classes, with what the engine derives from them."""
    cdef const u16* profile = <const u16*>memory.keep(lowered, "port_profile", _np.uint16)
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
                        lowered.profiles[classes], n.shared_bytes // 2, n.per_ingress_arbiter
                    )
                rows = <const ClassProfile*>pointer(tables[kind])
            w.gates[port].profiles = rows
            before = port
    memory.arrays["profiles"] = list(tables.values())


cdef Scheduler* schedulers_of(World* w, _Memory memory, object lowered) except? NULL:
    """The schedulers, with what the engine derives from them."""
    table = _np.zeros((len(lowered.schedulers), sizeof(Scheduler)), dtype=_np.uint8)
    memory.arrays["schedulers"] = table
    cdef Scheduler* rows = <Scheduler*>pointer(table)
    cdef int level, c, candidates
    cdef u8 mask
    for i, row in enumerate(lowered.schedulers):
        rows[i].n_levels = row["n_levels"]
        for level in range(8):
            rows[i].level_mask[level] = row["level_mask"][level]
            if shared_level(rows[i].level_mask[level]):
                rows[i].shared_classes |= rows[i].level_mask[level]
        for c in range(8):
            rows[i].quantum[c] = row["quantum"][c]
        for candidates in range(1, 1 << w.n_classes):
            mask = rows[i].level_mask[top_level(&rows[i], candidates)]
            rows[i].first[candidates] = SHARED_LEVEL if shared_level(mask) else <u8>trailing_zeros(mask)
    return rows


cdef fill_nodes(World* w, _Memory memory, object lowered):
    cdef Node* n
    cdef u32 node
    cdef const u8* kind = <const u8*>memory.keep(lowered, "node_kind", _np.uint8)
    cdef const u8* arbiter = <const u8*>memory.keep(lowered, "node_arbiter", _np.uint8)
    cdef const u8* unpausable = <const u8*>memory.keep(lowered, "node_control_unpausable", _np.uint8)
    cdef const u16* scheduler = <const u16*>memory.keep(lowered, "node_scheduler", _np.uint16)
    cdef const Scheduler* schedulers = schedulers_of(w, memory, lowered)
    cdef const u32* salt = <const u32*>memory.keep(lowered, "node_salt", _np.uint32)
    cdef const u64* tie_key = <const u64*>memory.keep(lowered, "node_tie_key", _np.uint64)
    cdef const i64* response_ps = <const i64*>memory.keep(lowered, "node_pfc_response_ps", _np.int64)
    cdef const i64* shared_bytes = <const i64*>memory.keep(lowered, "node_shared_bytes", _np.int64)
    cdef const i64* route_base = <const i64*>memory.keep(lowered, "route_base", _np.int64)
    cdef const i64* ports_base = <const i64*>memory.keep(lowered, "route_ports_base", _np.int64)
    cdef const u32* route_entry = w.faults.route_entry
    cdef const u16* route_ports = <const u16*>memory.keep(lowered, "route_ports", _np.uint16)
    if route_entry == NULL:
        route_entry = <const u32*>memory.keep(lowered, "route_entry", _np.uint32)
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


cdef fill_paths(World* w, _Memory memory, object lowered):
    """What switches need that do more than ECMP, and flows that do more than go-back-N."""
    cdef const u8* choice = <const u8*>memory.keep(lowered, "node_choice", _np.uint8)
    cdef const u32* pin_base = <const u32*>memory.keep(lowered, "pin_base", _np.uint32)
    cdef const u64* pin_key = <const u64*>memory.keep(lowered, "pin_key", _np.uint64)
    cdef const u16* pin_port = <const u16*>memory.keep(lowered, "pin_port", _np.uint16)
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


cdef fill_ports(World* w, _Memory memory, object lowered):
    cdef Port* p
    cdef u32 port
    cdef const i64* delay_ps = <const i64*>memory.keep(lowered, "port_delay_ps", _np.int64)
    cdef const u16* gap_bytes = <const u16*>memory.keep(lowered, "port_gap_bytes", _np.uint16)
    cdef const u16* cut_bytes = <const u16*>memory.keep(lowered, "port_cut_bytes", _np.uint16)
    cdef const u8* record = <const u8*>memory.keep(lowered, "port_record", _np.uint8)
    cdef const u8* ticks = <const u8*>memory.keep(lowered, "port_tick_timing", _np.uint8)
    cdef u8 chosen = RECORD_CHOSEN_FLOWS if _np.any(lowered.flow_record & FLOW_RECORD_PACKETS) else 0
    for port in range(w.n_ports):
        p = &w.ports[port]
        p.delay_ps = delay_ps[port]
        p.gap_bytes = gap_bytes[port]
        p.cut_bytes = cut_bytes[port]
        p.record = record[port] | chosen
        p.odd = (ODD_TICKS if ticks[port] else 0) | (ODD_RECORDED if p.record else 0)
        set_rate(p, <u64>w.port_rate_bps[port])


cdef fill_flows(World* w):
    cdef u32 flow
    for flow in range(w.first_connection):
        if w.flow_waits[flow] == 0:
            schedule_start(w, flow, w.flow_start_ps[flow])
    if w.error:
        raise MemoryError(f"no memory for the start of {w.n_flows} flows")
