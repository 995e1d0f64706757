"""ECMP by MurmurHash3 of addresses and ports, as the HPCC group's ns-3 simulator has it.

Paths were read out of github.com/alibaba-edu/High-Precision-Congestion-Control (state of March 2021):
32 hosts, host h on leaf 32 + h div 8, spines 36 to 39, next hops by descending number. Of one of them the
hash is worked out step by step in `fabric.keyed_hash.murmur3`.
"""

from __future__ import annotations

import os
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from fabric._core import Engine
from fabric.convert import import_files
from fabric.keyed_hash import murmur3
from fabric.lower import lower
from fabric.lowered import Lowered
from fabric.reference import Simulator
from fabric.routing import hashed_words, trace_path
from fabric.spec import Incast, PacketRecord, Record, Scenario, SingleSwitch
from fabric.spec.ns3_hpcc import ns3_hpcc, ns3_hpcc_link
from fabric.topology import from_networkx
from fabric.workload import FlowTable, build_flows

DATA, ACK = 0, 1
PATHS = {
    (0, 13): ((32, 37, 33), (33, 39, 32)),
    (1, 22): ((32, 36, 34), (34, 37, 32)),
    (2, 11): ((32, 38, 33), (33, 38, 32)),
    (3, 10): ((32, 37, 33), (33, 37, 32)),
}
"""Switches from source to destination, and back."""
ROOT = Path(os.environ.get("FABRIC_FOREIGN_FILES", Path(__file__).resolve().parents[2] / "shared"))
RUNS = ROOT / "reference" / "ns3"


def leaf_spine() -> nx.MultiGraph:
    graph = nx.MultiGraph()
    graph.add_nodes_from((f"host{number}" for number in range(32)), kind="host")
    graph.add_nodes_from((f"switch{number}" for number in range(32, 40)), kind="switch")
    cables = [(f"host{number}", f"switch{32 + number // 8}") for number in range(32)]
    cables += [(f"switch{leaf}", f"switch{spine}") for leaf in range(32, 36) for spine in range(36, 40)]
    for a, b in cables:
        graph.add_edge(a, b, rate="100Gbps", delay="1us", gap=0)
    return graph


def switches_passed(lowered: Lowered, rows: np.ndarray, kind: int) -> dict[int, tuple[int, ...]]:
    """Names' numbers of the switches that frames of a kind have left, by flow, in order of time."""
    rows = rows[(rows["kind"] == kind) & (rows["sequence"] == (0 if kind == DATA else 1))]
    rows = rows[np.argsort(rows["time_ps"], kind="stable")]
    nodes = lowered.port_node[rows["port"]]
    passed: dict[int, tuple[int, ...]] = {}
    for flow, node in zip(rows["flow"].tolist(), nodes.tolist(), strict=True):
        if node >= lowered.n_hosts:
            passed[flow] = (*passed.get(flow, ()), node)
    return passed


@pytest.mark.parametrize("engine", [Engine, Simulator])
def test_data_and_acks_take_their_paths(engine: type) -> None:
    network = from_networkx(leaf_spine(), link=ns3_hpcc_link("100Gbps"))
    pairs = list(PATHS)
    flows = FlowTable.from_arrays(
        np.array([source for source, _ in pairs]),
        np.array([destination for _, destination in pairs]),
        size_bytes=np.full(len(pairs), 3000),
        start_ps=np.zeros(len(pairs), np.int64),
    )
    scenario = Scenario(
        topology=SingleSwitch(hosts=2),
        traffic=[Incast(senders=1, size="1MB")],
        record=Record(packets=PacketRecord(ports=("*",))),
        **ns3_hpcc(),
    )
    lowered = lower(scenario, network=network, flows=flows)
    run = engine(lowered)
    assert run.run() == "FINISHED"
    rows = run.rows("packet")
    forward, back = (switches_passed(lowered, rows, kind) for kind in (DATA, ACK))
    assert [(forward[flow], back[flow]) for flow in range(len(pairs))] == list(PATHS.values())
    traced = trace_path(
        lowered,
        first_port=lowered.flow_port,
        destination=lowered.flow_destination,
        path_hash=lowered.flow_hash,
        words=hashed_words(
            lowered,
            source=lowered.flow_source,
            destination=lowered.flow_destination,
            flow=np.arange(len(pairs)),
        ),
    )
    nodes = lowered.port_node[traced[:, 1:]]
    assert [tuple(row) for row in nodes.tolist()] == [there for there, _ in PATHS.values()]


def test_worked_examples_of_the_hash() -> None:
    """Leaf 32 for 0 -> 13, 1 -> 22, 2 -> 11, and leaf 33 for the ACKs of the first."""
    words = [
        [0x0B000001, 0x0B000D01, 0x00642710],
        [0x0B000101, 0x0B001601, 0x00642710],
        [0x0B000201, 0x0B000B01, 0x00642710],
        [0x0B000D01, 0x0B000001, 0x27100064],
    ]
    hashes = murmur3(words, seed=[32, 32, 32, 33]).tolist()
    assert hashes == [0xE007D8A2, 0xAEFDB80B, 0xF5211ABD, 0x48119F18]


@pytest.mark.skipif(not RUNS.is_dir(), reason="no runs of the simulator here")
@pytest.mark.parametrize("file", sorted(RUNS.glob("*/paths.txt")), ids=lambda file: file.parent.name)
def test_every_path_of_the_published_runs(file: Path) -> None:
    imported = import_files(file.with_name("config.txt"))
    scenario = imported.scenario
    lowered = lower(scenario, network=imported.network, flows=build_flows(scenario, imported.network))
    for source, destination, column in (
        (lowered.flow_source, lowered.flow_destination, 4),
        (lowered.flow_destination, lowered.flow_source, 5),
    ):
        words = hashed_words(lowered, source=source, destination=destination, flow=np.arange(lowered.n_flows))
        assert words is not None
        if column == 5:
            words[:, 2] = words[:, 2] >> 16 | words[:, 2] << 16
        paths = trace_path(
            lowered,
            first_port=lowered.node_port_base[source],
            destination=destination,
            path_hash=lowered.flow_hash,
            words=words,
        )
        for line in file.read_text().splitlines():
            if not line.startswith("#"):
                expected = [int(number) for number in line.split()[column].split(",")]
                path = paths[int(line.split()[0])]
                nodes = lowered.port_node[path[(path >= 0)][1:]]
                assert imported.network.node_ids[nodes].tolist() == expected, line
