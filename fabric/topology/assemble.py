"""Putting a `Network` together from groups of switches and groups of cables.

The generators describe their fabric with a few index arrays (this host to that leaf, all leaves to all
spines) and `assemble_network` numbers nodes and cables. A generator's host links come first, so the
low ports of a leaf face its hosts and the high ones the spines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabric.spec.link import Link
from fabric.topology.network import TIER_HOST, Network

__all__ = ["Cables", "Switches", "all_pairs", "assemble_network"]


@dataclass(frozen=True)
class Switches:
    """`count` switches of one tier, named `prefix0`, `prefix1`, ..."""

    prefix: str
    count: int
    tier: int


@dataclass(frozen=True)
class Cables:
    """Cables of one kind, from nodes `a` to nodes `b` (node numbers, `a < b`), row by row."""

    a: npt.NDArray[np.integer]
    b: npt.NDArray[np.integer]
    link: Link


def all_pairs(*counts: int) -> list[npt.NDArray[np.int64]]:
    """Indices of a nested loop over `range(count)` for each count, the last one fastest, flattened.

    Examples
    --------
    >>> [indices.tolist() for indices in all_pairs(2, 3)]
    [[0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]]
    """
    return [axis.ravel() for axis in np.indices(counts, dtype=np.int64)]


def assemble_network(n_hosts: int, *, switches: Sequence[Switches], cables: Sequence[Cables]) -> Network:
    """Number hosts, switches and cables in the order given.

    Parameters
    ----------
    n_hosts : int
        Nodes 0 .. n_hosts - 1, named "host0", ...
    switches : sequence of Switches
        Their nodes follow, group by group.
    cables : sequence of Cables
        Rows of the link columns, group by group.

    Returns
    -------
    Network
    """
    names = [f"host{host}" for host in range(n_hosts)]
    tiers = [np.full(n_hosts, TIER_HOST, dtype=np.uint8)]
    for group in switches:
        names.extend(f"{group.prefix}{number}" for number in range(group.count))
        tiers.append(np.full(group.count, group.tier, dtype=np.uint8))

    repeats = [len(group.a) for group in cables]

    def integers(value: Callable[[Link], int]) -> npt.NDArray[np.int64]:
        return np.repeat(np.array([value(group.link) for group in cables], dtype=np.int64), repeats)

    def floats(value: Callable[[Link], float]) -> npt.NDArray[np.float64]:
        return np.repeat(np.array([value(group.link) for group in cables], dtype=np.float64), repeats)

    return Network(
        names=tuple(names),
        n_hosts=n_hosts,
        tier=np.concatenate(tiers),
        link_a=np.concatenate([group.a for group in cables]).astype(np.uint32),
        link_b=np.concatenate([group.b for group in cables]).astype(np.uint32),
        link_rate_bps=integers(lambda link: link.rate),
        link_delay_ps=integers(lambda link: link.delay),
        link_loss=floats(lambda link: link.loss),
        link_bit_error_rate=floats(lambda link: link.bit_error_rate),
        link_gap_bytes=integers(lambda link: link.gap),
    )
