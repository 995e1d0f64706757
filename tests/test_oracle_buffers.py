"""Oracles of shared memory and scheduling: dynamic thresholds, tail drop, weights and priorities.

A dynamic threshold lets a queue have alpha times what is free, T = alpha (B - sum Q) (Choudhury and Hahne,
"Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM ToN 6, 1998). With n queues
that are permanently full, each holds alpha B / (1 + n alpha) and B / (1 + n alpha) stays unused, to within
one frame per queue:

    alpha 1/8,  n = 1,  B = 9 MB      1.000 MB each, 8.000 MB unused
    alpha 1,    n = 2,  B = 12 MB     4.000 MB each, 4.000 MB unused
    alpha 1/64, n = 16, B = 9 MB      112.5 KB each, 7.200 MB unused

Two symmetric senders into a full queue lose about evenly. Deficit round robin shares a link by bytes in
proportion to weights, whatever the frame sizes (Shreedhar and Varghese, "Efficient Fair Queuing Using
Deficit Round-Robin", SIGCOMM 1995); a higher priority takes all that it wants.
"""

from __future__ import annotations

import numpy as np
import pytest
from support_oracles import (
    CONTROL,
    MS,
    PLENTY,
    SECOND,
    US,
    Outcome,
    graph,
    link,
    lossy_switch,
    message,
    messages,
    open_loop,
    run,
    transport,
)

from fabric.lowered import DropReason
from fabric.spec import Flows, Lossy, Pfc, Record, Scenario, SingleSwitch, Switch, TrafficClass, Transport

THRESHOLDS = [
    # alpha, n, B, bytes of each, bytes unused
    (1 / 8, 1, 9_000_000, 1_000_000, 8_000_000),
    (1, 2, 12_000_000, 4_000_000, 4_000_000),
    (1 / 64, 16, 9_000_000, 112_500, 7_200_000),
]
FRAME_BYTES = 1_000


@pytest.mark.parametrize(("alpha", "queues", "pool", "each", "unused"), THRESHOLDS)
class TestDynamicThreshold:
    def test_lossless_ingresses(self, alpha: float, queues: int, pool: int, each: int, unused: int) -> None:
        """Senders at line rate to a host whose link is stuck: every ingress fills until it is paused."""
        headroom = 100_000
        topology, network = graph(
            *((f"h{number}", "s0") for number in range(queues)),
            ("s0", "hstuck", {"rate": "1Mbps"}),
            default=link("100Gbps", "1us"),
        )
        data = TrafficClass(name="data", pfc=Pfc(alpha=alpha, headroom=headroom))
        scenario = Scenario(
            topology=topology,
            switch=Switch(
                buffer=pool + (queues + 1) * headroom, latency=0, ecn=None, classes=(data, CONTROL)
            ),
            transport=transport(FRAME_BYTES),
            traffic=messages(*(message(2 * pool, number, "hstuck") for number in range(queues))),
        )
        outcome = run(scenario, network=network, until_ps=6 * MS)
        switch = network.node_numbers["s0"]
        ingress = [outcome.port(f"s0->h{number}") for number in range(queues)]
        assert outcome.lowered.node_shared_bytes[switch] == pool
        assert outcome.columns["pauses_sent"][ingress, 0].tolist() == [1] * queues
        assert outcome.columns["drops_by_reason"].sum() == 0
        held = outcome.columns["ingress_bytes"][ingress, 0]
        assert np.abs(held - each).max() <= FRAME_BYTES
        free = pool - outcome.columns["shared_used"][switch]
        assert abs(free - unused) <= queues * FRAME_BYTES

    @pytest.mark.parametrize("at_us", [1_500, 1_700, 2_000])
    def test_lossy_egresses(
        self, at_us: int, alpha: float, queues: int, pool: int, each: int, unused: int
    ) -> None:
        """Every egress is offered twice its rate, and drops: the queues stand at the threshold."""
        hosts = 3 * queues
        flows = (message(10**9, sender, queues * 2 + sender % queues) for sender in range(2 * queues))
        scenario = Scenario(
            topology=SingleSwitch(hosts=hosts, link=link("100Gbps", "1us")),
            switch=lossy_switch(Lossy(alpha=alpha), buffer=pool),
            transport=open_loop(FRAME_BYTES),
            traffic=messages(*flows),
        )
        outcome = run(scenario, until_ps=at_us * US)
        egress = [outcome.port(f"switch0->host{queues * 2 + number}") for number in range(queues)]
        reasons = outcome.columns["drops_by_reason"]
        assert outcome.lowered.node_shared_bytes[hosts] == pool
        assert reasons.sum() == reasons[DropReason.EGRESS_THRESHOLD] > 1_000
        held = outcome.columns["queue_bytes"][egress, 0]
        assert np.abs(held - each).max() <= FRAME_BYTES
        free = pool - outcome.columns["shared_used"][hosts]
        assert abs(free - unused) <= queues * FRAME_BYTES


class TestTailDrop:
    """Two senders at line rate, starting at one instant, into one queue of 100 frames.

    Periodic senders that are out of step would keep their order at the queue for ever and one of them
    would lose everything (Floyd and Jacobson, "On Traffic Phase Effects in Packet-Switched Gateways", 1992);
    in step, the order of arrivals at one instant decides, and no port always wins.
    """

    def drops(self, spec: Transport, *, size: int, until_ps: int | None = None) -> np.ndarray:
        scenario = Scenario(
            topology=SingleSwitch(hosts=3, link=link("100Gbps", "1us")),
            switch=lossy_switch(Lossy(limit=100 * FRAME_BYTES)),
            transport=spec,
            traffic=messages(message(size, 1, 0), message(size, 2, 0)),
        )
        outcome = run(scenario, until_ps=until_ps)
        by_port = outcome.columns["queue_drops"][:, 0]
        assert outcome.columns["queue_peak_bytes"].max() == 100 * FRAME_BYTES
        assert by_port.sum() == outcome.columns["drops_by_reason"][DropReason.EGRESS_THRESHOLD]
        return by_port[[outcome.port("switch0->host1"), outcome.port("switch0->host2")]]

    def test_two_symmetric_senders_lose_evenly(self) -> None:
        lost = self.drops(open_loop(FRAME_BYTES), size=4_000_000)
        assert lost.sum() >= 1_000
        assert (np.abs(lost / lost.sum() - 0.5) <= 0.1).all()

    def test_evenly_when_what_is_lost_is_sent_again(self) -> None:
        lost = self.drops(transport(FRAME_BYTES, acks=True), size=10**8, until_ps=2 * MS)
        assert lost.sum() >= 1_000
        assert (np.abs(lost / lost.sum() - 0.5) <= 0.1).all()

    def test_what_is_lost_is_what_does_not_fit(self) -> None:
        """2 P frames come in P frame times; as many as those leave meanwhile, and 100 stay."""
        lost = self.drops(open_loop(FRAME_BYTES), size=4_000_000)
        assert lost.sum() == 2 * 4_000 - (4_000 + 100)


def class_rates(
    classes: tuple[TrafficClass, ...],
    *,
    payloads: tuple[int, ...],
    source_rates: tuple[str, ...] | None = None,
    arbiter: str = "fifo",
) -> np.ndarray:
    """Shares of the bytes that a 100 Gbit/s link carries, while every class has more to send."""
    rates = source_rates or ("100Gbps",) * len(classes)
    topology, network = graph(
        *((f"h{number}", "s0", {"rate": rate}) for number, rate in enumerate(rates)),
        ("s0", "hsink"),
        default=link("100Gbps", "1us"),
    )
    traffic: list[Flows] = []
    for number, (each, payload) in enumerate(zip(classes, payloads, strict=True)):
        traffic += messages(
            message(10**9, number, "hsink"),
            name=each.name,
            traffic_class=each.name,
            transport=transport(payload, data_class=each.name),
        )
    scenario = Scenario(
        topology=topology,
        switch=Switch(buffer=PLENTY, latency=0, ecn=None, classes=(*classes, CONTROL), arbiter=arbiter),
        transport=transport(1_000, data_class=classes[0].name),
        traffic=tuple(traffic),
        record=Record(packets={"ports": ["s0->hsink"]}),
    )
    outcome: Outcome = run(scenario, network=network, until_ps=5 * MS)
    rows = outcome.rows("packet")
    rows = rows[rows["time_ps"] >= 1 * MS]
    assert outcome.columns["drops_by_reason"].sum() == 0
    carried = np.bincount(rows["class"], weights=rows["value"], minlength=len(classes))[: len(classes)]
    assert carried.sum() * 8 * SECOND / (4 * MS) == pytest.approx(100e9, rel=0.001)
    return carried / carried.sum()


def lossless_class(name: str, **fields: object) -> TrafficClass:
    return TrafficClass(name=name, pfc=Pfc(xoff="500KB", headroom="1MB"), **fields)


class TestWeights:
    @pytest.mark.parametrize("weights", [(1, 1), (1, 2), (1, 2, 4), (3, 5, 8, 40), (1, 255)])
    @pytest.mark.parametrize("arbiter", ["fifo", "round_robin"])
    def test_equal_frames(self, weights: tuple[int, ...], arbiter: str) -> None:
        classes = tuple(lossless_class(f"c{n}", weight=weight) for n, weight in enumerate(weights))
        shares = class_rates(classes, payloads=(1_000,) * len(weights), arbiter=arbiter)
        assert shares == pytest.approx(np.array(weights) / sum(weights), rel=0.01)

    @pytest.mark.parametrize("payloads", [(256, 4096), (4096, 64), (1500, 9000)])
    def test_bytes_count_and_not_frames(self, payloads: tuple[int, int]) -> None:
        classes = (lossless_class("c0", weight=2), lossless_class("c1", weight=1))
        shares = class_rates(classes, payloads=payloads)
        assert shares == pytest.approx(np.array([2 / 3, 1 / 3]), rel=0.01)

    def test_what_one_class_leaves_the_others_share(self) -> None:
        """A class that offers 10 of the 33 Gbit/s that it may have: the rest is shared by weight 1 : 2."""
        classes = tuple(lossless_class(f"c{n}", weight=weight) for n, weight in enumerate((3, 1, 2)))
        shares = class_rates(classes, payloads=(1_000,) * 3, source_rates=("10Gbps", "100Gbps", "100Gbps"))
        assert shares == pytest.approx(np.array([0.1, 0.3, 0.6]), rel=0.01)


class TestPriorities:
    def test_higher_takes_all(self) -> None:
        classes = (lossless_class("low"), lossless_class("high", priority=3))
        assert class_rates(classes, payloads=(1_000, 1_000)).tolist() == [0, 1]

    @pytest.mark.parametrize("offered", ["25Gbps", "50Gbps", "80Gbps"])
    def test_lower_gets_what_is_left(self, offered: str) -> None:
        classes = (lossless_class("low", weight=200), lossless_class("high", priority=3))
        shares = class_rates(classes, payloads=(1_000, 1_000), source_rates=("100Gbps", offered))
        high = float(offered.removesuffix("Gbps")) / 100
        assert shares == pytest.approx(np.array([1 - high, high]), rel=0.01)

    def test_weights_hold_within_a_level(self) -> None:
        """40 Gbit/s of priority 5; of the remaining 60 the two classes below take 45 and 15."""
        classes = (
            lossless_class("c0", weight=3, priority=1),
            lossless_class("c1", weight=1, priority=1),
            lossless_class("urgent", priority=5),
        )
        shares = class_rates(classes, payloads=(1_000,) * 3, source_rates=("100Gbps", "100Gbps", "40Gbps"))
        assert shares == pytest.approx(np.array([0.45, 0.15, 0.4]), rel=0.01)
