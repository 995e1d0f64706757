"""From the description of a topology to its `Network`: the one dispatcher, link overrides, reducers.

Each kind of topology has a generator of its own. Overrides then change single cables of what was
generated (a slow link, a lossy one), in order, so that the last one that matches a cable holds. Reducers
come last: their cables follow from those of their switches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.spec.link import LinkOverride
from fabric.spec.topology import Clos3, FatTree, GraphFile, LeafSpine, RailOptimized, SingleSwitch
from fabric.topology.clos3 import clos3, fat_tree
from fabric.topology.graph import check_reachable
from fabric.topology.leaf_spine import leaf_spine
from fabric.topology.network import Network
from fabric.topology.networkx_io import graph_file
from fabric.topology.rail_optimized import rail_optimized
from fabric.topology.reducers import attach_reducers
from fabric.topology.single_switch import single_switch

__all__ = ["apply_overrides", "build_network"]

Topology = SingleSwitch | LeafSpine | Clos3 | FatTree | RailOptimized | GraphFile

OVERRIDDEN_COLUMNS = {
    "rate": "link_rate_bps",
    "delay": "link_delay_ps",
    "loss": "link_loss",
    "bit_error_rate": "link_bit_error_rate",
}


LINK_COLUMNS = ("link_a", "link_b", "link_gap_bytes", *OVERRIDDEN_COLUMNS.values())
"""Every column of a network with a row for each cable."""


def build_network(topology: Topology, *, base_dir: str | Path | None = None) -> Network:
    """Generate the network that a topology spec describes, with its overrides and its reducers.

    Parameters
    ----------
    topology : SingleSwitch, LeafSpine, Clos3, FatTree, RailOptimized or GraphFile
    base_dir : path, optional
        Where the file of a `GraphFile` is looked for if its path is relative.

    Returns
    -------
    Network

    Raises
    ------
    fabric.errors.SpecError
        Counts that do not fit each other, an override that matches no cable, a graph that is no network,
        reducers at no switch.

    Examples
    --------
    >>> from fabric.spec.topology import FatTree
    >>> build_network(FatTree(k=8)).n_hosts
    128
    """
    network = apply_overrides(_generate(topology, base_dir), topology.overrides)
    if not topology.reducers:
        return network
    return attach_reducers(network, *topology.reducers, path="topology.reducers")


def apply_overrides(
    network: Network, overrides: Sequence[LinkOverride], *, path: str = "topology.overrides"
) -> Network:
    """Change the cables that overrides name.

    Parameters
    ----------
    network : Network
    overrides : sequence of LinkOverride
        Applied in order; what an override leaves out (None) stays.
    path : str
        Where the overrides stand in the scenario, for the error.

    Returns
    -------
    Network
        A new network; the given one if there are no overrides.

    Raises
    ------
    fabric.errors.SpecError
        An override matches no cable; without those that are down, two hosts have no path.
    """
    up = np.ones(network.n_links, dtype=np.bool_)
    columns = {column: getattr(network, column).copy() for column in OVERRIDDEN_COLUMNS.values()}
    for number, override in enumerate(overrides):
        links = network.find_links(override.match, path=f"{path}[{number}].match")
        for field, column in OVERRIDDEN_COLUMNS.items():
            value = getattr(override, field)
            if value is not None:
                columns[column][links] = value
        up[links] &= not override.down
    if not overrides:
        return network
    changed = replace(network, **columns)
    return changed if up.all() else _without_links(changed, up, path=path)


def _without_links(network: Network, up: npt.NDArray[np.bool_], *, path: str) -> Network:
    """The network with only those cables, which must still join all hosts."""
    columns = {name: getattr(network, name)[up] for name in LINK_COLUMNS}
    left = replace(network, **columns)
    check_reachable(left, path=path)
    return left


def _generate(topology: Topology, base_dir: str | Path | None) -> Network:
    match topology:
        case SingleSwitch():
            return single_switch(topology)
        case LeafSpine():
            return leaf_spine(topology)
        case Clos3():
            return clos3(topology)
        case FatTree():
            return fat_tree(topology)
        case RailOptimized():
            return rail_optimized(topology)
        case GraphFile():
            return graph_file(topology, base_dir=base_dir)
    raise SpecError("topology", topology, "a topology spec such as LeafSpine(...)")
