"""Incasts under DCTCP, TIMELY, HPCC and DCQCN with a window, against the HPCC group's ns-3 simulator.

Messages of 1 MB to one host over one switch, 100 Gbit/s, 1 us (github.com/alibaba-edu/
High-Precision-Congestion-Control, state of March 2021; its parameters for 100 Gbit/s). Without random
draws and without ties that matter, times agree to the nanosecond and queues to the frame that is being
sent. Where the order of simultaneous frames matters, the margin is what other fair orders differ by.
"""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np
import pytest

from fabric._core import Engine
from fabric.lower import lower
from fabric.spec import Congestion, Dcqcn, Dctcp, Ecn, Hpcc, Incast, Scenario, SingleSwitch, Timely
from fabric.spec.ns3_hpcc import ns3_hpcc, ns3_hpcc_link
from fabric.topology import from_networkx
from fabric.workload import FlowTable

FRAME_BYTES = 1_100
HPCC = Hpcc(base_rtt="4160ns", max_stage=0, telemetry_header=42)
DCTCP = Dctcp(window=52_000)
TIMELY = Timely(telemetry_header=8)
DCQCN = Dcqcn(preset="hpcc", window=52_000, variable_window=True)
STEP = Ecn(kmin="300KB", kmax="300KB", pmax=1.0, mark="dequeue")


@dataclass(frozen=True, kw_only=True)
class Published:
    """What the simulator reports: completion times in us, and the margins of mean and maximum."""

    mean_us: float
    max_us: float
    peak_kb: int
    pauses: int = 0
    mean_margin: float = 1e-9
    max_margin: float = 1e-9
    pauses_margin: int = 0


RUNS = {
    "dctcp 2": (DCTCP, 2, "32MiB", Published(mean_us=170.0495, max_us=170.091, peak_kb=57)),
    "dctcp 8": (DCTCP, 8, "32MiB", Published(mean_us=667.8005, max_us=668.091, peak_kb=384)),
    "dctcp 16": (
        DCTCP,
        16,
        "32MiB",
        Published(mean_us=1306.9161, max_us=1332.091, peak_kb=820, mean_margin=0.007, max_margin=0.001),
    ),
    "dctcp 32": (
        DCTCP,
        32,
        "32MiB",
        Published(mean_us=2573.1343, max_us=2662.968, peak_kb=1691, mean_margin=0.033, max_margin=0.009),
    ),
    "timely 2": (TIMELY, 2, "32MiB", Published(mean_us=172.050, max_us=172.092, peak_kb=1057)),
    "timely 2, 4 MiB": (
        TIMELY,
        2,
        "4MiB",
        Published(mean_us=172.050, max_us=172.092, peak_kb=848, pauses=10),
    ),
    "timely 8": (TIMELY, 8, "32MiB", Published(mean_us=675.798, max_us=676.092, peak_kb=7393)),
    "timely 8, 4 MiB": (
        TIMELY,
        8,
        "4MiB",
        Published(
            mean_us=754.1745,
            max_us=760.023,
            peak_kb=2127,
            pauses=73,
            mean_margin=0.005,
            max_margin=0.003,
            pauses_margin=2,
        ),
    ),
    "timely 32": (
        TIMELY,
        32,
        "32MiB",
        Published(
            mean_us=2680.8622,
            max_us=2692.092,
            peak_kb=26693,
            pauses=70,
            mean_margin=0.001,
            pauses_margin=2,
        ),
    ),
    "hpcc 2": (
        HPCC,
        2,
        "32MiB",
        Published(mean_us=182.656, max_us=191.854, peak_kb=57, mean_margin=0.05, max_margin=0.009),
    ),
    "hpcc 8": (
        HPCC,
        8,
        "32MiB",
        Published(mean_us=695.1338, max_us=748.553, peak_kb=401, mean_margin=0.039, max_margin=0.004),
    ),
    "hpcc 32": (
        HPCC,
        32,
        "32MiB",
        Published(mean_us=2731.3069, max_us=2966.506, peak_kb=1761, mean_margin=0.017, max_margin=0.003),
    ),
    "dcqcn with a window 2": (DCQCN, 2, "32MiB", Published(mean_us=170.0495, max_us=170.091, peak_kb=57)),
    "dcqcn with a window 8": (DCQCN, 8, "32MiB", Published(mean_us=667.8005, max_us=668.091, peak_kb=384)),
}


def incast(senders: int, congestion: Congestion, *, buffer: str) -> Engine:
    graph = nx.MultiGraph()
    graph.add_nodes_from((f"h{number}" for number in range(senders + 1)), kind="host")
    graph.add_node("s0", kind="switch")
    for number in range(senders + 1):
        graph.add_edge(f"h{number}", "s0", rate="100Gbps", delay="1us", gap=0)
    network = from_networkx(graph, link=ns3_hpcc_link("100Gbps"))
    fields = ns3_hpcc(buffer=buffer)
    control_bytes = 88 if isinstance(congestion, Hpcc) else 60
    fields["transport"] = fields["transport"].replace(congestion=congestion, control_frame=control_bytes)
    if isinstance(congestion, Dctcp):
        fields["switch"] = fields["switch"].replace(ecn=STEP)
    flows = FlowTable.from_arrays(
        np.arange(senders),
        np.full(senders, senders),
        size_bytes=np.full(senders, 1_000_000),
        start_ps=np.zeros(senders, np.int64),
    )
    described = Scenario(topology=SingleSwitch(hosts=2), traffic=[Incast(senders=1, size="1MB")], **fields)
    return Engine(lower(described, network=network, flows=flows))


@pytest.mark.parametrize(("congestion", "senders", "buffer", "published"), RUNS.values(), ids=RUNS)
def test_incast(congestion: Congestion, senders: int, buffer: str, published: Published) -> None:
    engine = incast(senders, congestion, buffer=buffer)
    assert engine.run() == "FINISHED"
    columns = engine.columns()
    times_us = columns["flow_completed_ps"] / 1e6
    assert times_us.mean() == pytest.approx(published.mean_us, rel=max(published.mean_margin, 1e-7))
    assert times_us.max() == pytest.approx(published.max_us, rel=max(published.max_margin, 1e-7))
    assert columns["queue_peak_bytes"].max() == pytest.approx(published.peak_kb * 1000, abs=2 * FRAME_BYTES)
    assert columns["pauses_sent"].sum() == pytest.approx(published.pauses, abs=published.pauses_margin)
    assert columns["drops_by_reason"].sum() == 0
