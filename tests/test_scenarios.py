"""The shipped scenarios: every one gives what `scenarios/expected.json` says, bit for bit, and small
versions of them give the same with the readable engine.

`python scenarios/update_expected.py` writes that file anew and prints what changed.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import fabric
from fabric.cli import main
from fabric.result import Result
from fabric.step import StepReport

FOLDER = Path(__file__).resolve().parent.parent / "scenarios"


def _load_script(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


script = _load_script(FOLDER / "update_expected.py")
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
FILES = sorted(path.name for path in FOLDER.glob("*.toml"))


@functools.cache
def result_of(name: str) -> Result:
    return fabric.run(script.CASES[name].load(), progress=False)


def longest_ms(name: str, pattern: str = "*") -> float:
    return float(result_of(name).flows.where(pattern=pattern)["fct_ps"].max()) / 1e9


def slowdown(name: str, percentile: float) -> float:
    of = result_of(name).flows["slowdown"]
    return float(np.percentile(of, percentile, method="inverted_cdf"))


def operation_ms(name: str) -> float:
    """What the only operation of a case took."""
    (row,) = result_of(name).operations
    return float(row["duration_ps"]) / 1e9


def trains(scenario: fabric.Scenario) -> bool:
    return any(isinstance(entry, fabric.Training) for entry in scenario.traffic)


def step_ms(name: str, step: int = 0) -> float:
    """Time of a step of a case, from `expected.json`, which every case is held to."""
    return float(EXPECTED[name]["steps"][step]["duration_ps"]) / 1e9


def part_ms(name: str, part: str, step: int = 0) -> float:
    return float(EXPECTED[name]["steps"][step][part]) / 1e9


TRUNKS = ("leaf->spine", "spine->leaf")

LONG = {
    **dict.fromkeys(
        (
            *("websearch without DCQCN", "link_failure_1024", "moe_node_limited (server)"),
            *(f"oversubscribed_step ({ratio})" for ratio in (1.0, 1.2, 1.5)),
        ),
        pytest.mark.slow,
    ),
    **dict.fromkeys(
        ("llama3_405b_step", "moe_node_limited (expert)", "moe_node_limited (rank)"), pytest.mark.exhaustive
    ),
}
"""Cases that take more than 5 s, or up to a minute."""

MARKED = [pytest.param(name, marks=LONG.get(name, ())) for name in script.CASES]


class TestExpected:
    @pytest.mark.parametrize("name", MARKED)
    def test_gives_what_is_checked_in(self, name: str) -> None:
        assert script.expected_of(script.CASES[name], result_of(name)) == EXPECTED[name], (
            "behaviour changed; if that is meant, run python scenarios/update_expected.py and say why"
        )

    def test_every_file_is_a_case_and_every_case_is_checked_in(self) -> None:
        assert {case.file for case in script.CASES.values()} == set(FILES)
        assert list(EXPECTED) == list(script.CASES)

    @pytest.mark.parametrize("file", FILES)
    def test_opens_with_its_question_and_the_number_to_expect(self, file: str) -> None:
        text = (FOLDER / file).read_text(encoding="utf-8")
        assert text.startswith("# ")
        scenario = fabric.load_scenario(FOLDER / file)
        commands = ("step",) if trains(scenario) else ("run", "failures")
        assert any(f"fabric {command} scenarios/{file}" in text for command in commands)
        assert scenario.name == file.removesuffix(".toml")
        assert scenario.question.endswith("?")
        assert any(letter.isdigit() for letter in scenario.expect)


class TestAnswers:
    """What the headers say about the runs, as far as it is more than a number of `expected.json`."""

    def test_an_incast_takes_its_floor_plus_the_idle_time_of_its_port(self) -> None:
        floor_ms, way_ms = 64 * (488 * 83.56 + 24.68) / 1e6, 0.004
        assert longest_ms("incast_pfc_only", "incast") == pytest.approx(floor_ms + way_ms, abs=5e-4)
        result = result_of("incast")
        (port,) = result.ports.where(link="leaf0->host0")
        idle_ms = (1 - port["utilisation"]) * result.duration_ps / 1e9
        assert longest_ms("incast", "incast") == pytest.approx(floor_ms + idle_ms, abs=0.005)
        assert longest_ms("incast", "incast") == pytest.approx(2.800, abs=5e-4)

    @pytest.mark.parametrize(
        ("name", "least", "most"),
        [("incast", 12.6, 45.8), ("incast_pfc_only", 23.0, 51.2), ("incast_lossy", 9.2, 17.3)],
    )
    def test_victims_of_an_incast(self, name: str, least: float, most: float) -> None:
        victims = result_of(name).flows.where(pattern="incast-victims")["slowdown"]
        assert [victims.min(), victims.max()] == pytest.approx([least, most], abs=0.05)

    def test_a_clock_of_nanoseconds_and_short_headers_hide_four_per_cent(self) -> None:
        ns3, clock, frames, own = (
            longest_ms(f"ns3_incast ({name})")
            for name in ("ns-3", "exact clock", "and Ethernet frames", "all as in fabric")
        )
        assert ns3 == pytest.approx(0.668_091 - 2 * 0.001_004, abs=1e-9)
        assert clock / ns3 == pytest.approx(83.84 / 83, abs=2e-4)
        assert frames / clock == pytest.approx((1000 + 62 + 20) / 1048, abs=2e-4)
        assert own == frames

    def test_windows_keep_queues_short_without_costing_time(self) -> None:
        for pattern, size in (("incast", 0.66), ("permutation", 0.1)):
            free, held = (f"cc_shootout ({pattern}, {control})" for control in ("none", "window"))
            assert longest_ms(held) == longest_ms(free)
            assert EXPECTED[held]["queue_peak_bytes"] < size * EXPECTED[free]["queue_peak_bytes"]
            assert EXPECTED[held]["paused_ps"] == 0

    def test_a_loss_costs_a_synchronous_step_a_time_out(self) -> None:
        flows = result_of("incast_lossy").flows
        waited = flows[flows["timeouts"] > 0]
        assert len(waited) == 7
        assert waited["fct_ps"].min() > flows[flows["timeouts"] == 0]["fct_ps"].max()
        assert longest_ms("incast_lossy") / longest_ms("incast") == pytest.approx(2.12, abs=0.01)

    def test_lossless_classes_lose_nothing(self) -> None:
        """Unless something fails."""
        whole = [name for name, case in script.CASES.items() if not case.load().failures]
        assert [name for name in whole if EXPECTED[name]["drops"]] == ["incast_lossy"]

    @pytest.mark.parametrize(
        ("name", "median", "slow", "last"),
        [("permutation_1024", 1.98, 4.83, 5.78), ("permutation_1024 with DCQCN", 5.45, 9.68, 12.53)],
    )
    def test_collisions_of_a_permutation(self, name: str, median: float, slow: float, last: float) -> None:
        found = [slowdown(name, percentile) for percentile in (50, 99, 100)]
        assert found == pytest.approx([median, slow, last], abs=0.006)

    @pytest.mark.parametrize(
        ("name", "median", "slow", "last"),
        [
            ("load_balancing", 1.08, 1.12, 1.13),
            ("load_balancing in turn", 1.20, 1.39, 1.46),
            ("load_balancing adaptive", 1.07, 1.12, 1.12),
            ("load_balancing by flowlets", 1.96, 3.91, 5.80),
            ("load_balancing over 8 queue pairs", 1.65, 2.09, 2.10),
        ],
    )
    def test_paths_of_a_permutation(self, name: str, median: float, slow: float, last: float) -> None:
        found = [slowdown(name, percentile) for percentile in (50, 99, 100)]
        assert found == pytest.approx([median, slow, last], abs=0.006)
        assert EXPECTED[name]["retransmitted"] == 0

    def test_the_share_of_empty_uplinks_is_that_of_independent_hashing(self) -> None:
        ports = result_of("permutation_1024").ports.where(tier="leaf->spine")
        data = ports["tx_bytes"] > 10**6
        assert 1 - data.mean() == pytest.approx((1 - 1 / 32) ** 32, abs=3 * np.sqrt(0.36 * 0.64 / len(ports)))

    def test_oversubscription_costs_its_full_proportion(self) -> None:
        floor_ms = longest_ms("oversubscription 1:1")
        assert floor_ms == pytest.approx(0.704, abs=5e-4)
        assert longest_ms("oversubscription 1.2:1") / floor_ms == pytest.approx(1.2, rel=0.01)
        assert longest_ms("oversubscription 1.5:1") / floor_ms == pytest.approx(1.5, rel=0.01)
        uplinks = result_of("oversubscription 1:1").ports.where(tier="leaf->spine")["utilisation"]
        assert uplinks.max() / uplinks.mean() == pytest.approx(1.17, abs=0.01)

    def test_websearch_offers_its_load_and_is_slowed_down(self) -> None:
        flows = result_of("websearch").flows
        offered = flows["size_bytes"].sum() * 8 / (128 * 400e9 * 5e-3)
        assert offered == pytest.approx(0.6, rel=0.03)
        found = [slowdown("websearch", percentile) for percentile in (50, 99)]
        assert found == pytest.approx([2.07, 23.1], rel=0.005)
        short = flows["slowdown"][flows["size_bytes"] <= 10_000]
        assert np.median(short) == pytest.approx(1.10, abs=0.01)

    @pytest.mark.parametrize(
        ("name", "victim_gbps", "h1_gbps", "other_gbps"),
        [("victim", 96.7, 96.6, 99.8), ("victim with round robin", 99.0, 98.0, 98.0)],
    )
    def test_a_victim_falls_to_the_rate_of_its_neighbour(
        self, name: str, victim_gbps: float, h1_gbps: float, other_gbps: float
    ) -> None:
        flows = result_of(name).flows
        goodput = dict(zip(flows["name"].tolist(), (flows["goodput_bps"] / 1e9).tolist(), strict=True))
        assert goodput.pop("victim") == pytest.approx(victim_gbps, abs=0.1)
        assert goodput.pop("h1") == pytest.approx(h1_gbps, abs=0.1)
        assert list(goodput.values()) == pytest.approx([other_gbps] * 3, abs=0.1)

    def test_a_ring_takes_its_steps_and_the_latency_of_its_ways(self) -> None:
        """Serialisation, with ACKs of the other direction; then the way, most often below the leaf."""
        (ring,) = result_of("allreduce_ring_64").operations
        port_us = (61 * 4178 + 226 + 62 * 84) * 8 / 400e3
        leaf_us, spine_us = 2 * 0.5 + 0.5 + 0.08356, 4 * 0.5 + 3 * 0.5 + 0.1
        assert ring["duration_ps"] / 1e6 == pytest.approx(
            126 * port_us + 118 * leaf_us + 8 * spine_us, rel=5e-3
        )
        shuffled = result_of("allreduce_ring_64 in a drawn order").operations[0]
        assert shuffled["duration_ps"] / ring["duration_ps"] == pytest.approx(1.486, abs=0.005)

    def test_a_sum_in_switches_takes_a_port_once(self) -> None:
        """The vector once each way, not 2 (n-1)/n times: more than any algorithm between hosts can do."""
        vector_us = -(-16 * 10**6 // 4096) * 4178 * 8 / 400e3
        in_network, ring, whole = (
            1e3 * operation_ms(f"allreduce_in_network{how}") for how in ("", ", ring", ", whole")
        )
        assert (in_network, whole) == pytest.approx((343.2, 1129.7), abs=0.1)
        assert vector_us < in_network < 1.06 * vector_us
        assert in_network < 2 * 63 / 64 * vector_us < ring

    def test_a_parameter_server_takes_what_its_port_takes(self) -> None:
        """63 vectors in, 63 out: without congestion control hardly more, and an eighth more with it."""
        frames, last_bytes = divmod(10**6, 4096)
        vector_us = (frames * 4178 + last_bytes + 82) * 8 / 400e3
        assert operation_ms("allreduce_incast") == pytest.approx(2.902, abs=5e-4)
        assert operation_ms("allreduce_incast") / (2 * 63 * vector_us / 1e3) == pytest.approx(1.127, abs=2e-3)
        assert operation_ms("allreduce_incast, direct") == pytest.approx(0.0518, abs=5e-5)
        ports = result_of("allreduce_incast").ports
        assert ports.where(link="leaf0->host0")["queue_peak_bytes"][0] == 42_343_444
        paused = ports["paused_ps"] > 0
        assert set(ports["tier"][paused]) == {"spine->leaf"}
        assert paused.sum() == 8

    @pytest.mark.parametrize(
        ("name", "flows"), [("allreduce_shuffled", 3), ("allreduce_shuffled in order", 1), ("two_jobs", 3)]
    )
    def test_flows_that_share_an_uplink(self, name: str, flows: int) -> None:
        """All flows of a ring carry the same, so the fullest uplink says how many it has."""
        result = result_of(name)
        trunks = np.concatenate([result.ports.where(tier=tier)["tx_bytes"] for tier in TRUNKS])
        one = result.ports.where(tier="host->leaf")["tx_bytes"]
        assert trunks.max() / np.median(one) == pytest.approx(flows, rel=0.05)

    def test_a_ring_goes_at_the_pace_of_its_most_crowded_link(self) -> None:
        in_order, shuffled = (operation_ms(f"allreduce_shuffled{way}") for way in (" in order", ""))
        assert shuffled / in_order == pytest.approx(2.918, abs=5e-3)

    def test_an_all_to_all_uses_its_links_best_at_once(self) -> None:
        names = ("alltoall_64", "alltoall_64 pair by pair", "alltoall_64 by Bruck")
        assert [operation_ms(name) for name in names] == pytest.approx([0.3666, 0.9259, 2.8194], abs=1e-4)
        ports = result_of("alltoall_64").ports
        fullest = max(ports.where(tier=tier)["tx_bytes"].max() for tier in TRUNKS)
        assert fullest / ports.where(tier="spine->leaf")["tx_bytes"].mean() == pytest.approx(1.45, abs=0.01)

    def test_popular_ranks_hold_up_the_others(self) -> None:
        result = result_of("alltoallv_skewed")
        done_ms = np.sort(result.ranks["left_ps"] / 1e9)
        assert done_ms[31] == pytest.approx(0.155, abs=5e-4)
        assert np.percentile(done_ms, 90) == pytest.approx(1.32, abs=5e-3)
        assert done_ms[-1] == pytest.approx(5.110, abs=5e-4)
        assert operation_ms("alltoallv_skewed, all alike") == pytest.approx(0.372, abs=5e-4)
        received = result.connections
        hot = received["size_bytes"][received["destination"] == "host7"].sum()
        assert hot == pytest.approx(215.2e6, rel=1e-3)
        paused = result.ports["paused_ps"] > 0
        assert (paused.sum(), (result.ports["tier"][paused] == "host->leaf").sum()) == (55, 20)

    def test_two_rings_lose_three_tenths(self) -> None:
        together, apart = (
            result_of("two_jobs").operations,
            result_of("two_jobs, one after the other").operations,
        )
        assert together["job"].tolist() == apart["job"].tolist() == ["even", "odd"]
        assert (together["busbw_bps"] / 1e9).tolist() == pytest.approx([104.1, 109.1], abs=0.1)
        assert (apart["busbw_bps"] / 1e9).tolist() == pytest.approx([155.2, 157.1], abs=0.1)

    @pytest.mark.parametrize(
        ("name", "ms"),
        [
            ("spine_down_allreduce", 8.462),
            ("spine_down_allreduce, healthy", 7.066),
            ("spine_down_allreduce, resilient", 7.638),
            ("spine_down_allreduce, end hosts", 10.619),
            ("link_flap", 21.191),
            ("link_flap, held down", 8.496),
            ("link_flap, no rerouting", 16.051),
            ("corrupting_optic", 7.339),
            ("corrupting_optic, taken out", 8.411),
            ("corrupting_optic, selective repeat", 7.408),
        ],
    )
    def test_a_ring_through_failures(self, name: str, ms: float) -> None:
        assert operation_ms(name) == pytest.approx(ms, abs=5e-4)

    def test_a_storm_stops_one_flow_in_eight(self) -> None:
        others = result_of("pfc_storm").flows.where(pattern="*")
        times_ms = others["fct_ps"][others["destination"] != "host0"] / 1e9
        assert (len(times_ms), (times_ms > 5).sum()) == (63, 8)
        assert times_ms.max() == pytest.approx(6.083, abs=5e-4)
        assert times_ms[times_ms < 5].max() <= 1.47
        healthy = result_of("pfc_storm, healthy").flows["fct_ps"] / 1e9
        assert healthy.max() <= 1.47

    def test_a_class_or_a_domain_contains_a_storm(self) -> None:
        training = [
            result_of(f"isolation ({how})").operations.where(job="training")["duration_ps"][0] / 1e9
            for how in ("shared", "own class", "own domain")
        ]
        assert training == pytest.approx([11.687, 1.404, 1.396], abs=5e-4)

    def test_dual_planes_survive_at_half(self) -> None:
        first, second = result_of("dual_plane").operations["left_ps"] / 1e9
        healthy = result_of("dual_plane, healthy").operations["left_ps"] / 1e9
        assert second - first == pytest.approx(10.491, abs=5e-4)
        assert healthy[1] - healthy[0] == pytest.approx(5.471, abs=1e-3)
        assert (healthy[1] - healthy[0]) / (second - first) == pytest.approx(0.52, abs=5e-3)


EARLY = ("failures[0].at=10us", "recovery.isolate=20us", "recovery.convergence=20us", "recovery.suspect=5us")


class TestTrainingAnswers:
    """What the headers of training scenarios say."""

    def test_a_pipeline_pays_its_messages(self) -> None:
        frames, rest = divmod(2 * 2048 * 4096, 4096)
        message_ms = (frames * 4178 * 8 / 400e3 + 0.5 + 1.5 + 0.08356) / 1e3 + rest
        assert step_ms("pipeline_1f1b as GPipe") == pytest.approx(138 + 14 * message_ms, rel=1e-4)
        assert step_ms("pipeline_1f1b") == pytest.approx(151.75, abs=5e-3)
        assert part_ms("pipeline_1f1b", "compute_ps") == 96

    def test_one_late_rank_makes_the_step_late_by_that(self) -> None:
        late = step_ms("straggler", 1) - step_ms("straggler without", 1)
        assert late == pytest.approx(500, rel=1e-5)
        report = StepReport(result_of("straggler"))
        assert "rank 5 on host5 for 100 % of it" in str(report) or "rank 5 on host5 for 99" in str(report)
        path = report.critical[report.critical["step"] == 1]
        assert path["rank"][path["what"] == "pause"].tolist() == [5]

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
        found = [step_ms(f"moe_node_limited ({kind})") for kind in ("expert", "rank", "server")]
        assert found == pytest.approx([51.96, 49.85, 42.15], abs=5e-3)

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


LEAF_SPINE = ("topology.leaves=3", "topology.spines=2", "topology.hosts_per_leaf=4", "switch.buffer=4MB")
THRESHOLDS = ("switch.ecn.kmin=50KB", "switch.ecn.kmax=200KB")
BUSY = ("topology.oversubscription=4", "traffic[0].duration=70us", "run.seed=4")
INCAST = (*LEAF_SPINE, "traffic[0].senders=7", "traffic[0].size=600KB", "traffic[0].victims=1")

MODEL = {"layers": 4, "hidden": 64, "ffn": 128, "heads": 4, "vocabulary": 256}


def _narrow(**changes: object) -> tuple[str, ...]:
    """Settings for a narrow model, whose steps the readable engine can run."""
    model = ", ".join(f"{name} = {value}" for name, value in {**MODEL, **changes}.items())
    return (f"traffic[0].job.model={{{model}}}", "traffic[0].job.sequence=256")


NARROW = _narrow()
NARROW_EXPERTS = (
    *_narrow(layers=1, experts="{ count = 64, top_k = 2, ffn = 64 }"),
    *("traffic[0].job.parallelism={ dp = 8, ep = 8 }", "traffic[0].job.global_batch=8"),
)
RAILS = ("topology.servers=2", "topology.accelerators_per_server=4", "topology.spines=1")

SMALL = {
    "incast": (*INCAST, *THRESHOLDS),
    "incast_pfc_only": INCAST,
    "incast_lossy": (*INCAST, *THRESHOLDS, "switch.buffer=512KB", "transport.reliability.rto=200us"),
    "permutation_1024": (*LEAF_SPINE, *THRESHOLDS, "traffic[0].size=300KB", "switch.buffer=2MB"),
    "permutation_1024 with DCQCN": (*LEAF_SPINE, *THRESHOLDS, "traffic[0].size=300KB"),
    "load_balancing": (*LEAF_SPINE, "traffic[0].size=300KB"),
    "load_balancing in turn": (*LEAF_SPINE, "traffic[0].size=300KB"),
    "load_balancing adaptive": (*LEAF_SPINE, "traffic[0].size=300KB"),
    "load_balancing over 8 queue pairs": (*LEAF_SPINE, "traffic[0].size=300KB"),
    "oversubscription 1.2:1": (*LEAF_SPINE, *THRESHOLDS, "traffic[0].size=64KB"),
    "oversubscription 1.5:1 with DCQCN": (*LEAF_SPINE, *THRESHOLDS, "traffic[0].size=64KB"),
    "websearch": (*LEAF_SPINE, *THRESHOLDS, *BUSY),
    "victim": (*THRESHOLDS, *(f"traffic[0].flows[{flow}].size=1MB" for flow in range(5))),
    "victim with round robin": tuple(f"traffic[0].flows[{flow}].size=1MB" for flow in range(5)),
    "victim with DCQCN": (*THRESHOLDS, *(f"traffic[0].flows[{flow}].size=1MB" for flow in range(5))),
    "allreduce_ring_64": (*LEAF_SPINE, "traffic[0].size=500KB"),
    "allreduce_ring_64 in a drawn order": (*LEAF_SPINE, "traffic[0].size=500KB"),
    "allreduce_incast": (*LEAF_SPINE, "traffic[0].size=400KB"),
    "allreduce_in_network": (*LEAF_SPINE, "traffic[0].size=500KB"),
    "allreduce_shuffled": (*LEAF_SPINE, "traffic[0].size=500KB"),
    "allreduce_shuffled by flowlets": (*LEAF_SPINE, "traffic[0].size=500KB"),
    "alltoall_64": (*LEAF_SPINE, "traffic[0].size=500KB"),
    "alltoall_64 pair by pair": (*LEAF_SPINE, "traffic[0].size=500KB"),
    "alltoall_64 by Bruck": (*LEAF_SPINE, "traffic[0].size=500KB"),
    "alltoallv_skewed": (*LEAF_SPINE, "traffic[0].size=1MB"),
    "two_jobs": (*LEAF_SPINE, "traffic[0].size=500KB", "traffic[1].size=500KB"),
    "pfc_storm": (*LEAF_SPINE, "traffic[0].size=1MB", "failures[0].at=10us", "failures[0].lasts=300us"),
    "spine_down_allreduce": (*LEAF_SPINE, *EARLY, "traffic[0].size=500KB"),
    "spine_down_allreduce, resilient": (*LEAF_SPINE, *EARLY, "traffic[0].size=500KB"),
    "spine_down_allreduce, end hosts": (*LEAF_SPINE, *EARLY, "traffic[0].size=500KB"),
    "link_flap": (*LEAF_SPINE, *EARLY, "traffic[0].size=500KB", "failures[0].period=100us"),
    "corrupting_optic": (
        *(*LEAF_SPINE, EARLY[0], "traffic[0].size=1MB"),
        *("failures[0].link=leaf0->spine0", "failures[0].bit_error_rate=1e-6"),
    ),
    "isolation (own class)": (*LEAF_SPINE, *EARLY, "traffic[0].size=200KB", "traffic[1].size=400KB"),
    "dual_plane": (
        *("topology.leaves=4", "topology.spines=2", "topology.hosts_per_leaf=4", "traffic[0].size=500KB"),
        *(EARLY[0], 'failures[0].link="host5-leaf2"'),
    ),
    "pipeline_1f1b": ("topology.hosts=4", *NARROW, "traffic[0].job.parallelism.pp=4"),
    "pipeline_1f1b as DualPipe": ("topology.hosts=4", *NARROW, "traffic[0].job.parallelism.pp=4"),
    "straggler": (
        *("topology.hosts_per_leaf=2", *NARROW, "traffic[0].job.parallelism.dp=4", "traffic[0].bucket=100KB"),
        *("traffic[0].job.global_batch=8", "traffic[0].slowness[0].ranks=[3]"),
    ),
    "moe_hot_expert (hot)": (*RAILS, *NARROW_EXPERTS),
    "moe_hot_expert (regrouped)": (*RAILS, *NARROW_EXPERTS),
    "moe_hot_expert (replicas)": (*RAILS, *NARROW_EXPERTS),
    "topk_compression (Top-K 5 %)": NARROW,
    "topk_compression (8 bits)": NARROW,
    "sequence_packing (in_order)": (
        *("topology.hosts_per_leaf=2", *NARROW, "traffic[0].job.parallelism.dp=4"),
        *("traffic[0].job.global_batch=4", "traffic[0].packing.sequences=32"),
        *("traffic[0].packing.lengths=[32, 64, 128, 192, 256]", "traffic[0].bucket=100KB"),
    ),
}
"""Values that make a case small enough for the readable engine, and keep what it is about."""


class TestReadableEngine:
    @pytest.mark.parametrize("name", SMALL)
    def test_agrees_on_a_small_version(self, name: str) -> None:
        scenario = script.CASES[name].load(*SMALL[name])
        native = script.measure(fabric.run(scenario, progress=False))
        assert native["status"] == "FINISHED"
        assert native == script.measure(fabric.run(scenario, engine="reference", progress=False))

    @pytest.mark.parametrize(
        ("name", "happens"),
        [
            ("incast", ("marks", "paused_ps")),
            ("incast_pfc_only", ("paused_ps",)),
            ("incast_lossy", ("marks", "drops", "retransmitted", "timeouts")),
            ("permutation_1024", ("marks", "paused_ps")),
            ("oversubscription 1.5:1 with DCQCN", ("marks",)),
            ("websearch", ("marks",)),
            ("victim", ("marks", "paused_ps")),
            ("allreduce_incast", ("paused_ps",)),
            ("alltoallv_skewed", ("marks", "paused_ps")),
            ("pfc_storm", ("paused_ps",)),
            ("spine_down_allreduce", ("drops", "retransmitted")),
            ("spine_down_allreduce, end hosts", ("drops", "timeouts")),
            ("link_flap", ("drops", "retransmitted")),
            ("corrupting_optic", ("drops", "retransmitted")),
            ("dual_plane", ("drops", "retransmitted")),
        ],
    )
    def test_small_versions_keep_what_they_are_about(self, name: str, happens: tuple[str, ...]) -> None:
        numbers = script.measure(fabric.run(script.CASES[name].load(*SMALL[name]), progress=False))
        assert all(numbers[what] > 0 for what in happens), numbers


class TestUpdate:
    @pytest.fixture
    def file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Let the script work on a copy of `expected.json` with one number of one case changed."""
        changed = {**EXPECTED, "victim": {**self.measured(), "marks": 1}}
        path = tmp_path / "expected.json"
        path.write_text(json.dumps(changed))
        monkeypatch.setattr(script, "EXPECTED", path)
        return path

    def measured(self) -> dict[str, Any]:
        found: dict[str, Any] = script.expected_of(script.CASES["victim"], result_of("victim"))
        return found

    def test_prints_what_changed_and_writes_it(self, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        marks = self.measured()["marks"]
        before = file.read_text()
        assert script.main(["victim", "--check"]) == 1
        assert f"    marks: 1 -> {marks} (+{marks - 1})\n" in capsys.readouterr().out
        assert file.read_text() == before
        assert script.main(["victim"]) == 0
        assert json.loads(file.read_text()) == {**EXPECTED, "victim": self.measured()}
        assert [path.name for path in file.parent.iterdir()] == ["expected.json"]
        assert script.main(["victim", "--check"]) == 0

    def test_an_unknown_name_lists_the_known(self, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit, match="2"):
            script.main(["incest"])
        assert "there are: incast, incast_pfc_only" in capsys.readouterr().err


class TestCommandLine:
    def test_the_first_scenario_gives_a_table_and_a_picture(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("MPLBACKEND", "Agg")
        assert main(["run", str(FOLDER / "incast.toml")]) == 0
        printed = capsys.readouterr().out
        assert f"fingerprint     {EXPECTED['incast']['fingerprint']}\n" in printed
        assert "expected        The last of 64 messages arrives after 2.800 ms" in printed
        assert max(map(len, printed.split("\n"))) <= 120
        picture = tmp_path / "results" / "incast" / "queues.png"
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert picture.stat().st_size < 200_000
