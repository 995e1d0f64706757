"""A hand-made `Lowered`: hosts on a chain of switches, with everything open to override.

For tests of an engine alone, without specs and lowering. Nothing is validated. Defaults are the
idle ideal: one class, unlimited memory, no marks, no loss, no congestion control, no wire overhead.

Nodes: hosts first, then switches. Cables: first those of the hosts, host by host, then those between
neighbouring switches. A node's ports are numbered in the order of its cables.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fabric.lowered import (
    OPEN_END_PS,
    PROFILE,
    ROUTE_DIRECT,
    SCHEDULER,
    TRANSPORT,
    Lowered,
)
from fabric.reference.rng import Purpose, draw, fmix32, purpose_key

PLENTY = 1 << 40

PROFILE_DEFAULTS: dict[str, Any] = {
    "lossless": 1,
    "ecn_mode": 0,
    "alpha_q16": 0,
    "egress_alpha_q16": 0,
    "reserved_bytes": 0,
    "limit_bytes": PLENTY,
    "xon_offset_bytes": 0,
    "headroom_bytes": PLENTY,
    "egress_limit_bytes": PLENTY,
    "ecn_kmin_bytes": PLENTY,
    "ecn_kmax_bytes": PLENTY,
    "ecn_pmax": 1.0,
}

US = 1_000_000

TRANSPORT_DEFAULTS: dict[str, Any] = {
    "frame_bytes": 4160,
    "payload_bytes": 4096,
    "control_bytes": 64,
    "control_class": 0,
    "feedback": 0,
    "congestion": 0,
    "nack_enabled": 1,
    "nack_on_rewind": 1,
    "clamp_target": 0,
    "ack_every": 1,
    "window_frames": 0,
    "fast_recovery": 5,
    "rto_ps": 0,
    "nack_interval_ps": 0,
    "cnp_interval_ps": 50 * US,
    "alpha_period_ps": 55 * US,
    "cut_period_ps": 4 * US,
    "increase_period_ps": 55 * US,
    "byte_counter": 10_000_000,
    "g": 1 / 256,
    "ai_bps": 40e6,
    "hai_bps": 400e6,
    "min_rate_bps": 1e6,
    "first_cut": 1.0,
    "ack_duplicates": 1,
    "variable_window": 0,
    "telemetry": 0,
    "fast_reaction": 1,
    "max_stage": 5,
    "window_bytes": 0,
    "base_rtt_ps": 10 * US,
    "rtt_low_ps": 10 * US,
    "rtt_high_ps": 60 * US,
    "eta": 0.95,
    "beta": 0.8,
    "ack_delay_ps": 0,
    "path_count": 1,
    "reorder_frames": 1,
    "path_mode": 0,
    "selective": 0,
    "whole_rates": 0,
    "telemetry_unit": 0,
    "least_frame_bytes": 64,
    "repath": 0,
}

Overrides = Mapping[str, Any]
NOTHING: Overrides = {}


def small_lowered(
    *,
    hosts: int = 2,
    switches: int = 1,
    attach: Sequence[int | tuple[int, ...]] | None = None,
    parallel: int = 1,
    rate_bps: int | Sequence[int] = 400 * 10**9,
    delay_ps: int | Sequence[int] = US,
    ports: Mapping[int, Overrides] | None = None,
    classes: int = 1,
    levels: Sequence[Sequence[int]] | None = None,
    quantum: Sequence[int] = (4160,) * 8,
    profile: Overrides | Sequence[Overrides] = NOTHING,
    shared_bytes: int = PLENTY,
    round_robin: bool = False,
    pfc_response_ps: int = 0,
    transport: Overrides | Sequence[Overrides] = NOTHING,
    flows: Sequence[Overrides] = (),
    seed: int = 1,
    **fields: Any,
) -> Lowered:
    """Build a `Lowered` from keyword overrides.

    Parameters
    ----------
    attach : sequence
        By host, the switch or switches that it hangs on; default: all on the first.
    parallel : int
        Cables between neighbouring switches.
    rate_bps, delay_ps : int or sequence
        For all cables, or by cable.
    ports : mapping
        Global port number to overrides of the `port_*` arrays, without their prefix
        (``{0: {"loss": 0.1}}``); "all" fields by `fields`.
    levels : sequence
        Classes by priority level; default: each class a level, the highest number first.
    profile, transport : mapping or sequence
        Overrides of the defaults above: for all classes, or by class; of one transport, or of several.
    flows : sequence of mapping
        source, destination, frames; optional last_frame_bytes, start_ps, traffic_class, transport (its
        index), local_port, path_hash, after: list of (predecessor, "delivered" | "complete", delay_ps).
    fields : object
        Replace fields of the `Lowered` (`until_ps`, `record`, ...); a scalar for an array field fills it.
    """
    attached = [(a,) if isinstance(a, int) else tuple(a) for a in (attach or [0] * hosts)]
    cables = [(h, hosts + s) for h, at in enumerate(attached) for s in at]
    cables += [(hosts + s, hosts + s + 1) for s in range(switches - 1) for _ in range(parallel)]
    n_nodes = hosts + switches
    wiring = _wire(n_nodes, cables)
    edges = sorted(set(attached))
    dependencies = _dependencies(flows)
    transports = [transport] if isinstance(transport, Mapping) else list(transport)
    key = {purpose: purpose_key(seed, purpose) for purpose in Purpose}
    flow_transport = [flow.get("transport", 0) for flow in flows]
    frame_bytes = [transports[t].get("frame_bytes", 4160) for t in flow_transport]

    def flow_column(name: str, default: int) -> list[int]:
        return [flow.get(name, default) for flow in flows]

    lowered = Lowered(
        seed=seed,
        until_ps=OPEN_END_PS,
        window_ps=0,
        n_nodes=n_nodes,
        n_hosts=hosts,
        n_ports=2 * len(cables),
        n_classes=classes,
        n_edges=len(edges),
        n_flows=len(flows),
        node_kind=np.array([0] * hosts + [1] * switches, np.uint8),
        node_port_base=wiring["base"],
        node_scheduler=np.zeros(n_nodes, np.uint16),
        node_arbiter=np.full(n_nodes, round_robin, np.uint8),
        node_pfc_response_ps=np.full(n_nodes, pfc_response_ps, np.int64),
        node_shared_bytes=np.array([0] * hosts + [shared_bytes] * switches, np.int64),
        node_tie_key=np.array([draw(key[Purpose.TIE], n, 0) for n in range(n_nodes)], np.uint64),
        node_salt=np.array(
            [draw(key[Purpose.ECMP_SALT], n, 0) & 0xFFFFFFFF for n in range(n_nodes)], np.uint32
        ),
        schedulers=_scheduler(levels or [[c] for c in reversed(range(classes))], quantum),
        port_peer=wiring["peer"],
        port_node=wiring["node"],
        port_rate_bps=_by_cable(rate_bps, wiring["cable"]),
        port_delay_ps=_by_cable(delay_ps, wiring["cable"]),
        port_gap_bytes=np.zeros(2 * len(cables), np.uint16),
        port_cut_bytes=np.zeros(2 * len(cables), np.uint16),
        port_loss=np.zeros(2 * len(cables)),
        port_ber_rate=np.zeros(2 * len(cables)),
        port_profile=np.tile(np.arange(classes, dtype=np.uint16), 2 * len(cables)),
        profiles=_records(
            [profile] * classes if isinstance(profile, Mapping) else profile, PROFILE_DEFAULTS, PROFILE
        ),
        host_edge=np.array([edges.index(at) for at in attached], np.uint32),
        **_routes(hosts, switches, edges, wiring),
        transports=_records(transports, TRANSPORT_DEFAULTS, TRANSPORT),
        flow_source=np.array(flow_column("source", 0), np.uint32),
        flow_destination=np.array(flow_column("destination", 1), np.uint32),
        flow_port=np.array(
            [wiring["base"][flow.get("source", 0)] + flow.get("local_port", 0) for flow in flows], np.uint32
        ),
        flow_class=np.array(flow_column("traffic_class", 0), np.uint8),
        flow_transport=np.array(flow_transport, np.uint16),
        flow_frames=np.array(flow_column("frames", 1), np.uint32),
        flow_last_frame_bytes=np.array(
            [flow.get("last_frame_bytes", full) for flow, full in zip(flows, frame_bytes, strict=True)],
            np.uint32,
        ),
        flow_start_ps=np.array(flow_column("start_ps", 0), np.int64),
        flow_hash=np.array([flow.get("path_hash", fmix32(f + 1)) for f, flow in enumerate(flows)], np.uint32),
        flow_waits=np.array([len(flow.get("after", ())) for flow in flows], np.uint32),
        **dependencies,
        fingerprint=1,
        record=0,
        record_queue_interval_ps=0,
        record_queue_delta=1,
        record_throughput_interval_ps=US,
        port_record=np.zeros(2 * len(cables), np.uint8),
        flow_record=np.zeros(len(flows), np.uint8),
        port_tick_timing=np.zeros(2 * len(cables), np.uint8),
        pfc_frame_bytes=64,
        node_control_unpausable=np.zeros(n_nodes, np.uint8),
        node_takes_turns=np.zeros(n_nodes, np.uint8),
        node_choice=np.zeros(n_nodes, np.uint8),
        flowlet_gap_ps=10 * US,
        ttl=0,
        deadlock=1,
        watchdog_poll_ps=0,
        watchdog_detect_polls=1,
        watchdog_restore_polls=1,
        watchdog_restores_by_time=0,
        watchdog_action=1,
        watchdog_drops_ingress=0,
        pfc_refresh_ps=0,
        port_pause_ps=np.zeros(0, np.int64),
        port_pause_holds=np.zeros(0, np.uint8),
        pin_base=np.zeros(n_nodes + 1, np.uint32),
        ties_by_start=0,
        host_address=np.zeros(0, np.uint32),
        flow_ports=np.zeros(0, np.uint32),
        pin_key=np.zeros(0, np.uint64),
        pin_port=np.zeros(0, np.uint16),
        program=None,
        faults=None,
    )
    for port, overrides in (ports or {}).items():
        for name, value in overrides.items():
            getattr(lowered, f"port_{name}")[port] = value
    return replace(lowered, **{name: _like(getattr(lowered, name), value) for name, value in fields.items()})


def busy_lowered(seed: int) -> Lowered:
    """A small fabric with everything in it, by chance: the same for the same `seed`.

    Few destinations, little memory, low thresholds, short periods: so that drops, pauses, marks, rate
    changes, rewinds and time-outs all happen within some thousand hops. It may end unfinished.
    """
    rng = random.Random(seed)
    hosts, switches, classes = rng.randint(3, 8), rng.randint(1, 3), rng.randint(1, 3)
    attach = [tuple(sorted(rng.choices(range(switches), k=rng.choice([1, 1, 1, 2])))) for _ in range(hosts)]
    cables = sum(map(len, attach)) + 2 * (switches - 1)
    frame_bytes = rng.choice([1000, 4160])
    return small_lowered(
        hosts=hosts,
        switches=switches,
        attach=attach,
        parallel=2,
        rate_bps=rng.choice([400 * 10**9, [rng.choice([100, 400, 900]) * 10**9 for _ in range(cables)]]),
        delay_ps=rng.choice([US, [rng.randint(200_000, 2 * US) for _ in range(cables)]]),
        classes=classes,
        levels=rng.choice([None, [list(range(classes))]]),
        quantum=[rng.randint(1, 3) * frame_bytes for _ in range(8)],
        profile=[_busy_profile(rng, frame_bytes) for _ in range(classes)],
        shared_bytes=rng.choice([30, 80, 400]) * frame_bytes,
        round_robin=rng.random() < 0.5,
        pfc_response_ps=rng.choice([0, 150_000]),
        transport=[_busy_transport(rng, frame_bytes, classes) for _ in range(2)],
        flows=_busy_flows(rng, attach, classes, frame_bytes),
        seed=seed,
        port_loss=rng.choice([0.0, 0.0, 0.002, 0.02]),
        port_ber_rate=rng.choice([0.0, 1e-7]),
        port_gap_bytes=rng.choice([0, 20]),
        port_cut_bytes=rng.choice([0, 0, 128]),
        record=7,
        port_record=7,
        flow_record=3,
        until_ps=rng.choice([40 * US, 5_000 * US]),
        record_queue_interval_ps=rng.choice([0, 50_000]),
        record_queue_delta=rng.choice([1, 3 * frame_bytes]),
    )


def _busy_profile(rng: random.Random, frame_bytes: int) -> dict[str, Any]:
    return {
        "lossless": rng.random() < 0.6,
        "alpha_q16": rng.choice([0, 8192, 65536]),
        "limit_bytes": rng.randint(2, 12) * frame_bytes,
        "reserved_bytes": rng.choice([0, frame_bytes // 2, 2 * frame_bytes]),
        "xon_offset_bytes": rng.choice([0, 2 * frame_bytes]),
        "headroom_bytes": rng.choice([5, 100]) * frame_bytes,
        "ecn_mode": rng.randint(0, 2),
        "ecn_kmin_bytes": rng.choice([0, 3]) * frame_bytes,
        "ecn_kmax_bytes": rng.choice([3, 30]) * frame_bytes,
        "ecn_pmax": rng.choice([0.1, 0.8]),
        "egress_alpha_q16": rng.choice([0, 16384, 65536]),
        "egress_limit_bytes": rng.randint(4, 25) * frame_bytes,
    }


def _busy_transport(rng: random.Random, frame_bytes: int, classes: int) -> dict[str, Any]:
    congestion = rng.randint(0, 5)
    return {
        "frame_bytes": frame_bytes,
        "control_class": rng.choice([0, classes - 1]),
        "ack_every": rng.randint(1, 4),
        "rto_ps": rng.choice([0, 60 * US, 200 * US]),
        "nack_enabled": rng.random() < 0.8,
        "nack_on_rewind": rng.randint(0, 1),
        "nack_interval_ps": rng.choice([0, 0, 3 * US]),
        "feedback": rng.randint(0, 2),
        "cnp_interval_ps": rng.choice([0, 2 * US, 50 * US]),
        "congestion": congestion,
        "telemetry": {3: 2, 5: 1}.get(congestion, rng.choice([0, 0, 0, 1, 2])),
        "clamp_target": rng.randint(0, 1),
        "window_frames": rng.choice([0, 0, 1, 8]),
        "fast_recovery": rng.choice([1, 5]),
        "alpha_period_ps": rng.choice([US, 55 * US]),
        "cut_period_ps": rng.choice([US, 4 * US]),
        "increase_period_ps": rng.choice([3 * US, 55 * US]),
        "byte_counter": rng.choice([0, 30_000]),
        "g": rng.choice([1 / 256, 1 / 16]),
        "ai_bps": 1e9,
        "hai_bps": 5e9,
        "min_rate_bps": rng.choice([1e8, 1e10]),
        "first_cut": rng.choice([1.0, 0.5]),
        "ack_duplicates": rng.choice([1, 1, 0]),
        "variable_window": rng.randint(0, 1),
        "fast_reaction": rng.randint(0, 1),
        "max_stage": rng.choice([0, 1, 5]),
        "window_bytes": rng.choice([1, 10, 60]) * 4096,
        "base_rtt_ps": rng.choice([5, 20]) * US,
        "rtt_low_ps": rng.choice([5, 12]) * US,
        "rtt_high_ps": rng.choice([20, 60]) * US,
        "eta": rng.choice([0.95, 0.5]),
    }


def _busy_flows(
    rng: random.Random, attach: Sequence[tuple[int, ...]], classes: int, frame_bytes: int
) -> list[dict[str, Any]]:
    hosts = len(attach)
    flows: list[dict[str, Any]] = []
    for flow in range(rng.randint(4, 24)):
        destination = rng.choice([0, 0, 0, 1, rng.randrange(hosts)])
        source = (destination + rng.randint(1, hosts - 1)) % hosts
        waits_for = [(rng.randrange(max(1, flow)), rng.choice(["delivered", "complete"]), 20 * US)]
        flows.append(
            {
                "source": source,
                "destination": destination,
                "frames": rng.choice([1, rng.randint(2, 20), rng.randint(20, 90)]),
                "traffic_class": rng.randrange(classes),
                "transport": rng.randrange(2),
                "local_port": rng.randrange(len(attach[source])),
                "last_frame_bytes": rng.randint(80, frame_bytes),
                "start_ps": rng.choice([0, rng.randrange(5 * US)]),
                "after": waits_for if flow > 12 else [],
            }
        )
    return flows


def port_to(lowered: Lowered, node: int, peer_node: int, *, nth: int = 0) -> int:
    """Global number of the `nth` port of `node` whose cable leads to `peer_node`."""
    base, end = lowered.node_port_base[node : node + 2]
    found = [p for p in range(base, end) if lowered.port_node[lowered.port_peer[p]] == peer_node]
    return found[nth]


def _like(old: Any, value: Any) -> Any:
    return np.full_like(old, value) if isinstance(old, np.ndarray) else value


def _wire(n_nodes: int, cables: list[tuple[int, int]]) -> dict[str, Any]:
    """Number the ports; peers, nodes and cables by port."""
    ends = [(node, cable) for cable, pair in enumerate(cables) for node in pair]
    order = sorted(range(len(ends)), key=lambda i: ends[i][0])
    number = {end: port for port, end in enumerate(order)}
    node = np.array([ends[end][0] for end in order], np.uint32)
    return {
        "node": node,
        "cable": np.array([ends[end][1] for end in order]),
        "peer": np.array([number[end ^ 1] for end in order], np.uint32),
        "base": np.searchsorted(node, np.arange(n_nodes + 1)).astype(np.uint32),
    }


def _by_cable(value: int | Sequence[int], cable: Any) -> Any:
    if isinstance(value, int):
        return np.full(len(cable), value, np.int64)
    return np.array(value, np.int64)[cable]


def _scheduler(levels: Sequence[Sequence[int]], quantum: Sequence[int]) -> Any:
    table = np.zeros(1, SCHEDULER)
    table["n_levels"] = len(levels)
    table["level_mask"][0, : len(levels)] = [sum(1 << c for c in level) for level in levels]
    table["quantum"][0, : len(quantum)] = quantum
    return table


def _records(overrides: Sequence[Overrides], defaults: Overrides, dtype: np.dtype[Any]) -> Any:
    table = np.zeros(len(overrides), dtype)
    for row, override in enumerate(overrides):
        unknown = set(override) - set(defaults)
        assert not unknown, f"unknown fields {sorted(unknown)}"
        for name in dtype.names or ():
            table[row][name] = {**defaults, **override}[name]
    return table


def _routes(
    hosts: int, switches: int, edges: list[tuple[int, ...]], wiring: dict[str, Any]
) -> dict[str, Any]:
    """Along the chain, towards the nearest switch of the edge."""
    base, node, peer = wiring["base"], wiring["node"], wiring["peer"]
    entries: list[int] = []
    pool: list[int] = []
    pool_base: list[int] = [-1] * hosts
    for switch in range(switches):
        at = hosts + switch
        pool_base.append(len(pool))
        for edge in edges:
            nearest = min(edge, key=lambda s: abs(s - switch))
            if switch in edge:
                entries.append(ROUTE_DIRECT)
                continue
            towards = at + (1 if nearest > switch else -1)
            group = [p - base[at] for p in range(base[at], base[at + 1]) if node[peer[p]] == towards]
            entries.append(len(group) << 16 | len(pool) - pool_base[-1])
            pool += group
    return {
        "route_base": np.array([-1] * hosts + [s * len(edges) for s in range(switches)], np.int64),
        "route_entry": np.array(entries, np.uint32),
        "route_ports_base": np.array(pool_base, np.int64),
        "route_ports": np.array(pool, np.uint16),
    }


def _dependencies(flows: Sequence[Overrides]) -> dict[str, Any]:
    kinds = {"delivered": 0, "complete": 1}
    edges = sorted(
        (predecessor, flow, delay_ps, kinds[kind])
        for flow, spec in enumerate(flows)
        for predecessor, kind, delay_ps in spec.get("after", ())
    )
    columns = np.array(edges, np.int64).reshape(-1, 4)
    return {
        "dep_base": np.searchsorted(columns[:, 0], np.arange(len(flows) + 1)).astype(np.uint32),
        "dep_flow": columns[:, 1].astype(np.uint32),
        "dep_delay_ps": columns[:, 2],
        "dep_on": columns[:, 3].astype(np.uint8),
    }
