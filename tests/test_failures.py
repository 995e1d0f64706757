"""Failures: what they do to links and hosts in both engines, against numbers worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support_failures import AT_ONCE, US, changes, fabric_of, one_flow, outcome

import fabric
from fabric.errors import SpecError
from fabric.failures import find_occurrences
from fabric.lower import lower
from fabric.lowered import DropReason, FaultKind
from fabric.spec import (
    Corruption,
    DegradedLink,
    DrawnFailures,
    FailureRates,
    HostHang,
    LeafSpine,
    LinkDown,
    LinkFlap,
    PfcStorm,
    Recovery,
    Run,
    SingleSwitch,
    SlowNic,
    SwitchDown,
)
from fabric.topology import build_network


class TestLinks:
    def test_what_is_on_a_link_is_lost_with_it(self) -> None:
        """1 us (delay and latency) of frames of 83.56 ns, and the one that is still being sent."""
        result = outcome(one_flow(failures=[LinkDown(link="host0-switch0", at="5us", lasts="1us")]))
        drops = result.rows["drop"]
        at_once = drops[(drops["time_ps"] == 5 * US) & (drops["kind"] == 0)]
        assert len(at_once) == (1_000_000 + 83_560 - 1) // 83_560 + 1
        assert result.counters["lost_in_flight"] >= len(at_once)
        assert result.reason == "FINISHED"

    def test_a_port_whose_link_is_down_goes_on_at_line_rate(self) -> None:
        """Frames of 4178 bytes on the wire, one every 83.56 ns, into the hole until the window is full."""
        result = outcome(one_flow(failures=[LinkDown(link="host0-switch0", at="2us", lasts="4us")]))
        drops = result.rows["drop"]
        begun = drops[(drops["time_ps"] > 2 * US) & (drops["value"] == DropReason.LINK_DOWN)]
        spacing = np.diff(begun[begun["kind"] == 0]["time_ps"])
        assert len(spacing) > 30
        assert np.all(spacing == 83_560)
        assert not np.any(begun["time_ps"] >= 6 * US)

    def test_a_degraded_link_takes_as_much_longer(self) -> None:
        """97 frames of 4178 bytes on the wire and one of 2770, each four times as long on the first link.

        Without that, the last one waits for a full one at the second.
        """
        slow = outcome(one_flow(failures=[DegradedLink(link="host0-switch0", rate="100Gbps", at=0)]))
        fast = outcome(one_flow())
        longer_ps = int(slow.columns["flow_delivered_ps"][0] - fast.columns["flow_delivered_ps"][0])
        assert longer_ps == 3 * 97 * 83_560 + 4 * 55_400 - 83_560

    def test_one_direction(self) -> None:
        """ACKs come over the other one, at full rate."""
        slow = DegradedLink(link="host0->switch0", rate="100Gbps", at=0)
        rows = lower(one_flow(failures=[slow])).faults
        assert rows is not None
        assert rows.changes["port"].tolist() == [0]
        assert rows.changes["value"].tolist() == [100 * 10**9]

    def test_the_worst_of_several_holds(self) -> None:
        lowered = lower(
            one_flow(
                failures=[
                    DegradedLink(link="host0->switch0", rate="100Gbps", at="1us", lasts="4us"),
                    DegradedLink(link="host0->switch0", rate="200Gbps", at="2us", lasts="9us"),
                    DegradedLink(link="host0->switch0", rate="900Gbps", at="20us", lasts="1us"),
                ]
            )
        )
        expected = [(1, 100), (5, 200), (11, 400), (20, 400), (21, 400)]
        assert changes(lowered, FaultKind.RATE) == [(t * US, rate * 10**9) for t, rate in expected]

    def test_overlapping_failures_are_one(self) -> None:
        lowered = lower(
            fabric_of(
                failures=[
                    LinkDown(link="leaf0-spine0", at="1us", lasts="4us"),
                    SwitchDown(switch="spine0", at="3us", lasts="5us"),
                ]
            )
        )
        assert lowered.faults is not None
        rows = lowered.faults.changes
        network = build_network(LeafSpine(leaves=2, spines=2, hosts_per_leaf=2))
        port = int(network.find_ports(["leaf0->spine0"])[0])
        mine = rows[(rows["port"] == port) & np.isin(rows["kind"], (FaultKind.DOWN, FaultKind.UP))]
        assert mine["time_ps"].tolist() == [1 * US, 8 * US]

    def test_corruption_loses_as_many_frames_as_its_rate_says(self) -> None:
        """12,208 frames of 33,424 bits at 1e-7: 40.7 are lost on average, standard deviation 6.4."""
        scenario = one_flow(
            size="50MB", failures=[Corruption(link="host0->switch0", bit_error_rate=1e-7, at=0)]
        )
        result = fabric.run(scenario, progress=False)
        sent = int(result.flows["sent"][0])
        mean = sent * (1 - (1 - 1e-7) ** (8 * 4178))
        lost = result.summary["drops"]["link loss"]
        assert abs(lost - mean) < 3 * mean**0.5

    def test_a_flapping_link(self) -> None:
        flap = LinkFlap(link="host0-switch0", at="2us", period="10us", duty=0.2, lasts="25us")
        found = find_occurrences(one_flow(failures=[flap]), build_network(SingleSwitch(hosts=2)))
        assert [(each.began_ps // US, each.ended_ps // US) for each in found] == [(2, 4), (12, 14), (22, 24)]
        assert outcome(one_flow(failures=[flap])).reason == "FINISHED"


class TestHosts:
    def test_a_host_that_hangs_is_seen_by_nobody(self) -> None:
        """No route changes; what it sent before arrives."""
        scenario = one_flow(failures=[HostHang(host="host1", at="3us", lasts="30us")], recovery=AT_ONCE)
        assert changes(lower(scenario), FaultKind.ROUTES) == []
        result = outcome(scenario)
        assert result.reason == "FINISHED"
        assert result.columns["flow_timeouts"][0] > 0
        assert not np.any(result.rows["drop"]["kind"][result.rows["drop"]["time_ps"] == 3 * US])

    def test_a_slow_nic_holds_its_leaf_up(self) -> None:
        result = outcome(one_flow(failures=[SlowNic(host="host1", rate="50Gbps", at=0)]))
        assert result.columns["pauses_sent"].sum() > 0 or result.columns["queue_peak_bytes"].max() > 100_000
        assert result.columns["drops_by_reason"].sum() == 0

    def test_a_pfc_storm_holds_from_the_first_pause_to_the_end(self) -> None:
        """A PAUSE takes 84 bytes at 400 Gbit/s, 1.68 ns, the delay and the latency of the switch."""
        scenario = one_flow(failures=[PfcStorm(host="host1", at="3us", lasts="50us")])
        latency_ps = 1_680 + 500_000 + int(scenario.switch.latency) + int(scenario.switch.pfc_response)
        result = outcome(scenario)
        rows = result.rows["pause"]
        rows = rows[rows["value"] == 53 * US + latency_ps]
        assert rows["time_ps"].tolist() == [3 * US + latency_ps]
        assert result.columns["flow_delivered_ps"][0] > 53 * US

    def test_a_storm_ends_with_its_link_and_begins_again(self) -> None:
        failures = [
            PfcStorm(host="host1", at="3us", lasts="50us"),
            LinkDown(link="host1-switch0", at="10us", lasts="5us"),
        ]
        scenario = one_flow(failures=failures, recovery=Recovery(reroute="none"))
        pauses = [value for _, value in changes(lower(scenario), FaultKind.PAUSE)]
        assert pauses == [1, 1, 0]
        outcome(scenario)


BAD = {
    "link": (LinkDown(link="leaf0-spine7", at=0), r"failures\[0\].link: 'leaf0-spine7'"),
    "switch": (
        SwitchDown(switch="spnie0", at=0),
        r"failures\[0\].switch: 'spnie0' .*did you mean \"spine0\"",
    ),
    "host": (HostHang(host="host99", at=0), r"failures\[0\].host: 'host99'"),
    "class": (PfcStorm(host="host0", at=0, classes=("dta",)), r"failures\[0\].classes: 'dta' .*data"),
}


@pytest.mark.parametrize("name", BAD)
def test_parts_that_there_are_not(name: str) -> None:
    failure, message = BAD[name]
    with pytest.raises(SpecError, match=message):
        lower(fabric_of(failures=[failure]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LinkDown(link="leaf0", at=0), r"LinkDown.link: 'leaf0'.*two ends"),
        (lambda: LinkDown(link="a-b", at=0, lasts=0), "LinkDown.lasts.*above 0"),
        (lambda: LinkFlap(link="a-b", at=0, period="1us", duty=1.0, lasts="1ms"), "duty.*below 1"),
        (lambda: LinkFlap(link="a-b", at=0, period="1us"), "lasts.*how long it goes on"),
        (lambda: LinkFlap(link="a-b", at=0, period=1, lasts="1us"), "period"),
        (lambda: DegradedLink(link="a-b", at=0, rate=1), "rate.*at least 1Kbps"),
        (lambda: Corruption(link="a-b", at=0, bit_error_rate=0.1), "bit_error_rate.*1e-6"),
        (lambda: SlowNic(host="host0", at=0, rate=0), "rate"),
        (lambda: FailureRates(link=-1.0), "link.*from 0"),
        (lambda: DrawnFailures(lasts=0), "lasts.*above 0"),
        (lambda: DrawnFailures(lasts="1ms", acceleration=0.0), "acceleration"),
        (lambda: Recovery(suspect="2us", isolate="1us"), "isolate.*at least suspect"),
        (lambda: Recovery(dead="1us"), "dead.*at least isolate"),
        (lambda: Recovery(buckets=0), "buckets"),
        (
            lambda: LeafSpine(leaves=2, spines=2, hosts_per_leaf=1, planes=2),
            "planes.*divisor of ports_per_host",
        ),
    ],
)
def test_bad_specs_give_one_error(make: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        make()


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"run": Run()}, r"run.until.*never repaired \(leaf0-spine0\)"),
        ({"recovery": {"reroute": "resilient"}, "routing": {"choice": "adaptive"}}, "routing.choice.*ecmp"),
        ({"recovery": {"reroute": "resilient"}, "routing": {"weights": "rate"}}, "routing.weights.*equal"),
    ],
)
def test_what_does_not_go_with_failures(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        lower(fabric_of(failures=[LinkDown(link="leaf0-spine0", at=0)], **parts))
