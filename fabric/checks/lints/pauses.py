"""Lints of pauses: that run out before they are repeated, and that a watchdog takes for a fault."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fabric.checks.lints.lint import Lint
from fabric.lowered import Lowered
from fabric.result.text import counted
from fabric.spec import Scenario
from fabric.topology import Network
from fabric.units import Duration
from fabric.workload import FlowTable

__all__ = ["pause_lints", "watchdog_lints"]

Q16 = 1 << 16
PS_PER_SECOND = 10**12
BITS_PER_BYTE = 8


def pause_lints(scenario: Scenario, network: Network, lowered: Lowered) -> Iterator[Lint]:
    """Ports at which a PAUSE can run out before it is repeated: the one at which it does so first."""
    short = np.flatnonzero(lowered.port_pause_holds == 0)
    if len(short):
        port = short[np.argmin(lowered.port_pause_ps[short])]
        again = (
            f"repeated every {Duration(lowered.pfc_refresh_ps)}"
            if lowered.pfc_refresh_ps
            else "never repeated"
        )
        yield Lint(
            "warning",
            "switch.pfc.refresh",
            f"a PAUSE for {network.port_arrow(int(port))} holds {Duration(int(lowered.port_pause_ps[port]))} "
            f"and is {again}: where an ingress wants longer it runs out, and lossless classes can drop",
        )


def watchdog_lints(
    scenario: Scenario, network: Network, flows: FlowTable, lowered: Lowered
) -> Iterator[Lint]:
    """A pause that ends by itself, and is taken for a fault: the longest of any class.

    It ends when what is ahead of the ingress' frames at an egress has left: at most what all busy ports of
    the switch can have there, their thresholds (or the pool) and their headrooms.
    """
    if scenario.switch.watchdog is None:
        return
    ports = np.flatnonzero(network.port_node >= network.n_hosts)
    node = network.port_node[ports]
    degree = np.diff(network.node_port_base.astype(np.int64))[node]
    busy = np.minimum(degree - 1, len(np.unique(flows.source)))
    rows = lowered.port_profile.reshape(-1, lowered.n_classes)[ports]
    longest_ps, where, text = 0.0, 0, ""
    for number, each in enumerate(scenario.switch.classes):
        profile = lowered.profiles[rows[:, number]]
        alpha, shared = profile["alpha_q16"] / Q16, lowered.node_shared_bytes[node]
        pooled = np.where(
            alpha > 0, shared * busy * alpha / (1 + busy * alpha), busy * profile["limit_bytes"]
        )
        ahead = np.minimum(pooled, shared) + busy * (profile["reserved_bytes"] + profile["headroom_bytes"])
        lasts_ps = ahead * BITS_PER_BYTE * PS_PER_SECOND / lowered.port_rate_bps[ports]
        k = int(np.argmax(lasts_ps))
        if profile["lossless"].all() and lasts_ps[k] > longest_ps:
            longest_ps, where, text = (
                float(lasts_ps[k]),
                k,
                f"class {each.name}, {counted(int(busy[k]), 'port')}",
            )
    detection = scenario.switch.watchdog.detection
    if detection < longest_ps:
        yield Lint(
            "warning",
            "switch.watchdog.detection",
            f"{detection} is shorter than a pause that {network.names[node[where]]} ends by itself: up to "
            f"{Duration(int(longest_ps))} ({text} that send to one)",
        )
