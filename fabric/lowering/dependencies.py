"""When a flow may start: the end of its predecessors, and how long the news takes to reach its source.

What a host can know at once, it waits for without delay: a flow that it has received (*delivered*), or one
that it has sent and seen acknowledged (*complete*). For a predecessor between other hosts the news travels
from that flow's destination over the network's links, for as long as their delays add up to, along
the path that a frame with the waiting flow's hash would take: no message is simulated, but no effect
outruns one. Delays across hosts are therefore never below the lookahead. With `run.waits = "instant"` a
flow ends for all that wait for it when its sender knows, in no time at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.routing import Routes, RouteTables, closest_ports, hashed_words, trace_path
from fabric.topology.network import Network
from fabric.workload.flow_table import FlowTable

__all__ = ["ON_COMPLETE", "ON_DELIVERED", "dependency_columns"]

ON_DELIVERED = 0
ON_COMPLETE = 1
ON_COMPLETE_ELSEWHERE = 2
"""The instant at which another host's flow is complete, without any news travelling."""


def dependency_columns(
    flows: FlowTable,
    *,
    network: Network,
    routes: Routes,
    tables: RouteTables,
    port_delay_ps: npt.NDArray[np.int64],
    flow_hash: npt.NDArray[np.uint32],
    at_once: bool = False,
) -> dict[str, Any]:
    """The waits of a flow table as rows by predecessor.

    Parameters
    ----------
    flows : FlowTable
    network : Network
    routes : Routes
    tables : RouteTables
        The same routes with the salts of the run.
    port_delay_ps : numpy.ndarray of int64 [ports]
    flow_hash : numpy.ndarray of uint32 [flows]
    at_once : bool
        Whether the ends of all flows are known everywhere when their senders know. Default False.

    Returns
    -------
    dict
        `dep_base`, `dep_flow`, `dep_delay_ps`, `dep_on`, `flow_waits`.

    Raises
    ------
    fabric.errors.SpecError
        No path from the predecessor's destination to the waiting flow's source.
    """
    order = np.lexsort((flows.after_flow, flows.after_predecessor))
    waiting = flows.after_flow[order]
    predecessor = flows.after_predecessor[order]
    source = flows.source[waiting]
    received = flows.destination[predecessor] == source
    sent = flows.source[predecessor] == source
    if at_once:
        received, on_end = sent, np.where(sent, ON_COMPLETE, ON_COMPLETE_ELSEWHERE)
    else:
        on_end = np.where(~received & sent, ON_COMPLETE, ON_DELIVERED)
    delay_ps = np.zeros(len(waiting), dtype=np.int64)
    elsewhere = np.flatnonzero(~received & ~sent & ~at_once)
    delay_ps[elsewhere] = _news_delays(
        network,
        routes,
        tables,
        port_delay_ps,
        start=flows.destination[predecessor[elsewhere]],
        end=source[elsewhere],
        path_hash=flow_hash[waiting[elsewhere]],
        flow=waiting[elsewhere],
        path_of=lambda row: flows.flow_path(int(waiting[elsewhere[row]])),
    )
    counts = np.bincount(predecessor, minlength=len(flows))
    return {
        "dep_base": np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32),
        "dep_flow": waiting,
        "dep_delay_ps": delay_ps,
        "dep_on": on_end.astype(np.uint8),
        "flow_waits": np.bincount(waiting, minlength=len(flows)).astype(np.uint32),
    }


def _news_delays(
    network: Network,
    routes: Routes,
    tables: RouteTables,
    port_delay_ps: npt.NDArray[np.int64],
    *,
    start: npt.NDArray[np.uint32],
    end: npt.NDArray[np.uint32],
    path_hash: npt.NDArray[np.uint32],
    flow: npt.NDArray[np.uint32],
    path_of: Callable[[int], str],
) -> npt.NDArray[np.int64]:
    """Sum of link delays from hosts `start` to hosts `end`, by the first port of a shortest path."""
    if len(start) == 0:
        return np.zeros(0, dtype=np.int64)
    candidates, closest = closest_ports(network, routes.distances, source=start, destination=end)
    lost = np.flatnonzero(~closest.any(axis=1))
    if len(lost):
        pair = f"{network.names[start[lost[0]]]} -> {network.names[end[lost[0]]]}"
        allowed = "waits for flows whose destination has a path to the source of the waiting flow"
        raise SpecError(path_of(int(lost[0])), pair, allowed)
    first_port = candidates[np.arange(len(start)), np.argmax(closest, axis=1)]
    paths = trace_path(
        tables,
        first_port=first_port,
        destination=end,
        path_hash=path_hash,
        words=hashed_words(tables, source=start, destination=end, flow=flow),
    )
    delay_ps = np.where(paths >= 0, port_delay_ps[np.maximum(paths, 0)], 0)
    return np.asarray(delay_ps.sum(axis=1), dtype=np.int64)
