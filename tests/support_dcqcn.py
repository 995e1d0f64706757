"""The packet-level DCQCN scenario that the short and the long oracle tests share.

N senders, one FIFO egress of rate C, no PFC, unlimited memory, frames of 1000 B without a header; a
notification at most every 50 us and flow; R_AI 40 Mbit/s, R_HAI 400 Mbit/s, smallest rate 1 Mbit/s; starts
uniform in 2 us at line rate. From a mark to the first frame at the changed rate a round trip passes; how
it is divided between the two links is not observable, here evenly. Measured over the second half of the run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from support_oracles import (
    CONTROL,
    MS,
    PLENTY,
    SECOND,
    Outcome,
    link,
    message,
    messages,
    run,
    transport,
)

from fabric.analysis import jain_index
from fabric.spec import Dcqcn, Ecn, Lossy, Run, Scenario, SingleSwitch, Switch, TrafficClass
from fabric.units import Duration

FRAME_BYTES = 1_000
PAPER = Dcqcn(preset="paper_2015", hai="400Mbps")


@dataclass(frozen=True)
class DcqcnCase:
    """One row: link rate, senders, round trip, RED thresholds, duration."""

    rate: str
    senders: int
    round_trip: str
    kmin: str
    kmax: str
    pmax: float
    duration_ms: int


DEPLOYMENT = ("5KB", "200KB", 0.01)
D40 = DcqcnCase("40Gbps", 2, "4us", *DEPLOYMENT, 400)
D41 = DcqcnCase("40Gbps", 4, "4us", *DEPLOYMENT, 400)
D42 = DcqcnCase("40Gbps", 8, "4us", *DEPLOYMENT, 400)
D44 = DcqcnCase("400Gbps", 32, "8us", "800KB", "3200KB", 0.2, 200)


@dataclass(frozen=True)
class Measured:
    """Of the second half: mean queue, use of the link, Jain's index of what the senders sent."""

    queue_bytes: float
    utilisation: float
    fairness: float


def marking_switch(ecn: Ecn) -> Switch:
    """Marks, and otherwise neither pauses nor drops."""
    data = TrafficClass(name="data", pfc=False, lossy=Lossy(limit="10GB"), ecn=ecn)
    return Switch(buffer=PLENTY, latency=0, ecn=None, classes=(data, CONTROL))


def measure(case: DcqcnCase, *, mark: str, seed: int) -> Measured:
    """Run a row and measure the second half of it."""
    delay = Duration(Duration(case.round_trip) // 4)
    senders = range(1, case.senders + 1)
    scenario = Scenario(
        topology=SingleSwitch(hosts=case.senders + 1, link=link(case.rate, delay)),
        switch=marking_switch(Ecn(kmin=case.kmin, kmax=case.kmax, pmax=case.pmax, mark=mark)),
        transport=transport(FRAME_BYTES, congestion=PAPER),
        traffic=messages(*(message(10**11, sender, 0) for sender in senders), jitter="2us"),
        run=Run(seed=seed, fingerprint=False),
    )
    half_ps = case.duration_ms * MS // 2
    first = run(scenario, until_ps=half_ps)
    both = first.until(2 * half_ps)
    return _second_half(first, both, half_ps)


def _second_half(first: Outcome, both: Outcome, half_ps: int) -> Measured:
    port = both.port("switch0->host0")
    sent_bytes = both.columns["port_tx_bytes"] - first.columns["port_tx_bytes"]
    waited = both.columns["queue_wait_integral"] - first.columns["queue_wait_integral"]
    assert both.columns["drops_by_reason"].sum() == 0
    return Measured(
        queue_bytes=float(waited[port, 0]) / half_ps,
        utilisation=float(sent_bytes[port]) * 8 * SECOND / half_ps / int(both.lowered.port_rate_bps[port]),
        fairness=float(jain_index(np.asarray(sent_bytes[both.lowered.flow_port], dtype=np.float64))),
    )
