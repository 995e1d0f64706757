"""Small fabrics that fail: two leaves and two spines, or two hosts at a switch, run by both engines."""

from __future__ import annotations

from typing import Any

from test_two_engines import compare_engines

from fabric.lower import lower
from fabric.lowered import Lowered
from fabric.spec import (
    Flow,
    Flows,
    GoBackN,
    LeafSpine,
    NoCongestionControl,
    Permutation,
    Record,
    Recovery,
    Run,
    Scenario,
    SingleSwitch,
    ThroughputRecord,
    Transport,
)

US, MS = 10**6, 10**9
AT_ONCE = Recovery(suspect=0, isolate=0, convergence=0, restore=0)


def fabric_of(**parts: Any) -> Scenario:
    """Two leaves, two spines, no congestion control."""
    small: dict[str, Any] = {
        "topology": LeafSpine(leaves=2, spines=2, hosts_per_leaf=2),
        "traffic": [Permutation(size="400KB", cross_leaf=True)],
        "transport": Transport(congestion=NoCongestionControl(), reliability=GoBackN(rto="100us")),
        "run": Run(until="20ms"),
        "record": Record(drops=True, throughput=ThroughputRecord(interval="1us"), pauses=True),
    }
    return Scenario(**small | parts)


def outcome(scenario: Scenario) -> Any:
    """What both engines say."""
    return compare_engines(lower(scenario), steps=[("hops", 50), ("ps", 3 * US)], window=0.4)


def one_flow(size: str = "400KB", **parts: Any) -> Scenario:
    flow = Flow(source=0, destination=1, size=size)
    return fabric_of(topology=SingleSwitch(hosts=2), traffic=[Flows(flows=[flow])], **parts)


def changes(lowered: Lowered, kind: int) -> list[tuple[int, int]]:
    """Times and values of the changes of a kind."""
    assert lowered.faults is not None
    rows = lowered.faults.changes[lowered.faults.changes["kind"] == kind]
    return list(zip(rows["time_ps"].tolist(), rows["value"].tolist(), strict=True))
