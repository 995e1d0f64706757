"""Incast: many senders to each of a few receivers, and flows that suffer with them.

Who takes part, exactly. "Spread" means: in a random order of leaves, one host of each in turn, the
hosts of a leaf in random order. All orders are keyed by the seed.

* Receivers: as named, or the first of all hosts, spread.
* Senders of a receiver, one receiver after the other: hosts on other leaves before those on its own;
  of these, hosts that are no receivers before receivers; of these, the ones that send to the fewest
  receivers so far; of these, spread. So senders are distinct as long as there are enough hosts.
* Victims are flows between idle hosts (neither senders nor receivers). The source is on a leaf with a
  sender or a receiver: of those hosts the one with the fewest victims so far (at either end, then as
  their source), first on leaves with senders, then spread. The destination is on another leaf than the
  source, if there is an idle host: of those the one with the fewest victims so far (at either end,
  then as their destination), first on leaves with receivers, then spread. So the first victims go the
  way of the incast without meeting it at a host, and slow down only by what it does to links that
  they share (queues, pauses).

Flows are numbered receiver by receiver, its senders in the order of choice; victims have a pattern of
their own, labelled "<label>-victims".
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.spec.traffic import Incast
from fabric.topology.network import Network
from fabric.workload.draws import EntryDraws, Stream
from fabric.workload.pattern_flows import PatternFlows, check_flow_count, check_two_hosts
from fabric.workload.placement import host_leaves, rank_in_leaf, spread_over_leaves

__all__ = ["incast_flows"]

Int64Array = npt.NDArray[np.int64]
VICTIM_TURN = 2**32
"""Turn of the victims' order, beyond that of any receiver."""


def incast_flows(spec: Incast, *, network: Network, draws: EntryDraws, path: str) -> list[PatternFlows]:
    """Flows of an `Incast` entry.

    Parameters
    ----------
    spec : Incast
    network : Network
    draws : EntryDraws
    path : str
        Of the entry, for errors.

    Returns
    -------
    list of PatternFlows
        The incast, and the victims if there are any.

    Raises
    ------
    SpecError
        If there are not enough hosts for the fan-in, or no idle hosts for victims.
    """
    hosts = network.n_end_hosts
    check_two_hosts(hosts, path=path)
    if spec.senders >= hosts:
        raise SpecError(f"{path}.senders", spec.senders, f"at most {hosts - 1}: there are {hosts} hosts")
    leaf = host_leaves(network)[:hosts] - (network.n_hosts - hosts)  # the same with reducers as without
    receivers = _receivers(spec, network, leaf, draws, path)
    check_flow_count(len(receivers) * spec.senders, path=f"{path}.senders", value=spec.senders)
    senders = _senders(receivers, fan_in=spec.senders, leaf=leaf, draws=draws)
    flows = PatternFlows(
        source=senders.ravel(),
        destination=np.repeat(receivers, spec.senders),
        size_bytes=int(spec.size),
    )
    if spec.victims == 0:
        return [flows]
    source, destination = _victims(
        spec.victims, senders=senders.ravel(), receivers=receivers, leaf=leaf, draws=draws, path=path
    )
    size = spec.size if spec.victim_size is None else spec.victim_size
    return [
        flows,
        PatternFlows(source=source, destination=destination, size_bytes=int(size), suffix="-victims"),
    ]


def _receivers(spec: Incast, network: Network, leaf: Int64Array, draws: EntryDraws, path: str) -> Int64Array:
    everyone = np.arange(network.n_end_hosts, dtype=np.int64)
    if isinstance(spec.receivers, int):
        if spec.receivers > network.n_end_hosts:
            allowed = f"at most {network.n_end_hosts}: the number of hosts"
            raise SpecError(f"{path}.receivers", spec.receivers, allowed)
        return spread_over_leaves(everyone, leaf=leaf, draws=draws, turn=0)[: spec.receivers]
    named = [
        network.find_hosts(name, path=f"{path}.receivers[{index}]")
        for index, name in enumerate(spec.receivers)
    ]
    found = np.concatenate(named).astype(np.int64)
    return found[np.sort(np.unique(found, return_index=True)[1])]


def _senders(receivers: Int64Array, *, fan_in: int, leaf: Int64Array, draws: EntryDraws) -> Int64Array:
    """Senders of each receiver: int64 [receivers, fan_in]."""
    everyone = np.arange(len(leaf), dtype=np.int64)
    receives = np.isin(everyone, receivers).astype(np.int64)
    sends = np.zeros(len(leaf), dtype=np.int64)
    chosen = np.empty((len(receivers), fan_in), dtype=np.int64)
    for turn, receiver in enumerate(receivers.tolist()):
        same_leaf = (leaf == leaf[receiver]).astype(np.int64)
        preference = (same_leaf * 2 + receives) * (len(receivers) + 1) + sends
        order = _by_preference(everyone, preference=preference, leaf=leaf, draws=draws, turn=turn + 1)
        chosen[turn] = order[order != receiver][:fan_in]
        sends[chosen[turn]] += 1
    return chosen


def _by_preference(
    hosts: Int64Array, *, preference: Int64Array, leaf: Int64Array, draws: EntryDraws, turn: int
) -> Int64Array:
    """Hosts by ascending preference, equal ones spread over leaves."""
    rank = rank_in_leaf(hosts, leaf=leaf, draws=draws, turn=turn, group=preference)
    leaf_order = draws.bits(Stream.LEAF_ORDER, leaf[hosts], turn)
    return hosts[np.lexsort((hosts, leaf_order, rank, preference))]


def _victims(
    count: int,
    *,
    senders: Int64Array,
    receivers: Int64Array,
    leaf: Int64Array,
    draws: EntryDraws,
    path: str,
) -> tuple[Int64Array, Int64Array]:
    """Source and destination of every victim, least used hosts first."""
    everyone = np.arange(len(leaf), dtype=np.int64)
    idle = everyone[~np.isin(everyone, np.concatenate([senders, receivers]))]
    by_sender = np.isin(leaf[idle], leaf[senders])
    by_receiver = np.isin(leaf[idle], leaf[receivers])
    if len(idle) < 2 or not (by_sender | by_receiver).any():
        allowed = "0: victims need two idle hosts, one of them on a leaf with a sender or a receiver"
        raise SpecError(f"{path}.victims", count, allowed)
    place = np.empty(len(idle), dtype=np.int64)
    order = spread_over_leaves(idle, leaf=leaf, draws=draws, turn=VICTIM_TURN)
    place[np.searchsorted(idle, order)] = np.arange(len(idle))
    used = np.zeros((len(idle), 2), dtype=np.int64)
    ends = np.empty((count, 2), dtype=np.int64)
    for victim in range(count):
        sent, received = used.T
        either = sent + received
        source = int(np.lexsort((place, ~by_sender, sent, either, ~(by_sender | by_receiver)))[0])
        same_leaf = leaf[idle] == leaf[idle[source]]
        is_source = np.arange(len(idle)) == source
        preference = (place, ~by_receiver, received, either, same_leaf, is_source)
        destination = int(np.lexsort(preference)[0])
        used[source, 0] += 1
        used[destination, 1] += 1
        ends[victim] = source, destination
    return idle[ends[:, 0]], idle[ends[:, 1]]
