"""Which host each rank of a job runs on.

Hosts are accelerators, numbered server by server. The unit that is placed is a rank, or a whole tensor group
where it must stay inside a server; a server offers room for so many units, side by side. "packed" fills one
server after the other; "rail" deals units to the servers in turn, so that consecutive units share a
rail; "scattered" takes places at random, as a busy cluster's scheduler would.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.keyed_hash import draw, purpose_key
from fabric.spec.training.parallelism import Parallelism

__all__ = ["place_ranks"]

Int64Array = npt.NDArray[np.int64]

PLACEMENT_PURPOSE = 64
"""Key of the random places, apart from those of a run."""


def place_ranks(
    parallelism: Parallelism,
    *,
    servers: int,
    accelerators: int = 8,
    how: Literal["packed", "rail", "scattered"] | Sequence[int] = "packed",
    tp_inside: bool = False,
    seed: int = 1,
) -> Int64Array:
    """Return the host of every rank.

    Parameters
    ----------
    parallelism : Parallelism
    servers : int
    accelerators : int
        Of each server.
    how : {"packed", "rail", "scattered"} or sequence of int
        Or the host of every rank, which is checked.
    tp_inside : bool
        Whether a tensor group must stay inside a server.
    seed : int
        Of "scattered".

    Returns
    -------
    ndarray of int64 [ranks]
        Host h is accelerator h % accelerators of server h // accelerators.

    Raises
    ------
    SpecError
        If there is no room, a list is not one of different hosts, or a tensor group would be torn.

    Examples
    --------
    >>> layout = Parallelism(tp=2, dp=4)
    >>> place_ranks(layout, servers=2, accelerators=4).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7]
    >>> place_ranks(layout, servers=2, accelerators=4, how="rail").tolist()
    [0, 4, 1, 5, 2, 6, 3, 7]
    >>> place_ranks(layout, servers=2, accelerators=4, how="rail", tp_inside=True).tolist()
    [0, 1, 4, 5, 2, 3, 6, 7]
    """
    if servers < 1 or accelerators < 1:
        raise SpecError("placement", (servers, accelerators), "at least one server and one accelerator")
    if not isinstance(how, str):
        return _listed(parallelism, how, servers=servers, accelerators=accelerators, tp_inside=tp_inside)
    units = parallelism.groups("tp") if tp_inside else np.arange(parallelism.world).reshape(-1, 1)
    per_server = accelerators // units.shape[1]
    if per_server == 0:
        allowed = f"at most {accelerators}, the accelerators of a server, to stay inside it"
        raise SpecError("parallelism.tp", parallelism.tp, allowed)
    if len(units) > servers * per_server:
        needed = -(-len(units) // per_server)
        raise SpecError("placement.servers", servers, f"at least {needed} for {parallelism.world} ranks")
    server, slot = _slots(how, len(units), servers=servers, per_server=per_server, seed=seed)
    hosts = np.empty(parallelism.world, dtype=np.int64)
    first = server * accelerators + slot * units.shape[1]
    hosts[units] = first[:, np.newaxis] + np.arange(units.shape[1])
    return hosts


def _slots(
    how: str, units: int, *, servers: int, per_server: int, seed: int
) -> tuple[Int64Array, Int64Array]:
    """Server of each unit, and its place there."""
    unit = np.arange(units, dtype=np.int64)
    if how == "packed":
        return unit // per_server, unit % per_server
    if how == "rail":
        return unit % servers, unit // servers
    if how == "scattered":
        places = np.arange(servers * per_server, dtype=np.int64)
        chosen = np.argsort(draw(purpose_key(seed, PLACEMENT_PURPOSE), places, 0), kind="stable")[:units]
        return chosen // per_server, chosen % per_server
    raise SpecError("placement", how, '"packed", "rail", "scattered" or a list of hosts')


def _listed(
    parallelism: Parallelism, how: Sequence[int], *, servers: int, accelerators: int, tp_inside: bool
) -> Int64Array:
    hosts = np.asarray(how)
    if hosts.shape != (parallelism.world,) or not np.issubdtype(hosts.dtype, np.integer):
        raise SpecError("placement", f"{hosts.dtype} {hosts.shape}", f"{parallelism.world} hosts")
    wrong = np.flatnonzero((hosts < 0) | (hosts >= servers * accelerators))
    if wrong.size:
        allowed = f"hosts from 0 to {servers * accelerators - 1}"
        raise SpecError(f"placement[{wrong[0]}]", int(hosts[wrong[0]]), allowed)
    order = np.argsort(hosts, kind="stable")
    twice = np.flatnonzero(np.diff(hosts[order]) == 0)
    if twice.size:
        rank = int(order[twice[0] + 1])
        raise SpecError(f"placement[{rank}]", int(hosts[rank]), "every host once")
    if tp_inside:
        server = hosts[parallelism.groups("tp")] // accelerators
        torn = np.flatnonzero((server != server[:, :1]).any(axis=1))
        if torn.size:
            ranks = parallelism.groups("tp")[torn[0]].tolist()
            raise SpecError("placement", f"ranks {ranks[:8]}", "a tensor group inside one server")
    return hosts.astype(np.int64)
