"""Random models, layouts, schedules and routers on small fabrics: every byte is needed, every rank ends.

Both engines agree to the bit. What each dimension sends, in the engine's count of messages, is its volume
exactly, and the payload of all frames that leave hosts is the sum.
"""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fabric
from fabric.errors import SpecError
from fabric.spec import Record, Router, Training, Transport
from fabric.spec.run import PacketRecord
from fabric.step import StepReport, run_step
from fabric.training import TokenRoutes, Volume, dualpipe_volumes, volumes
from fabric.training.volumes import GROUPS

FRESH_CASES = int(os.environ.get("FABRIC_CASES", "0"))
HOSTS, SERVER = 16, 4

LAYOUTS = st.fixed_dictionaries(
    {
        "tp": st.sampled_from([1, 2]),
        "sp": st.booleans(),
        "cp": st.sampled_from([1, 2]),
        "dp": st.sampled_from([1, 2, 4]),
        "pp": st.sampled_from([1, 2, 4]),
        "zero": st.integers(0, 3),
    }
)
HOW = st.fixed_dictionaries(
    {
        "tied": st.booleans(),
        "recompute": st.booleans(),
        "regather": st.booleans(),
        "accumulate": st.booleans(),
        "context": st.sampled_from(["ring", "all_gather", "all_to_all"]),
        "gradient_bytes": st.sampled_from([2, 4]),
    }
)
EXPERTS = st.none() | st.fixed_dictionaries(
    {
        "whole": st.booleans(),
        "shared": st.integers(0, 1),
        "dense_layers": st.integers(0, 2),
        "router": st.sampled_from(
            [
                {},
                {"choice": "uniform"},
                {"choice": "zipf", "copies": "rank", "header_bytes": 16},
                {"choice": "zipf", "copies": "server"},
                {"choice": "hot", "copies": "server", "chunks": 3},
                {"choice": "zipf", "regroup": True, "chunks": 2},
                {"choice": "uniform", "capacity_factor": 1.25},
            ]
        ),
    }
)
STEPS = st.fixed_dictionaries(
    {
        "schedule": st.sampled_from(["gpipe", "1f1b", "interleaved", "zb1p", "dualpipe"]),
        "two_batch_overlap": st.booleans(),
        "steps": st.integers(1, 2),
        "bucket": st.sampled_from([None, "10KB"]),
        "eager": st.booleans(),
    }
)


def entry_of(
    layout: dict[str, Any], how: dict[str, Any], experts: dict[str, Any] | None, steps: dict[str, Any]
) -> Training:
    """Return the job; raises `SpecError` where there is none."""
    tp, pp = layout["tp"], layout["pp"]
    sequence_parallel = layout["sp"] and tp > 1
    model: dict[str, Any] = {"layers": 8, "hidden": 64, "ffn": 128, "heads": 4, "vocabulary": 256}
    model["tied"] = how["tied"]
    parallelism: dict[str, Any] = {**layout, "sp": sequence_parallel}
    if experts is not None:
        model["experts"] = {
            **{"count": 16, "top_k": 2, "ffn": 32},
            **{name: experts[name] for name in ("shared", "dense_layers")},
        }
        share = layout["dp"] * layout["cp"]
        parallelism |= {"etp": 1, "ep": tp * share} if experts["whole"] else {"etp": tp, "ep": share}
        parallelism["sp"] = tp > 1
    if steps["schedule"] == "interleaved":
        parallelism["vpp"] = 2
    job = {
        **{"model": model, "sequence": 32, "global_batch": 8 * layout["dp"]},
        **{name: how[name] for name in ("recompute", "accumulate", "context", "gradient_bytes")},
        "regather": how["regather"] and parallelism["sp"],
        "parallelism": parallelism,
    }
    overlap = steps["two_batch_overlap"] and steps["schedule"] != "dualpipe"
    if overlap and steps["schedule"] == "interleaved" and 4 % pp:
        overlap = False
    return Training(
        job=job,  # type: ignore[arg-type]
        compute={"kind": "given", "forward": "1us"},  # type: ignore[arg-type]
        router={} if experts is None else experts["router"],
        accelerators=SERVER,
        **{**steps, "two_batch_overlap": overlap},
    )


class TestRandomJobs:
    @pytest.mark.slow
    @settings(
        max_examples=FRESH_CASES or 20,
        derandomize=not FRESH_CASES,
        deadline=None,
        database=None,
        print_blob=True,
    )
    @given(LAYOUTS, HOW, EXPERTS, STEPS)
    def test_invariants(
        self,
        layout: dict[str, Any],
        how: dict[str, Any],
        experts: dict[str, Any] | None,
        steps: dict[str, Any],
    ) -> None:
        assume(layout["tp"] * layout["cp"] * layout["dp"] * layout["pp"] <= HOSTS)
        assume(steps["schedule"] != "dualpipe" or (layout["pp"] % 2 == 0 and layout["zero"] < 3))
        entry = entry_of(layout, how, experts, steps)
        scenario = fabric.Scenario(
            topology=fabric.LeafSpine(leaves=2, spines=2, hosts_per_leaf=HOSTS // 2),
            traffic=[entry],
            record=Record(packets=PacketRecord(ports=("host*",))),
        )
        if not side_by_side(entry):
            with pytest.raises(SpecError, match="side by side"):
                run_step(scenario, progress=False)
            return
        report = run_step(scenario, progress=False)
        result = report.result
        assert result.status == "FINISHED"
        assert (report.tasks["left_ps"] >= 0).all()
        assert (report.steps["duration_ps"] >= report.steps["compute_max_ps"]).all()
        assert report.steps["end_ps"][-1] >= report.ideal["end_ps"][-1]
        check_bytes(entry, report)
        readable = fabric.run(scenario, engine="reference", progress=False)
        assert readable.fingerprint == result.fingerprint
        for name in ("tasks", "steps", "communication", "critical", "loads"):
            for column in result.tables[name].columns:
                one, other = result.tables[name][column], readable.tables[name][column]
                assert np.array_equal(one, other, equal_nan=one.dtype.kind == "f"), (name, column)


def side_by_side(entry: Training) -> bool:
    """Whether the ranks of every expert group are on servers as a router that uses rails needs them."""
    if entry.router.copies != "server" and not entry.router.regroup:
        return True
    servers = entry.job.parallelism.groups("ep", expert=True) // SERVER
    counts = [np.unique(group, return_counts=True)[1] for group in servers]
    return all(len(set(count.tolist())) == 1 for count in counts)


def check_bytes(entry: Training, report: StepReport) -> None:
    """What each dimension sends is its volume, all of it, and nothing else leaves a host."""
    wanted = expected_bytes(entry)
    tasks, operations = report.tasks, report.result.operations
    total = 0
    for dimension in GROUPS:
        numbers = np.unique(tasks["operation"][tasks["dimension"] == dimension])
        sent = int(operations["sent_bytes"][np.isin(operations["operation"], numbers)].sum())
        assert sent == wanted[dimension], dimension
        total += sent
    assert total == int(operations["sent_bytes"].sum())
    packets = report.result.tables["packets"]
    data = packets[packets["kind"] == "DATA"]
    header = int(Transport().header)
    assert int(data["size_bytes"].sum()) - len(data) * header == total


def expected_bytes(entry: Training) -> dict[str, Fraction]:
    """By dimension, of all ranks and steps."""
    layout = entry.job.parallelism
    ranks = layout.world // layout.pp
    wanted = dict.fromkeys(GROUPS, Fraction(0))
    for stage in range(layout.pp):
        for row in stage_volumes(entry, stage):
            wanted[row.dimension] += row.wire_bytes * ranks * entry.steps
    if entry.router != Router():
        wanted["ep"] = routed_bytes(entry) * entry.steps
    return wanted


def stage_volumes(entry: Training, stage: int) -> list[Volume]:
    if entry.schedule == "dualpipe":
        return dualpipe_volumes(entry.job, stage=stage)
    return volumes(entry.job, stage=stage)


def routed_bytes(entry: Training) -> Fraction:
    """What a router makes expert ranks send: each layer out and back, forward and backward."""
    job, layout = entry.job, entry.job.parallelism
    routes = TokenRoutes(job=job, router=entry.router, server_of=np.arange(layout.world) // SERVER)
    groups = layout.groups("ep", expert=True)
    stages = layout.coordinates(groups[:, 0], expert=True)["pp"]
    layers = [layer for layer in range(job.shape.layers) if job.shape.has_experts(layer)]
    chunk = job.shape.layers // (layout.pp * layout.vpp)
    out, back = job.dispatch_token_bytes + entry.router.header_bytes, job.shape.hidden * job.activation_bytes
    total = 0
    for layer in layers:
        for micro_batch in range(job.micro_batches):
            stage = layer // chunk % layout.pp
            if entry.schedule == "dualpipe" and micro_batch >= job.micro_batches // 2:
                stage = layout.pp - 1 - stage
            for number, group in enumerate(groups[stages == stage]):
                for what, token in (("dispatch", out), ("combine", back)):
                    for leg in routes.legs(what, layer, micro_batch, group=(stage, number), ranks=group):
                        total += int(leg.sum() - np.trace(leg)) * token * (2 + int(job.recompute))
    return Fraction(total)


def test_two_micro_batches_are_reduced_at_once_where_they_go_both_ways() -> None:
    """DualPipe with ZeRO-2, every micro-batch reduced: one of each way together, half as often."""
    how = {"tied": False, "recompute": True, "regather": False, "accumulate": False, "context": "ring"}
    entry = entry_of(
        {"tp": 1, "sp": False, "cp": 1, "dp": 4, "pp": 4, "zero": 2},
        {**how, "gradient_bytes": 2},
        None,
        {"schedule": "dualpipe", "two_batch_overlap": False, "steps": 1, "bucket": None, "eager": True},
    )
    rows = [row for row in dualpipe_volumes(entry.job, stage=0) if row.dimension == "dp"]
    for what, count in (("gradients", entry.job.micro_batches // 2), ("weights", 1)):
        assert [row.count for row in rows if row.what == what] == [count, count]
    scenario = fabric.Scenario(
        topology=fabric.LeafSpine(leaves=2, spines=2, hosts_per_leaf=HOSTS // 2),
        traffic=[entry],
        record=Record(packets=PacketRecord(ports=("host*",))),
    )
    check_bytes(entry, run_step(scenario, progress=False))
