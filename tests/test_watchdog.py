"""The watchdog of switches: when it acts, what it drops, when it lets go (E51, E52).

A host at which a storm begins at t0 pauses its switch for good until t1. With detection D, restoration R
and a poll every P the queue towards it is mitigated in [t0 + D, t0 + D + P] and, in SONiC's way, restored in
[t1 + R, t1 + R + P]; in Junos' way a time R after the detection, whatever the host does.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from support_oracles import MS, US

import fabric
from fabric.spec import (
    Flow,
    Flows,
    GoBackN,
    NoCongestionControl,
    Pfc,
    PfcStorm,
    QueueRecord,
    Record,
    Run,
    Scenario,
    SingleSwitch,
    Switch,
    ThroughputRecord,
    Transport,
    Watchdog,
)

ENGINES: tuple[Literal["native", "reference"], ...] = ("native", "reference")
D, R, P = 300, 200, 100
"""Detection, restoration and poll in us."""


def storm(
    *,
    at_us: float,
    lasts_us: float | None,
    engine: Literal["native", "reference"] = "native",
    until_us: float = 3_000,
    size: str = "4MB",
    more: tuple[Flow, ...] = (),
    **watchdog: Any,
) -> fabric.Result:
    """host1 and host2 send to host0, which begins to pause everybody."""
    dog = Watchdog(detection=f"{D}us", restoration=f"{R}us", poll=f"{P}us", **watchdog)
    lasts = {} if lasts_us is None else {"lasts": round(lasts_us * US)}
    scenario = Scenario(
        topology=SingleSwitch(hosts=3),
        switch=Switch(pfc=Pfc(xoff="100KB"), ecn=None, watchdog=dog),
        transport=Transport(congestion=NoCongestionControl(), reliability=GoBackN(rto="50us")),
        traffic=(
            Flows(
                flows=(
                    *(Flow(source=f"host{host}", destination="host0", size=size) for host in (1, 2)),
                    *more,
                ),
            ),
        ),
        failures=(PfcStorm(host="host0", at=round(at_us * US), **lasts),),
        record=Record(
            queues=QueueRecord(delta=1),
            drops=True,
            pauses=True,
            throughput=ThroughputRecord(interval="1us"),
        ),
        run=Run(until=f"{until_us}us"),
    )
    return fabric.run(scenario, engine=engine)


def events(result: fabric.Result) -> list[tuple[str, int]]:
    table = result.watchdog
    return list(zip(table["event"].tolist(), table["time_ps"].tolist(), strict=True))


class TestTimes:
    @pytest.mark.parametrize("engine", ENGINES)
    @pytest.mark.parametrize("at_us", [20, 99.9, 100, 100.1, 155])
    def test_detected_and_restored_within_one_poll(self, at_us: float, engine: Any) -> None:
        lasts_us = 1_234.5
        result = storm(at_us=at_us, lasts_us=lasts_us, engine=engine)
        (detected, detected_ps), (restored, restored_ps) = events(result)
        assert (detected, restored) == ("mitigated", "restored")
        begin_ps = int(result.pauses.where(link="switch0->host0")["begin_ps"][0])
        assert 0 <= begin_ps - at_us * US < 2 * US, "the way from the host to the switch"
        assert 0 <= detected_ps - (begin_ps + D * US) <= P * US
        assert 0 <= restored_ps - (begin_ps + (lasts_us + R) * US) <= P * US
        assert detected_ps % (P * US) == restored_ps % (P * US) == 0

    @pytest.mark.parametrize("engine", ENGINES)
    def test_a_time_restores_whatever_the_peer_does(self, engine: Any) -> None:
        """And as the storm goes on, it is detected again D + P later at the latest."""
        result = storm(at_us=20, lasts_us=None, engine=engine, restore="time", action="drop")
        times = [time_ps for _, time_ps in events(result)]
        kinds = [kind for kind, _ in events(result)]
        assert kinds == ["mitigated", "restored"] * (len(kinds) // 2) + ["mitigated"] * (len(kinds) % 2)
        assert len(kinds) >= 4
        assert times[1] - times[0] == R * US
        assert times[2] - times[1] <= (D + 2 * P) * US

    @pytest.mark.parametrize("engine", ENGINES)
    def test_a_storm_shorter_than_the_detection_is_let_be(self, engine: Any) -> None:
        result = storm(at_us=120, lasts_us=D - P, engine=engine)
        assert events(result) == []
        assert result.status == "FINISHED"

    def test_pauses_with_frames_between_them_never_trigger(self) -> None:
        """An incast pauses its senders nearly all of the time, for 20 times the detection, and is let be."""
        scenario = Scenario(
            topology=SingleSwitch(hosts=17),
            switch=Switch(
                pfc=Pfc(xoff="100KB"),
                ecn=None,
                watchdog=Watchdog(detection="100us", restoration="100us", poll="20us"),
            ),
            transport=Transport(congestion=NoCongestionControl()),
            traffic=(Flows(flows=tuple(Flow(source=s, destination=0, size="8MB") for s in range(1, 17))),),
        )
        result = fabric.run(scenario)
        assert result.status == "FINISHED"
        assert result.ports["paused_ps"].max() > 2 * MS
        assert len(result.watchdog) == 0


class TestWhatIsDropped:
    @pytest.mark.parametrize("engine", ENGINES)
    def test_exactly_what_sat_in_the_queue(self, engine: Any) -> None:
        """At the detection: the depth of the queue just before, to the byte, in so many frames."""
        result = storm(at_us=20, lasts_us=None, engine=engine)
        event = result.watchdog[0]
        when = event["time_ps"]
        queue = result.queue.where(link="switch0->host0", traffic_class="data")
        before = queue[queue["time_ps"] < when]
        assert event["queue_bytes"] == before["queue_bytes"][-1] > 0
        drops = result.drops
        assert set(drops["reason"].tolist()) == {"watchdog"}
        at_once = drops[drops["time_ps"] == when]
        assert len(at_once) == event["dropped_frames"]
        assert set(at_once["link"].tolist()) == {"switch0->host0"}
        assert queue[queue["time_ps"] >= when]["queue_bytes"].max() == 0

    @pytest.mark.parametrize("engine", ENGINES)
    @pytest.mark.parametrize("drop_ingress", [False, True])
    def test_what_comes_in_at_the_port_and_goes_elsewhere(self, drop_ingress: bool, engine: Any) -> None:
        """host0, which pauses its switch for good, sends to host1: dropped if so asked, from the poll on."""
        backwards = Flow(source="host0", destination="host1", size="40MB")
        result = storm(
            at_us=20, lasts_us=None, engine=engine, more=(backwards,), until_us=600, drop_ingress=drop_ingress
        )
        ((_, detected_ps),) = events(result)
        drops = result.drops
        data = drops[(drops["flow"] == 2) & (drops["kind"] == "DATA")]
        assert (len(data) > 0) == drop_ingress
        if drop_ingress:
            assert data["time_ps"].min() >= detected_ps
            assert set(data["link"].tolist()) == {"switch0->host0"}
            assert set(data["reason"].tolist()) == {"watchdog"}
            received = result.throughput.where(link="switch0->host1")
            after = received["tx_bytes"][received["time_ps"] > detected_ps + 20 * US]
            assert after.sum() == 0, "nothing of it is forwarded"

    @pytest.mark.parametrize("engine", ENGINES)
    def test_later_arrivals_until_it_is_restored(self, engine: Any) -> None:
        result = storm(at_us=20, lasts_us=1_000, engine=engine, until_us=20_000)
        (_, detected_ps), (_, restored_ps) = events(result)
        times = result.drops["time_ps"]
        assert times.min() == detected_ps
        assert detected_ps < np.sort(times)[-1] < restored_ps
        assert result.status == "FINISHED"

    @pytest.mark.parametrize("engine", ENGINES)
    def test_forward_drops_nothing_and_alert_does_nothing(self, engine: Any) -> None:
        forwarded = storm(at_us=20, lasts_us=None, engine=engine, action="forward")
        assert forwarded.status == "FINISHED"
        assert sum(forwarded.drops_by_reason.values()) == 0
        (kind, detected_ps), *_ = events(forwarded)
        assert kind == "mitigated"
        assert forwarded.flows["delivered_ps"].min() > detected_ps
        alerted = storm(at_us=20, lasts_us=None, engine=engine, action="alert")
        assert alerted.status == "STALLED"
        assert [kind for kind, _ in events(alerted)] == ["mitigated"]
        assert sum(alerted.drops_by_reason.values()) == 0
        assert alerted.flows["delivered_ps"].max() == -1

    @pytest.mark.parametrize("options", [{}, {"restore": "time"}, {"action": "forward"}, {"action": "alert"}])
    def test_both_engines_do_the_same(self, options: dict[str, Any]) -> None:
        native, reference = (
            storm(at_us=33, lasts_us=700, engine=engine, until_us=4_000, **options) for engine in ENGINES
        )
        assert native.fingerprint == reference.fingerprint
        assert events(native) == events(reference)
        assert native.pauses["begin_ps"].tolist() == reference.pauses["begin_ps"].tolist()


class TestDeadlocks:
    def test_a_watchdog_breaks_a_deadlock_and_says_when(self) -> None:
        scenario = fabric.load_scenario(
            "scenarios/deadlock_ring.toml",
            overrides=[f"switch.watchdog.{name}=200us" for name in ("poll", "detection", "restoration")],
        )
        result = fabric.run(scenario.replace(run=scenario.run.replace(until="1ms")))
        (first, *_) = result.deadlocks
        assert 59 * US < first.formed_ps < 60 * US
        assert first.broken_ps == 400 * US == result.watchdog["time_ps"].min()

    def test_bad_times(self) -> None:
        with pytest.raises(fabric.SpecError, match=r"poll.*500us.*at most the shorter .*200us"):
            Watchdog(poll="500us", detection="200us", restoration="1ms")
        with pytest.raises(fabric.SpecError, match=r"detection"):
            Watchdog(detection="0us", poll="0us")
        with pytest.raises(fabric.SpecError, match=r'drop_ingress.*action "drop" \(not "forward"\)'):
            Watchdog(action="forward", drop_ingress=True)
