"""Failures beside the rarer models: flows in turn, cut-through switches, ties by transmission start."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support_failures import AT_ONCE, US, changes, fabric_of, one_flow, outcome

from fabric.errors import SpecError
from fabric.failures import find_occurrences
from fabric.lower import lower
from fabric.lowered import DropReason, FaultKind
from fabric.spec import (
    Corruption,
    DegradedLink,
    Flow,
    Flows,
    LeafSpine,
    LinkDown,
    LinkFlap,
    PfcStorm,
    Recovery,
    Run,
    SingleSwitch,
    SlowNic,
)
from fabric.topology import build_network

IN_TURN = {"nic": {"queue_pairs": "in_turn"}}
FRAME_PS, CUT_PS = 83_560, 1_280
"""4178 bytes, and the 64 after which a cut-through switch begins, at 400 Gbit/s."""


class TestFlowsInTurn:
    def test_a_port_whose_link_is_down_goes_on_at_line_rate(self) -> None:
        """As one that serves by time: a lost frame ends like any other, and the next flow has its turn."""
        flows = [Flow(source=0, destination=1, size="400KB") for _ in range(3)]
        failures = [LinkDown(link="host0-switch0", at="2us", lasts="4us")]
        result = outcome(
            fabric_of(
                topology=SingleSwitch(hosts=2), traffic=[Flows(flows=flows)], failures=failures, **IN_TURN
            )
        )
        drops = result.rows["drop"]
        begun = drops[
            (drops["time_ps"] > 2 * US) & (drops["value"] == DropReason.LINK_DOWN) & (drops["kind"] == 0)
        ]
        begun = np.sort(begun, order="time_ps")
        assert len(begun) > 30
        assert np.all(np.diff(begun["time_ps"]) == FRAME_PS)
        assert np.all(np.diff(begun["flow"].astype(int)) % 3 == 1)
        assert result.reason == "FINISHED"

    def test_flows_move_to_the_other_port_and_go_on_in_turn(self) -> None:
        """Six flows of a host with two ports, three on each, until one cable is cut for a while."""
        topology = LeafSpine(leaves=4, spines=2, hosts_per_leaf=2, ports_per_host=2, planes=2)
        flows = [Flow(source=0, destination=destination, size="120KB") for destination in (2, 3, 2, 3, 2, 3)]
        failures = [LinkDown(link="host0-leaf0", at="3us", lasts="8us")]
        scenario = fabric_of(
            topology=topology, traffic=[Flows(flows=flows)], failures=failures, recovery=AT_ONCE, **IN_TURN
        )
        lowered = lower(scenario)
        assert len(changes(lowered, FaultKind.MOVES)) == 2
        assert 0 < np.count_nonzero(lowered.flow_port == lowered.flow_port[0]) < 6
        result = outcome(scenario)
        assert result.reason == "FINISHED"
        sent = result.rows["throughput"]
        sent = sent[(sent["time_ps"] > 4 * US) & (sent["time_ps"] < 10 * US)]
        assert set(sent["port"][sent["port"] < 2].tolist()) == {1}

    def test_a_storm_and_its_end(self) -> None:
        """A flow in turn waits for the storm's end, and is served at that instant."""
        storm = PfcStorm(host="host1", at="3us", lasts="50us")
        by_time, in_turn = (outcome(one_flow(failures=[storm], **nic)) for nic in ({}, IN_TURN))
        assert in_turn.columns["flow_delivered_ps"][0] == by_time.columns["flow_delivered_ps"][0] > 53 * US


class TestCutThrough:
    @pytest.mark.parametrize("cut_through", [False, True])
    def test_what_comes_in_slowly_is_taken_whole(self, cut_through: bool) -> None:
        """The link to the switch at a quarter of its rate: the switch waits for every last byte."""
        slow = DegradedLink(link="host0->switch0", rate="100Gbps", at=0)
        switch = {"switch": {"cut_through": cut_through}}
        healthy, degraded = (outcome(one_flow(failures=failed, **switch)) for failed in ([], [slow]))
        cut, whole = (one.columns["flow_delivered_ps"][0] for one in (healthy, degraded))
        stored = outcome(one_flow()).columns["flow_delivered_ps"][0]
        assert stored - cut == (FRAME_PS - CUT_PS if cut_through else 0)
        assert whole == outcome(one_flow(failures=[slow])).columns["flow_delivered_ps"][0]

    def test_what_goes_out_slowly_is_cut_through(self) -> None:
        """Into a slower link nothing can run out: the first frame is gone after its first 64 bytes."""
        slow = DegradedLink(link="switch0->host1", rate="100Gbps", at=0)
        times = [
            outcome(one_flow(size="4KB", failures=[slow], switch={"cut_through": cut})).columns[
                "flow_delivered_ps"
            ][0]
            for cut in (False, True)
        ]
        frame_ps = (4_000 + 82) * 20
        assert times[0] - times[1] == frame_ps - CUT_PS

    def test_cut_through_again_after_the_repair(self) -> None:
        scenario = one_flow(
            failures=[SlowNic(host="host0", rate="50Gbps", at="2us", lasts="3us")],
            switch={"cut_through": True},
        )
        assert changes(lower(scenario), FaultKind.CUT) == [(2 * US, 0), (5 * US, 64)]
        assert outcome(scenario).reason == "FINISHED"

    def test_where_nothing_is_cut_through_nothing_changes(self) -> None:
        scenario = one_flow(failures=[SlowNic(host="host0", rate="50Gbps", at="2us", lasts="3us")])
        assert changes(lower(scenario), FaultKind.CUT) == []


def ns3_run(**parts: Any) -> Any:
    return one_flow(run=Run(timing="ns3", ties="transmission_start", until="20ms"), **parts)


class TestTiesByStart:
    @pytest.mark.parametrize("nic", [{}, IN_TURN])
    def test_both_engines(self, nic: dict[str, Any]) -> None:
        failures = [
            LinkDown(link="host0-switch0", at="2us", lasts="4us"),
            PfcStorm(host="host1", at="20us", lasts="10us"),
            Corruption(link="host0->switch0", bit_error_rate=1e-6, at="3us", lasts="40us"),
        ]
        result = outcome(ns3_run(failures=failures, **nic))
        assert result.reason == "FINISHED"
        assert result.columns["drops_by_reason"][DropReason.LINK_DOWN] > 0

    def test_failures_happen_at_whole_nanoseconds(self) -> None:
        """At the first one from their time on, and for one at least."""
        flap = LinkFlap(link="host0-switch0", at=1_999_500, period=2_000_300, duty=0.2, lasts="5us")
        short = PfcStorm(host="host1", at=7_000_001, lasts=3)
        scenario = ns3_run(failures=[flap, short])
        network = build_network(scenario.topology)
        found = [(each.began_ps, each.ended_ps) for each in find_occurrences(scenario, network)]
        assert found == [
            *((2_000_000, 2_400_000), (4_000_000, 4_400_000), (6_001_000, 6_401_000)),
            (7_001_000, 7_002_000),
        ]
        lowered = lower(scenario)
        assert lowered.faults is not None
        assert not (lowered.faults.changes["time_ps"] % 1000).any()
        assert outcome(scenario).reason == "FINISHED"

    def test_delays_of_detection_are_whole_nanoseconds(self) -> None:
        with pytest.raises(SpecError, match=r"recovery.isolate: .*whole nanoseconds"):
            ns3_run(
                failures=[LinkDown(link="host0-switch0", at=0)],
                recovery=Recovery(suspect=0, isolate=1_500),
            )

    def test_links_keep_their_rates(self) -> None:
        """The rate of a link tells when a frame on it began."""
        with pytest.raises(
            SpecError, match=r'run\.ties: .*"fair", where links come to run at another rate \(1Gbps\)'
        ):
            lower(ns3_run(failures=[SlowNic(host="host0", rate="1Gbps", at=0, lasts="1us")]))
