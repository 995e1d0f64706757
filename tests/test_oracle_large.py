"""Oracles of large numbers: messages above 4 GiB, queues above 4 GiB, times beyond 2^32 ps by far.

A message of S bytes in frames of p bytes of payload takes k = ceil(S / p) frames; with s the time of a full
frame, l that of the last one, h equal links of delay d it is delivered after h d + (k - 1) s + (h - 1) s + l
(the last frame waits behind a full one at every hop), however large S is. Frames are as large as the wire
allows, which makes five gibibytes a matter of 80,000 frames.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from support_oracles import (
    GBPS,
    SECOND,
    US,
    chain,
    link,
    lossless_switch,
    message,
    messages,
    run,
    transport,
)

from fabric.spec import Incast, Scenario, SingleSwitch
from fabric.units import Duration, Size

GIB = 2**30
HEADER, GAP = 62, 20
PAYLOAD = 65_535 - HEADER - GAP


def frame_ps(wire_bytes: int, rate_bps: int) -> int:
    return -(-wire_bytes * 8 * SECOND // rate_bps)


@pytest.mark.parametrize("rate_gbps", [400, 900])
@pytest.mark.parametrize("hops", [1, 2, 4])
@pytest.mark.parametrize("size", [4 * GIB - 1, 4 * GIB, 4 * GIB + 1, 5 * GIB + 12_345, 20 * GIB])
def test_bytes_and_times_of_one_message(size: int, hops: int, rate_gbps: int) -> None:
    rate_bps = rate_gbps * GBPS
    topology, network = chain(hops, link(rate_bps, "1us", gap=GAP))
    scenario = Scenario(
        topology=topology,
        switch=lossless_switch(),
        transport=transport(PAYLOAD, header=HEADER),
        traffic=messages(message(size)),
    )
    outcome = run(scenario, network=network)
    frames = -(-size // PAYLOAD)
    last_bytes = size - (frames - 1) * PAYLOAD
    full_ps = frame_ps(PAYLOAD + HEADER + GAP, rate_bps)
    last_ps = frame_ps(max(64, last_bytes + HEADER) + GAP, rate_bps)
    expected_ps = hops * US + (frames - 1 + hops - 1) * full_ps + last_ps
    assert outcome.status == "FINISHED"
    assert outcome.lowered.flow_frames.tolist() == [frames]
    assert outcome.columns["flow_sent"].tolist() == [frames]
    assert outcome.columns["flow_delivered_ps"].tolist() == [expected_ps]
    forward = [outcome.port(name) for name in forward_links(hops)]
    wire_bytes = (frames - 1) * (PAYLOAD + HEADER + GAP) + max(64, last_bytes + HEADER) + GAP
    assert outcome.columns["port_tx_bytes"][forward].tolist() == [wire_bytes] * hops


def forward_links(hops: int) -> list[str]:
    nodes = ["h0", *(f"s{number}" for number in range(hops - 1)), "h1"]
    return [f"{one}->{other}" for one, other in pairwise(nodes)]


def test_two_messages_that_fill_a_queue_of_five_gibibytes() -> None:
    """Incast of two: the queue reaches a whole message, and both are through after twice the time."""
    frames = 5 * GIB // PAYLOAD
    service_ps = frame_ps(PAYLOAD, 400 * GBPS)
    scenario = Scenario(
        topology=SingleSwitch(hosts=3, link=link("400Gbps", "1us")),
        switch=lossless_switch(),
        transport=transport(PAYLOAD),
        traffic=(Incast(receivers=("host0",), senders=2, size=frames * PAYLOAD),),
    )
    outcome = run(scenario)
    port = outcome.port("switch0->host0")
    assert outcome.columns["queue_peak_bytes"][port, 0] == frames * PAYLOAD > 4 * GIB
    assert outcome.columns["flow_delivered_ps"].max() == (2 * frames + 1) * service_ps + 2 * US
    assert outcome.columns["queue_bytes"].sum() == 0


@pytest.mark.parametrize("start", ["5ms", "1s", "1000s", "100000s"])
def test_a_late_start_changes_nothing(start: str) -> None:
    """A message after a day of simulated time takes what it takes at once, and idle time costs nothing."""
    topology, network = chain(3, link("900Gbps", "1us"))
    scenario = Scenario(
        topology=topology,
        switch=lossless_switch(),
        transport=transport(4_160, acks=True),
        traffic=messages(message(245 * 4_160, start=start)),
    )
    outcome = run(scenario, network=network)
    took_ps = outcome.columns["flow_delivered_ps"] - Duration(start)
    assert took_ps.tolist() == [3 * US + (3 + 245 - 1) * 36_978]


def test_messages_of_one_byte_and_of_one_frame() -> None:
    """The smallest frame on the wire is Ethernet's, 64 B."""
    topology, network = chain(2, link("400Gbps", "1us"))
    scenario = Scenario(
        topology=topology,
        switch=lossless_switch(),
        transport=transport(4_096),
        traffic=messages(message(1), message(64, start="1ms"), message(4_096, start="2ms")),
    )
    delivered_ps = run(scenario, network=network).columns["flow_delivered_ps"]
    took_ps = delivered_ps - np.arange(3) * 1_000 * US
    assert took_ps.tolist() == [2 * (1_280 + US), 2 * (1_280 + US), 2 * (81_920 + US)]


def test_a_terabyte_and_a_byte() -> None:
    """Sizes and frame counts stay exact through units and lowering."""
    topology, network = chain(1, link("400Gbps", "1us"))
    size = Size("1TB")
    scenario = Scenario(
        topology=topology,
        transport=transport(PAYLOAD, header=HEADER),
        traffic=messages(message(size + 1)),
    )
    outcome = run(scenario, network=network, until_ps=1)
    assert outcome.lowered.flow_frames.tolist() == [-(-(10**12 + 1) // PAYLOAD)]
    assert outcome.lowered.flow_last_frame_bytes.tolist() == [(10**12 + 1) % PAYLOAD + HEADER]
