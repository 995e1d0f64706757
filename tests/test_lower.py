"""Lowering: every column against values computed by hand from the specs."""

from __future__ import annotations

from dataclasses import fields, replace
from math import log1p
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric import _core
from fabric.errors import SpecError
from fabric.keyed_hash import draw, purpose_key
from fabric.lower import lookahead_ps, lower
from fabric.lowered import OPEN_END_PS, DropReason, Lowered
from fabric.lowering.buffers import auto_headroom_bytes, serialisation_ps
from fabric.lowering.transports import PatternTransports, transport_columns
from fabric.routing import trace_path
from fabric.spec.congestion import Dctcp, Hpcc, Timely
from fabric.spec.link import Link, LinkOverride
from fabric.spec.nic import Nic
from fabric.spec.run import PacketRecord, QueueRecord, Record, Run, ThroughputRecord
from fabric.spec.scenario import Scenario
from fabric.spec.switch import Ecn, Lossy, Pfc, Switch, TrafficClass
from fabric.spec.topology import FatTree, LeafSpine, RailOptimized, SingleSwitch
from fabric.spec.traffic import AllToAll, Flow, Flows, Incast, Permutation
from fabric.spec.transport import Dcqcn, FixedWindow, GoBackN, NoCongestionControl, Transport
from fabric.topology import Network, build_network, from_networkx
from fabric.workload import FlowTable

LARGEST_FRAME = 4096 + 62
ONE_FLOW = (Flows(flows=(Flow(source=0, destination=1, size="1MB"),)),)


def scenario(topology: Any = None, **parts: Any) -> Scenario:
    return Scenario(
        topology=topology or SingleSwitch(hosts=4), traffic=parts.pop("traffic", ONE_FLOW), **parts
    )


def flow_table(source: Any, destination: Any, *, size: Any = 10_000, **more: Any) -> FlowTable:
    return FlowTable.from_arrays(source, destination, size_bytes=size, **more)


def profile(lowered: Lowered, network: Network, port: str, number: int = 0) -> np.void:
    """The profile of one named port and class."""
    found = int(network.find_ports([port])[0])
    return lowered.profiles[lowered.port_profile[found * lowered.n_classes + number]]


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


# Buffers


def test_auto_headroom_by_hand() -> None:
    """400 Gbit/s is 50 B/ns."""
    lowered = lower(scenario(SingleSwitch(hosts=4)))
    network = build_network(SingleSwitch(hosts=4))
    # To the switch 500 + 500 ns, to the host 500 ns: 75,000 B. A frame of 4178 B and a PAUSE of 84 B on
    # the wire, and two frames of 4158 B.
    expected = 75_000 + 4178 + 84 + 2 * LARGEST_FRAME
    row = profile(lowered, network, "switch0:0")
    assert row["headroom_bytes"] == expected == 87_578
    control = profile(lowered, network, "switch0:0", 1)
    assert (control["lossless"], control["headroom_bytes"], control["egress_alpha_q16"]) == (0, 0, 65536)
    assert lowered.node_shared_bytes.tolist() == [0, 0, 0, 0, 64 * 10**6 - 4 * expected]


def test_auto_headroom_knows_the_upstream_node() -> None:
    topology = LeafSpine(leaves=2, spines=1, hosts_per_leaf=1, fabric_link=Link(rate="100Gbps", delay="2us"))
    network = build_network(topology)
    parts = {"switch": Switch(pfc_response="200ns"), "nic": Nic(pfc_response="1us", latency="100ns")}
    lowered = lower(scenario(topology, **parts))
    host = profile(lowered, network, "leaf0->host0")["headroom_bytes"]
    assert host == (1000 + 600 + 1000) * 50 + 4178 + 84 + 2 * LARGEST_FRAME
    fabric = profile(lowered, network, "leaf0->spine0")["headroom_bytes"]
    assert fabric == (2 * 2500 + 200) * 100 // 8 + 4178 + 84 + 2 * LARGEST_FRAME


def test_headroom_counts_the_pause_frames_of_all_lossless_classes() -> None:
    classes = (TrafficClass(name="data"), TrafficClass(name="other"), TrafficClass(name="control", pfc=False))
    lowered = lower(scenario(switch=Switch(classes=classes)))
    network = build_network(SingleSwitch(hosts=4))
    for number in (0, 1):
        row = profile(lowered, network, "switch0:0", number)
        assert row["headroom_bytes"] == 75_000 + 4178 + 2 * 84 + 2 * LARGEST_FRAME


@settings(max_examples=200)
@given(
    rate=st.integers(10**9, 2 * 10**12),
    round_trip=st.integers(2_000, 10**8),
    response=st.integers(0, 10**7),
    frame=st.integers(64, 9216),
    gap=st.integers(0, 40),
)
def test_headroom_holds_all_frames_that_can_still_come(
    rate: int, round_trip: int, response: int, frame: int, gap: int
) -> None:
    """Frames begun back to back until the latest effect of PAUSE, and the one that crossed the threshold."""
    headroom = auto_headroom_bytes(
        rate, round_trip_ps=round_trip, response_ps=response, gap_bytes=gap, largest_frame_bytes=frame
    )
    wire_ps = serialisation_ps(frame + gap, rate)
    effect_ps = wire_ps + serialisation_ps(64 + gap, rate) + round_trip + response
    frames_after = effect_ps // wire_ps + 1
    assert frame * (frames_after + 1) <= headroom


def both_ways(*, delay: str, cut_through: bool, pfc: Pfc) -> Lowered:
    """16 hosts send to one at line rate and each of them receives from another at line rate.

    So every PAUSE finds a data frame under way in its direction.
    """
    each = scenario(
        SingleSwitch(hosts=33, link=Link(delay=delay)),
        transport=Transport(payload=9000, congestion=NoCongestionControl()),
        switch=Switch(latency="50ns", cut_through=cut_through, pfc=pfc),
    )
    senders = [*range(1, 17), *range(17, 33)]
    return lower(each, flows=flow_table(senders, [0] * 16 + [*range(1, 17)], size=500_000))


def headroom_drops(lowered: Lowered) -> int:
    engine = _core.Engine(lowered)
    engine.run()
    return int(engine.columns()["drops_by_reason"][DropReason.HEADROOM])


@pytest.mark.parametrize("cut_through", [False, True])
@pytest.mark.parametrize("delay", ["50ns", "300ns", "2us"])
@pytest.mark.parametrize("pfc", [Pfc(xoff="40KB"), Pfc(alpha=1 / 64)], ids=["static", "dynamic"])
def test_auto_headroom_loses_nothing(delay: str, cut_through: bool, pfc: Pfc) -> None:
    assert headroom_drops(both_ways(delay=delay, cut_through=cut_through, pfc=pfc)) == 0


def test_headroom_without_the_wait_for_a_frame_under_way_loses_frames() -> None:
    lowered = both_ways(delay="50ns", cut_through=False, pfc=Pfc(xoff="40KB"))
    less = lowered.profiles.copy()
    less["headroom_bytes"][less["lossless"] == 1] -= 9000 + 62 + 20
    assert headroom_drops(replace(lowered, profiles=less)) > 0


def test_static_thresholds() -> None:
    pfc = Pfc(xoff="200KB", headroom="120KB")
    control = TrafficClass(name="control", pfc=False, lossy=Lossy(limit="50KB"), reserved="1KB")
    switch = Switch(pfc=pfc, classes=(TrafficClass(name="data", reserved="2KB"), control))
    network = build_network(SingleSwitch(hosts=4))
    lowered = lower(scenario(switch=switch))
    data = profile(lowered, network, "switch0:1")
    assert (data["alpha_q16"], data["limit_bytes"]) == (0, 200_000)
    assert data["xon_offset_bytes"] == 2 * LARGEST_FRAME
    assert (data["headroom_bytes"], data["reserved_bytes"]) == (120_000, 2_000)
    row = profile(lowered, network, "switch0:1", 1)
    assert (row["egress_alpha_q16"], row["egress_limit_bytes"], row["reserved_bytes"]) == (0, 50_000, 1_000)
    assert lowered.node_shared_bytes[4] == 64 * 10**6 - 4 * (120_000 + 2_000 + 1_000)
    xon = Pfc(xoff="200KB", xon="150KB")
    row = profile(lower(scenario(switch=Switch(pfc=xon))), network, "switch0:1")
    assert row["xon_offset_bytes"] == 50_000
    tiny = Pfc(xoff="1KB")
    row = profile(lower(scenario(switch=Switch(pfc=tiny))), network, "switch0:1")
    assert (row["limit_bytes"], row["xon_offset_bytes"]) == (1_000, 1_000)


def test_dynamic_thresholds() -> None:
    network = build_network(SingleSwitch(hosts=4))
    row = profile(lower(scenario()), network, "switch0:0")
    assert (row["lossless"], row["alpha_q16"], row["xon_offset_bytes"]) == (1, 8192, 2 * LARGEST_FRAME)
    switch = Switch(pfc=Pfc(alpha=1 / 3, xon_offset="3072B"))
    row = profile(lower(scenario(switch=switch)), network, "switch0:0")
    assert (row["alpha_q16"], row["xon_offset_bytes"], row["limit_bytes"]) == (21845, 3072, 0)


def test_a_buffer_without_a_pool_is_refused() -> None:
    needed = 4 * 87_578
    with pytest.raises(SpecError, match=r"switch\.buffer.*350312B.*4 ports of switch0.*400Gbps") as caught:
        lower(scenario(switch=Switch(buffer=needed)))
    assert caught.value.path == "switch.buffer"
    assert lower(scenario(switch=Switch(buffer=needed + 1))).node_shared_bytes[4] == 1


def test_ecn_scales_with_the_rate_of_the_port() -> None:
    ecn = Ecn(kmin="100KB", kmax="400KB", pmax=0.2, scale_from="25Gbps", mark="enqueue")
    topology = LeafSpine(leaves=2, spines=1, hosts_per_leaf=2, host_link=Link(rate="100Gbps"))
    network = build_network(topology)
    lowered = lower(scenario(topology, switch=Switch(ecn=ecn)))
    host = profile(lowered, network, "leaf0->host0")
    assert (host["ecn_mode"], host["ecn_kmin_bytes"], host["ecn_kmax_bytes"]) == (1, 400_000, 1_600_000)
    assert host["ecn_pmax"] == 0.2
    spine = profile(lowered, network, "leaf0->spine0")
    assert (spine["ecn_kmin_bytes"], spine["ecn_kmax_bytes"]) == (1_600_000, 6_400_000)
    assert profile(lowered, network, "leaf0->host0", 1)["ecn_mode"] == 0
    fixed = lower(scenario(topology))
    row = profile(fixed, network, "leaf0->host0")
    assert (row["ecn_mode"], row["ecn_kmin_bytes"], row["ecn_kmax_bytes"]) == (2, 800_000, 3_200_000)
    off = lower(scenario(topology, switch=Switch(ecn=None)))
    assert not off.profiles["ecn_mode"].any()


def test_profiles_are_shared_by_equal_ports_and_neutral_at_hosts() -> None:
    topology = FatTree(k=4)
    lowered = lower(scenario(topology))
    # Neutral; data and control towards hosts, data towards switches (control needs no headroom).
    assert len(lowered.profiles) == 4
    host_ports = lowered.port_node < lowered.n_hosts
    assert (lowered.port_profile.reshape(-1, 2)[host_ports] == 0).all()
    size = lowered.profiles.dtype.itemsize
    assert lowered.profiles.tobytes()[:size] == bytes(size)


def test_an_override_gives_a_port_a_profile_of_its_own() -> None:
    override = LinkOverride(match="host1-switch0", rate="100Gbps")
    topology = SingleSwitch(hosts=4, overrides=(override,))
    network = build_network(topology)
    lowered = lower(scenario(topology))
    slow = profile(lowered, network, "switch0->host1")["headroom_bytes"]
    assert slow == 1500 * 100 // 8 + 4178 + 84 + 2 * LARGEST_FRAME
    assert profile(lowered, network, "switch0->host0")["headroom_bytes"] == 87_578


def test_scheduler_levels_and_quanta() -> None:
    classes = (
        TrafficClass(name="bulk", priority=1, weight=3),
        TrafficClass(name="data", priority=1),
        TrafficClass(name="control", priority=7, pfc=False),
        TrafficClass(name="scavenger", pfc=False, weight=2),
    )
    lowered = lower(scenario(switch=Switch(classes=classes)))
    row = lowered.schedulers[0]
    assert (lowered.n_classes, len(lowered.schedulers), int(row["n_levels"])) == (4, 1, 3)
    assert row["level_mask"].tolist() == [0b0100, 0b0011, 0b1000, 0, 0, 0, 0, 0]
    assert row["quantum"][:4].tolist() == [n * LARGEST_FRAME for n in (3, 1, 1, 2)]
    assert not lowered.node_scheduler.any()
    assert lowered.flow_class.tolist() == [1]
    assert lowered.transports["control_class"].tolist() == [2]


# Transports


def test_transport_row() -> None:
    reliability = GoBackN(rto="1ms", nack_on_rewind=False, nack_interval="20us")
    congestion = Dcqcn(preset="paper_2015", window="10KB")
    transport = Transport(
        payload=1000, header=48, ack_every=4, reliability=reliability, congestion=congestion
    )
    row = lower(scenario(transport=transport)).transports[0]
    assert (row["payload_bytes"], row["frame_bytes"], row["control_bytes"]) == (1000, 1048, 64)
    assert (row["ack_every"], row["rto_ps"], row["nack_interval_ps"]) == (4, 10**9, 2 * 10**7)
    assert (row["nack_enabled"], row["nack_on_rewind"]) == (1, 0)
    assert (row["congestion"], row["feedback"], row["window_frames"]) == (1, 1, 10)
    assert (row["fast_recovery"], row["byte_counter"], row["g"]) == (5, 10**7, 1 / 256)
    assert (row["ai_bps"], row["hai_bps"], row["min_rate_bps"]) == (40e6, 200e6, 1e6)
    assert (row["cnp_interval_ps"], row["alpha_period_ps"], row["increase_period_ps"]) == (
        50 * 10**6,
        55 * 10**6,
        55 * 10**6,
    )


def test_other_congestion_controls_and_no_timeout() -> None:
    none = Transport(congestion=NoCongestionControl(), reliability=GoBackN(rto=None, nack=False))
    row = lower(scenario(transport=none)).transports[0]
    assert (row["congestion"], row["feedback"], row["window_frames"], row["rto_ps"]) == (0, 0, 0, 0)
    assert row["nack_enabled"] == 0
    window = Transport(payload=1000, congestion=FixedWindow(window=2001))
    row = lower(scenario(transport=window)).transports[0]
    assert (row["congestion"], row["window_frames"]) == (0, 3)
    vendor = Transport(congestion=Dcqcn(preset="hpcc_paper"))
    row = lower(scenario(transport=vendor)).transports[0]
    assert (row["congestion"], row["feedback"]) == (2, 2)


def test_windows_that_follow_the_rate() -> None:
    """HPCC's holds a base round trip at the line rate of each flow, DCTCP's and DCQCN's what they say."""
    override = LinkOverride(match="host1-switch0", rate="100Gbps")
    topology = SingleSwitch(hosts=4, overrides=(override,))
    flows = flow_table([0, 1, 2], [3, 3, 3])
    transport = Transport(congestion=Hpcc(base_rtt="10us", scale_from=None))
    lowered = lower(scenario(topology, transport=transport), flows=flows)
    rows = lowered.transports[lowered.flow_transport]
    assert rows["window_bytes"].tolist() == [500_000, 125_000, 500_000]
    assert (rows["congestion"] == 3).all()
    assert (rows["telemetry"] == 2).all()
    for congestion in (Dctcp(window=2001), Dcqcn(window=2001, variable_window=True)):
        row = lower(scenario(transport=Transport(payload=1000, congestion=congestion))).transports[0]
        assert (row["variable_window"], row["window_bytes"], row["window_frames"]) == (1, 2001, 3)
    assert lower(scenario(transport=Transport(congestion=Dctcp()))).transports[0]["variable_window"] == 0


def test_telemetry_makes_frames_larger_when_asked_to() -> None:
    lowered = lower(scenario(transport=Transport(payload=1000, congestion=Timely(telemetry_header=8))))
    row = lowered.transports[0]
    assert (row["congestion"], row["telemetry"], row["frame_bytes"]) == (5, 1, 1070)
    assert (row["feedback"], row["rtt_low_ps"], row["rtt_high_ps"]) == (0, 50_000_000, 500_000_000)


def test_steps_scale_with_the_line_rate_of_each_flow() -> None:
    override = LinkOverride(match="host1-switch0", rate="100Gbps")
    topology = SingleSwitch(hosts=4, overrides=(override,))
    transport = Transport(congestion=Dcqcn(preset="hpcc"))
    flows = flow_table([0, 1, 2], [3, 3, 3])
    lowered = lower(scenario(topology, transport=transport), flows=flows)
    rows = lowered.transports[lowered.flow_transport]
    assert rows["ai_bps"].tolist() == [80e6, 20e6, 80e6]
    assert rows["hai_bps"].tolist() == [800e6, 200e6, 800e6]
    assert len(lowered.transports) == 2


def test_patterns_bring_transports_and_classes_of_their_own() -> None:
    large = Transport(payload=8192)
    classes = (TrafficClass(name="data"), TrafficClass(name="bulk"), TrafficClass(name="control", pfc=False))
    table = FlowTable.concatenate(
        [
            flow_table([0, 1], 2, label="a"),
            flow_table([1], 2, label="b", transport=large, traffic_class="bulk"),
            flow_table([0], 3, label="c", transport=Transport()),
        ]
    )
    lowered = lower(scenario(switch=Switch(classes=classes)), flows=table)
    rows = lowered.transports[lowered.flow_transport]
    assert rows["frame_bytes"].tolist() == [4158, 4158, 8254, 4158]
    assert len(lowered.transports) == 2
    assert lowered.flow_class.tolist() == [0, 0, 1, 0]
    assert lowered.schedulers["quantum"][0, 0] == 8254


def test_unknown_classes_and_oversized_frames_are_refused() -> None:
    table = flow_table([0], 1, label="bulk", traffic_class="dta")
    with pytest.raises(SpecError, match=r'traffic "bulk"\.traffic_class.*did you mean "data"'):
        lower(scenario(), flows=table)
    table = flow_table([0], 1, transport=Transport(payload=65_470))
    with pytest.raises(SpecError, match=r"transport\.payload.*65515"):
        lower(scenario(), flows=table)


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
