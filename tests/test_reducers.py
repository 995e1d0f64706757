"""Reducers at switches: where they are attached, which a program takes, what a reduction there is worth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fabric
from fabric._core import Engine
from fabric.cli import main
from fabric.errors import SpecError
from fabric.lower import lower
from fabric.reference import Simulator
from fabric.topology import Network, attach_reducers, build_network, reduction_tree
from fabric.workload import FlowTable, Job, ProgramBuilder
from fabric.workload.collectives import build_template, busbw_factor, check_template

LEAF_SPINE = fabric.LeafSpine(leaves=4, spines=2, hosts_per_leaf=4)
SPINES_OF_PODS = [f"spine{n}" for n in (0, 2, 4, 6)]
LINK_BYTES_PER_S = 50e9
"""Of the links of `LEAF_SPINE`."""


def network_with_reducers() -> Network:
    return attach_reducers(build_network(LEAF_SPINE))


def test_what_is_attached() -> None:
    """Hosts, cables and ports of switches keep their numbers; each switch has one port more, its last."""
    before, after = build_network(LEAF_SPINE), network_with_reducers()
    own = [f"{name}.reducer" for name in before.names[16:]]
    assert after.names == (*before.names[:16], *own, *before.names[16:])
    assert (after.n_hosts, after.n_links) == (before.n_hosts + 6, before.n_links + 6)
    for number in range(before.n_links):
        for ends in ("link_a", "link_b"):
            was, now = int(getattr(before, ends)[number]), int(getattr(after, ends)[number])
            assert before.names[was] == after.names[now]
    for name in before.names[16:]:
        node = after.node_numbers[name]
        last = int(after.node_port_base[node + 1]) - 1
        assert after.port_arrow(last) == f"{name}->{name}.reducer"
        link = int(after.port_link[last])
        others = after.port_link[after.node_port_base[node] : last]
        assert after.link_rate_bps[link] == after.link_rate_bps[others].sum()
        assert after.link_delay_ps[link] == after.link_delay_ps[others].min()


def test_some_switches() -> None:
    network = attach_reducers(build_network(LEAF_SPINE), "leaf*")
    assert [name for name in network.names if "reducer" in name] == [f"leaf{n}.reducer" for n in range(4)]
    assert network.find_hosts("*").tolist() == network.find_hosts("host*").tolist() == list(range(16))
    assert network.find_hosts("*.reducer").tolist() == [16, 17, 18, 19]
    with pytest.raises(SpecError, match="a pattern of names such as 'leaf0'"):
        attach_reducers(build_network(LEAF_SPINE), "core*")


def test_a_tree() -> None:
    network = network_with_reducers()
    names = network.names
    for hosts, fan_in, expected in (
        (range(16), (4, 4), ["leaf0", "leaf1", "leaf2", "leaf3", "spine0"]),
        (range(4, 10), (4, 2), ["leaf1", "leaf2", "spine0"]),
        ([13, 12], (2,), ["leaf3"]),
        ([0, 4, 8], (1, 3), ["leaf0", "leaf1", "leaf2", "spine0"]),
    ):
        found, reducers = reduction_tree(network, hosts)
        assert found == fan_in
        assert [names[host] for host in reducers] == [f"{name}.reducer" for name in expected]
        template = build_template("all_reduce", algorithm="in_network", n_ranks=len(hosts), fan_in=fan_in)
        check_template(template)
        assert template.n_reducers == len(reducers)


@pytest.mark.parametrize(
    ("hosts", "switches", "expected"),
    [
        ([0, 4, 1], "*", "ranks of a switch side by side"),
        ([0, 4, 5], "*", "1 at leaf0, 2 at leaf1"),
        (range(8), "leaf*", "switches with reducers above these"),
        (range(4), "spine*", "ranks at leaf0"),
    ],
)
def test_no_tree(hosts: list[int], switches: str, expected: str) -> None:
    with pytest.raises(SpecError) as error:
        reduction_tree(attach_reducers(build_network(LEAF_SPINE), switches), hosts)
    assert expected in str(error.value)


def in_network_job(network: Network, size: int, *, chunks: int) -> Job:
    n_ranks = 16
    fan_in, reducers = reduction_tree(network, range(n_ranks))
    template = build_template(
        "all_reduce", algorithm="in_network", n_ranks=n_ranks, fan_in=fan_in, chunks=chunks
    )
    work = ProgramBuilder(n_ranks)
    work.operation(template, size, ranks=range(n_ranks + len(reducers)), eager=True)
    return Job(program=work.build(), hosts=[*range(n_ranks), *reducers])


def test_a_reduction_on_a_fabric() -> None:
    """With headers, queues and ACKs: a rank sends and gets the vector once, and busbw exceeds the link."""
    network, size = network_with_reducers(), 4_000_000
    scenario = fabric.Scenario(topology=LEAF_SPINE, traffic=[fabric.Permutation(size=1)])
    job = in_network_job(network, size, chunks=64)
    lowered = lower(scenario, network=network, flows=FlowTable.concatenate([]), jobs=[job])
    engine = Engine(lowered)
    assert engine.run() == "FINISHED"
    columns = engine.columns()
    seconds = columns["task_left_ps"][:16].max() * 1e-12
    busbw = size / seconds * busbw_factor("all_reduce", n_ranks=16)
    assert LINK_BYTES_PER_S < busbw < 2 * 15 / 16 * LINK_BYTES_PER_S
    assert columns["operation_sent_bytes"].tolist() == [2 * (16 + 4) * size]
    assert columns["drops_by_reason"].sum() == 0


def test_both_engines_reduce_alike() -> None:
    network = network_with_reducers()
    scenario = fabric.Scenario(topology=LEAF_SPINE, traffic=[fabric.Permutation(size=1)])
    jobs = [in_network_job(network, 100_000, chunks=3)]
    lowered = lower(scenario, network=network, flows=FlowTable.concatenate([]), jobs=jobs)
    engine, simulator = Engine(lowered), Simulator(lowered)
    assert (engine.run(), simulator.run()) == ("FINISHED", "FINISHED")
    native, columns = engine.columns(), simulator.columns()
    assert native["counters"] == columns["counters"]
    np.testing.assert_array_equal(native["task_left_ps"], columns["task_left_ps"])


@pytest.mark.parametrize(
    ("topology", "fan_in", "expected"),
    [
        (fabric.FatTree(k=4), (2, 2, 4), [*(f"leaf{n}" for n in range(8)), *SPINES_OF_PODS, "core0"]),
        (fabric.SingleSwitch(hosts=5), (5,), ["switch0"]),
        (
            fabric.Clos3(pods=3, leaves_per_pod=2, spines_per_pod=1, cores=2, hosts_per_leaf=3),
            (3, 2, 3),
            [*(f"leaf{n}" for n in range(6)), "spine0", "spine1", "spine2", "core0"],
        ),
    ],
)
def test_levels(topology: fabric.Topology, fan_in: tuple[int, ...], expected: list[str]) -> None:
    """One reducer at each switch on the way up, and pods whose spines share a core."""
    network = build_network(topology.replace(reducers=("*",)))
    ranks = network.n_end_hosts
    found, reducers = reduction_tree(network, range(ranks))
    assert found == fan_in
    assert [network.names[host] for host in reducers] == [f"{name}.reducer" for name in expected]
    check_template(build_template("all_reduce", algorithm="in_network", n_ranks=ranks, fan_in=found))


def test_three_levels_take_another_spine_where_the_first_has_no_core_with_a_reducer() -> None:
    """Cores 2 and 3 join the second spines of the pods."""
    network = build_network(fabric.FatTree(k=4))
    network = attach_reducers(network, "[ls][ep]*")  # leaves and spines
    with pytest.raises(SpecError, match="switches with reducers above these"):
        reduction_tree(network, range(16))
    fan_in, reducers = reduction_tree(attach_reducers(network, "core3"), range(16))
    names = [attach_reducers(network, "core3").names[host] for host in reducers[8:]]
    assert fan_in == (2, 2, 4)
    assert names == [*(f"spine{n}.reducer" for n in (1, 3, 5, 7)), "core3.reducer"]


FILE = """
topology = { kind = "fat_tree", k = 4, reducers = ["*"] }
traffic = [{ kind = "collective", algorithm = "in_network", size = "4MB", chunk = "64KB" }]
"""


def test_from_a_file_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`fabric run`, both engines, and `fabric bench`: reducers count as no ranks, busbw exceeds the link."""
    path = tmp_path / "tree.toml"
    path.write_text(FILE)
    result, readable = (fabric.run(path, engine=engine) for engine in ("native", "reference"))
    assert result.status == "FINISHED"
    assert result.fingerprint == readable.fingerprint
    [row] = result.operations
    assert row["ranks"] == 16
    own = result.ranks[result.ranks["rank"] < 16]
    assert row["duration_ps"] == own["left_ps"].max()
    assert row["skew_ps"] == own["left_ps"].max() - own["left_ps"].min()
    assert LINK_BYTES_PER_S < row["busbw_bps"] / 8 < 2 * 15 / 16 * LINK_BYTES_PER_S
    assert "16 hosts, 20 reducers" in str(result.summary)
    code = main(["bench", str(path), "-b", "4MB", "-e", "4MB", "--compare", "in_network,ring", "--no-plot"])
    assert code == 0
    assert "# all_reduce, in_network: 16 ranks at 400Gbps" in capsys.readouterr().out


@pytest.mark.parametrize(
    "traffic",
    [
        fabric.Permutation(size="10KB"),
        fabric.Incast(senders=15, size="10KB"),
        fabric.AllToAll(size="1KB"),
        fabric.Poisson(load=0.3, distribution="websearch", flows=30),
    ],
)
def test_other_traffic_leaves_reducers_out(traffic: fabric.Traffic) -> None:
    """It is the same with and without them."""
    plain = fabric.run(fabric.Scenario(topology=LEAF_SPINE, traffic=[traffic])).flows
    beside = fabric.run(
        fabric.Scenario(topology=LEAF_SPINE.replace(reducers=("*",)), traffic=[traffic])
    ).flows
    for column in ("source", "destination", "size_bytes", "start_ps"):
        assert plain[column].tolist() == beside[column].tolist()


def test_no_switch_of_that_name() -> None:
    scenario = fabric.Scenario(
        topology=LEAF_SPINE.replace(reducers=("core*",)), traffic=[fabric.AllToAll(size=1)]
    )
    with pytest.raises(
        SpecError, match=r"topology.reducers\[0\]: 'core\*' is not allowed; expected a pattern"
    ):
        fabric.run(scenario)


def test_as_traffic_of_a_scenario() -> None:
    """The network has reducers, the entry names the algorithm; ranks are on all other hosts."""
    entry = fabric.Collective(algorithm="in_network", size="4MB", chunk="64KB", repeat=2)
    scenario = fabric.Scenario(topology=LEAF_SPINE, traffic=[entry])
    result = fabric.run(scenario, network=network_with_reducers())
    assert result.status == "FINISHED"
    busbw_bps = result.operations["busbw_bps"]
    assert len(busbw_bps) == 2
    assert (busbw_bps > 8 * LINK_BYTES_PER_S).all()
    with pytest.raises(SpecError, match=r"traffic\[0\].hosts.*topology.reducers"):
        fabric.run(scenario, network=attach_reducers(build_network(LEAF_SPINE), "spine*"))
