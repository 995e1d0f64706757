"""All-to-all as plain flows: every host of a selection sends to every other, all at once.

Flows are numbered step by step: in step k, the i-th host sends to the (i + k)-th, cyclically. A NIC
serves its flows in the order of their numbers, so the first flows of all hosts form a permutation and
no host is hit by all others at the start. Nothing waits for anything; the collective of the same name,
with its steps and dependencies, is another thing.
"""

from __future__ import annotations

import numpy as np

from fabric.spec.traffic import AllToAll
from fabric.topology.network import Network
from fabric.workload.draws import EntryDraws
from fabric.workload.pattern_flows import PatternFlows, check_flow_count, check_two_hosts

__all__ = ["all_to_all_flows"]


def all_to_all_flows(spec: AllToAll, *, network: Network, draws: EntryDraws, path: str) -> list[PatternFlows]:
    """Flows of an `AllToAll` entry.

    Parameters
    ----------
    spec : AllToAll
    network : Network
    draws : EntryDraws
        Not used.
    path : str
        Of the entry, for errors.

    Returns
    -------
    list of PatternFlows
        One element with n * (n - 1) flows for n selected hosts.

    Raises
    ------
    SpecError
        If the selection has fewer than two hosts.
    """
    del draws
    hosts = network.find_hosts(spec.hosts, path=f"{path}.hosts").astype(np.int64)
    count = len(hosts)
    check_two_hosts(count, path=f"{path}.hosts")
    check_flow_count(count * (count - 1), path=f"{path}.hosts", value=spec.hosts)
    step = np.repeat(np.arange(1, count, dtype=np.int64), count)
    position = np.tile(np.arange(count, dtype=np.int64), count - 1)
    return [
        PatternFlows(
            source=hosts[position],
            destination=hosts[(position + step) % count],
            size_bytes=int(spec.size),
        )
    ]
