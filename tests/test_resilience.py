"""What failures cost and what remedies are worth: runs compared, jobs that form anew, pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fabric
from fabric.cli import main
from fabric.errors import FabricError, SpecError
from fabric.failures import find_occurrences
from fabric.failures.timeline import dead_hosts, milestones
from fabric.plot import redundancy, through_failure
from fabric.resilience import compare_redundancy, link_rates, lost_time, run_recovering
from fabric.resilience.redundancy import FAILED_PARTS
from fabric.spec import (
    Collective,
    GoBackN,
    HostHang,
    LeafSpine,
    LinkDown,
    NoCongestionControl,
    Record,
    Recovery,
    Run,
    Scenario,
    SingleSwitch,
    ThroughputRecord,
    Transport,
)
from fabric.topology import build_network

SCENARIOS = Path(__file__).resolve().parent.parent / "scenarios"
MS = 10**9


def ring(**parts: object) -> Scenario:
    """A ring of 16 ranks over two leaves."""
    small: dict[str, object] = {
        "topology": LeafSpine(leaves=2, spines=2, hosts_per_leaf=8),
        "traffic": [Collective(algorithm="ring", size="4MB")],
        "transport": Transport(congestion=NoCongestionControl(), reliability=GoBackN(rto="200us")),
        "run": Run(until="100ms"),
    }
    return Scenario(**small | parts)


class TestLostTime:
    def test_parts_add_up_and_each_is_what_it_says(self) -> None:
        """The ring needs every flow: the black hole costs its own length, if no time-out is longer."""
        quick = ring(
            failures=[
                LinkDown(link="leaf0-spine0", at="50us"),
                LinkDown(link="leaf0-spine1", at="50us", lasts="10us"),
            ],
            recovery=Recovery(isolate="100us", convergence=0, restore=0),
        )
        cost = lost_time(quick)
        parts = dict(cost.rows())
        names = ("rehash imbalance", "retransmission", "black hole")
        assert sum(parts[name] for name in names) == cost.lost_ps
        assert parts["with failures"] - parts["without failures"] == cost.lost_ps
        assert cost.total_ps > cost.healthy_ps

    def test_longer_black_holes_cost_more(self) -> None:
        costs = [
            lost_time(
                ring(
                    failures=[LinkDown(link="leaf*-spine0", at="20us")],
                    recovery=Recovery(isolate=isolate, convergence=0, suspect=0),
                )
            ).black_hole_ps
            for isolate in ("0ns", "500us", "1ms")
        ]
        assert costs[0] == 0
        assert 0 < costs[1] < costs[2]
        assert abs((costs[2] - costs[1]) - 500 * 10**6) <= 200 * 10**6

    def test_it_wants_failures_and_ends(self) -> None:
        with pytest.raises(SpecError, match=r"failures.*at least one"):
            lost_time(ring())
        stuck = ring(failures=[LinkDown(link="host0-leaf0", at="20us")], run=Run(until="2ms"))
        with pytest.raises(FabricError, match="work undone"):
            lost_time(stuck)


class TestJobs:
    HUNG = (HostHang(host="host3", at="300us"),)

    def job(self, **recovery: object) -> Scenario:
        return ring(
            topology=SingleSwitch(hosts=8),
            traffic=[Collective(algorithm="ring", size="4MB", repeat=5)],
            failures=self.HUNG,
            recovery=Recovery(**{"dead": "2ms", "collective_timeout": "4ms", "reform": "7ms"} | recovery),
        )

    def test_a_collective_fails_after_its_time_out(self) -> None:
        (phase,) = run_recovering(self.job(on_timeout="fail")).phases
        entered = phase.result.operations["entered_ps"][phase.operations]
        assert phase.outcome == "failed"
        assert phase.ended_ps == entered + 4 * MS
        assert phase.without == ("host3",)
        assert not run_recovering(self.job(on_timeout="fail")).is_finished

    def test_a_job_forms_anew_without_the_dead(self) -> None:
        recovered = run_recovering(self.job(on_timeout="reform"))
        first, second = recovered.phases
        assert recovered.is_finished
        assert (first.ranks, second.ranks) == (8, 7)
        assert first.operations + second.operations == 5
        assert second.began_ps == first.ended_ps + 7 * MS
        hosts = set(second.result.ranks["host"].tolist())
        assert hosts == {f"host{number}" for number in range(8)} - {"host3"}

    def test_without_a_remedy_it_waits(self) -> None:
        (phase,) = run_recovering(self.job()).phases
        assert phase.outcome == "unfinished"

    def test_a_hang_that_ends_in_time_needs_none(self) -> None:
        short = self.job(on_timeout="reform").replace(
            failures=[HostHang(host="host3", at="300us", lasts="500us")]
        )
        (phase,) = run_recovering(short).phases
        assert (phase.outcome, phase.operations) == ("finished", 5)

    def test_only_a_collective_forms_anew(self) -> None:
        with pytest.raises(SpecError, match=r"traffic.*one collective"):
            run_recovering(ring(traffic=[Collective(size="1KB"), Collective(size="1KB", name="b")]))

    def test_who_is_dead(self) -> None:
        """Who hangs, or has lost every cable of its NIC for long enough; a scale-up link is none."""
        topology = LeafSpine(leaves=4, spines=2, hosts_per_leaf=2, ports_per_host=2, planes=2)
        scenario = ring(
            topology=topology,
            failures=[
                LinkDown(link="host0-leaf0", at="1ms"),
                LinkDown(link="host1-leaf*", at="1ms"),
                LinkDown(link="host2-leaf*", at="1ms", lasts="1ms"),
                HostHang(host="host3", at="2ms"),
            ],
            recovery=Recovery(dead="5ms"),
        )
        network = build_network(topology)
        found = find_occurrences(scenario, network)

        def dead(at_ps: int) -> list[str]:
            return dead_hosts(found, scenario.recovery, network, at_ps=at_ps)

        assert dead(6 * MS - 1) == []
        assert dead(6 * MS) == ["host1"]
        assert dead(7 * MS) == ["host1", "host3"]


class TestRedundancy:
    def test_what_each_option_survives(self) -> None:
        job = ring(
            topology=LeafSpine(leaves=4, spines=2, hosts_per_leaf=4, oversubscription=1.0),
            traffic=[Collective(algorithm="ring", size="16MB")],
            recovery=Recovery(isolate="20us", convergence="20us"),
        )
        options = {each.option: each for each in compare_redundancy(job)}
        assert list(options) == ["single", "dual-homed", "dual plane", "spare spine"]
        for name in ("single", "spare spine"):
            assert options[name].failed_ps["NIC cable"] == options[name].failed_ps["leaf"] == -1
            assert options[name].throughput_left("spine") > 0.8
        plane = options["dual plane"]
        assert all(plane.failed_ps[part] > 0 for part in FAILED_PARTS)
        assert 0.45 < plane.throughput_left("NIC cable") < 0.62
        assert options["dual-homed"].failed_ps["leaf"] > 0
        assert (options["single"].switches, options["spare spine"].switches) == (6, 7)
        assert len(redundancy(list(options.values())).patches) == 16

    def test_it_wants_a_leaf_spine_and_a_collective(self) -> None:
        with pytest.raises(SpecError, match=r"topology.*leaf_spine"):
            compare_redundancy(ring(topology=SingleSwitch(hosts=4)))
        with pytest.raises(SpecError, match=r"traffic.*one collective"):
            compare_redundancy(ring(traffic=[Collective(size="1KB"), Collective(size="1KB", name="b")]))


class TestPicture:
    def test_throughput_through_a_failure(self) -> None:
        scenario = ring(
            failures=[LinkDown(link="leaf0-spine0", at="100us", lasts="100us")],
            record=Record(throughput=ThroughputRecord(interval="10us")),
            recovery=Recovery(isolate="20us", convergence="20us", restore="20us"),
        )
        found = milestones(find_occurrences(scenario, build_network(scenario.topology)), scenario.recovery)
        result = fabric.run(scenario, progress=False)
        axes = through_failure(result, found, links=("leaf0->spine0", "leaf0->spine1"))
        said = " ".join(text.get_text() for text in axes.texts)
        assert "leaf0-spine0 fails at 100us, isolated 120us, known everywhere 140us, used again 220us" in said
        curve = axes.lines[0].get_xydata()
        times, gbps = curve[:, 0], curve[:, 1]
        during = gbps[(times >= 110) & (times < 200)]
        assert np.all(during == 0)
        one, other = link_rates(result, found, links=("leaf0->spine0", "leaf0->spine1"))
        assert one.before_bps > 50e9
        assert one.after_bps == one.left == 0
        assert other.after_bps > 1.2 * other.before_bps

    def test_before_and_after(self) -> None:
        """Whole intervals alone; means of all links of a pattern together."""
        scenario = ring(
            failures=[LinkDown(link="leaf0-spine0", at="105us")],
            record=Record(throughput=ThroughputRecord(interval="10us")),
            recovery=Recovery(isolate="20us", convergence="21us"),
            run=Run(until="20ms"),
        )
        found = milestones(find_occurrences(scenario, build_network(scenario.topology)), scenario.recovery)
        result = fabric.run(scenario, progress=False)
        (rates,) = link_rates(result, found, links=["leaf0->spine*"])
        rows = result.throughput.where(link="leaf0->spine*")
        carried, times_us = rows["tx_bytes"], rows["time_ps"] // 10**6
        last_us = result.counters["end_ps"] // 10**7 * 10
        assert rates.before_bps == pytest.approx(carried[times_us < 100].sum() * 8 / 100e-6)
        after = carried[(times_us >= 150) & (times_us < last_us)].sum()
        assert rates.after_bps == pytest.approx(after * 8 / ((last_us - 150) * 1e-6))
        with pytest.raises(FabricError, match="nothing fails"):
            link_rates(result, [], links=["*"])

    def test_nothing_was_recorded(self) -> None:
        with pytest.raises(FabricError, match="no throughput of links"):
            through_failure(fabric.run(ring(), progress=False), [])


class TestCommandLine:
    FILE = str(SCENARIOS / "spine_down_allreduce.toml")
    SMALL = ("--set", "traffic[0].size=1MB", "--set", "failures[0].at=50us", "--set", "run.until=20ms")

    def test_lists_what_fails(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["failures", self.FILE]) == 0
        said = capsys.readouterr().out.split()
        assert said[said.index("switch_down") :] == [
            *("switch_down", "spine1", "2ms", "2.01ms", "2.05ms", "2.25ms", "12ms", "-", "-"),
        ]

    def test_cost(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["failures", self.FILE, "--cost", *self.SMALL]) == 0
        said = capsys.readouterr().out
        assert [line.split("  ")[1] for line in said.splitlines()[1:]] == [
            *("without failures", "rehash imbalance", "retransmission", "black hole", "with failures"),
        ]

    def test_recover(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["failures", self.FILE, "--recover", *self.SMALL]) == 0
        assert "finished" in capsys.readouterr().out

    def test_draws(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        target = tmp_path / "throughput.png"
        assert main(["failures", self.FILE, "--draw", "--out", str(target), *self.SMALL]) == 0
        header, row = (line.split() for line in capsys.readouterr().out.splitlines()[3:5])
        assert header == ["links", "before", "after", "left"]
        assert row[0] == "*->host*"
        assert target.stat().st_size > 10_000

    def test_pictures_have_a_known_format(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["failures", self.FILE, "--draw", "--out", "x.jpg", *self.SMALL]) == 2
        printed = capsys.readouterr()
        assert "--out: 'x.jpg'" in printed.err
        assert printed.out == "", "before anything runs"

    def test_out_wants_something_to_draw(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["failures", self.FILE, "--cost", "--out", "x.png"]) == 2
        assert "--draw or --redundancy" in capsys.readouterr().err
