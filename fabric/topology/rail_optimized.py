"""Rails: accelerator a of every server hangs on the leaf of rail a, and servers have a network of their own.

Host `server * g + a` is accelerator a (of g) of a server, with its NIC. Traffic between the same
accelerators of different servers crosses one leaf; between different rails it crosses a spine; within
a server it takes the server's scale-up network: switches "scaleup" with fast, short links, to which
every accelerator of the server is attached. With `servers_per_rail_leaf` a rail has several leaves, one
per block of servers: leaf `block * g + a`.

Source: the rail-optimised fabrics of NVIDIA's DGX SuperPOD reference architectures.
"""

from __future__ import annotations

import numpy as np

from fabric.spec.topology import RailOptimized
from fabric.topology.assemble import Cables, Switches, all_pairs, assemble_network
from fabric.topology.network import TIER_LEAF, TIER_SCALE_UP, TIER_SPINE, Network

__all__ = ["rail_optimized"]


def rail_optimized(spec: RailOptimized) -> Network:
    """Generate the network of a `RailOptimized`.

    Parameters
    ----------
    spec : RailOptimized
        Each server has `scale_up_switches` switches with one cable to each of its accelerators.

    Returns
    -------
    Network
        Port 0 of a host is its NIC, the others are its scale-up ports. Nodes: hosts, leaves, spines,
        scale-up switches in order of their server.

    Examples
    --------
    >>> from fabric.spec.topology import RailOptimized
    >>> network = rail_optimized(RailOptimized(servers=4, accelerators_per_server=8, spines=2))
    >>> network.n_hosts, network.n_switches
    (32, 14)
    >>> network.port_arrow(1)
    'host0->scaleup0'
    """
    rails = spec.accelerators_per_server
    per_leaf = spec.servers_per_rail_leaf or spec.servers
    leaves = -(-spec.servers // per_leaf) * rails
    n_hosts = spec.servers * rails
    first_leaf, first_spine = n_hosts, n_hosts + leaves
    first_scale_up = first_spine + spec.spines
    host = np.arange(n_hosts)
    server, accelerator = host // rails, host % rails
    leaf, spine = all_pairs(leaves, spec.spines)
    member, scale_up = all_pairs(n_hosts, spec.scale_up_switches)
    return assemble_network(
        n_hosts,
        switches=[
            Switches("leaf", leaves, TIER_LEAF),
            Switches("spine", spec.spines, TIER_SPINE),
            Switches("scaleup", spec.servers * spec.scale_up_switches, TIER_SCALE_UP),
        ],
        cables=[
            Cables(host, first_leaf + server // per_leaf * rails + accelerator, spec.host_link),
            Cables(first_leaf + leaf, first_spine + spine, spec.fabric_link),
            Cables(
                member,
                first_scale_up + member // rails * spec.scale_up_switches + scale_up,
                spec.scale_up_link,
            ),
        ],
    )
