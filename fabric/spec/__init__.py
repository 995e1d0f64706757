"""Descriptions of a scenario: frozen, validated, one concept a file."""

from __future__ import annotations

from fabric.spec.base import Spec
from fabric.spec.congestion import Dctcp, Hpcc, Timely
from fabric.spec.failure_sources import DrawnFailures, FailureLog, FailureRates
from fabric.spec.failures import (
    Corruption,
    DegradedLink,
    Failure,
    HostHang,
    LinkDown,
    LinkDrain,
    LinkFlap,
    PfcStorm,
    SlowNic,
    SwitchDown,
)
from fabric.spec.link import Link, LinkOverride
from fabric.spec.nic import Nic
from fabric.spec.presets import DCQCN_PRESETS
from fabric.spec.recovery import Recovery
from fabric.spec.routing import Pin, Routing
from fabric.spec.run import PacketRecord, QueueRecord, Record, Run, ThroughputRecord
from fabric.spec.scenario import Scenario
from fabric.spec.switch import Ecn, Lossy, Pfc, Switch, TrafficClass, Watchdog
from fabric.spec.topology import (
    Clos3,
    FatTree,
    GraphFile,
    LeafSpine,
    RailOptimized,
    SingleSwitch,
    Topology,
    host_count,
)
from fabric.spec.traffic import (
    DISTRIBUTIONS,
    AllToAll,
    Collective,
    Flow,
    Flows,
    Incast,
    Permutation,
    Poisson,
    Program,
    Traffic,
    Uniform,
)
from fabric.spec.transport import (
    Congestion,
    Dcqcn,
    FixedWindow,
    GoBackN,
    NoCongestionControl,
    Paths,
    SelectiveRepeat,
    Transport,
)

__all__ = [
    "DCQCN_PRESETS",
    "DISTRIBUTIONS",
    "AllToAll",
    "Clos3",
    "Collective",
    "Congestion",
    "Corruption",
    "Dcqcn",
    "Dctcp",
    "DegradedLink",
    "DrawnFailures",
    "Ecn",
    "Failure",
    "FailureLog",
    "FailureRates",
    "FatTree",
    "FixedWindow",
    "Flow",
    "Flows",
    "GoBackN",
    "GraphFile",
    "HostHang",
    "Hpcc",
    "Incast",
    "LeafSpine",
    "Link",
    "LinkDown",
    "LinkDrain",
    "LinkFlap",
    "LinkOverride",
    "Lossy",
    "Nic",
    "NoCongestionControl",
    "PacketRecord",
    "Paths",
    "Permutation",
    "Pfc",
    "PfcStorm",
    "Pin",
    "Poisson",
    "Program",
    "QueueRecord",
    "RailOptimized",
    "Record",
    "Recovery",
    "Routing",
    "Run",
    "Scenario",
    "SelectiveRepeat",
    "SingleSwitch",
    "SlowNic",
    "Spec",
    "Switch",
    "SwitchDown",
    "ThroughputRecord",
    "Timely",
    "Topology",
    "Traffic",
    "TrafficClass",
    "Transport",
    "Uniform",
    "Watchdog",
    "host_count",
]
