"""Collectives on an ideal fabric: what they take equals the closed forms of alpha and beta.

Closed forms after Thakur, Rabenseifner and Gropp (doi 10.1177/1094342005051521). The numbers were computed
from the forms apart from this code. A rank has alpha of 5 us and 50 GB/s in each direction unless a test
says otherwise (`support_collectives.py`).
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support_collectives import (
    ALPHA_PS,
    RATE_BPS,
    finish,
    job_of,
    on_one_switch,
    run_alone,
    with_two_ports,
)
from support_templates import ALGORITHMS, options_for

from fabric.workload.collectives import Links, build_template, busbw_factor, explain
from fabric.workload.job import Job
from fabric.workload.program import ProgramBuilder

KIB, MIB, GIB = 2**10, 2**20, 2**30
BYTES_PER_S = RATE_BPS / 8
ALPHA_S = ALPHA_PS * 1e-12
US = 10**6
NS = 10**3
LARGE_PAYLOAD = 32 * KIB


def within_one_percent(microseconds: float) -> Any:
    return pytest.approx(microseconds, rel=0.01)


@pytest.mark.parametrize(
    ("collective", "algorithm", "n_ranks", "size", "microseconds"),
    [
        ("all_reduce", "ring", 8, GIB, 37650.964),
        ("all_reduce", "halving_doubling", 8, GIB, 37610.964),
        ("all_reduce", "recursive_doubling", 8, GIB, 64439.509),
        ("all_reduce", "ring", 16, GIB, 40415.318),
        ("all_reduce", "halving_doubling", 16, GIB, 40305.318),
        ("all_reduce", "recursive_doubling", 16, GIB, 85919.346),
        ("all_reduce", "ring", 8, 8 * KIB, 70.2867),
        ("all_reduce", "halving_doubling", 8, 8 * KIB, 30.2867),
        ("all_reduce", "recursive_doubling", 8, 8 * KIB, 15.4915),
        ("all_reduce", "ring", 16, 8 * KIB, 150.3072),
        ("all_reduce", "halving_doubling", 16, 8 * KIB, 40.3072),
        ("all_reduce", "recursive_doubling", 16, 8 * KIB, 20.6554),
        ("all_reduce", "direct", 8, 8 * KIB, 10.2867),
        ("all_reduce", "ring", 12, 16 * MIB, 725.1646),
        ("reduce_scatter", "ring", 8, GIB, 18825.482),
        ("all_to_all", "pairwise", 8, 8 * KIB, 35.1434),
        ("all_to_all", "bruck", 8, 8 * KIB, 15.2458),
        ("all_to_all", "pairwise", 16, 8 * KIB, 75.1536),
        ("all_to_all", "bruck", 16, 8 * KIB, 20.3277),
        ("broadcast", "chain", 16, 64 * MIB, 20207.659),
        ("broadcast", "binomial", 8, 64 * MIB, 4041.532),
        ("reduce", "binomial", 8, 64 * MIB, 4041.532),
    ],
)
def test_numbers(collective: str, algorithm: str, n_ranks: int, size: int, microseconds: float) -> None:
    payload_bytes = LARGE_PAYLOAD if size > MIB else KIB
    found = run_alone(collective, algorithm, n_ranks, size, payload_bytes=payload_bytes)
    assert found.picoseconds / US == within_one_percent(microseconds)
    assert found.picoseconds / US >= microseconds * (1 - 1e-6)


@pytest.mark.parametrize(
    ("collective", "algorithm", "messages", "share"),
    [
        ("all_gather", "ring", 7, 7 / 8),
        ("all_gather", "recursive_doubling", 3, 7 / 8),
        ("all_gather", "bruck", 3, 7 / 8),
        ("reduce_scatter", "recursive_halving", 3, 7 / 8),
        ("reduce_scatter", "bruck", 3, 7 / 8),
        ("all_to_all", "direct", 1, 7 / 8),
        ("gather", "direct", 1, 7 / 8),
        ("scatter", "binomial", 3, 7 / 8),
        ("gather", "binomial", 3, 7 / 8),
        ("reduce", "chain", 7, 7),
        ("send_recv", "shift", 1, 1),
        ("barrier", "dissemination", 3, 0),
    ],
)
def test_forms(collective: str, algorithm: str, messages: int, share: float) -> None:
    """messages * alpha + share * S/B; where a root sends to one after the other, it hears of the end of each
    alpha later than the receiver knows it."""
    size = 0 if collective == "barrier" else 64 * MIB
    seconds = messages * ALPHA_S + share * size / BYTES_PER_S
    found = run_alone(collective, algorithm, 8, size)
    assert found.picoseconds * 1e-12 == within_one_percent(seconds)


def test_direct_with_one_send_after_the_other() -> None:
    """2 (n-1) alpha instead of 2: a rank waits for what comes from a distance before it sends to the next."""
    size = 64 * MIB
    found = run_alone("all_reduce", "direct", 8, size, window=1)
    seconds = 14 * ALPHA_S + 2 * 7 / 8 * size / BYTES_PER_S
    assert found.picoseconds * 1e-12 == within_one_percent(seconds)


def test_a_ring_both_ways_has_two_ports() -> None:
    """Half of the data each way, each way with a port of its own."""
    for n_ranks, size, microseconds in (
        (8, GIB, 18860.482),
        (16, GIB, 20282.659),
        (12, 16 * MIB, 417.5823),
    ):
        template = build_template("all_reduce", algorithm="bidirectional_ring", n_ranks=n_ranks)
        lowered = with_two_ports(
            job_of(template, size),
            second_switch=[1] * n_ranks,
            is_second=lambda source, destination, n=n_ranks: (destination - source) % n != 1,
            payload_bytes=LARGE_PAYLOAD if size == GIB else 8 * KIB,
        )
        assert finish(lowered)["task_left_ps"].max() / US == within_one_percent(microseconds)


@pytest.mark.parametrize(
    ("collective", "algorithm", "inside", "size", "microseconds"),
    [
        ("all_reduce", "hierarchical", 4, GIB, 8963.849),
        ("all_reduce", "hierarchical", 8, GIB, 6884.017),
        ("all_to_all", "rail_aligned", 8, 256 * MIB, 3218.312),
    ],
)
def test_two_levels(collective: str, algorithm: str, inside: int, size: int, microseconds: float) -> None:
    """Two nodes; inside 450 GB/s and 1 us, across 50 GB/s and 5 us."""
    n_ranks = 2 * inside
    options: dict[str, Any] = {"ranks_per_node": inside}
    if algorithm == "hierarchical":
        options = {"shape": (inside, 2), "levels": "ring"}
    template = build_template(collective, algorithm=algorithm, n_ranks=n_ranks, **options)
    lowered = with_two_ports(
        job_of(template, size),
        second_switch=[1 + rank // inside for rank in range(n_ranks)],
        is_second=lambda source, destination: source // inside == destination // inside,
        payload_bytes=LARGE_PAYLOAD,
        second_rate_bps=3600 * 10**9,
        second_delay_ps=500 * NS,
    )
    assert finish(lowered)["task_left_ps"].max() / US == within_one_percent(microseconds)


@pytest.mark.parametrize(
    ("chunks", "microseconds"), [(1, 20207.659), (16, 2666.582), (61, 2025.210), (64, 2025.779)]
)
def test_a_chain_of_chunks(chunks: int, microseconds: float) -> None:
    """The form (n-2+k)(alpha + S/(kB)) lets a message keep a port busy for alpha, too: here as bytes that
    take so long, on links that take next to nothing else. Where alpha is on the way, messages follow each
    other meanwhile, and the chain takes (n-1) alpha + (n-2+k) S/(kB)."""
    n_ranks, size = 16, 64 * MIB
    template = build_template("broadcast", algorithm="chain", n_ranks=n_ranks, chunks=chunks)
    overhead = round(ALPHA_S * BYTES_PER_S)
    job = job_of(template, size + chunks * overhead)
    lowered = on_one_switch(job, hosts=n_ranks, payload_bytes=LARGE_PAYLOAD, delay_ps=NS)
    assert finish(lowered)["task_left_ps"].max() / US == within_one_percent(microseconds)
    on_the_way = run_alone("broadcast", "chain", n_ranks, size, payload_bytes=LARGE_PAYLOAD, chunks=chunks)
    seconds = (n_ranks - 1) * ALPHA_S + (n_ranks - 2 + chunks) * size / chunks / BYTES_PER_S
    assert on_the_way.picoseconds * 1e-12 == within_one_percent(seconds)


def test_ranks_outside_a_power_of_two() -> None:
    """2 (alpha + S/B) more than on the core, if the core begins when the others have lent their part."""
    n_ranks, core, size = 12, 8, 16 * MIB
    lend_ps = ALPHA_PS + round(size / BYTES_PER_S * 1e12)
    inner = build_template("all_reduce", algorithm="halving_doubling", n_ranks=core)
    builder = ProgramBuilder(n_ranks)
    for lender in range(core, n_ranks):
        builder.message(lender, lender - core, size_bytes=size, eager=True)
    reduced = builder.operation(inner, size, ranks=range(core), start_ps=lend_ps, eager=True)
    for lender in range(core, n_ranks):
        builder.message(lender - core, lender, size_bytes=size, after=[reduced], eager=True)
    job = Job(program=builder.build(), hosts=range(n_ranks))
    left = finish(on_one_switch(job, hosts=n_ranks, payload_bytes=8 * KIB))["task_left_ps"]
    seconds = 6 * ALPHA_S + 2 * 7 / 8 * size / BYTES_PER_S + 2 * (ALPHA_S + size / BYTES_PER_S)
    assert left.max() * 1e-12 == within_one_percent(seconds)


def test_a_core_that_does_not_wait_is_in_the_way() -> None:
    """Three ranks at once: what rank 2 sends to rank 1 shares its port with what rank 0 lends it, so that
    arrives after 1.5 S/B, not S/B; then come S/2, S/2 and S."""
    size = 16 * MIB
    found = run_alone("all_reduce", "halving_doubling", 3, size)
    seconds = 4 * ALPHA_S + 3.5 * size / BYTES_PER_S
    assert found.picoseconds * 1e-12 == pytest.approx(seconds, rel=1e-3)


def test_crossovers() -> None:
    """Ring beats recursive doubling above 2,200,000 B, pairwise beats Bruck above 1,600,000 B."""

    def slower(collective: str, one: str, other: str, size: int) -> bool:
        first, second = (run_alone(collective, name, 8, size).picoseconds for name in (one, other))
        return first > second

    assert slower("all_reduce", "ring", "recursive_doubling", 2_180_000)
    assert slower("all_reduce", "recursive_doubling", "ring", 2_220_000)
    assert slower("all_to_all", "pairwise", "bruck", 1_580_000)
    assert slower("all_to_all", "bruck", "pairwise", 1_620_000)


class TestBytes:
    @pytest.mark.parametrize("n_ranks", [2, 3, 8, 16])
    def test_per_rank(self, n_ranks: int) -> None:
        """Exactly what every correct implementation sends."""
        block = 12 * KIB
        least = {
            **{("all_reduce", name): 2 * (n_ranks - 1) * block for name in ("ring", "direct")},
            **{("reduce_scatter", name): (n_ranks - 1) * block for name in ("ring", "direct")},
            **{("all_gather", name): (n_ranks - 1) * block for name in ("ring", "direct", "bruck")},
            **{("all_to_all", name): (n_ranks - 1) * block for name in ("pairwise", "direct")},
        }
        if n_ranks & (n_ranks - 1) == 0:
            least["all_reduce", "halving_doubling"] = 2 * (n_ranks - 1) * block
            least["all_reduce", "recursive_doubling"] = (n_ranks.bit_length() - 1) * n_ranks * block
        for (collective, algorithm), expected in least.items():
            found = run_alone(collective, algorithm, n_ranks, n_ranks * block)
            assert found.sent_bytes == n_ranks * expected, (collective, algorithm)

    def test_on_the_wire(self) -> None:
        """What the ports of hosts carry is what the operation sends, and one byte for each ACK."""
        n_ranks, size = 8, 8 * 4 * KIB
        template = build_template("all_reduce", algorithm="ring", n_ranks=n_ranks)
        columns = finish(on_one_switch(job_of(template, size), hosts=n_ranks, payload_bytes=KIB))
        sent = 2 * (n_ranks - 1) * size // n_ranks
        frames = sent // KIB
        assert columns["port_tx_bytes"][:n_ranks].tolist() == [sent + frames] * n_ranks


class TestBusbw:
    @pytest.mark.parametrize(("n_ranks", "gigabytes"), [(8, 49.9070), (16, 49.8144)])
    def test_of_a_ring(self, n_ranks: int, gigabytes: float) -> None:
        found = run_alone("all_reduce", "ring", n_ranks, GIB, payload_bytes=LARGE_PAYLOAD)
        assert found.busbw_bytes_per_s / 1e9 == within_one_percent(gigabytes)
        assert found.busbw_bytes_per_s < BYTES_PER_S

    def test_in_network_reduction_exceeds_the_link(self) -> None:
        """Two levels of switches, 2 h alpha + S/B: every rank sends the vector once, and gets it once."""
        found = run_alone(
            "all_reduce", "in_network", 8, GIB, fan_in=(4, 2), chunks=1024, payload_bytes=LARGE_PAYLOAD
        )
        assert found.picoseconds / US == within_one_percent(21494.836)
        assert found.busbw_bytes_per_s / 1e9 == within_one_percent(87.4186)

    def test_of_one_switch_domain(self) -> None:
        """As NVLS in one: 2 alpha + S/B."""
        found = run_alone("all_reduce", "in_network", 8, 256 * MIB, chunks=1024, payload_bytes=LARGE_PAYLOAD)
        seconds = 2 * ALPHA_S + 256 * MIB / BYTES_PER_S
        assert found.picoseconds * 1e-12 == within_one_percent(seconds)

    def test_two_trees_come_close_to_two_vectors(self) -> None:
        """The bandwidth term is 2 S/B, as no rank carries more; chunks keep all ports busy."""
        size = 64 * MIB
        times = [
            run_alone("all_reduce", "double_binary_tree", 8, size, chunks=chunks).picoseconds * 1e-12
            for chunks in (1, 8, 64)
        ]
        assert times == sorted(times, reverse=True)
        assert 2 * size / BYTES_PER_S <= times[-1] <= 1.05 * 2 * size / BYTES_PER_S

    def test_two_nodes(self) -> None:
        """Four ranks share a NIC and copy within their host in no time. A ring fills the NIC; of two trees S
        goes across each way, so busbw, which counts 2 (n-1)/n of it, is up to 1.75 times its rate."""
        size, busbw = 64 * MIB, {}
        for algorithm, options in (("ring", {}), ("double_binary_tree", {"ranks_per_node": 4})):
            template = build_template("all_reduce", algorithm=algorithm, n_ranks=8, chunks=64, **options)
            job = job_of(template, size)
            shared = Job(program=job.program, hosts=[0] * 4 + [1] * 4)
            columns = finish(on_one_switch(shared, hosts=2, payload_bytes=8 * KIB))
            seconds = columns["task_left_ps"].max() * 1e-12
            busbw[algorithm] = busbw_factor("all_reduce", n_ranks=8) * size / seconds / BYTES_PER_S
        assert busbw["ring"] <= 1
        assert 1.5 < busbw["double_binary_tree"] <= 1.75

    @settings(max_examples=60, deadline=None)
    @given(
        which=st.sampled_from([each for each in ALGORITHMS if each[0] not in ("barrier", "all_to_all_v")]),
        n_ranks=st.integers(2, 12),
        size=st.one_of(st.integers(1, 64), st.integers(1, 4 * MIB)),
        eager=st.booleans(),
        channels=st.sampled_from([1, 1, 2]),
        pick=st.integers(0, 7),
    )
    def test_never_exceeds_what_the_links_allow(
        self, which: tuple[str, str], n_ranks: int, size: int, eager: bool, channels: int, pick: int
    ) -> None:
        """No less time than the longest chain, or the busiest port, takes; so busbw is at most the link's
        rate, but for reduction in switches, for a tree, and for the byte by which pieces differ."""
        collective, algorithm = which
        choices = list(options_for(algorithm, n_ranks))
        options = choices[pick % len(choices)]
        found = run_alone(
            collective, algorithm, n_ranks, size, payload_bytes=KIB, eager=eager, channels=channels, **options
        )
        explained = explain(found.template, size, links=Links(alpha="5us", rate="400Gbps"))
        bound = explained.lower_bound_s
        if (
            algorithm == "in_network"
        ):  # messages between switches have faster links than those from and to ranks
            bound = explained.depth * ALPHA_S + 2 * explained.largest_message_bytes / BYTES_PER_S
        assert found.picoseconds * 1e-12 >= bound * (1 - 1e-9) - 1e-9
        busbw = found.busbw_bytes_per_s
        by_design = 2 if algorithm in ("in_network", "double_binary_tree") else 1
        assert busbw <= BYTES_PER_S * by_design * (1 + n_ranks / size)


def test_all_to_all_v_is_as_large_as_its_largest_row_or_column() -> None:
    """nccl-tests' pattern for n = 4, S = 1 MiB, sigma = 1: rank i sends to rank i + j in proportion to j,
    rounded down to 16 bytes."""
    shares = [j * MIB // 6 // 16 * 16 for j in range(4)]
    assert shares == [0, 174_752, 349_520, 524_288]
    matrix = [shares[(to - rank) % 4] for rank in range(4) for to in range(4)]
    found = run_alone("all_to_all_v", "direct", 4, matrix)
    assert (found.size_bytes, found.sent_bytes) == (1_048_560, 4 * 1_048_560)
    assert found.picoseconds * 1e-12 == within_one_percent(ALPHA_S + 1_048_560 / BYTES_PER_S)
    assert found.busbw_bytes_per_s / BYTES_PER_S == within_one_percent(
        3 / 4 / (1 + ALPHA_S * BYTES_PER_S / 1_048_560)
    )
