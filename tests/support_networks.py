"""What networks consist of, and that their ports fit their links."""

from __future__ import annotations

import numpy as np

from fabric.topology import Network

__all__ = ["COLUMNS", "arrows_of", "check_ports", "ends", "names_of"]

COLUMNS = (
    "names",
    "n_hosts",
    "tier",
    "link_a",
    "link_b",
    "link_rate_bps",
    "link_delay_ps",
    "link_loss",
    "link_bit_error_rate",
    "link_gap_bytes",
)


def ends(network: Network) -> set[tuple[str, str]]:
    """The two names of every cable."""
    return {
        (network.names[a], network.names[b])
        for a, b in zip(network.link_a.tolist(), network.link_b.tolist(), strict=True)
    }


def names_of(network: Network, ports: np.ndarray) -> list[str]:
    return [network.port_name(int(port)) for port in ports]


def arrows_of(network: Network, ports: np.ndarray) -> list[str]:
    return [network.port_arrow(int(port)) for port in ports]


def check_ports(network: Network) -> None:
    """Ports of a node follow the order of the cables that name it; peers are mutual."""
    expected: list[list[int]] = [[] for _ in network.names]
    for link, (a, b) in enumerate(zip(network.link_a.tolist(), network.link_b.tolist(), strict=True)):
        assert a < b
        expected[a].append(link)
        expected[b].append(link)
    base = network.node_port_base.tolist()
    for node, links in enumerate(expected):
        assert network.port_link[base[node] : base[node + 1]].tolist() == links
        assert (network.port_node[base[node] : base[node + 1]] == node).all()
    ports = np.arange(network.n_ports)
    assert (network.port_peer[network.port_peer] == ports).all()
    assert (network.port_peer != ports).all()
    assert (network.port_link[network.port_peer] == network.port_link).all()
