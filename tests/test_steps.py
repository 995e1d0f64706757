"""Training jobs as traffic: what steps take, where their time goes, what slows them down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support_steps import MODEL, MS, entry_of, ideal_ps, scenario_of

import fabric
from fabric.errors import FabricError, SpecError
from fabric.io.directory import load
from fabric.plot import timeline, to_image
from fabric.spec import Parallelism, Router, Slowness, TrainingJob
from fabric.step import StepReport, run_step, scale_loss
from fabric.training import (
    PassTimes,
    Slowdown,
    TokenRoutes,
    bubble_time,
    scaled_token_bytes,
)


class TestTime:
    @pytest.mark.parametrize("stages", [2, 4, 8])
    @pytest.mark.parametrize("name", ["gpipe", "1f1b", "interleaved", "zb1p", "dualpipe"])
    def test_bubbles_are_their_closed_forms(self, name: str, stages: int) -> None:
        """Walked by the engine, on a network that takes no time."""
        vpp, micro_batches = (2 if name == "interleaved" else 1), 16
        parallelism = {"pp": stages, "vpp": vpp}
        times = {"forward": "1ms", "backward": "2ms", "weight": "1ms"}
        entry = entry_of(parallelism, job={"model": {**MODEL, "layers": 16}, "global_batch": micro_batches})
        entry |= {"compute": {"kind": "given", **times}, "schedule": name}
        layers = 16 // stages
        whole = PassTimes(forward=layers, backward=2 * layers, weight=layers)
        bubble = bubble_time(name, stages=stages, chunks=vpp, times=whole)
        found = ideal_ps(entry) / MS
        closed = micro_batches * 3 * layers + bubble
        assert found == closed

    @pytest.mark.parametrize("parallelism", [{"dp": 4}, {"tp": 2, "pp": 2}, {"pp": 4, "zero": 1}])
    def test_parts_add_up_to_the_step(self, parallelism: dict[str, Any]) -> None:
        report = run_step(scenario_of(entry_of(parallelism, steps=3)), progress=False)
        assert len(report.steps) == 3
        for row in report.steps:
            parts = ("compute_ps", "paused_ps", "exposed_ps", "bubble_ps", "waiting_ps")
            assert sum(row[part] for part in parts) == pytest.approx(row["duration_ps"], rel=1e-9)
            path = report.critical[report.critical["step"] == row["step"]]
            assert path["duration_ps"].sum() == row["duration_ps"]
            assert (path["begin_ps"][1:] == path["end_ps"][:-1]).all()
        assert report.steps["end_ps"][:-1].tolist() == report.steps["begin_ps"][1:].tolist()
        assert 0 < report.efficiency() < 1

    def test_recomputation_adds_a_forward_pass(self) -> None:
        once = ideal_ps(entry_of({"pp": 2}))
        again = ideal_ps(entry_of({"pp": 2}, job={"recompute": True}))
        assert again == once * 4 // 3

    def test_buckets_hide_gradients_behind_the_backward_pass(self) -> None:
        job = {"model": {**MODEL, "hidden": 512, "ffn": 2048}, "sequence": 64}
        late = run_step(scenario_of(entry_of({"dp": 8}, job=job)), progress=False)
        soon = run_step(scenario_of(entry_of({"dp": 8}, job=job, bucket="1MB")), progress=False)
        assert late.communication["overlapped_ps"][0] == 0
        assert soon.communication["overlapped_ps"][0] > 0
        assert soon.steps["duration_ps"][0] < late.steps["duration_ps"][0]
        sent = [report.result.connections["size_bytes"].sum() for report in (late, soon)]
        assert sent[0] == sent[1]

    def test_flops_give_times_and_utilisation(self) -> None:
        entry = entry_of({"dp": 2}) | {
            "compute": {"kind": "flops", "peak_tflops": 1.0, "efficiency": 0.5},
        }
        report = run_step(scenario_of(entry), progress=False)
        (row,) = report.ideal
        assert row["mfu"] == pytest.approx(0.5, rel=1e-6)
        assert report.steps["mfu"][0] < row["mfu"]

    def test_measured_times_come_from_a_table(self, tmp_path: Path) -> None:
        file = tmp_path / "times.csv"
        file.write_text("part,forward_us,backward_us,weight_us\nattention,10,20,5\nfeed_forward,30,50,20\n")
        entry = entry_of({"pp": 2}) | {"compute": {"kind": "measured", "file": str(file)}}
        assert ideal_ps(entry) == (8 + 1) * 2 * 110 * 10**6
        file.write_text("part,forward_us,backward_us,weight_us\nattention,10,20,5\n")
        with pytest.raises(SpecError, match="a row for feed_forward"):
            run_step(scenario_of(entry), progress=False)


class TestSlowness:
    def test_a_pause_delays_the_step_by_itself(self) -> None:
        entry = entry_of({"dp": 8}, steps=2)
        late = entry | {"slowness": [{"ranks": [3], "pause": "500ms", "step": 1}]}
        assert ideal_ps(late, step=1) - ideal_ps(entry, step=1) == 500 * MS
        real = [run_step(scenario_of(one), progress=False).steps["duration_ps"][1] for one in (entry, late)]
        assert real[1] - real[0] == pytest.approx(500 * MS, rel=1e-5)

    @pytest.mark.parametrize("distribution", ["exponential", "uniform"])
    def test_a_step_follows_the_slowest_of_its_ranks(self, distribution: Any) -> None:
        slow = Slowness(spread=0.2, distribution=distribution)
        factor = Slowdown.of_entries([slow], n_ranks=8, seed=1).factor
        entry = entry_of({"dp": 8}, slowness=[slow])
        assert ideal_ps(entry) == pytest.approx(factor.max() * ideal_ps(entry_of({"dp": 8})), rel=1e-6)
        assert len(set(factor.tolist())) == 8

    def test_the_maximum_of_draws_is_that_of_their_law(self) -> None:
        """Of n exponential draws it is the n-th harmonic number on average."""
        slow = [Slowness(spread=1.0)]
        factors = [Slowdown.of_entries(slow, n_ranks=16, seed=seed).factor.max() for seed in range(400)]
        harmonic = sum(1 / k for k in range(1, 17))
        assert np.mean(factors) == pytest.approx(1 + harmonic, abs=4 * 1.28 / 20)

    def test_a_rank_that_is_slow_for_a_while(self) -> None:
        """12 ms of compute; from 2 to 6 ms at half speed: 2 ms of work instead of 4."""
        entry = entry_of({"dp": 1}, forward="125us")
        whole = ideal_ps(entry, hosts=2)
        assert whole == 8 * 4 * 375 * 10**6
        slow = entry | {"slowness": [{"factor": 2.0, "begin": "2ms", "end": "6ms"}]}
        assert ideal_ps(slow, hosts=2) == whole + 2 * MS

    def test_draws_of_a_pass_differ_from_pass_to_pass(self) -> None:
        slow = Slowdown.of_entries([Slowness(spread=0.5, per="pass")], n_ranks=4, seed=1)
        first, second = slow.of_pass(np.arange(4), 0), slow.of_pass(np.arange(4), 1)
        assert (first != second).all()
        assert slow.of_pass([2], 1).tolist() == second[[2]].tolist()


class TestExperts:
    def test_bytes_of_deepseeks_kernels(self) -> None:
        """Low latency, 128 tokens: 7,585,792 out and 14,680,064 back; normal, 4096: 4 servers at most."""
        routes = self.routes(tokens=128, router=Router(choice="uniform", header_bytes=16))
        assert routes.router.header_bytes == 16
        out = routes.legs("dispatch", 0, 0, group=(0, 0), ranks=np.arange(64))[0].sum(axis=1)
        token = scaled_token_bytes(7168, precision="fp8") + 16
        assert (out * token).tolist() == [7_585_792] * 64
        assert (out * scaled_token_bytes(7168, precision="bf16")).tolist() == [14_680_064] * 64

    def test_four_servers_bound_what_leaves(self) -> None:
        router = Router(choice="uniform", node_limited=True, copies="server")
        routes = self.routes(tokens=4096, router=router)
        between, inside = routes.legs("dispatch", 0, 0, group=(0, 0), ranks=np.arange(64))
        assert between.sum(axis=1).max() <= 4 * 4096
        assert between.sum(axis=1).mean() == pytest.approx(3.5 * 4096, rel=0.01)
        assert 4 * 4096 * 7168 == 112 * 2**20
        rails = np.arange(64) % 8
        assert (rails[np.nonzero(between)[0]] == rails[np.nonzero(between)[1]]).all()
        assert (np.nonzero(inside)[0] // 8 == np.nonzero(inside)[1] // 8).all()

    def test_regrouping_moves_the_same_with_fewer_senders(self) -> None:
        plain = self.routes(tokens=64, router=Router(choice="uniform"))
        regrouped = self.routes(tokens=64, router=Router(choice="uniform", regroup=True))
        (copies,) = plain.legs("dispatch", 0, 0, group=(0, 0), ranks=np.arange(64))
        _, between = regrouped.legs("dispatch", 0, 0, group=(0, 0), ranks=np.arange(64))
        away = np.arange(64)[:, None] // 8 != np.arange(64) // 8
        assert between.sum() == copies[away].sum()
        assert between.sum(axis=0).tolist() == (copies * away).sum(axis=0).tolist()
        assert (between > 0).sum(axis=0).max() <= 7
        assert (copies > 0).sum(axis=0).max() > 40

    def test_a_trace_and_loads(self, tmp_path: Path) -> None:
        trace, loads = tmp_path / "trace.csv", tmp_path / "loads.csv"
        trace.write_text("0,1\n2,3\n0,2\n")
        loads.write_text(",".join(["8", *["1"] * 7]))
        job = TrainingJob(
            model={**MODEL, "experts": {"count": 8, "top_k": 2, "ffn": 32}},  # type: ignore[arg-type]
            sequence=6,
            global_batch=4,
            parallelism=Parallelism(dp=4, ep=4),
        )
        server_of = np.zeros(4, dtype=np.int64)
        routes = TokenRoutes(job=job, router=Router(choice="trace", file=str(trace)), server_of=server_of)
        (out,) = routes.legs("dispatch", 0, 0, group=(0, 0), ranks=np.arange(4))
        assert out.tolist() == [[6, 6, 0, 0]] * 4
        routes = TokenRoutes(job=job, router=Router(choice="loads", file=str(loads)), server_of=server_of)
        assert routes.weights.tolist() == pytest.approx([8 / 15, *[1 / 15] * 7])
        trace.write_text("0,9\n")
        with pytest.raises(SpecError, match="0 to 7"):
            TokenRoutes(job=job, router=Router(choice="trace", file=str(trace)), server_of=server_of)

    @staticmethod
    def routes(*, tokens: int, router: Router) -> TokenRoutes:
        job = TrainingJob(
            model="deepseek-v3",
            sequence=tokens,
            global_batch=64,
            dispatch="fp8",
            parallelism=Parallelism(dp=64, ep=64),
        )
        return TokenRoutes(job=job, router=router, server_of=np.arange(64) // 8)


class TestStorage:
    def test_storage_has_a_class_of_its_own(self) -> None:
        classes = [{"name": "data"}, {"name": "slow"}, {"name": "control", "priority": 1}]
        storage = [
            {
                "kind": "batches",
                "hosts": "host[67]",
                "rate": "8Gbps",
                "part": "10KB",
                "traffic_class": "slow",
            },
            {"kind": "checkpoint", "hosts": "host[67]", "size": "100KB", "traffic_class": "slow"},
        ]
        entry = entry_of({"dp": 4}, steps=2, storage=storage)
        report = run_step(scenario_of(entry, switch={"classes": classes}), progress=False)
        connections = report.result.connections
        stored = np.isin(connections["source"], ["host6", "host7"])
        stored |= np.isin(connections["destination"], ["host6", "host7"])
        assert set(connections["traffic_class"][stored]) == {"slow"}
        assert set(connections["traffic_class"][~stored]) == {"data"}
        written = connections["size_bytes"][stored & np.isin(connections["destination"], ["host6", "host7"])]
        assert written.sum() == 2 * 4 * 100_000 + 2 * 4 * 64
        assert (report.communication["exposed_ps"][report.communication["dimension"] == "storage"] > 0).all()

    def test_asynchronous_checkpoints_cost_their_copy(self) -> None:
        plain = entry_of({"dp": 4}, steps=3)
        how = {"kind": "checkpoint", "hosts": "host7", "size": "1MB", "copy_rate": "80Gbps", "rate": "8Gbps"}
        with_it = plain | {"storage": [{**how, "mode": "asynchronous"}]}
        each = [run_step(scenario_of(one), progress=False).steps["duration_ps"] for one in (plain, with_it)]
        assert (each[1][:1] - each[0][:1]).tolist() == pytest.approx([10**8], rel=1e-3)

    def test_storage_hosts_have_no_ranks(self) -> None:
        entry = entry_of({"dp": 4}, storage=[{"kind": "checkpoint", "hosts": "host2"}])
        with pytest.raises(SpecError, match=r"storage\[0\].hosts.*hosts without a rank"):
            fabric.run(scenario_of(entry), progress=False)


class TestJobs:
    def test_a_job_of_higher_priority_takes_what_it_took_alone(self) -> None:
        classes = [{"name": "low"}, {"name": "high", "priority": 1}, {"name": "control", "priority": 2}]
        job = {"model": {**MODEL, "hidden": 512, "ffn": 2048}}
        first = entry_of({"dp": 4}, job=job, name="main", traffic_class="high", forward="10us")
        second = entry_of({"dp": 4}, job=job, name="small", traffic_class="low", forward="10us")
        transport = {"data_class": "low", "control_class": "control", "congestion": {"kind": "none"}}
        how: dict[str, Any] = {"switch": {"classes": classes}, "transport": transport}
        alone = run_step(scenario_of(first, **how), progress=False).steps["duration_ps"][0]
        both = run_step(scenario_of(first, second, **how), progress=False).steps
        assert both["job"].tolist() == ["main", "small"]
        assert both["duration_ps"][0] == pytest.approx(alone, rel=0.01)
        assert both["duration_ps"][1] > 1.2 * alone

    def test_scale_loss(self) -> None:
        table = scale_loss(scenario_of(entry_of({"dp": 2})), [2, 4, 8], progress=False)
        assert table["ranks"].tolist() == [2, 4, 8]
        assert table["scale_efficiency"][0] == 1
        assert (np.diff(table["scale_efficiency"]) < 0).all()


class TestReport:
    @pytest.fixture
    def report(self) -> StepReport:
        return run_step(scenario_of(entry_of({"tp": 2, "pp": 2, "dp": 2}, steps=2)), progress=False)

    def test_a_saved_report_says_the_same(self, report: StepReport, tmp_path: Path) -> None:
        report.result.save(tmp_path / "result")
        again = StepReport(load(tmp_path / "result"))
        assert str(again) == str(report)
        assert StepReport.load(tmp_path / "result").efficiency() == report.efficiency()

    def test_it_names_what_matters(self, report: StepReport) -> None:
        text = str(report)
        for word in ("efficiency", "compute", "pipeline bubble", "TP", "PP", "DP", "critical path", "links"):
            assert word in text
        assert max(map(len, text.split("\n"))) <= 140

    def test_runs_say_it_too(self, report: StepReport) -> None:
        summary = report.result.summary
        assert summary["training"][0]["steps"] == 2
        assert summary["collectives"] == []
        assert "training  " in str(summary)

    def test_pictures_of_few_and_of_many_ranks(self, report: StepReport) -> None:
        assert to_image(timeline(report.result)).startswith(b"\x89PNG")
        assert to_image(timeline(report.result, steps=(1, 1), ranks=[0, 4])).startswith(b"\x89PNG")
        many = run_step(scenario_of(entry_of({"pp": 4, "dp": 12}, job={"global_batch": 48}), hosts=48))
        assert to_image(timeline(many.result)).startswith(b"\x89PNG")
        with pytest.raises(FabricError, match="no training job 'other'"):
            timeline(report.result, job="other")
        with pytest.raises(FabricError, match="no steps 7 to 8"):
            timeline(report.result, steps=(7, 8))

    def test_results_without_training_have_no_report(self) -> None:
        scenario = fabric.Scenario(
            topology=fabric.SingleSwitch(hosts=2), traffic=[fabric.Permutation(size="1KB")]
        )
        result = fabric.run(scenario, progress=False)
        with pytest.raises(FabricError, match="no training job"):
            StepReport(result)
        with pytest.raises(FabricError, match="no training job"):
            timeline(result)
        with pytest.raises(SpecError, match="no training job"):
            run_step(scenario)

    def test_a_step_that_is_cut_short(self) -> None:
        entry = entry_of({"pp": 2}, steps=4)
        report = run_step(scenario_of(entry, run={"until": "10ms"}), progress=False)
        assert len(report.steps) == 1
        assert "UNTIL" in report.result.status
        assert "steps" in str(report)
