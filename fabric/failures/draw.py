"""Failures by chance: every part fails as a Poisson process of its own.

The gaps between failures of one part are exponential, each from a keyed draw of (seed, entry, class of part,
part, number): the failures of one part do not depend on what else there is, and a run can be repeated from
its seed. Rates are per unit and year; repair does not stop the clock of a part, so failures of one part may
overlap.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from fabric.keyed_hash import draw, purpose_key, uniform
from fabric.spec.failure_sources import DrawnFailures
from fabric.spec.failures import Corruption, Failure, HostHang, LinkDown, SwitchDown
from fabric.topology.network import TIER_CORE, TIER_LEAF, TIER_SCALE_UP, TIER_SPINE, Network
from fabric.topology.patterns import REDUCER_SUFFIX
from fabric.units import Duration

__all__ = ["PS_PER_YEAR", "PURPOSE_FAILURES", "draw_times", "network_failures"]

PURPOSE_FAILURES = 48
PS_PER_YEAR = 8760 * 3600 * 10**12
CLASSES = ("accelerator", "nic", "optic", "link", "leaf", "spine", "core")
TIERS = {"leaf": TIER_LEAF, "spine": TIER_SPINE, "core": TIER_CORE}
"""The tier of each class of switch; an optic is one end of a cable, and corrupts what it sends."""


def draw_times(
    count: int, *, mean_ps: float, horizon_ps: int, key: int, stream: int = 0
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """When each of some parts fails, within a time.

    Parameters
    ----------
    count : int
        Parts, all alike.
    mean_ps : float
        Mean time between failures of each.
    horizon_ps : int
        Failures before this time.
    key, stream : int
        Of the draws.

    Returns
    -------
    parts : numpy.ndarray of int64 [failures]
    times_ps : numpy.ndarray of float64 [failures]
        Unrounded, by part and then time.

    Examples
    --------
    >>> parts, times = draw_times(10_000, mean_ps=100.0, horizon_ps=10, key=purpose_key(1, PURPOSE_FAILURES))
    >>> 900 < len(parts) < 1100
    True
    """
    part = np.arange(count, dtype=np.int64)
    now = np.zeros(count)
    parts: list[npt.NDArray[np.int64]] = []
    times: list[npt.NDArray[np.float64]] = []
    number = 0
    while len(part):
        chance = uniform(draw(key, (np.uint64(stream) << np.uint64(40)) + part.astype(np.uint64), number))
        now = now - np.log1p(-chance) * mean_ps
        within = now < horizon_ps
        part, now = part[within], now[within]
        parts.append(part)
        times.append(now)
        number += 1
    order = np.lexsort((np.concatenate(times), np.concatenate(parts))) if parts else np.zeros(0, np.int64)
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0)
    return np.concatenate(parts)[order], np.concatenate(times)[order]


def network_failures(
    entry: DrawnFailures, network: Network, *, seed: int, number: int = 0
) -> Iterator[Failure]:
    """The failures that an entry's rates give on a network.

    Parameters
    ----------
    entry : DrawnFailures
    network : Network
    seed : int
        Of the run.
    number : int
        Place of the entry in the scenario: each draws for itself.

    Yields
    ------
    LinkDown, Corruption, SwitchDown or HostHang

    Examples
    --------
    >>> from fabric.spec.topology import LeafSpine
    >>> from fabric.topology import build_network
    >>> network = build_network(LeafSpine(leaves=2, spines=2, hosts_per_leaf=4))
    >>> entry = DrawnFailures(lasts="1ms", acceleration=1e13)
    >>> sorted({type(each).__name__ for each in network_failures(entry, network, seed=1)})
    ['Corruption', 'HostHang', 'LinkDown', 'SwitchDown']
    """
    key = purpose_key(seed, PURPOSE_FAILURES)
    for place, name in enumerate(CLASSES):
        rate = getattr(entry.rates, name) * entry.acceleration
        units = _units(name, network)
        if rate == 0 or not units:
            continue
        parts, times_ps = draw_times(
            len(units),
            mean_ps=PS_PER_YEAR / rate,
            horizon_ps=int(entry.lasts),
            key=key,
            stream=number * len(CLASSES) + place,
        )
        for part, time_ps in zip(parts.tolist(), times_ps.tolist(), strict=True):
            for target in units[part]:
                yield _failure(name, target, entry, Duration(int(entry.at) + int(time_ps)))


def _units(name: str, network: Network) -> list[tuple[str, ...]]:
    """What fails together when a part of a class does: names of its links, or its own."""
    hosts, switches = network.names[: network.n_hosts], network.names[network.n_hosts :]
    if name == "accelerator":
        return [(host,) for host in hosts if not host.endswith(REDUCER_SUFFIX)]
    if name == "link":
        return [(network.port_arrow(port),) for port in network.link_ports[:, 0].tolist()]
    if name == "optic":
        return [(network.port_arrow(port),) for port in range(network.n_ports)]
    if name == "nic":
        base = network.node_port_base
        ports = [range(int(base[host]), int(base[host + 1])) for host in range(network.n_hosts)]
        return [tuple(network.port_arrow(port) for port in mine if _is_nic(port, network)) for mine in ports]
    is_tier = network.tier[network.n_hosts :] == TIERS[name]
    return [(switch,) for switch, wanted in zip(switches, is_tier, strict=True) if wanted]


def _is_nic(port: int, network: Network) -> bool:
    """Whether a host's port is one of its NIC, and not of a scale-up network."""
    return int(network.tier[network.port_node[network.port_peer[port]]]) != TIER_SCALE_UP


def _failure(name: str, target: str, entry: DrawnFailures, at: Duration) -> Failure:
    if name == "accelerator":
        return HostHang(host=target, at=at, lasts=entry.repair)
    if name == "optic":
        return Corruption(link=target, at=at, lasts=entry.repair, bit_error_rate=entry.bit_error_rate)
    if name in TIERS:
        return SwitchDown(switch=target, at=at, lasts=entry.repair)
    return LinkDown(link=target, at=at, lasts=entry.repair)
