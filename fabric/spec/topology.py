"""Topologies: the shapes that can be generated, and a graph of one's own.

Generated hosts are called "host0", "host1", … in one sequence. Switches of a one-switch network
are "switch0"; elsewhere "leaf0", "spine0", "core0" and so on. All links of a kind are alike apart
from `overrides`, which name links by their ends (`LinkOverride`). `host_count` says how many hosts
a shape has before anything is built.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import msgspec

from fabric.spec.base import Problem, Spec, outside
from fabric.spec.graph_file import GraphFile
from fabric.spec.link import SLOWEST_RATE_BPS, Link, LinkOverride
from fabric.units import LARGEST, Duration, Rate

__all__ = [
    "Clos3",
    "FatTree",
    "GraphFile",
    "LeafSpine",
    "RailOptimized",
    "SingleSwitch",
    "Topology",
    "host_count",
    "links_of",
]

LARGEST_COUNT = 65_535
"""Of anything at one switch or one level: local port numbers have 16 bits."""
LARGEST_HOSTS = 2**24
LARGEST_PORTS_PER_HOST = 64


def _counts(spec: Spec, *names: str) -> Iterator[Problem]:
    for name in names:
        yield from outside(name, getattr(spec, name), low=1, high=LARGEST_COUNT)


def _ports_per_host(count: int) -> Iterator[Problem]:
    yield from outside("ports_per_host", count, low=1, high=LARGEST_PORTS_PER_HOST)


def _total(hosts: int, name: str, value: int) -> Iterator[Problem]:
    if hosts < 2:
        yield name, value, "a network of at least 2 hosts"
    if hosts > LARGEST_HOSTS:
        yield name, value, f"a network of at most {LARGEST_HOSTS} hosts (these are {hosts})"


class SingleSwitch(Spec, frozen=True, kw_only=True, tag_field="kind", tag="single_switch"):
    """Hosts on one switch.

    Parameters
    ----------
    hosts : int
        2 or more.
    link : Link
        Between host and switch.
    ports_per_host : int
        Parallel links of each host. Default 1.
    overrides : tuple of LinkOverride
        What differs on some of its links. Default: nothing.
    reducers : tuple of str
        Which switches have a reducer beside them, for in-network reduction, as patterns of their names.
        Default: none.
    """

    hosts: int
    link: Link = msgspec.field(default_factory=Link)
    ports_per_host: int = 1
    overrides: tuple[LinkOverride, ...] = ()
    reducers: tuple[str, ...] = ()

    def problems(self) -> Iterator[Problem]:
        yield from _counts(self, "hosts")
        yield from _ports_per_host(self.ports_per_host)
        yield from _total(self.hosts, "hosts", self.hosts)
        if self.hosts * self.ports_per_host > LARGEST_COUNT:
            yield "hosts", self.hosts, f"at most {LARGEST_COUNT} ports at the switch"


class LeafSpine(Spec, frozen=True, kw_only=True, tag_field="kind", tag="leaf_spine"):
    """Two tiers: every leaf has links to every spine.

    Host `h` hangs on leaf `h // hosts_per_leaf`. With `ports_per_host = k`, leaves form groups of
    k, a group serves `hosts_per_leaf` hosts, and port j of a host goes to leaf j of its group.

    Parameters
    ----------
    leaves, spines, hosts_per_leaf : int
        1 or more.
    links_per_pair : int
        Parallel links between a leaf and a spine. Default 1.
    host_link, fabric_link : Link
        Host to leaf, leaf to spine.
    ports_per_host : int
        Default 1; divides `leaves`.
    planes : int
        Networks side by side that only hosts join: leaf j of a group and spine s belong to planes
        `j % planes` and `s % planes`, and only leaves and spines of one plane are linked (dual plane, as
        in Qian et al., "Alibaba HPN", SIGCOMM 2024). Default 1; divides `ports_per_host` and `spines`.
    oversubscription : float, optional
        What a leaf receives from its hosts over what it can send up. Sets the rate of
        `fabric_link`, which then must not be given another (rounded to whole bit/s).
    overrides : tuple of LinkOverride
        What differs on some of its links. Default: nothing.
    reducers : tuple of str
        Which switches have a reducer beside them, for in-network reduction, as patterns of their names.
        Default: none.

    Examples
    --------
    >>> LeafSpine(leaves=4, spines=2, hosts_per_leaf=8, oversubscription=2).fabric_link.rate
    Rate("800Gbps")
    """

    leaves: int
    spines: int
    hosts_per_leaf: int
    links_per_pair: int = 1
    host_link: Link = msgspec.field(default_factory=Link)
    fabric_link: Link = msgspec.field(default_factory=Link)
    ports_per_host: int = 1
    planes: int = 1
    oversubscription: float | None = None
    overrides: tuple[LinkOverride, ...] = ()
    reducers: tuple[str, ...] = ()

    def settle(self) -> None:
        rate = self._uplink_rate()
        if rate is not None and self.fabric_link.rate == Link().rate:
            msgspec.structs.force_setattr(self, "fabric_link", self.fabric_link.replace(rate=rate))

    def implied(self) -> Mapping[str, Any]:
        rate = self._uplink_rate()
        return super().implied() if rate is None else {**super().implied(), "fabric_link": Link(rate=rate)}

    def problems(self) -> Iterator[Problem]:
        yield from _counts(self, "leaves", "spines", "hosts_per_leaf", "links_per_pair")
        yield from _ports_per_host(self.ports_per_host)
        if self.leaves % self.ports_per_host:
            yield "ports_per_host", self.ports_per_host, f"a divisor of leaves ({self.leaves})"
        if self.planes < 1 or self.ports_per_host % self.planes or self.spines % self.planes:
            allowed = f"a divisor of ports_per_host ({self.ports_per_host}) and spines ({self.spines})"
            yield "planes", self.planes, allowed
        if self.oversubscription is not None and not 0 < self.oversubscription <= 1000:
            yield "oversubscription", self.oversubscription, "a number above 0 and at most 1000"
        uplink_bps, rate = self._uplink_bps(), self._uplink_rate()
        if uplink_bps is not None and rate is None:
            allowed = f"a number that makes fabric_link faster than 1Kbps and slower than {Rate(LARGEST)}"
            yield "oversubscription", self.oversubscription, f"{allowed} (this: {uplink_bps:.4g} bit/s)"
        if rate is not None and self.fabric_link.rate != rate:
            yield (
                "fabric_link.rate",
                self.fabric_link.rate,
                f"no rate beside oversubscription = {self.oversubscription:g}, which makes it {rate}",
            )
        hosts = host_count(self)
        assert hosts is not None
        yield from _total(hosts, "hosts_per_leaf", self.hosts_per_leaf)

    def _uplink_rate(self) -> Rate | None:
        """The rate of `fabric_link` that oversubscription asks for; None if nothing (possible) is."""
        rate_bps = self._uplink_bps()
        return Rate(rate_bps) if rate_bps is not None and SLOWEST_RATE_BPS <= rate_bps <= LARGEST else None

    def _uplink_bps(self) -> int | None:
        ratio = self.oversubscription
        if ratio is None or not 0 < ratio <= 1000 or self.spines < 1 or self.links_per_pair < 1:
            return None
        if self.planes < 1 or self.spines < self.planes:
            return None
        down_bps = Fraction(self.hosts_per_leaf * self.host_link.rate)
        return round(down_bps / Fraction(ratio) / (self.spines // self.planes * self.links_per_pair))


class Clos3(Spec, frozen=True, kw_only=True, tag_field="kind", tag="clos3"):
    """Three tiers: pods of leaves and spines, joined by cores.

    In a pod every leaf has links to every spine. Core `c` has a link to spine `c % spines_per_pod`
    of every pod.

    Parameters
    ----------
    pods, leaves_per_pod, spines_per_pod, hosts_per_leaf : int
        1 or more.
    cores : int
        A multiple of `spines_per_pod`.
    host_link, fabric_link, core_link : Link
        Host to leaf, leaf to spine, spine to core.
    links_per_pair : int
        Parallel links between a leaf and a spine. Default 1.
    ports_per_host : int
        Default 1; divides `leaves_per_pod`. With k, the leaves of a pod form groups of k, a group
        serves `hosts_per_leaf` hosts, and port j of a host goes to leaf j of its group.
    overrides : tuple of LinkOverride
        What differs on some of its links. Default: nothing.
    reducers : tuple of str
        Which switches have a reducer beside them, for in-network reduction, as patterns of their names.
        Default: none.
    """

    pods: int
    leaves_per_pod: int
    spines_per_pod: int
    cores: int
    hosts_per_leaf: int
    host_link: Link = msgspec.field(default_factory=Link)
    fabric_link: Link = msgspec.field(default_factory=Link)
    core_link: Link = msgspec.field(default_factory=Link)
    links_per_pair: int = 1
    ports_per_host: int = 1
    overrides: tuple[LinkOverride, ...] = ()
    reducers: tuple[str, ...] = ()

    def problems(self) -> Iterator[Problem]:
        yield from _counts(
            self, "pods", "leaves_per_pod", "spines_per_pod", "cores", "hosts_per_leaf", "links_per_pair"
        )
        yield from _ports_per_host(self.ports_per_host)
        if self.leaves_per_pod % self.ports_per_host:
            yield (
                "ports_per_host",
                self.ports_per_host,
                f"a divisor of leaves_per_pod ({self.leaves_per_pod})",
            )
        if self.spines_per_pod > 0 and self.cores % self.spines_per_pod:
            yield "cores", self.cores, f"a multiple of spines_per_pod ({self.spines_per_pod})"
        hosts = host_count(self)
        assert hosts is not None
        yield from _total(hosts, "hosts_per_leaf", self.hosts_per_leaf)


class FatTree(Spec, frozen=True, kw_only=True, tag_field="kind", tag="fat_tree"):
    """The k-ary fat tree (Al-Fares, Loukissas, Vahdat, SIGCOMM 2008): k^3/4 hosts at full bisection.

    The same as `Clos3` with k pods of k/2 leaves and k/2 spines, k^2/4 cores, k/2 host ports a leaf.

    Parameters
    ----------
    k : int
        Ports of every switch, even, 2 to 256.
    link : Link
        Every link.
    ports_per_host : int
        Default 1; divides k/2. As in `Clos3`; there are so many times fewer hosts.
    overrides : tuple of LinkOverride
        What differs on some of its links. Default: nothing.
    reducers : tuple of str
        Which switches have a reducer beside them, for in-network reduction, as patterns of their names.
        Default: none.
    """

    k: int
    link: Link = msgspec.field(default_factory=Link)
    ports_per_host: int = 1
    overrides: tuple[LinkOverride, ...] = ()
    reducers: tuple[str, ...] = ()

    def problems(self) -> Iterator[Problem]:
        if not 2 <= self.k <= 256 or self.k % 2:
            yield "k", self.k, "an even integer from 2 to 256"
        yield from _ports_per_host(self.ports_per_host)
        if self.k // 2 % self.ports_per_host:
            yield "ports_per_host", self.ports_per_host, f"a divisor of k/2 ({self.k // 2})"
        hosts = host_count(self)
        assert hosts is not None
        yield from _total(hosts, "k", self.k)

    def clos(self) -> Clos3:
        """Return the same network as a `Clos3`."""
        half = self.k // 2
        return Clos3(
            pods=self.k,
            leaves_per_pod=half,
            spines_per_pod=half,
            cores=half * half,
            hosts_per_leaf=half,
            host_link=self.link,
            fabric_link=self.link,
            core_link=self.link,
            ports_per_host=self.ports_per_host,
            overrides=self.overrides,
            reducers=self.reducers,
        )


def _scale_up_link() -> Link:
    return Link(rate=Rate("3.6Tbps"), delay=Duration("200ns"))


class RailOptimized(Spec, frozen=True, kw_only=True, tag_field="kind", tag="rail_optimized"):
    """Servers of g accelerators, a NIC each; accelerator a of every server is on the leaf of rail a.

    A host is an accelerator: "host{server * g + a}". It has a link to its rail's leaf and one to
    each scale-up switch of its server. Every leaf has a link to every spine.

    Parameters
    ----------
    servers, accelerators_per_server : int
        1 or more.
    spines : int
        0 or more. Without spines no path joins different rails of different servers (Wang et al.,
        "Rail-only", arXiv:2307.12169).
    links_per_pair : int
        Parallel links between a leaf and a spine. Default 1.
    host_link, fabric_link : Link
        Accelerator to leaf, leaf to spine.
    scale_up_link : Link
        Accelerator to scale-up switch. Default 3.6 Tbit/s each way (NVLink 4: 900 GB/s both ways)
        and 200ns.
    scale_up_switches : int
        In each server. Default 1.
    servers_per_rail_leaf : int, optional
        A rail has a leaf for this many servers. None (default): one leaf for all.
    overrides : tuple of LinkOverride
        What differs on some of its links. Default: nothing.
    reducers : tuple of str
        Which switches have a reducer beside them, for in-network reduction, as patterns of their names.
        Default: none.
    """

    servers: int
    accelerators_per_server: int
    spines: int
    links_per_pair: int = 1
    host_link: Link = msgspec.field(default_factory=Link)
    fabric_link: Link = msgspec.field(default_factory=Link)
    scale_up_link: Link = msgspec.field(default_factory=_scale_up_link)
    scale_up_switches: int = 1
    servers_per_rail_leaf: int | None = None
    overrides: tuple[LinkOverride, ...] = ()
    reducers: tuple[str, ...] = ()

    def problems(self) -> Iterator[Problem]:
        yield from _counts(self, "servers", "accelerators_per_server", "links_per_pair", "scale_up_switches")
        yield from outside("spines", self.spines, low=0, high=LARGEST_COUNT)
        if self.servers_per_rail_leaf is not None:
            yield from _counts(self, "servers_per_rail_leaf")
        hosts = host_count(self)
        assert hosts is not None
        yield from _total(hosts, "servers", self.servers)


Topology = SingleSwitch | LeafSpine | Clos3 | FatTree | RailOptimized | GraphFile


def host_count(topology: Topology) -> int | None:
    """Return the number of hosts; None for a graph, which its file decides."""
    match topology:
        case SingleSwitch():
            return topology.hosts
        case LeafSpine():
            return topology.leaves // max(topology.ports_per_host, 1) * topology.hosts_per_leaf
        case Clos3():
            groups = topology.leaves_per_pod // max(topology.ports_per_host, 1)
            return topology.pods * groups * topology.hosts_per_leaf
        case FatTree():
            return topology.k**3 // 4 // max(topology.ports_per_host, 1)
        case RailOptimized():
            return topology.servers * topology.accelerators_per_server
        case GraphFile():
            return None


def links_of(topology: Topology) -> Iterator[tuple[str, Link]]:
    """Yield the name of each field that holds a link, and the link."""
    for name in topology.__struct_fields__:
        link = getattr(topology, name)
        if isinstance(link, Link):
            yield name, link
