"""Collectives as traffic of a scenario: the jobs that they become, and what results say of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fabric
from fabric.errors import SpecError
from fabric.lower import lower
from fabric.lowering.programs import lower_jobs
from fabric.spec.ns3_hpcc import ns3_hpcc
from fabric.topology import build_network
from fabric.workload import Job, ProgramBuilder, build_jobs
from fabric.workload.collectives import build_template

MB = 10**6


def scenario_of(*traffic: Any, **others: Any) -> fabric.Scenario:
    others.setdefault("topology", fabric.LeafSpine(leaves=2, spines=2, hosts_per_leaf=4))
    return fabric.Scenario(traffic=traffic, **others)


def ring(**fields: Any) -> fabric.Collective:
    return fabric.Collective(**{"algorithm": "ring", "size": "1MB", **fields})


def jobs_of(scenario: fabric.Scenario) -> list[Job]:
    return build_jobs(scenario, build_network(scenario.topology))


class TestJobs:
    def test_ranks_take_hosts_in_order(self) -> None:
        [job] = jobs_of(scenario_of(ring(hosts="host[2-5]", ranks_per_host=2)))
        assert job.host_of.tolist() == [2, 2, 3, 3, 4, 4, 5, 5]
        assert (job.name, job.program.n_ranks, len(job.program)) == ("collective", 8, 1)

    def test_or_in_a_drawn_one(self) -> None:
        one, other = (jobs_of(scenario_of(ring(order="shuffled"), run=fabric.Run(seed=s)))[0] for s in (1, 2))
        assert sorted(one.host_of) == sorted(other.host_of) == list(range(8))
        assert one.host_of.tolist() != other.host_of.tolist()

    def test_repetitions_follow_each_other_at_every_rank(self) -> None:
        [job] = jobs_of(scenario_of(ring(repeat=3, jitter="5us", start="1us")))
        program = job.program
        assert len(program) == 8 + 3
        assert (program.compute_ps[:8] < 5 * 10**6).all()
        assert len(np.unique(program.compute_ps[:8])) == 8
        assert program.wait_for.tolist() == list(range(3 * 8))

    def test_names_are_distinct(self) -> None:
        jobs = jobs_of(scenario_of(ring(), ring(name="mine"), ring()))
        assert [job.name for job in jobs] == ["collective", "mine", "collective-2"]

    @pytest.mark.parametrize(
        ("fields", "path"),
        [
            ({"algorithm": "rings"}, "traffic[0].algorithm"),
            ({"algorithm": "in_network"}, "traffic[0].hosts"),
            ({"collective": "all_produce"}, "traffic[0].collective"),
            ({"hosts": "gpu*"}, "traffic[0].hosts"),
        ],
    )
    def test_what_does_not_exist_is_refused(self, fields: dict[str, Any], path: str) -> None:
        with pytest.raises(SpecError) as caught:
            jobs_of(scenario_of(ring(**fields)))
        assert caught.value.path == path

    def test_in_ticks_and_orders_of_ns3(self) -> None:
        """Times of ranks are rounded up to whole nanoseconds; both engines take the same turns."""
        scenario = scenario_of(
            ring(jitter="3us", ranks_per_host=2, size="100KB"),
            nic=fabric.Nic(queue_pairs="in_turn", copy_rate="100Gbps", copy_latency="1500ps"),
            run=fabric.Run(timing="ns3", ties="transmission_start"),
        )
        program = lower(scenario).program
        assert program is not None
        assert (program.operation_compute_ps > 0).any()
        assert not (program.operation_compute_ps % 1000).any()
        assert (program.local_latency_ps, program.local_tick_ps) == (2000, 1000)
        native, readable = (fabric.run(scenario, engine=engine) for engine in ("native", "reference"))
        assert native.status == readable.status == "FINISHED"
        assert native.fingerprint == readable.fingerprint
        assert native.ranks["left_ps"].tolist() == readable.ranks["left_ps"].tolist()

    def test_on_the_fabric_of_the_hpcc_simulator(self) -> None:
        """With its whole preset: a ring and an all-to-all at once."""
        link = fabric.Link(rate="100Gbps", delay="1us")
        scenario = fabric.Scenario(
            topology=fabric.LeafSpine(leaves=2, spines=2, hosts_per_leaf=2, host_link=link, fabric_link=link),
            traffic=[
                fabric.Collective(algorithm="ring", size="200KB"),
                fabric.Collective(collective="all_to_all", algorithm="direct", size="200KB"),
            ],
            **ns3_hpcc(),
        )
        native, readable = (fabric.run(scenario, engine=engine) for engine in ("native", "reference"))
        assert native.status == "FINISHED"
        assert native.fingerprint == readable.fingerprint

    def test_a_rank_needs_a_host(self) -> None:
        work = ProgramBuilder(2)
        work.message(0, 1, size_bytes=1)
        for hosts, path in (([0], 'program "program".hosts'), ([0, 9], 'program "program".hosts[1]')):
            with pytest.raises(SpecError) as caught:
                lower_jobs([Job(program=work.build(), hosts=hosts)], n_hosts=2)
            assert caught.value.path == path


class TestLowering:
    def test_lanes_of_a_ring(self) -> None:
        lowered = lower(scenario_of(ring(hosts="host[0-3]")))
        program = lowered.program
        assert program is not None
        assert program.rank_lane_base.tolist() == [0, 1, 2, 3, 4]
        assert program.lane_connection.tolist() == [0, 1, 2, 3]
        assert program.connection_source.tolist() == [0, 1, 2, 3]
        assert program.connection_destination.tolist() == [1, 2, 3, 0]
        assert (lowered.flow_source.tolist(), lowered.flow_destination.tolist()) == (
            [0, 1, 2, 3],
            [1, 2, 3, 0],
        )
        assert lowered.flow_frames.tolist() == [0] * 4

    def test_ranks_that_do_the_same_share_a_pattern(self) -> None:
        """Those of a ring, each with other pieces; of a chain, those in the midst."""
        program = lower(scenario_of(ring(hosts="host[0-3]"))).program
        assert program is not None
        assert program.rank_pattern.tolist() == [0, 0, 0, 0]
        assert program.pattern_lane_base.tolist() == [0, 1]
        assert program.lane_transfer_base.tolist() == [0, 6]
        assert program.rank_piece.tolist() == [3, 0, 1, 2]
        assert program.transfer_piece.tolist() == [0, 3, 2, 1, 0, 3]
        assert program.transfer_waits.tolist() == [0, 1, 1, 1, 1, 1]
        chain = build_template("broadcast", algorithm="chain", n_ranks=5)
        work = ProgramBuilder(5)
        work.operation(chain, 100, ranks=range(5))
        job = Job(program=work.build(), hosts=range(5))
        assert lower_jobs([job], n_hosts=5).program.rank_pattern.tolist() == [0, 1, 1, 2, 3]

    @pytest.mark.parametrize(("kind", "name"), [("all_reduce", "ring"), ("all_to_all", "pairwise")])
    def test_tables_of_ranks_that_do_the_same_grow_with_their_number(self, kind: str, name: str) -> None:
        def table_bytes(n_ranks: int) -> int:
            work = ProgramBuilder(n_ranks)
            work.operation(build_template(kind, algorithm=name, n_ranks=n_ranks), 10**6, ranks=range(n_ranks))
            program = lower_jobs([Job(program=work.build(), hosts=range(n_ranks))], n_hosts=n_ranks).program
            return sum(
                getattr(program, column).nbytes for column in vars(program) if column[:9] == "transfer_"
            )

        assert table_bytes(128) < 2.1 * table_bytes(64)

    def test_connections_are_as_large_as_their_messages(self) -> None:
        """Of two operations of one group, and of one with sizes of its own."""
        template = build_template("all_to_all", algorithm="direct", n_ranks=3)
        work = ProgramBuilder(3)
        sizes = np.arange(template.n_blocks) * 100
        work.operation(template, 900, ranks=[0, 1, 2])
        work.operation(template, 900, ranks=[0, 1, 2])
        work.operation(template, sizes, ranks=[0, 1, 2], size_bytes=0)
        lowered = lower_jobs([Job(program=work.build(), hosts=[0, 1, 2])], n_hosts=3)
        per_rank = 2 * 2 * 300 + int(sizes[1:].sum())
        assert len(lowered.flows) == 6
        assert np.bincount(lowered.flows.source, weights=lowered.flows.size_bytes).tolist() == [per_rank] * 3


class TestResults:
    def test_operations_and_connections(self, tmp_path: Path) -> None:
        scenario = scenario_of(ring(repeat=2, jitter="3us"), fabric.Permutation(size="64KB"))
        result = fabric.run(scenario)
        assert result.fingerprint == fabric.run(scenario, engine="reference").fingerprint
        assert result.status == "FINISHED"
        operations = result.operations
        assert operations["name"].tolist() == ["collective#0", "collective#1"]
        assert operations["sent_bytes"].tolist() == [14 * MB, 14 * MB]
        np.testing.assert_allclose(operations["busbw_bps"], operations["algbw_bps"] * 7 / 4)
        assert (operations["busbw_bps"] < 400e9).all()
        assert (len(result.flows), len(result.connections)) == (8, 8)
        assert result.connections["size_bytes"].sum() == 28 * MB
        assert "all_reduce ring" in str(result)
        result.save(tmp_path / "saved")
        again = fabric.Result.load(tmp_path / "saved")
        assert again.operations["left_ps"].tolist() == operations["left_ps"].tolist()

    def test_a_run_that_stalls_says_who_waits_for_whom(self) -> None:
        """Frames are lost and never sent again; the second time waits for the first, so it is not named."""
        scenario = scenario_of(
            ring(repeat=2),
            topology=fabric.SingleSwitch(hosts=3, link=fabric.Link(loss=0.5)),
            transport=fabric.Transport(reliability=fabric.GoBackN(rto=None, nack=False)),
        )
        result = fabric.run(scenario)
        assert result.status == "STALLED"
        assert set(result.waiting["operation"]) == {"collective#0"}
        assert (result.waiting["transfers"] >= result.waiting["posted"]).all()
        assert "2 of 2 operations not done; rank " in result.stopped
        assert "waits in collective#0 for" in result.stopped

    def test_copies_within_a_host_take_their_time(self) -> None:
        topology = fabric.SingleSwitch(hosts=2)
        pair = ring(hosts="host0", ranks_per_host=2, size="2MB")
        quick = fabric.run(scenario_of(pair, topology=topology))
        slow = fabric.run(
            scenario_of(pair, topology=topology, nic=fabric.Nic(copy_rate="8Gbps", copy_latency="1us"))
        )
        assert (quick.operations["duration_ps"][0], quick.counters["hops"]) == (0, 0)
        # two steps of one megabyte at a byte a nanosecond
        assert slow.operations["duration_ps"][0] == 2 * (1000 + 1) * 10**6
