"""The exact detection against the definitive criterion, and the static check against both, by chance.

When all sources have stopped and nothing is left to happen, what still waits in switches is deadlocked:
that is the criterion, and the detection has to say the same, no sooner and no later than in the other
engine. Routes that the static check calls free of cycles must never end like that.
`FABRIC_CASES=10000 pytest tests/test_deadlock_random.py --hypothesis-seed=7` tries so many fresh cases.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from invariants import Outcome
from strategies_deadlock import Cyclic, cyclic
from support_occurrence import check_all_occur
from test_two_engines import Chunk, chunks, compare_engines, run_natively

import fabric
from fabric._core import Engine
from fabric.checks.deadlocks import check_classes
from fabric.lower import lower
from fabric.lowered import Lowered

SCENARIOS = Path(__file__).resolve().parent.parent / "scenarios"
FRESH_CASES = int(os.environ.get("FABRIC_CASES", "0"))
PROFILE = settings(
    max_examples=FRESH_CASES or 200,
    derandomize=not FRESH_CASES,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


def can_deadlock(case: Cyclic, lowered: Lowered) -> bool:
    """What the static check says of the routes of the traffic."""
    names = [one.name for one in case.scenario.switch.classes]
    verdicts = check_classes(lowered, case.network, class_names=names, routes="traffic")
    return any(each.verdict.can_deadlock for each in verdicts)


def check_verdict(case: Cyclic) -> tuple[bool, bool]:
    """Whether it can deadlock, and did: on the native engine, which stops at one when told to."""
    lowered = lower(case.scenario, network=case.network)
    can = can_deadlock(case, lowered)
    engine = Engine(replace(lowered, deadlock=1, fingerprint=0))
    assert engine.run() in ("FINISHED", "STALLED")
    bytes_left = int(engine.columns()["queue_bytes"].sum())
    channels, frames = engine.deadlocks()
    assert (bytes_left > 0) == (len(channels) > 0), f"{bytes_left} bytes are left: {channels}"
    assert can or not len(channels), f"no cycle in the routes, yet {channels}"
    assert channels["bytes"].sum() == frames["size_bytes"].sum() <= bytes_left
    stopped = Engine(replace(lowered, deadlock=2, fingerprint=0))
    assert (stopped.run() == "DEADLOCK") == (len(channels) > 0)
    first = channels[channels["deadlock"] == 0]
    found = stopped.deadlocks()[0]
    assert found[found["deadlock"] == 0].tolist() == first.tolist()
    return can, len(channels) > 0


def test_the_verdict_is_that_of_the_drain() -> None:
    seen: Counter[tuple[bool, bool]] = Counter()

    @PROFILE
    @given(case=cyclic())
    def same_verdict(case: Cyclic) -> None:
        seen[check_verdict(case)] += 1

    same_verdict()
    print(f"(can deadlock, did): {dict(seen)}")


def test_both_engines_say_the_same() -> None:
    """Set, frames and instant, whatever the chunks and the window."""
    seen: Counter[str] = Counter()

    @settings(PROFILE, max_examples=FRESH_CASES or 90)
    @given(case=cyclic(with_watchdog=True), steps=chunks, window=st.floats(0, 1))
    def same_bits(case: Cyclic, steps: list[Chunk], window: float) -> None:
        lowered = lower(case.scenario, network=case.network)
        seen.update(what_happened(compare_engines(lowered, steps=steps, window=window)))

    same_bits()
    print(dict(seen))


def test_every_verdict_occurs() -> None:
    """Safe routes; cycles that do not deadlock; deadlocks."""
    names = {(False, False): "safe", (True, False): "a cycle alone", (True, True): "a deadlock"}
    check_all_occur(
        cyclic(),
        wanted=names.values(),
        happened=lambda case: [names[check_verdict(case)]],
        check=check_verdict,
    )


def test_every_outcome_occurs_on_both_engines() -> None:
    check_all_occur(
        cyclic(with_watchdog=True),
        wanted=(
            "FINISHED",
            "STALLED",
            "DEADLOCK",
            "several links",
            "mitigated",
            "broken",
            "several deadlocks",
        ),
        happened=lambda case: what_happened(run_natively(lower(case.scenario, network=case.network))),
        check=lambda case: compare_engines(
            lower(case.scenario, network=case.network), steps=[("hops", 97)], window=0.3
        ),
    )


@pytest.mark.parametrize("action", ["drop", "forward", "alert"])
def test_a_watchdog_breaks_a_deadlock_in_both_engines(action: str) -> None:
    """An alert does not; both say so at the same instants."""
    times = [f"switch.watchdog.{name}=30us" for name in ("poll", "detection", "restoration")]
    scenario = fabric.load_scenario(
        SCENARIOS / "deadlock_ring.toml",
        overrides=[*times, f"switch.watchdog.action={action}", "switch.pfc.xoff=50KB", "run.until=250us"],
    )
    lowered = lower(scenario, base_dir=SCENARIOS)
    outcome = compare_engines(lowered, steps=[("hops", 300), ("ps", 7_000_000)], window=0.6)
    channels = outcome.deadlocks[0]
    is_broken = action != "alert"
    assert ((channels["broken_ps"] >= 0).any()) == is_broken


def what_happened(outcome: Outcome) -> list[str]:
    channels = outcome.deadlocks[0]
    kinds = [outcome.reason]
    if len(channels) > 1:
        kinds.append("several links")
    if channels["deadlock"].max(initial=0) > 0:
        kinds.append("several deadlocks")
    if len({*channels["class"].tolist()}) > 1:
        kinds.append("several classes")
    if (channels["broken_ps"] >= 0).any():
        kinds.append("broken")
    if len(outcome.rows["watchdog"]):
        kinds.append("mitigated")
    return kinds
