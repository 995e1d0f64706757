"""What the headers of the shipped training scenarios say, held to what these give."""

from __future__ import annotations

import numpy as np
import pytest
from support_scenarios import EXPECTED, part_ms, result_of, script, step_ms

from fabric.step import StepReport, run_step
from fabric.training import TokenRoutes, choose_experts, expert_weights

WAYS = ("dispatch", "combine")


def exchange_us(name: str, what: str) -> float:
    """Mean time of the first exchange of each micro-batch, forward, from its last rank's entry on."""
    tasks = result_of(name).tables["tasks"]
    own = tasks[tasks["what"] == what]
    operations = list(dict.fromkeys(own["operation"].tolist()))
    layers, micro_batches = 2, 2
    chosen = operations[:: 2 * layers]
    assert len(chosen) == micro_batches
    each = [own[own["operation"] == one] for one in chosen]
    return float(np.mean([one["left_ps"].max() - one["ready_ps"].max() for one in each])) / 1e6


class TestTrainingAnswers:
    """What the headers of training scenarios say."""

    def test_a_pipeline_pays_its_messages(self) -> None:
        frames, rest = divmod(2 * 2048 * 4096, 4096)
        message_ms = (frames * 4178 * 8 / 400e3 + 0.5 + 1.5 + 0.08356) / 1e3 + rest
        assert step_ms("pipeline_1f1b as GPipe") == pytest.approx(138 + 14 * message_ms, rel=1e-4)
        assert step_ms("pipeline_1f1b") == pytest.approx(151.75, abs=5e-3)
        assert part_ms("pipeline_1f1b", "compute_ps") == 96

    def test_one_late_rank_makes_the_step_late_by_that(self) -> None:
        """By its pause and the network's difference, exactly; the ideal step by its pause alone."""
        paused, plain = (run_step(script.CASES[name].load()) for name in ("straggler", "straggler without"))
        pause_ps = 500 * 10**9
        late_ps = paused.steps["duration_ps"] - plain.steps["duration_ps"]
        assert (paused.ideal["duration_ps"] - plain.ideal["duration_ps"]).tolist() == [pause_ps, 0]
        parts, others = self.critical_ps(paused), self.critical_ps(plain)
        assert parts["pause"] == pause_ps
        assert parts["compute"] == others["compute"] == 242 * 10**9
        assert late_ps[0] == pause_ps + parts["dp"] - others["dp"]
        assert parts["dp"] - others["dp"] == -255_360
        assert abs(late_ps[1]) < 3 * 10**6
        text = str(paused)
        assert "critical path  step 0: pause 500ms (66.8 %), compute 242ms" in text
        assert "rank 5 on host5 for 100 % of it" in text
        path = paused.critical[paused.critical["step"] == 0]
        assert path["rank"][path["what"] == "pause"].tolist() == [5]

    @staticmethod
    def critical_ps(report: StepReport) -> dict[str, int]:
        """The critical path of the first step by what it is: the pause, compute, each dimension."""
        parts: dict[str, int] = {}
        for row in report.critical[report.critical["step"] == 0]:
            name = "pause" if row["what"] == "pause" else str(row["dimension"])
            parts[name] = parts.get(name, 0) + int(row["duration_ps"])
        return parts

    def test_experts_dealt_and_drawn(self) -> None:
        found = [step_ms(f"moe_uniform ({kind})") for kind in ("dealt", "uniform", "Zipf")]
        assert found == pytest.approx([8.67, 8.90, 22.54], abs=5e-3)

    def test_a_hot_expert_and_its_remedies(self) -> None:
        kinds = ("hot", "balanced", "capacity 1.25", "replicas", "regrouped")
        found = [step_ms(f"moe_hot_expert ({kind})") for kind in kinds]
        assert found == pytest.approx([35.57, 8.67, 8.75, 9.03, 37.63], abs=5e-3)
        queues = [EXPECTED[f"moe_hot_expert ({kind})"]["queue_peak_bytes"] for kind in kinds]
        assert [queues[0], queues[4]] == pytest.approx([21.6e6, 8.8e6], rel=5e-3)
        ports = result_of("moe_hot_expert (hot)").ports
        assert ports["link"][np.argmax(ports["queue_peak_bytes"])] == "leaf0->host0"
        assert EXPECTED["moe_hot_expert (hot)"]["paused_ps"] > 0
        assert EXPECTED["moe_hot_expert (regrouped)"]["paused_ps"] == 0

    def test_copies_to_servers(self) -> None:
        kinds = ("expert", "rank", "server", "server, 16 chunks")
        found = [step_ms(f"moe_node_limited ({kind})") for kind in kinds]
        assert found == pytest.approx([51.96, 49.85, 42.15, 36.44], abs=5e-3)

    @pytest.mark.slow
    def test_normal_kernels(self) -> None:
        """Over both legs NICs carry 43 to 51 GB/s (DeepEP, 16 and 64 ranks).

        DeepEP counts the copies for a token's own server, too: 51 and 50 GB/s for 64 ranks, of which NICs
        carry seven eighths. Counted so, ours are 6 to 8 % faster: these NICs have no kernels to wait for.
        """
        name, ranks, tokens = "moe_node_limited (server, 16 chunks)", np.arange(64), 4096
        (entry,) = script.CASES[name].load().traffic
        routes = TokenRoutes(job=entry.job, router=entry.router, server_of=ranks // 8)
        between = routes.legs("dispatch", 0, 0, group=(0, 0), ranks=ranks)[0]
        weights = expert_weights("uniform", experts=256)
        choices = [
            choose_experts(weights, tokens=tokens, top_k=8, groups=8, groups_per_token=4, rank=rank)
            for rank in range(4)
        ]
        servers = np.mean([len({one // 32 for one in row}) for row in np.concatenate(choices).tolist()])
        tasks = result_of(name).tables["tasks"]
        operations = list(dict.fromkeys(tasks["operation"][tasks["dimension"] == "ep"].tolist()))
        for what, way, token, published in zip(WAYS, operations, (7392, 14336), (51e9, 50e9), strict=False):
            own = tasks[tasks["operation"] == way]
            assert set(own["what"].tolist()) == {what}
            seconds = (own["left_ps"].max() - own["ready_ps"].min()) / 1e12
            carried = between.sum() / 64 * token / seconds
            assert 43e9 < carried < 51e9
            assert 0.95 < carried / (50e9 * 4096 / 4178) < 1
            assert 1.06 < servers * tokens * token / seconds / published < 1.08

    def test_kernels_for_low_latency(self) -> None:
        """DeepEP's times are the network's and a constant of its kernels, the same for 8 to 64 ranks."""
        published = {8: (77, 114), 16: (118, 195), 32: (155, 273), 64: (173, 314)}
        found = {
            ranks: [exchange_us(f"moe_low_latency ({ranks})", what) for what in WAYS] for ranks in published
        }
        assert found[64] == pytest.approx([147.6, 286.4], abs=0.05)
        for ranks, times in published.items():
            for way, time in enumerate(times):
                kernels = published[8][way] - found[8][way]
                assert 25 < kernels < 35
                assert found[ranks][way] + kernels == pytest.approx(time, rel=0.05)
        counted = [size / time / 1e3 for size, time in zip((7_585_792, 14_680_064), found[64], strict=True)]
        assert counted == pytest.approx([51.4, 51.3], abs=0.05)
        exposed = [part_ms(f"moe_low_latency ({how})", "exposed_ps") for how in ("64", "64, overlapped")]
        assert exposed == pytest.approx([3.50, 0.71], abs=5e-3)

    def test_compression_wins_until_its_break_even(self) -> None:
        dense = step_ms("topk_compression (dense)")
        won = {
            share: dense - step_ms(f"topk_compression (Top-K {share} %)")
            for share in ("1.25", "5", "10", "11", "12.5")
        }
        assert won["1.25"] / dense == pytest.approx(0.42, abs=5e-3)
        assert won["11"] == pytest.approx(0.81, abs=5e-3)
        assert won["12.5"] == pytest.approx(-0.56, abs=5e-3)
        sent = [
            result_of(f"topk_compression ({kind})").connections["size_bytes"].sum()
            for kind in ("dense", "Top-K 1.25 %")
        ]
        assert sent[0] / sent[1] == pytest.approx(10, rel=1e-3)

    def test_packing(self) -> None:
        found = [step_ms(f"sequence_packing ({how})") for how in ("none", "in_order", "longest_first")]
        assert found == pytest.approx([836.6, 163.1, 155.4], abs=0.05)
        waits = [part_ms(f"sequence_packing ({how})", "waiting_ps") for how in ("in_order", "longest_first")]
        assert waits == pytest.approx([6.16, 0.39], abs=5e-3)

    def test_an_asynchronous_checkpoint_costs_its_copy(self) -> None:
        kinds = ("none", "synchronous", "asynchronous", "at 50 Gbit/s")
        mean = [
            (step_ms(f"checkpoint_burst ({kind})", 0) + step_ms(f"checkpoint_burst ({kind})", 1)) / 2
            for kind in kinds
        ]
        assert mean == pytest.approx([30.87, 41.86, 32.87, 32.87], abs=5e-3)
        assert mean[2] - mean[0] == pytest.approx(2.0, abs=1e-6)

    def test_oversubscription_of_a_step(self) -> None:
        one, more, most = (step_ms(f"oversubscribed_step ({ratio})") for ratio in (1.0, 1.2, 1.5))
        assert [more / one, most / one] == pytest.approx([1.05, 1.23], abs=5e-3)

    def test_a_step_of_the_shape_of_a_large_model(self) -> None:
        parts = ("duration_ps", "compute_ps", "bubble_ps", "exposed_ps")
        found = [part_ms("llama3_405b_step", part) for part in parts]
        assert found == pytest.approx([139.3, 39.9, 50.7, 48.6], abs=0.05)
