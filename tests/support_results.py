"""A small incast, two flows, and an engine that hands out what it is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fabric.lower import lower
from fabric.lowered import DEADLOCK_CHANNEL, DEADLOCK_FRAME, ROW, Lowered
from fabric.outcome import Built, build_result
from fabric.result import Provenance, Result
from fabric.spec import (
    Flow,
    Flows,
    Incast,
    LeafSpine,
    Pfc,
    QueueRecord,
    Record,
    Scenario,
    SingleSwitch,
    Switch,
    ThroughputRecord,
)
from fabric.topology import build_network
from fabric.workload import build_flows

__all__ = ["INCAST", "TWO_FLOWS", "CountedEngine", "built", "result_of"]

INCAST = Scenario(
    name="incast",
    question="Does it fill?",
    topology=LeafSpine(leaves=2, spines=2, hosts_per_leaf=3),
    traffic=(Incast(receivers=("host0",), senders=4, size="100KB"),),
    switch=Switch(buffer="1MB", pfc=Pfc(xoff="20KB")),
    record=Record(
        queues=QueueRecord(delta=1),
        throughput=ThroughputRecord(interval="10us"),
        rates=("incast",),
        pauses=True,
        marks=True,
        drops=True,
    ),
)


class CountedEngine:
    """Stands for an engine: hands out given columns and rows."""

    def __init__(self, lowered: Lowered, *, now_ps: int, rows: Mapping[str, Any] | None = None) -> None:
        shape = (lowered.n_ports, lowered.n_classes)
        flows = lowered.n_flows
        self.now_ps = now_ps
        self._rows = rows or {}
        per_flow = ("sent", "retransmitted", "timeouts", "cnps", "nacks", "marked")
        per_class = ("queue_bytes", "queue_peak_bytes", "queue_marks", "queue_drops", "ingress_bytes")
        per_class += ("headroom_bytes", "headroom_peak_bytes", "pauses_sent", "paused_ps")
        self.values: dict[str, Any] = {
            **{f"flow_{name}_ps": np.full(flows, -1) for name in ("started", "delivered", "completed")},
            **{f"flow_{name}": np.zeros(flows, np.uint64) for name in per_flow},
            **{name: np.zeros(shape, np.int64) for name in per_class},
            "queue_wait_integral": np.zeros(shape),
            "port_tx_bytes": np.zeros(lowered.n_ports, np.int64),
            "drops_by_reason": np.zeros(8, np.uint64),
            "shared_used": np.zeros(lowered.n_nodes, np.int64),
            "counters": {"hops": 10, "end_ps": 900, "fingerprint": 0xABC},
        }

    def run(self, until_ps: int | None = None, max_hops: int | None = None) -> str:
        return "FINISHED"

    def columns(self) -> dict[str, Any]:
        return self.values

    def rows(self, stream: str) -> Any:
        return np.array(self._rows.get(stream, []), dtype=ROW)

    def deadlocks(self) -> tuple[Any, Any]:
        return np.zeros(0, DEADLOCK_CHANNEL), np.zeros(0, DEADLOCK_FRAME)


def built(scenario: Scenario) -> Built:
    network = build_network(scenario.topology)
    flows = build_flows(scenario, network)
    lowered = lower(scenario, network=network, flows=flows)
    return Built(scenario=scenario, network=network, flows=flows, lowered=lowered)


def result_of(engine: CountedEngine, *, of: Built, status: str = "FINISHED") -> Result:
    provenance = Provenance.here(scenario="", name="", question="", expect="", seed=1, engine="reference")
    return build_result(engine, built=of, status=status, wall_s=2.0, provenance=provenance)


TWO_FLOWS = Scenario(
    topology=SingleSwitch(hosts=3),
    traffic=(
        Flows(
            flows=(
                Flow(source="host0", destination="host2", size="100KB", name="first"),
                Flow(source="host1", destination="host2", size="1KB"),
            )
        ),
    ),
)
