"""`Network`: hosts, switches and the cables between them, as arrays.

A network says what is plugged into what and nothing else: buffers, transports and traffic are other
specs. Nodes are numbered, hosts first; a row of the link columns is one full-duplex cable, the same
in both directions. Every end of a cable is a port. The ports of a node are numbered in the order of
the cables that name it, and all ports of node `n` come before those of node `n + 1`, so numbering
follows from the order of the cables alone.

Invariants: names are unique; no cable joins a node to itself; `link_a < link_b` (so `link_a` is the
host when one end is a host). `fabric.topology.build_network` and `fabric.topology.from_networkx`
make networks that hold them; build one by hand through `fabric.topology.assemble_network`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fabric.formats.hpcc_topology import node_ids
from fabric.topology import patterns as _patterns

__all__ = ["TIER_CORE", "TIER_HOST", "TIER_LEAF", "TIER_SCALE_UP", "TIER_SPINE", "Network"]

TIER_HOST = 0
TIER_LEAF = 1
TIER_SPINE = 2
TIER_CORE = 3
TIER_SCALE_UP = 9
"""Switches of a server's scale-up network, which stand beside the tree of leaves and spines."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Network:
    """Hosts, switches and cables.

    Attributes
    ----------
    names : tuple of str
        One name per node: hosts ("host0", ...), then switches ("leaf0", "spine3", "core1").
    n_hosts : int
        Nodes `0 .. n_hosts - 1` are hosts.
    tier : numpy.ndarray of uint8 [nodes]
        0 host, 1 leaf, 2 spine, 3 core, 9 scale-up switch.
    link_a, link_b : numpy.ndarray of uint32 [links]
        The two nodes of each cable, `link_a < link_b`.
    link_rate_bps, link_delay_ps : numpy.ndarray of int64 [links]
        Rate of each direction; propagation delay one way.
    link_loss, link_bit_error_rate : numpy.ndarray of float64 [links]
        Probability that a frame, and that a bit, is lost.
    link_gap_bytes : numpy.ndarray of int64 [links]
        Preamble and inter-packet gap that every frame occupies on the wire besides itself.
    """

    names: tuple[str, ...]
    n_hosts: int
    tier: npt.NDArray[np.uint8]
    link_a: npt.NDArray[np.uint32]
    link_b: npt.NDArray[np.uint32]
    link_rate_bps: npt.NDArray[np.int64]
    link_delay_ps: npt.NDArray[np.int64]
    link_loss: npt.NDArray[np.float64]
    link_bit_error_rate: npt.NDArray[np.float64]
    link_gap_bytes: npt.NDArray[np.int64]

    @property
    def n_nodes(self) -> int:
        """Hosts and switches together."""
        return len(self.names)

    @property
    def n_switches(self) -> int:
        """Nodes that are not hosts."""
        return self.n_nodes - self.n_hosts

    @property
    def n_end_hosts(self) -> int:
        """Hosts without those that are reducers of switches, which come last."""
        return self.n_hosts - sum(
            name.endswith(_patterns.REDUCER_SUFFIX) for name in self.names[: self.n_hosts]
        )

    @property
    def n_links(self) -> int:
        """Cables."""
        return len(self.link_a)

    @property
    def n_ports(self) -> int:
        """Ends of cables."""
        return 2 * self.n_links

    @cached_property
    def node_numbers(self) -> dict[str, int]:
        """Node number by name."""
        return {name: number for number, name in enumerate(self.names)}

    @cached_property
    def node_ids(self) -> npt.NDArray[np.int64]:
        """Number of every node in files: that of its name where names number all of them, or its position."""
        return np.array(node_ids(self.names), dtype=np.int64)

    @cached_property
    def link_ports(self) -> npt.NDArray[np.uint32]:
        """Port numbers of the two ends of every cable: uint32 [links, 2], columns `link_a`, `link_b`."""
        ends = np.stack([self.link_a, self.link_b], axis=1).ravel()
        ports = np.empty(len(ends), dtype=np.uint32)
        ports[np.argsort(ends, kind="stable")] = np.arange(len(ends), dtype=np.uint32)
        return ports.reshape(-1, 2)

    @cached_property
    def node_port_base(self) -> npt.NDArray[np.uint32]:
        """First port of every node, and the number of ports at the end: uint32 [nodes + 1]."""
        ends = np.concatenate([self.link_a, self.link_b])
        counts = np.bincount(ends, minlength=self.n_nodes)
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)

    @cached_property
    def port_node(self) -> npt.NDArray[np.uint32]:
        """Owner of every port: uint32 [ports]."""
        return np.sort(np.concatenate([self.link_a, self.link_b]))

    @cached_property
    def port_peer(self) -> npt.NDArray[np.uint32]:
        """Port at the other end of every port's cable: uint32 [ports]."""
        peer = np.empty(self.n_ports, dtype=np.uint32)
        peer[self.link_ports[:, 0]] = self.link_ports[:, 1]
        peer[self.link_ports[:, 1]] = self.link_ports[:, 0]
        return peer

    @cached_property
    def port_link(self) -> npt.NDArray[np.uint32]:
        """Cable (row of the link columns) of every port: uint32 [ports]."""
        link = np.empty(self.n_ports, dtype=np.uint32)
        link[self.link_ports.ravel()] = np.repeat(np.arange(self.n_links, dtype=np.uint32), 2)
        return link

    @cached_property
    def link_parallel(self) -> npt.NDArray[np.uint32]:
        """Number of every cable among those of the same two nodes, from 0: uint32 [links]."""
        return self._parallel[0]

    @cached_property
    def link_parallel_count(self) -> npt.NDArray[np.uint32]:
        """How many cables join the two nodes of every cable: uint32 [links]."""
        return self._parallel[1]

    @cached_property
    def _parallel(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        pair = self.link_a.astype(np.int64) * self.n_nodes + self.link_b
        _, first, group, counts = np.unique(
            np.sort(pair), return_index=True, return_inverse=True, return_counts=True
        )
        number = np.empty(self.n_links, dtype=np.uint32)
        count = np.empty(self.n_links, dtype=np.uint32)
        order = np.argsort(pair, kind="stable")
        number[order] = np.arange(self.n_links) - first[group]
        count[order] = counts[group]
        return number, count

    def port_name(self, port: int) -> str:
        """Name of a port by its owner and local number.

        Examples
        --------
        >>> from fabric.topology import build_network
        >>> from fabric.spec.topology import LeafSpine
        >>> network = build_network(LeafSpine(leaves=2, spines=2, hosts_per_leaf=2))
        >>> leaf = network.node_numbers["leaf1"]
        >>> network.port_name(int(network.node_port_base[leaf]) + 3)
        'leaf1:3'
        """
        node = int(self.port_node[port])
        return f"{self.names[node]}:{port - int(self.node_port_base[node])}"

    def port_arrow(self, port: int) -> str:
        """Name of the link that a port sends on: "leaf0->host7".

        Parallel cables are told apart by their number, from 0: "leaf0->spine1#1".
        """
        ends = f"{self.names[self.port_node[port]]}->{self.names[self.port_node[self.port_peer[port]]]}"
        link = self.port_link[port]
        if self.link_parallel_count[link] > 1:
            return f"{ends}#{self.link_parallel[link]}"
        return ends

    def find_ports(self, patterns: Iterable[str], *, path: str = "ports") -> npt.NDArray[np.uint32]:
        """Ports that match any of the patterns, in ascending order.

        Parameters
        ----------
        patterns : iterable of str
            "leaf0:3" (owner and local number), "leaf0->host7" (owner and peer; all parallel cables),
            "leaf0->spine1#1" (one of them) or "leaf0" (all its ports); `*`, `?` and `[0-7]` as in file
            names.
        path : str
            Where the patterns stand in the scenario, for the error (`path[0]`, ...).

        Returns
        -------
        numpy.ndarray of uint32

        Raises
        ------
        fabric.errors.SpecError
            A pattern matches nothing.
        """
        return _patterns.find_ports(self, patterns, path=path)

    def find_hosts(self, pattern: str, *, path: str = "hosts") -> npt.NDArray[np.uint32]:
        """Hosts whose name matches a pattern ("host3", "host1?", "*"), in ascending order.

        Reducers match only patterns that end in ".reducer".

        Raises
        ------
        fabric.errors.SpecError
            The pattern matches no host.
        """
        return _patterns.find_hosts(self, pattern, path=path)

    def find_links(self, pattern: str, *, path: str = "links") -> npt.NDArray[np.uint32]:
        """Cables whose ends match a pattern ("leaf0-spine3", "leaf*-spine0", "leaf0-spine3#1").

        The ends may be named in either order; without a "#" all parallel cables match.

        Raises
        ------
        fabric.errors.SpecError
            The pattern matches nothing.
        """
        return _patterns.find_links(self, pattern, path=path)
