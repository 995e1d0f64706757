"""Both engines give the same bits, for whole scenarios by chance.

They are written from one page (`docs/design.md`) and share nothing but the arrays of a `Lowered`, so
what they agree on bit by bit is very likely what the page says. Each case compares why the run
stopped, every column and counter, the fingerprint and every row; runs the native engine once more in
chunks and with a shorter window, which must not show; and holds the outcome against
`invariants.py`. Cases are the same on every run, unless FABRIC_CASES asks for so many fresh ones:
`FABRIC_CASES=20000 pytest tests/test_two_engines.py --hypothesis-seed=7`. That they show what they are meant
to show is for `test_random_cases.py` to prove.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from invariants import Outcome, Rows, check_invariants, check_lossless
from strategies import scenarios
from strategies_programs import scenarios_with_programs
from support_happened import what_happened_to_program
from support_lowered import busy_lowered, small_lowered
from support_programs import busy_program

from fabric._core import Engine
from fabric.lower import lookahead_ps, lower
from fabric.lowered import STREAMS, DropReason, Lowered
from fabric.reference import Simulator
from fabric.scenario import load_scenario
from fabric.spec import (
    FatTree,
    Flow,
    Flows,
    Incast,
    LeafSpine,
    Link,
    NoCongestionControl,
    Pfc,
    Pin,
    QueueRecord,
    Record,
    Routing,
    Run,
    Scenario,
    SingleSwitch,
    Switch,
    Transport,
)
from fabric.workload.job import Job

MOST_HOPS = 5_000
"""Where a case is cut that sends again and again."""
MOST_CHUNKS = 300

FRESH_CASES = int(os.environ.get("FABRIC_CASES", "0"))
PROFILE = settings(
    max_examples=FRESH_CASES or 500,
    derandomize=not FRESH_CASES,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)

Chunk = tuple[str, int]
"""What bounds a chunk ("hops" or "ps"), and by how much."""

chunks = st.lists(
    st.tuples(st.just("hops"), st.integers(1, 400)) | st.tuples(st.just("ps"), st.integers(1, 20_000_000)),
    min_size=1,
    max_size=6,
)


class TestSameBits:
    def test_any_scenario(self) -> None:
        @PROFILE
        @given(scenario=scenarios(), steps=chunks, window=st.floats(0, 1))
        def same_bits(scenario: Scenario, steps: list[Chunk], window: float) -> None:
            lowered = lower(scenario)
            outcome = compare_engines(lowered, steps=steps, window=window)
            if has_automatic_headroom(scenario, lowered):
                check_lossless(outcome)

        same_bits()

    def test_any_failures(self) -> None:
        """Something fails in every case."""

        @settings(PROFILE, max_examples=FRESH_CASES or 250)
        @given(scenario=scenarios(failing=True), steps=chunks, window=st.floats(0, 1))
        def same_bits(scenario: Scenario, steps: list[Chunk], window: float) -> None:
            compare_engines(lower(scenario), steps=steps, window=window)

        same_bits()

    @pytest.mark.parametrize(
        "path", sorted(Path(__file__).with_name("cases").glob("*.toml")), ids=lambda p: p.stem
    )
    def test_cases_that_once_differed(self, path: Path) -> None:
        compare_engines(lower(load_scenario(path)), steps=[("hops", 7)], window=0.5)

    @pytest.mark.parametrize("seed", range(40))
    def test_busy_fabrics(self, seed: int) -> None:
        compare_engines(busy_lowered(seed), steps=[("hops", 100)], window=0.3)

    @pytest.mark.parametrize("beyond_ps", [1, 2, 1_000, 999_998, 1_000_000, 30_000_000])
    def test_bound_beyond_the_end(self, beyond_ps: int) -> None:
        """A run that has come to its end says so, however close the bound is."""
        lowered = small_lowered(flows=[{"source": 0, "destination": 1, "frames": 3}])
        end_ps = compare_engines(lowered, steps=[("ps", 1)], window=0.0).counters["end_ps"]
        bounded = replace(lowered, until_ps=end_ps + beyond_ps)
        for window in (0.0, 0.4, 1.0):
            outcome = compare_engines(bounded, steps=[("ps", 400_000)], window=window)
            assert outcome.reason == "FINISHED"

    @pytest.mark.parametrize("rto_ps", [1, 300_000, 5_000_000, 19_999_999, 20_000_001])
    def test_time_outs_shorter_than_any_delay(self, rto_ps: int) -> None:
        """They expire within the window in which they were set."""
        flows = [{"source": source, "destination": 0, "frames": 20} for source in (1, 2)]
        lowered = small_lowered(
            hosts=3,
            delay_ps=20_000_000,
            transport={"rto_ps": rto_ps, "window_frames": 4},
            flows=flows,
            port_record=7,
            flow_record=3,
            until_ps=300_000_000,
        )
        outcome = compare_engines(lowered, steps=[("ps", 7_000_000)], window=0.9)
        assert outcome.columns["flow_timeouts"].min() > 0

    def test_a_switch_with_thousands_of_ports(self) -> None:
        """Local port numbers have 16 bits; frames from high ones meet at one instant."""
        senders = (1, 4_095, 4_096, 4_199)
        flows = tuple(Flow(source=source, destination=0, size="20KB") for source in senders)
        scenario = Scenario(
            topology=SingleSwitch(hosts=4_200),
            switch=Switch(buffer="900GB"),
            traffic=(Flows(flows=flows),),
        )
        outcome = compare_engines(lower(scenario), steps=[("ps", 500_000)], window=0.5)
        assert outcome.reason == "FINISHED"

    @pytest.mark.parametrize("seed", range(6))
    def test_flows_that_complete_while_they_wait(self, seed: int) -> None:
        """Time-outs shorter than a round trip, in classes that take turns at one port."""
        rng = random.Random(seed)
        flows = [
            {
                "source": 1,
                "destination": 0,
                "frames": rng.randint(1, 3),
                "traffic_class": rng.randrange(3),
                "start_ps": rng.randrange(8_000_000),
            }
            for _ in range(40)
        ]
        lowered = small_lowered(
            delay_ps=300_000,
            classes=3,
            levels=[[0, 1, 2]],
            quantum=[rng.randint(8_000, 20_000) for _ in range(8)],
            transport={"rto_ps": 1_300_000},
            flows=flows,
            port_record=7,
            seed=seed,
        )
        compare_engines(lowered, steps=[("hops", 10)], window=0.5)

    def test_frames_that_take_no_time(self) -> None:
        """In ticks of ns-3 a PAUSE at 900 Gbit/s; a frame that goes back where it came from follows it."""
        link = Link(rate="900Gbps", delay="500ns")
        pfc = Pfc(xoff="4158B")
        scenario = Scenario(
            topology=LeafSpine(leaves=2, spines=1, hosts_per_leaf=2, host_link=link, fabric_link=link),
            switch=Switch(pfc=pfc, latency="0s"),
            transport=Transport(congestion=NoCongestionControl()),
            traffic=(Flows(flows=(Flow(source=1, destination=0, size="60KiB"),) * 4),),
            routing=Routing(ttl=3, pins=(Pin(at="leaf0", next="spine0", destination="host0"),)),
            record=Record(queues=QueueRecord(ports=("*",), delta="1B"), pauses=True),
            run=Run(timing="ns3", until="1ms"),
        )
        outcome = compare_engines(lower(scenario), steps=[("hops", 1)], window=0.0)
        assert len(outcome.rows["pause"]) > 0
        assert outcome.columns["drops_by_reason"][DropReason.TTL_EXPIRED] > 0

    def test_frames_that_take_no_time_between_ties_by_start(self) -> None:
        """They arrive 1 ps or 2 ps sooner than a link's delay after they began."""
        link = Link(rate="900Gbps", delay="1ns")
        scenario = Scenario(
            topology=FatTree(k=2, link=link),
            switch=Switch(pfc=Pfc(xoff="4158B"), latency="0s"),
            transport=Transport(congestion=NoCongestionControl()),
            traffic=(Incast(receivers=1, senders=1, size="120KiB"),),
            run=Run(timing="ns3", ties="transmission_start"),
        )
        outcome = compare_engines(lower(scenario), steps=[("hops", 1)], window=0.0)
        assert outcome.columns["pauses_sent"].sum() > 0

    def test_frames_without_a_route(self) -> None:
        """No spec describes a host that cannot be reached; the arrays can."""
        flows = [
            {"source": 0, "destination": 1, "frames": 5, "start_ps": start_ps} for start_ps in (0, 30_000)
        ]
        lowered = small_lowered(
            flows=flows,
            transport={"rto_ps": 5_000_000},
            route_entry=0,
            until_ps=40_000_000,
            record=7,
            port_record=7,
            flow_record=3,
        )
        outcome = compare_engines(lowered, steps=[("ps", 3_000_000)], window=0.5)
        assert outcome.columns["drops_by_reason"][DropReason.NO_ROUTE] > 0
        assert outcome.reason == "UNTIL"


class TestPrograms:
    def test_any_program(self) -> None:
        """Beside any traffic."""

        @settings(PROFILE, max_examples=FRESH_CASES or 200)
        @given(both=scenarios_with_programs(), steps=chunks, window=st.floats(0, 1))
        def same_bits(both: tuple[Scenario, Job], steps: list[Chunk], window: float) -> None:
            scenario, job = both
            lowered = lower(scenario, jobs=[job])
            outcome = compare_engines(lowered, steps=steps, window=window)
            if has_automatic_headroom(scenario, lowered):
                check_lossless(outcome)

        same_bits()

    def test_busy_fabrics(self) -> None:
        """With losses, some of which are never made good, and selective repeat."""
        seen: Counter[str] = Counter()
        for seed in range(300):
            outcome = compare_engines(busy_program(seed), steps=[("hops", 100)], window=0.3)
            seen.update(what_happened_to_program(outcome))
        rare = {name: seen[name] for name in ("STALLED", "FINISHED", "selective repeat") if seen[name] < 5}
        assert not rare, f"cases that hardly occur, of {seen}"


def compare_engines(lowered: Lowered, *, steps: list[Chunk], window: float) -> Outcome:
    """Run both engines, the native one also in chunks; returns what the readable one says."""
    simulator = Simulator(lowered)
    reason, until_ps = run_capped(simulator, lowered)
    simulator.check_invariants()
    expected = Outcome.of(simulator, lowered=lowered, reason=reason, until_ps=until_ps)
    check_invariants(expected)
    native = Engine(lowered)
    reason = native.run(until_ps=until_ps)
    outcome = Outcome.of(native, lowered=lowered, reason=reason, until_ps=until_ps)
    assert_same(outcome, expected, names=("native", "reference"))
    shorter = replace(lowered, window_ps=1 + int(window * (lookahead_ps(lowered) - 1)))
    in_chunks = Engine(shorter)
    reason = run_in_chunks(in_chunks, steps, until_ps=until_ps)
    chunked = Outcome.of(in_chunks, lowered=lowered, reason=reason, until_ps=until_ps)
    assert_same(chunked, expected, names=("native in chunks", "reference"))
    return expected


def run_natively(lowered: Lowered) -> Outcome:
    """What the native engine says alone, much sooner."""
    engine = Engine(lowered)
    reason, until_ps = run_capped(engine, lowered)
    return Outcome.of(engine, lowered=lowered, reason=reason, until_ps=until_ps)


def run_capped(engine: Any, lowered: Lowered) -> tuple[str, int]:
    """Run to the end; or if that is far, to the end of an instant after `MOST_HOPS` arrivals."""
    reason = engine.run(max_hops=MOST_HOPS)
    if reason != "BUDGET":
        return reason, lowered.until_ps
    until_ps = engine.now_ps + 1
    return engine.run(until_ps=until_ps), until_ps


def run_in_chunks(engine: Any, steps: list[Chunk], *, until_ps: int) -> str:
    """Run by the given steps over and over, looking at columns and rows now and then."""
    for number, (bound, amount) in zip(range(MOST_CHUNKS), cycle(steps), strict=False):
        if bound == "hops":
            reason = engine.run(until_ps=until_ps, max_hops=amount)
        else:
            reason = engine.run(until_ps=min(until_ps, engine.now_ps + amount))
        if number % 8 == 0:
            engine.columns()
            engine.rows(STREAMS[number // 8 % len(STREAMS)])
            engine.deadlocks()
        if reason in ("FINISHED", "STALLED", "DEADLOCK"):
            break
    return str(engine.run(until_ps=until_ps))


def assert_same(outcome: Outcome, expected: Outcome, *, names: tuple[str, str]) -> None:
    """Fail with the row that differs first in time, and with what else differs."""
    differences = [*_row_differences(outcome, expected, names), *_column_differences(outcome, expected)]
    for mine, theirs in zip(outcome.waiting, expected.waiting, strict=True):
        if mine.tolist() != theirs.tolist():
            differences.append(f"waiting: {mine.tolist()}, {theirs.tolist()}")
    for mine, theirs in zip(outcome.deadlocks, expected.deadlocks, strict=True):
        if mine.tolist() != theirs.tolist():
            differences.append(f"deadlocks: {mine.tolist()}, {theirs.tolist()}")
    if outcome.reason != expected.reason:
        differences.insert(0, f"stopped: {outcome.reason}, {expected.reason}")
    if differences:
        raise AssertionError(f"{names[0]} and {names[1]} differ:\n" + "\n".join(differences))


def _column_differences(outcome: Outcome, expected: Outcome) -> Iterator[str]:
    """The first value that differs in each column."""
    mine, theirs = _flat(outcome), _flat(expected)
    if mine.keys() != theirs.keys():
        yield f"columns: {sorted(mine.keys() ^ theirs.keys())} are in one only"
    for name in mine.keys() & theirs.keys():
        one, other = mine[name], theirs[name]
        if one.shape != other.shape:
            yield f"{name}: shapes {one.shape}, {other.shape}"
        elif not np.array_equal(one, other):
            at = tuple(np.argwhere(one != other)[0].tolist())
            yield f"{name}{list(at)}: {one[at]}, {other[at]} ({np.sum(one != other)} values differ)"


def _flat(outcome: Outcome) -> dict[str, Any]:
    columns = {name: np.asarray(value) for name, value in outcome.columns.items() if name != "counters"}
    return columns | {name: np.array([value], object) for name, value in outcome.counters.items()}


def _row_differences(outcome: Outcome, expected: Outcome, names: tuple[str, str]) -> Iterator[str]:
    """Of rows that only one of the two has: the earliest of all, then how many by stream."""
    only: list[tuple[int, str]] = []
    counts: dict[str, str] = {}
    for stream in STREAMS:
        one, other = _tally(outcome.rows[stream]), _tally(expected.rows[stream])
        for name, extra in ((names[0], one - other), (names[1], other - one)):
            only += [(row[0], f"{stream}: {name} alone has {_named(row)}") for row in extra]
        if one != other:
            counts[stream] = f"{(one - other).total()} and {(other - one).total()}"
        elif outcome.rows[stream].tobytes() != expected.rows[stream].tobytes():
            yield f"{stream}: the same rows in another order"
    if only:
        first_ps = min(time_ps for time_ps, _ in only)
        yield from [text for time_ps, text in only if time_ps == first_ps][:6]
        yield f"rows that only one has, by stream: {counts}"


def _tally(rows: Rows) -> Counter[tuple[Any, ...]]:
    return Counter(rows.tolist())


def _named(row: tuple[Any, ...]) -> str:
    names = ("time_ps", "value", "aux", "port", "flow", "sequence", "kind", "class", "mark", "pad")
    return ", ".join(f"{name}={value}" for name, value in zip(names, row, strict=True) if value)


def has_automatic_headroom(scenario: Scenario, lowered: Lowered) -> bool:
    """Whether all that lossless classes can send after a PAUSE is provided for.

    Not so in the timing of ns-3, which beats the wire, where control frames ignore PAUSE, where links come up
    again, over which nothing is paused yet, where a watchdog lets frames go in spite of PAUSE, and where a
    PAUSE can run out.
    """
    own = (each.pfc for each in scenario.switch.classes if isinstance(each.pfc, Pfc))
    bounds = all(
        pfc.headroom == "auto" and pfc.headroom_delays is None for pfc in (scenario.switch.pfc, *own)
    )
    exact = scenario.run.timing == "exact" and not scenario.nic.control_ignores_pause
    watchdog = scenario.switch.watchdog
    obeyed = watchdog is None or watchdog.action == "alert"
    holds = bool(lowered.port_pause_holds.all())
    return bounds and exact and obeyed and holds and not scenario.failures
