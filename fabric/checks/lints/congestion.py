"""Lints of congestion control: RED with many flows of DCQCN, and the class of control frames."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fabric.analysis.dcqcn_fluid import DcqcnFluid, most_flows_at_rest
from fabric.checks.lints.lint import Lint
from fabric.lowered import Lowered
from fabric.spec import Scenario
from fabric.topology import Network
from fabric.units import Rate

__all__ = ["control_lints", "dcqcn_lints"]

PS_PER_SECOND = 10**12
DCQCN = (1, 2)
"""Numbers of its two forms in `Lowered.transports`."""


def dcqcn_lints(scenario: Scenario, network: Network, lowered: Lowered) -> Iterator[Lint]:
    """RED has a queue at rest for so many flows of DCQCN; more of them meet at the last link of a host."""
    last = network.port_peer[network.node_port_base[: network.n_hosts]]
    for number, row in enumerate(lowered.transports):
        if int(row["congestion"]) not in DCQCN or row["feedback"] != 1:
            continue
        mine = lowered.flow_transport == number
        fan_in = np.bincount(lowered.flow_destination[mine], minlength=network.n_hosts)
        host = int(np.argmax(fan_in))
        flow = int(np.flatnonzero(mine & (lowered.flow_destination == host))[0]) if fan_in[host] else -1
        if flow < 0 or network.port_node[last[host]] < network.n_hosts:
            continue
        each = int(lowered.port_profile.reshape(-1, lowered.n_classes)[last[host], lowered.flow_class[flow]])
        profile = lowered.profiles[each]
        if not profile["ecn_mode"]:
            continue
        pmax, rate_bps = float(profile["ecn_pmax"]), int(lowered.port_rate_bps[last[host]])
        most = most_flows_at_rest(_fluid(row), link_bps=rate_bps, pmax=pmax)
        if fan_in[host] > most:
            yield Lint(
                "warning",
                "switch.ecn.pmax",
                f"with {pmax:g} DCQCN has a fixed point for at most {most} flows on {Rate(rate_bps)}, and "
                f"{fan_in[host]} go to {network.names[host]}: their queue swings about kmax; raise pmax",
            )


def _fluid(row: np.void) -> DcqcnFluid:
    def seconds(name: str) -> float:
        return max(int(row[name]), 1) / PS_PER_SECOND

    return DcqcnFluid(
        cnp_interval_s=seconds("cnp_interval_ps"),
        alpha_period_s=seconds("alpha_period_ps"),
        increase_period_s=seconds("increase_period_ps"),
        byte_counter_bytes=float(row["byte_counter"]) or None,
        fast_recovery=int(row["fast_recovery"]),
        additive_bps=float(row["ai_bps"]),
        packet_bytes=int(row["frame_bytes"]),
    )


def control_lints(scenario: Scenario, lowered: Lowered) -> Iterator[Lint]:
    classes = scenario.switch.classes
    control = classes[scenario.switch.class_index(scenario.transport.control_class)]
    data = classes[scenario.switch.class_index(scenario.transport.data_class)]
    if control.pfc is not False or data.pfc is False:
        return
    above = control.priority > data.priority
    text = (
        f"class {control.name} of control frames is lossy: ACKs and CNPs can be dropped when buffers are full"
    )
    if above:
        yield Lint("note", "transport.control_class", f"{text}; it is served first, so its queue stays short")
    else:
        yield Lint(
            "warning", "transport.control_class", f"{text}, and it is not served before class {data.name}"
        )
