"""Two tiers: every leaf is joined to every spine, hosts hang on leaves.

A host with several ports is attached to several leaves: with `ports_per_host = k` the leaves form groups
of k, and port j of each host of a group goes to the group's leaf j (dual homing for k = 2). With `planes` the
leaves of a group belong to different networks, which only hosts join (dual plane). The ratio of
host bandwidth to fabric bandwidth at a leaf is its oversubscription; where the spec gives it instead of
a rate for the fabric links, the spec has already turned it into one.
"""

from __future__ import annotations

from fabric.spec.topology import LeafSpine
from fabric.topology.assemble import Cables, Switches, all_pairs, assemble_network
from fabric.topology.network import TIER_LEAF, TIER_SPINE, Network

__all__ = ["leaf_spine"]


def leaf_spine(spec: LeafSpine) -> Network:
    """Generate the network of a `LeafSpine`.

    Parameters
    ----------
    spec : LeafSpine
        Every leaf has `hosts_per_leaf` host ports and `spines / planes * links_per_pair` fabric ports.

    Returns
    -------
    Network
        Hosts in order of their leaf (group), then leaves, then spines. A leaf's low ports face its hosts;
        its high ports the spines of its plane in order, parallel cables side by side. Port l of a spine
        (times `links_per_pair`) faces leaf l of its plane.

    Examples
    --------
    >>> from fabric.spec.topology import LeafSpine
    >>> network = leaf_spine(LeafSpine(leaves=4, spines=2, hosts_per_leaf=8))
    >>> network.n_hosts, network.n_switches, network.n_links
    (32, 6, 40)
    """
    groups = spec.leaves // spec.ports_per_host
    n_hosts = groups * spec.hosts_per_leaf
    group, member, port = all_pairs(groups, spec.hosts_per_leaf, spec.ports_per_host)
    leaf, spine, _ = all_pairs(spec.leaves, spec.spines, spec.links_per_pair)
    same_plane = leaf % spec.ports_per_host % spec.planes == spine % spec.planes
    leaf, spine = leaf[same_plane], spine[same_plane]
    first_leaf, first_spine = n_hosts, n_hosts + spec.leaves
    return assemble_network(
        n_hosts,
        switches=[Switches("leaf", spec.leaves, TIER_LEAF), Switches("spine", spec.spines, TIER_SPINE)],
        cables=[
            Cables(
                group * spec.hosts_per_leaf + member,
                first_leaf + group * spec.ports_per_host + port,
                spec.host_link,
            ),
            Cables(first_leaf + leaf, first_spine + spine, spec.fabric_link),
        ],
    )
