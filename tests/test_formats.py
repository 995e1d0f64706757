"""Files of other simulators: what their parsers find, and what they refuse."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from fabric.convert import export_flows, export_topology, import_files
from fabric.errors import SpecError
from fabric.formats import recognise
from fabric.formats.hpcc_config import parse_config
from fabric.formats.hpcc_flows import flows_text, parse_flows
from fabric.formats.hpcc_topology import node_ids, parse_topology, topology_text
from fabric.formats.htsim_matrix import parse_matrix
from fabric.formats.htsim_text import matrix_text
from fabric.formats.htsim_topology import parse_fat_tree
from fabric.spec import Flow, Flows, GraphFile, LeafSpine, Scenario
from fabric.topology import build_network, describe
from fabric.workload import build_flows

SAMPLES = Path(__file__).parent / "formats"
GBPS = 10**9
US = 10**6


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("topology.txt", "hpcc_topology"),
        ("simai_topology.txt", "hpcc_topology"),
        ("flow.txt", "hpcc_flows"),
        ("config.txt", "hpcc_config"),
        ("leaf_spine.topo", "htsim_topology"),
        ("chain.cm", "htsim_matrix"),
    ],
)
def test_formats_are_recognised_by_name_or_content(tmp_path: Path, name: str, kind: str) -> None:
    assert recognise(SAMPLES / name) == kind
    renamed = tmp_path / "renamed"
    renamed.write_text((SAMPLES / name).read_text())
    assert recognise(renamed) == kind


def test_what_is_no_format_of_others_is_not_recognised(tmp_path: Path) -> None:
    prose = tmp_path / "prose.txt"
    prose.write_text("Once upon a time\n")
    assert recognise(prose) is None
    assert recognise(tmp_path / "absent.toml") is None


def test_topology_in_every_dialect_of_rates_and_delays() -> None:
    data, remarks = parse_topology(SAMPLES / "topology.txt")
    assert data.names == ("host0", "host1", "host2", "host3", "switch4", "switch5", "switch6")
    assert data.n_hosts == 4
    assert data.link_rate_bps.tolist() == [100 * GBPS, 25 * GBPS, 100 * GBPS, 25 * GBPS, *[400 * GBPS] * 3]
    assert data.link_delay_ps.tolist() == [US] * 7
    assert data.link_loss.tolist() == [0, 0, 0.001, 0, 0, 0, 0]
    assert [(remark.line, remark.what.split()[0]) for remark in remarks] == [(8, "2"), (12, "text")]


def test_hosts_may_have_any_numbers(tmp_path: Path) -> None:
    file = tmp_path / "topology.txt"
    file.write_text(
        "5 2 5\n3\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n4 3 1Gbps 1us 0\n3 2 1Gbps 1us 0\n0 3 1Gbps 1us 0"
    )
    data, _ = parse_topology(file)
    assert data.names == ("host0", "host1", "host4", "switch2", "switch3")
    assert data.link_a.tolist() == [0, 1, 2, 4, 0]
    assert data.link_b.tolist() == [3, 3, 4, 3, 4]
    network = build_network(GraphFile(file=str(file)))
    assert network.node_numbers["host4"] == 2
    flows = tmp_path / "flow.txt"
    flows.write_text("1\n4 0 3 100 1000 0\n")
    scenario = Scenario(topology=GraphFile(file=str(file)), traffic=[Flows(file=str(flows))])
    table = build_flows(scenario, network)
    assert (table.source.tolist(), table.destination.tolist()) == ([2], [0])


def test_ports_are_numbered_in_the_order_of_lines() -> None:
    network = build_network(GraphFile(file=str(SAMPLES / "topology.txt")))
    base = network.node_port_base[network.node_numbers["switch4"]]
    assert [network.port_arrow(int(base) + port) for port in range(4)] == [
        "switch4->host0",
        "switch4->host1",
        "switch4->switch6#0",
        "switch4->switch6#1",
    ]


def test_simai_header_with_scale_up_switches() -> None:
    network = build_network(GraphFile(file=str(SAMPLES / "simai_topology.txt")))
    assert network.names[4:] == ("nvswitch4", "nvswitch5", "switch6")
    assert network.tier.tolist() == [0, 0, 0, 0, 9, 9, 1]
    assert network.link_rate_bps.max() == 2880 * GBPS
    assert network.link_delay_ps.tolist() == [25_000] * 4 + [500_000] * 4


def test_flows_have_exact_starts_and_any_size() -> None:
    data, remarks = parse_flows(SAMPLES / "flow.txt")
    assert data.start_ps.tolist() == [2 * 10**12, 2_000_020_000_000, 2_500_000_000_000, 2 * 10**12]
    assert data.size_bytes.tolist() == [1_000_000, 5_000_000_000, 1, 64_000]
    assert data.group.tolist() == [3] * 4
    assert data.line.tolist() == [2, 3, 4, 5]
    assert [remark.line for remark in remarks] == [6]
    assert data.udp_port == 100


def test_two_tiers_with_latencies_of_switches_on_their_cables() -> None:
    data, remarks = parse_fat_tree(SAMPLES / "leaf_spine.topo")
    network = build_network(GraphFile(file=str(SAMPLES / "leaf_spine.topo")))
    facts = describe(network)
    assert facts.nodes_per_tier == {"host": 16, "leaf": 4, "spine": 2}
    assert set(facts.oversubscription.values()) == {2.0}
    assert len(data.link_a) == 16 + 8
    assert not remarks
    to_leaf, to_spine = int(data.link_delay_ps[0]), int(data.link_delay_ps[-1])
    assert 2 * to_leaf == 2 * 500_000 + 300_000
    assert 2 * (to_leaf + to_spine) == 2 * 1_500_000 + 2 * 300_000 + 401_000


def test_three_tiers_with_bundles() -> None:
    data, remarks = parse_fat_tree(SAMPLES / "three_tiers.topo")
    network = build_network(GraphFile(file=str(SAMPLES / "three_tiers.topo")))
    facts = describe(network)
    assert facts.nodes_per_tier == {"host": 16, "leaf": 4, "spine": 4, "core": 4}
    assert facts.links_per_tier == {"host-leaf": 16, "leaf-spine": 16, "spine-core": 16}
    assert network.link_parallel_count[16:].tolist() == [2] * 32
    assert data.link_delay_ps[[0, 16, 32]].tolist() == [500_000, 600_000, 700_000]
    assert [remark.what for remark in remarks] == ["Queue_Up"]
    cores = {(int(a), int(b)) for a, b in zip(data.link_a[32:], data.link_b[32:], strict=True)}
    per_core = {core: {spine // 2 for spine, other in cores if other == core} for _, core in cores}
    assert all(len(pods) == 2 for pods in per_core.values())


def test_triggers_become_dependencies() -> None:
    data, remarks = parse_matrix(SAMPLES / "chain.cm")
    assert data.names == ("flow1", "flow2", "flow3", "", "flow4")
    assert dict(data.waits) == {1: ("flow1",), 2: ("flow2",), 4: ("flow1",)}
    assert data.start_ps.tolist() == [1_500_000, 0, 0, 0, 0]
    assert data.size_bytes[3] == 3_000_000_000
    assert [remark.what for remark in remarks] == ["prio"]


def test_barriers_wait_for_all() -> None:
    data, remarks = parse_matrix(SAMPLES / "barrier.cm")
    assert data.waits == ((2, ("flow1", "flow2")),)
    assert [remark.what for remark in remarks] == ["trigger"]
    assert [(one.tier, one.switch, one.link) for one in data.failures] == [(1, 0, 1)]


def test_the_unit_of_starts_is_an_option(tmp_path: Path) -> None:
    data, _ = parse_matrix(SAMPLES / "barrier.cm", start_unit="us")
    assert data.start_ps.tolist() == [0, 5 * US, 0]
    file = tmp_path / "late.cm"
    file.write_text("Nodes 2\nConnections 1\n0->1 start 50000000000001 size 1\n")
    assert parse_matrix(file)[0].start_ps.tolist() == [50_000_000_000_001]
    file.write_text("Nodes 2\nConnections 1\n0->1 start 1.5 size 1\n")
    assert parse_matrix(file, start_unit="us")[0].start_ps.tolist() == [1_500_000]


def test_messages_of_one_flow_are_flows(tmp_path: Path) -> None:
    file = tmp_path / "messages.cm"
    file.write_text(
        "Nodes 2\nConnections 2\n0->1 id 1 msg start 0 size 10\n0->1 id 1 msg 2 start 0 size 20\n"
    )
    data, remarks = parse_matrix(file)
    assert data.size_bytes.tolist() == [10, 20]
    assert remarks[0].what == "msg (2 lines)"


def test_a_chain_runs_one_after_the_other() -> None:
    import fabric

    topology, matrix = str(SAMPLES / "three_tiers.topo"), str(SAMPLES / "barrier.cm")
    flows = fabric.run(import_files(topology, matrix).scenario).flows
    assert flows["start_ps"][2] > max(flows["delivered_ps"][:2])


def test_configuration_is_a_table_of_words() -> None:
    settings = parse_config(SAMPLES / "config.txt")
    assert settings.words["KMIN_MAP"] == ("25000000000", "100", "100000000000", "400", "400000000000", "1600")
    assert settings.lines["CC_MODE"] == 9
    assert settings.unknown == ("NIC_TOTAL_PAUSE_TIME",)


def test_topology_round_trip(tmp_path: Path) -> None:
    for name in ("topology.txt", "simai_topology.txt", "three_tiers.topo"):
        network = build_network(GraphFile(file=str(SAMPLES / name)))
        again = tmp_path / "again_topology.txt"
        again.write_text(export_topology(network))
        read, _ = parse_topology(again)
        for column in ("link_a", "link_b", "link_rate_bps", "link_delay_ps", "link_loss"):
            assert np.array_equal(getattr(read, column), getattr(network, column)), (name, column)
        assert read.n_hosts == network.n_hosts
        assert topology_text(read) == again.read_text()


def test_flow_round_trip(tmp_path: Path) -> None:
    data, _ = parse_flows(SAMPLES / "flow.txt")
    again = tmp_path / "flow.txt"
    again.write_text(flows_text(data))
    read, _ = parse_flows(again)
    order = np.argsort(data.start_ps, kind="stable")
    for column in ("source", "destination", "size_bytes", "start_ps", "group"):
        assert np.array_equal(getattr(read, column), getattr(data, column)[order]), column


@pytest.mark.parametrize("name", ["chain.cm", "barrier.cm"])
def test_matrix_round_trip(tmp_path: Path, name: str) -> None:
    data, _ = parse_matrix(SAMPLES / name)
    named = build_flows(
        import_files(SAMPLES / "three_tiers.topo", SAMPLES / name).scenario,
        build_network(GraphFile(file=str(SAMPLES / "three_tiers.topo"))),
    )
    again = tmp_path / "again.cm"
    network = build_network(GraphFile(file=str(SAMPLES / "three_tiers.topo")))
    again.write_text(export_flows(named, network=network, form="htsim"))
    read, _ = parse_matrix(again)
    assert [(flow, len(before)) for flow, before in read.waits] == [
        (flow, len(before)) for flow, before in data.waits
    ]
    for column in ("source", "destination", "size_bytes", "start_ps"):
        assert np.array_equal(getattr(read, column), getattr(data, column)), column


def test_flows_that_wait_have_no_flow_txt() -> None:
    data, _ = parse_matrix(SAMPLES / "chain.cm")
    with pytest.raises(SpecError, match="flows with a start alone"):
        flows_text(data)
    assert "trigger id 1 oneshot" in matrix_text(data, n_hosts=8)


def test_names_that_do_not_number_all_nodes_give_way_to_positions() -> None:
    network = build_network(LeafSpine(leaves=2, spines=1, hosts_per_leaf=1))
    assert node_ids(network.names) == [0, 1, 2, 3, 4]
    assert export_topology(network).splitlines()[:2] == ["5 3 4", "2 3 4"]


def test_explicit_flows_and_a_file_join(tmp_path: Path) -> None:
    entry = Flows(flows=[Flow(source=0, destination=1, size="1KB")], file=str(SAMPLES / "flow_groups.txt"))
    topology = GraphFile(file=str(SAMPLES / "topology.txt"))
    scenario = Scenario(topology=topology, traffic=[entry])
    table = build_flows(scenario, build_network(topology))
    assert table.patterns == ("flows", "flows-1", "flows-3")
    assert table.traffic_class == (None, "group1", "group3")
    assert table.size_bytes.tolist() == [1000, 50_000, 100_000, 1000]


T = "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n"
F = "1\n0 1 3 100 1000 2.0\n"
C = "Nodes 4\nConnections 1\n0->1 id 1 start 0 size 10\n"
P = (SAMPLES / "leaf_spine.topo").read_text()


def trigger(lines: str, *, flows: int = 2, triggers: int = 1) -> str:
    return f"Nodes 4\nConnections {flows}\nTriggers {triggers}\n{lines}"


MALFORMED = {
    "an empty topology": ("topology.txt", "", 1, "nodes switches links"),
    "a header of four numbers": ("topology.txt", T.replace("3 1 2", "3 1 2 4"), 1, "nodes switches links"),
    "more switches than nodes": ("topology.txt", T.replace("3 1 2", "3 3 2"), 1, "more nodes than switches"),
    "more hosts than ends of links": (
        "topology.txt",
        T.replace("3 1 2", "2000000000 1 2"),
        1,
        "at most 4 hosts",
    ),
    "no links": ("topology.txt", "3 1 0\n2\n", 1, "at least one link"),
    "a switch beyond the nodes": ("topology.txt", T.replace("\n2\n", "\n3\n"), 2, "0 to 2"),
    "a switch twice": ("topology.txt", "4 2 1\n2 2\n0 2 1Gbps 1us 0\n", 2, "every switch once"),
    "a node beyond the nodes": ("topology.txt", T.replace("1 2 100", "7 2 100"), 4, "0 to 2"),
    "a link to itself": ("topology.txt", T.replace("1 2 100", "2 2 100"), 4, "another node"),
    "a rate without a unit of rates": ("topology.txt", T.replace("100Gbps", "100GB", 1), 3, "a rate such as"),
    "a rate of nothing": ("topology.txt", T.replace("100Gbps", "0Gbps", 1), 3, "at least 1Kbps"),
    "a delay in no unit": ("topology.txt", T.replace("1us", "1parsec", 1), 3, "a duration such as"),
    "a delay below the clock": ("topology.txt", T.replace("1us", "0.0000001ns", 1), 3, "whole number"),
    "certain loss": ("topology.txt", T.replace("1us 0", "1us 1", 1), 3, "below 1"),
    "fewer links than declared": ("topology.txt", T.replace("3 1 2", "3 1 3"), 4, "3 links"),
    "fewer words than a link": ("topology.txt", T.removesuffix(" 0\n"), 4, "2 links"),
    "an empty list of flows": ("flow.txt", "", 1, "the number of flows"),
    "a count that is no number": ("flow.txt", "one\n", 1, "whole number"),
    "fewer flows than declared": ("flow.txt", "2\n0 1 3 100 1000 2.0\n", 2, "2 flows"),
    "a size of nothing": ("flow.txt", F.replace("1000", "0"), 2, "from 1"),
    "a fractional size": ("flow.txt", F.replace("1000", "1e6"), 2, "whole number"),
    "a group beyond 7": ("flow.txt", F.replace(" 3 ", " 8 "), 2, "0 to 7"),
    "a start before time": ("flow.txt", F.replace("2.0", "-1"), 2, "seconds"),
    "a start that is no number": ("flow.txt", F.replace("2.0", "nan"), 2, "seconds"),
    "a flow to itself": ("flow.txt", F.replace("0 1", "1 1"), 2, "another host"),
    "no nodes": ("x.cm", "Connections 1\n0->1 start 0 size 10\n", 2, "Nodes n before"),
    "no connections": ("x.cm", "Nodes 4\n", 1, "Connections n"),
    "a wrong count of connections": ("x.cm", C.replace("s 1", "s 2"), 2, "lines (1)"),
    "a wrong count of triggers": ("x.cm", C + "trigger id 1 oneshot\n", 4, "lines (1)"),
    "a host beyond the nodes": ("x.cm", C.replace("0->1", "0->4"), 3, "0 to 3"),
    "one flow to itself": ("x.cm", C.replace("0->1", "1->1"), 3, "another host"),
    "an id of 0": ("x.cm", C.replace("id 1", "id 0"), 3, "from 1"),
    "an id twice": ("x.cm", (C + "0->2 id 1 start 0 size 1\n").replace("s 1", "s 2"), 4, "on line 3"),
    "no size": ("x.cm", C.replace(" size 10", ""), 3, "size"),
    "a size of 0": ("x.cm", C.replace("size 10", "size 0"), 3, "from 1"),
    "neither start nor trigger": ("x.cm", C.replace("start 0 ", ""), 3, "either start or trigger"),
    "an option that is none": ("x.cm", C.replace("id 1", "idd 1"), 3, "one of id"),
    "an option without its number": ("x.cm", C.replace("size 10", "size"), 3, "a number after it"),
    "a start with a unit": ("x.cm", C.replace("start 0", "start 5us"), 3, "without a unit"),
    "a line of another kind": ("x.cm", C + "hello 1\n", 4, "Connections"),
    "a trigger that is not declared": ("x.cm", C.replace("start 0", "trigger 9"), 3, "the id of a trigger"),
    "start and trigger": ("x.cm", C.replace("start 0", "start 0 trigger 1"), 3, "either start or trigger"),
    "a trigger that nothing activates": (
        "x.cm",
        trigger("0->1 id 1 start 0 size 1\n0->1 id 2 trigger 1 size 1\ntrigger id 1 oneshot\n"),
        6,
        "never start",
    ),
    "a trigger that waits for the first of two": (
        "x.cm",
        trigger(
            "0->1 id 1 start 0 size 1 send_done_trigger 1\n0->2 id 2 start 0 size 1 send_done_trigger 1\n"
            "0->1 id 3 trigger 1 size 1\ntrigger id 1 oneshot\n",
            flows=3,
        ),
        7,
        "the first of several",
    ),
    "a barrier without a count": (
        "x.cm",
        trigger(C.split("\n")[2] + "\ntrigger id 1 barrier\n", flows=1),
        5,
        "count",
    ),
    "a trigger of two kinds": (
        "x.cm",
        trigger(C.split("\n")[2] + "\ntrigger id 1 oneshot barrier\n", flows=1),
        5,
        "one of oneshot",
    ),
    "a failure of no switch": (
        "x.cm",
        "Nodes 4\nFailures 1\nfailure switch_type LEAF switch_id 0 link_id 0\n",
        3,
        "TOR",
    ),
    "no pod size": ("x.topo", P.replace("Podsize 16\n", ""), 17, "Podsize"),
    "four tiers": ("x.topo", P.replace("Tiers 2", "Tiers 4"), 3, "2 or 3"),
    "a tier missing": ("x.topo", P.replace("Tiers 2", "Tiers 3"), 18, "Tier 2"),
    "a radix missing": ("x.topo", P.replace("Radix_Up 2\n", ""), 6, "radix_up"),
    "a key of no format": ("x.topo", P.replace("Radix_Up", "Radix_Upp"), 9, "one of nodes"),
    "a key twice": ("x.topo", P.replace("Radix_Up 2\n", "Radix_Up 2\nradix_up 2\n"), 10, "on line 9"),
    "a fractional speed": ("x.topo", P.replace("Gbps 100", "Gbps 12.5", 1), 7, "whole number"),
    "a key before its tier": ("x.topo", "Radix_Up 3\n" + P, 1, "Tier 0"),
    "a pod that leaves hosts over": (
        "x.topo",
        P.replace("Podsize 16", "Podsize 12"),
        4,
        "two tiers have one pod",
    ),
    "an oversubscription that is not so": (
        "x.topo",
        P.replace("scribed 2", "scribed 3"),
        10,
        "by radices and speeds",
    ),
    "a radix that does not divide": ("x.topo", P.replace("radix_down 4", "radix_down 3"), 16, "a divisor"),
    "uplinks of the top tier": ("x.topo", P + "Radix_Up 2\n", 19, "top tier"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_file_is_one_error_with_file_line_and_cause(tmp_path: Path, case: str) -> None:
    name, text, line, cause = MALFORMED[case]
    file = tmp_path / name
    file.write_text(text)
    parsers = {
        "topology.txt": parse_topology,
        "flow.txt": parse_flows,
        "x.cm": parse_matrix,
        "x.topo": parse_fat_tree,
    }
    with pytest.raises(SpecError) as caught:
        parsers[name](file)
    message = str(caught.value)
    place, _, rest = message.partition(": ")
    assert place.split(" ")[0] == f"{file}:{line}", message
    assert cause in rest, message


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "topology.txt"
    file.write_bytes(b"3 1 2\n\xff\xfe\n")
    with pytest.raises(SpecError, match="UTF-8"):
        parse_topology(file)
    with pytest.raises(SpecError, match="an existing file"):
        parse_topology(tmp_path / "absent.txt")


def test_hosts_that_the_network_lacks_are_named_with_their_line(tmp_path: Path) -> None:
    file = tmp_path / "flow.txt"
    file.write_text("2\n0 1 3 100 10 0\n\n0 2000000000 3 100 10 0\n")
    topology = GraphFile(file=str(SAMPLES / "topology.txt"))
    scenario = Scenario(topology=topology, traffic=[Flows(file=str(file))])
    with pytest.raises(SpecError) as caught:
        build_flows(scenario, build_network(topology))
    assert str(caught.value).startswith(
        f"{file}:4 destination: 2000000000 is not allowed; expected a host of the network"
    )


def test_hosts_without_a_path_are_named(tmp_path: Path) -> None:
    file = tmp_path / "topology.txt"
    file.write_text("4 2 2\n2 3\n0 2 1Gbps 1us 0\n1 3 1Gbps 1us 0\n")
    with pytest.raises(SpecError, match="host0 and host1"):
        build_network(GraphFile(file=str(file)))


PARSERS = {
    "topology.txt": parse_topology,
    "simai_topology.txt": parse_topology,
    "flow.txt": parse_flows,
    "config.txt": parse_config,
    "leaf_spine.topo": parse_fat_tree,
    "three_tiers.topo": parse_fat_tree,
    "chain.cm": parse_matrix,
    "barrier.cm": parse_matrix,
}
ODD_WORDS = (
    "",
    "-1",
    "0",
    "1e9",
    "nan",
    "9" * 30,
    "#",
    "->",
    "0->1",
    "start",
    "Tier",
    "KMIN_MAP",
    "1us",
    "\u0663",
    "\x00",
)


@pytest.mark.parametrize("name", PARSERS)
def test_a_damaged_file_is_read_or_refused_but_nothing_else(tmp_path: Path, name: str) -> None:
    chance = random.Random(name)
    text = (SAMPLES / name).read_text()
    refused: list[str] = []
    for _ in range(80):
        separator = chance.choice((" ", "\n"))
        words = text.split(separator)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(words))
            words[at : at + chance.randint(0, 2)] = [chance.choice((*ODD_WORDS, chance.choice(words)))]
        file = tmp_path / name
        file.write_text(separator.join(words))
        try:
            PARSERS[name](file)
        except SpecError as error:
            refused.append(str(error))
    assert len(refused) > 10
    assert all(message.startswith(f"{file}:") for message in refused)
