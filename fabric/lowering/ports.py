"""Columns of nodes and ports: who owns a port, where it leads, how fast and how far.

The delay of a port is that of its cable plus the fixed latency of the node that receives, because both
pass before the receiver can act on a frame. It is at least 1 ns: the smallest delay of all ports is
the lookahead within which nodes are simulated independently of each other. With cut-through a switch
may begin to forward once it has the headers, which is only defined where its ports are equally fast.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.keyed_hash import Purpose, draw, purpose_key
from fabric.spec.nic import Nic
from fabric.spec.switch import Switch
from fabric.topology.network import Network
from fabric.units import Duration, format_duration

__all__ = ["CUT_THROUGH_BYTES", "node_columns", "port_columns"]

CUT_THROUGH_BYTES = 64
"""Bytes after which a cut-through switch forwards: headers up to the transport's fit into the
smallest Ethernet frame (IEEE 802.3, clause 4.4.2)."""
SMALLEST_DELAY_PS = 1_000
LARGEST_DELAY_PS = 2**40
"""About 1.1 s, more than any cable: the delays along any path add up to little beside the 64-bit clock,
and so does what a link carries within its delay."""


def node_columns(network: Network, *, switch: Switch, nic: Nic, seed: int) -> dict[str, Any]:
    """Columns of nodes that follow from the network, the devices and the seed alone."""
    node = np.arange(network.n_nodes)
    is_switch = node >= network.n_hosts
    salts = draw(purpose_key(seed, Purpose.ECMP_SALT), node, 0)
    return {
        "n_nodes": network.n_nodes,
        "n_hosts": network.n_hosts,
        "node_kind": is_switch.astype(np.uint8),
        "node_port_base": network.node_port_base,
        "node_arbiter": (is_switch & (switch.arbiter == "round_robin")).astype(np.uint8),
        "node_pfc_response_ps": np.where(is_switch, int(switch.pfc_response), int(nic.pfc_response)),
        "node_control_unpausable": (~is_switch & nic.control_ignores_pause).astype(np.uint8),
        "node_takes_turns": (~is_switch & (nic.queue_pairs == "in_turn")).astype(np.uint8),
        "node_tie_key": draw(purpose_key(seed, Purpose.TIE), node, 0),
        "node_salt": (salts & np.uint64(0xFFFFFFFF)).astype(np.uint32),
    }


def port_columns(network: Network, *, switch: Switch, nic: Nic) -> dict[str, Any]:
    """Columns of ports that follow from cables and latencies.

    Raises
    ------
    fabric.errors.SpecError
        A delay outside 1 ns .. 2^40 ps, or cut-through at a switch with ports of several rates.
    """
    link = network.port_link
    ends_at_switch = network.port_node[network.port_peer] >= network.n_hosts
    latency_ps = np.where(ends_at_switch, int(switch.latency), int(nic.latency))
    delay_ps = network.link_delay_ps[link] + latency_ps
    _check_delays(network, delay_ps)
    rate_bps = network.link_rate_bps[link]
    if switch.cut_through:
        _check_equal_rates(network, rate_bps)
    return {
        "n_ports": network.n_ports,
        "port_peer": network.port_peer,
        "port_node": network.port_node,
        "port_rate_bps": rate_bps,
        "port_delay_ps": delay_ps,
        "port_gap_bytes": network.link_gap_bytes[link].astype(np.uint16),
        "port_cut_bytes": (ends_at_switch * (CUT_THROUGH_BYTES * switch.cut_through)).astype(np.uint16),
        "port_loss": network.link_loss[link],
        "port_ber_rate": 0.0 - np.log1p(-network.link_bit_error_rate[link]),
    }


def _check_delays(network: Network, delay_ps: npt.NDArray[np.int64]) -> None:
    wrong = np.flatnonzero((delay_ps < SMALLEST_DELAY_PS) | (delay_ps > LARGEST_DELAY_PS))
    if len(wrong):
        port = int(wrong[0])
        delay = f"{format_duration(int(delay_ps[port]))} on {network.port_arrow(port)}"
        allowed = f"a link delay plus latency of the receiver from 1ns to {Duration(LARGEST_DELAY_PS)}"
        raise SpecError("topology", delay, allowed)


def _check_equal_rates(network: Network, rate_bps: npt.NDArray[np.int64]) -> None:
    """Ports of one switch are neighbours in the columns, so neighbours of one owner must agree."""
    differs = (np.diff(rate_bps) != 0) & (np.diff(network.port_node.astype(np.int64)) == 0)
    at_switch = differs & (network.port_node[1:] >= network.n_hosts)
    if at_switch.any():
        name = network.names[network.port_node[1 + int(np.argmax(at_switch))]]
        raise SpecError(
            "switch.cut_through", True, f"false, or one rate at all ports of a switch ({name} has several)"
        )
