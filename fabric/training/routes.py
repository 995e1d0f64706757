"""`TokenRoutes`: who sends how many copies of tokens to whom, layer by layer, as a router describes it.

A way out (dispatch) has one leg, or two where tokens go over the rail's rank of a server
(`fabric.training.forwarding`). The way back (combine) is its mirror image. Every expert group and every layer
and micro-batch has draws of its own, unless the router draws once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.spec.training.job import TrainingJob
from fabric.spec.training.model import Experts
from fabric.spec.training.router import Router
from fabric.training.dispatch import ExpertPlaces, padded_copies, token_copies, token_copies_by_server
from fabric.training.forwarding import Forwarding, gathered_first, passed_on_inside
from fabric.training.replication import replicate_experts
from fabric.training.router import (
    balanced_choice,
    check_choice,
    choose_experts,
    expert_capacity,
    expert_weights,
    within_capacity,
)

__all__ = ["TokenRoutes"]

Int64Array = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Legs = list[Int64Array]
Way = Int64Array | Forwarding
"""Copies from rank to rank in one leg, or two legs."""


@dataclass(kw_only=True, eq=False)
class TokenRoutes:
    """Copies of tokens between the ranks of expert groups.

    Parameters
    ----------
    job : TrainingJob
    router : Router
    server_of : ndarray of int64 [ranks]
        Server of each rank of the job.
    seed : int
    path : str
        Of the router, for errors.

    Raises
    ------
    SpecError
        If a file cannot be read or does not fit the model, or ranks of a group are not spread over servers as
        the router needs them.

    Examples
    --------
    >>> from fabric.spec.training.parallelism import Parallelism
    >>> job = TrainingJob(model="mixtral-8x7b", sequence=1024, global_batch=8,
    ...     parallelism=Parallelism(dp=8, ep=8))
    >>> routes = TokenRoutes(job=job, router=Router(choice="hot"), server_of=np.zeros(8, dtype=np.int64))
    >>> (out,) = routes.legs("dispatch", 0, 0, group=(0, 0), ranks=np.arange(8))
    >>> out.shape, int(out.sum()), bool(out[:, 0].sum() > out[:, 1].sum())
    ((8, 8), 16384, True)
    """

    job: TrainingJob
    router: Router
    server_of: Int64Array
    seed: int = 1
    path: str = "router"
    _cache: dict[Any, tuple[Way, Way, FloatArray]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        experts = self.job.shape.experts
        if experts is None:
            raise SpecError(self.path, self.router.choice, "none for a model without experts")
        self.experts: Experts = experts
        self.trace: Int64Array | None = None
        self.weights = self._weights()
        n_ranks = self.job.parallelism.ep
        slots = experts.count + self.router.replicas
        if slots % n_ranks:
            allowed = f"such that {experts.count} experts and they are a multiple of {n_ranks} ranks"
            raise SpecError(f"{self.path}.replicas", self.router.replicas, allowed)
        if self.router.replicas:
            self.places = replicate_experts(self.weights, slots=slots, n_ranks=n_ranks)
        else:
            self.places = ExpertPlaces.in_order(experts=experts.count, n_ranks=n_ranks)

    def legs(
        self, what: str, layer: int, micro_batch: int, *, group: tuple[int, int], ranks: Int64Array
    ) -> Legs:
        """Copies from rank to rank of a group, leg by leg.

        Parameters
        ----------
        what : {"dispatch", "combine"}
        layer, micro_batch : int
        group : (int, int)
            Stage and number of the group.
        ranks : ndarray of int64 [n]
            Its ranks.

        Returns
        -------
        list of ndarray of int64 [n, n]
        """
        way = self.way(what, layer, micro_batch, group=group, ranks=ranks)
        return way.matrices() if isinstance(way, Forwarding) else [way]

    def way(
        self, what: str, layer: int, micro_batch: int, *, group: tuple[int, int], ranks: Int64Array
    ) -> Int64Array | Forwarding:
        """As `legs`: the copies of a single leg, or two legs with what is passed on from one to the other."""
        out, back, _ = self._routed(layer, micro_batch, group, ranks)
        return out if what == "dispatch" else back

    def load(self, layer: int, micro_batch: int, *, group: tuple[int, int], ranks: Int64Array) -> FloatArray:
        """What experts of each rank have to do, against an even share [n]."""
        return self._routed(layer, micro_batch, group, ranks)[2]

    def _weights(self) -> FloatArray:
        router, count = self.router, self.experts.count
        if router.choice == "hot" and router.hot >= count:
            raise SpecError(f"{self.path}.hot", router.hot, f"0 to {count - 1}")
        if router.choice in ("loads", "trace"):
            rows = _read_numbers(str(router.file), path=f"{self.path}.file: {router.file}")
            if router.choice == "loads":
                return expert_weights(rows.ravel(), experts=count)
            where = f"{self.path}.file: {router.file}"
            self.trace = check_choice(rows.astype(np.int64), experts=count, path=where)
            if self.trace.shape[1] != self.experts.top_k:
                raise SpecError(where, self.trace.shape[1], f"{self.experts.top_k} experts a token")
            return np.bincount(self.trace.ravel(), minlength=count).astype(np.float64)
        kind: Any = "uniform" if router.choice == "balanced" else router.choice
        return expert_weights(
            kind, experts=count, exponent=router.exponent, hot=router.hot, hot_share=router.hot_share
        )

    def _routed(
        self, layer: int, micro_batch: int, group: tuple[int, int], ranks: Int64Array
    ) -> tuple[Way, Way, FloatArray]:
        same = self.router.redraw == "never" or self.router.choice == "balanced"
        turn = 0 if same else layer * self.job.micro_batches + micro_batch
        key = (turn, group)
        if key not in self._cache:
            if len(self._cache) > KEPT:
                self._cache.clear()
            out, load = self._route(turn, ranks)
            back = out.mirrored() if isinstance(out, Forwarding) else out.T
            self._cache[key] = (out, back, load)
        return self._cache[key]

    def _route(self, turn: int, ranks: Int64Array) -> tuple[Way, FloatArray]:
        job, router, n_ranks = self.job, self.router, len(ranks)
        tokens, top_k = job.tokens_per_rank, self.experts.top_k
        choices = [self._choice(int(rank), turn) for rank in ranks]
        kept = None
        capacity = tokens
        if router.capacity_factor is not None:
            capacity = expert_capacity(
                tokens=tokens, top_k=top_k, experts=self.experts.count, factor=router.capacity_factor
            )
            kept = [within_capacity(one, experts=self.experts.count, capacity=capacity) for one in choices]
        load = token_copies(choices, places=self.places, kept=kept).sum(axis=0)
        if router.overflow == "pad":
            copies = padded_copies(capacity=capacity, places=self.places)
            return self._way_of(copies, ranks), copies.sum(axis=0) / (tokens * top_k)
        even = load / (tokens * top_k)
        copies = token_copies(
            choices,
            places=self.places,
            per="expert" if router.copies == "expert" else "rank",
            kept=kept,
        )
        assert copies.shape == (n_ranks, n_ranks)
        if router.copies != "server":
            return self._way_of(copies, ranks), even
        per_server = self._ranks_per_server(ranks)
        between, _ = token_copies_by_server(
            choices, places=self.places, ranks_per_server=per_server, kept=kept
        )
        way = passed_on_inside(between, copies, ranks_per_server=per_server, chunks=router.chunks or 1)
        return way, even

    def _way_of(self, copies: Int64Array, ranks: Int64Array) -> Way:
        """Copies in one leg; regrouped, first to the rank of the sender's server on the receiver's rail."""
        if not self.router.regroup:
            return copies
        return gathered_first(
            copies, ranks_per_server=self._ranks_per_server(ranks), chunks=self.router.chunks or 1
        )

    def _choice(self, rank: int, turn: int) -> Int64Array:
        job, router, experts = self.job, self.router, self.experts
        tokens = job.tokens_per_rank
        if router.choice == "balanced":
            return balanced_choice(tokens=tokens, top_k=experts.top_k, experts=experts.count)
        if self.trace is not None:
            row = (rank + turn * job.parallelism.world) * tokens + np.arange(tokens)
            return self.trace[row % len(self.trace)]
        limited = router.node_limited
        return choose_experts(
            self.weights,
            tokens=tokens,
            top_k=experts.top_k,
            groups=experts.groups if limited else 1,
            groups_per_token=experts.groups_per_token if limited else 1,
            seed=self.seed,
            rank=rank,
            turn=turn,
        )

    def _ranks_per_server(self, ranks: Int64Array) -> int:
        """Ranks of a group on each server: as many on all, side by side."""
        servers = self.server_of[ranks]
        per_server = int((servers == servers[0]).sum())
        blocks = servers.reshape(-1, per_server) if len(servers) % per_server == 0 else servers[np.newaxis]
        if (blocks != blocks[:, :1]).any() or len(np.unique(blocks[:, 0])) < len(blocks):
            what = "copies" if self.router.copies == "server" else "regroup"
            allowed = (
                "something else where the ranks of an expert group are not side by side on their servers"
            )
            raise SpecError(f"{self.path}.{what}", getattr(self.router, what), allowed)
        return per_server


KEPT = 64
"""Routed layers that are remembered."""


def _read_numbers(file: str, *, path: str) -> FloatArray:
    try:
        rows = np.loadtxt(file, delimiter=",", ndmin=2, dtype=np.float64)
    except OSError as error:
        raise SpecError(path, error.strerror or "no file", "a CSV file of numbers") from None
    except ValueError as error:
        raise SpecError(path, str(error), "a CSV file of numbers, as many in each row") from None
    if not rows.size:
        raise SpecError(path, "nothing", "a CSV file of numbers")
    return rows
