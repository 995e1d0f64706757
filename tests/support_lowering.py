"""Small scenarios to lower, and the profile of a port in the arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from fabric.lowered import Lowered
from fabric.spec.scenario import Scenario
from fabric.spec.topology import SingleSwitch
from fabric.spec.traffic import Flow, Flows
from fabric.topology import Network
from fabric.workload import FlowTable

__all__ = ["LARGEST_FRAME", "ONE_FLOW", "flow_table", "profile", "scenario"]

LARGEST_FRAME = 4096 + 62
ONE_FLOW = (Flows(flows=(Flow(source=0, destination=1, size="1MB"),)),)


def scenario(topology: Any = None, **parts: Any) -> Scenario:
    return Scenario(
        topology=topology or SingleSwitch(hosts=4), traffic=parts.pop("traffic", ONE_FLOW), **parts
    )


def flow_table(source: Any, destination: Any, *, size: Any = 10_000, **more: Any) -> FlowTable:
    return FlowTable.from_arrays(source, destination, size_bytes=size, **more)


def profile(lowered: Lowered, network: Network, port: str, number: int = 0) -> np.void:
    """The profile of one named port and class."""
    found = int(network.find_ports([port])[0])
    return lowered.profiles[lowered.port_profile[found * lowered.n_classes + number]]
