"""From specs to arrays: frames of flows, their ports and paths, what waits for what."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from support_lowering import flow_table, scenario

from fabric.errors import SpecError
from fabric.lower import lookahead_ps, lower
from fabric.routing import trace_path
from fabric.spec.link import Link
from fabric.spec.nic import Nic
from fabric.spec.topology import FatTree, LeafSpine, RailOptimized
from fabric.spec.traffic import Incast
from fabric.spec.transport import NoCongestionControl, Transport
from fabric.topology import Network, build_network, from_networkx
from fabric.workload import FlowTable

# Flows


@pytest.mark.parametrize(
    ("size", "frames", "last"),
    [(1, 1, 64), (2, 1, 64), (3, 1, 65), (4096, 1, 4158), (4097, 2, 64), (8192, 2, 4158), (10_000, 3, 1870)],
)
def test_frames(size: int, frames: int, last: int) -> None:
    lowered = lower(scenario(), flows=flow_table([0], 1, size=size, start_ps=77))
    assert lowered.flow_frames.tolist() == [frames]
    assert lowered.flow_last_frame_bytes.tolist() == [last]
    assert lowered.flow_start_ps.tolist() == [77]


def test_small_frames_are_padded() -> None:
    lowered = lower(scenario(transport=Transport(payload=1, header=20, congestion=NoCongestionControl())))
    assert lowered.transports["frame_bytes"].tolist() == [64]
    assert lowered.flow_last_frame_bytes.tolist() == [64]
    assert lowered.flow_frames.tolist() == [10**6]


def test_beyond_four_gigabytes_and_the_largest_number_of_frames() -> None:
    largest = 4096 * (2**32 - 1)
    lowered = lower(scenario(), flows=flow_table([0, 1], 2, size=[5 * 2**30, largest]))
    assert lowered.flow_frames.tolist() == [5 * 2**30 // 4096, 2**32 - 1]
    with pytest.raises(SpecError, match="2\\^32 - 1 frames"):
        lower(scenario(), flows=flow_table([0], 1, size=largest + 1))


def test_no_flows() -> None:
    lowered = lower(scenario(), flows=FlowTable.concatenate([]))
    assert (lowered.n_flows, len(lowered.transports), lowered.dep_base.tolist()) == (0, 1, [0])


def test_several_ports_are_taken_in_turn() -> None:
    topology = LeafSpine(leaves=4, spines=2, hosts_per_leaf=2, ports_per_host=2)
    network = build_network(topology)
    flows = flow_table([0, 1, 0, 0, 1], [2, 2, 3, 1, 0])
    lowered = lower(scenario(topology), flows=flows)
    arrows = [network.port_arrow(int(port)) for port in lowered.flow_port]
    assert arrows == ["host0->leaf0", "host1->leaf0", "host0->leaf1", "host0->leaf0", "host1->leaf1"]


def test_turns_are_counted_among_flows_with_the_same_choice() -> None:
    """Scale-up flows between the flows of a dual-homed NIC do not disturb its alternation."""
    graph = networkx.MultiGraph()
    for host in range(4):
        graph.add_edges_from((f"host{host}", f"leaf{leaf}") for leaf in range(2))
        graph.add_edge(f"host{host}", f"scaleup{host // 2}")
    graph.add_edges_from([("leaf0", "spine0"), ("leaf1", "spine0")])
    network = from_networkx(graph)
    sources, destinations = [0, 0, 0, 0, 0, 0], [2, 1, 3, 1, 2, 1]
    lowered = lower(scenario(), network=network, flows=flow_table(sources, destinations))
    arrows = [network.port_arrow(int(port)) for port in lowered.flow_port]
    assert arrows[0::2] == ["host0->leaf0", "host0->leaf1", "host0->leaf0"]
    # Leaves and scale-up network are equally close; the latter is preferred.
    assert arrows[1::2] == ["host0->scaleup0"] * 3


def test_rail_optimised_flows_take_scale_up_within_a_server() -> None:
    topology = RailOptimized(servers=2, accelerators_per_server=4, spines=2)
    network = build_network(topology)
    lowered = lower(scenario(topology), flows=flow_table([0, 0, 0], [3, 4, 5]))
    arrows = [network.port_arrow(int(port)) for port in lowered.flow_port]
    assert arrows == ["host0->scaleup0", "host0->leaf0", "host0->leaf0"]


def test_hosts_without_a_path_are_refused() -> None:
    network = build_network(RailOptimized(servers=2, accelerators_per_server=2, spines=1))
    kept = np.flatnonzero(network.tier[network.link_b] != 2)
    columns = {f: getattr(network, f)[kept] for f in vars(network) if f.startswith("link_")}
    cut = Network(names=network.names, n_hosts=4, tier=network.tier, **columns)
    with pytest.raises(SpecError, match="host0 -> host3"):
        lower(scenario(), network=cut, flows=flow_table([0, 0], [2, 3]))


def test_the_paths_of_a_lowered_scenario() -> None:
    each = scenario(FatTree(k=4), traffic=(Incast(senders=8, size="1MB", receivers=("host0",)),))
    lowered = lower(each)
    paths = trace_path(
        lowered,
        first_port=lowered.flow_port,
        destination=lowered.flow_destination,
        path_hash=lowered.flow_hash,
    )
    last = np.array([path[path >= 0][-1] for path in paths])
    assert set(lowered.port_peer[last].tolist()) == {int(lowered.node_port_base[0])}
    assert (paths[:, 0] == lowered.flow_port).all()


# Dependencies


def test_dependencies_by_predecessor() -> None:
    """0 -> 1; then 1 -> 2 on its arrival, 0 -> 3 on its acknowledgement, 2 -> 3 on news of it."""
    flows = flow_table(
        [0, 1, 0, 2], [1, 2, 3, 3], after=np.array([(1, 0), (2, 0), (3, 0), (3, 1)], dtype=np.int64)
    )
    lowered = lower(scenario(nic=Nic(latency="100ns")), flows=flows)
    assert lowered.dep_base.tolist() == [0, 3, 4, 4, 4]
    assert lowered.dep_flow.tolist() == [1, 2, 3, 3]
    assert lowered.dep_on.tolist() == [0, 1, 0, 0]
    # From host 1 to host 2: 500 + 500 ns to the switch, 500 + 100 ns to the host.
    assert lowered.dep_delay_ps.tolist() == [0, 0, 1_600_000, 0]
    assert lowered.flow_waits.tolist() == [0, 1, 1, 2]


def test_news_across_the_fabric_takes_the_delays_of_its_path() -> None:
    topology = FatTree(k=4, link=Link(delay="1us"))
    flows = flow_table([0, 15], [1, 0], after=[(1, 0)])
    lowered = lower(scenario(topology), flows=flows)
    assert lowered.dep_delay_ps.tolist() == [5 * 1_500_000 + 1_000_000]
    assert (lowered.dep_delay_ps >= lookahead_ps(lowered)).all()
