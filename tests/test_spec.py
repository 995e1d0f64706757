"""Specs: defaults, forms of input, judgements, presets, numbers that cannot be computed with."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from support_specs import scenario

from fabric import spec as specs
from fabric.errors import SpecError
from fabric.spec import (
    DCQCN_PRESETS,
    Clos3,
    Dcqcn,
    Dctcp,
    Ecn,
    FatTree,
    Flow,
    Flows,
    GoBackN,
    GraphFile,
    Hpcc,
    Incast,
    LeafSpine,
    Link,
    LinkOverride,
    Lossy,
    Nic,
    Permutation,
    Pfc,
    Poisson,
    QueueRecord,
    RailOptimized,
    Run,
    SingleSwitch,
    Switch,
    ThroughputRecord,
    Timely,
    TrafficClass,
    Transport,
    host_count,
)
from fabric.spec.plain import to_plain
from fabric.units import Duration, Rate, Size


def test_defaults_carry_units():
    assert Link() == Link(rate=Rate("400Gbps"), delay=Duration("500ns"), loss=0, gap=Size("20B"))
    switch = Switch()
    assert (switch.buffer, switch.latency) == (Size("64MB"), Duration("500ns"))
    assert (switch.ecn.kmin, switch.ecn.kmax, switch.ecn.pmax) == (Size("800KB"), Size("3200KB"), 0.2)
    assert (switch.pfc.alpha, switch.pfc.xoff, switch.pfc.headroom) == (0.125, None, "auto")
    assert (switch.lossy.alpha, switch.lossy.limit) == (1.0, None)
    assert [(each.name, each.priority, each.pfc) for each in switch.classes] == [
        ("data", 0, True),
        ("control", 7, False),
    ]
    transport = Transport()
    assert (transport.payload, transport.header, transport.frame) == (4096, 62, 4158)
    assert transport.reliability.rto == Duration("4ms")
    assert transport.congestion.preset == "connectx_scaled"
    assert transport.window is None


def test_forms_of_input_are_one():
    texts = Switch(
        buffer="32MB", ecn={"kmin": "1KB", "kmax": 2000}, classes=[{"name": "data"}, {"name": "control"}]
    )
    values = Switch(
        buffer=Size(32_000_000),
        ecn=Ecn(kmin=1000, kmax=Size("2KB")),
        classes=(TrafficClass(name="data"), TrafficClass(name="control")),
    )
    assert texts == values
    assert hash(texts) == hash(values)
    assert type(texts.ecn.kmax) is Size
    assert type(Link(loss=0).loss) is float


def test_specs_are_frozen_and_replaceable():
    link = Link()
    with pytest.raises(AttributeError, match="immutable"):
        link.rate = Rate("1Gbps")
    assert link.replace(rate="1Gbps") == Link(rate="1Gbps")
    with pytest.raises(SpecError, match=r"Link\.loss"):
        link.replace(loss=1.0)


def test_what_follows_from_other_fields_follows_anew():
    assert Pfc().replace(xoff="1MB") == Pfc(xoff="1MB")
    assert Pfc(xoff="1MB").replace(headroom=0) == Pfc(xoff="1MB", headroom=0)
    assert Pfc(xoff="1MB").replace(xoff=None) == Pfc()
    assert Switch(ecn=None).replace(buffer="9MB") == Switch(ecn=None, buffer="9MB")
    assert Dcqcn(g=0.5).replace(preset="hpcc") == Dcqcn(preset="hpcc", g=0.5)
    assert GoBackN(rto=None).replace(nack=False) == GoBackN(rto=0, nack=False)
    narrow = LeafSpine(leaves=2, spines=2, hosts_per_leaf=4, oversubscription=2)
    assert narrow.replace(oversubscription=4).fabric_link.rate == Rate("200Gbps")
    assert narrow.replace(oversubscription=None).fabric_link == Link()
    assert "fabric_link" not in to_plain(narrow)


@pytest.mark.parametrize(
    ("make", "path"),
    [
        (lambda: Ecn(kmin="2KB", kmax="1KB"), "Ecn.kmin"),
        (lambda: Switch(ecn={"kmin": "2KB", "kmax": "1KB"}), "Switch.ecn.kmin"),
        (lambda: Switch(classes=[{"name": "a", "pfc": {"alpha": 0}}]), "Switch.classes[0].pfc.alpha"),
        (lambda: Link(rate="fast"), "Link.rate"),
        (lambda: Link(rate=None), "Link.rate"),
        (lambda: Pfc(headroom="some"), "Pfc.headroom"),
        (lambda: Switch(arbiter="lifo"), "Switch.arbiter"),
        (lambda: Transport(ack_every=1.5), "Transport.ack_every"),
        (lambda: Run(fingerprint=1), "Run.fingerprint"),
        (lambda: Transport(congestion=GoBackN()), "Transport.congestion"),
        (lambda: scenario(switch={"buffer": 0}), "switch.buffer"),
        (lambda: scenario(transport=Transport(data_class="bulk")), "transport.data_class"),
    ],
)
def test_paths_of_specs_made_in_python(make, path):
    with pytest.raises(SpecError) as caught:
        make()
    assert caught.value.path == path


def test_pfc_is_dynamic_or_static():
    assert Pfc(xoff="100KB").alpha is None
    assert Pfc(alpha=1).xoff is None
    assert Pfc(xoff="100KB", xon="100KB").xon == 100_000
    assert Pfc(headroom="50KB").headroom == 50_000
    assert Lossy(limit="1MB").alpha is None
    for wrong in ({"alpha": 1, "xoff": "1KB"}, {"xon": "1KB"}, {"xoff": "1KB", "xon_offset": 0}):
        with pytest.raises(SpecError):
            Pfc(**wrong)


def test_off_is_none():
    assert Switch(ecn=False).ecn is None
    assert Switch(ecn=None).ecn is None
    assert Switch(ecn=True).ecn == Ecn()
    assert GoBackN(rto=0).rto is None
    assert GoBackN(rto="0s").rto is None
    assert Dcqcn(preset="paper_2015", byte_counter=0).byte_counter is None


@pytest.mark.parametrize("name", DCQCN_PRESETS)
def test_presets_name_every_value(name):
    preset = Dcqcn(preset=name)
    assert set(DCQCN_PRESETS[name]) == set(Dcqcn.__struct_fields__) - {"preset"}
    assert not any(value is msgspec.UNSET for value in msgspec.structs.astuple(preset))
    assert name in specs.presets.__doc__
    assert name in Dcqcn.__doc__
    assert to_plain(preset) == {"kind": "dcqcn"} | ({} if name == Dcqcn().preset else {"preset": name})


def test_preset_values():
    paper = Dcqcn(preset="paper_2015")
    assert (paper.form, paper.feedback, paper.cnp_interval) == ("paper", "cnp", Duration("50us"))
    assert (paper.alpha_period, paper.increase_period) == (Duration("55us"), Duration("55us"))
    assert (paper.byte_counter, paper.fast_recovery, paper.g) == (Size("10MB"), 5, 1 / 256)
    assert (paper.ai, paper.hai) == (Rate("40Mbps"), Rate("200Mbps"))
    hpcc = Dcqcn(preset="hpcc").at_line_rate(Rate("100Gbps"))
    assert (hpcc.form, hpcc.feedback) == ("vendor", "echo")
    assert (hpcc.ai, hpcc.hai) == (Rate("20Mbps"), Rate("200Mbps"))
    assert (hpcc.alpha_period, hpcc.cut_period, hpcc.increase_period) == (10**6, 4 * 10**6, 300 * 10**6)
    assert (hpcc.min_rate, hpcc.fast_recovery, hpcc.scale_from) == (Rate("1Gbps"), 1, None)
    assert hpcc.at_line_rate(Rate("1Gbps")) is hpcc
    assert Dcqcn(preset="connectx").g == 5 / 1024
    assert Dcqcn(preset="simai").increase_period == Duration("900us")
    assert Dcqcn(preset="ns3_rdma").byte_counter == Size("300MB")


def test_steps_scale_with_the_line_rate():
    """At 100 Gbit/s: the values of the HPCC simulator's runs."""
    assert Hpcc().at_line_rate(Rate("100Gbps")).ai == Rate("40Mbps")
    timely = Timely().at_line_rate(Rate("100Gbps"))
    assert (timely.ai, timely.hai, timely.scale_from) == (Rate("100Mbps"), Rate("500Mbps"), None)
    assert timely.at_line_rate(Rate("1Gbps")) is timely
    assert Dctcp().ai == Rate("615Mbps")


def test_telemetry_costs_what_the_spec_says():
    assert Transport(congestion=Hpcc()).frame == Transport().frame
    assert Transport(congestion=Hpcc(telemetry_header=42)).frame == Transport().frame + 42
    assert Transport(congestion=Timely(telemetry_header=8)).overhead == 70


def test_fields_beside_a_preset_override_it():
    mixed = Dcqcn(preset="hpcc", g=0.5, window="1MB")
    assert (mixed.g, mixed.window, mixed.cut_period) == (0.5, Size("1MB"), Duration("4us"))
    assert to_plain(mixed) == {"kind": "dcqcn", "preset": "hpcc", "g": 0.5, "window": "1MB"}


@pytest.mark.parametrize(
    ("topology", "hosts"),
    [
        (SingleSwitch(hosts=5), 5),
        (LeafSpine(leaves=4, spines=2, hosts_per_leaf=8), 32),
        (LeafSpine(leaves=4, spines=2, hosts_per_leaf=8, ports_per_host=2), 16),
        (Clos3(pods=2, leaves_per_pod=3, spines_per_pod=2, cores=4, hosts_per_leaf=5), 30),
        (FatTree(k=8), 128),
        (FatTree(k=8).clos(), 128),
        (RailOptimized(servers=4, accelerators_per_server=8, spines=0), 32),
        (GraphFile(file="network.json"), None),
    ],
)
def test_host_count(topology, hosts):
    assert host_count(topology) == hosts


def test_oversubscription_sets_the_uplink_rate():
    shape = {"leaves": 4, "spines": 4, "hosts_per_leaf": 16}
    assert LeafSpine(**shape, oversubscription=2).fabric_link.rate == Rate("800Gbps")
    assert LeafSpine(**shape, oversubscription=1.5).fabric_link.rate == 1_066_666_666_667
    same = LeafSpine(**shape, oversubscription=2, fabric_link={"rate": "800Gbps", "delay": "1us"})
    assert same.fabric_link == Link(rate="800Gbps", delay="1us")
    with pytest.raises(SpecError, match=r"LeafSpine\.fabric_link\.rate.*makes it 800Gbps"):
        LeafSpine(**shape, oversubscription=2, fabric_link=Link(rate="100Gbps"))


def test_hosts_are_checked_by_name_and_number():
    scenario(traffic=[Flows(flows=[Flow(source="host0", destination=3, size=1)])])
    with pytest.raises(SpecError, match=r"traffic\[0\]\.flows\[0\]\.destination: 3 .*other than the source"):
        scenario(traffic=[Flows(flows=[Flow(source="host3", destination=3, size=1)])])
    graph = GraphFile(file="network.json")
    scenario(topology=graph, traffic=[Flows(flows=[Flow(source="gpu-7", destination="gpu-8", size=1)])])


def test_dependencies_may_reach_across_entries_and_into_files():
    first = Flows(flows=[Flow(source=0, destination=1, size=1, name="first")])
    later = Flow(source=1, destination=2, size=1, after=["first"])
    scenario(traffic=[first, Flows(flows=[later])])
    with pytest.raises(SpecError, match=r"traffic\[0\]\.flows\[0\]\.after\[0\]: 'first'"):
        scenario(traffic=[Flows(flows=[later])])
    scenario(traffic=[Flows(flows=[later]), Flows(file="more.csv")])


def test_long_chains_are_no_cycle():
    flows = [Flow(source=0, destination=1, size=1, name="flow0")]
    for index in range(1, 1500):
        flows.append(Flow(source=0, destination=1, size=1, name=f"flow{index}", after=[f"flow{index - 1}"]))
    scenario(traffic=[Flows(flows=flows)])


@pytest.mark.parametrize(
    ("make", "path", "remedy"),
    [
        (lambda: Pfc(headroom=2**62), "Pfc.headroom", "below 1TB"),
        (lambda: Pfc(xon_offset=2**62), "Pfc.xon_offset", "below 1TB"),
        (lambda: Ecn(kmax=2**62, scale_from="1Gbps"), "Ecn.kmax", "below 1TB"),
        (lambda: Switch(pfc_response=2**62), "Switch.pfc_response", "at most 1s"),
        (lambda: Switch(latency="2s"), "Switch.latency", "at most 1s"),
        (lambda: Nic(pfc_response="2s"), "Nic.pfc_response", "at most 1s"),
        (lambda: Nic(latency=2**62), "Nic.latency", "at most 1s"),
        (lambda: Link(delay=2**62), "Link.delay", "at most 1s"),
        (lambda: LinkOverride(match="a-b", delay=2**62), "LinkOverride.delay", "at most 1s"),
        (lambda: Dcqcn(alpha_period="1ps"), "Dcqcn.alpha_period", "at least 1ns"),
        (lambda: Dcqcn(cut_period="1ps"), "Dcqcn.cut_period", "at least 1ns"),
        (lambda: Dcqcn(increase_period="999ps"), "Dcqcn.increase_period", "at least 1ns"),
        (lambda: GoBackN(rto="1ps"), "GoBackN.rto", "at least 1ns"),
        (lambda: QueueRecord(interval="1ps"), "QueueRecord.interval", "at least 1ns"),
        (lambda: ThroughputRecord(interval="1ps"), "ThroughputRecord.interval", "at least 1ns"),
        (
            lambda: Dcqcn(scale_from=1, ai=2**62).at_line_rate(10**9),
            "Dcqcn.ai",
            "scaled from 1bps to 1Gbps",
        ),
        (
            lambda: LeafSpine(
                leaves=2, spines=1, hosts_per_leaf=9, host_link=Link(rate=2**61), oversubscription=0.001
            ),
            "LeafSpine.oversubscription",
            "(this: 2.075e+22 bit/s)",
        ),
        (lambda: SingleSwitch(hosts=2**62), "SingleSwitch.hosts", "from 1 to 65535"),
        (lambda: Permutation(size=1, start=2**62), "Permutation.start", "about 13 days"),
        (lambda: Incast(senders=1, size=1, jitter=2**61), "Incast.jitter", "about 13 days"),
        (lambda: Flow(source=0, destination=1, size=1, start=2**61), "Flow.start", "about 13 days"),
        (lambda: Flows(file="a.csv", first_start=2**61), "Flows.first_start", "about 13 days"),
        (
            lambda: Poisson(load=1, distribution="websearch", duration=2**61),
            "Poisson.duration",
            "about 13 days",
        ),
    ],
)
def test_values_beyond_what_can_be_computed_with(make, path, remedy):
    with pytest.raises(SpecError) as caught:
        make()
    assert caught.value.path == path
    assert remedy in caught.value.allowed


def test_numbers_of_numpy_are_numbers():
    assert SingleSwitch(hosts=np.int64(4)) == SingleSwitch(hosts=4)
    assert type(SingleSwitch(hosts=np.uint8(4)).hosts) is int
    assert Incast(senders=np.int32(3), size=np.int64(5), receivers=np.int8(2)).receivers == 2
    flow = {"source": np.int32(0), "destination": np.uint16(1), "size": 5}
    assert Flows(flows=[flow]).flows[0].destination == 1
    assert Switch(classes=[{"name": "data", "weight": np.int64(3)}]).classes[0].weight == 3
    assert Ecn(pmax=np.float32(0.5)).pmax == Ecn(pmax=np.float64(0.5)).pmax == 0.5
    for wrong in (np.float64(3), np.bool_(True), np.arange(2)):
        with pytest.raises(SpecError, match="an integer"):
            SingleSwitch(hosts=wrong)
