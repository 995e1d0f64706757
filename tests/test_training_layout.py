"""Groups, placements, layers on stages, parameter counts: against published numbers and their rules."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.errors import SpecError
from fabric.training import (
    MODELS,
    Experts,
    Model,
    Parallelism,
    TrainingJob,
    hierarchical_groups,
    place_ranks,
    preset,
    split_layers,
)

PARAMETERS = {
    "gpt2-small": (7_087_872, 124_439_808),
    "gpt3-175b": (1_812_099_072, 174_604_259_328),
    "llama2-70b": (855_654_400, 68_976_648_192),
    "llama3-70b": (855_654_400, 70_553_706_496),
    "llama3-405b": (3_187_703_808, 405_853_388_800),
    "mixtral-8x7b": (1_451_270_144, 46_702_792_704),
    "deepseek-v3": (187_107_328 + 2 * 7168 + 257 * 44_040_192 + 256 * 7169, 671_026_419_200),
}
"""Of the last layer, and of all."""


@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_those_of_the_checkpoints(name: str) -> None:
    model = preset(name)
    assert (model.layer_parameters(model.layers - 1), model.parameters) == PARAMETERS[name]


def test_parts_of_deepseek_v3() -> None:
    model = preset("deepseek-v3")
    assert model.attention_parameters == 187_107_328
    assert model.expert_parameters == 44_040_192
    assert model.routed_parameters(3) == 11_274_289_152
    assert model.routed_parameters(2) == 0
    assert model.active_parameters == 671_026_419_200 - 58 * 248 * 44_040_192


def groups(layout: Parallelism, which: str, *, expert: bool = False) -> list[list[int]]:
    found: list[list[int]] = layout.groups(which, expert=expert).tolist()
    return found


def test_sixteen_ranks_as_tensor_two_pipeline_four() -> None:
    layout = Parallelism(tp=2, pp=4, dp=2)
    assert groups(layout, "tp") == [[first, first + 1] for first in range(0, 16, 2)]
    assert groups(layout, "dp")[:4] == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert groups(layout, "pp") == [list(range(first, 16, 4)) for first in range(4)]


def test_context_and_expert_grids_of_one_world() -> None:
    layout = Parallelism(tp=2, cp=2, dp=2, pp=2, ep=4, etp=1)
    assert groups(layout, "cp")[:4] == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert groups(layout, "dp")[:5] == [[0, 4], [1, 5], [2, 6], [3, 7], [8, 12]]
    assert groups(layout, "pp")[:2] == [[0, 8], [1, 9]]
    assert groups(layout, "dp-cp") == [[0, 2, 4, 6], [1, 3, 5, 7], [8, 10, 12, 14], [9, 11, 13, 15]]
    assert groups(layout, "cp-dp") == groups(layout, "dp-cp")
    assert groups(layout, "tp-pp")[:2] == [[0, 1, 8, 9], [2, 3, 10, 11]]
    assert groups(layout, "ep", expert=True) == [list(range(first, first + 4)) for first in (0, 4, 8, 12)]
    assert groups(layout, "dp", expert=True)[:5] == [[0, 4], [1, 5], [2, 6], [3, 7], [8, 12]]
    assert groups(layout, "tp-ep-pp", expert=True) == [
        [0, 1, 2, 3, 8, 9, 10, 11],
        [4, 5, 6, 7, 12, 13, 14, 15],
    ]
    assert layout.expert_dp == 2


def test_the_layout_of_llama_3_405b() -> None:
    layout = Parallelism(tp=8, dp=128, pp=16)
    assert layout.world == 16384
    assert len(groups(layout, "tp")) == 2048
    assert groups(layout, "tp")[0] == list(range(8))
    assert groups(layout, "dp")[0] == list(range(0, 1017, 8))
    assert groups(layout, "pp")[0] == list(range(0, 15361, 1024))
    where = layout.coordinates(5000)
    assert (int(where["tp"]), int(where["dp"]), int(where["pp"])) == (0, 113, 4)


SIZES = st.sampled_from([1, 2, 3, 4])


@given(SIZES, SIZES, SIZES, SIZES, st.permutations(["tp", "cp", "dp", "pp"]))
def test_groups_differ_in_their_dimensions_alone(
    tp: int, cp: int, dp: int, pp: int, order: list[str]
) -> None:
    """Against the rule itself, rank by rank, for every order and every set of dimensions."""
    sizes = {"tp": tp, "cp": cp, "dp": dp, "pp": pp}
    before = order[: order.index("pp")]
    dense = math.prod(sizes[name] for name in before)
    expert = math.prod({"tp": tp, "cp": 1, "dp": cp * dp}[name] for name in before)
    given = {**sizes, "order": "-".join([*order, "ep"])}
    if pp > 1 and dense != expert:
        with pytest.raises(SpecError, match="order"):
            Parallelism(**given)
        return
    layout = Parallelism(**given)
    coordinate = {}
    for place in itertools.product(*(range(sizes[name]) for name in order[::-1])):
        of = dict(zip(order[::-1], place, strict=True))
        rank, step = 0, 1
        for name in order:
            rank, step = rank + of[name] * step, step * sizes[name]
        coordinate[rank] = of
    for count in (1, 2, 3):
        for chosen in itertools.combinations(order, count):
            found = groups(layout, "-".join(chosen))
            assert sorted(rank for group in found for rank in group) == list(range(layout.world))
            assert [group[0] for group in found] == sorted(group[0] for group in found)
            for group in found:
                assert group == sorted(group)
                rest = {
                    tuple(coordinate[rank][name] for name in order if name not in chosen) for rank in group
                }
                assert len(rest) == 1
    assert layout.coordinates(np.arange(layout.world))["pp"].tolist() == [
        coordinate[rank]["pp"] for rank in range(layout.world)
    ]


def test_levels_of_a_group() -> None:
    levels = [level.tolist() for level in hierarchical_groups(range(16), sizes=[2, 2, 4])]
    assert levels[0][:2] == [[0, 1], [2, 3]]
    assert levels[1][:3] == [[0, 2], [1, 3], [4, 6]]
    assert levels[2][:2] == [[0, 4, 8, 12], [1, 5, 9, 13]]


def test_experts_may_span_tensor_context_and_data_ranks() -> None:
    layout = Parallelism(tp=2, sp=True, cp=2, dp=2, ep=8, etp=1)
    assert groups(layout, "ep", expert=True) == [list(range(8))]
    assert layout.expert_dp == 1


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"tp": 0}, "tp"),
        ({"etp": 0}, "etp"),
        ({"zero": 4}, "zero"),
        ({"sp": True}, "sp"),
        ({"dp": 2**25}, "dp"),
        ({"order": "tp-tp"}, "order"),
        ({"order": "tp-xp"}, "order"),
        ({"tp": 2, "order": "cp-ep-dp-pp"}, "order"),
        ({"dp": 4, "ep": 3}, "ep"),
        ({"tp": 2, "pp": 2, "dp": 2, "ep": 2, "etp": 1, "order": "tp-pp-dp-ep-cp"}, "order"),
    ],
)
def test_layouts_that_are_none(given: dict[str, object], path: str) -> None:
    with pytest.raises(SpecError) as error:
        Parallelism(**given)  # type: ignore[arg-type]
    assert error.value.path == f"Parallelism.{path}"


@pytest.mark.parametrize(
    ("which", "expert"), [("ep", False), ("cp", True), ("xp", False), ("tp-tp", False), ("", False)]
)
def test_groups_that_are_none(which: str, expert: bool) -> None:
    layout = Parallelism(cp=2, dp=2, ep=2)
    with pytest.raises(SpecError, match="dimensions"):
        layout.groups(which, expert=expert)


def test_interleaved_layers() -> None:
    stages = split_layers(16, pp=4, vpp=2)
    assert [[layer + 1 for layer in chunk] for chunk in stages[0]] == [[1, 2], [9, 10]]
    assert [[layer + 1 for layer in chunk] for chunk in stages[1]] == [[3, 4], [11, 12]]


@given(st.integers(1, 200), st.integers(1, 16), st.integers(1, 4))
def test_layers_are_split_as_evenly_as_they_can_be(layers: int, pp: int, vpp: int) -> None:
    if layers < pp * vpp:
        with pytest.raises(SpecError):
            split_layers(layers, pp=pp, vpp=vpp)
        return
    stages = split_layers(layers, pp=pp, vpp=vpp)
    chunks = [stages[chunk % pp][chunk // pp] for chunk in range(pp * vpp)]
    assert [layer for chunk in chunks for layer in chunk] == list(range(layers))
    assert max(map(len, chunks)) - min(map(len, chunks)) <= 1


def test_places_in_servers() -> None:
    layout = Parallelism(tp=4, dp=4)
    packed = place_ranks(layout, servers=2)
    assert packed.tolist() == list(range(16))
    rail = place_ranks(layout, servers=2, how="rail")
    assert (rail[:4] // 8).tolist() == [0, 1, 0, 1]
    for how in ("packed", "rail", "scattered"):
        inside = place_ranks(layout, servers=3, how=how, tp_inside=True)  # type: ignore[arg-type]
        assert len(set(inside.tolist())) == 16
        assert (np.ptp(inside[layout.groups("tp")] // 8, axis=1) == 0).all()
    some = [place_ranks(layout, servers=8, how="scattered", seed=seed).tolist() for seed in (1, 1, 2)]
    assert some[0] == some[1] != some[2]
    assert place_ranks(layout, servers=2, how=list(range(15, -1, -1)))[0] == 15


@pytest.mark.parametrize(
    "given",
    [
        {"servers": 0},
        {"servers": 1},
        {"servers": 4, "accelerators": 2, "tp_inside": True},
        {"servers": 2, "how": "sideways"},
        {"servers": 2, "how": [0]},
        {"servers": 2, "how": [*range(15), 99]},
        {"servers": 2, "how": [*range(15), 0]},
        {"servers": 2, "how": [0, 8, *range(1, 8), *range(9, 16)], "tp_inside": True},
    ],
)
def test_places_that_are_none(given: dict[str, object]) -> None:
    with pytest.raises(SpecError):
        place_ranks(Parallelism(tp=4, dp=4), **given)  # type: ignore[arg-type]


SHAPE = {"layers": 4, "hidden": 64, "ffn": 128, "heads": 4, "vocabulary": 100}


@pytest.mark.parametrize(
    "change",
    [
        {"layers": 0},
        {"heads": 3},
        {"kv_heads": 3},
        {"positions": -1},
        {"experts": Experts(count=4, top_k=1, ffn=8, dense_layers=5)},
    ],
)
def test_models_that_are_none(change: dict[str, object]) -> None:
    with pytest.raises(SpecError):
        Model(**SHAPE | change)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [{"top_k": 9}, {"groups": 3}, {"groups": 2, "groups_per_token": 3}, {"groups": 8, "top_k": 2}],
)
def test_experts_that_are_none(change: dict[str, int]) -> None:
    with pytest.raises(SpecError):
        Experts(**{"count": 8, "top_k": 2, "ffn": 16} | change)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "layout", "path"),
    [
        ({"model": "gpt5"}, {}, "model"),
        ({"global_batch": 3}, {"dp": 2}, "global_batch"),
        ({"sequence": 1023}, {"cp": 2}, "sequence"),
        ({}, {"tp": 5}, "parallelism.tp"),
        ({"regather": True}, {"tp": 2}, "regather"),
        ({}, {"pp": 13}, "parallelism.pp"),
        ({"context": "all_to_all"}, {"tp": 4, "cp": 2}, "context"),
        ({}, {"dp": 4, "ep": 2}, "parallelism.ep"),
        ({"model": "mixtral-8x7b"}, {"tp": 2}, "parallelism.sp"),
        ({"model": "mixtral-8x7b", "global_batch": 16}, {"dp": 16, "ep": 16}, "parallelism.ep"),
    ],
)
def test_jobs_that_are_none(change: dict[str, object], layout: dict[str, int], path: str) -> None:
    given = {"model": "gpt2-small", "sequence": 1024, "global_batch": 4} | change
    with pytest.raises(SpecError) as error:
        TrainingJob(**given, parallelism=Parallelism(**layout))  # type: ignore[arg-type]
    assert error.value.path.removeprefix("TrainingJob.") == path


def test_one_tensor_rank_may_have_many_expert_ranks() -> None:
    job = TrainingJob(
        model="mixtral-8x7b", sequence=1024, global_batch=8, parallelism=Parallelism(dp=8, ep=8)
    )
    assert job.tokens_per_rank == 1024
