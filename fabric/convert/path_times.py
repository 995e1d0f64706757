"""Shortest paths as the HPCC simulator measures them: base round-trip times and slowest rates.

A breadth-first search from a host takes the first path with the fewest links, looking at cables in
their order; hosts do not forward. The base round-trip time of two hosts counts propagation twice and
the serialisation of one full payload, without headers, once, in whole nanoseconds on every link. Source:
github.com/alibaba-edu/High-Precision-Congestion-Control, `simulation/scratch/third.cc`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fabric.topology.network import Network

__all__ = ["HostPaths", "PathTimes", "bandwidth_delay_bytes"]

BITS_PER_BYTE = 8
NS_PER_S = 10**9
PS_PER_NS = 1000
UNREACHED = -1

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class HostPaths:
    """From one host to every node.

    Attributes
    ----------
    round_trip_ns : ndarray of int64 [nodes]
        -1 where no path leads.
    slowest_bps : ndarray of int64 [nodes]
        Rate of the slowest link of the path.
    """

    round_trip_ns: Int64Array
    slowest_bps: Int64Array


def bandwidth_delay_bytes(round_trip_ns: int, rate_bps: int) -> int:
    """Bytes in flight that fill a path, rounded down twice as there.

    Examples
    --------
    >>> bandwidth_delay_bytes(4160, 100 * 10**9)
    52000
    """
    return round_trip_ns * rate_bps // NS_PER_S // BITS_PER_BYTE


class PathTimes:
    """Paths of a network for frames of one payload.

    Parameters
    ----------
    network : Network
    payload_bytes : int
    """

    def __init__(self, network: Network, *, payload_bytes: int) -> None:
        self.network = network
        self.payload_bytes = payload_bytes
        self._known: dict[int, HostPaths] = {}

    def from_host(self, host: int) -> HostPaths:
        """Paths from a host."""
        if host not in self._known:
            self._known[host] = self._search(host)
        return self._known[host]

    def longest_window_bytes(self) -> int:
        """The largest product of base round-trip time and slowest rate over pairs of hosts."""
        hosts = self.network.n_hosts
        longest_ns, largest = 0, 0
        for host in self._distinct_hosts:
            paths = self.from_host(host)
            ns, rate = paths.round_trip_ns[:hosts], paths.slowest_bps[:hosts]
            reached = (ns > 0) & (np.arange(hosts) != host)
            for one_ns, one_rate in set(zip(ns[reached].tolist(), rate[reached].tolist(), strict=True)):
                longest_ns = max(longest_ns, one_ns)
                largest = max(largest, bandwidth_delay_bytes(one_ns, one_rate))
        return largest

    def longest_round_trip_ns(self) -> int:
        """The largest base round-trip time of two hosts."""
        return max(
            int(self.from_host(host).round_trip_ns[: self.network.n_hosts].max())
            for host in self._distinct_hosts
        )

    @cached_property
    def _distinct_hosts(self) -> list[int]:
        """One host of each set of hosts whose cables are alike."""
        alike: dict[tuple[tuple[int, int, int], ...], int] = {}
        for host in range(self.network.n_hosts):
            alike.setdefault(tuple(self._cables[host]), host)
        return list(alike.values())

    @cached_property
    def _cables(self) -> list[list[tuple[int, int, int]]]:
        """Peer, nanoseconds both ways with one payload, and rate of every cable of every node."""
        cables: list[list[tuple[int, int, int]]] = [[] for _ in range(self.network.n_nodes)]
        bits = self.payload_bytes * BITS_PER_BYTE * NS_PER_S
        columns = (
            self.network.link_a,
            self.network.link_b,
            self.network.link_rate_bps,
            self.network.link_delay_ps,
        )
        for a, b, rate, delay_ps in zip(*(column.tolist() for column in columns), strict=True):
            cost_ns = 2 * delay_ps // PS_PER_NS + bits // rate
            cables[a].append((b, cost_ns, rate))
            cables[b].append((a, cost_ns, rate))
        return cables

    def _search(self, host: int) -> HostPaths:
        nodes, hosts = self.network.n_nodes, self.network.n_hosts
        cost = [UNREACHED] * nodes
        slowest = [0] * nodes
        cost[host], slowest[host] = 0, 2**62
        waiting = deque([host])
        while waiting:
            node = waiting.popleft()
            for peer, cost_ns, rate in self._cables[node]:
                if cost[peer] == UNREACHED:
                    cost[peer] = cost[node] + cost_ns
                    slowest[peer] = min(slowest[node], rate)
                    if peer >= hosts:
                        waiting.append(peer)
        return HostPaths(np.array(cost, dtype=np.int64), np.array(slowest, dtype=np.int64))
