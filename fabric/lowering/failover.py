"""From which port of its host each flow leaves while cables are out of use.

A flow whose port is isolated, or whose first switch has no way on to the destination, moves to the next
port of its host from which there is one, in the order of ports and around; and back when its own will do
again. Only ports of the same rate count, and of the same kind: flows do not move between a NIC and a
scale-up network.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fabric.lowering.faults import Failing
from fabric.topology.network import TIER_SCALE_UP, Network

__all__ = ["ports_over_time"]

Int64Array = npt.NDArray[np.int64]


def ports_over_time(
    failing: Failing,
    network: Network,
    *,
    tables: list[npt.NDArray[np.uint32]],
    host_edge: npt.NDArray[np.uint32],
    source: npt.NDArray[np.uint32],
    destination: npt.NDArray[np.uint32],
    port: npt.NDArray[np.uint32],
) -> list[Int64Array]:
    """The port of every flow from each of `failing.times_ps` on.

    Parameters
    ----------
    failing : Failing
    network : Network
    tables : list of numpy.ndarray of uint32 [switches, edges]
        Next hops from each time on.
    host_edge : numpy.ndarray of uint32 [hosts]
    source, destination, port : numpy.ndarray of uint32 [flows]
        Ends of every flow, and its port when all is well.

    Returns
    -------
    list of numpy.ndarray of int64 [flows]
        The same array where nothing differs.
    """
    own = port.astype(np.int64)
    base = network.node_port_base.astype(np.int64)
    degree = np.diff(base)
    several = np.flatnonzero(degree[source] > 1)
    if len(several) == 0:
        return [own] * len(tables)
    first, count = base[source[several]][:, None], degree[source[several]][:, None]
    step = np.arange(int(count.max()))
    candidates = first + (own[several][:, None] - first + step) % count
    cable = network.port_link[candidates]
    peer = network.port_node[network.port_peer[candidates]].astype(np.int64)
    rate_bps = network.link_rate_bps[cable]
    is_scale_up = network.tier[peer] == TIER_SCALE_UP
    will_do = (step < count) & (rate_bps == rate_bps[:, :1]) & (is_scale_up == is_scale_up[:, :1])
    row = np.maximum(peer - network.n_hosts, 0)
    edge = host_edge[destination[several]].astype(np.int64)[:, None]
    is_end = peer == destination[several].astype(np.int64)[:, None]
    ports: list[Int64Array] = []
    for near, far, table in zip(failing.near, failing.far, tables, strict=True):
        leads_on = np.where(peer < network.n_hosts, is_end, table[row, edge] != 0)
        usable = will_do & (near & far)[cable] & leads_on
        chosen = np.where(usable.any(axis=1), np.argmax(usable, axis=1), 0)
        now = own.copy()
        now[several] = candidates[np.arange(len(several)), chosen]
        ports.append(now if not np.array_equal(now, own) else own)
    return ports
