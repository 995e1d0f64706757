"""Pauses that run out: IEEE 802.3 annex 31B, with figures computed from it.

At C bit/s a PAUSE of q quanta holds 512 q / C: 83,884.8 ns at 400 Gbit/s with 65,535, and so on.
"""

from __future__ import annotations

from typing import Any

import pytest
from test_two_engines import compare_engines

import fabric
from fabric._core import Engine
from fabric.checks.lints import lints
from fabric.errors import SpecError
from fabric.lower import lower
from fabric.spec import Incast, Pfc, Record, Run, Scenario, SingleSwitch, Switch, TrafficClass
from fabric.topology import build_network
from fabric.workload import build_flows

US = 1_000_000
MTU_BYTES = 4158


def incast(*, rate: str = "400Gbps", until: str | None = None, size: str = "2MB", **pfc: Any) -> Scenario:
    """Eight into one, all at line rate: the receiver's switch pauses all senders again and again."""
    return Scenario(
        topology=SingleSwitch(hosts=9, link={"rate": rate, "delay": "1us"}),
        traffic=[Incast(senders=8, size=size)],
        transport={"congestion": {"kind": "none"}},
        switch=Switch(pfc=Pfc(xoff="40KB", **pfc), ecn=False),
        run=Run(until=until, deadlock="off"),
        record=Record(pauses=True),
    )


class TestHowLongAPauseHolds:
    @pytest.mark.parametrize(
        ("rate", "lasts_ps"),
        [
            ("10Gbps", 3_355_392_000),
            ("40Gbps", 838_848_000),
            ("100Gbps", 335_539_200),
            ("400Gbps", 83_884_800),
        ],
    )
    def test_so_many_bit_times_of_the_paused_port(self, rate: str, lasts_ps: int) -> None:
        """65,535 quanta at the rates of the standard's usual table."""
        lowered = lower(incast(rate=rate, quanta=65535))
        assert set(lowered.port_pause_ps.tolist()) == {lasts_ps}
        assert lowered.pfc_refresh_ps == lasts_ps // 2
        assert lowered.port_pause_holds.all()

    def test_it_ends_on_the_picosecond(self) -> None:
        """A PAUSE that nobody repeats: each of its intervals that no RESUME ends is 512 q / C long."""
        lowered = lower(incast(quanta=1000, refresh="never"))
        outcome = compare_engines(lowered, steps=[("hops", 50), ("ps", 3 * US)], window=0.4)
        rows = outcome.rows["pause"]
        lengths = rows["value"] - rows["time_ps"]
        assert lengths.max() == 1000 * 512 * 10**12 // (400 * 10**9)
        assert outcome.counters["pauses_run_out"] == (lengths == lengths.max()).sum() > 0
        assert outcome.counters["pauses_repeated"] == 0


class TestRepetition:
    def test_in_time_nothing_changes_but_a_few_frames(self) -> None:
        """No pause runs out, nothing is lost, and the last flow ends as late as without quanta, to 0.1 %."""
        held = fabric.run(incast())
        repeated = fabric.run(incast(quanta=4000))
        assert repeated.counters["pauses_repeated"] > 100
        assert repeated.counters["pauses_run_out"] == 0
        assert not any(repeated.drops_by_reason.values())
        ends = [result.flows["delivered_ps"].max() for result in (held, repeated)]
        assert ends[1] == pytest.approx(ends[0], rel=1e-3)

    def test_at_multiples_of_the_period(self) -> None:
        """Every PFC frame beyond PAUSE and RESUME begins at one, or when its port is free."""
        lowered = lower(incast(quanta=4000, refresh="2us").replace(record=Record(packets={"ports": ("*",)})))
        outcome = compare_engines(lowered, steps=[("hops", 99)], window=0.7)
        rows = outcome.rows["packet"]
        repeats = rows[(rows["kind"] == 4) & (rows["sequence"] == 2)]
        assert len(repeats) == outcome.counters["pauses_repeated"] > 50
        late_ps = repeats["time_ps"] % (2 * US)
        assert late_ps.max() < 1_680, (
            "only ACKs go towards senders: 84 bytes at 400 Gbit/s are in the way at most"
        )
        assert (late_ps == 0).mean() > 0.9

    def test_too_late_paused_ports_send_in_between_and_frames_are_lost(self) -> None:
        """A lossless class drops in its headroom; repeated in time it does not (see above)."""
        result = fabric.run(incast(quanta=1000, refresh="5us"))
        assert result.counters["pauses_run_out"] > 0
        assert {reason for reason, count in result.drops_by_reason.items() if count} == {"headroom full"}
        assert "pauses ran out before the RESUME" in str(result)

    def test_ports_of_other_rates_hold_for_as_long_as_their_own_bits_take(self) -> None:
        scenario = incast(quanta=1000, refresh="2us").replace(
            topology=SingleSwitch(
                hosts=9,
                link={"rate": "400Gbps", "delay": "1us"},
                overrides=[{"match": "host0-switch0", "rate": "100Gbps"}],
            )
        )
        lowered = lower(scenario)
        slow = lowered.port_rate_bps == 100 * 10**9
        assert set(lowered.port_pause_ps[slow].tolist()) == {5_120_000}
        assert set(lowered.port_pause_ps[~slow].tolist()) == {1_280_000}
        assert lowered.port_pause_holds.tolist() == slow.tolist(), "2 us are too late at 400 Gbit/s only"


class TestDeadlock:
    """The ring of `scenarios/deadlock_ring.toml`, whose channels wait for each other."""

    def ring(self, **pfc: Any) -> Scenario:
        names = {f"switch.pfc.{name}": value for name, value in pfc.items()}
        return fabric.load_scenario(
            "scenarios/deadlock_ring.toml",
            overrides=[f"{name}={value}" for name, value in names.items()] + ["run.deadlock=report"],
        )

    def test_stands_where_pauses_are_repeated_and_the_run_ends(self) -> None:
        held = fabric.run(self.ring())
        repeated = fabric.run(self.ring(quanta=65535))
        assert len(held.deadlocks) == len(repeated.deadlocks) > 0
        assert repeated.counters["pauses_run_out"] == 0

    def test_cannot_be_where_they_run_out(self) -> None:
        """Frames go on arriving, and being lost, where with PAUSE that holds nothing moves after 200 us."""
        arrived = {}
        for pfc in ({}, {"quanta": 2000, "refresh": "never"}):
            engine = Engine(lower(self.ring(**pfc)))
            engine.run(until_ps=1000 * US)
            before = engine.hops
            engine.run(until_ps=1500 * US)
            arrived[len(pfc)] = engine.hops - before, len(engine.deadlocks()[0])
        assert arrived[0] == (0, 5)
        assert arrived[2][0] > 1000
        assert arrived[2][1] == 0

    def test_both_engines(self) -> None:
        for pfc in (
            {"quanta": 65535},
            {"quanta": 2000, "refresh": "never"},
            {"quanta": 2000, "refresh": "30us"},
        ):
            scenario = self.ring(**pfc)
            scenario = scenario.replace(run=scenario.run.replace(until="150us"))
            compare_engines(lower(scenario), steps=[("hops", 1000)], window=0.5)


class TestErrors:
    @pytest.mark.parametrize(
        ("pfc", "path", "allowed"),
        [
            ({"quanta": 0}, "Pfc.quanta", "1 to 65535"),
            ({"quanta": 65536}, "Pfc.quanta", "1 to 65535"),
            ({"refresh": "never"}, "Pfc.refresh", "no refresh without quanta"),
            ({"quanta": 65535, "refresh": "0ns"}, "Pfc.refresh", "above 0"),
            ({"quanta": 65535, "refresh": "2s"}, "Pfc.refresh", "at most 1s"),
            ({"quanta": 65535, "refresh": "often"}, "Pfc.refresh", '"never"'),
        ],
    )
    def test_what_no_pfc_can_be(self, pfc: dict[str, Any], path: str, allowed: str) -> None:
        with pytest.raises(SpecError) as caught:
            Pfc(**pfc)
        assert caught.value.path == path
        assert allowed in str(caught.value)

    def test_repetitions_that_would_fill_the_link(self) -> None:
        with pytest.raises(SpecError, match=r"switch\.pfc\.refresh.*at least 250.68ns"):
            lower(incast(quanta=65535, refresh="100ns"))
        with pytest.raises(SpecError, match=r"switch\.pfc\.quanta.*at least 393"):
            lower(incast(quanta=200))
        lower(incast(quanta=393))

    def test_repetitions_that_come_in_time_only_if_nothing_is_in_the_way(self) -> None:
        """1000 quanta hold for 1.28 us; three frames take 250.68 ns."""
        for refresh in ("1029320ps", "1530680ps"):
            lower(incast(quanta=1000, refresh=refresh))
        for refresh in ("1029321ps", "1530679ps"):
            with pytest.raises(
                SpecError, match=r"at most 1\.02932us or at least 1\.53068us.* at host0->switch0"
            ):
                lower(incast(quanta=1000, refresh=refresh))

    def test_not_in_the_timing_of_ns3(self) -> None:
        with pytest.raises(SpecError, match=r"run\.timing.*no PAUSE runs out"):
            incast(quanta=65535).replace(run=Run(timing="ns3"))


def test_check_names_the_port_at_which_a_pause_runs_out() -> None:
    for pfc, text in (
        ({"quanta": 65535, "refresh": "never"}, "holds 83.8848us and is never repeated"),
        ({"quanta": 1000, "refresh": "5us"}, "holds 1.28us and is repeated every 5us"),
        ({"quanta": 65535}, None),
        ({}, None),
    ):
        scenario = incast(**pfc)
        network = build_network(scenario.topology)
        flows = build_flows(scenario, network)
        found = lints(scenario, network=network, flows=flows, lowered=lower(scenario))
        texts = [each.text for each in found if each.path == "switch.pfc.refresh"]
        assert (text is None and not texts) or (text is not None and text in texts[0])


def test_headroom_has_room_for_what_waits_behind_repetitions() -> None:
    """A PAUSE may wait for a repetition of each lossless class: 84 bytes more each."""
    classes = [TrafficClass(name="data"), TrafficClass(name="control")]
    rows = [
        lower(incast(**pfc).replace(switch=Switch(pfc=Pfc(xoff="40KB", **pfc), classes=classes, ecn=False)))
        for pfc in ({}, {"quanta": 65535})
    ]
    plain, repeated = (row.profiles["headroom_bytes"].max() for row in rows)
    assert repeated - plain == 2 * 84
