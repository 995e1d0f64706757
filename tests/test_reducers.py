"""Reducers at switches: where they are attached, which a program takes, what a reduction there is worth."""

from __future__ import annotations

import numpy as np
import pytest

import fabric
from fabric._core import Engine
from fabric.errors import SpecError
from fabric.lower import lower
from fabric.reference import Simulator
from fabric.topology import Network, attach_reducers, build_network, reduction_tree
from fabric.workload import FlowTable, Job, ProgramBuilder
from fabric.workload.collectives import build_template, busbw_factor, check_template

LEAF_SPINE = fabric.LeafSpine(leaves=4, spines=2, hosts_per_leaf=4)
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
        (range(8), "leaf*", "a switch with a reducer that is next to all of these"),
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


def test_as_traffic_of_a_scenario() -> None:
    """The network has reducers, the entry names the algorithm; ranks are on all other hosts."""
    entry = fabric.Collective(algorithm="in_network", size="4MB", chunk="64KB", repeat=2)
    scenario = fabric.Scenario(topology=LEAF_SPINE, traffic=[entry])
    result = fabric.run(scenario, network=network_with_reducers())
    assert result.status == "FINISHED"
    busbw_bps = result.operations["busbw_bps"]
    assert len(busbw_bps) == 2
    assert (busbw_bps > 8 * LINK_BYTES_PER_S).all()
    with pytest.raises(SpecError, match=r"traffic\[0\].hosts.*attach_reducers"):
        fabric.run(scenario, network=attach_reducers(build_network(LEAF_SPINE), "spine*"))
