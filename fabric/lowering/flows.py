"""Columns of flows: frames, classes, start, path hash, and the port that each one leaves by.

A flow of `size` bytes is cut into `ceil(size / payload)` frames; the last one carries the rest, padded
to the smallest Ethernet frame. A host with several ports sends over those that begin a shortest path
to the destination (within a server: over its scale-up network); where several do, flows of one source
take them in turn, in flow order, so that they spread evenly (flows that have other ports to choose
from do not count).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fabric.errors import Said, SpecError
from fabric.keyed_hash import Purpose, draw, purpose_key
from fabric.lowering.transports import PatternTransports, transport_columns
from fabric.routing import Routes, closest_ports
from fabric.spec.switch import Switch
from fabric.topology.network import Network
from fabric.units import Size
from fabric.workload.flow_table import FlowTable

__all__ = ["flow_columns", "occurrence", "path_hashes", "sending_ports"]

LARGEST_FRAMES = 2**32 - 1
LARGEST_FLOWS = 2**32 - 2
"""Flow 0xFFFFFFFF stands for PFC frames."""


def flow_columns(
    flows: FlowTable,
    *,
    network: Network,
    routes: Routes,
    patterns: PatternTransports,
    switch: Switch,
    seed: int,
    whole_rates: bool,
) -> dict[str, Any]:
    """Columns of all flows except their dependencies and recorders, and the transport table.

    Raises
    ------
    fabric.errors.SpecError
        A flow of 2^32 frames or more, or between hosts without a path.
    """
    if len(flows) > LARGEST_FLOWS:
        raise SpecError("traffic", Said(f"{len(flows)} flows"), f"at most {LARGEST_FLOWS} flows")
    spec = patterns.pattern_spec[flows.pattern]
    payload = patterns.payload_bytes()[spec]
    frames = -(-flows.size_bytes // payload)
    _check_frames(flows, frames, payload)
    last = flows.size_bytes - (frames - 1) * payload + patterns.header_bytes()[spec]
    port = sending_ports(flows, network=network, routes=routes)
    return {
        "n_flows": len(flows),
        "flow_source": flows.source,
        "flow_destination": flows.destination,
        "flow_port": port,
        "flow_class": patterns.pattern_class[flows.pattern],
        "flow_frames": frames.astype(np.uint32),
        "flow_last_frame_bytes": np.maximum(last, patterns.smallest_frame_bytes()[spec]).astype(np.uint32),
        "flow_start_ps": flows.start_ps,
        "flow_hash": path_hashes(seed, source=flows.source, destination=flows.destination),
        **transport_columns(
            patterns,
            flow_spec=spec,
            line_rate_bps=network.link_rate_bps[network.port_link[port]],
            switch=switch,
            whole_rates=whole_rates,
        ),
    }


def path_hashes(
    seed: int, *, source: npt.NDArray[np.uint32], destination: npt.NDArray[np.uint32]
) -> npt.NDArray[np.uint32]:
    """The 32-bit hash by which switches choose among equal next hops for each flow.

    It stands for the flow's addresses and ports: the k-th flow from one host to another has its hash
    whatever other traffic there is, so that adding traffic moves no flow to another path.
    """
    pair = (source.astype(np.uint64) << np.uint64(32)) | destination
    bits = draw(purpose_key(seed, Purpose.PATH_HASH), pair, occurrence(pair))
    return (bits & np.uint64(0xFFFFFFFF)).astype(np.uint32)


def sending_ports(flows: FlowTable, *, network: Network, routes: Routes) -> npt.NDArray[np.uint32]:
    """The port that each flow leaves its source by.

    Returns
    -------
    numpy.ndarray of uint32 [flows]

    Raises
    ------
    fabric.errors.SpecError
        Two hosts without a path.
    """
    ports, closest = closest_ports(
        network, routes.distances, source=flows.source, destination=flows.destination
    )
    lost = np.flatnonzero(~closest.any(axis=1))
    if len(lost):
        flow = int(lost[0])
        pair = f"{network.names[flows.source[flow]]} -> {network.names[flows.destination[flow]]}"
        raise SpecError(flows.flow_path(flow), pair, "two hosts with a path between them through switches")
    turn = _turns(flows.source, closest) % closest.sum(axis=1)
    chosen = np.argmax(closest & (np.cumsum(closest, axis=1) == turn[:, None] + 1), axis=1)
    return np.asarray(ports[np.arange(len(flows)), chosen].astype(np.uint32))


def _turns(source: npt.NDArray[np.uint32], closest: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Number of each flow among those of the same source with the same choice of ports."""
    if closest.shape[1] <= 1:
        return np.zeros(len(source), dtype=np.int64)
    choice = np.unique(np.packbits(closest, axis=1), axis=0, return_inverse=True)[1].ravel()
    return occurrence(source.astype(np.int64) * (int(choice.max(initial=0)) + 1) + choice)


def occurrence(key: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """How many earlier elements have the same key, for each element."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    starts = np.flatnonzero(np.concatenate([np.ones(min(1, len(key)), bool), ordered[1:] != ordered[:-1]]))
    sizes = np.diff(np.append(starts, len(key)))
    occurrence = np.empty(len(key), dtype=np.int64)
    occurrence[order] = np.arange(len(key)) - np.repeat(starts, sizes)
    return occurrence


def _check_frames(flows: FlowTable, frames: npt.NDArray[np.int64], payload: npt.NDArray[np.int64]) -> None:
    wrong = np.flatnonzero((frames > LARGEST_FRAMES) | (frames < 1))
    if len(wrong):
        flow = int(wrong[0])
        largest = Size(LARGEST_FRAMES * int(payload[flow]))
        allowed = f"a size from 1 B to {largest} (2^32 - 1 frames of {Size(int(payload[flow]))})"
        raise SpecError(f"{flows.flow_path(flow)}.size", Size(int(flows.size_bytes[flow])), allowed)
