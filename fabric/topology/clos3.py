"""Three tiers: pods of leaves and spines, joined by cores; the k-ary fat tree is a case of it.

A host with several ports is attached to several leaves of its pod, as in `leaf_spine`: with
`ports_per_host = k` the leaves of a pod form groups of k, and port j of each host of a group goes to the
group's leaf j. Within a pod every leaf is joined to every spine. The cores form as many planes as a pod
has spines: core c is joined to spine `c % spines_per_pod` of every pod, so a frame keeps its plane from
the spine of the source's pod to the spine of the destination's. Source of the fat tree: Al-Fares,
Loukissas and Vahdat, "A scalable, commodity data center network architecture", SIGCOMM 2008 (5k^2/4
switches of k ports, k^3/4 hosts at full bisection bandwidth; numbering of cores differs).
"""

from __future__ import annotations

from fabric.spec.topology import Clos3, FatTree
from fabric.topology.assemble import Cables, Switches, all_pairs, assemble_network
from fabric.topology.network import TIER_CORE, TIER_LEAF, TIER_SPINE, Network

__all__ = ["clos3", "fat_tree"]


def clos3(spec: Clos3) -> Network:
    """Generate the network of a `Clos3`.

    Parameters
    ----------
    spec : Clos3
        `links_per_pair` cables join each leaf to each spine of its pod; one cable joins a core to
        its spine in each pod.

    Returns
    -------
    Network
        Hosts in order of their leaf (group), leaves and spines in order of their pods (leaf
        `pod * leaves_per_pod + l`), then cores. Low ports face down.

    Examples
    --------
    >>> from fabric.spec.topology import Clos3
    >>> network = clos3(Clos3(pods=2, leaves_per_pod=2, spines_per_pod=2, cores=4, hosts_per_leaf=4))
    >>> network.n_hosts, network.n_switches, network.n_links
    (16, 12, 32)
    """
    leaves, spines = spec.pods * spec.leaves_per_pod, spec.pods * spec.spines_per_pod
    groups = leaves // spec.ports_per_host
    n_hosts = groups * spec.hosts_per_leaf
    first_leaf, first_spine, first_core = n_hosts, n_hosts + leaves, n_hosts + leaves + spines
    group, member, port = all_pairs(groups, spec.hosts_per_leaf, spec.ports_per_host)
    leaf_pod, leaf, spine, _ = all_pairs(
        spec.pods, spec.leaves_per_pod, spec.spines_per_pod, spec.links_per_pair
    )
    spine_pod, plane, core = all_pairs(spec.pods, spec.spines_per_pod, spec.cores // spec.spines_per_pod)
    return assemble_network(
        n_hosts,
        switches=[
            Switches("leaf", leaves, TIER_LEAF),
            Switches("spine", spines, TIER_SPINE),
            Switches("core", spec.cores, TIER_CORE),
        ],
        cables=[
            Cables(
                group * spec.hosts_per_leaf + member,
                first_leaf + group * spec.ports_per_host + port,
                spec.host_link,
            ),
            Cables(
                first_leaf + leaf_pod * spec.leaves_per_pod + leaf,
                first_spine + leaf_pod * spec.spines_per_pod + spine,
                spec.fabric_link,
            ),
            Cables(
                first_spine + spine_pod * spec.spines_per_pod + plane,
                first_core + core * spec.spines_per_pod + plane,
                spec.core_link,
            ),
        ],
    )


def fat_tree(spec: FatTree) -> Network:
    """Generate the k-ary fat tree: a `Clos3` in which every switch has k ports.

    Examples
    --------
    >>> from fabric.spec.topology import FatTree
    >>> network = fat_tree(FatTree(k=4))
    >>> network.n_hosts, network.n_switches
    (16, 20)
    """
    return clos3(spec.clos())
