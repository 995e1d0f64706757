"""Path choice against closed forms: collisions of hashing, even turns, shares by rate, recovery.

Hashing n flows onto m links leaves a link empty with probability (1 - 1/m)^n; the largest number on
one link has a known mean (an exact sum over occupancies, here for small n and m). Turns leave
ceil(n/m). Selective repeat sends every frame 1/(1-p) times, so its goodput is 1 - p of the link's.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from support_oracles import SECOND, US, Outcome, link, lossless_switch, message, messages, run, transport

from fabric._core import Engine
from fabric.errors import SpecError
from fabric.lower import lower
from fabric.lowered import DropReason
from fabric.spec import (
    LeafSpine,
    LinkOverride,
    Paths,
    Permutation,
    Pin,
    Routing,
    Run,
    Scenario,
    SelectiveRepeat,
    SingleSwitch,
)
from fabric.topology import build_network

FRAME_BYTES = 1_000
SPRAYS = ("spray_random", "spray_round_robin", "adaptive")


def selective(**fields: Any) -> Any:
    """A transport that repeats selectively."""
    reliability = SelectiveRepeat(**({"rto": None} | fields.pop("reliability", {})))
    return transport(FRAME_BYTES, acks=True, reliability=reliability, **fields)


def uplinks(outcome: Outcome, leaf: str = "leaf0") -> np.ndarray:
    """Bytes sent by each port of a leaf towards spines."""
    return outcome.columns["port_tx_bytes"][outcome.network.find_ports([f"{leaf}->spine*"])]


def fan_out(n: int, m: int, *, frames: int = 1, seed: int = 1, **fields: Any) -> Scenario:
    """n flows from one leaf to another over m spines, each from a host of its own."""
    return Scenario(
        topology=LeafSpine(
            leaves=2,
            spines=m,
            hosts_per_leaf=n,
            host_link=link("100Gbps", "1us"),
            fabric_link=link("100Gbps", "1us"),
        ),
        switch=lossless_switch(),
        traffic=messages(*(message(frames * FRAME_BYTES, host, n + host) for host in range(n))),
        run=Run(seed=seed, fingerprint=False),
        **({"transport": selective()} | fields),
    )


def mean_of_largest(n: int, m: int) -> float:
    """E[largest number of n flows on one of m links], by counting all m^n."""
    return sum(max(Counter(places).values()) for places in product(range(m), repeat=n)) / m**n


class TestCollisions:
    @pytest.mark.parametrize(("n", "expected"), [(2, 1.5), (4, 2.125)])
    def test_mean_of_the_fullest_link(self, n: int, expected: float) -> None:
        assert mean_of_largest(n, n) == expected
        largest = np.array(
            [uplinks(run(fan_out(n, n, seed=seed))).max() / FRAME_BYTES for seed in range(400)]
        )
        assert largest.mean() == pytest.approx(expected, abs=3 * largest.std() / math.sqrt(len(largest)))

    @pytest.mark.parametrize(("m", "share"), [(2, 0.75), (4, 0.6836), (8, 0.6564)])
    def test_share_of_links_that_a_permutation_uses(self, m: int, share: float) -> None:
        used = np.array([(uplinks(run(fan_out(m, m, seed=seed))) > 0).mean() for seed in range(300)])
        assert used.mean() == pytest.approx(share, abs=3 * used.std() / math.sqrt(len(used)))


class TestTurns:
    @pytest.mark.parametrize(("n", "m"), [(4, 4), (16, 8), (5, 4), (3, 8)])
    def test_the_fullest_link_has_its_ceiling(self, n: int, m: int) -> None:
        for seed in range(20):
            sent = uplinks(run(fan_out(n, m, seed=seed, routing=Routing(choice="spray_round_robin"))))
            frames = sent // FRAME_BYTES
            assert frames.sum() == n
            assert frames.max() == -(-n // m)
            assert frames.min() == n // m

    def test_each_leaf_begins_where_its_salt_says(self) -> None:
        first = [
            int(
                np.argmax(uplinks(run(fan_out(1, 8, seed=seed, routing=Routing(choice="spray_round_robin")))))
            )
            for seed in range(60)
        ]
        assert len(set(first)) == 8


class TestShares:
    @pytest.mark.parametrize("choice", ["spray_random", "spray_round_robin"])
    def test_links_carry_in_proportion_to_their_rates(self, choice: str) -> None:
        slow = LinkOverride(match="leaf0-spine0", rate="25Gbps")
        scenario = fan_out(4, 3, frames=450, routing=Routing(choice=choice, weights="rate"))
        scenario = scenario.replace(topology=scenario.topology.replace(overrides=(slow,)))
        frames = uplinks(run(scenario)) / FRAME_BYTES
        assert frames.sum() == 1800
        expected = np.array([200, 800, 800])
        tolerance = 1 if choice == "spray_round_robin" else 4 * math.sqrt(800 * 5 / 9)
        assert frames == pytest.approx(expected, abs=tolerance)

    def test_weighted_hashing_moves_flows(self) -> None:
        slow = LinkOverride(match="leaf0-spine0", rate="20Gbps")
        sent = np.zeros(2)
        for seed in range(150):
            scenario = fan_out(8, 2, seed=seed, routing=Routing(weights="rate"))
            scenario = scenario.replace(topology=scenario.topology.replace(overrides=(slow,)))
            sent += uplinks(run(scenario)) / FRAME_BYTES
        assert sent[0] / sent.sum() == pytest.approx(1 / 6, abs=3 * math.sqrt(5 / 36 / 1200))

    def test_rates_without_a_common_measure_are_rounded_to_64ths(self) -> None:
        odd = LinkOverride(match="leaf0-spine0", rate="33333333333bps")
        scenario = fan_out(1, 2, routing=Routing(weights="rate"))
        scenario = scenario.replace(topology=scenario.topology.replace(overrides=(odd,)))
        group = lower(scenario).route_ports[: 64 + 21]
        assert Counter(group.tolist()) == {1: 21, 2: 64}

    @pytest.mark.parametrize("choice", SPRAYS)
    def test_all_parallel_links_carry(self, choice: str) -> None:
        scenario = fan_out(4, 2, frames=200, routing=Routing(choice=choice))
        scenario = scenario.replace(topology=scenario.topology.replace(links_per_pair=3))
        frames = uplinks(run(scenario)) / FRAME_BYTES
        assert len(frames) == 6
        assert frames == pytest.approx(800 / 6, rel=0.25)


class TestSpray:
    @pytest.mark.parametrize("choice", SPRAYS)
    def test_a_healthy_fabric_repeats_nothing(self, choice: str) -> None:
        scenario = Scenario(
            topology=LeafSpine(leaves=4, spines=8, hosts_per_leaf=8),
            transport=selective(congestion=None),
            switch=lossless_switch(),
            traffic=(Permutation(size="1MB", cross_leaf=True),),
            routing=Routing(choice=choice),
        )
        outcome = run(scenario)
        assert outcome.status == "FINISHED"
        assert outcome.columns["flow_retransmitted"].sum() == 0
        assert outcome.columns["flow_nacks"].sum() > 0

    @pytest.mark.parametrize("choice", SPRAYS)
    def test_a_permutation_is_as_fast_as_its_links(self, choice: str) -> None:
        """One host in four paths' worth: no two flows must share, so the last frame is hardly late."""
        spray = run(fan_out(4, 4, frames=1000, routing=Routing(choice=choice)))
        alone = run(fan_out(1, 1, frames=1000))
        longest = spray.columns["flow_delivered_ps"].max()
        assert longest / alone.columns["flow_delivered_ps"].max() == pytest.approx(1, abs=0.06)

    def test_the_shortest_queue_avoids_a_slow_link(self) -> None:
        slow = LinkOverride(match="leaf0-spine0", rate="10Gbps")
        scenario = fan_out(3, 4, frames=1000, routing=Routing(choice="adaptive"))
        scenario = scenario.replace(topology=scenario.topology.replace(overrides=(slow,)))
        frames = uplinks(run(scenario)) / FRAME_BYTES
        assert frames[0] / frames.sum() == pytest.approx(10 / 310, abs=0.01)

    def test_senders_spread_by_path_hashes(self) -> None:
        """Path hashes are to ECMP as flows are, and a single flow then fills several links."""
        spread = selective(paths=Paths(spread="round_robin", count=64))
        frames = uplinks(run(fan_out(1, 4, frames=640, transport=spread))) / FRAME_BYTES
        assert frames.sum() == 640
        assert np.all(frames > 0)
        assert np.all(frames % 10 == 0)


class TestFlowlets:
    def test_a_flow_without_gaps_stays(self) -> None:
        scenario = fan_out(1, 8, frames=500, routing=Routing(choice="flowlet"))
        assert np.count_nonzero(uplinks(run(scenario))) == 1

    def test_a_flow_moves_after_every_gap(self) -> None:
        """With a gap below the time of a frame every frame is a flowlet."""
        scenario = fan_out(1, 8, frames=500, routing=Routing(choice="flowlet", flowlet_gap="1ns"))
        assert np.count_nonzero(uplinks(run(scenario))) == 8


def lossy_one_way(frames: int, *, loss: float, seed: int = 1, **reliability: Any) -> Outcome:
    """A message over a cable that loses data and spares what comes back."""
    scenario = Scenario(
        topology=SingleSwitch(hosts=2, link=link("100Gbps", "1us")),
        switch=lossless_switch(),
        transport=selective(reliability=reliability),
        traffic=messages(message(frames * FRAME_BYTES, 0, 1)),
        run=Run(seed=seed),
    )
    network = build_network(scenario.topology)
    lowered = lower(scenario, network=network)
    port_loss = lowered.port_loss.copy()
    port_loss[network.find_ports(["host0->switch0"])] = loss
    lowered = replace(lowered, port_loss=port_loss)
    engine = Engine(lowered)
    return Outcome(engine, network, lowered, engine.run(), engine.columns())


class TestSelectiveRepeat:
    @pytest.mark.parametrize("loss", [0.001, 0.01, 0.05])
    @pytest.mark.parametrize("reorder", [1, 64])
    def test_goodput_is_what_is_not_lost(self, loss: float, reorder: int) -> None:
        """But for the end of the message, where only time-outs tell: a round or two of 20 us in 10 ms."""
        frames = 120_000
        outcome = lossy_one_way(frames, loss=loss, rto="20us", reorder=reorder)
        service_ps = FRAME_BYTES * 8 * SECOND // (100 * 10**9)
        goodput = frames * service_ps / outcome.columns["flow_delivered_ps"][0]
        lost = int(outcome.columns["drops_by_reason"][DropReason.LINK_LOSS])
        sent = int(outcome.columns["flow_sent"][0])
        assert lost == pytest.approx(sent * loss, abs=4 * math.sqrt(sent * loss))
        assert goodput == pytest.approx(1 - loss, rel=0.01)

    def test_only_what_is_lost_is_sent_again(self) -> None:
        """On one path, with distance 1 and lossless acknowledgements, each loss costs one frame."""
        for seed in range(1, 11):
            outcome = lossy_one_way(2_000, loss=0.02, seed=seed, rto="1ms", reorder=1)
            lost = int(outcome.columns["drops_by_reason"][DropReason.LINK_LOSS])
            assert outcome.status == "FINISHED"
            assert lost > 20
            assert int(outcome.columns["flow_retransmitted"][0]) == lost

    def test_go_back_n_of_the_same_loss_is_slower(self) -> None:
        """Each loss costs it what was sent until the NACK came: some fifty frames here."""
        lossy = lossy_one_way(5_000, loss=0.01, rto="1ms", reorder=1)
        rewinding = replace(lossy.lowered, transports=lossy.lowered.transports.copy())
        rewinding.transports["selective"] = 0
        rewinding.transports["nack_enabled"] = 1
        engine = Engine(rewinding)
        engine.run()
        slower = engine.columns()["flow_delivered_ps"][0] / lossy.columns["flow_delivered_ps"][0]
        assert slower > 1.3


class TestDelayedAcks:
    def test_an_ack_is_due_after_the_first_frame_without_one(self) -> None:
        """A window of two frames and an ACK for every hundredth: each pair waits for the delay."""
        delay_ps = 5 * US
        fields = {"ack_every": 100, "ack_delay": delay_ps}
        scenario = fan_out(1, 1, frames=2, transport=transport(FRAME_BYTES, acks=True, **fields))
        at_once = run(scenario).columns["flow_completed_ps"][0]
        assert at_once == run(fan_out(1, 1, frames=2)).columns["flow_completed_ps"][0]
        longer = {"congestion": {"kind": "window", "window": 2 * FRAME_BYTES}}
        scenario = fan_out(1, 1, frames=4, transport=transport(FRAME_BYTES, acks=True, **fields, **longer))
        outcome = run(scenario)
        service_ps = FRAME_BYTES * 8 * SECOND // (100 * 10**9)
        ack_ps = 64 * 8 * SECOND // (100 * 10**9)
        one_way_ps = 4 * (US + service_ps)
        first_ack_ps = one_way_ps + delay_ps + 4 * (US + ack_ps)
        assert outcome.columns["flow_delivered_ps"][0] == first_ack_ps + one_way_ps + service_ps


class TestPins:
    def scenario(self, *pins: Pin, **fields: Any) -> Scenario:
        return fan_out(2, 4, frames=10, routing=Routing(pins=pins, **fields))

    def test_flows_go_where_they_are_pinned(self) -> None:
        pins = (
            Pin(at="leaf0", destination="host2", next="spine3"),
            Pin(at="leaf0", destination="host3", source="host1", next="spine1"),
        )
        sent = uplinks(run(self.scenario(*pins)))
        assert sent.tolist() == [0, 10 * FRAME_BYTES, 0, 10 * FRAME_BYTES]

    def test_a_loop_ends_with_the_lifetime(self) -> None:
        """Between a leaf and a spine; what is not about it still arrives."""
        pins = (
            Pin(at="leaf0", destination="host2", next="spine0"),
            Pin(at="spine0", destination="host2", source="host0", next="leaf0"),
            Pin(at="leaf0", destination="host3", next="spine1"),
        )
        looping = run(self.scenario(*pins, ttl=9))
        assert looping.status == "STALLED"
        assert looping.columns["drops_by_reason"][DropReason.TTL_EXPIRED] == 10
        assert uplinks(looping)[0] == 4 * 10 * FRAME_BYTES
        assert (looping.columns["flow_delivered_ps"] >= 0).tolist() == [False, True]

    @pytest.mark.parametrize(("ttl", "arrives"), [(1, False), (3, False), (4, True), (127, True)])
    def test_the_switch_that_takes_the_last_of_a_lifetime_drops(self, ttl: int, arrives: bool) -> None:
        """Three switches on the way."""
        outcome = run(fan_out(1, 1, routing=Routing(ttl=ttl)))
        assert outcome.status == ("FINISHED" if arrives else "STALLED")
        assert outcome.columns["drops_by_reason"][DropReason.TTL_EXPIRED] == (0 if arrives else 1)

    @pytest.mark.parametrize(
        ("pin", "path"),
        [
            ({"at": "leaf9"}, "at"),
            ({"at": "host0"}, "at"),
            ({"next": "leaf1"}, "next"),
            ({"next": "host1"}, "next"),
            ({"destination": "host9"}, "destination"),
            ({"source": "nobody"}, "source"),
            ({"destination": None, "flow": "x"}, "flow"),
            ({"cable": 1}, "cable"),
        ],
    )
    def test_pins_name_what_there_is(self, pin: dict[str, Any], path: str) -> None:
        good = {"at": "leaf0", "next": "spine0", "destination": "host2"}
        with pytest.raises(SpecError) as caught:
            lower(self.scenario(Pin(**(good | pin))))
        assert caught.value.path == f"routing.pins[0].{path}"

    def test_two_next_hops_for_the_same_frames(self) -> None:
        pins = (Pin(at="leaf0", destination="host2", next=spine) for spine in ("spine0", "spine1"))
        with pytest.raises(SpecError, match="one next hop"):
            lower(self.scenario(*pins))
