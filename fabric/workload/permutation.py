"""Permutation traffic: every host sends to exactly one other and receives from exactly one.

A random permutation is drawn by sorting keyed hashes, one per host, and drawn again until nobody sends
to itself (on average e times), so every derangement is equally likely. With `cross_leaf` that would take
too long; there the permutation is repaired: every host that would send within its leaf exchanges
destinations with a random host such that both become right. This always succeeds when no leaf has more
than half of the hosts; about as many hosts are repaired as a leaf has, and the result is random but not
exactly uniform.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.spec.traffic import Permutation
from fabric.topology.network import Network
from fabric.workload.draws import EntryDraws, Stream
from fabric.workload.pattern_flows import PatternFlows, check_flow_count, check_two_hosts
from fabric.workload.placement import host_leaves

__all__ = ["permutation_flows", "random_derangement"]

Int64Array = npt.NDArray[np.int64]

ATTEMPT_BITS = 16
"""Room for the attempts of one turn; 2^16 would fail once in e^30000 turns."""


def permutation_flows(
    spec: Permutation, *, network: Network, draws: EntryDraws, path: str
) -> list[PatternFlows]:
    """Flows of a `Permutation` entry: permutation by permutation, in each the hosts in order.

    Parameters
    ----------
    spec : Permutation
    network : Network
    draws : EntryDraws
    path : str
        Of the entry, for errors.

    Returns
    -------
    list of PatternFlows
        One element with `count * hosts` flows.

    Raises
    ------
    SpecError
        If there are fewer than two hosts, or `cross_leaf` is impossible because one leaf has more
        than half of all hosts.
    """
    hosts = network.n_end_hosts
    check_two_hosts(hosts, path=path)
    check_flow_count(spec.count * hosts, path=f"{path}.count", value=spec.count)
    group = host_leaves(network) if spec.cross_leaf else np.arange(hosts, dtype=np.int64)
    if spec.cross_leaf:
        leaf, members = np.unique(group, return_counts=True)
        if 2 * members.max() > hosts:
            crowded = network.names[leaf[members.argmax()]]
            allowed = f"false: {crowded} has {members.max()} of {hosts} hosts, more than half"
            raise SpecError(f"{path}.cross_leaf", True, allowed)
    rounds = [random_derangement(group, draws=draws, turn=turn) for turn in range(spec.count)]
    return [
        PatternFlows(
            source=np.tile(np.arange(hosts, dtype=np.int64), spec.count),
            destination=np.concatenate(rounds),
            size_bytes=int(spec.size),
        )
    ]


def random_derangement(group: Int64Array, *, draws: EntryDraws, turn: int) -> Int64Array:
    """A random permutation that moves every host to another group.

    Parameters
    ----------
    group : ndarray of int64 [hosts]
        Group of each host; none has more than half of the hosts.
    draws : EntryDraws
    turn : int
        Different turns give different permutations.

    Returns
    -------
    ndarray of int64 [hosts]

    Examples
    --------
    >>> draws = EntryDraws.of_entry(1, kind="permutation", occurrence=0)
    >>> to = random_derangement(np.array([0, 0, 1, 1]), draws=draws, turn=0)
    >>> sorted(to.tolist()), bool(np.all(to[:2] >= 2))
    ([0, 1, 2, 3], True)
    """
    if len(np.unique(group)) == len(group):
        return _drawn_until_right(len(group), draws=draws, turn=turn)
    return _repaired(_permutation(len(group), draws=draws, counter=turn), group=group, draws=draws, turn=turn)


def _permutation(hosts: int, *, draws: EntryDraws, counter: int) -> Int64Array:
    order = np.arange(hosts, dtype=np.int64)
    return np.lexsort((order, draws.bits(Stream.DESTINATION, order, counter))).astype(np.int64)


def _drawn_until_right(hosts: int, *, draws: EntryDraws, turn: int) -> Int64Array:
    counter = turn << ATTEMPT_BITS
    while True:
        to = _permutation(hosts, draws=draws, counter=counter)
        if not np.any(to == np.arange(hosts)):
            return to
        counter += 1


def _repaired(to: Int64Array, *, group: Int64Array, draws: EntryDraws, turn: int) -> Int64Array:
    for host in np.flatnonzero(group[to] == group).tolist():
        if group[to[host]] != group[host]:
            continue
        partners = np.flatnonzero((group != group[host]) & (group[to] != group[host]))
        partner = partners[draws.below(len(partners), Stream.REPAIR, host, turn)]
        to[host], to[partner] = to[partner], to[host]
    return to
