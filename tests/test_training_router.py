"""Which experts tokens go to, and the matrices of that: published, in closed form, and by hand."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.errors import SpecError
from fabric.training import (
    ExpertPlaces,
    balanced_choice,
    check_choice,
    choose_experts,
    distinct_targets,
    draw_lengths,
    expert_capacity,
    expert_weights,
    pack_sequences,
    padded_copies,
    rank_loads,
    replicate_experts,
    scaled_token_bytes,
    token_copies,
    token_copies_by_server,
    within_capacity,
)
from fabric.workload.collectives import Collective

MIB = 2**20


def test_zipf() -> None:
    weights = expert_weights("zipf", experts=8)
    published = [0.3679, 0.1840, 0.1226, 0.0920, 0.0736, 0.0613, 0.0526, 0.0460]
    assert weights.round(4).tolist() == published
    assert weights.max() / weights.mean() == pytest.approx(2.943495, abs=5e-7)


def test_other_weights() -> None:
    assert expert_weights("uniform", experts=4).tolist() == [0.25] * 4
    assert expert_weights("hot", experts=5, hot=2, hot_share=0.6).round(9).tolist() == [
        0.1,
        0.1,
        0.6,
        0.1,
        0.1,
    ]
    assert expert_weights([1, 0, 3], experts=3).tolist() == [0.25, 0, 0.75]


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("uniform", {"experts": 0}),
        ("cold", {}),
        ("hot", {"hot": 4}),
        ("hot", {"hot_share": 0}),
        ([1, 2], {}),
        ([0, 0, 0, 0], {}),
        ([1, -1, 1, 1], {}),
        ([1, float("nan"), 1, 1], {}),
    ],
)
def test_weights_that_are_none(kind: Any, given: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match="router"):
        expert_weights(kind, **{"experts": 4} | given)


def exact_shares(weights: list[float], k: int) -> list[float]:
    """Chance of each expert to be among k drawn one after the other in proportion to what is left."""
    shares = [0.0] * len(weights)
    for order in itertools.permutations(range(len(weights)), k):
        chance, left = 1.0, sum(weights)
        for expert in order:
            chance, left = chance * weights[expert] / left, left - weights[expert]
        for expert in order:
            shares[expert] += chance
    return shares


@pytest.mark.parametrize("k", [1, 2, 3])
def test_choices_are_drawn_in_proportion_to_weights(k: int) -> None:
    weights = expert_weights("zipf", experts=5)
    tokens = 20_000
    choice = choose_experts(weights, tokens=tokens, top_k=k)
    assert all(len(set(row)) == k for row in choice.tolist())
    found = np.bincount(choice.ravel(), minlength=5) / tokens
    for share, exact in zip(found.tolist(), exact_shares(weights.tolist(), k), strict=True):
        assert abs(share - exact) < 5 * (exact * (1 - exact) / tokens) ** 0.5


def test_choices_depend_on_rank_turn_and_seed_alone() -> None:
    weights = expert_weights("uniform", experts=64)
    first = choose_experts(weights, tokens=50, top_k=4)
    np.testing.assert_array_equal(first[:20], choose_experts(weights, tokens=20, top_k=4))
    for other in ({"rank": 1}, {"turn": 1}, {"seed": 2}):
        assert (choose_experts(weights, tokens=50, top_k=4, **other) != first).any()


def test_an_expert_without_weight_is_never_chosen() -> None:
    choice = choose_experts([0.5, 0.0, 0.5], tokens=1000, top_k=2)
    assert 1 not in choice
    with pytest.raises(SpecError, match="top_k"):
        choose_experts([0.5, 0.0, 0.5], tokens=1, top_k=3)


def test_choices_limited_to_groups() -> None:
    """DeepSeek-V3: 8 groups of 32, 4 for each token, 8 experts."""
    weights = expert_weights("uniform", experts=256)
    choice = choose_experts(weights, tokens=4000, top_k=8, groups=8, groups_per_token=4)
    groups = [len(set((row // 32).tolist())) for row in choice]
    assert max(groups) == 4
    free = choose_experts(weights, tokens=4000, top_k=8)
    reached = np.mean([len(set((row // 32).tolist())) for row in free])
    assert reached == pytest.approx(distinct_targets(targets=8, per_target=32, top_k=8), abs=0.05)
    assert reached > 5
    with pytest.raises(SpecError, match="groups"):
        choose_experts(weights, tokens=1, top_k=8, groups=3)
    with pytest.raises(SpecError, match="top_k"):
        choose_experts(weights, tokens=1, top_k=33, groups=8)


def test_a_limited_choice_is_the_best_of_its_groups() -> None:
    """The kept groups are those with the largest sums of their two best; here recomputed token by token."""
    weights = expert_weights("zipf", experts=16)
    free = choose_experts(weights, tokens=200, top_k=16)
    limited = choose_experts(weights, tokens=200, top_k=4, groups=4, groups_per_token=2)
    for ranking, chosen in zip(free.tolist(), limited.tolist(), strict=True):
        allowed = {expert // 4 for expert in chosen}
        assert chosen == [expert for expert in ranking if expert // 4 in allowed][:4]


@pytest.mark.parametrize(("g", "q", "expected"), [(8, 1, 2.0), (4, 2, 1.857143), (2, 4, 1.571429)])
def test_distinct_targets(g: int, q: int, expected: float) -> None:
    assert distinct_targets(targets=g, per_target=q, top_k=2) == pytest.approx(expected, abs=5e-7)
    pairs = list(itertools.combinations(range(g * q), 2))
    counted = sum(len({one // q for one in pair}) for pair in pairs) / len(pairs)
    assert distinct_targets(targets=g, per_target=q, top_k=2) == pytest.approx(counted)


def test_more_experts_than_there_are() -> None:
    with pytest.raises(SpecError, match="top_k"):
        distinct_targets(targets=2, per_target=2, top_k=5)
    with pytest.raises(SpecError, match="top_k"):
        balanced_choice(tokens=1, top_k=5, experts=4)


@pytest.mark.parametrize(
    ("tokens", "k", "experts", "factor", "capacity"),
    [(4096, 2, 8, 1.0, 1024), (4096, 2, 8, 1.25, 1280), (4096, 8, 256, 1.0, 128), (3, 1, 8, 1.0, 1)],
)
def test_capacities(tokens: int, k: int, experts: int, factor: float, capacity: int) -> None:
    given = {"tokens": tokens, "top_k": k, "experts": experts}
    assert expert_capacity(**given, factor=factor) == capacity
    assert expert_capacity(**given, factor=factor, minimum=5000) == 5000


def test_a_capacity_of_nothing() -> None:
    with pytest.raises(SpecError, match="capacity_factor"):
        expert_capacity(tokens=1, top_k=1, experts=1, factor=0)


@given(st.integers(0, 40), st.integers(1, 6), st.integers(0, 10), st.booleans())
def test_copies_beyond_the_capacity_are_dropped(tokens: int, k: int, capacity: int, by_chance: bool) -> None:
    choice = choose_experts(expert_weights("zipf", experts=6), tokens=tokens, top_k=k)
    chance = np.modf(np.arange(choice.size) * 0.618)[0].reshape(choice.shape) if by_chance else None
    kept = within_capacity(choice, experts=6, capacity=capacity, probability=chance)
    for expert in range(6):
        mine = np.flatnonzero(choice.ravel() == expert).tolist()
        if chance is not None:
            mine.sort(key=lambda each: (-chance.ravel()[each], each))
        assert kept.ravel()[mine].tolist() == [place < capacity for place in range(len(mine))]


def test_probabilities_of_other_tokens() -> None:
    with pytest.raises(SpecError, match="probability"):
        within_capacity(np.zeros((2, 1), dtype=np.int64), experts=1, capacity=1, probability=[0.5])


@pytest.mark.parametrize(
    "trace", [[1, 2], [[0.5]], [[0, 4]], [[-1, 0]], [[1, 1]], np.empty((3, 0), dtype=np.int64)]
)
def test_traces_that_are_none(trace: Any) -> None:
    with pytest.raises(SpecError, match="trace"):
        check_choice(trace, experts=4)


def test_a_trace() -> None:
    assert check_choice([[0, 3], [2, 1]], experts=4).tolist() == [[0, 3], [2, 1]]


def test_balanced_choices_load_all_alike() -> None:
    choice = balanced_choice(tokens=4096, top_k=8, experts=256)
    assert set(np.bincount(choice.ravel()).tolist()) == {128}
    assert all(len(set(row)) == 8 for row in choice.tolist())


def test_token_bytes() -> None:
    assert scaled_token_bytes(7168, precision="fp8") == 7168 + 56 * 4
    assert scaled_token_bytes(7168, precision="bf16") == 14336
    with pytest.raises(SpecError, match="precision"):
        scaled_token_bytes(7168, precision="int4")  # type: ignore[arg-type]


def deepseek() -> tuple[list[Any], ExpertPlaces]:
    weights = expert_weights("uniform", experts=256)
    choices = [
        choose_experts(weights, tokens=512, top_k=8, groups=8, groups_per_token=4, rank=rank)
        for rank in range(64)
    ]
    return choices, ExpertPlaces.in_order(experts=256, n_ranks=64)


def test_copies_of_deepseek_v3_on_eight_servers() -> None:
    """Flat copies, and at most 4 copies between servers for each token, an eighth of a batch of 4096."""
    choices, places = deepseek()
    flat = token_copies(choices, places=places)
    assert set(flat.sum(axis=1).tolist()) == {512 * 8}
    assert flat.sum(axis=1)[0] * 8 * scaled_token_bytes(7168, precision="fp8") == (224 + 7) * MIB
    assert flat.sum(axis=1)[0] * 8 * scaled_token_bytes(7168, precision="bf16") == 448 * MIB
    between, inside = token_copies_by_server(choices, places=places, ranks_per_server=8)
    bound = 4 * 512
    assert between.sum(axis=1).max() <= bound
    assert bound * 8 * 7168 == 112 * MIB
    assert bound * 8 * scaled_token_bytes(7168, precision="fp8") == 115.5 * MIB
    assert bound * 8 * 14336 == 224 * MIB
    rail = np.arange(64) % 8
    assert not between[rail[:, np.newaxis] != rail].any()
    assert not inside[np.arange(64)[:, np.newaxis] // 8 != np.arange(64) // 8].any()
    per_rank = token_copies(choices, places=places, per="rank")
    assert inside.sum(axis=0).tolist() == per_rank.sum(axis=0).tolist()


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([1, 2, 4]), st.sampled_from([1, 2]), st.integers(1, 4), st.integers(0, 12), st.booleans()
)
def test_copies_are_counted_as_by_hand(servers: int, each: int, k: int, tokens: int, capped: bool) -> None:
    n_ranks = servers * each
    places = ExpertPlaces.in_order(experts=8, n_ranks=n_ranks)
    weights = expert_weights("zipf", experts=8)
    choices = [choose_experts(weights, tokens=tokens, top_k=k, rank=rank) for rank in range(n_ranks)]
    kept = [within_capacity(one, experts=8, capacity=2) for one in choices] if capped else None
    flat = np.zeros((n_ranks, n_ranks), dtype=int)
    by_rank, between, inside = flat.copy(), flat.copy(), flat.copy()
    for sender, choice in enumerate(choices):
        for token, experts in enumerate(choice.tolist()):
            targets = [
                expert * n_ranks // 8
                for place, expert in enumerate(experts)
                if kept is None or kept[sender][token, place]
            ]
            for target in targets:
                flat[sender, target] += 1
            for target in set(targets):
                by_rank[sender, target] += 1
                inside[target // each * each + sender % each, target] += 1
            for server in {target // each for target in targets} - {sender // each}:
                between[sender, server * each + sender % each] += 1
    np.testing.assert_array_equal(token_copies(choices, places=places, kept=kept), flat)
    np.testing.assert_array_equal(token_copies(choices, places=places, per="rank", kept=kept), by_rank)
    found = token_copies_by_server(choices, places=places, ranks_per_server=each, kept=kept)
    np.testing.assert_array_equal(found[0], between)
    np.testing.assert_array_equal(found[1], inside)


def test_a_matrix_is_an_all_to_all_v() -> None:
    places = ExpertPlaces.in_order(experts=8, n_ranks=4)
    choices = [choose_experts(expert_weights("hot", experts=8), tokens=64, top_k=2, rank=r) for r in range(4)]
    matrix = token_copies(choices, places=places) * scaled_token_bytes(1024, precision="fp8")
    collective = Collective(kind="all_to_all_v", n_ranks=4, matrix=matrix, algorithm="direct")
    template = collective.template()
    moved = int(template.transfer_bytes(matrix).sum())
    assert moved == matrix.sum() - np.trace(matrix)
    assert matrix[:, 0].sum() == matrix.sum(axis=0).max()


def test_padded_messages_are_alike() -> None:
    places = ExpertPlaces.in_order(experts=8, n_ranks=4)
    assert padded_copies(capacity=10, places=places).tolist() == [[20] * 4] * 4


def test_replicas_of_an_expert_take_turns() -> None:
    places = ExpertPlaces(expert=np.array([0, 1, 0, 2]), n_ranks=4)
    choice = np.zeros((6, 1), dtype=np.int64)
    assert places.rank_of(choice, sender=0).ravel().tolist() == [0, 2, 0, 2, 0, 2]
    assert places.rank_of(choice, sender=1).ravel().tolist() == [2, 0, 2, 0, 2, 0]


@pytest.mark.parametrize(
    ("expert", "ranks"), [([0, 1, 2], 2), ([0, 2], 2), ([], 1), ([0, 1], 0), ([-1, 0], 1)]
)
def test_places_that_are_none(expert: list[int], ranks: int) -> None:
    with pytest.raises(SpecError, match="slots"):
        ExpertPlaces(expert=np.array(expert, dtype=np.int64), n_ranks=ranks)


def test_copies_that_cannot_be_counted() -> None:
    places = ExpertPlaces.in_order(experts=4, n_ranks=4)
    choices = [np.zeros((1, 1), dtype=np.int64)] * 4
    for wrong in ({"per": "node"}, {"kept": []}):
        with pytest.raises(SpecError):
            token_copies(choices, places=places, **wrong)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="choices"):
        token_copies(choices[:3], places=places)
    with pytest.raises(SpecError, match=r"choices\[0\]"):
        token_copies([np.array([[4]])] * 4, places=places)
    with pytest.raises(SpecError, match="ranks_per_server"):
        token_copies_by_server(choices, places=places, ranks_per_server=3)


# Replication.

LOADS = [90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86]
SLOTS = [(5, 6), (5, 7), (8, 4), (3, 4), (10, 9), (10, 2), (0, 1), (11, 1)]


def test_the_published_example_of_eplb() -> None:
    places = replicate_experts(LOADS, slots=16, n_ranks=8, groups=4, servers=2)
    load = rank_loads(LOADS, places)
    assert load.tolist() == [121.5, 86.5, 125, 113, 147.5, 131.5, 156, 152]
    assert load.max() / load.mean() == pytest.approx(1.208132, abs=5e-7)
    assert load.reshape(2, 4).sum(axis=1).tolist() == [446, 587]
    assert [sorted(pair) for pair in places.expert.reshape(8, 2).tolist()] == [sorted(pair) for pair in SLOTS]


def test_groups_that_do_not_fit_servers_are_one() -> None:
    alone = replicate_experts(LOADS, slots=16, n_ranks=8, groups=3, servers=2)
    together = replicate_experts(LOADS, slots=16, n_ranks=8)
    assert alone.expert.tolist() == together.expert.tolist()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 1000), min_size=8, max_size=8), st.sampled_from([1, 2]), st.integers(1, 4))
def test_replication_keeps_every_expert_and_helps(loads: list[int], servers: int, more: int) -> None:
    places = replicate_experts(loads, slots=8 * more, n_ranks=4, groups=4, servers=servers)
    count = np.bincount(places.expert, minlength=8)
    assert count.min() >= 1
    assert count.sum() == 8 * more
    load = rank_loads(loads, places)
    assert load.sum() == pytest.approx(sum(loads))
    most = max(loads[expert] / count[expert] for expert in range(8))
    assert load.max() <= most * 2 * more + 1e-9


@pytest.mark.parametrize(
    ("loads", "given"),
    [
        ([], {}),
        ([1, -1, 1, 1], {}),
        ([1, 1, 1, 1], {"groups": 3}),
        ([1, 1, 1, 1], {"slots": 2}),
        ([1, 1, 1, 1], {"slots": 5}),
        ([1, 1, 1, 1], {"n_ranks": 0}),
        ([1, 1, 1, 1], {"n_ranks": 3, "servers": 2, "groups": 2, "slots": 6}),
    ],
)
def test_replications_that_are_none(loads: list[float], given: dict[str, int]) -> None:
    with pytest.raises(SpecError):
        replicate_experts(loads, **{"slots": 4, "n_ranks": 2} | given)


# Packing.


@given(st.lists(st.integers(1, 100), max_size=60), st.sampled_from(["none", "in_order", "longest_first"]))
def test_packed_sequences_fit(lengths: list[int], how: Any) -> None:
    packed = pack_sequences(np.array(lengths, dtype=np.int64), place_tokens=100, how=how)
    assert packed.tokens.sum() == sum(lengths)
    assert (packed.tokens <= 100).all()
    assert packed.attention_pairs.sum() == sum(n * (n + 1) // 2 for n in lengths)
    work = packed.rank_work(n_ranks=3, token_work=2.0, pair_work=0.5)
    assert work.sum() == pytest.approx(2 * sum(lengths) + sum(n * (n + 1) / 4 for n in lengths))
    assert 0 <= packed.padding < 1
    if how == "none":
        assert packed.n_places == len(lengths)
    else:
        assert packed.n_places <= max(1, 2 * sum(lengths) / 100 + 1)


def test_packing_removes_padding_and_makes_work_uneven() -> None:
    lengths = draw_lengths([512, 2048, 8192], [0.6, 0.3, 0.1], sequences=2000)
    apart = pack_sequences(lengths, place_tokens=8192, how="none")
    packed = pack_sequences(lengths, place_tokens=8192)
    expected = 1 - (0.6 * 512 + 0.3 * 2048 + 0.1 * 8192) / 8192
    assert apart.padding == pytest.approx(expected, abs=0.02)
    assert packed.padding < 0.01
    work = packed.rank_work(n_ranks=8, token_work=1.0, pair_work=0.001)
    assert work.max() > work.min()


@pytest.mark.parametrize(
    ("lengths", "given"),
    [([0], {}), ([101], {}), ([1.5], {}), ([[1]], {}), ([1], {"how": "tightly"})],
)
def test_packings_that_are_none(lengths: list[Any], given: dict[str, Any]) -> None:
    with pytest.raises(SpecError):
        pack_sequences(lengths, place_tokens=100, **given)


def test_ranks_and_shares_that_are_none() -> None:
    with pytest.raises(SpecError, match="n_ranks"):
        pack_sequences([1], place_tokens=2).rank_work(n_ranks=0, token_work=1, pair_work=1)
    for shares in ([1.0], [0.0, 0.0], [1.0, -1.0]):
        with pytest.raises(SpecError, match="shares"):
            draw_lengths([1, 2], shares, sequences=3)
