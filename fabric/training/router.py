"""Which experts tokens go to: popularity, choice, capacity.

An expert's popularity is a weight: equal, falling as a power of its rank (Zipf), or one that is hot; or
measured loads are taken as they are. A token takes `top_k` different experts, each draw in proportion to
the weights that are left: expert e has the affinity w_e / (w_e + x), x exponential (a race, won with
probability w_e / sum w), and the k best are taken. Where experts are in groups, as on servers, a token
first keeps the groups whose best experts have the largest sum of affinities (DeepSeek-V3, arXiv
2412.19437, section 2.1.2), which bounds the servers it is sent to.

A capacity bounds what an expert takes from one rank; what is beyond it is dropped, or every message is
padded to it (Megatron-LM `transformer/moe/moe_utils.py`). Draws are counter-based: a rank's choice
depends on nothing else.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.keyed_hash import draw, purpose_key
from fabric.workload.draws import exponential_of_bits

__all__ = [
    "balanced_choice",
    "check_choice",
    "choose_experts",
    "distinct_targets",
    "expert_capacity",
    "expert_weights",
    "within_capacity",
]

Int64Array = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

ROUTER_PURPOSE = 65
"""Key of the draws of routers, apart from those of a run."""

LEAST_WAIT = 2.0**-80
"""Far below every draw but 0: keeps the affinity of an expert without weight a number."""


def expert_weights(
    kind: Literal["uniform", "zipf", "hot"] | npt.ArrayLike,
    *,
    experts: int,
    exponent: float = 1.0,
    hot: int = 0,
    hot_share: float = 0.5,
) -> FloatArray:
    """Share of the tokens that each expert attracts.

    Parameters
    ----------
    kind : {"uniform", "zipf", "hot"} or array_like [experts]
        Or measured loads, which are divided by their sum.
    experts : int
    exponent : float
        Of Zipf's law: expert e has the weight (e + 1) ** -exponent.
    hot : int
        The hot expert,
    hot_share : float
        and its share; the others have the rest in equal parts.

    Returns
    -------
    ndarray of float64 [experts]

    Raises
    ------
    SpecError

    Examples
    --------
    >>> expert_weights("zipf", experts=8).round(4).tolist()
    [0.3679, 0.184, 0.1226, 0.092, 0.0736, 0.0613, 0.0526, 0.046]
    """
    if experts < 1:
        raise SpecError("router.experts", experts, "at least 1")
    if not isinstance(kind, str):
        loads = np.asarray(kind, dtype=np.float64)
        if loads.shape != (experts,) or not np.isfinite(loads).all() or (loads < 0).any() or not loads.any():
            raise SpecError("router.loads", str(loads.shape), f"{experts} loads of at least 0, not all 0")
        return np.asarray(loads / loads.sum(), dtype=np.float64)
    if kind == "uniform":
        return np.full(experts, 1 / experts)
    if kind == "zipf":
        weights = np.arange(1, experts + 1) ** -float(exponent)
        return np.asarray(weights / weights.sum(), dtype=np.float64)
    if kind != "hot":
        raise SpecError("router", kind, '"uniform", "zipf", "hot" or measured loads')
    if not 0 <= hot < experts:
        raise SpecError("router.hot", hot, f"0 to {experts - 1}")
    if not 0 < hot_share <= 1:
        raise SpecError("router.hot_share", hot_share, "above 0, at most 1")
    rest: FloatArray = np.full(experts, (1 - hot_share) / max(experts - 1, 1))
    rest[hot] = hot_share
    return rest


def choose_experts(
    weights: npt.ArrayLike,
    *,
    tokens: int,
    top_k: int,
    groups: int = 1,
    groups_per_token: int = 1,
    seed: int = 1,
    rank: int = 0,
    turn: int = 0,
) -> Int64Array:
    """Draw the experts of every token of a rank.

    Parameters
    ----------
    weights : array_like of float [experts]
    tokens, top_k : int
    groups, groups_per_token : int
        Experts are in so many equal groups; a token's come from so few.
    seed, rank, turn : int
        Different turns (layers, micro-batches) draw anew.

    Returns
    -------
    ndarray of int64 [tokens, top_k]
        The best first.

    Raises
    ------
    SpecError
        If fewer experts than `top_k` can be chosen.

    Examples
    --------
    >>> choice = choose_experts(expert_weights("uniform", experts=256), tokens=100, top_k=8, groups=8,
    ...     groups_per_token=4)
    >>> choice.shape, max(len(set(token // 32)) for token in choice) <= 4
    ((100, 8), True)
    """
    share = np.asarray(weights, dtype=np.float64)
    experts = len(share)
    if groups < 1 or experts % groups or not 1 <= groups_per_token <= groups:
        raise SpecError("router.groups", (groups, groups_per_token), f"groups that divide {experts} experts")
    per_group = experts // groups
    most = np.sort((share > 0).reshape(groups, per_group).sum(axis=1))[:groups_per_token].sum()
    if not 1 <= top_k <= most:
        raise SpecError("router.top_k", top_k, f"1 to {most}, the experts that every choice of groups has")
    key = draw(purpose_key(seed, ROUTER_PURPOSE), rank, turn)
    bits = draw(key, np.arange(tokens)[:, np.newaxis], np.arange(experts))
    affinity = share / (share + exponential_of_bits(bits) + LEAST_WAIT)
    if groups > 1:
        best = -(-top_k // groups_per_token)
        ordered = np.sort(affinity.reshape(tokens, groups, per_group), axis=2)
        score = ordered[:, :, -best:].sum(axis=2)
        kept = np.argsort(-score, axis=1, kind="stable")[:, :groups_per_token]
        open_group = np.zeros((tokens, groups), dtype=np.bool_)
        np.put_along_axis(open_group, kept, True, axis=1)
        affinity = np.where(np.repeat(open_group, per_group, axis=1), affinity, -1.0)
    return np.argsort(-affinity, axis=1, kind="stable")[:, :top_k].astype(np.int64)


def balanced_choice(*, tokens: int, top_k: int, experts: int) -> Int64Array:
    """Experts in turn: every expert has as many tokens as every other, as near as can be.

    Examples
    --------
    >>> balanced_choice(tokens=3, top_k=2, experts=4).tolist()
    [[0, 1], [2, 3], [0, 1]]
    """
    if not 1 <= top_k <= experts:
        raise SpecError("router.top_k", top_k, f"1 to {experts}")
    return np.arange(tokens * top_k, dtype=np.int64).reshape(tokens, top_k) % experts


def check_choice(choice: npt.ArrayLike, *, experts: int, path: str = "router.trace") -> Int64Array:
    """Return a measured choice (a trace) as an array.

    Raises
    ------
    SpecError
        If it is not one row of different experts for each token.
    """
    given = np.asarray(choice)
    if given.ndim != 2 or given.shape[1] < 1 or not np.issubdtype(given.dtype, np.integer):
        raise SpecError(path, f"{given.dtype} {given.shape}", "whole numbers, a row for each token")
    wrong = np.argwhere((given < 0) | (given >= experts))
    if len(wrong):
        token, place = wrong[0].tolist()
        raise SpecError(f"{path}[{token}][{place}]", int(given[token, place]), f"0 to {experts - 1}")
    ordered = np.sort(given, axis=1)
    twice = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    if twice.size:
        raise SpecError(f"{path}[{twice[0]}]", given[twice[0]].tolist(), "different experts")
    return given.astype(np.int64)


def expert_capacity(*, tokens: int, top_k: int, experts: int, factor: float, minimum: int = 0) -> int:
    """Tokens of one rank that an expert takes: ceil(tokens * top_k / experts * factor), or the minimum.

    Examples
    --------
    >>> expert_capacity(tokens=4096, top_k=2, experts=8, factor=1.25)
    1280
    """
    if not factor > 0 or not math.isfinite(factor):
        raise SpecError("router.capacity_factor", factor, "above 0")
    return max(math.ceil(tokens * top_k / experts * factor), minimum)


def within_capacity(
    choice: Int64Array, *, experts: int, capacity: int, probability: npt.ArrayLike | None = None
) -> BoolArray:
    """Which copies of tokens an expert still takes.

    Parameters
    ----------
    choice : ndarray of int64 [tokens, top_k]
    experts, capacity : int
    probability : array_like of float [tokens, top_k], optional
        The least probable are dropped; without it, those that come last.

    Returns
    -------
    ndarray of bool [tokens, top_k]

    Examples
    --------
    >>> within_capacity(np.array([[0], [0], [1]]), experts=2, capacity=1).ravel().tolist()
    [True, False, True]
    """
    expert = choice.ravel()
    place = np.arange(len(expert))
    weight = -np.asarray(probability, dtype=np.float64).ravel() if probability is not None else place
    if len(weight) != len(expert):
        raise SpecError("router.probability", len(weight), f"{len(expert)} numbers")
    order = np.lexsort((place, weight, expert))
    first = np.searchsorted(expert[order], np.arange(experts))
    kept = np.empty(len(expert), dtype=np.bool_)
    kept[order] = place - first[expert[order]] < capacity
    return kept.reshape(choice.shape)


def distinct_targets(*, targets: int, per_target: int, top_k: int) -> float:
    """Expected number of targets among `top_k` of targets * per_target experts, drawn uniformly.

    Examples
    --------
    >>> round(distinct_targets(targets=4, per_target=2, top_k=2), 6)
    1.857143
    """
    experts = targets * per_target
    if not 0 <= top_k <= experts:
        raise SpecError("top_k", top_k, f"0 to {experts}")
    return targets * (1 - math.comb(experts - per_target, top_k) / math.comb(experts, top_k))
