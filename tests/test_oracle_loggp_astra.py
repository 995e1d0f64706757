"""What LogGOPSim and the analytical networks of ASTRA-sim print, by the settings that correspond.

LogGP after Alexandrov, Ionescu, Schauser and Scheiman (doi 10.1145/215399.215427). Numbers were printed by
LogGOPSim 76451de1 and by astra-network-analytical 599a0473, apart from this code.

LogGP's L is the delay of a link, G the time of a byte on it, and o, for which a processor is busy with a
message, a time that a rank computes before it sends and after it has received. Not here: the end of a *send*
above LogGOPSim's threshold of 65,535 bytes, which it puts at o + L, when the receiver has matched it
(4,000 ns for the sender of `one_send.goal`). Here a send ends when it is handed to the network, or when it
is acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support_collectives import finish, ideal_transport, on_one_switch, with_two_ports
from support_lowered import small_lowered
from support_programs import with_jobs

from fabric.workload.collectives import build_template
from fabric.workload.goal import import_goal
from fabric.workload.job import Job
from fabric.workload.program import Program, ProgramBuilder, message_template

KIB, MIB = 2**10, 2**20
NS = 10**3


def within_one_percent(nanoseconds: float) -> Any:
    return pytest.approx(nanoseconds, rel=0.01)


class TestLogGP:
    """One message takes L + 2 o + (s-1) G: links that take L + 2 o together, at one byte in G."""

    @staticmethod
    def run(
        send: Callable[[ProgramBuilder], None], *, n_ranks: int, alpha_ns: int, gap_ns: int
    ) -> dict[str, Any]:
        builder = ProgramBuilder(n_ranks)
        send(builder)
        job = Job(program=builder.build(), hosts=range(n_ranks))
        rate = {"rate_bps": 8 * 10**9 // gap_ns, "delay_ps": alpha_ns * NS // 2}
        columns = finish(on_one_switch(job, hosts=n_ranks, payload_bytes=8 * KIB, **rate))
        return columns

    def test_ring(self) -> None:
        """L 3700, o 200, g 5, G 1: 1,892,394 ns = 14 * 135,171 (LogGOPSim 76451de1)."""
        ring = build_template("all_reduce", algorithm="ring", n_ranks=8)

        def send(builder: ProgramBuilder) -> None:
            builder.operation(ring, MIB, ranks=range(8), eager=True)

        columns = self.run(send, n_ranks=8, alpha_ns=3700 + 2 * 200, gap_ns=1)
        assert columns["task_left_ps"].max() / NS == within_one_percent(1_892_394)

    def test_one_message(self) -> None:
        """L 2500, o 1500, G 6: 80 MB take 480,005,494 ns, there and back 960,010,988."""

        def send(builder: ProgramBuilder) -> None:
            there = builder.message(0, 1, size_bytes=80_000_000, eager=True)
            builder.message(1, 0, size_bytes=80_000_000, after=[there], eager=True)

        columns = self.run(send, n_ranks=2, alpha_ns=2500 + 2 * 1500, gap_ns=6)
        left = columns["task_left_ps"] / NS
        assert left[1] == within_one_percent(480_005_494)
        assert left[3] == within_one_percent(960_010_988)  # `incast_8_1_2MiB.goal`, rank 0
        assert left[2] == within_one_percent(480_009_494)  # and rank 15, which has sent it back

    @staticmethod
    def ends(program: Program, *, latency_ns: int = 2500, gap_ns: int = 6) -> list[float]:
        """When each rank of a schedule, which has its overheads in it, is done, in ns; with the defaults."""
        job = Job(program=program, hosts=range(program.n_ranks))
        lowered = on_one_switch(
            job,
            hosts=program.n_ranks,
            payload_bytes=KIB,
            rate_bps=8 * 10**9 // gap_ns,
            delay_ps=latency_ns * NS // 2,
            ports={host: {"cut_bytes": 1} for host in range(program.n_ranks)},
        )
        left = finish(lowered)["task_left_ps"]
        assert (left >= 0).all()
        return [left[program.task_rank == rank].max(initial=0) / NS for rank in range(program.n_ranks)]

    def test_a_calculation_and_a_message(self, tmp_path: Path) -> None:
        """500 + o, and 500 + 2 o + L + 1023 G."""
        goal = """num_ranks 2
            rank 0 {
            c: calc 500
            o: calc 1500
            o requires c
            s: send 1024b to 1 tag 7
            s requires o
            }
            rank 1 {
            r: recv 1024b from 0 tag 7
            o: calc 1500
            o requires r
            }"""
        assert self.ends(self.read(tmp_path, goal)) == within_one_percent([2_000, 12_138])

    def test_a_binomial_tree(self, tmp_path: Path) -> None:
        """`binary_tree_32.goal`: one byte from each rank to r + 2^k for 2^k > r. Five messages in a row are
        the longest chain, 5 (L + 2 o); a rank is busy for o with each send, one after the other."""
        lines = ["num_ranks 32"]
        for rank in range(32):
            own, before = [], []
            if rank:
                parent = rank - (1 << rank.bit_length() - 1)
                own += [f"r: recv 1b from {parent} tag 0", "h: calc 1500", "h requires r"]
                before = ["h"]
            for k in range(rank.bit_length(), 5):
                own += [f"o{k}: calc 1500", *(f"o{k} requires {each}" for each in before)]
                own += [f"s{k}: send 1b to {rank + 2**k} tag 0", f"s{k} requires o{k}"]
                before = [f"o{k}"]
            lines += [f"rank {rank} {{", *own, "}"]
        ends = self.ends(self.read(tmp_path, "\n".join(lines)))
        assert max(ends) == within_one_percent(27_500)

    @staticmethod
    def read(folder: Path, text: str) -> Program:
        (folder / "schedule.goal").write_text("\n".join(line.strip() for line in text.splitlines()) + "\n")
        return import_goal(folder / "schedule.goal")[0]


class TestAstra:
    """1 MiB at 50 * 2^30 B/s (to the bit/s) over links of 500 ns, as in ASTRA-sim's analytical networks."""

    RATE_BPS = 8 * 50 * 2**30

    @pytest.mark.parametrize(("links", "nanoseconds"), [(2, 20_531), (3, 21_031)])
    def test_unaware_of_congestion(self, links: int, nanoseconds: int) -> None:
        """links * latency + S/B: a switch, and three hops around a ring, cut through."""
        builder = ProgramBuilder(2)
        builder.message(0, 1, size_bytes=MIB, eager=True)
        job = Job(program=builder.build(), hosts=range(2))
        lowered = small_lowered(
            **with_jobs(job, hosts=2),
            switches=links - 1,
            attach=[0, links - 2],
            rate_bps=self.RATE_BPS,
            delay_ps=500 * NS,
            transport=ideal_transport(KIB),
        )
        assert finish(lowered)["task_left_ps"].max() / NS == within_one_percent(nanoseconds)

    @pytest.mark.parametrize(
        ("hops", "latency_ns", "rate", "nanoseconds"),
        [(1, 500, 50, 20_031), (2, 500, 50, 40_062), (3, 500, 50, 60_093), (1, 50, 200, 4_932)],
    )
    def test_aware_of_congestion(self, hops: int, latency_ns: int, rate: int, nanoseconds: int) -> None:
        """Store and forward of whole chunks: fully connected, through a switch, three hops around a ring; a
        rank that passes the message on is the node that stores it."""
        builder = ProgramBuilder(hops + 1)
        before: list[int] = []
        for hop in range(hops):
            before = [
                builder.operation(message_template(), MIB, ranks=(hop, hop + 1), after=before, eager=True)
            ]
        job = Job(program=builder.build(), hosts=range(hops + 1))
        lowered = on_one_switch(
            job,
            hosts=hops + 1,
            payload_bytes=KIB,
            rate_bps=8 * rate * 2**30,
            delay_ps=latency_ns * NS // 2,
        )
        assert finish(lowered)["task_left_ps"].max() / NS == within_one_percent(nanoseconds)

    def test_all_pairs_at_once_on_a_ring(self) -> None:
        """Five ranks, 1 MiB for each other one by the shorter way: each directed link carries three messages,
        one of them passed on, without a gap: two latencies and 3 S/B, 59,593 ns."""
        n_ranks = 5
        builder = ProgramBuilder(n_ranks)
        for way in (1, -1):
            for rank in range(n_ranks):
                near, far = (rank + way) % n_ranks, (rank + 2 * way) % n_ranks
                builder.message(rank, near, size_bytes=MIB, eager=True)
                passed_on = builder.message(rank, near, size_bytes=MIB, eager=True)
                builder.message(near, far, size_bytes=MIB, after=[passed_on], eager=True)
        lowered = with_two_ports(
            Job(program=builder.build(), hosts=range(n_ranks)),
            second_switch=[1] * n_ranks,
            is_second=lambda source, destination: (destination - source) % n_ranks != 1,
            payload_bytes=KIB,
            rate_bps=self.RATE_BPS,
            delay_ps=250 * NS,
        )
        assert finish(lowered)["task_left_ps"].max() / NS == within_one_percent(59_593)
