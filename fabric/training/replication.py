"""Replicas of busy experts, and where they go, after DeepSeek's expert-parallel load balancer (EPLB).

Groups of experts are packed onto servers, the heaviest first, each into the lightest server that has
room, so many to each. Inside a server one replica at a time goes to the expert with the largest load per
replica. Replicas are packed onto ranks by the same rule. If groups cannot be divided among servers, all
is one group on one server. Ties: the lower number first; with one item for each bin, items keep their
order.

Source: github.com/deepseek-ai/EPLB (described, not copied).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.training.dispatch import ExpertPlaces

__all__ = ["rank_loads", "replicate_experts"]

Int64Array = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


def replicate_experts(
    loads: npt.ArrayLike, *, slots: int, n_ranks: int, groups: int = 1, servers: int = 1
) -> ExpertPlaces:
    """Place experts, the busy ones several times.

    Parameters
    ----------
    loads : array_like of float [experts]
    slots : int
        Places for experts, on all ranks together.
    n_ranks, groups, servers : int

    Returns
    -------
    ExpertPlaces

    Raises
    ------
    SpecError
        If slots, ranks or servers cannot be divided, or there are fewer slots than experts.

    Examples
    --------
    >>> places = replicate_experts([90, 10, 10, 10], slots=6, n_ranks=2)
    >>> places.expert.tolist(), rank_loads([90, 10, 10, 10], places).tolist()
    ([0, 0, 3, 0, 1, 2], [70.0, 50.0])
    """
    load = np.asarray(loads, dtype=np.float64)
    if load.ndim != 1 or not len(load) or (load < 0).any() or not np.isfinite(load).all():
        raise SpecError("loads", str(load.shape), "a load of at least 0 for each expert")
    if groups < 1 or len(load) % groups:
        raise SpecError("groups", groups, f"a divisor of the {len(load)} experts")
    if servers < 1 or groups % servers:
        groups = servers = 1
    if n_ranks < 1 or n_ranks % servers:
        raise SpecError("n_ranks", n_ranks, f"a multiple of the {servers} servers")
    if slots < len(load) or slots % n_ranks:
        raise SpecError("slots", slots, f"at least {len(load)}, a multiple of the {n_ranks} ranks")
    by_group = np.arange(len(load)).reshape(groups, -1)
    server_groups = _pack(load[by_group].sum(axis=1), bins=servers)
    placed = []
    for of_server in server_groups:
        experts = by_group[of_server].ravel()
        replicas, each = _replicate(load[experts], slots=slots // servers)
        for of_rank in _pack(each, bins=n_ranks // servers):
            placed.append(experts[replicas[of_rank]])
    return ExpertPlaces(expert=np.concatenate(placed).astype(np.int64), n_ranks=n_ranks)


def rank_loads(loads: npt.ArrayLike, places: ExpertPlaces) -> FloatArray:
    """Load of each rank, an expert's divided evenly among its replicas."""
    load = np.asarray(loads, dtype=np.float64)
    count = np.bincount(places.expert, minlength=len(load))
    each = load[places.expert] / count[places.expert]
    total: FloatArray = each.reshape(places.n_ranks, -1).sum(axis=1)
    return total


def _pack(weights: FloatArray, *, bins: int) -> list[list[int]]:
    """Items of each bin, equally many, in the order in which they came."""
    room = len(weights) // bins
    if room == 1:
        return [[item] for item in range(bins)]
    packed: list[list[int]] = [[] for _ in range(bins)]
    total = [0.0] * bins
    for item in np.argsort(-weights, kind="stable").tolist():
        lightest = min((one for one in range(bins) if len(packed[one]) < room), key=total.__getitem__)
        packed[lightest].append(item)
        total[lightest] += float(weights[item])
    return packed


def _replicate(weights: FloatArray, *, slots: int) -> tuple[Int64Array, FloatArray]:
    """Expert of each replica, and its load."""
    count = np.ones(len(weights), dtype=np.int64)
    replicas = list(range(len(weights)))
    for _ in range(slots - len(weights)):
        busiest = int(np.argmax(weights / count))
        replicas.append(busiest)
        count[busiest] += 1
    chosen = np.array(replicas, dtype=np.int64)
    return chosen, (weights / count)[chosen]
