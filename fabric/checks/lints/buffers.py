"""Lints of buffers: headroom, ECN against PFC, dynamic thresholds that starve."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from fabric.analysis.pfc import dynamic_threshold_bytes
from fabric.checks.lints.lint import Lint
from fabric.lowered import Lowered
from fabric.lowering.buffers import auto_headroom_bytes, waiting_pfc_frames
from fabric.spec import Scenario
from fabric.topology import Network
from fabric.units import Size

__all__ = ["class_lints"]

Q16 = 1 << 16

Int64Array = npt.NDArray[np.int64]


def class_lints(scenario: Scenario, network: Network, lowered: Lowered) -> Iterator[Lint]:
    """Headroom, ECN against PFC, and starving thresholds: the worst port of each class."""
    ports = np.flatnonzero(network.port_node >= network.n_hosts)
    rows = lowered.port_profile.reshape(-1, lowered.n_classes)
    frame = _largest_frame_bytes(lowered)
    for number, each in enumerate(scenario.switch.classes):
        if each.pfc is False:
            continue
        where = f"switch.classes[{number}].pfc" if each.pfc is not True else "switch.pfc"
        profile = lowered.profiles[rows[ports, number]]
        short = _headroom_bounds(scenario, network, lowered, ports, frame) - profile["headroom_bytes"]
        if short.max(initial=0) > 0:
            k = int(np.argmax(short))
            have = int(profile["headroom_bytes"][k])
            yield Lint(
                "warning",
                f"{where}.headroom",
                f"{Size(have)} at {network.port_arrow(int(network.port_peer[ports[k]]))} of class "
                f"{each.name} is "
                f"below the bound of {Size(have + int(short[k]))}: a lossless class can drop; "
                f'"auto" is the bound',
            )
        yield from _threshold_lints(network, lowered, ports, profile, each.name, where, frame)


def _threshold_lints(
    network: Network,
    lowered: Lowered,
    ports: Int64Array,
    profile: npt.NDArray[np.void],
    name: str,
    where: str,
    frame: int,
) -> Iterator[Lint]:
    node = network.port_node[ports]
    shared = lowered.node_shared_bytes[node]
    alpha = profile["alpha_q16"] / Q16
    alone = np.where(profile["alpha_q16"] > 0, alpha * shared / (1 + alpha), profile["limit_bytes"])
    late = (profile["ecn_mode"] > 0) & (profile["ecn_kmin_bytes"] >= alone)
    if late.any():
        k = int(np.argmax(late))
        yield Lint(
            "warning",
            "switch.ecn.kmin",
            f"{Size(int(profile['ecn_kmin_bytes'][k]))} is not below the PFC threshold of class {name} at "
            f"{network.names[node[k]]} ({Size(int(alone[k]))} of one busy ingress): PFC pauses "
            f"before ECN marks",
        )
    degree = np.diff(network.node_port_base.astype(np.int64))[node]
    for k in np.flatnonzero(profile["alpha_q16"] > 0).tolist():
        busy, _ = dynamic_threshold_bytes(float(alpha[k]), queues=int(degree[k]), buffer_bytes=int(shared[k]))
        needed = int(profile["xon_offset_bytes"][k]) + frame
        if busy < needed:
            yield Lint(
                "warning",
                f"{where}.alpha",
                f"{alpha[k]:g} leaves an ingress of class {name} {Size(int(busy))} when all "
                f"{degree[k]} ports of "
                f"{network.names[node[k]]} are busy, less than one frame and the way back to XON "
                f"({Size(needed)}): "
                "it starves; raise alpha or the buffer",
            )
            return


def _largest_frame_bytes(lowered: Lowered) -> int:
    return int(max(lowered.transports["frame_bytes"].max(), lowered.transports["control_bytes"].max()))


def _headroom_bounds(
    scenario: Scenario, network: Network, lowered: Lowered, ports: Int64Array, frame: int
) -> Int64Array:
    """The bound of every port, worked out once for each kind."""
    peer = network.port_peer[ports]
    kinds, kind = np.unique(
        np.stack(
            [
                lowered.port_rate_bps[ports],
                lowered.port_delay_ps[ports] + lowered.port_delay_ps[peer],
                lowered.node_pfc_response_ps[network.port_node[peer]],
                lowered.port_gap_bytes[ports].astype(np.int64),
            ],
            axis=1,
        ),
        axis=0,
        return_inverse=True,
    )
    bounds = [
        auto_headroom_bytes(
            rate_bps,
            round_trip_ps=round_trip_ps,
            response_ps=response_ps,
            gap_bytes=gap_bytes,
            largest_frame_bytes=frame,
            waiting_pfc_frames=waiting_pfc_frames(scenario.switch),
            pfc_frame_bytes=lowered.pfc_frame_bytes,
        )
        for rate_bps, round_trip_ps, response_ps, gap_bytes in kinds.tolist()
    ]
    return np.array(bounds, dtype=np.int64)[kind.ravel()]
