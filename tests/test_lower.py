"""From specs to arrays: the whole, nodes and ports, what is recorded."""

from __future__ import annotations

from dataclasses import fields
from math import log1p

import networkx
import numpy as np
import pytest
from support_lowering import flow_table, scenario

from fabric.errors import SpecError
from fabric.keyed_hash import draw, purpose_key
from fabric.lower import lookahead_ps, lower
from fabric.lowered import OPEN_END_PS, Lowered
from fabric.lowering.transports import PatternTransports, transport_columns
from fabric.spec.link import Link
from fabric.spec.nic import Nic
from fabric.spec.run import PacketRecord, QueueRecord, Record, Run, ThroughputRecord
from fabric.spec.switch import Ecn, Pfc, Switch, TrafficClass
from fabric.spec.topology import FatTree, LeafSpine, RailOptimized, SingleSwitch
from fabric.spec.traffic import AllToAll, Flow, Flows, Incast, Permutation
from fabric.spec.transport import Dcqcn, Transport
from fabric.topology import build_network, from_networkx
from fabric.workload import FlowTable

# Shape of the whole


def test_every_field_has_the_type_of_the_layout() -> None:
    lowered = lower(scenario(LeafSpine(leaves=2, spines=2, hosts_per_leaf=2)))
    types = {
        "node_kind": "u1",
        "node_port_base": "u4",
        "node_scheduler": "u2",
        "node_arbiter": "u1",
        "node_pfc_response_ps": "i8",
        "node_shared_bytes": "i8",
        "node_tie_key": "u8",
        "node_salt": "u4",
        "port_peer": "u4",
        "port_node": "u4",
        "port_rate_bps": "i8",
        "port_delay_ps": "i8",
        "port_gap_bytes": "u2",
        "port_cut_bytes": "u2",
        "port_loss": "f8",
        "port_ber_rate": "f8",
        "port_profile": "u2",
        "port_pause_ps": "i8",
        "port_pause_holds": "u1",
        "host_edge": "u4",
        "route_base": "i8",
        "route_entry": "u4",
        "route_ports_base": "i8",
        "route_ports": "u2",
        "flow_source": "u4",
        "flow_destination": "u4",
        "flow_port": "u4",
        "flow_class": "u1",
        "flow_transport": "u2",
        "flow_frames": "u4",
        "flow_last_frame_bytes": "u4",
        "flow_start_ps": "i8",
        "flow_hash": "u4",
        "flow_waits": "u4",
        "dep_base": "u4",
        "dep_flow": "u4",
        "dep_delay_ps": "i8",
        "dep_on": "u1",
        "port_record": "u1",
        "flow_record": "u1",
        "port_tick_timing": "u1",
        "node_control_unpausable": "u1",
        "node_choice": "u1",
        "node_takes_turns": "u1",
        "pin_base": "u4",
        "pin_key": "u8",
        "pin_port": "u2",
        "host_address": "u4",
        "flow_ports": "u4",
    }
    structs = {"schedulers", "profiles", "transports"}
    arrays = {f.name for f in fields(Lowered) if isinstance(getattr(lowered, f.name), np.ndarray)}
    assert arrays == types.keys() | structs
    for name, dtype in types.items():
        array = getattr(lowered, name)
        assert array.dtype == np.dtype(dtype), name
        assert array.ndim == 1, name
        assert array.flags["C_CONTIGUOUS"], name
    assert len(lowered.node_port_base) == lowered.n_nodes + 1
    assert len(lowered.port_profile) == lowered.n_ports * lowered.n_classes
    assert len(lowered.route_entry) == (lowered.n_nodes - lowered.n_hosts) * lowered.n_edges
    assert len(lowered.dep_base) == lowered.n_flows + 1
    for field in fields(Lowered):
        value = getattr(lowered, field.name)
        if field.name in ("program", "faults"):
            assert value is None
            continue
        assert isinstance(value, np.ndarray) or type(value) is int, field.name


def test_lowering_twice_gives_the_same_arrays() -> None:
    each = scenario(FatTree(k=4), traffic=(Incast(senders=8, size="1MB"),))
    one, other = lower(each), lower(each)
    for field in fields(Lowered):
        first, second = getattr(one, field.name), getattr(other, field.name)
        assert np.asarray(first).tobytes() == np.asarray(second).tobytes(), field.name


def test_run_fields() -> None:
    lowered = lower(scenario(run=Run(seed=7, until="3ms", window="100ns", fingerprint=False)))
    assert (lowered.seed, lowered.until_ps, lowered.window_ps) == (7, 3 * 10**9, 10**5)
    assert lowered.fingerprint == 0
    lowered = lower(scenario())
    assert (lowered.until_ps, lowered.window_ps, lowered.fingerprint) == (OPEN_END_PS, 0, 1)


def test_a_window_above_the_lookahead_is_refused() -> None:
    assert lookahead_ps(lower(scenario())) == 500_000
    with pytest.raises(SpecError, match=r"run\.window.*500ns"):
        lower(scenario(run=Run(window="501ns")))


# Nodes and ports


def test_delays_hold_the_latency_of_the_receiver() -> None:
    topology = LeafSpine(leaves=2, spines=1, hosts_per_leaf=2, host_link=Link(delay="100ns"))
    parts = {"switch": Switch(latency="300ns"), "nic": Nic(latency="50ns")}
    network = build_network(topology)
    lowered = lower(scenario(topology, **parts))
    delay = {network.port_arrow(port): int(lowered.port_delay_ps[port]) for port in range(network.n_ports)}
    assert delay["host0->leaf0"] == 400_000
    assert delay["leaf0->host0"] == 150_000
    assert delay["leaf0->spine0"] == delay["spine0->leaf0"] == 800_000
    assert lookahead_ps(lowered) == 150_000


@pytest.mark.parametrize(("delay", "message"), [("999ps", "1ns"), ("1s", "latency of the receiver")])
def test_delays_out_of_range_are_refused(delay: str, message: str) -> None:
    graph = networkx.Graph([("host0", "leaf0"), ("host1", "leaf0")])
    network = from_networkx(graph, link=Link(delay=delay))
    nic = Nic(latency="500ms" if delay == "1s" else 0)
    with pytest.raises(SpecError, match=message):
        lower(scenario(nic=nic), network=network)


def test_thresholds_that_outgrow_every_buffer_are_refused() -> None:
    fast = SingleSwitch(hosts=2, link=Link(rate=2**62))
    with pytest.raises(SpecError, match="from 1bps to 4611686018427387904bps") as caught:
        lower(scenario(fast, switch=Switch(ecn=Ecn(kmin=1, kmax="1MB", scale_from=1), pfc=Pfc(headroom=0))))
    assert caught.value.path == "switch.ecn.kmax"
    with pytest.raises(SpecError, match="takes 576") as caught:
        lower(scenario(fast, switch=Switch(ecn=None), nic=Nic(pfc_response="1s")))
    assert caught.value.path == "switch.pfc.headroom"
    own = (TrafficClass(name="data", pfc=Pfc(headroom_delays=1000), ecn=False), TrafficClass(name="control"))
    far = SingleSwitch(hosts=2, link=Link(rate="10Tbps", delay="1s"))
    with pytest.raises(SpecError, match="below 1TB") as caught:
        lower(scenario(far, switch=Switch(classes=own)))
    assert caught.value.path == "switch.classes[0].pfc.headroom_delays"


def test_headroom_of_many_ports_is_added_without_wrapping() -> None:
    many = SingleSwitch(hosts=20_000)
    with pytest.raises(SpecError, match="20000 ports") as caught:
        lower(scenario(many, switch=Switch(buffer="900GB", pfc=Pfc(headroom="999GB"))))
    assert caught.value.path == "switch.buffer"


def test_more_rows_of_transports_than_flows_can_number_are_refused() -> None:
    flows = 2**16 + 1
    patterns = PatternTransports(
        (Transport(congestion=Dcqcn(preset="hpcc", scale_from="1Gbps")),),
        np.zeros(1, dtype=np.int64),
        np.zeros(1, dtype=np.uint8),
        ("transport",),
    )
    with pytest.raises(SpecError, match=r"65537 pairs.*at most 65536"):
        transport_columns(
            patterns,
            flow_spec=np.zeros(flows, dtype=np.int64),
            line_rate_bps=np.arange(1, flows + 1, dtype=np.int64),
            switch=Switch(),
        )


def test_steps_that_outgrow_every_rate_name_their_entry() -> None:
    fast = Transport(congestion=Dcqcn(scale_from=1, ai=2**62))
    entries = [Permutation(size=1), Permutation(size=1, transport=fast)]
    with pytest.raises(SpecError, match="scaled from 1bps to 400Gbps") as caught:
        lower(scenario(traffic=entries))
    assert caught.value.path == "traffic[1].transport.congestion.ai"


def test_errors_about_flows_name_the_entry_of_the_scenario() -> None:
    rails = RailOptimized(servers=2, accelerators_per_server=2, spines=0)
    entries = [
        Flows(flows=[Flow(source=0, destination=1, size=1)]),
        AllToAll(size=1),
    ]
    with pytest.raises(SpecError, match="two hosts with a path") as caught:
        lower(scenario(rails, traffic=entries))
    assert caught.value.path == "traffic[1]"
    news = Flows(
        flows=[
            Flow(source=0, destination=1, size=1, name="a"),
            Flow(source=2, destination=3, size=1, after=["a"]),
        ]
    )
    with pytest.raises(SpecError, match="waits for flows whose destination") as caught:
        lower(scenario(rails, traffic=[entries[0], news]))
    assert caught.value.path == "traffic[1]"


def test_loss_rates_and_devices() -> None:
    link = Link(loss=0.25, bit_error_rate=1e-9, gap=24)
    parts = {"switch": Switch(arbiter="round_robin", pfc_response="40ns"), "nic": Nic(pfc_response="1us")}
    lowered = lower(scenario(SingleSwitch(hosts=2, link=link), **parts))
    assert lowered.port_loss.tolist() == [0.25] * 4
    assert lowered.port_ber_rate.tolist() == [-log1p(-1e-9)] * 4
    assert lowered.port_gap_bytes.tolist() == [24] * 4
    assert lowered.node_kind.tolist() == [0, 0, 1]
    assert lowered.node_arbiter.tolist() == [0, 0, 1]
    assert lowered.node_pfc_response_ps.tolist() == [10**6, 10**6, 40_000]
    assert lowered.port_ber_rate.max() > 0
    plain = lower(scenario())
    assert not np.signbit(plain.port_ber_rate).any()


def test_keys_of_nodes() -> None:
    lowered = lower(scenario(run=Run(seed=11)))
    for node in range(lowered.n_nodes):
        assert int(lowered.node_tie_key[node]) == int(draw(purpose_key(11, 3), node, 0))
        assert int(lowered.node_salt[node]) == int(draw(purpose_key(11, 4), node, 0)) & 0xFFFFFFFF
    pair = int(lowered.flow_source[0]) << 32 | int(lowered.flow_destination[0])
    assert int(lowered.flow_hash[0]) == int(draw(purpose_key(11, 5), pair, 0)) & 0xFFFFFFFF


def test_path_hashes_do_not_depend_on_other_traffic() -> None:
    few = flow_table([0, 1, 0], [1, 2, 1])
    many = flow_table([2, 0, 3, 1, 0, 0], [3, 1, 2, 2, 1, 2])
    alone = lower(scenario(), flows=few).flow_hash
    among = lower(scenario(), flows=many).flow_hash
    assert len(set(alone.tolist())) == 3, "two flows of one pair take paths of their own"
    assert alone.tolist() == [among[1], among[3], among[4]]


def test_cut_through_only_towards_switches_of_one_rate() -> None:
    topology = LeafSpine(leaves=2, spines=1, hosts_per_leaf=1)
    network = build_network(topology)
    lowered = lower(scenario(topology, switch=Switch(cut_through=True)))
    to_host = lowered.port_node[lowered.port_peer] < network.n_hosts
    assert set(lowered.port_cut_bytes[to_host].tolist()) == {0}
    assert set(lowered.port_cut_bytes[~to_host].tolist()) == {64}
    assert not lower(scenario(topology)).port_cut_bytes.any()
    mixed = LeafSpine(leaves=2, spines=2, hosts_per_leaf=1, fabric_link=Link(rate="800Gbps"))
    with pytest.raises(SpecError, match=r"switch\.cut_through.*leaf0"):
        lower(scenario(mixed, switch=Switch(cut_through=True)))


# Recording


def test_recorders() -> None:
    topology = LeafSpine(leaves=2, spines=1, hosts_per_leaf=2)
    network = build_network(topology)
    flows = FlowTable.concatenate(
        [
            flow_table([0, 1], [2, 2], label="incast"),
            flow_table([0, 3], [1, 0], label="other", names=["first", "second"]),
        ]
    )
    record = Record(
        queues=QueueRecord(ports=("leaf0:*", "host1:0"), delta="1KB"),
        throughput=ThroughputRecord(interval="10us", ports=("*->host2",)),
        packets=PacketRecord(ports=("spine0->leaf1",), flows=("sec*", "*->host1")),
        rates=("incast#1", "host0->host2"),
        pauses=True,
        drops=True,
    )
    lowered = lower(scenario(topology, record=record), flows=flows)
    assert lowered.record == 1 | 4
    assert lowered.record_queue_delta == 1000
    assert lowered.record_queue_interval_ps == 0
    assert lowered.record_throughput_interval_ps == 10**7

    def recorded(bit: int) -> list[str]:
        return [network.port_arrow(int(port)) for port in np.flatnonzero(lowered.port_record & bit)]

    assert recorded(1) == ["leaf0->host0", "leaf0->host1", "leaf0->spine0"]
    assert recorded(2) == ["leaf1->host2"]
    assert recorded(4) == ["spine0->leaf1"]
    assert lowered.flow_record.tolist() == [1, 1, 2, 2]


def test_nothing_is_recorded_by_default_and_every_switch_port_on_request() -> None:
    lowered = lower(scenario())
    assert lowered.record == 0
    assert not lowered.port_record.any()
    assert not lowered.flow_record.any()
    lowered = lower(scenario(record=Record(queues=QueueRecord(interval="1us"), rates=("*",))))
    assert (lowered.port_record == (lowered.port_node >= lowered.n_hosts)).all()
    assert lowered.record_queue_interval_ps == 10**6
    assert lowered.flow_record.tolist() == [1]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (Record(rates=("*->host9",)), r"record\.rates\[0\]"),
        (Record(rates=("flows#5",)), r"record\.rates\[0\]"),
        (Record(queues=QueueRecord(ports=("host*",), delta=1)), r"record\.queues\.ports.*switches"),
        (Record(packets=PacketRecord(ports=("leaf9:*",))), r"record\.packets\.ports\[0\]"),
    ],
)
def test_recorders_that_match_nothing_are_refused(record: Record, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        lower(scenario(record=record))
