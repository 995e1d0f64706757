"""`Lowered`: a scenario as flat arrays, the one thing that an engine reads.

`fabric.lower` builds it from specs; `fabric._core` and `fabric.reference` run it. Every field is
described in `docs/design.md` section 9. Nothing here has defaults, units stand in the names, and
nothing is validated: specs are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = [
    "FAULT",
    "OPEN_END_PS",
    "PROFILE",
    "ROW",
    "SCHEDULER",
    "TRANSPORT",
    "DropReason",
    "FaultKind",
    "Lowered",
    "LoweredFaults",
    "LoweredProgram",
]

OPEN_END_PS = 2**62
"""`until_ps` of a run without a bound."""

ROUTE_DIRECT = 0xFFFFFFFF
"""A route entry: the destination host hangs on this very switch."""

SCHEDULER = np.dtype([("n_levels", "u1"), ("level_mask", "u1", (8,)), ("quantum", "u4", (8,))], align=True)
PROFILE = np.dtype(
    [
        ("lossless", "u1"),
        ("ecn_mode", "u1"),
        ("alpha_q16", "u4"),
        ("egress_alpha_q16", "u4"),
        ("reserved_bytes", "i8"),
        ("limit_bytes", "i8"),
        ("xon_offset_bytes", "i8"),
        ("headroom_bytes", "i8"),
        ("egress_limit_bytes", "i8"),
        ("ecn_kmin_bytes", "i8"),
        ("ecn_kmax_bytes", "i8"),
        ("ecn_pmax", "f8"),
    ],
    align=True,
)
TRANSPORT = np.dtype(
    [
        ("frame_bytes", "u4"),
        ("payload_bytes", "u4"),
        ("control_bytes", "u4"),
        ("control_class", "u1"),
        ("feedback", "u1"),
        ("congestion", "u1"),
        ("nack_enabled", "u1"),
        ("nack_on_rewind", "u1"),
        ("clamp_target", "u1"),
        ("ack_every", "u4"),
        ("window_frames", "u4"),
        ("fast_recovery", "u4"),
        ("rto_ps", "i8"),
        ("nack_interval_ps", "i8"),
        ("cnp_interval_ps", "i8"),
        ("alpha_period_ps", "i8"),
        ("cut_period_ps", "i8"),
        ("increase_period_ps", "i8"),
        ("byte_counter", "i8"),
        ("g", "f8"),
        ("ai_bps", "f8"),
        ("hai_bps", "f8"),
        ("min_rate_bps", "f8"),
        ("first_cut", "f8"),
        ("ack_duplicates", "u1"),
        ("variable_window", "u1"),
        ("telemetry", "u1"),
        ("fast_reaction", "u1"),
        ("max_stage", "u4"),
        ("window_bytes", "i8"),
        ("base_rtt_ps", "i8"),
        ("rtt_low_ps", "i8"),
        ("rtt_high_ps", "i8"),
        ("eta", "f8"),
        ("beta", "f8"),
        ("ack_delay_ps", "i8"),
        ("path_count", "u4"),
        ("reorder_frames", "u4"),
        ("path_mode", "u1"),
        ("selective", "u1"),
        ("whole_rates", "u1"),
        ("telemetry_unit", "u4"),
        ("least_frame_bytes", "u4"),
        ("repath", "u1"),
    ],
    align=True,
)
ROW = np.dtype(
    [
        ("time_ps", "i8"),
        ("value", "i8"),
        ("aux", "f8"),
        ("port", "u4"),
        ("flow", "u4"),
        ("sequence", "u4"),
        ("kind", "u1"),
        ("class", "u1"),
        ("mark", "u1"),
        ("pad", "u1"),
    ],
    align=True,
)

FAULT = np.dtype(
    [
        ("time_ps", "i8"),
        ("value", "i8"),
        ("loss", "f8"),
        ("ber_rate", "f8"),
        ("port", "u4"),
        ("kind", "u1"),
    ],
    align=True,
)

POSTED = np.dtype([("task", "u4"), ("lane", "u4"), ("posted", "u4")])
"""How many transfers of a lane have been posted, for each lane of a task that has begun to work."""

ON_ITS_WAY = np.dtype([("connection", "u4"), ("operation", "u4"), ("transfer", "u4")])
"""A message that has been posted and has not arrived."""

DEADLOCK_CHANNEL = np.dtype(
    [
        ("formed_ps", "i8"),
        ("broken_ps", "i8"),
        ("since_ps", "i8"),
        ("bytes", "i8"),
        ("deadlock", "u4"),
        ("port", "u4"),
        ("frames", "u4"),
        ("cause_flow", "u4"),
        ("class", "u1"),
    ],
    align=True,
)
"""A class of a link that waits for ever: when the deadlock formed, and was broken (-1: it stands); since when
the link is paused, and whose frame made the far end pause it; what waits for it."""

DEADLOCK_FRAME = np.dtype(
    [
        ("since_ps", "i8"),
        ("deadlock", "u4"),
        ("port", "u4"),
        ("ingress", "u4"),
        ("flow", "u4"),
        ("sequence", "u4"),
        ("destination", "u4"),
        ("size_bytes", "u2"),
        ("class", "u1"),
        ("kind", "u1"),
        ("ttl", "u1"),
    ],
    align=True,
)
"""A frame that waits in a deadlock: since when, for which port, and at which port it came in."""

ROW_ORDER = ("port", "class", "flow", "time_ps")
"""The order in which rows of a stream are returned; rows that are equal in all of these stay in the order
in which they came about, which at one port is that of events."""

STREAMS = ("queue", "throughput", "pause", "rate", "mark", "drop", "packet", "watchdog")
"""Names of the record streams, by number."""


class DropReason:
    """Why a frame was dropped (the `value` of a row of the `drop` stream)."""

    LINK_LOSS = 0
    NO_ROUTE = 1
    HEADROOM = 2
    EGRESS_THRESHOLD = 3
    POOL = 4
    TTL_EXPIRED = 5
    LINK_DOWN = 6
    WATCHDOG = 7
    NAMES = (
        *("link loss", "no route", "headroom full", "egress threshold", "pool full", "TTL expired"),
        "link down",
        "watchdog",
    )


class FaultKind:
    """What a row of `LoweredFaults.changes` changes."""

    DOWN, UP, RATE, LOSS, PAUSE, ROUTES, MOVES, CUT = range(8)


@dataclass(frozen=True, kw_only=True, eq=False)
class LoweredFaults:
    """What changes in a fabric while it runs; see `docs/design.md` section 12 for every field."""

    changes: npt.NDArray[np.void]
    route_base: npt.NDArray[np.int64]
    route_place: npt.NDArray[np.int64]
    route_value: npt.NDArray[np.uint32]
    move_base: npt.NDArray[np.int64]
    move_flow: npt.NDArray[np.uint32]
    move_port: npt.NDArray[np.uint32]


@dataclass(frozen=True, kw_only=True, eq=False)
class LoweredProgram:
    """A program of collectives as arrays; see `docs/design.md` section 11 for every field."""

    n_connections: int
    n_local: int
    local_rate_bps: int
    local_latency_ps: int
    local_tick_ps: int
    template_rank_base: npt.NDArray[np.uint32]
    template_pieces: npt.NDArray[np.uint32]
    rank_pattern: npt.NDArray[np.uint32]
    rank_piece: npt.NDArray[np.uint32]
    rank_lane_base: npt.NDArray[np.uint32]
    pattern_lane_base: npt.NDArray[np.uint32]
    pattern_receives: npt.NDArray[np.uint32]
    lane_transfer_base: npt.NDArray[np.uint32]
    lane_joins: npt.NDArray[np.uint8]
    transfer_lane: npt.NDArray[np.uint32]
    transfer_piece: npt.NDArray[np.uint32]
    transfer_count: npt.NDArray[np.uint32]
    transfer_waits: npt.NDArray[np.uint32]
    transfer_next_base: npt.NDArray[np.uint32]
    transfer_next: npt.NDArray[np.uint32]
    transfer_follower_base: npt.NDArray[np.uint32]
    transfer_follower: npt.NDArray[np.uint32]
    operation_template: npt.NDArray[np.uint32]
    operation_bytes: npt.NDArray[np.int64]
    operation_pieces: npt.NDArray[np.int64]
    operation_start_ps: npt.NDArray[np.int64]
    operation_compute_ps: npt.NDArray[np.int64]
    operation_eager: npt.NDArray[np.uint8]
    operation_lanes: npt.NDArray[np.int64]
    operation_task_base: npt.NDArray[np.uint32]
    piece_offset_bytes: npt.NDArray[np.int64]
    lane_connection: npt.NDArray[np.uint32]
    connection_source: npt.NDArray[np.uint32]
    connection_destination: npt.NDArray[np.uint32]
    task_rank: npt.NDArray[np.uint32]
    task_host: npt.NDArray[np.uint32]
    task_waits: npt.NDArray[np.uint32]
    task_next_base: npt.NDArray[np.uint32]
    task_next: npt.NDArray[np.uint32]
    slow_base: npt.NDArray[np.uint32]
    slow_begin_ps: npt.NDArray[np.int64]
    slow_end_ps: npt.NDArray[np.int64]
    slow_factor: npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Lowered:
    """A scenario as arrays; see `docs/design.md` section 9 for every field."""

    seed: int
    until_ps: int
    window_ps: int
    n_nodes: int
    n_hosts: int
    n_ports: int
    n_classes: int
    n_edges: int
    n_flows: int
    node_kind: npt.NDArray[np.uint8]
    node_port_base: npt.NDArray[np.uint32]
    node_scheduler: npt.NDArray[np.uint16]
    node_arbiter: npt.NDArray[np.uint8]
    node_pfc_response_ps: npt.NDArray[np.int64]
    node_shared_bytes: npt.NDArray[np.int64]
    node_tie_key: npt.NDArray[np.uint64]
    node_salt: npt.NDArray[np.uint32]
    schedulers: npt.NDArray[np.void]
    port_peer: npt.NDArray[np.uint32]
    port_node: npt.NDArray[np.uint32]
    port_rate_bps: npt.NDArray[np.int64]
    port_delay_ps: npt.NDArray[np.int64]
    port_gap_bytes: npt.NDArray[np.uint16]
    port_cut_bytes: npt.NDArray[np.uint16]
    port_loss: npt.NDArray[np.float64]
    port_ber_rate: npt.NDArray[np.float64]
    port_profile: npt.NDArray[np.uint16]
    profiles: npt.NDArray[np.void]
    host_edge: npt.NDArray[np.uint32]
    route_base: npt.NDArray[np.int64]
    route_entry: npt.NDArray[np.uint32]
    route_ports_base: npt.NDArray[np.int64]
    route_ports: npt.NDArray[np.uint16]
    transports: npt.NDArray[np.void]
    flow_source: npt.NDArray[np.uint32]
    flow_destination: npt.NDArray[np.uint32]
    flow_port: npt.NDArray[np.uint32]
    flow_class: npt.NDArray[np.uint8]
    flow_transport: npt.NDArray[np.uint16]
    flow_frames: npt.NDArray[np.uint32]
    flow_last_frame_bytes: npt.NDArray[np.uint32]
    flow_start_ps: npt.NDArray[np.int64]
    flow_hash: npt.NDArray[np.uint32]
    flow_waits: npt.NDArray[np.uint32]
    dep_base: npt.NDArray[np.uint32]
    dep_flow: npt.NDArray[np.uint32]
    dep_delay_ps: npt.NDArray[np.int64]
    dep_on: npt.NDArray[np.uint8]
    fingerprint: int
    record: int
    record_queue_interval_ps: int
    record_queue_delta: int
    record_throughput_interval_ps: int
    port_record: npt.NDArray[np.uint8]
    flow_record: npt.NDArray[np.uint8]
    port_tick_timing: npt.NDArray[np.uint8]
    pfc_frame_bytes: int
    ties_by_start: int
    node_control_unpausable: npt.NDArray[np.uint8]
    node_takes_turns: npt.NDArray[np.uint8]
    node_choice: npt.NDArray[np.uint8]
    flowlet_gap_ps: int
    ttl: int
    deadlock: int
    watchdog_poll_ps: int
    watchdog_detect_polls: int
    watchdog_restore_polls: int
    watchdog_restores_by_time: int
    watchdog_action: int
    watchdog_drops_ingress: int
    pfc_refresh_ps: int
    port_pause_ps: npt.NDArray[np.int64]
    port_pause_holds: npt.NDArray[np.uint8]
    pin_base: npt.NDArray[np.uint32]
    pin_key: npt.NDArray[np.uint64]
    pin_port: npt.NDArray[np.uint16]
    host_address: npt.NDArray[np.uint32]
    flow_ports: npt.NDArray[np.uint32]
    program: LoweredProgram | None
    faults: LoweredFaults | None
