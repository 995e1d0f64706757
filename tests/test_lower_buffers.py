"""From specs to arrays: headroom, thresholds, ECN, profiles of ports, schedulers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support_lowering import LARGEST_FRAME, flow_table, profile, scenario

from fabric import _core
from fabric.errors import SpecError
from fabric.lower import lower
from fabric.lowered import DropReason, Lowered
from fabric.lowering.buffers import auto_headroom_bytes, serialisation_ps
from fabric.spec.link import Link, LinkOverride
from fabric.spec.nic import Nic
from fabric.spec.switch import Ecn, Lossy, Pfc, Switch, TrafficClass
from fabric.spec.topology import FatTree, LeafSpine, SingleSwitch
from fabric.spec.transport import NoCongestionControl, Transport
from fabric.topology import build_network

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
