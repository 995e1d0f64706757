"""Small versions of the shipped scenarios give the same with the readable engine."""

from __future__ import annotations

import pytest
from support_scenarios import script

import fabric

EARLY = ("failures[0].at=10us", "recovery.isolate=20us", "recovery.convergence=20us", "recovery.suspect=5us")


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
NARROW_SERVERS = (
    *_narrow(
        layers=1, hidden=128, experts="{ count = 64, top_k = 4, ffn = 64, groups = 2, groups_per_token = 1 }"
    ),
    *NARROW_EXPERTS[-2:],
)
NARROW_OVERLAPPED = (
    *_narrow(layers=2, hidden=128, experts="{ count = 64, top_k = 4, ffn = 64 }"),
    *(NARROW_EXPERTS[-2], "traffic[0].job.global_batch=16"),
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
    "moe_node_limited (server, 16 chunks)": (*RAILS, *NARROW_SERVERS),
    "moe_low_latency (64, overlapped)": (*RAILS, *NARROW_OVERLAPPED),
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
