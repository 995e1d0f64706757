"""Oracles of an idle network: completion times exact to the picosecond, and no link faster than its rate.

The closed forms are those of frames that move through FIFO servers one after the other (Bertsekas and
Gallager, "Data Networks", 2nd edition, section 3; Friedman, "Reduction methods for tandem queuing systems",
Operations Research 13, 1965). With s = L/C the time of a frame on a link, h links, delays d_i, k frames:

    store and forward, equal links      sum(d_i) + (h + k - 1) s
    store and forward, unequal links    sum(L/C_i + d_i) + (k - 1) L / min(C_i)
    cut-through after b bytes           sum(d_i) + s + (h - 1) b/C + (k - 1) s
    last frame shorter (time l < s)     sum(d_i) + (k - 1) s + (h - 1) s + l
    acknowledgement of time a, added    sum(d_i) + h a

The frame time is rounded up to a picosecond once per frame, never per byte.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from support_oracles import (
    GBPS,
    NS,
    SECOND,
    US,
    Outcome,
    chain,
    graph,
    link,
    lossless_switch,
    message,
    messages,
    run,
    transport,
)

from fabric.spec import Clos3, FixedWindow, LeafSpine, Permutation, Run, Scenario, SingleSwitch

PAYLOAD = 4096
OVERHEAD = 64
FRAME_BYTES = PAYLOAD + OVERHEAD
MEGABYTE_FRAMES = {1: 245, 2: 489}
"""Frames of 4096 B that 1 MB and 2 MB take, the last one counted as full."""

ODD_RATES_GBPS = [900, 1600, 3200, 5000]


def frame_ps(wire_bytes: int, rate_bps: int) -> int:
    return -(-wire_bytes * 8 * SECOND // rate_bps)


def padded(megabytes: int) -> int:
    """Message bytes that fill every frame."""
    return MEGABYTE_FRAMES[megabytes] * PAYLOAD


def one_message(
    hops: int, size: int, *, rate_bps: int = 400 * GBPS, gap: int = 0, cut_through: bool = False
) -> Outcome:
    topology, network = chain(hops, link(rate_bps, "1us", gap=gap))
    scenario = Scenario(
        topology=topology,
        switch=lossless_switch(cut_through=cut_through),
        transport=transport(PAYLOAD, header=OVERHEAD - gap, acks=True),
        traffic=messages(message(size)),
    )
    outcome = run(scenario, network=network)
    assert outcome.status == "FINISHED"
    return outcome


def delivered_ps(outcome: Outcome) -> int:
    (time_ps,) = outcome.columns["flow_delivered_ps"].tolist()
    return int(time_ps)


def completed_ps(outcome: Outcome) -> int:
    (time_ps,) = outcome.columns["flow_completed_ps"].tolist()
    return int(time_ps)


@pytest.mark.parametrize("megabytes", [1, 2])
@pytest.mark.parametrize("hops", [1, 2, 3, 6])
class TestEqualLinks:
    """400 Gbit/s, 1 us a link, 4096 B of payload and 64 B of overhead: 83.2 ns a frame."""

    SERVICE_PS = 83_200

    def test_data_and_acknowledgement(self, hops: int, megabytes: int) -> None:
        outcome = one_message(hops, padded(megabytes))
        frames = MEGABYTE_FRAMES[megabytes]
        there_ps = hops * US + (hops + frames - 1) * self.SERVICE_PS
        assert delivered_ps(outcome) == there_ps
        assert completed_ps(outcome) == there_ps + hops * (US + 1_280)

    def test_overhead_may_be_header_or_gap(self, hops: int, megabytes: int) -> None:
        outcome = one_message(hops, padded(megabytes), gap=20)
        frames = MEGABYTE_FRAMES[megabytes]
        assert delivered_ps(outcome) == hops * US + (hops + frames - 1) * self.SERVICE_PS
        assert outcome.columns["port_tx_bytes"][outcome.port("h0:0")] == frames * FRAME_BYTES

    def test_last_frame_is_shorter(self, hops: int, megabytes: int) -> None:
        """1,000,000 B and 2,000,000 B as they are: it waits behind a full frame at every hop."""
        size = megabytes * 1_000_000
        frames = MEGABYTE_FRAMES[megabytes]
        last_ps = frame_ps(size - (frames - 1) * PAYLOAD + OVERHEAD, 400 * GBPS)
        expected_ps = hops * US + (frames - 1 + hops - 1) * self.SERVICE_PS + last_ps
        assert last_ps < self.SERVICE_PS
        assert delivered_ps(one_message(hops, size)) == expected_ps

    def test_cut_through(self, hops: int, megabytes: int) -> None:
        header_ps = frame_ps(64, 400 * GBPS)
        outcome = one_message(hops, padded(megabytes), cut_through=True)
        frames = MEGABYTE_FRAMES[megabytes]
        expected_ps = hops * US + self.SERVICE_PS + (hops - 1) * header_ps + (frames - 1) * self.SERVICE_PS
        assert delivered_ps(outcome) == expected_ps

    @pytest.mark.parametrize("rate_gbps", ODD_RATES_GBPS)
    def test_odd_rates_round_up_once_a_frame(self, hops: int, megabytes: int, rate_gbps: int) -> None:
        outcome = one_message(hops, padded(megabytes), rate_bps=rate_gbps * GBPS)
        frames = MEGABYTE_FRAMES[megabytes]
        service_ps = frame_ps(FRAME_BYTES, rate_gbps * GBPS)
        assert delivered_ps(outcome) == hops * US + (hops + frames - 1) * service_ps
        assert (delivered_ps(outcome) - hops * US) * rate_gbps * GBPS >= padded(megabytes) * 8 * SECOND


class TestTabulatedTimes:
    """Rows in numbers, over generated topologies: one switch (2 links), leaf-spine (4), Clos (6)."""

    def completion(self, topology: object, size: int, source: str, destination: str) -> Outcome:
        scenario = Scenario(
            topology=topology,
            switch=lossless_switch(),
            transport=transport(PAYLOAD, header=OVERHEAD, acks=True),
            traffic=messages(message(size, source, destination)),
        )
        return run(scenario)

    ONE_US = link("400Gbps", "1us")

    def test_one_megabyte_over_two_links(self) -> None:
        outcome = self.completion(SingleSwitch(hosts=2, link=self.ONE_US), padded(1), "host0", "host1")
        assert delivered_ps(outcome) == 22_467_200

    def test_two_megabytes_over_two_links_with_acknowledgement(self) -> None:
        outcome = self.completion(SingleSwitch(hosts=2, link=self.ONE_US), padded(2), "host1", "host0")
        assert completed_ps(outcome) == 44_770_560

    def test_two_megabytes_over_six_links_with_acknowledgement(self) -> None:
        clos = Clos3(
            pods=2,
            leaves_per_pod=2,
            spines_per_pod=2,
            cores=4,
            hosts_per_leaf=2,
            host_link=self.ONE_US,
            fabric_link=self.ONE_US,
            core_link=self.ONE_US,
        )
        outcome = self.completion(clos, padded(2), "host0", "host7")
        assert completed_ps(outcome) == 53_108_480

    def test_latencies_of_switches_and_hosts_are_delay(self) -> None:
        """4 links of 400 ns; 600 ns in each of 3 switches, 700 ns in the receiving host."""
        leaf_spine = LeafSpine(
            leaves=2,
            spines=4,
            hosts_per_leaf=2,
            host_link=link("400Gbps", "400ns"),
            fabric_link=link("400Gbps", "400ns"),
        )
        scenario = Scenario(
            topology=leaf_spine,
            switch=lossless_switch(latency="600ns"),
            nic={"latency": "700ns"},
            transport=transport(PAYLOAD, header=OVERHEAD),
            traffic=messages(message(padded(1), "host0", "host3")),
        )
        expected_ps = 4 * 400 * NS + 3 * 600 * NS + 700 * NS + (4 + 245 - 1) * 83_200
        assert delivered_ps(run(scenario)) == expected_ps

    def test_900_gbps_frame_time(self) -> None:
        """36.977 7.. ns become 36.978 ns."""
        outcome = one_message(6, padded(2), rate_bps=900 * GBPS)
        there_ps = 6 * US + (6 + 489 - 1) * 36_978
        assert completed_ps(outcome) == there_ps + 6 * (US + frame_ps(64, 900 * GBPS))


class TestUnequalLinks:
    @pytest.mark.parametrize("rates_gbps", [(400, 100, 200), (100, 400, 900), (900, 200, 100), (25, 40, 10)])
    def test_slowest_link_sets_the_pace(self, rates_gbps: tuple[int, int, int]) -> None:
        delays_us = (1, 5, 2)
        nodes = ["h0", "s0", "s1", "h1"]
        topology, network = graph(
            *(
                (one, other, {"rate_bps": rate * GBPS, "delay_ps": delay * US})
                for (one, other), rate, delay in zip(pairwise(nodes), rates_gbps, delays_us, strict=True)
            ),
            default=link("1Gbps", "1us"),
        )
        scenario = Scenario(
            topology=topology,
            switch=lossless_switch(),
            transport=transport(PAYLOAD, header=OVERHEAD),
            traffic=messages(message(padded(1))),
        )
        service = [frame_ps(FRAME_BYTES, rate * GBPS) for rate in rates_gbps]
        expected_ps = sum(service) + sum(delays_us) * US + (245 - 1) * max(service)
        assert delivered_ps(run(scenario, network=network)) == expected_ps


class TestWindow:
    """A window of C * RTT keeps line rate: 400,000 B at 400 Gbit/s and 8 us, 100 frames of 80 ns."""

    FRAMES = 500
    SERVICE_PS = 80_000
    ACK_PS = 1_280
    ROUND_TRIP_PS = 8 * US
    DELAY_PS = (ROUND_TRIP_PS - 2 * SERVICE_PS - 2 * ACK_PS) // 4

    def test_the_bandwidth_delay_product_keeps_line_rate(self) -> None:
        one_way_ps = 2 * (self.SERVICE_PS + self.DELAY_PS)
        expected_ps = one_way_ps + (self.FRAMES - 1) * self.SERVICE_PS
        assert self.delivered_with(window=400_000) == expected_ps

    @pytest.mark.parametrize("window_frames", [1, 7, 99])
    def test_below_it_the_rate_is_the_window_over_the_round_trip(self, window_frames: int) -> None:
        rounds, rest = divmod(self.FRAMES - 1, window_frames)
        one_way_ps = 2 * (self.SERVICE_PS + self.DELAY_PS)
        expected_ps = rounds * self.ROUND_TRIP_PS + rest * self.SERVICE_PS + one_way_ps
        assert self.delivered_with(window=window_frames * 4_000) == expected_ps

    def delivered_with(self, *, window: int) -> int:
        topology, network = chain(2, link("400Gbps", self.DELAY_PS))
        scenario = Scenario(
            topology=topology,
            switch=lossless_switch(),
            transport=transport(4_000, acks=True, congestion=FixedWindow(window=window)),
            traffic=messages(message(self.FRAMES * 4_000)),
        )
        return delivered_ps(run(scenario, network=network))


class TestNeverFasterThanTheWire:
    """Bytes over time stay at or below C on every link, at rates that do not divide 8 * 10^12."""

    @pytest.mark.parametrize("rate_gbps", ODD_RATES_GBPS)
    @pytest.mark.parametrize("cut_through", [False, True])
    def test_permutation(self, rate_gbps: int, cut_through: bool) -> None:
        fast = link(rate_gbps * GBPS, "300ns", gap=20)
        scenario = Scenario(
            topology=LeafSpine(leaves=4, spines=2, hosts_per_leaf=4, host_link=fast, fabric_link=fast),
            switch=lossless_switch("200KB", cut_through=cut_through),
            transport=transport(1500, header=62, acks=True),
            traffic=(Permutation(size="1MB", count=3),),
            run=Run(seed=5),
        )
        outcome = run(scenario)
        columns = outcome.columns
        assert outcome.status == "FINISHED"
        sent_bits = columns["port_tx_bytes"].astype(object) * 8
        capacity = outcome.lowered.port_rate_bps.astype(object) * columns["counters"]["end_ps"]
        assert (sent_bits * SECOND <= capacity).all()
        took_ps = (columns["flow_delivered_ps"] - columns["flow_started_ps"]).astype(object)
        assert (took_ps * rate_gbps * GBPS >= 1_000_000 * 8 * SECOND).all()

    @pytest.mark.parametrize("rate_gbps", ODD_RATES_GBPS)
    def test_between_any_two_frames_of_a_link(self, rate_gbps: int) -> None:
        """Starts of frames on one link are at least a frame time apart."""
        topology, network = chain(2, link(rate_gbps * GBPS, "1us", gap=20))
        scenario = Scenario(
            topology=topology,
            switch=lossless_switch(),
            transport=transport(4096, header=62),
            traffic=messages(message(400_000)),
            record={"packets": {"ports": ["h0:0", "s0->h1"]}},
        )
        rows = run(scenario, network=network).rows("packet")
        for port in np.unique(rows["port"]):
            of_port = rows[rows["port"] == port]
            wire_bits = (of_port["value"][:-1] + 20) * 8
            assert (np.diff(of_port["time_ps"]) * (rate_gbps * GBPS) >= wire_bits * SECOND).all()
