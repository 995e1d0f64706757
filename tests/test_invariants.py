"""The invariants: the native engine keeps them, and each check would notice if it did not.

`test_two_engines.py` holds every case against them; here are more cases for the native engine alone,
which is fast, and outcomes that were spoilt on purpose.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from invariants import Outcome, check_invariants, check_lossless, records_all_packets
from strategies import scenarios
from support_lowered import busy_lowered, small_lowered

from fabric._core import Engine
from fabric.lower import lower
from fabric.lowered import Lowered
from fabric.spec import Scenario

MOST_HOPS = 20_000
HOST_RECEIVER = 0


def outcome_of(lowered: Lowered) -> Outcome:
    """What the native engine says; cases that send for ever are cut somewhere."""
    engine = Engine(lowered)
    reason, until_ps = engine.run(max_hops=MOST_HOPS), lowered.until_ps
    if reason == "BUDGET":
        until_ps = engine.now_ps + 1  # some nodes are beyond it, in the midst of a window
        engine = Engine(lowered)
        reason = engine.run(until_ps=until_ps)
    return Outcome.of(engine, lowered=lowered, reason=reason, until_ps=until_ps)


@settings(
    max_examples=150,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
@given(scenario=scenarios())
def test_any_scenario_at_any_stop(scenario: Scenario) -> None:
    """Books balance in the middle of a run, too."""
    lowered = lower(scenario)
    outcome = outcome_of(lowered)
    check_invariants(outcome)
    middle_ps = outcome.counters["end_ps"] // 2
    if middle_ps:
        check_invariants(outcome_of(replace(lowered, until_ps=middle_ps)))


@pytest.mark.parametrize("seed", range(1000, 1100))
def test_busy_fabrics(seed: int) -> None:
    check_invariants(outcome_of(busy_lowered(seed)))


def congested(**overrides: Any) -> Lowered:
    """Three senders to one receiver, PAUSE and marks, everything recorded."""
    profile = {"limit_bytes": 20_000, "ecn_mode": 2, "ecn_kmin_bytes": 9_000, "ecn_kmax_bytes": 30_000}
    flows = [{"source": i, "destination": HOST_RECEIVER, "frames": 40} for i in (1, 2, 3)]
    everything = {"record": 7, "port_record": 7, "flow_record": 3}
    return small_lowered(hosts=4, profile=profile, flows=flows, **everything | overrides)


@pytest.fixture(scope="module")
def finished() -> Outcome:
    outcome = outcome_of(congested())
    assert outcome.reason == "FINISHED"
    assert len(outcome.rows["pause"]) > 3
    assert len(outcome.rows["mark"]) > 3
    return outcome


@pytest.fixture(scope="module")
def lossy() -> Outcome:
    outcome = outcome_of(congested(port_loss=0.05, transport={"rto_ps": 50_000_000}))
    assert len(outcome.rows["drop"]) > 3
    return outcome


def test_unspoilt_outcomes_pass(finished: Outcome, lossy: Outcome) -> None:
    check_invariants(finished)
    check_invariants(lossy)
    check_lossless(finished)
    assert records_all_packets(finished.lowered)


def spoilt(outcome: Outcome, name: str, change: Callable[[Any], None]) -> Outcome:
    """A copy with one column or stream changed in place."""
    columns = {key: value.copy() for key, value in outcome.columns.items()}
    rows = {key: value.copy() for key, value in outcome.rows.items()}
    change(columns[name] if name in columns else rows[name])
    return replace(outcome, columns=columns, rows=rows)


def add(at: int | tuple[int, ...], amount: int) -> Callable[[Any], None]:
    def change(column: Any) -> None:
        column[at] += np.asarray(amount, column.dtype)

    return change


def put(field: str, at: int, value: int) -> Callable[[Any], None]:
    def change(rows: Any) -> None:
        rows[field][at] = value

    return change


def exchange_frames(rows: Any) -> None:
    """Let two frames of a flow leave its last switch in the wrong order."""
    last_hop = np.flatnonzero((rows["flow"] == 1) & (rows["kind"] == 0) & (rows["port"] >= 4))
    first, second = last_hop[3:5]
    rows["sequence"][[first, second]] = rows["sequence"][[second, first]]


SPOILT = [
    (
        "counters",
        lambda counters: counters.update(frames_started=counters["frames_started"] + 1),
        "conserved",
    ),
    ("counters", lambda counters: counters.update(hops=counters["hops"] + 1), "hops"),
    ("queue_drops", add((0, 0), 1), "drops by port"),
    ("flow_sent", add(0, 1), "first time"),
    ("flow_delivered_ps", lambda column: column.__setitem__(0, -1), "before delivery|complete"),
    ("flow_retransmitted", add(0, 1), "not all frames"),
    ("queue_bytes", add((5, 0), 64), "finished, but queue_bytes"),
    ("shared_used", add(4, 1), "finished, but shared_used"),
    ("headroom_peak_bytes", add((5, 0), 1 << 41), "more headroom"),
    ("queue_marks", add((4, 0), 1), "mark rows"),
    ("flow_marked", add(0, 10_000), "marked frames arrived"),
    ("paused_ps", add((1, 0), 1), "pause rows and paused time"),
    ("pause", put("value", 0, -1), "a pause is open"),
    ("pauses_sent", add((5, 0), 1), "what the peer sent"),
    ("port_tx_bytes", add(4, 1 << 40), "more than its rate"),
    ("port_tx_bytes", add(4, 1), "packet rows and bytes"),
    ("throughput", put("value", 0, 1), "throughput rows"),
    ("packet", exchange_frames, "order changes"),
]


@pytest.mark.parametrize(("name", "change", "message"), SPOILT)
def test_spoilt_outcomes_are_noticed(
    finished: Outcome, name: str, change: Callable[[Any], None], message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        check_invariants(spoilt(finished, name, change))


def test_frames_that_overlap_are_noticed(finished: Outcome) -> None:
    rows = finished.rows["packet"]
    port = int(rows["port"][0])
    at = np.flatnonzero(rows["port"] == port)[:2]
    early = int(rows["time_ps"][at[0]]) + 1
    with pytest.raises(AssertionError, match="while another is sent"):
        check_invariants(spoilt(finished, "packet", put("time_ps", int(at[1]), early)))


def test_a_drop_without_its_row_is_noticed(lossy: Outcome) -> None:
    port = int(lossy.rows["drop"]["port"][0])
    with pytest.raises(AssertionError, match="drop rows"):
        check_invariants(spoilt(lossy, "drop", put("port", 0, port ^ 1)))


def test_a_lossless_drop_is_noticed() -> None:
    outcome = outcome_of(congested(until_ps=20_000_000, record=0))
    change = add(2, 1)
    with pytest.raises(AssertionError, match="headroom full"):
        check_lossless(spoilt(outcome, "drops_by_reason", change))
