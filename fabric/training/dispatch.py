"""Bytes between expert ranks: the matrix of an all-to-all-v from what tokens choose.

A copy of a token may go out for each of its experts, for each rank that holds one of them, or for each
server: then one rank there, the one on the sender's rail, receives it over the network and passes it on
inside (DeepSeek's DeepEP, normal kernels). The matrix of the way back is the transpose, in the precision
of the way back. What stays on a rank is in the diagonal and crosses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError

__all__ = ["ExpertPlaces", "padded_copies", "scaled_token_bytes", "token_copies", "token_copies_by_server"]

Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

SCALE_ELEMENTS, SCALE_BYTES = 128, 4
"""One fp32 scale for 128 elements in fp8 (DeepSeek-V3, arXiv 2412.19437, section 3.3.2)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ExpertPlaces:
    """Which rank holds which experts.

    Attributes
    ----------
    expert : ndarray of int64 [slots]
        Expert of each slot; a replicated expert has several. Every rank has as many slots as every other.
    n_ranks : int

    Examples
    --------
    >>> ExpertPlaces.in_order(experts=8, n_ranks=4).rank_of(np.array([[0, 7]]), sender=0).tolist()
    [[0, 3]]
    """

    expert: Int64Array
    n_ranks: int

    def __post_init__(self) -> None:
        if self.n_ranks < 1 or not len(self.expert) or len(self.expert) % self.n_ranks:
            raise SpecError("experts.slots", len(self.expert), f"a multiple of {self.n_ranks} ranks")
        missing = np.setdiff1d(np.arange(self.expert.max() + 1), self.expert)
        if missing.size or self.expert.min() < 0:
            raise SpecError("experts.slots", self.expert.tolist()[:16], "a slot for every expert from 0 on")

    @classmethod
    def in_order(cls, *, experts: int, n_ranks: int) -> ExpertPlaces:
        """The first experts on the first rank, and so on."""
        return cls(expert=np.arange(experts, dtype=np.int64), n_ranks=n_ranks)

    @property
    def n_experts(self) -> int:
        """Different ones."""
        return int(self.expert.max()) + 1

    def rank_of(self, choice: Int64Array, *, sender: int) -> Int64Array:
        """Rank to which each copy goes: replicas of an expert in turn, beginning at the sender's number."""
        order = np.argsort(self.expert, kind="stable")
        count = np.bincount(self.expert, minlength=self.n_experts)
        first = np.cumsum(count) - count
        turn = sender + np.arange(choice.shape[0]).reshape(-1, 1)
        slot = order[first[choice] + turn % count[choice]]
        return slot // (len(self.expert) // self.n_ranks)


def scaled_token_bytes(hidden: int, *, precision: Literal["bf16", "fp8"]) -> int:
    """One copy of a token: two bytes an element, or one and a scale for every 128.

    Examples
    --------
    >>> scaled_token_bytes(7168, precision="fp8"), scaled_token_bytes(7168, precision="bf16")
    (7392, 14336)
    """
    if precision == "bf16":
        return 2 * hidden
    if precision != "fp8":
        raise SpecError("precision", precision, '"bf16" or "fp8"')
    return hidden + -(-hidden // SCALE_ELEMENTS) * SCALE_BYTES


def token_copies(
    choices: Sequence[Int64Array],
    *,
    places: ExpertPlaces,
    per: Literal["expert", "rank"] = "expert",
    kept: Sequence[BoolArray] | None = None,
) -> Int64Array:
    """Count the copies of tokens from each rank to each.

    Parameters
    ----------
    choices : sequence of ndarray of int64 [tokens, top_k]
        Of every rank.
    places : ExpertPlaces
    per : {"expert", "rank"}
        What a token has a copy for.
    kept : sequence of ndarray of bool [tokens, top_k], optional
        As of `within_capacity`; the others are dropped.

    Returns
    -------
    ndarray of int64 [ranks, ranks]
        Times `scaled_token_bytes` the matrix of an all-to-all-v.

    Examples
    --------
    >>> places = ExpertPlaces.in_order(experts=4, n_ranks=2)
    >>> token_copies([np.array([[0, 1], [2, 3]])] * 2, places=places).tolist()
    [[2, 2], [2, 2]]
    >>> token_copies([np.array([[0, 1], [2, 3]])] * 2, places=places, per="rank").tolist()
    [[1, 1], [1, 1]]
    """
    if per not in ("expert", "rank"):
        raise SpecError("per", per, '"expert" or "rank"')
    copies = np.zeros((places.n_ranks, places.n_ranks), dtype=np.int64)
    for sender, (target, there) in enumerate(_targets(choices, places, kept)):
        if per == "rank":
            copies[sender] = _touched(target, there, bins=places.n_ranks).sum(axis=0)
        else:
            copies[sender] = np.bincount(target[there], minlength=places.n_ranks)
    return copies


def token_copies_by_server(
    choices: Sequence[Int64Array],
    *,
    places: ExpertPlaces,
    ranks_per_server: int,
    kept: Sequence[BoolArray] | None = None,
) -> tuple[Int64Array, Int64Array]:
    """Count copies where one goes to each server, and is passed on to the ranks there.

    Parameters
    ----------
    choices, places, kept
        As of `token_copies`.
    ranks_per_server : int

    Returns
    -------
    between, inside : ndarray of int64 [ranks, ranks]
        Copies that go to the rank on the sender's rail of another server; copies from the rank that has
        received a token (or made it) to those of its server that want it.

    Examples
    --------
    >>> places = ExpertPlaces.in_order(experts=4, n_ranks=4)
    >>> choices = [np.array([[2, 3]])] + [np.empty((0, 2), dtype=np.int64)] * 3
    >>> between, inside = token_copies_by_server(choices, places=places, ranks_per_server=2)
    >>> between[0].tolist(), inside[2].tolist()
    ([0, 0, 1, 0], [0, 0, 1, 1])
    """
    n_ranks = places.n_ranks
    if ranks_per_server < 1 or n_ranks % ranks_per_server:
        raise SpecError("ranks_per_server", ranks_per_server, f"a divisor of the {n_ranks} expert ranks")
    between = np.zeros((n_ranks, n_ranks), dtype=np.int64)
    inside = np.zeros((n_ranks, n_ranks), dtype=np.int64)
    servers = n_ranks // ranks_per_server
    for sender, (target, there) in enumerate(_targets(choices, places, kept)):
        wanted = _touched(target, there, bins=n_ranks).reshape(-1, servers, ranks_per_server)
        gates = np.arange(servers) * ranks_per_server + sender % ranks_per_server
        between[sender, gates] = wanted.any(axis=2).sum(axis=0)
        between[sender, gates[sender // ranks_per_server]] = 0
        for server, gate in enumerate(gates.tolist()):
            here = slice(server * ranks_per_server, (server + 1) * ranks_per_server)
            inside[gate, here] += wanted[:, server].sum(axis=0)
    return between, inside


def padded_copies(*, capacity: int, places: ExpertPlaces) -> Int64Array:
    """Copies where every message is padded to the capacity of its experts: all alike."""
    per_rank = len(places.expert) // places.n_ranks
    return np.full((places.n_ranks, places.n_ranks), capacity * per_rank, dtype=np.int64)


def _targets(
    choices: Sequence[Int64Array], places: ExpertPlaces, kept: Sequence[BoolArray] | None
) -> list[tuple[Int64Array, BoolArray]]:
    if len(choices) != places.n_ranks or (kept is not None and len(kept) != len(choices)):
        raise SpecError("choices", len(choices), f"the tokens of {places.n_ranks} ranks")
    rows = []
    for sender, choice in enumerate(choices):
        wrong = choice[(choice < 0) | (choice >= places.n_experts)]
        if wrong.size:
            raise SpecError(f"choices[{sender}]", int(wrong[0]), f"experts from 0 to {places.n_experts - 1}")
        there = np.ones(choice.shape, dtype=np.bool_) if kept is None else kept[sender]
        rows.append((places.rank_of(choice, sender=sender), there))
    return rows


def _touched(target: Int64Array, there: BoolArray, *, bins: int) -> BoolArray:
    """For each token, which targets it has at least one copy for."""
    touched = np.zeros((len(target), bins), dtype=np.bool_)
    token = np.broadcast_to(np.arange(len(target))[:, np.newaxis], target.shape)
    touched[token[there], target[there]] = True
    return touched
