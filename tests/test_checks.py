"""Checks of scenarios: lints from both sides, pins and traffic as scenarios have them, the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_deadlock_check import clos_of

import fabric
from fabric.analysis.deadlock import find_route_set
from fabric.checks import check_scenario
from fabric.checks.lints.loads import even_load_bytes
from fabric.cli import main
from fabric.errors import SpecError
from fabric.spec import (
    Dcqcn,
    Ecn,
    Flow,
    Flows,
    Incast,
    LeafSpine,
    NoCongestionControl,
    Pfc,
    Pin,
    Poisson,
    Record,
    Routing,
    Scenario,
    SingleSwitch,
    Switch,
    TrafficClass,
    Transport,
    Watchdog,
)

FABRIC = LeafSpine(leaves=4, spines=2, hosts_per_leaf=2)
PAIR = ("leaf0-spine0,leaf1-spine1",)
"""Two failures after which leaf0 and leaf1 reach each other only with a bounce."""


def scenario(**fields: Any) -> Scenario:
    return Scenario(**{"topology": FABRIC, "traffic": [Incast(senders=4, size="1MB")]} | fields)


def paths(**fields: Any) -> set[str]:
    """Where there are warnings."""
    report = check_scenario(scenario(**fields), single=False)
    return {each.path for each in report.lints if each.level == "warning"}


class TestLints:
    def test_defaults_have_no_warning(self) -> None:
        report = check_scenario(scenario(), single=False)
        assert [each.level for each in report.lints] == ["note"]
        assert report.lints[0].path == "transport.control_class"

    def test_watchdog(self) -> None:
        """8 into 1: 8 times 100 KB and 87,578 B of headroom at 400 Gbit/s, 30.012 us; no pause is longer."""
        many = {
            "topology": SingleSwitch(hosts=9),
            "traffic": [Incast(senders=8, size="1MB")],
            "transport": Transport(congestion=NoCongestionControl()),
        }
        longest_ps = 8 * (100_000 + 87_578) * 20

        def switch(detection_ps: int) -> Switch:
            dog = Watchdog(poll=detection_ps, detection=detection_ps, restoration=detection_ps)
            return Switch(pfc=Pfc(xoff="100KB"), ecn=False, watchdog=dog)

        assert paths(**many, switch=switch(longest_ps)) == set()
        assert paths(**many, switch=switch(longest_ps - 1)) == {"switch.watchdog.detection"}
        run = fabric.run(scenario(**many, switch=switch(longest_ps), record=Record(pauses=True)))
        pauses = run.pauses["end_ps"] - run.pauses["begin_ps"]
        assert 0.8 * longest_ps < pauses.max() <= longest_ps
        assert len(run.watchdog) == 0

    def test_headroom(self) -> None:
        bound = 112_578
        """400 Gbit/s, 1 us each way, one lossless class, frames of 4,158 B."""
        assert paths(switch=Switch(pfc=Pfc(headroom=bound))) == set()
        assert paths(switch=Switch(pfc=Pfc(headroom=bound - 1))) == {"switch.pfc.headroom"}
        own = TrafficClass(name="data", pfc=Pfc(headroom="10KB"))
        control = TrafficClass(name="control", priority=7, pfc=False)
        assert paths(switch=Switch(classes=(own, control))) == {"switch.classes[0].pfc.headroom"}

    def test_ecn_before_pfc(self) -> None:
        def found(kmin: int) -> set[str]:
            return paths(switch=Switch(ecn=Ecn(kmin=kmin, kmax="10MB"), pfc=Pfc(xoff="1MB")))

        assert found(999_999) == set()
        assert found(1_000_000) == {"switch.ecn.kmin"}
        dynamic = Pfc(alpha=2**-6)
        assert paths(switch=Switch(ecn=Ecn(kmin="900KB", kmax="10MB"), pfc=dynamic)) == set()
        assert paths(switch=Switch(ecn=Ecn(kmin="1MB", kmax="10MB"), pfc=dynamic)) == {"switch.ecn.kmin"}
        assert paths(switch=Switch(ecn=None, pfc=Pfc(xoff="1KB"))) == set()

    def test_a_threshold_that_starves(self) -> None:
        def found(alpha: float) -> set[str]:
            return paths(switch=Switch(buffer="8MB", ecn=None, pfc=Pfc(alpha=alpha)))

        assert found(1 / 16) == set()
        assert found(2**-12) == {"switch.pfc.alpha"}

    def test_red_is_too_narrow_for_many_flows(self) -> None:
        def found(pmax: float, senders: int) -> set[str]:
            return paths(
                topology=SingleSwitch(hosts=65),
                traffic=[Incast(senders=senders, size="1MB")],
                switch=Switch(ecn=Ecn(kmin="5KB", kmax="200KB", pmax=pmax)),
                transport=Transport(congestion=Dcqcn()),
            )

        assert found(0.0005, 64) == {"switch.ecn.pmax"}
        assert found(0.0005, 1) == set()
        assert found(1.0, 64) == set()

    def test_load_against_oversubscription(self) -> None:
        wide = LeafSpine(leaves=2, spines=4, hosts_per_leaf=4)
        narrow = LeafSpine(leaves=2, spines=2, hosts_per_leaf=4)
        across = [Flows(flows=[Flow(source=k, destination=k + 4, size="1MB") for k in range(4)])]
        inside = [Flows(flows=[Flow(source=k, destination=(k + 1) % 4, size="1MB") for k in range(4)])]
        assert paths(topology=wide, traffic=across) == set()
        assert paths(topology=narrow, traffic=across) == {"topology"}
        assert paths(topology=narrow, traffic=inside) == set()

    def test_long_run_load(self) -> None:
        def found(load: float) -> set[str]:
            traffic = [Poisson(load=load, distribution="fb_hadoop", flows=4000)]
            return paths(topology=LeafSpine(leaves=8, spines=2, hosts_per_leaf=2), traffic=traffic)

        assert found(0.2) == set()
        assert found(0.9) == {"traffic"}

    def test_control_frames_that_can_be_lost_behind_data(self) -> None:
        def found(priority: int, pfc: bool) -> set[str]:
            control = TrafficClass(name="control", priority=priority, ecn=False, pfc=pfc)
            return paths(switch=Switch(classes=(TrafficClass(name="data"), control)))

        assert found(7, False) == set()
        assert found(0, True) == set()
        assert found(0, False) == {"transport.control_class"}

    def test_even_load_is_conserved(self) -> None:
        """What enters for other leaves leaves by the last links before them, each equally loaded."""
        network = clos_of(2, 2, 2, 2)
        routes = find_route_set(network)
        demand = np.where(routes.links > 0, 12.0, 0.0) * routes.sources
        load = even_load_bytes(routes, demand)
        peers = routes.peers(routes.fabric_ports)
        into_leaves = load[routes.fabric_ports][peers < 4]
        assert into_leaves.sum() == pytest.approx(demand.sum())
        assert into_leaves == pytest.approx(np.full(8, 3 * 12 / 2))


class TestScenarios:
    def test_a_failure_makes_a_cycle_in_every_lossless_class(self) -> None:
        classes = (
            TrafficClass(name="data"),
            TrafficClass(name="bulk"),
            TrafficClass(name="control", priority=7, ecn=False, pfc=False),
        )
        report = check_scenario(scenario(switch=Switch(classes=classes)), fail=PAIR)
        assert report.can_deadlock
        (found,) = report.states[0].classes
        assert found.classes == ("data", "bulk")
        assert [each.name for each in found.remedies] == ["up-down", "classes", "lossy"]
        for name in ("up-down", "classes", "lossy"):
            assert not check_scenario(scenario(), fail=PAIR, apply=name).can_deadlock

    def test_given_failures_are_cases_of_their_own(self) -> None:
        pairs = [f"leaf0-spine0,leaf1-spine{k}" for k in (0, 1)]
        report = check_scenario(scenario(), fail=[*pairs, "spine1"])
        found = [(state.failed, state.classes[0].verdict.can_deadlock) for state in report.states]
        assert found == [
            ("leaf0-spine0, leaf1-spine0", False),
            ("leaf0-spine0, leaf1-spine1", True),
            ("spine1", False),
        ]

    def test_without_a_lossless_class_nothing_deadlocks(self) -> None:
        lossy = Switch(
            classes=(TrafficClass(name="data", pfc=False), TrafficClass(name="control", pfc=False))
        )
        report = check_scenario(scenario(switch=lossy), fail=PAIR)
        assert report.states[0].classes == ()
        assert not report.can_deadlock
        assert any("no lossless class" in line for line in report.lines())

    def test_traffic_may_avoid_the_cycle(self) -> None:
        def can(*pairs: tuple[int, int]) -> bool:
            flows = [Flow(source=a, destination=b, size="1MB") for a, b in pairs]
            return check_scenario(
                scenario(traffic=[Flows(flows=flows)]), routes="traffic", fail=PAIR
            ).can_deadlock

        around = [(0, 2), (2, 0), (4, 6), (6, 4)]
        assert can(*around)
        for k in range(4):
            assert not can(*(pair for pair in around if pair != around[k]))

    def test_control_frames_of_a_lossless_class_go_back(self) -> None:
        """Each flow alone makes two of the four steps; its ACKs, if they are lossless, the other two."""
        control = TrafficClass(name="control", priority=7, ecn=False)
        flows = [Flow(source=0, destination=2, size="1MB"), Flow(source=4, destination=6, size="1MB")]
        report = check_scenario(
            scenario(
                switch=Switch(classes=(TrafficClass(name="data"), control)),
                traffic=[Flows(flows=flows)],
                transport=Transport(data_class="control"),
            ),
            routes="traffic",
            fail=PAIR,
        )
        verdicts = {each.classes: each.verdict.can_deadlock for each in report.states[0].classes}
        assert verdicts == {("data",): False, ("control",): True}

    @pytest.mark.parametrize(("ttl", "can"), [(None, True), (4, True), (3, False)])
    def test_pins_that_make_a_loop(self, ttl: int | None, can: bool) -> None:
        """Frames to host7 circle between leaf0 and spine0; a lifetime of 4 closes the circle."""
        pins = (
            Pin(at="leaf0", next="spine0", destination="host7"),
            Pin(at="spine0", next="leaf0", destination="host7"),
        )
        for routes in ("all", "traffic"):
            report = check_scenario(
                scenario(
                    routing=Routing(pins=pins, ttl=ttl),
                    traffic=[Flows(flows=[Flow(source=0, destination=7, size="1MB")])],
                ),
                routes=routes,  # type: ignore[arg-type]
                single=False,
            )
            assert report.can_deadlock is can, routes
            if can:
                steps = report.states[0].classes[0].verdict.cycle
                assert {step.link for step in steps} == {"leaf0->spine0", "spine0->leaf0"}
                assert {step.route for step in steps} == {"frames to host7"}

    def test_a_pinned_flow_is_named(self) -> None:
        pins = (
            Pin(at="leaf0", next="spine0", flow="lost"),
            Pin(at="spine0", next="leaf0", flow="lost"),
        )
        flows = [Flow(name="lost", source=0, destination=7, size="1MB")]
        report = check_scenario(
            scenario(routing=Routing(pins=pins), traffic=[Flows(flows=flows)]), single=True
        )
        assert report.states[0].classes[0].verdict.cycle[0].route == "flow lost (host0 -> host7)"
        assert report.states[0].classes[0].single is None

    def test_single_failures_with_pins_are_tried_one_by_one(self) -> None:
        """Pinned by leaf2 and spine1, frames to host2 need spine1 to reach leaf1, or they come back."""
        pins = (
            Pin(at="spine0", next="leaf2", destination="host2"),
            Pin(at="leaf2", next="spine1", destination="host2"),
        )
        report = check_scenario(scenario(routing=Routing(pins=pins)))
        (found,) = report.states[0].classes
        assert found.single is not None
        assert (found.single.cables, found.single.switches) == (16, 6)
        names = [name for name, _ in found.single.cycles]
        assert "leaf1-spine1" in names
        for name in ("leaf0-spine1", "leaf1-spine1", "leaf2-spine1", "leaf3-spine0", "spine1", "leaf2"):
            after = check_scenario(scenario(routing=Routing(pins=pins)), fail=[name])
            assert after.can_deadlock is (name in names), name

    @pytest.mark.parametrize(
        ("options", "path"),
        [
            ({"fail": ["leaf9-spine0"]}, "fail[0]"),
            ({"fail": ["spine0", "spine1,host1"]}, "fail[1]"),
            ({"apply": "prayer"}, "remedy"),
        ],
    )
    def test_what_is_wrong_is_named(self, options: dict[str, Any], path: str) -> None:
        with pytest.raises(SpecError) as error:
            check_scenario(scenario(), **options)
        assert error.value.path == path


class TestCommandLine:
    @pytest.fixture(autouse=True)
    def _in_a_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("MPLBACKEND", "Agg")
        Path("small.toml").write_text(
            '[topology]\nkind = "leaf_spine"\nleaves = 4\nspines = 2\nhosts_per_leaf = 2\n'
            '[[traffic]]\nkind = "incast"\nsenders = 4\nsize = "1MB"\n'
        )

    def test_a_network_that_cannot(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["check", "small.toml", "--out", "domains.png"]) == 0
        printed = capsys.readouterr().out
        for part in (
            "class data: cannot deadlock: the buffer-dependency graph is acyclic",
            "(24 dependencies between 16 links)",
            "any one of 16 cables and 6 switches down: cannot deadlock",
            "leaf-spine cable   8              0             0          12.5 %",
            "picture  domains.png",
        ):
            assert part in printed
        assert Path("domains.png").read_bytes().startswith(b"\x89PNG")

    def test_a_network_that_can(self, capsys: pytest.CaptureFixture[str]) -> None:
        failures = ["--fail", *PAIR]
        assert main(["check", "small.toml", *failures]) == 1
        printed = capsys.readouterr().out
        assert "deadlock with leaf0-spine0, leaf1-spine1 down" in printed
        assert "leaf2->spine0 -> spine0->leaf3 -> leaf3->spine1 -> spine1->leaf2 -> leaf2->spine0" in printed
        assert "host2 -> leaf1 -> spine0 -> leaf3 -> spine1 -> leaf0 -> host0" in printed
        assert main(["check", "small.toml", *failures, "--remedy", "up-down"]) == 0
        printed = capsys.readouterr().out
        assert "never up again after down (2 pairs of switch and destination lose their path)" in printed
        assert main(["check", "small.toml", *failures, "--routes", "traffic"]) == 0

    def test_what_fails_must_exist(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["check", "small.toml", "--fail", "leaf7-spine0"]) == 2
        assert "fail[0]" in capsys.readouterr().err
