"""A reference run repeated, and what came of it in the terms of the peer's files.

By the readable engine in the peer's order of events, or by the native one in the order that a node can know
(`run.ties`); with the peer's semantics, or with `fabric`'s own on the same network, with the same buffers,
thresholds, messages and congestion control.

The peer counts a frame as queued while it passes an idle port, and these engines do not; so the fullest queue
is compared with that of the peer as the larger of it and the largest frame that passed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fabric._core import Engine
from fabric.convert import import_files
from fabric.formats.hpcc_topology import node_ids
from fabric.lower import lower
from fabric.lowered import Lowered
from fabric.reference import Simulator
from fabric.reference.port import serialization_ps
from fabric.spec import GraphFile, Hpcc, Link, Nic, PacketRecord, Record, Run, Scenario, Switch, Transport
from fabric.topology import Network, build_network
from fabric.validation.peer_files import FlowLine, GoodputWindow, PeerRun, PfcLine

__all__ = ["OurRun", "Way", "named_ports", "own_semantics", "repeat", "scenario_of"]

Way = Literal["peer order", "native"]

PS_PER_NS = 1000
NOT_YET = -1
DATA, ACK = 0, 1
TOWARDS_HOSTS = "*->host*"


@dataclass(frozen=True, kw_only=True)
class OurRun:
    """What came of a repetition; fields as in `PeerRun`, and totals.

    Attributes
    ----------
    frames, drops, pauses : int
        Frames on links, lost ones, PAUSE frames.
    pool_bytes : int or None
        Most bytes used of a switch's pool; only the readable engine knows.
    frame_bytes : int
        Size of the largest data frame.
    has_drawn_marks : bool
        Whether ECN marks by chance; with one threshold (kmin = kmax) marks follow from the queue.
    """

    flows: tuple[FlowLine, ...]
    pfc: tuple[PfcLine, ...]
    ports: dict[tuple[int, int], tuple[int, int]]
    goodput: tuple[GoodputWindow, ...]
    frames: int
    drops: int
    pauses: int
    pool_bytes: int | None
    frame_bytes: int
    has_drawn_marks: bool

    @property
    def queue_bytes(self) -> int:
        """The fullest queue of all, a frame that passes an idle port being one."""
        return max(self.frame_bytes, *(queue for queue, _ in self.ports.values()))


def scenario_of(folder: Path) -> Scenario:
    """Return a run's inputs as a scenario with the peer's semantics."""
    return import_files(folder / "config.txt", folder / "topology.txt", folder / "flow.txt").scenario


def own_semantics(scenario: Scenario) -> Scenario:
    """Return an imported scenario with this project's frames, clock, classes, headroom and reliability.

    What the peer's files describe stays: network, messages, payload, buffer, thresholds, congestion control.
    """
    assert isinstance(scenario.topology, GraphFile)
    link = scenario.topology.link.replace(gap=Link().gap)
    congestion = scenario.transport.congestion
    if isinstance(congestion, Hpcc):
        congestion = congestion.replace(telemetry_unit=None)
    return scenario.replace(
        topology=scenario.topology.replace(link=link),
        switch=Switch(
            buffer=scenario.switch.buffer, latency=scenario.switch.latency, ecn=scenario.switch.ecn
        ),
        nic=Nic(),
        transport=Transport(
            payload=scenario.transport.payload,
            ack_every=scenario.transport.ack_every,
            congestion=congestion,
        ),
        run=Run(until=scenario.run.until),
    )


def repeat(scenario: Scenario, peer: PeerRun, *, way: Way, seed: int = 1) -> OurRun:
    """Run a scenario and return what came of it.

    Parameters
    ----------
    scenario : Scenario
    peer : PeerRun
        Says what has to be recorded: goodput, or what flows that do not end have got.
    way : Way
    seed : int
    """
    cut = bool(peer.goodput) or any(flow.sender_ns == NOT_YET for flow in peer.flows)
    packets = PacketRecord(ports=(TOWARDS_HOSTS,)) if cut else None
    described = scenario.replace(
        record=Record(pauses=True, packets=packets), run=scenario.run.replace(seed=seed, fingerprint=False)
    )
    network = build_network(described.topology)
    lowered = lower(described, network=network)
    pool_bytes = None
    engine: Any
    if way == "peer order":
        engine = Simulator(lowered, order="insertion")
        engine.run()
        pool_bytes = engine.pool_peak_bytes
    else:
        engine = Engine(lowered)
        engine.run()
    columns = engine.columns()
    seen = _Received(lowered, engine.rows("packet")) if cut else None
    return OurRun(
        flows=_flows(columns, seen),
        pfc=_pfc(engine.rows("pause"), lowered=lowered, network=network),
        ports=_ports(columns, lowered=lowered, network=network),
        goodput=_goodput(peer.goodput, lowered=lowered, seen=seen),
        frames=int(columns["counters"]["frames_started"]),
        drops=int(columns["drops_by_reason"].sum()),
        pauses=int(columns["pauses_sent"].sum()),
        pool_bytes=pool_bytes,
        frame_bytes=_largest_frame(lowered),
        has_drawn_marks=scenario.switch.ecn is not None
        and scenario.switch.ecn.kmin < scenario.switch.ecn.kmax,
    )


class _Received:
    """Frames that have arrived at hosts before the end of the run, from the record of their starts."""

    def __init__(self, lowered: Lowered, rows: npt.NDArray[np.void]) -> None:
        ports, port_of = np.unique(rows["port"], return_inverse=True)
        sizes, size_of = np.unique(rows["value"], return_inverse=True)
        took = np.array(
            [
                [
                    serialization_ps(
                        size + int(lowered.port_gap_bytes[port]),
                        rate_bps=int(lowered.port_rate_bps[port]),
                        tick_timing=bool(lowered.port_tick_timing[port]),
                    )
                    + int(lowered.port_delay_ps[port])
                    for size in sizes.tolist()
                ]
                for port in ports.tolist()
            ]
        ).reshape(len(ports), len(sizes))
        arrival_ps = rows["time_ps"] + took[port_of, size_of]
        there = arrival_ps < lowered.until_ps
        self.kind = rows["kind"][there]
        self.flow = rows["flow"][there]
        self.sequence = rows["sequence"][there].astype(np.int64)
        self.arrival_ps = arrival_ps[there]

    def data_frames(self, flow: int) -> int:
        """Data frames of a flow that its receiver has got."""
        return int(((self.kind == DATA) & (self.flow == flow)).sum())

    def acknowledged(self, flow: int, before_ps: int) -> int:
        """The next frame that the receiver expects, as far as the sender knows at an instant."""
        heard = (self.kind == ACK) & (self.flow == flow) & (self.arrival_ps <= before_ps)
        return int(self.sequence[heard].max(initial=0))


def _flows(columns: dict[str, Any], seen: _Received | None) -> tuple[FlowLine, ...]:
    times = (columns[f"flow_{name}_ps"].tolist() for name in ("started", "completed", "delivered"))
    sent, marked = columns["flow_sent"].tolist(), columns["flow_marked"].tolist()
    flows = []
    for flow, (start, completed, delivered) in enumerate(zip(*times, strict=True)):
        after = [NOT_YET if end < 0 else (end - start) // PS_PER_NS for end in (completed, delivered)]
        packets = sent[flow] if seen is None else seen.data_frames(flow)
        flows.append(FlowLine(start // PS_PER_NS, after[0], after[1], packets, marked[flow]))
    return tuple(flows)


def named_ports(lowered: Lowered, network: Network) -> list[tuple[int, int, int]]:
    """Node, 1 for a switch, and number from 1, of each port."""
    ids = node_ids(network.names)
    base = lowered.node_port_base.tolist()
    return [
        (ids[node], int(node >= lowered.n_hosts), port - base[node] + 1)
        for port, node in enumerate(lowered.port_node.tolist())
    ]


def _pfc(rows: npt.NDArray[np.void], *, lowered: Lowered, network: Network) -> tuple[PfcLine, ...]:
    named = named_ports(lowered, network)
    lines = []
    for port, begin, end in zip(*(rows[name].tolist() for name in ("port", "time_ps", "value")), strict=True):
        node, is_switch, number = named[port]
        lines.append((begin // PS_PER_NS, node, is_switch, number, 1))
        if end != NOT_YET:
            lines.append((end // PS_PER_NS, node, is_switch, number, 0))
    return tuple(sorted(lines))


def _ports(
    columns: dict[str, Any], *, lowered: Lowered, network: Network
) -> dict[tuple[int, int], tuple[int, int]]:
    """Peaks of queue and headroom of every switch port."""
    queue = columns["queue_peak_bytes"].max(axis=1)
    headroom = columns["headroom_peak_bytes"].max(axis=1)
    return {
        (node, number): (int(queue[port]), int(headroom[port]))
        for port, (node, is_switch, number) in enumerate(named_ports(lowered, network))
        if is_switch
    }


def _largest_frame(lowered: Lowered) -> int:
    """Bytes of the largest data frame that is sent."""
    full = lowered.transports["frame_bytes"][lowered.flow_transport]
    sizes = np.where(lowered.flow_frames > 1, full, lowered.flow_last_frame_bytes)
    return int(sizes.max(initial=0))


def _goodput(
    windows: tuple[GoodputWindow, ...], *, lowered: Lowered, seen: _Received | None
) -> tuple[GoodputWindow, ...]:
    if seen is None:
        return ()
    payload_bytes = int(lowered.transports["payload_bytes"][0])
    first_ps = int(lowered.flow_start_ps.min())
    found = []
    for window in windows:
        begin_ps, end_ps = (first_ps + at * PS_PER_NS for at in (window.begin_ns, window.end_ns))
        frames = (
            seen.acknowledged(flow, end_ps) - seen.acknowledged(flow, begin_ps)
            for flow in range(len(window.gbps))
        )
        length_ns = window.end_ns - window.begin_ns
        rates = tuple(count * payload_bytes * 8 / length_ns for count in frames)
        found.append(GoodputWindow(window.begin_ns, window.end_ns, rates))
    return tuple(found)
