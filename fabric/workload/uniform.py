"""Uniform random traffic: every host sends messages of one size to hosts drawn at random.

Each destination is uniform over the other hosts and independent of all others, so several messages
may meet at one host: that is the point.
"""

from __future__ import annotations

import numpy as np

from fabric.spec.traffic import Uniform
from fabric.topology.network import Network
from fabric.workload.draws import EntryDraws, Stream
from fabric.workload.pattern_flows import PatternFlows, check_flow_count, check_two_hosts, other_host

__all__ = ["uniform_flows"]


def uniform_flows(spec: Uniform, *, network: Network, draws: EntryDraws, path: str) -> list[PatternFlows]:
    """Flows of a `Uniform` entry: the first flow of every host, then the second, and so on.

    Parameters
    ----------
    spec : Uniform
    network : Network
    draws : EntryDraws
    path : str
        Of the entry, for errors.

    Returns
    -------
    list of PatternFlows
        One element with `flows * hosts` flows.

    Raises
    ------
    SpecError
        If there are fewer than two hosts.
    """
    hosts = network.n_end_hosts
    check_two_hosts(hosts, path=path)
    check_flow_count(spec.flows * hosts, path=f"{path}.flows", value=spec.flows)
    source = np.tile(np.arange(hosts, dtype=np.int64), spec.flows)
    number = np.repeat(np.arange(spec.flows, dtype=np.int64), hosts)
    pick = draws.below(hosts - 1, Stream.DESTINATION, source, number)
    return [PatternFlows(source=source, destination=other_host(source, pick=pick), size_bytes=int(spec.size))]
