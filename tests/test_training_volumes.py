"""What a step sends: every row against its closed form, and worked examples."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from support_volumes import GIB, MIB, gpt3

from fabric.errors import SpecError
from fabric.training import (
    Model,
    Parallelism,
    TrainingJob,
    Volume,
    context_block_bytes,
    held_parameters,
    preset,
    volumes,
    wire_bytes,
)


def wire(job: TrainingJob, dimension: str, *, stage: int, what: str = "") -> Fraction:
    rows = volumes(job, stage=stage)
    return sum(
        (row.wire_bytes for row in rows if row.dimension == dimension and row.what.startswith(what)),
        Fraction(0),
    )


def rows(job: TrainingJob, dimension: str, *, stage: int = 0) -> list[tuple[str, str, int, int]]:
    return [
        (row.what, row.collective, int(row.size_bytes), row.count)
        for row in volumes(job, stage=stage)
        if row.dimension == dimension
    ]


def test_gpt3_by_tensor_ranks() -> None:
    job = gpt3()
    assert job.hidden_state_bytes == 50_331_648
    assert wire_bytes("all_reduce", job.hidden_state_bytes, n_ranks=8) == 88_080_384
    per_layer = wire(job, "tp", stage=3, what="layers") / (12 * 96)
    assert per_layer == 352_321_536 == 336 * MIB
    assert wire(job, "tp", stage=3) == 378 * GIB
    gathered = gpt3(layout={"sp": True}, regather=True)
    assert wire(gathered, "tp", stage=3, what="layers") / (12 * 96) == 420 * MIB


@pytest.mark.parametrize(
    ("how", "factor"),
    [
        ({}, 8),
        ({"recompute": True}, 12),
        ({"layout": {"sp": True}}, 8),
        ({"layout": {"sp": True}, "regather": True}, 10),
        ({"layout": {"sp": True}, "recompute": True}, 12),
    ],
)
def test_wire_of_a_layer(how: dict[str, Any], factor: int) -> None:
    job = gpt3(**how)
    per_layer = wire(job, "tp", stage=3, what="layers") / (12 * 96)
    assert per_layer == Fraction(factor * 7, 8) * job.hidden_state_bytes


def test_counts_of_collectives_as_a_generator_of_traces_emits_them() -> None:
    """2 layers on a stage, 4 micro-batches, sequence parallel, inputs gathered again: 48 and 32."""
    model = Model(layers=4, hidden=1024, ffn=4096, heads=16, vocabulary=32000, gated=False)
    job = TrainingJob(
        model=model,
        sequence=512,
        micro_batch=1,
        global_batch=8,
        regather=True,
        parallelism=Parallelism(tp=2, sp=True, dp=2, pp=2),
    )
    counts = {kind: count for what, kind, _, count in rows(job, "tp") if what == "layers"}
    assert counts == {"all_gather": 48, "reduce_scatter": 32}


def test_ends_of_the_model() -> None:
    job, cut = gpt3(), gpt3(layout={"sp": True})
    a = job.hidden_state_bytes
    assert ("embedding", "all_reduce", a, 96) in rows(job, "tp")
    assert ("embedding", "reduce_scatter", a, 96) in rows(cut, "tp")
    for each in (job, cut):
        assert ("loss", "all_reduce", 4 * 2048, 3 * 96) in rows(each, "tp", stage=7)
    assert rows(job, "embedding") == rows(job, "embedding", stage=7)
    assert rows(job, "embedding") == [("gradients", "all_reduce", 2 * 50257 * 12288 // 8, 1)]
    assert not rows(job, "embedding", stage=1)


def test_gpt3_by_pipeline_ranks() -> None:
    job, cut = gpt3(), gpt3(layout={"sp": True})
    assert (job.message_bytes, cut.message_bytes) == (50_331_648, 6_291_456)
    assert wire(cut, "pp", stage=3) == Fraction(9, 8) * GIB
    assert rows(job, "pp") == [("activations", "send_recv", 50_331_648, 96)]
    assert rows(job, "pp", stage=7) == [("gradients", "send_recv", 50_331_648, 96)]


@pytest.mark.parametrize("v", [1, 2, 3])
def test_messages_of_a_pipeline(v: int) -> None:
    job = gpt3(layout={"pp": 4, "vpp": v})
    total = sum(count for stage in range(4) for *_, count in rows(job, "pp", stage=stage))
    assert total == 2 * (4 * v - 1) * 96


def test_gpt3_by_data_ranks() -> None:
    held, experts = held_parameters(gpt3(), stage=3)
    assert (held, experts) == (2_718_148_608, 0)
    sent = {
        zero: float(wire(gpt3(layout={"zero": zero}, gradient_bytes=g), "dp", stage=3) / GIB)
        for zero, g in ((0, 2), (1, 4), (3, 2))
    }
    assert {zero: round(value, 4) for zero, value in sent.items()} == {0: 9.4930, 1: 14.2395, 3: 14.2395}
    assert wire(gpt3(layout={"zero": 2}), "dp", stage=3) == wire(gpt3(layout={"zero": 1}), "dp", stage=3)


@pytest.mark.parametrize(
    ("zero", "kinds"),
    [
        (0, [("gradients", "all_reduce", 1)]),
        (1, [("gradients", "reduce_scatter", 1), ("weights", "all_gather", 1)]),
        (2, [("gradients", "reduce_scatter", 96), ("weights", "all_gather", 1)]),
        (3, [("weights", "all_gather", 192), ("gradients", "reduce_scatter", 96)]),
    ],
)
def test_without_accumulation(zero: int, kinds: list[tuple[str, str, int]]) -> None:
    job = gpt3(layout={"zero": zero}, accumulate=False)
    assert [(what, kind, count) for what, kind, _, count in rows(job, "dp", stage=3)] == kinds


def test_llama_3_70b() -> None:
    job = TrainingJob(
        model="llama3-70b",
        sequence=8192,
        global_batch=64,
        parallelism=Parallelism(tp=8, pp=4, dp=64),
    )
    cut = job.replace(parallelism=Parallelism(tp=8, sp=True, pp=4, dp=64, zero=1), gradient_bytes=4)
    assert job.hidden_state_bytes == 128 * MIB
    assert wire(job, "tp", stage=1) / 20 == 896 * MIB
    assert (job.message_bytes, cut.message_bytes) == (128 * MIB, 16 * MIB)
    assert held_parameters(job, stage=1)[0] == 2_139_136_000
    assert round(float(wire(job, "dp", stage=1) / GIB), 4) == 7.8444
    assert round(float(wire(cut, "dp", stage=1) / GIB), 4) == 11.7666


@pytest.mark.parametrize(("sequence", "c", "block", "forward"), [(8192, 2, 2, 2), (32768, 4, 4, 12)])
def test_context_blocks(sequence: int, c: int, block: int, forward: int) -> None:
    job = TrainingJob(
        model="llama3-70b",
        sequence=sequence,
        global_batch=1,
        parallelism=Parallelism(tp=8, cp=c),
    )
    assert context_block_bytes(job) == block * MIB
    sent = {row.what: row for row in volumes(job) if row.dimension == "cp"}
    keys, gradients = sent["keys and values"], sent["gradients of keys and values"]
    assert keys.wire_bytes / keys.count == forward * MIB
    assert keys.count == 2 * 80
    assert gradients.wire_bytes == 80 * forward * MIB
    gathered = job.replace(context="all_gather")
    assert wire(gathered, "cp", stage=0) == 2 * 80 * forward * MIB


def test_ulysses_sends_four_parts_of_the_hidden_state() -> None:
    """With as many heads of keys as of queries: 4 all-to-alls of A/t each way."""
    job = gpt3(layout={"tp": 4, "cp": 2, "dp": 8}, context="all_to_all")
    sent = rows(job, "cp", stage=3)
    assert [size for _, _, size, _ in sent] == [job.hidden_state_bytes // 4] * 4
    assert {count for *_, count in sent} == {2 * 12 * job.micro_batches}
    narrow = TrainingJob(
        model="llama3-70b",
        sequence=8192,
        global_batch=1,
        context="all_to_all",
        parallelism=Parallelism(tp=4, cp=2),
    )
    size = {what: size for what, _, size, _ in rows(narrow, "cp")}
    assert size["queries"] == size["output"] == 8 * size["keys"] == 8 * size["values"]


def test_latent_attention_sends_its_wide_keys() -> None:
    job = TrainingJob(model="deepseek-v3", sequence=4096, global_batch=1, parallelism=Parallelism(cp=2, ep=2))
    assert context_block_bytes(job) == 2 * 2048 * 128 * (192 + 128)


def test_gradients_of_context_ranks_are_reduced_together() -> None:
    job = gpt3(layout={"tp": 4, "cp": 2, "dp": 16})
    (row,) = (one for one in volumes(job, stage=3) if one.dimension == "dp")
    assert row.n_ranks == 32


def deepseek(**how: Any) -> TrainingJob:
    layout = Parallelism(dp=64, ep=64, pp=1)
    return TrainingJob(
        model="deepseek-v3", sequence=4096, global_batch=64, parallelism=layout, dispatch="fp8", **how
    )


def test_expert_traffic_of_deepseek_v3() -> None:
    sent = {what: (size, count) for what, _, size, count in rows(deepseek(), "ep")}
    assert sent["dispatch"] == (231 * MIB, 58)
    assert sent["combine"] == (448 * MIB, 58)
    assert sent["gradient of dispatch"] == sent["combine"]
    assert sent["gradient of combine"] == sent["dispatch"]
    again = {what: count for what, _, _, count in rows(deepseek(recompute=True), "ep")}
    assert (again["dispatch"], again["gradient of dispatch"]) == (116, 58)


def test_experts_have_data_groups_of_their_own() -> None:
    job = TrainingJob(
        model="mixtral-8x7b",
        sequence=1024,
        global_batch=16,
        parallelism=Parallelism(tp=2, sp=True, dp=8, ep=4, etp=1),
    )
    groups = {row.dimension: row.n_ranks for row in volumes(job)}
    assert groups == {"tp": 2, "ep": 4, "dp": 8, "edp": 4}
    assert (
        wire(job, "edp", stage=0)
        == Fraction(2 * 3, 4) * 2 * 32 * 2 * preset("mixtral-8x7b").expert_parameters
    )


def test_experts_cut_by_tensor_ranks_gather_what_arrives() -> None:
    job = TrainingJob(
        model="mixtral-8x7b",
        sequence=1024,
        global_batch=4,
        parallelism=Parallelism(tp=2, sp=True, dp=4, ep=4, etp=2),
    )
    ep, etp = rows(job, "ep"), rows(job, "etp")
    assert [size for _, _, size, _ in etp] == [2 * ep[0][2]] * 4
    assert [kind for _, kind, _, _ in etp] == ["all_gather", "reduce_scatter", "reduce_scatter", "all_gather"]
    blocks = {kind: count for what, kind, _, count in rows(job, "tp") if what == "layers"}
    assert blocks == {"all_gather": 64, "reduce_scatter": 64}


def test_two_hundred_billion_parameters_on_eight_tensor_ranks() -> None:
    gradients = 200 * 10**9 // 8 * 2
    assert gradients == 50 * 10**9
    assert float(wire_bytes("all_reduce", gradients, n_ranks=10**6)) == pytest.approx(100e9, rel=1e-5)
    assert 8 * gradients == 400 * 10**9


def test_stages_that_are_none() -> None:
    for stage in (-1, 8):
        with pytest.raises(SpecError, match="stage"):
            volumes(gpt3(), stage=stage)


def test_volumes_are_frozen() -> None:
    row = volumes(gpt3())[0]
    assert isinstance(row, Volume)
    with pytest.raises(AttributeError):
        row.count = 1  # type: ignore[misc]
