"""Random scenarios show all that they are meant to show, and both engines agree wherever they do.

The tests of `test_two_engines.py` draw from these strategies; what is rare there is looked for here.
"""

from __future__ import annotations

from collections.abc import Iterator

from strategies import scenarios
from strategies_programs import scenarios_with_programs
from support_happened import (
    EXPECTED,
    EXPECTED_OF_FAILURES,
    EXPECTED_OF_PROGRAMS,
    what_happened,
    what_happened_to_program,
)
from support_occurrence import check_all_occur
from test_two_engines import compare_engines, run_natively

from fabric.lower import lower
from fabric.spec import Scenario
from fabric.workload.job import Job

STEPS = [("hops", 97), ("ps", 3_000_000)]
WAYS = ("ecmp", "up_down", "resilient", "end_host", "none")


def test_scenarios() -> None:
    check_all_occur(
        scenarios(),
        wanted=EXPECTED,
        happened=lambda scenario: what_happened(run_natively(lower(scenario))),
        check=lambda scenario: compare_engines(lower(scenario), steps=STEPS, window=0.3),
    )


def test_scenarios_that_fail() -> None:
    def happened(scenario: Scenario) -> Iterator[str]:
        yield f"reroute: {scenario.recovery.reroute}"
        yield from what_happened(run_natively(lower(scenario)))

    check_all_occur(
        scenarios(failing=True),
        wanted=(*EXPECTED_OF_FAILURES, *(f"reroute: {way}" for way in WAYS)),
        happened=happened,
        check=lambda scenario: compare_engines(lower(scenario), steps=STEPS, window=0.3),
    )


def test_programs() -> None:
    def happened(both: tuple[Scenario, Job]) -> Iterator[str]:
        scenario, job = both
        return what_happened_to_program(run_natively(lower(scenario, jobs=[job])))

    check_all_occur(
        scenarios_with_programs(),
        wanted=EXPECTED_OF_PROGRAMS,
        happened=happened,
        check=lambda both: compare_engines(lower(both[0], jobs=[both[1]]), steps=STEPS, window=0.3),
    )
