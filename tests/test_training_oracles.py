"""Published and measured facts about layouts that no other test of training steps holds."""

from __future__ import annotations

from typing import Any

import pytest

from fabric.training import Model, Parallelism, TrainingJob
from fabric.training.layer import backward_parts, forward_parts
from fabric.training.schedules import SCHEDULES, build_schedule


@pytest.mark.parametrize(
    ("layout", "world"),
    [
        ({"tp": 8, "pp": 16, "dp": 64}, 8_192),
        ({"tp": 8, "pp": 16, "dp": 128}, 16_384),
        ({"tp": 8, "cp": 16, "pp": 16, "dp": 8}, 16_384),
    ],
)
def test_published_layouts_of_llama_3_405b(layout: dict[str, int], world: int) -> None:
    """glennklockwood.com/garden/llama-3.1; the last for long contexts."""
    parallelism = Parallelism(**layout)
    assert parallelism.world == world
    job = TrainingJob(
        model="llama3-405b", sequence=131_072, global_batch=parallelism.dp, parallelism=parallelism
    )
    assert job.micro_batches == 1


def test_stage_numbers_data_ranks_first() -> None:
    """Its groups file of two data, tensor and pipeline ranks: data 0,1 2,3; tensor 0,2 1,3."""
    layout = Parallelism(tp=2, dp=2, pp=2, order="dp-tp-cp-ep-pp")
    assert layout.groups("dp").tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert layout.groups("tp").tolist() == [[0, 2], [1, 3], [4, 6], [5, 7]]


def test_the_dispatcher_sends_gathers_computes_reduces_and_returns() -> None:
    """Megatron-LM: A2A(EP), AG(TP), experts, RS(TP), A2A(EP); the backward pass the same way round."""
    model = Model(
        layers=2,
        hidden=64,
        ffn=128,
        heads=8,
        vocabulary=100,
        experts={"count": 8, "top_k": 2, "ffn": 32},  # type: ignore[arg-type]
    )
    layout = Parallelism(tp=2, sp=True, dp=4, ep=4, etp=2)
    job = TrainingJob(model=model, sequence=64, global_batch=8, parallelism=layout)
    for parts in (forward_parts(job, 0), backward_parts(job, 0)):
        routed = [part for part in parts if part.dimension in ("ep", "etp") or part.what == "experts"]
        assert [part.dimension for part in routed] == ["ep", "etp", "compute", "etp", "ep"]
        assert [part.what for part in routed[1:4]] == ["all_gather", "experts", "reduce_scatter"]


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_every_schedule_passes_every_micro_batch_once(name: str) -> None:
    given: dict[str, Any] = {"stages": 4, "micro_batches": 8, "chunks": 2 if name == "interleaved" else 1}
    plan = build_schedule(name, **given)
    for kind in "FB":
        done = [
            (one.position, one.micro_batch)
            for slots in plan.slots
            for slot in slots
            for one in slot
            if one.kind == kind or (kind == "B" and one.kind == "I")
        ]
        assert len(done) == len(set(done))
        assert {micro_batch for _, micro_batch in done} == set(range(8))
