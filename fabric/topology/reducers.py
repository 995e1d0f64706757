"""Reducers: places in switches that add up what ranks send, and send the sum on (SHARP, NVLS).

A model, stated as it is: a reducer is a host of its own beside its switch. Its cable has the rate of all
other cables of that switch together, so that it can take in from every port, and send out to every port, at
line rate; it loses nothing, and has the smallest delay of the switch's cables, which stands for the time
that adding takes. The sum itself takes no time, and there is room for any number of operations. Frames to
and from a reducer cross the switch like any others: they are queued, marked and paused there. A message
is added up when all of it has arrived; cut into chunks, data streams through.

Source of what is modelled: Graham et al., "Scalable Hierarchical Aggregation Protocol (SHARP)", COMHPC 2016.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.topology.network import TIER_HOST, Network
from fabric.topology.patterns import REDUCER_SUFFIX

__all__ = ["attach_reducers", "reduction_tree"]


def attach_reducers(network: Network, *switches: str, path: str = "switches") -> Network:
    """Give switches a reducer each, called "leaf0.reducer".

    Numbers of hosts and cables stay, those of switches grow. Patterns of hosts find a reducer if they end
    like its name: "*" does not, "*.reducer" does.

    Parameters
    ----------
    network : Network
    *switches : str
        Patterns of their names; all of them unless given.
    path : str
        What errors call that.

    Raises
    ------
    SpecError
        If no switch is called as a pattern says.

    Examples
    --------
    >>> from fabric.spec import SingleSwitch
    >>> from fabric.topology import build_network
    >>> network = attach_reducers(build_network(SingleSwitch(hosts=4)))
    >>> network.names[4:], int(network.link_rate_bps[4]) // int(network.link_rate_bps[0])
    (('switch0.reducer', 'switch0'), 4)
    """
    hosts = network.n_hosts
    found: set[int] = set()
    for number, pattern in enumerate(switches or ("*",)):
        matching = [n for n in range(hosts, network.n_nodes) if fnmatchcase(network.names[n], pattern)]
        if not matching:
            allowed = f"a pattern of names such as {network.names[hosts]!r}"
            raise SpecError(f"{path}[{number}]", pattern, allowed)
        found.update(matching)
    chosen = sorted(found)
    count = len(chosen)
    ends = np.concatenate([network.link_a, network.link_b]).astype(np.int64)
    rates = np.zeros(network.n_nodes, dtype=np.int64)
    np.add.at(rates, ends, np.tile(network.link_rate_bps, 2))
    delays = np.full(network.n_nodes, np.iinfo(np.int64).max)
    np.minimum.at(delays, ends, np.tile(network.link_delay_ps, 2))
    own = [f"{network.names[switch]}{REDUCER_SUFFIX}" for switch in chosen]

    def moved(nodes: npt.ArrayLike) -> npt.NDArray[np.uint32]:
        numbers = np.asarray(nodes, dtype=np.int64)
        return np.where(numbers >= hosts, numbers + count, numbers).astype(np.uint32)

    return Network(
        names=(*network.names[:hosts], *own, *network.names[hosts:]),
        n_hosts=hosts + count,
        tier=np.insert(network.tier, hosts, [TIER_HOST] * count),
        link_a=np.append(moved(network.link_a), np.arange(hosts, hosts + count)).astype(np.uint32),
        link_b=np.append(moved(network.link_b), moved(chosen)),
        link_rate_bps=np.append(network.link_rate_bps, rates[chosen]),
        link_delay_ps=np.append(network.link_delay_ps, delays[chosen]),
        link_loss=np.append(network.link_loss, np.zeros(count)),
        link_bit_error_rate=np.append(network.link_bit_error_rate, np.zeros(count)),
        link_gap_bytes=np.append(network.link_gap_bytes, np.zeros(count, dtype=np.int64)),
    )


def reduction_tree(
    network: Network, hosts: npt.ArrayLike, *, path: str = "hosts"
) -> tuple[tuple[int, ...], list[int]]:
    """Choose reducers for ranks: those of their switches, and above these level by level.

    Switches that a switch with a reducer is next to share it; where several are, that one is taken with which
    the levels above can go on. So leaves below one spine need two levels, those of several pods three.

    Parameters
    ----------
    network : Network
        With reducers (`attach_reducers`).
    hosts : array_like of int
        Host of each rank; ranks of one switch side by side, and as many at each but the last.
    path : str
        What errors call that.

    Returns
    -------
    fan_in : tuple of int
        For the algorithm "in_network".
    reducers : list of int
        Their host numbers, as the template numbers reducers: for `Job.hosts`, after the ranks'.

    Raises
    ------
    SpecError
        If ranks stand otherwise, or a reducer is missing.

    Examples
    --------
    >>> from fabric.spec import LeafSpine
    >>> from fabric.topology import build_network
    >>> network = attach_reducers(build_network(LeafSpine(leaves=2, spines=2, hosts_per_leaf=4)))
    >>> fan_in, reducers = reduction_tree(network, range(8))
    >>> fan_in, [network.names[host] for host in reducers]
    ((4, 2), ['leaf0.reducer', 'leaf1.reducer', 'spine0.reducer'])
    """
    switch_of = _switch_of(network, np.asarray(hosts, dtype=np.int64))
    begins = np.flatnonzero(np.diff(switch_of, prepend=-1))
    leaves = switch_of[begins].tolist()
    sizes = np.diff(np.append(begins, len(switch_of)))
    if len(set(leaves)) != len(leaves) or (sizes[:-1] != sizes[0]).any() or sizes[-1] > sizes[0]:
        shown = ", ".join(
            f"{size} at {network.names[leaf]}" for leaf, size in zip(leaves, sizes, strict=True)
        )
        raise SpecError(path, shown, "ranks of a switch side by side, as many at each but the last")
    without = [leaf for leaf in leaves if _reducer_of(network, leaf) is None]
    if without:
        shown = f"ranks at {network.names[without[0]]}"
        raise SpecError(
            path, shown, 'ranks at switches that have a reducer (such as topology.reducers = ["*"])'
        )
    above = _levels_above(network, leaves, below=set())
    if above is None:
        shown = "ranks at " + ", ".join(network.names[leaf] for leaf in leaves)
        allowed = "switches with reducers above these, next to as many each but the last, up to a single one"
        raise SpecError(path, shown, allowed)
    fan_in = (int(sizes[0]), *(size for size, _ in above))
    switches = [*leaves, *(switch for _, level in above for switch in level)]
    reducers = [_reducer_of(network, switch) for switch in switches]
    return fan_in, [each for each in reducers if each is not None]


def _levels_above(
    network: Network, members: list[int], *, below: set[int]
) -> list[tuple[int, list[int]]] | None:
    """The levels above some switches, each with its fan-in and its switches; None if there are none."""
    if len(members) == 1:
        return []
    groups = _groups(network, members, below={*below, *members})
    sizes = [size for size, _ in groups]
    if len(groups) == len(members) or len({*sizes[:-1], max(sizes)}) > 1:
        return None
    for place in range(min(len(shared) for _, shared in groups)):
        level = [shared[place] for _, shared in groups]
        above = (
            _levels_above(network, level, below={*below, *members}) if len({*level}) == len(level) else None
        )
        if above is not None:
            return [(sizes[0], level), *above]
    return None


def _groups(network: Network, members: list[int], *, below: set[int]) -> list[tuple[int, list[int]]]:
    """Members side by side that some switch with a reducer is next to: how many, and all such switches."""
    groups: list[tuple[int, list[int]]] = []
    for member in members:
        near = {
            each for each in _neighbours(network, member) - below if _reducer_of(network, each) is not None
        }
        together = near.intersection(groups[-1][1]) if groups else set()
        if together:
            groups[-1] = (groups[-1][0] + 1, sorted(together))
        else:
            groups.append((1, sorted(near)))
    return groups


def _reducer_of(network: Network, switch: int) -> int | None:
    return network.node_numbers.get(f"{network.names[switch]}{REDUCER_SUFFIX}")


def _switch_of(network: Network, hosts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The node at the other end of each host's first cable."""
    first_port = network.node_port_base[hosts]
    return network.port_node[network.port_peer[first_port]].astype(np.int64)


def _neighbours(network: Network, node: int) -> set[int]:
    """Switches next to a node."""
    first, end = network.node_port_base[node : node + 2]
    beside = network.port_node[network.port_peer[first:end]]
    return {int(each) for each in beside if each >= network.n_hosts}
