"""Which routes make a link wait for the next: one pair of hosts and its path, found backwards and
forwards."""

from __future__ import annotations

import numpy as np

from fabric.analysis.deadlock.routes import RouteSet

__all__ = ["route_over"]


def route_over(routes: RouteSet, first: int, second: int) -> list[str]:
    """Names of the nodes on one route that crosses two links in turn.

    Parameters
    ----------
    routes : RouteSet
    first, second : int
        Ports that send on the two links; the first leads to the switch that owns the second.

    Returns
    -------
    list of str
        From a host to a host; empty if no route of the set does this.
    """
    network = routes.network
    start, middle = (int(network.port_node[port]) - network.n_hosts for port in (first, second))
    end = int(routes.peers(second))
    comes = routes.leads(np.array([start]), np.array([middle]))[0] & routes.forwarding[start]
    both = comes & routes.leads(np.array([middle]), np.array([end]))[0]
    for edge in np.flatnonzero(both).tolist():
        before, after = _towards_source(routes, start, edge), _towards_edge(routes, end, edge)
        source = _host_at(routes, before[-1], edge, other=True)
        target = _host_at(routes, after[-1], edge, other=False)
        if source is not None and target is not None:
            rows = [*before[::-1], middle, *after]
            names = [network.names[network.n_hosts + row] for row in rows]
            return [network.names[source], *names, network.names[target]]
    return []


def _towards_source(routes: RouteSet, row: int, edge: int) -> list[int]:
    rows = [row]
    while not routes.sources[rows[-1], edge]:
        here = rows[-1]
        peers = routes.peers(routes.switch_ports[here])
        column = slice(edge, edge + 1)
        senders = (
            routes.leads(peers, np.full(len(peers), here), column)[:, 0] & routes.forwarding[peers, edge]
        )
        rows.append(int(peers[np.argmax(senders)]))
    return rows


def _towards_edge(routes: RouteSet, row: int, edge: int) -> list[int]:
    rows = [row]
    while routes.links[rows[-1], edge] > 0:
        here = rows[-1]
        chosen = routes.switch_ports[here][routes.next_hops_to(here, edge)]
        rows.append(int(routes.peers(chosen[0])))
    return rows


def _host_at(routes: RouteSet, row: int, edge: int, *, other: bool) -> int | None:
    """A host on a switch that is, or is not, of an edge."""
    network = routes.network
    node = network.n_hosts + row
    base, end = int(network.node_port_base[node]), int(network.node_port_base[node + 1])
    peers = network.port_node[network.port_peer[base:end]]
    hosts = peers[(peers < network.n_hosts) & routes.up[base:end]]
    fitting = hosts[(routes.host_edge[hosts] == edge) != other]
    return int(fitting[0]) if len(fitting) else None
