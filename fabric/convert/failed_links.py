"""Links that a connection matrix of htsim says have failed, as overrides of the topology.

They are out of order from the beginning. A link is named by a switch and its number among the links up from
it, a core switch's among those down, in the order of its ports.
"""

from __future__ import annotations

import numpy as np

from fabric.errors import Said, SpecError
from fabric.formats import FailedLink
from fabric.spec import LinkOverride
from fabric.topology import Network

__all__ = ["failed_links"]

TIER_NAMES = {1: "ToR", 2: "aggregation", 3: "core"}
HIGHEST_TIER = 3


def failed_links(failures: tuple[FailedLink, ...], *, network: Network) -> tuple[LinkOverride, ...]:
    """Return an override for each link that has failed.

    Raises
    ------
    SpecError
        Naming file and line of one that the network does not have.
    """
    return tuple(LinkOverride(match=_name(failure, network), down=True) for failure in failures)


def _name(failure: FailedLink, network: Network) -> str:
    switches = np.flatnonzero(network.tier == failure.tier)
    name = TIER_NAMES[failure.tier]
    if failure.switch >= len(switches):
        found = Said(f"{name} switch {failure.switch}")
        raise SpecError(failure.where, found, f"one of the {len(switches)} {name} switches of the network")
    node = int(switches[failure.switch])
    other = np.where(network.link_a == node, network.link_b, network.link_a)
    mine = (network.link_a == node) | (network.link_b == node)
    further = (
        network.tier[other] < failure.tier
        if failure.tier == HIGHEST_TIER
        else network.tier[other] > failure.tier
    )
    links = np.flatnonzero(mine & further)
    if failure.link >= len(links):
        way = "down" if failure.tier == HIGHEST_TIER else "up"
        found = Said(f"link {failure.link}")
        raise SpecError(
            failure.where, found, f"one of the {len(links)} links {way} from {network.names[node]}"
        )
    link = int(links[failure.link])
    ends = f"{network.names[node]}-{network.names[int(other[link])]}"
    several = int(network.link_parallel_count[link]) > 1
    return f"{ends}#{int(network.link_parallel[link])}" if several else ends
