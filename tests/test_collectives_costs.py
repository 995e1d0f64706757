"""What collectives cost before anything runs: closed forms, oracles, NCCL's trees and tuning model.

Closed forms after Thakur, Rabenseifner and Gropp (doi 10.1177/1094342005051521); numbers were computed from
them apart from this code. Trees and tuning: NCCL 5067397c, `src/graph/trees.cc` and `tuning.cc`.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from support_templates import ALGORITHMS, options_for

from fabric.errors import SpecError
from fabric.workload.collectives import (
    Collective,
    Links,
    NcclMachine,
    build_template,
    busbw_factor,
    check_template,
    choose,
    explain,
    nccl_parts,
)
from fabric.workload.collectives.double_binary_tree import tree_parents
from fabric.workload.collectives.tuning import PROTOCOLS, algorithm_bandwidth, latency_us

KIB, MIB, GIB = 2**10, 2**20, 2**30
ALPHA_S, BYTES_PER_S = 5e-6, 50e9
LINKS = Links(alpha="5us", rate="400Gbps")
BOTH_WAYS = Links(alpha="5us", rate="400Gbps", ports=2)


def told(
    collective: str, algorithm: str, n_ranks: int, size: int, *, links: Links = LINKS, **options: object
):
    template = build_template(collective, algorithm=algorithm, n_ranks=n_ranks, **options)
    return explain(template, size, links=links)


def form(steps: float, share: float, size: int) -> float:
    """steps * alpha + share * S/B."""
    return steps * ALPHA_S + share * size / BYTES_PER_S


@pytest.mark.parametrize("n_ranks", [2, 4, 8, 16, 64, 128])
def test_closed_forms(n_ranks: int) -> None:
    size = n_ranks * 8 * KIB * 3
    lg, share = math.log2(n_ranks), (n_ranks - 1) / n_ranks
    expected = {
        ("all_reduce", "ring"): form(2 * (n_ranks - 1), 2 * share, size),
        ("reduce_scatter", "ring"): form(n_ranks - 1, share, size),
        ("all_gather", "ring"): form(n_ranks - 1, share, size),
        ("all_reduce", "recursive_doubling"): form(lg, lg, size),
        ("all_reduce", "halving_doubling"): form(2 * lg, 2 * share, size),
        ("all_gather", "recursive_doubling"): form(lg, share, size),
        ("reduce_scatter", "recursive_halving"): form(lg, share, size),
        ("all_gather", "bruck"): form(lg, share, size),
        ("all_reduce", "direct"): form(2, 2 * share, size),
        ("all_to_all", "pairwise"): form(n_ranks - 1, share, size),
        ("all_to_all", "direct"): form(1, share, size),
        ("all_to_all", "bruck"): form(lg, lg / 2, size),
        ("broadcast", "binomial"): form(lg, lg, size),
        ("reduce", "binomial"): form(lg, lg, size),
        ("scatter", "binomial"): form(lg, share, size),
        ("gather", "direct"): form(1, share, size),
        ("send_recv", "shift"): form(1, 1, size),
        ("barrier", "dissemination"): form(lg, 0, 0),
    }
    for (collective, algorithm), seconds in expected.items():
        size_here = 0 if collective == "barrier" else size
        found = told(collective, algorithm, n_ranks, size_here)
        assert found.alpha_beta_s == pytest.approx(seconds, rel=1e-9), (collective, algorithm)
        assert found.lower_bound_s <= found.alpha_beta_s * (1 + 1e-12)
    two_way = told("all_reduce", "bidirectional_ring", n_ranks, size, links=BOTH_WAYS)
    assert two_way.alpha_beta_s == pytest.approx(form(2 * (n_ranks - 1), share, size), rel=1e-9)


@pytest.mark.parametrize(
    ("collective", "algorithm", "n_ranks", "size", "milliseconds"),
    [
        ("all_reduce", "ring", 8, GIB, 37.650964),
        ("all_reduce", "halving_doubling", 8, GIB, 37.610964),
        ("all_reduce", "recursive_doubling", 8, GIB, 64.439509),
        ("all_reduce", "bidirectional_ring", 8, GIB, 18.860482),
        ("all_reduce", "ring", 16, GIB, 40.415318),
        ("all_reduce", "halving_doubling", 16, GIB, 40.305318),
        ("all_reduce", "recursive_doubling", 16, GIB, 85.919346),
        ("all_reduce", "bidirectional_ring", 16, GIB, 20.282659),
        ("all_reduce", "ring", 8, 8 * KIB, 0.0702867),
        ("all_reduce", "halving_doubling", 8, 8 * KIB, 0.0302867),
        ("all_reduce", "recursive_doubling", 8, 8 * KIB, 0.0154915),
        ("all_reduce", "ring", 16, 8 * KIB, 0.1503072),
        ("all_reduce", "halving_doubling", 16, 8 * KIB, 0.0403072),
        ("all_reduce", "recursive_doubling", 16, 8 * KIB, 0.0206554),
        ("reduce_scatter", "ring", 8, GIB, 18.825482),
        ("all_reduce", "direct", 8, 8 * KIB, 0.0102867),
        ("all_to_all", "pairwise", 8, 8 * KIB, 0.0351434),
        ("all_to_all", "bruck", 8, 8 * KIB, 0.0152458),
        ("all_to_all", "pairwise", 16, 8 * KIB, 0.0751536),
        ("all_to_all", "bruck", 16, 8 * KIB, 0.0203277),
        ("all_reduce", "ring", 12, 16 * MIB, 0.7251646),
        ("all_reduce", "bidirectional_ring", 12, 16 * MIB, 0.4175823),
        ("broadcast", "binomial", 8, 64 * MIB, 4.041532),
    ],
)
def test_oracles(collective: str, algorithm: str, n_ranks: int, size: int, milliseconds: float) -> None:
    links = BOTH_WAYS if algorithm == "bidirectional_ring" else LINKS
    found = told(collective, algorithm, n_ranks, size, links=links)
    assert found.alpha_beta_s * 1e3 == pytest.approx(milliseconds, rel=4e-6)


@pytest.mark.parametrize(("chunks", "milliseconds"), [(1, 20.207659), (16, 2.666582), (64, 2.025779)])
def test_a_chain_streams_its_chunks(chunks: int, milliseconds: float) -> None:
    found = told("broadcast", "chain", 16, 64 * MIB, chunks=chunks)
    assert found.lower_bound_s <= found.alpha_beta_s
    assert found.lower_bound_s == pytest.approx(
        max(15 * (ALPHA_S + 64 * MIB / chunks / BYTES_PER_S), ALPHA_S + 64 * MIB / BYTES_PER_S)
    )
    assert found.steps == 14 + chunks
    assert found.alpha_beta_s * 1e3 == pytest.approx(milliseconds, rel=1e-6)


@pytest.mark.parametrize(("inside", "nodes", "milliseconds"), [(4, 2, 8.963849), (8, 2, 6.884017)])
def test_two_levels(inside: int, nodes: int, milliseconds: float) -> None:
    links = Links(
        alpha="5us", rate="400Gbps", ranks_per_node=inside, inside_alpha="1us", inside_rate="3.6Tbps"
    )
    found = told("all_reduce", "hierarchical", inside * nodes, GIB, links=links, shape=(inside, nodes))
    assert found.alpha_beta_s * 1e3 == pytest.approx(milliseconds, rel=1e-6)
    if inside == 8:
        rails = told("all_to_all", "rail_aligned", 16, 256 * MIB, links=links, ranks_per_node=8)
        assert rails.alpha_beta_s * 1e3 == pytest.approx(3.218312, rel=1e-6)


def test_in_network_reduction_exceeds_the_link() -> None:
    found = told("all_reduce", "in_network", 8, GIB, fan_in=(4, 2))
    assert found.streamed_s * 1e3 == pytest.approx(21.494836, rel=1e-6)
    busbw = GIB / found.streamed_s * busbw_factor("all_reduce", n_ranks=8)
    assert busbw / 1e9 == pytest.approx(87.4186, rel=1e-6)
    assert set(found.sent_bytes.tolist()) == {GIB} == set(found.received_bytes.tolist())


@pytest.mark.parametrize(("inside", "nodes"), [(1, 4), (2, 4), (8, 2), (8, 8)])
def test_all_to_all_over_nodes_exceeds_the_nic_by_what_stays_inside(inside: int, nodes: int) -> None:
    n_ranks, size = inside * nodes, 64 * MIB
    links = Links(alpha="0s", rate="400Gbps", ranks_per_node=inside, inside_alpha="0s", inside_rate="100Tbps")
    for algorithm in ("direct", "rail_aligned"):
        options = {"ranks_per_node": inside} if algorithm == "rail_aligned" else {}
        found = told("all_to_all", algorithm, n_ranks, size, links=links, **options)
        busbw = size / found.streamed_s * busbw_factor("all_to_all", n_ranks=n_ranks)
        excess = (n_ranks - 1) / n_ranks * nodes / (nodes - 1)
        assert busbw / BYTES_PER_S == pytest.approx(excess, rel=1e-9)


@pytest.mark.parametrize("n_ranks", [3, 5, 6, 7, 11, 12, 33])
def test_folding_costs_two_steps_of_the_whole_vector(n_ranks: int) -> None:
    power = 2 ** int(math.log2(n_ranks))
    size = 64 * MIB
    for algorithm in ("halving_doubling", "recursive_doubling"):
        on_power = told("all_reduce", algorithm, power, size).alpha_beta_s
        found = told("all_reduce", algorithm, n_ranks, size).alpha_beta_s
        assert found == pytest.approx(on_power + form(2, 2, size), rel=1e-9)


@pytest.mark.parametrize("n_ranks", [2, 3, 5, 7, 12, 16])
def test_bruck_sends_the_blocks_whose_bit_is_set(n_ranks: int) -> None:
    size = n_ranks * 1000
    blocks = sum(bin(distance).count("1") for distance in range(1, n_ranks))
    found = told("all_to_all", "bruck", n_ranks, size)
    assert found.steps == math.ceil(math.log2(n_ranks))
    assert set(found.sent_bytes.tolist()) == {blocks * 1000}


@pytest.mark.parametrize("n_ranks", [1, 2, 3, 7, 8, 16, 24])
def test_bytes_per_rank_are_exact(n_ranks: int) -> None:
    block = 4096 * 3
    size = n_ranks * block
    least = {
        **{("all_reduce", name): 2 * (n_ranks - 1) * block for name in ("ring", "direct")},
        **{("reduce_scatter", name): (n_ranks - 1) * block for name in ("ring", "direct")},
        **{("all_gather", name): (n_ranks - 1) * block for name in ("ring", "direct", "bruck")},
        **{("all_to_all", name): (n_ranks - 1) * block for name in ("pairwise", "direct")},
    }
    if n_ranks in (1, 2, 8, 16):
        least["all_reduce", "halving_doubling"] = 2 * (n_ranks - 1) * block
        least["all_reduce", "recursive_doubling"] = int(math.log2(n_ranks)) * size
    for (collective, algorithm), expected in least.items():
        found = told(collective, algorithm, n_ranks, size)
        assert set(found.sent_bytes.tolist()) == {expected}, (collective, algorithm)
        assert set(found.received_bytes.tolist()) == {expected}


def test_crossovers() -> None:
    def faster(collective: str, one: str, other: str, size: int) -> bool:
        first, second = (told(collective, name, 8, size).alpha_beta_s for name in (one, other))
        return first < second

    assert not faster("all_reduce", "ring", "recursive_doubling", 2_199_000)
    assert faster("all_reduce", "ring", "recursive_doubling", 2_201_000)
    assert not faster("all_to_all", "pairwise", "bruck", 1_599_000)
    assert faster("all_to_all", "pairwise", "bruck", 1_601_000)


@pytest.mark.parametrize("which", ALGORITHMS, ids="{0[0]}-{0[1]}".format)
def test_nobody_beats_the_link(which: tuple[str, str]) -> None:
    """busbw at the lower bound exceeds the rate only where it is meant to."""
    collective, name = which
    for n_ranks in (2, 3, 8, 13):
        for options in options_for(name, n_ranks):
            for size in (1, 1000, MIB + 1, GIB):
                if collective in ("barrier", "all_to_all_v") or size < n_ranks:
                    continue
                found = told(collective, name, n_ranks, size, **options)
                busbw = size / found.lower_bound_s * busbw_factor(collective, n_ranks=n_ranks)
                by_design = name in ("in_network", "double_binary_tree")
                assert busbw <= BYTES_PER_S * (2 if by_design else 1) * (1 + n_ranks / size)


TREES = {
    8: (
        [(-1, [4]), (2, []), (4, [1, 3]), (2, []), (0, [2, 6]), (6, []), (4, [5, 7]), (6, [])],
        [(1, []), (3, [0, 2]), (1, []), (7, [1, 5]), (5, []), (3, [4, 6]), (5, []), (-1, [3])],
    ),
    7: (
        [(-1, [4]), (2, []), (4, [1, 3]), (2, []), (0, [2, 6]), (6, []), (4, [5])],
        [(5, [6]), (-1, [5]), (3, []), (5, [2, 4]), (3, []), (1, [0, 3]), (0, [])],
    ),
    6: (
        [(-1, [4]), (2, []), (4, [1, 3]), (2, []), (0, [2, 5]), (4, [])],
        [(1, []), (5, [0, 3]), (3, []), (1, [2, 4]), (3, []), (-1, [1])],
    ),
}


@pytest.mark.parametrize("nodes", TREES)
def test_trees_are_nccls(nodes: int) -> None:
    for tree, expected in zip(tree_parents(nodes), TREES[nodes], strict=True):
        found = [(int(tree[node]), np.flatnonzero(tree == node).tolist()) for node in range(nodes)]
        assert found == expected


def test_properties_of_the_trees() -> None:
    for nodes in range(1, 400):
        inner = []
        for tree in tree_parents(nodes):
            depth = [0] * nodes
            for node in range(nodes):
                at = node
                while tree[at] >= 0:
                    at, depth[node] = int(tree[at]), depth[node] + 1
            assert max(depth) == math.ceil(math.log2(nodes))
            children = np.bincount(tree[tree >= 0], minlength=nodes)
            assert (children == 0).sum() == max(nodes // 2, 1 if nodes == 1 else 0)
            inner.append(set(np.flatnonzero(children).tolist()))
        both = inner[0] & inner[1]
        assert both == (set() if nodes % 2 == 0 or nodes == 1 else {0})
    roots = [[int(np.flatnonzero(tree < 0)[0]) for tree in tree_parents(nodes)] for nodes in (8, 9)]
    assert roots == [[0, 7], [0, 1]]


def test_no_rank_of_a_double_tree_carries_more_than_two_vectors() -> None:
    for n_ranks in range(2, 40):
        found = told("all_reduce", "double_binary_tree", n_ranks, 2 * MIB, chunks=4)
        most = 2 * 2 * MIB if n_ranks % 2 == 0 else 3 * 2 * MIB
        assert found.sent_bytes.max() <= most
        assert found.received_bytes.max() <= most


@pytest.mark.parametrize(
    ("ranks", "nodes", "ring", "tree"),
    [
        (8, 1, (15.0, 40.6, 56.0), (15.2, 31.5, 64.4)),
        (16, 2, (40.0, 75.2, 131.6), (25.2, 48.5, 92.4)),
    ],
)
def test_nccls_latencies(ranks: int, nodes: int, ring: tuple[float, ...], tree: tuple[float, ...]) -> None:
    machine = NcclMachine(ranks=ranks, nodes=nodes)
    for shape, expected in (("ring", ring), ("tree", tree)):
        found = [latency_us("all_reduce", shape, protocol, machine=machine) for protocol in PROTOCOLS]
        assert found == pytest.approx(expected)


def test_nccls_choices() -> None:
    machine = NcclMachine(ranks=8, nodes=1, generation="hopper", channels=16)
    bandwidths = [
        algorithm_bandwidth("all_reduce", shape, protocol, machine=machine)
        for shape in ("ring", "tree")
        for protocol in PROTOCOLS
    ]
    assert bandwidths == pytest.approx([80.5714, 168.2286, 182.8571, 38.7368, 114.4889, 147.2], rel=2e-6)
    times = {
        64 * KIB: (15.813, 40.990, 56.358, 18.020, 32.454, 65.142),
        MIB: (28.014, 46.833, 61.734, 69.338, 46.765, 78.647),
        16 * MIB: (223.228, 140.329, 147.750, 496.431, 194.322, 227.222),
        GIB: (13341.6, 6423.2, 5928.0, 27734.1, 9410.1, 7358.8),
    }
    chosen = []
    for size, expected in times.items():
        choice = choose("all_reduce", size_bytes=size, machine=machine)
        assert list(choice.times_us.values()) == pytest.approx(expected, rel=5e-5)
        assert choice.time_us == min(choice.times_us.values())
        chosen.append((choice.algorithm, choice.protocol))
    assert chosen == [("ring", "LL"), ("ring", "LL"), ("ring", "LL128"), ("ring", "Simple")]


def test_nccl_takes_the_tree_for_small_data_on_many_nodes() -> None:
    machine = NcclMachine(ranks=512, nodes=64, channels=16)
    names = [choose("all_reduce", size_bytes=size, machine=machine).algorithm for size in (KIB, 16 * GIB)]
    assert names == ["double_binary_tree", "ring"]
    small = Collective(kind="all_reduce", n_ranks=512, size_bytes=KIB, machine=machine)
    assert small.template().name == "double_binary_tree"
    plateau = choose("all_reduce", size_bytes=64 * 16 * 512, machine=machine).times_us["ring", "Simple"]
    below = choose("all_reduce", size_bytes=64 * 16 * 512 - 1, machine=machine).times_us["ring", "Simple"]
    assert plateau / below == pytest.approx(1.4, rel=1e-3)


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"nodes": 3}, "machine.nodes"),
        ({"generation": "kepler"}, "machine.generation"),
        ({"cpu": "arm"}, "machine.cpu"),
        ({"channels": 65}, "machine.channels"),
    ],
)
def test_machines_are_checked(wrong: dict[str, object], path: str) -> None:
    with pytest.raises(SpecError) as error:
        NcclMachine(**{"nodes": 1, "ranks": 8, **wrong})  # type: ignore[arg-type]
    assert error.value.path == path


def test_nccls_chunks() -> None:
    assert nccl_parts("all_reduce", size_bytes=2 * GIB, n_ranks=8, channels=16)["chunks"] == 8
    assert nccl_parts("broadcast", size_bytes=64 * MIB, n_ranks=8) == {
        "channels": 1,
        "chunks": 128,
        "slices": 1,
    }
    parts = nccl_parts("all_gather", size_bytes=100 * MIB, n_ranks=4, channels=2)
    template = build_template("all_gather", algorithm="ring", n_ranks=4, **parts)
    check_template(template)
    assert template.transfer_bytes(100 * MIB).max() <= MIB


def test_it_can_be_explained_to_people() -> None:
    text = str(Collective(kind="all_to_all", n_ranks=4, size_bytes=4000, algorithm="pairwise").explain())
    assert text.splitlines()[:4] == [
        "all_to_all, pairwise: 4 ranks, 4000 B",
        "  steps             3, the longest chain has 3 messages",
        "  messages          12 on 12 connections, 1000 B at most",
        "  sent per rank     3000 to 3000 B",
    ]
