"""One switch with every host on it: the smallest fabric, and the place to study one buffer.

All contention is at the egress port of a receiver. With several ports per host the cables of a host
stand next to each other on the switch.
"""

from __future__ import annotations

from fabric.spec.topology import SingleSwitch
from fabric.topology.assemble import Cables, Switches, all_pairs, assemble_network
from fabric.topology.network import TIER_LEAF, Network

__all__ = ["single_switch"]


def single_switch(spec: SingleSwitch) -> Network:
    """Generate the network of a `SingleSwitch`: hosts "host0" .. and the switch "switch0".

    Parameters
    ----------
    spec : SingleSwitch
        `hosts`, `ports_per_host` and the `link` of every cable.

    Returns
    -------
    Network
        `hosts * ports_per_host` cables, ordered by host.

    Examples
    --------
    >>> from fabric.spec.topology import SingleSwitch
    >>> network = single_switch(SingleSwitch(hosts=4))
    >>> network.n_nodes, network.n_links, network.port_arrow(0)
    (5, 4, 'host0->switch0')
    """
    host, _ = all_pairs(spec.hosts, spec.ports_per_host)
    switch = spec.hosts + 0 * host
    return assemble_network(
        spec.hosts,
        switches=[Switches("switch", 1, TIER_LEAF)],
        cables=[Cables(host, switch, spec.link)],
    )
