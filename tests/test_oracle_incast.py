"""Oracles of incast: N senders at line rate into one port, all starting at one instant.

With P frames of time s from each sender, and links of delay d, counting gives

    time to drain        N P s + s + 2 d             the port is busy from the first frame on
    peak queue           (N - 1) P + 1 frames        with the one in service, after P frame times
    k-th completion      not before the k smallest flows have left the port (prefix rule)

and under PFC, which is fair per port, each sender C/N with the same last finish. The queue of the
engine excludes the frame in service. Values: N = 8, P = 489 (2 MB in frames of 4096 B): 3424 frames.
"""

from __future__ import annotations

import numpy as np
import pytest
from support_oracles import (
    US,
    Outcome,
    link,
    lossless_switch,
    message,
    messages,
    run,
    transport,
)

from fabric.spec import Flow, Incast, LeafSpine, Record, Scenario, SingleSwitch

FRAME_BYTES = 4160
SERVICE_PS = 83_200
"""At 400 Gbit/s."""
PAYLOAD = 4096
NEVER = "10GB"
"""A threshold that is not reached."""


def incast(
    senders: int, frames: int, *, xoff: str = NEVER, arbiter: str = "fifo", record: Record | None = None
) -> Outcome:
    scenario = Scenario(
        topology=SingleSwitch(hosts=senders + 1, link=link("400Gbps", "1us")),
        switch=lossless_switch(xoff, arbiter=arbiter),
        transport=transport(PAYLOAD, header=64),
        traffic=(Incast(receivers=("host0",), senders=senders, size=frames * PAYLOAD),),
        record=record or Record(),
    )
    outcome = run(scenario)
    assert outcome.status == "FINISHED"
    assert outcome.columns["drops_by_reason"].sum() == 0
    return outcome


@pytest.mark.parametrize(("senders", "frames"), [(2, 245), (8, 489), (16, 100), (64, 30)])
class TestWithoutFlowControl:
    def test_time_to_drain(self, senders: int, frames: int) -> None:
        delivered_ps = incast(senders, frames).columns["flow_delivered_ps"]
        assert delivered_ps.max() == senders * frames * SERVICE_PS + SERVICE_PS + 2 * US

    def test_peak_queue(self, senders: int, frames: int) -> None:
        outcome = incast(senders, frames, record=Record(queues={"ports": ["switch0->host0"], "delta": 1}))
        peak_bytes = outcome.columns["queue_peak_bytes"][outcome.port("switch0->host0")].max()
        assert peak_bytes == (senders - 1) * frames * FRAME_BYTES
        rows = outcome.rows("queue")
        reached_ps = rows["time_ps"][rows["value"] == peak_bytes]
        assert reached_ps.tolist() == [US + frames * SERVICE_PS]

    def test_prefix_rule(self, senders: int, frames: int) -> None:
        """By the k-th completion at least the bytes of k flows have left the port."""
        delivered_ps = np.sort(incast(senders, frames).columns["flow_delivered_ps"])
        least_ps = np.arange(1, senders + 1) * frames * SERVICE_PS + SERVICE_PS + 2 * US
        assert (delivered_ps >= least_ps).all()
        assert delivered_ps[-1] == least_ps[-1]


def test_peak_of_the_tabulated_incast() -> None:
    outcome = incast(8, 489)
    port = outcome.port("switch0->host0")
    assert outcome.columns["queue_peak_bytes"][port].max() // FRAME_BYTES + 1 == 3424


class TestUnequalFlows:
    SIZES = (1, 3, 10, 40, 100, 250)
    """Frames of each sender."""

    @pytest.mark.parametrize("xoff", [NEVER, "100KB"])
    @pytest.mark.parametrize("arbiter", ["fifo", "round_robin"])
    def test_prefix_rule(self, xoff: str, arbiter: str) -> None:
        """No order of service completes k flows before the k smallest can have left."""
        flows: list[Flow] = [
            message(frames * PAYLOAD, sender, 0) for sender, frames in enumerate(self.SIZES, start=1)
        ]
        scenario = Scenario(
            topology=SingleSwitch(hosts=len(flows) + 1, link=link("400Gbps", "1us")),
            switch=lossless_switch(xoff, arbiter=arbiter),
            transport=transport(PAYLOAD, header=64),
            traffic=messages(*flows),
        )
        outcome = run(scenario)
        assert outcome.status == "FINISHED"
        delivered_ps = np.sort(outcome.columns["flow_delivered_ps"])
        least_ps = np.cumsum(self.SIZES) * SERVICE_PS + SERVICE_PS + 2 * US
        assert (delivered_ps >= least_ps).all()
        assert delivered_ps[-1] == least_ps[-1]


@pytest.mark.parametrize("arbiter", ["fifo", "round_robin"])
@pytest.mark.parametrize("senders", [2, 8, 32])
class TestWithFlowControl:
    """XOFF of 400 KB, four times what a link holds, RESUME two frames below.

    Every sender gets C/N, and the port is never idle.
    """

    FRAMES = 10_000

    def test_last_finish_and_shares(self, senders: int, arbiter: str) -> None:
        outcome = incast(senders, self.FRAMES, xoff="400KB", arbiter=arbiter)
        delivered_ps = outcome.columns["flow_delivered_ps"]
        drained_ps = senders * self.FRAMES * SERVICE_PS + SERVICE_PS + 2 * US
        assert outcome.columns["pauses_sent"].sum() > 0
        assert delivered_ps.max() == pytest.approx(drained_ps, rel=0.01)
        assert delivered_ps.max() >= drained_ps

    def test_steady_rate(self, senders: int, arbiter: str) -> None:
        """Bytes that each sender got through the port between a quarter and three quarters of the run."""
        outcome = incast(
            senders,
            self.FRAMES,
            xoff="400KB",
            arbiter=arbiter,
            record=Record(packets={"ports": ["switch0->host0"]}),
        )
        rows = outcome.rows("packet")
        end_ps = int(outcome.columns["flow_delivered_ps"].max())
        inner = rows[(rows["time_ps"] >= end_ps // 4) & (rows["time_ps"] < 3 * end_ps // 4)]
        frames = np.bincount(inner["flow"], minlength=senders)
        assert frames.sum() * SERVICE_PS == pytest.approx(end_ps / 2, rel=0.001)
        assert frames / frames.sum() == pytest.approx(np.full(senders, 1 / senders), rel=0.01)


class TestAcrossAFabric:
    """The same counting holds for the last port of a leaf-spine network."""

    def test_drain_and_peak(self) -> None:
        senders, frames = 8, 200
        one_us = link("400Gbps", "1us")
        scenario = Scenario(
            topology=LeafSpine(leaves=9, spines=1, hosts_per_leaf=1, host_link=one_us, fabric_link=one_us),
            switch=lossless_switch(),
            transport=transport(PAYLOAD, header=64),
            traffic=messages(*(message(frames * PAYLOAD, sender, 0) for sender in range(1, senders + 1))),
        )
        outcome = run(scenario)
        peaks = outcome.columns["queue_peak_bytes"].max(axis=1)
        assert outcome.columns["flow_delivered_ps"].max() == (senders * frames + 3) * SERVICE_PS + 4 * US
        assert peaks[outcome.port("spine0->leaf0")] == (senders - 1) * frames * FRAME_BYTES
        assert peaks.sum() == peaks[outcome.port("spine0->leaf0")]
