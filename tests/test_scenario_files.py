"""Scenario files: specs there and back, overrides, files beside them, every error listed."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support_specs import scenario

from fabric.errors import SpecError
from fabric.scenario import apply_overrides, dump_scenario, load_scenario, scenario_errors
from fabric.spec import (
    DCQCN_PRESETS,
    AllToAll,
    Dcqcn,
    Dctcp,
    Ecn,
    FatTree,
    FixedWindow,
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
    NoCongestionControl,
    PacketRecord,
    Permutation,
    Pfc,
    Poisson,
    QueueRecord,
    RailOptimized,
    Record,
    Run,
    SingleSwitch,
    Switch,
    ThroughputRecord,
    Timely,
    TrafficClass,
    Transport,
    Uniform,
)
from fabric.spec.plain import to_toml
from fabric.units import Duration, Rate, Size

EXAMPLES = [
    scenario(),
    scenario(name='a "name"', question="two\nlines\t\\ \x07\x7f ü 漢", expect="x = 1 # no comment"),
    scenario(
        topology=LeafSpine(
            leaves=2,
            spines=2,
            hosts_per_leaf=2,
            oversubscription=1.3,
            overrides=[LinkOverride(match="leaf0-spine*", rate="100Gbps", loss=1e-4)],
        )
    ),
    scenario(
        topology=RailOptimized(
            servers=2, accelerators_per_server=2, spines=1, scale_up_link=Link(), links_per_pair=2
        )
    ),
    scenario(topology=FatTree(k=4, link=Link(bit_error_rate=1e-9, gap=0))),
    scenario(topology=GraphFile(file="some network.json", link=Link(delay="1ns"))),
    scenario(
        switch=Switch(
            ecn=None,
            pfc=Pfc(xoff="100KB", headroom=0),
            lossy=Lossy(limit="1MB"),
            arbiter="round_robin",
            cut_through=True,
            classes=[
                TrafficClass(
                    name="data", weight=3, pfc=Pfc(alpha=1), ecn=Ecn(mark="enqueue", scale_from="100Gbps")
                ),
                TrafficClass(name="control", pfc=False, lossy=Lossy(), ecn=False, reserved="9KB"),
            ],
        ),
        nic=Nic(latency="1us"),
    ),
    scenario(
        transport=Transport(
            ack_every=4,
            reliability=GoBackN(rto=None, nack_interval="1us"),
            congestion=FixedWindow(window="64KiB"),
        ),
        traffic=[
            Incast(receivers=["host1"], senders=2, size="1MB", victims=1, victim_size=1, name="incast"),
            Permutation(
                size=1, cross_leaf=True, count=2, transport=Transport(congestion=NoCongestionControl())
            ),
            Uniform(flows=3, size="1GiB", start="1us", jitter="3ns"),
            AllToAll(size="1MB", hosts="host[0-2]", traffic_class="data"),
            Poisson(load=0.5, distribution="websearch", duration="1ms"),
            Poisson(load=1, distribution="sizes.csv", flows=10),
            Flows(
                flows=[
                    Flow(source=0, destination="host1", size=7, name="a"),
                    Flow(source=1, destination=2, size=7, after=["a"]),
                ]
            ),
            Flows(file="flows.csv", flows=[]),
        ],
    ),
    scenario(
        transport=Transport(congestion=Dcqcn(preset="hpcc", scale_from=0, byte_counter=None, window="1MB"))
    ),
    scenario(
        run=Run(seed=0, until="1ms", window="300ns", fingerprint=False),
        record=Record(
            queues=QueueRecord(ports=["leaf0:*", "*->host1"], delta=1),
            throughput=ThroughputRecord(interval="10us"),
            packets=PacketRecord(flows=["incast*"]),
            rates=["*"],
            pauses=True,
            marks=True,
            drops=True,
        ),
    ),
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_dumped_scenarios_load_back(example):
    text = dump_scenario(example)
    assert load_scenario(text) == example
    assert dump_scenario(load_scenario(text)) == text


def test_dumps_say_what_is_particular():
    assert dump_scenario(scenario(switch=Switch(ecn=Ecn(kmin="1KB")))) == (
        '[topology]\nkind = "single_switch"\nhosts = 4\n'
        '\n[[traffic]]\nkind = "incast"\nsenders = 3\nsize = "1MB"\n'
        '\n[switch.ecn]\nkmin = "1KB"\n'
    )


def test_toml_of_odd_values():
    table = {"a": [], "b": [1, "x", True, 0.5, 1e-300], "c": {}, "d": [{}, {"e": {"f": {"g": 1}}}], "h": 2}
    assert tomllib.loads(to_toml(table)) == table


quantities = {kind: st.integers(1, 10**6).map(kind) for kind in (Rate, Size, Duration)}
ecns = st.builds(
    lambda low, more, pmax, mark, rate: Ecn(kmin=low, kmax=low + more, pmax=pmax, mark=mark, scale_from=rate),
    quantities[Size],
    quantities[Size],
    st.floats(0, 1, exclude_min=True),
    st.sampled_from(["enqueue", "dequeue"]),
    st.none() | quantities[Rate],
)
pfcs = st.one_of(
    st.builds(Pfc, alpha=st.floats(2**-16, 64), xon_offset=st.none() | quantities[Size]),
    st.builds(Pfc, xoff=quantities[Size], headroom=st.just("auto") | quantities[Size]),
)
texts = st.text(st.characters(codec="utf-8"), max_size=20)
dcqcns = st.builds(
    Dcqcn,
    preset=st.sampled_from(list(DCQCN_PRESETS)),
    g=st.floats(0, 1, exclude_min=True),
    window=st.sampled_from([0, "1MB"]),
    scale_from=st.sampled_from([0, "40Gbps"]),
    clamp_target=st.booleans(),
    variable_window=st.booleans(),
)
others = st.one_of(
    st.builds(
        Hpcc,
        eta=st.floats(0, 1, exclude_min=True),
        scale_from=st.sampled_from([0, "40Gbps"]),
        telemetry_header=st.sampled_from([0, 42]),
    ),
    st.builds(Dctcp, g=st.floats(0, 1, exclude_min=True), window=st.sampled_from([0, "1MB"])),
    st.builds(Timely, beta=st.floats(0, 1, exclude_min=True), rtt_high=st.sampled_from(["50us", "1ms"])),
)


@settings(max_examples=60)
@given(
    name=texts,
    ecn=st.none() | ecns,
    pfc=pfcs,
    rate=st.integers(1000, 2**62).map(Rate),
    loss=st.floats(0, 1, exclude_max=True),
    congestion=dcqcns | others | st.builds(NoCongestionControl),
    seed=st.integers(0, 2**63 - 1),
)
def test_any_scenario_loads_back(name, ecn, pfc, rate, loss, congestion, seed):
    original = scenario(
        name=name,
        topology=SingleSwitch(hosts=4, link=Link(rate=rate, loss=loss)),
        switch=Switch(ecn=ecn, pfc=pfc),
        transport=Transport(congestion=congestion),
        run=Run(seed=seed),
    )
    assert load_scenario(dump_scenario(original)) == original


TEXT = dump_scenario(scenario())


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("switch.ecn.kmin=200KB", lambda s: s.switch.ecn.kmin == 200_000),
        ("switch.ecn = false", lambda s: s.switch.ecn is None),
        ("traffic[0].size=4MB", lambda s: s.traffic[0].size == 4_000_000),
        ("traffic.0.size=4MB", lambda s: s.traffic[0].size == 4_000_000),
        ("run.seed=7", lambda s: s.run.seed == 7),
        ('name="quoted"', lambda s: s.name == "quoted"),
        ("name=bare words", lambda s: s.name == "bare words"),
        ("name=a=b", lambda s: s.name == "a=b"),
        ("topology.link.loss=1e-3", lambda s: s.topology.link.loss == 1e-3),
        ("transport.congestion.g=0.25", lambda s: s.transport.congestion == Dcqcn(g=0.25)),
        ("transport.congestion.kind=none", lambda s: s.transport.congestion == NoCongestionControl()),
        ("switch.classes[1].priority=3", lambda s: [c.priority for c in s.switch.classes] == [0, 3]),
        ("switch.classes[0].pfc=false", lambda s: s.switch.classes[0].pfc is False),
        ("record.queues.interval=1us", lambda s: s.record.queues == QueueRecord(interval="1us")),
        ('traffic[0].receivers=["host1"]', lambda s: s.traffic[0].receivers == ("host1",)),
        ("traffic[0].transport.payload=1024", lambda s: s.traffic[0].transport == Transport(payload=1024)),
    ],
)
def test_overrides(override, value):
    assert value(load_scenario(TEXT, overrides=[override]))


def test_overrides_apply_in_order_and_leave_the_document_alone():
    document = {"run": {"seed": 1}, "traffic": [{"size": "1MB"}]}
    changed = apply_overrides(document, ["run.seed=2", "run.seed=3", "traffic[0].size=9"])
    assert changed == {"run": {"seed": 3}, "traffic": [{"size": 9}]}
    assert document == {"run": {"seed": 1}, "traffic": [{"size": "1MB"}]}


def test_overrides_may_mend_a_file():
    broken = TEXT.replace('size = "1MB"', 'size = "1Mb"')
    with pytest.raises(SpecError):
        load_scenario(broken)
    assert load_scenario(broken, overrides=["traffic[0].size=1MB"]) == load_scenario(TEXT)


def test_files_are_found_beside_the_scenario(tmp_path, monkeypatch):
    folder = tmp_path / "scenarios"
    folder.mkdir()
    (folder / "net.json").write_text("{}")
    (folder / "flows.csv").write_text("source,destination,size,start\n")
    file = folder / "own.toml"
    file.write_text(
        '[topology]\nkind = "graph"\nfile = "net.json"\n'
        '[[traffic]]\nkind = "flows"\nfile = "flows.csv"\n'
        '[[traffic]]\nkind = "poisson"\nload = 0.5\ndistribution = "websearch"\nflows = 3\n'
    )
    monkeypatch.chdir(tmp_path)
    for name in (file, str(file)):
        loaded = load_scenario(name)
        assert loaded.topology.file == str(folder / "net.json")
        assert loaded.traffic[0].file == str(folder / "flows.csv")
        assert loaded.traffic[1].distribution == "websearch"
    assert load_scenario("scenarios/own.toml").topology.file == "scenarios/net.json"
    assert scenario_errors(file) == []


def test_every_error_of_every_part_is_listed():
    text = """
    [topology]
    kind = "fat_tree"
    k = 3
    [switch]
    buffer = "none"
    [swich]
    [[traffic]]
    kind = "incast"
    senders = 0
    size = "1MB"
    [[traffic]]
    kind = "incats"
    """
    paths = [error.path for error in scenario_errors(text)]
    assert sorted(paths) == ["swich", "switch.buffer", "topology.k", "traffic[0].senders", "traffic[1].kind"]
    assert [error.path for error in scenario_errors("name = 'x'")] == ["topology", "traffic"]
    between = scenario_errors(TEXT, overrides=["traffic[0].senders=9"])
    assert [error.path for error in between] == ["traffic[0].senders"]
    assert [error.path for error in scenario_errors(TEXT, overrides=["nonsense"])] == ["--set"]
    assert scenario_errors(TEXT) == []
