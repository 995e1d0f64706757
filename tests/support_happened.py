"""What occurred in a case that has been run, by names; and what random cases are meant to show."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from invariants import Outcome, changes_of

from fabric.lowered import DropReason, FaultKind

__all__ = [
    "EXPECTED",
    "EXPECTED_OF_FAILURES",
    "EXPECTED_OF_PROGRAMS",
    "what_happened",
    "what_happened_to_program",
]

CHANGES = {
    "links come up": FaultKind.UP,
    "other rates": FaultKind.RATE,
    "other losses": FaultKind.LOSS,
    "storms": FaultKind.PAUSE,
    "new routes": FaultKind.ROUTES,
    "flows that move": FaultKind.MOVES,
    "cut-through or not": FaultKind.CUT,
}
CHOICES = ("ecmp", "spray_random", "spray_round_robin", "adaptive", "flowlet", "hashed sockets")
EXPECTED = (
    *("FINISHED", "STALLED", "UNTIL", "pauses", "headroom", "marks", "cnps", "nacks", "timeouts"),
    *("rate changes", "link loss", "headroom full", "egress threshold", "pool full", "TTL expired"),
    *("spray_random", "spray_round_robin", "adaptive", "flowlet", "pins"),
    *("selective repeat", "delayed ACKs", "paths in turn", "random paths"),
    *("PAUSE repeated", "PAUSE run out", "flows in turn", "ties by start", "cut-through"),
)
EXPECTED_OF_FAILURES = (
    *("no route", "link down", "lost on links", "links come up", "other rates", "other losses", "storms"),
    *("new routes", "flows that move", "another path after a time-out", "FINISHED", "UNTIL"),
    *("flows in turn", "ties by start", "cut-through or not"),
)

EXPECTED_OF_PROGRAMS = (
    *("FINISHED", "UNTIL", "sent again", "PAUSE", "joins", "copies", "eager", "computing"),
    *("an order of own sends", "slow for a while"),
    *("own sizes", "many frames", "without bytes", "several messages", "in turn", "ties by start"),
)


def what_happened_to_program(outcome: Outcome) -> Iterator[str]:
    """Names of what occurred at least once to a program and its connections."""
    columns, program = outcome.columns, outcome.lowered.program
    assert program is not None
    connections = outcome.lowered.flow_frames == 0
    sent, again = columns["flow_sent"][connections], columns["flow_retransmitted"][connections]
    selective = outcome.lowered.transports["selective"][outcome.lowered.flow_transport][connections] == 1
    yield outcome.reason
    happened = {
        "sent again": again,
        "selective repeat": again[selective],
        "PAUSE": columns["pauses_sent"] if sent.any() else sent,
        "joins": program.lane_connection == 2**32 - 1,
        "copies": program.n_local,
        "eager": program.operation_eager,
        "computing": program.operation_compute_ps,
        "own sizes": program.operation_pieces >= 0,
        "without bytes": (program.operation_bytes == 0) & (program.operation_pieces < 0),
        "many frames": sent > 10,
        "in turn": outcome.lowered.node_takes_turns if sent.any() else sent,
        "ties by start": outcome.lowered.ties_by_start if sent.any() else sent,
        "an order of own sends": program.transfer_follower,
        "slow for a while": program.slow_factor,
        "several messages": np.unique(program.operation_lanes, return_counts=True)[1] > 1,
    }
    yield from (name for name, value in happened.items() if np.any(value))


def what_happened(outcome: Outcome) -> Iterator[str]:
    """Names of what occurred at least once."""
    columns = outcome.columns
    yield outcome.reason
    for name, column in (
        ("pauses", "pauses_sent"),
        ("headroom", "headroom_peak_bytes"),
        ("marks", "queue_marks"),
        ("cnps", "flow_cnps"),
        ("nacks", "flow_nacks"),
        ("timeouts", "flow_timeouts"),
    ):
        if columns[column].any():
            yield name
    if len(outcome.rows["rate"]) > outcome.lowered.n_flows:
        yield "rate changes"
    lowered, transports = outcome.lowered, outcome.lowered.transports[outcome.lowered.flow_transport]
    yield CHOICES[int(lowered.node_choice[-1])]
    if len(lowered.pin_key):
        yield "pins"
    if columns["flow_sent"].any():
        models = {
            "flows in turn": lowered.node_takes_turns,
            "ties by start": lowered.ties_by_start,
            "cut-through": lowered.port_cut_bytes,
        }
        yield from (name for name, value in models.items() if np.any(value))
    if np.any(columns["flow_retransmitted"][transports["selective"] == 1]):
        yield "selective repeat"
    if np.any(transports["ack_delay_ps"]):
        yield "delayed ACKs"
    for mode in np.unique(transports["path_mode"]).tolist():
        yield ("", "paths in turn", "random paths")[mode]
    yield from (name for name, kind in CHANGES.items() if len(changes_of(lowered, kind)))
    if outcome.counters["lost_in_flight"]:
        yield "lost on links"
    if outcome.counters["pauses_repeated"]:
        yield "PAUSE repeated"
    if outcome.counters["pauses_run_out"]:
        yield "PAUSE run out"
    if np.any(columns["flow_timeouts"][transports["repath"] == 1]):
        yield "another path after a time-out"
    for reason in np.flatnonzero(columns["drops_by_reason"]).tolist():
        yield DropReason.NAMES[reason]
