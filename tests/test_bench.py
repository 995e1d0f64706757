"""Benchmarks of collectives: sizes, numbers, the slowest link and its cause, table, CSV and picture."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support_templates import ALGORITHMS

import fabric
from fabric.bench import Bench, bench_csv, bench_text, run_bench, sizes_between
from fabric.cli import main
from fabric.plot import bandwidth
from fabric.result import Result, Table
from fabric.result.slowest import Slowest, slowest_link

MIB = 2**20
HOSTS = 8
SCENARIO = fabric.Scenario(
    topology=fabric.SingleSwitch(hosts=HOSTS), traffic=[fabric.Collective(algorithm="ring")]
)
FILE = """
name = "eight"
topology = { kind = "single_switch", hosts = 8 }
traffic = [{ kind = "collective", collective = "all_reduce", algorithm = "ring" }]
"""


RUNNABLE = [which for which in ALGORITHMS if which[1] != "in_network"]
"""Those whose transfers are between ranks."""


def measured(**fields: Any) -> Table:
    return run_bench(Bench(**({"scenario": SCENARIO, "sizes": [MIB]} | fields)))


class TestSizes:
    def test_by_factor_and_by_step(self) -> None:
        assert sizes_between(8, 100) == [8, 16, 32, 64]
        assert sizes_between(8, 64, factor=8) == [8, 64]
        assert sizes_between(1, 4, factor=1.1) == [1, 2, 3, 4]
        assert sizes_between(0, 10, step=5) == [0, 5, 10]

    def test_whole_elements_of_a_vector(self) -> None:
        bench = Bench(scenario=SCENARIO, sizes=[1023], element="double")
        assert [int(run.traffic[0].size) for run in bench.runs()] == [1016]  # type: ignore[union-attr]


class TestNumbers:
    def test_are_those_of_the_run(self) -> None:
        """As the scenario alone gives them, and as nccl-tests defines them."""
        [row] = measured(sizes=[10**6])
        alone = fabric.run(SCENARIO.replace(traffic=[SCENARIO.traffic[0].replace(size="1MB")]))
        assert row["fingerprint"] == alone.fingerprint
        assert row["time_ps"] == alone.operations["duration_ps"][0]
        assert row["algbw_bps"] == pytest.approx(8e6 / (row["time_ps"] / 1e12))
        assert row["busbw_bps"] == pytest.approx(row["algbw_bps"] * 2 * (HOSTS - 1) / HOSTS)
        assert row["count"] == 250_000
        assert (row["type"], row["redop"], row["ranks"]) == ("float", "sum", HOSTS)
        assert row["line_rate_bps"] == 400e9

    def test_times_of_ranks(self) -> None:
        [row] = measured()
        result = fabric.run(SCENARIO.replace(traffic=[SCENARIO.traffic[0].replace(size="1MiB")]))
        taken = np.sort(result.ranks["left_ps"] - result.ranks["entered_ps"])
        assert (row["rank_least_ps"], row["rank_most_ps"]) == (taken[0], taken[-1])
        assert row["rank_median_ps"] == taken[HOSTS // 2 - 1]
        assert row["skew_ps"] == taken[-1] - taken[0]
        assert result.ranks["host"].tolist() == [f"host{n}" for n in range(HOSTS)]

    @pytest.mark.parametrize(
        ("collective", "algorithm", "count", "redop"),
        [
            ("all_gather", "ring", MIB // 4 // HOSTS, "none"),
            ("reduce_scatter", "direct", MIB // 4 // HOSTS, "sum"),
            ("all_to_all", "pairwise", MIB // 4 // HOSTS, "none"),
            ("broadcast", "chain", MIB // 4, "none"),
            ("reduce", "binomial", MIB // 4, "sum"),
            ("send_recv", "shift", MIB // 4, "none"),
        ],
    )
    def test_counts_of_nccl_tests(self, collective: str, algorithm: str, count: int, redop: str) -> None:
        [row] = measured(collective=collective, algorithms=[algorithm])
        assert (row["count"], row["redop"]) == (count, redop)
        assert 0 < row["busbw_bps"] < row["line_rate_bps"]

    @pytest.mark.parametrize("which", RUNNABLE, ids="{0[0]}-{0[1]}".format)
    def test_no_algorithm_is_faster_than_the_links(self, which: tuple[str, str]) -> None:
        collective, name = which
        table = measured(collective=collective, algorithms=[name], ranks=7, sizes=[1000, 2 * MIB])
        assert (table["busbw_bps"] < 400e9).all()
        assert (table["time_ps"] > 0).all()

    def test_several_algorithms(self) -> None:
        table = measured(algorithms=["ring", "tree", "auto"], sizes=[4096, 2 * MIB])
        assert table["algorithm"].tolist() == ["ring", "ring", *["double_binary_tree"] * 2, "auto", "auto"]
        assert set(table["chosen"][4:]) <= {"ring", "double_binary_tree"}

    def test_iterations_follow_each_other(self) -> None:
        [one], [four] = measured(), measured(iterations=4)
        assert four["time_ps"] == pytest.approx(one["time_ps"], rel=0.05)
        assert four["hops"] == 4 * one["hops"]

    def test_some_of_the_hosts_in_a_drawn_order(self) -> None:
        assert measured(ranks=5)["ranks"].tolist() == [5]
        assert measured(ranks=5, ranks_per_host=2)["ranks"].tolist() == [5]
        many = fabric.LeafSpine(leaves=2, spines=2, hosts_per_leaf=8)
        named, drawn = (measured(scenario=SCENARIO.replace(topology=many), placement=each) for each in ORDERS)
        assert named["fingerprint"][0] != drawn["fingerprint"][0]

    def test_chunks_let_a_tree_stream(self) -> None:
        [whole], [cut] = (
            measured(algorithms=["tree"], sizes=[8 * MIB], chunk=size) for size in (None, 2**18)
        )
        assert cut["time_ps"] < 0.6 * whole["time_ps"]

    def test_a_barrier_has_no_size(self) -> None:
        [row] = measured(collective="barrier", sizes=[1, 2, 3])
        assert (row["size_bytes"], row["busbw_bps"], row["redop"]) == (0, 0, "none")
        assert row["time_ps"] > 0

    def test_both_engines_measure_the_same(self) -> None:
        bench = Bench(scenario=SCENARIO, sizes=[50_000], algorithms=["halving_doubling"])
        assert bench_csv(run_bench(bench)) == bench_csv(run_bench(bench, engine="reference"))

    def test_a_collective_that_never_ends_is_said(self) -> None:
        lossy = SCENARIO.replace(
            topology=fabric.SingleSwitch(hosts=3, link=fabric.Link(loss=0.5)),
            transport=fabric.Transport(reliability=fabric.GoBackN(rto=None, nack=False)),
        )
        with pytest.raises(fabric.FabricError, match=r"all_reduce, ring: nothing is left .* rank \d waits"):
            measured(scenario=lossy)


ORDERS = ("as_named", "shuffled")


def slowest_of(scenario: fabric.Scenario) -> tuple[Slowest, Result]:
    result = fabric.run(scenario)
    duration_ps = int(result.operations["left_ps"].max())
    return slowest_link(result, duration_ps=duration_ps, chain=1), result


class TestSlowestLink:
    def of(self, collective: fabric.Collective, **others: Any) -> tuple[Slowest, Result]:
        return slowest_of(SCENARIO.replace(traffic=[collective], **others))

    def test_the_line_rate_of_a_large_ring(self) -> None:
        found, result = self.of(fabric.Collective(algorithm="ring", size="64MB"))
        assert found.cause == "line rate"
        assert found.busy_ps > 0.9 * result.duration_ps

    def test_the_latency_of_a_small_one(self) -> None:
        assert self.of(fabric.Collective(algorithm="ring", size="1KB"))[0].cause == "latency"

    def test_the_queue_of_an_incast(self) -> None:
        server = fabric.Collective(algorithm="parameter_server", size="1MB")
        found, result = self.of(
            server, transport=fabric.Transport(congestion=fabric.spec.NoCongestionControl())
        )
        assert (found.link, found.cause) == ("switch0->host0", "queueing")
        assert result.summary["pauses"]["sent"] == 0

    def test_the_collision_of_two_flows_on_an_uplink(self) -> None:
        """The fullest of links that are alike, and what it carries beyond their mean."""
        scenario = SCENARIO.replace(
            topology=fabric.LeafSpine(leaves=2, spines=8, hosts_per_leaf=8),
            traffic=[fabric.Collective(algorithm="ring", size="8MB", order="shuffled")],
        )
        found, result = slowest_of(scenario)
        assert found.cause == "collision"
        uplinks = result.ports.where(tier="leaf->spine")
        downlinks = result.ports.where(tier="spine->leaf")
        sent = np.concatenate([uplinks["tx_bytes"], downlinks["tx_bytes"]])
        assert found.busy_ps == pytest.approx(sent.max() * 8e12 / 400e9, rel=1e-6)
        end = found.link.partition("->")[0 if found.link.startswith("leaf") else 2]
        own = [row["tx_bytes"] for row in result.ports if end in row["link"] and row["tier"] in TRUNKS]
        same_way = own[:8] if found.link.startswith("leaf") else own[8:]
        excess_bytes = max(same_way) - np.mean(same_way)
        assert found.lost_ps["collision"] == pytest.approx(excess_bytes * 8e12 / 400e9, rel=1e-3)

    def test_pauses_of_what_feeds_a_slow_host(self) -> None:
        """A trunk that PFC keeps from sending for a fifth of the time."""
        scenario = SCENARIO.replace(
            topology=fabric.LeafSpine(leaves=2, spines=1, hosts_per_leaf=4),
            traffic=[fabric.Collective(algorithm="parameter_server", size="4MB")],
            switch=fabric.Switch(buffer="2MB"),
            transport=fabric.Transport(congestion=fabric.spec.NoCongestionControl()),
        )
        found, result = slowest_of(scenario)
        assert found.lost_ps["pauses"] == result.ports.where(link=found.link)["paused_ps"][0]
        assert (found.link, found.cause) == ("leaf1->spine0", "pauses")
        assert found.lost_ps["pauses"] > 0.2 * result.duration_ps

    def test_frames_that_are_sent_again(self) -> None:
        found, result = self.of(
            fabric.Collective(algorithm="ring", size="1MB"),
            topology=fabric.SingleSwitch(hosts=4, link=fabric.Link(loss=0.01)),
        )
        assert result.connections["retransmitted"].sum() > 0
        assert found.cause == "retransmission"

    def test_timeouts_are_time_that_was_lost(self) -> None:
        """Without NACKs a lost frame is missed when the time-out says so, 4 ms later."""
        lossy = fabric.SingleSwitch(hosts=4, link=fabric.Link(loss=0.01))
        reliability = fabric.GoBackN(rto="4ms", nack=False)
        found, result = self.of(
            fabric.Collective(algorithm="ring", size="1MB"),
            topology=lossy,
            transport=fabric.Transport(reliability=reliability),
        )
        held_ps = result.connections["timeouts"].astype(np.int64) * 4 * 10**9
        assert held_ps.sum() > 0
        assert result.connections["timeout_ps"].tolist() == held_ps.tolist()
        assert found.cause == "retransmission"
        assert found.lost_ps["retransmission"] > 0.5 * result.duration_ps

    def test_is_in_the_summary_of_a_run(self) -> None:
        entries = [
            fabric.Collective(algorithm="ring", size="1MB", ranks=4, repeat=3, name="first"),
            fabric.Collective(algorithm="ring", size="1MB", hosts="host[4-7]", name="second"),
        ]
        result = fabric.run(SCENARIO.replace(traffic=entries))
        operations = result.operations
        assert operations["chain"].tolist() == [6] * 4
        duration_ps = int(operations["left_ps"].max() - operations["entered_ps"].min())
        found = slowest_link(result, duration_ps=duration_ps, chain=3 * 6)
        row = result.summary["slowest_link"]
        assert (row["link"], row["cause"], row["busy_ps"]) == (found.link, found.cause, found.busy_ps)
        assert (row["lost_ps"], row["of_ps"]) == (found.lost_ps, duration_ps)
        assert f"slowest link    {found.link}  {found.cause}: sent for " in str(result.summary)
        skews = {each["job"]: each["skew_ps"] for each in result.summary["collectives"]}
        assert skews["second"] == operations["skew_ps"][3]
        assert skews["first"] == np.sort(operations["skew_ps"][:3])[1]

    def test_is_not_there_without_a_collective_that_was_done(self) -> None:
        for traffic, until in (
            (fabric.Permutation(size="1MB"), None),
            (fabric.Collective(algorithm="ring", size="1MB"), "1us"),
        ):
            result = fabric.run(SCENARIO.replace(traffic=[traffic]), until=until)
            assert result.summary["slowest_link"] is None
            assert "slowest link" not in str(result.summary)

    def test_nothing_is_as_good_as_the_way_to_a_reducer(self) -> None:
        """All of a leaf's sums go to one spine: no collision, though its other uplinks are idle."""
        topology = fabric.LeafSpine(leaves=2, spines=2, hosts_per_leaf=4, reducers=("*",))
        found, _ = self.of(
            fabric.Collective(algorithm="in_network", size="4MB", chunk="64KB"), topology=topology
        )
        assert found.lost_ps["collision"] == 0

    def test_nothing_was_sent(self) -> None:
        alone = fabric.Collective(algorithm="ring", size="1MB", ranks=1)
        found, _ = self.of(alone)
        assert (found.link, found.busy_ps, found.cause) == ("", 0, "latency")


TRUNKS = ("leaf->spine", "spine->leaf")


class TestOptions:
    def test_go_to_the_algorithms_that_take_them(self) -> None:
        bench = Bench(
            scenario=SCENARIO,
            sizes=[MIB],
            algorithms=["direct", "ring", "hierarchical"],
            options={"window": 1, "slices": 2, "shape": [2, 4]},
        )
        assert [run.traffic[0].options for run in bench.runs()] == [  # type: ignore[union-attr]
            {"window": 1, "slices": 2},
            {"slices": 2},
            {"slices": 2, "shape": [2, 4]},
        ]

    def test_are_those_of_the_scenario_beside_them(self) -> None:
        entry = fabric.Collective(algorithm="direct", options={"window": 3, "chunks": 4})
        bench = Bench(scenario=SCENARIO.replace(traffic=[entry]), sizes=[1], options={"window": 2})
        assert bench.runs()[0].traffic[0].options == {"window": 2, "chunks": 4}  # type: ignore[union-attr]
        bench = Bench(scenario=SCENARIO.replace(traffic=[entry]), sizes=[1], chunk=100, algorithms=["ring"])
        assert bench.runs()[0].traffic[0].options == {}  # type: ignore[union-attr]

    def test_change_what_runs(self) -> None:
        """One after the other instead of all at once: each of 7 + 7 messages waits for the one before."""
        [[at_once], [in_turn]] = (
            measured(sizes=[8 * 1024], algorithms=["direct"], options={"window": window}) for window in (7, 1)
        )
        assert in_turn["time_ps"] > 5 * at_once["time_ps"]

    def test_of_the_command(self, tmp_path: Path) -> None:
        (tmp_path / "eight.toml").write_text(FILE)
        words = ["bench", str(tmp_path / "eight.toml"), "-b", "8KiB", "-e", "8KiB", "--no-plot"]
        table = {}
        for shape in ("[8]", "[2,4]"):
            csv_file = tmp_path / f"{len(table)}.csv"
            words_more = ["--algorithm", "hierarchical", "--option", f"shape={shape}", "--csv", str(csv_file)]
            assert main([*words, *words_more]) == 0
            [table[shape]] = csv.DictReader(csv_file.open())
        assert int(table["[2,4]"]["time_ps"]) < int(table["[8]"]["time_ps"])


class TestOutput:
    def test_the_table_of_nccl_tests(self) -> None:
        text = bench_text(measured(sizes=[1000, MIB], algorithms=["ring", "tree"]))
        lines = text.splitlines()
        assert lines[0] == "# all_reduce, ring: 8 ranks at 400Gbps"
        names = ["size", "count", "type", "redop", "time", "algbw", "busbw", "skew"]
        assert lines[1].split()[1:9] == names
        assert lines[3].split()[:4] == ["1000", "250", "float", "sum"]
        assert lines[5].startswith("# Avg bus bandwidth    : ")
        assert "# all_reduce, double_binary_tree: 8 ranks at 400Gbps" in lines

    def test_csv_holds_every_column_in_base_units(self) -> None:
        table = measured()
        [row] = csv.DictReader(io.StringIO(bench_csv(table)))
        assert tuple(row) == table.columns
        assert int(row["time_ps"]) == table["time_ps"][0]

    def test_a_picture_with_the_line_rate_above_all(self) -> None:
        table = measured(sizes=[1024, 32768, MIB], algorithms=["ring", "halving_doubling"])
        axes = bandwidth(table)
        ring, halving, rate = axes.get_lines()
        assert ring.get_xdata().tolist() == [1024, 32768, MIB]
        assert ring.get_ydata().tolist() == pytest.approx((table["busbw_bps"][:3] / 8e9).tolist())
        assert len(halving.get_xdata()) == 3
        assert set(rate.get_ydata()) == {50.0}
        assert axes.get_ylim()[1] > 50
        assert axes.get_title(loc="left") == "All-reduce of 8 ranks"

    def test_the_command(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "eight.toml").write_text(FILE)
        outputs = {"--csv": tmp_path / "bench.csv", "--out": tmp_path / "bench.svg"}
        code = main(
            [
                *("bench", str(tmp_path / "eight.toml"), "--compare", "ring,tree,halving_doubling"),
                *("-b", "1KiB", "-e", "16KiB", "-f", "4"),
                *(str(word) for pair in outputs.items() for word in pair),
            ]
        )
        assert code == 0
        printed = capsys.readouterr().out
        assert printed.count("# Avg bus bandwidth") == 3
        assert len(outputs["--csv"].read_text().splitlines()) == 1 + 3 * 3
        assert outputs["--out"].read_bytes().startswith(b"<?xml")
