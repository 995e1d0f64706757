"""The work that fabric and its peers are given: every host sends a message to one other host.

The fabric and the message are a scenario of `fabric`; the peers get the same cables, packets of the same
size on the wire, sent at line rate, and each flow along the path that fabric's hash chose for it, as plain
data that any interpreter can read. Every destination has one source, so that simulators that route by
destination can follow the paths.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fabric.lower import lower
from fabric.lowered import Lowered
from fabric.routing import NO_PORT, trace_path
from fabric.spec import LeafSpine, Link, Permutation, Scenario, SingleSwitch, Switch
from fabric.units import Duration, Rate, Size

__all__ = ["WORKS", "Work", "as_data"]

LINK = Link(rate=Rate("400Gbps"), delay=Duration("1us"))
FLOW_BYTES = Size("4MB")


@dataclass(frozen=True, kw_only=True)
class Work:
    """A work: its name, and its scenario."""

    name: str
    scenario: Scenario

    def lowered(self) -> Lowered:
        """Return the scenario as arrays."""
        return lower(self.scenario)


def _scenario(topology: SingleSwitch | LeafSpine, *, cross_leaf: bool) -> Scenario:
    return Scenario(
        topology=topology,
        switch=Switch(latency=Duration(0)),
        traffic=(Permutation(size=FLOW_BYTES, cross_leaf=cross_leaf),),
    )


WORKS: tuple[Work, ...] = (
    Work(
        name="16 hosts, one switch",
        scenario=_scenario(SingleSwitch(hosts=16, link=LINK), cross_leaf=False),
    ),
    Work(
        name="16 hosts, 4 leaves, 4 spines",
        scenario=_scenario(
            LeafSpine(leaves=4, spines=4, hosts_per_leaf=4, host_link=LINK, fabric_link=LINK),
            cross_leaf=True,
        ),
    ),
)


def as_data(lowered: Lowered) -> dict[str, Any]:
    """Return a work as numbers and lists.

    Parameters
    ----------
    lowered : Lowered
        Links of one rate and delay, flows of one transport, one flow to each destination.

    Returns
    -------
    dict
        `nodes`; `port_node`, `port_peer`, `port_end` (the node that a port's link leads to), by port;
        `rate_bps`, `delay_ps`, `wire_bytes` of a packet; `flows`: for each `source`, `destination`,
        `packets` and `ports`, the sending ports of its path.
    """
    paths = trace_path(
        lowered,
        first_port=lowered.flow_port,
        destination=lowered.flow_destination,
        path_hash=lowered.flow_hash,
    )
    flows = [
        {
            "source": int(lowered.flow_source[flow]),
            "destination": int(lowered.flow_destination[flow]),
            "packets": int(lowered.flow_frames[flow]),
            "ports": [port for port in path if port != NO_PORT],
        }
        for flow, path in enumerate(paths.tolist())
    ]
    return {
        "nodes": lowered.n_nodes,
        "port_node": lowered.port_node.tolist(),
        "port_peer": lowered.port_peer.tolist(),
        "port_end": lowered.port_node[lowered.port_peer].tolist(),
        "rate_bps": int(lowered.port_rate_bps[0]),
        "delay_ps": int(lowered.port_delay_ps[0]),
        "wire_bytes": int(lowered.transports["frame_bytes"][0]) + int(lowered.port_gap_bytes[0]),
        "flows": flows,
    }
