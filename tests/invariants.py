"""What must hold of every outcome, whichever engine it comes from and however the run ended.

An `Outcome` is all that an engine says at the end of a run: why it stopped, its columns and its rows.
`check_invariants` looks at nothing else but the `Lowered`, so it knows no engine. Checks that need
rows pass over streams that were not recorded. They are: frames are conserved, drops and marks add up,
memory is charged for what waits and within its limits, every PAUSE is answered, no link is faster
than its rate, a flow's frames overtake each other nowhere, and nothing is left behind after a
finished run. `check_lossless` holds only of switches whose headroom is the automatic bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fabric.lowered import FAULT, STREAMS, DropReason, FaultKind, Lowered, LoweredProgram

__all__ = ["Outcome", "changes_of", "check_invariants", "check_lossless", "records_all_packets"]

QUEUES, THROUGHPUT, PACKETS = 1, 2, 4
PAUSES, MARKS, DROPS = 1, 2, 4
FLOW_PACKETS = 2
DATA = 0
BYTE_PS_AT_1_BPS = 8 * 10**12
STILL_PAUSED = -1
LOOKAHEADS_A_LOOK = 64
"""From one look for deadlocks to the next (`docs/design.md`, section 13)."""

Rows = npt.NDArray[np.void]


@dataclass(frozen=True, eq=False)
class Outcome:
    """All that an engine says when it has stopped.

    Attributes
    ----------
    lowered : Lowered
        What was run.
    reason : str
        Why it stopped.
    until_ps : int
        The run was not to go beyond this instant.
    columns : dict
        Its columns, as they came.
    rows : dict
        By stream, its rows.
    waiting : tuple of numpy.ndarray
        What ranks of a program lack.
    deadlocks : tuple of numpy.ndarray
        Links and frames of the deadlocks that formed.
    """

    lowered: Lowered
    reason: str
    until_ps: int
    columns: dict[str, Any]
    rows: dict[str, Rows]
    waiting: tuple[Rows, Rows]
    deadlocks: tuple[Rows, Rows]

    @classmethod
    def of(cls, engine: Any, *, lowered: Lowered, reason: str, until_ps: int) -> Outcome:
        """Ask an engine that has stopped."""
        rows = {stream: engine.rows(stream) for stream in STREAMS}
        return cls(lowered, reason, until_ps, engine.columns(), rows, engine.waiting(), engine.deadlocks())

    @property
    def counters(self) -> dict[str, int]:
        """Counters of the whole run."""
        return {name: int(value) for name, value in self.columns["counters"].items()}

    @property
    def last_start_ps(self) -> int:
        """No frame began after this instant: the last arrival, the last loss of what was on a link, or
        where the run was stopped."""
        if self.reason == "UNTIL":
            return self.until_ps - 1
        if self.reason == "DEADLOCK":
            lookahead_ps = int(self.lowered.port_delay_ps.min())
            formed_ps = int(self.deadlocks[0]["formed_ps"].min())
            looks = -(-(formed_ps + lookahead_ps) // (LOOKAHEADS_A_LOOK * lookahead_ps))
            return max(self.counters["end_ps"], looks * LOOKAHEADS_A_LOOK * lookahead_ps)
        return max(
            self.counters["end_ps"], int(changes_of(self.lowered, FaultKind.DOWN)["time_ps"].max(initial=0))
        )


def check_invariants(outcome: Outcome) -> None:
    """Check all that holds of any scenario.

    Raises
    ------
    AssertionError
        Saying what does not hold.
    """
    for check in (
        _check_frames,
        _check_drops,
        _check_flows,
        _check_rest,
        _check_memory,
        _check_marks,
        _check_pauses,
        _check_link_bytes,
        _check_spacing,
        _check_throughput,
        _check_order,
        _check_program,
        _check_failures,
    ):
        check(outcome)


def check_lossless(outcome: Outcome) -> None:
    """Check that headroom by the automatic bound is never exceeded."""
    dropped = outcome.columns["drops_by_reason"][DropReason.HEADROOM]
    assert dropped == 0, f"{dropped} frames of lossless classes found their headroom full"


def changes_of(lowered: Lowered, *kinds: int) -> Rows:
    """What changes while a run goes on, of some kinds."""
    if lowered.faults is None:
        return np.zeros(0, dtype=FAULT)
    return lowered.faults.changes[np.isin(lowered.faults.changes["kind"], kinds)]


def records_all_packets(lowered: Lowered) -> bool:
    """Whether the packet stream has every frame of every port."""
    return bool(np.all(lowered.port_record & PACKETS))


def _check_frames(outcome: Outcome) -> None:
    counters = outcome.counters
    started, arrived = counters["frames_started"], counters["frames_arrived"]
    lost = counters["lost_in_flight"]
    assert started == arrived + counters["in_flight"] + lost, f"frames are not conserved: {counters}"
    assert counters["hops"] == arrived, f"hops are not arrivals: {counters}"
    if outcome.reason in ("FINISHED", "STALLED"):
        repeated = counters["pauses_repeated"] if outcome.lowered.pfc_refresh_ps else 0
        assert counters["in_flight"] <= repeated, f"{outcome.reason}, but frames are in flight: {counters}"
    if records_all_packets(outcome.lowered):
        rows = len(outcome.rows["packet"])
        assert rows == started, f"{started} frames started, {rows} rows"


def _check_drops(outcome: Outcome) -> None:
    by_port = outcome.columns["queue_drops"].astype(np.int64)
    by_reason = outcome.columns["drops_by_reason"].astype(np.int64)
    assert by_port.sum() == by_reason.sum(), f"{by_port.sum()} drops by port, {by_reason} by reason"
    if outcome.lowered.record & DROPS:
        rows = outcome.rows["drop"]
        np.testing.assert_array_equal(_count(rows, by_port.shape), by_port, "drop rows by port and class")
        reasons = np.bincount(rows["value"], minlength=len(by_reason))
        np.testing.assert_array_equal(reasons, by_reason, "drop rows by reason")


def _check_flows(outcome: Outcome) -> None:
    columns, frames = outcome.columns, outcome.lowered.flow_frames.astype(np.int64)
    started, delivered = columns["flow_started_ps"], columns["flow_delivered_ps"]
    completed = columns["flow_completed_ps"]
    sent, again = columns["flow_sent"].astype(np.int64), columns["flow_retransmitted"].astype(np.int64)
    is_delivered, is_complete = delivered >= 0, completed >= 0
    is_flow = frames > 0
    assert np.all((sent - again <= frames)[is_flow]), "more frames sent for the first time than the flow has"
    assert np.all((sent - again == frames)[is_delivered & is_flow]), "delivered, but not all frames were sent"
    assert np.all((sent == 0)[started < 0]), "sent before the start"
    assert np.all((started < delivered)[is_delivered]), "delivered before the start"
    assert np.all(is_delivered[is_complete]), "complete, but not delivered"
    assert np.all((delivered < completed)[is_complete & is_flow]), "complete before delivery"
    cause = columns["flow_timeouts"].astype(np.int64) + columns["flow_nacks"].astype(np.int64)
    assert np.all((cause > 0)[again > 0]), "frames sent again without NACK or time-out"
    if outcome.reason in ("FINISHED", "STALLED"):
        done = bool(is_complete[is_flow].all()) and _is_program_done(outcome)
        assert (outcome.reason == "FINISHED") == done, f"{outcome.reason}: {completed}"
    if outcome.reason == "FINISHED":
        assert np.all((delivered < completed)[is_delivered]), "finished, but not acknowledged"


def _is_program_done(outcome: Outcome) -> bool:
    """Every rank is done, and all that was delivered acknowledged."""
    if outcome.lowered.program is None:
        return True
    columns = outcome.columns
    acknowledged = columns["flow_delivered_ps"] < columns["flow_completed_ps"]
    is_used = (outcome.lowered.flow_frames == 0) & (columns["flow_started_ps"] >= 0)
    return bool(np.all(columns["task_left_ps"] >= 0) and np.all(acknowledged[is_used]))


def _check_program(outcome: Outcome) -> None:
    """Ranks enter when those before are left; in the end all bytes of each operation have been sent."""
    program = outcome.lowered.program
    if program is None:
        return
    entered, left = outcome.columns["task_entered_ps"], outcome.columns["task_left_ps"]
    each = np.diff(program.operation_task_base.astype(np.int64))
    compute_ps = np.repeat(program.operation_compute_ps, each)
    start_ps = np.repeat(program.operation_start_ps, each)
    assert np.all((entered >= start_ps)[entered >= 0]), "entered before the start of the operation"
    assert np.all((left >= entered + compute_ps)[left >= 0]), "left before it can be done"
    assert np.all(entered[left >= 0] >= 0), "left, but not entered"
    before = np.repeat(np.arange(len(left)), np.diff(program.task_next_base.astype(np.int64)))
    ready = entered[program.task_next] >= 0
    assert np.all((left[before] >= 0)[ready]), "entered before another was left"
    assert np.all((left[before] <= entered[program.task_next])[ready]), "entered before another was left"
    if outcome.reason == "FINISHED":
        expected = [_operation_bytes(program, number) for number in range(len(program.operation_bytes))]
        np.testing.assert_array_equal(
            outcome.columns["operation_sent_bytes"], expected, "bytes of operations"
        )


def _operation_bytes(program: LoweredProgram, operation: int) -> int:
    """What all transfers of an operation carry."""
    template = program.operation_template[operation]
    table, pieces = program.operation_pieces[operation], int(program.template_pieces[template])
    each, larger = divmod(int(program.operation_bytes[operation]), pieces)
    size_bytes = np.full(pieces, each) + (np.arange(pieces) < larger)
    if table >= 0:
        size_bytes = np.diff(program.piece_offset_bytes[table : table + pieces + 1])
    total = 0
    for rank in range(*program.template_rank_base[template : template + 2].tolist()):
        pattern = program.rank_pattern[rank]
        for lane in range(*program.pattern_lane_base[pattern : pattern + 2].tolist()):
            if program.lane_joins[lane]:
                continue
            first, end = program.lane_transfer_base[lane : lane + 2].tolist()
            for transfer in range(first, end):
                piece = (int(program.transfer_piece[transfer]) + int(program.rank_piece[rank])) % pieces
                total += int(size_bytes[piece : piece + int(program.transfer_count[transfer])].sum())
    return total


def _check_rest(outcome: Outcome) -> None:
    """After a finished run nothing waits, and no memory is charged."""
    if outcome.reason != "FINISHED":
        return
    for name in ("queue_bytes", "ingress_bytes", "headroom_bytes", "shared_used"):
        column = outcome.columns[name]
        assert not column.any(), f"finished, but {name} = {column[column != 0]} at {np.argwhere(column)}"


def _check_memory(outcome: Outcome) -> None:
    lowered, columns = outcome.lowered, outcome.columns
    profile = lowered.profiles[lowered.port_profile.reshape(lowered.n_ports, lowered.n_classes)]
    ingress, headroom = columns["ingress_bytes"], columns["headroom_bytes"]
    most = np.where(profile["lossless"], profile["headroom_bytes"], 0)
    assert np.all(np.minimum(ingress, headroom) >= 0), "less than nothing is charged"
    assert np.all(headroom <= columns["headroom_peak_bytes"]), "headroom above its peak"
    assert np.all(columns["headroom_peak_bytes"] <= most), "more headroom used than there is"
    assert np.all(columns["queue_bytes"] <= columns["queue_peak_bytes"]), "a queue above its peak"
    queued = _by_node(lowered, columns["queue_bytes"])
    charged = _by_node(lowered, ingress + headroom)
    np.testing.assert_array_equal(queued, charged, "queued and charged bytes by node")
    shared = _by_node(lowered, np.maximum(0, ingress - profile["reserved_bytes"]))
    np.testing.assert_array_equal(columns["shared_used"], shared, "use of the shared pool by node")
    assert np.all(shared <= lowered.node_shared_bytes), "more of a pool used than it has"


def _check_marks(outcome: Outcome) -> None:
    marks = outcome.columns["queue_marks"].astype(np.int64)
    if outcome.lowered.record & MARKS:
        rows = _count(outcome.rows["mark"], marks.shape)
        np.testing.assert_array_equal(rows, marks, "mark rows by port and class")
    marked = int(outcome.columns["flow_marked"].sum())
    assert marked <= marks.sum(), f"{marked} marked frames arrived, but only {marks.sum()} were marked"


def _check_pauses(outcome: Outcome) -> None:
    """Intervals follow each other and add up; each answers a PAUSE of the peer."""
    lowered, columns = outcome.lowered, outcome.columns
    if not lowered.record & PAUSES:
        return
    rows, end_ps = outcome.rows["pause"], outcome.counters["end_ps"]
    is_open = rows["value"] == STILL_PAUSED
    # a storm pauses without a frame, a link that goes down ends pauses without one, a watchdog does both; and
    # the repetition of a PAUSE that has run out begins a pause anew
    by_frames = (
        len(changes_of(lowered, FaultKind.DOWN, FaultKind.PAUSE)) == 0
        and not (lowered.watchdog_poll_ps and lowered.watchdog_action)
        and bool(lowered.port_pause_holds.all())
    )
    has_ended = outcome.reason == "FINISHED" and by_frames
    assert not (has_ended and is_open.any()), "finished, but a pause is open"
    ends = np.where(is_open, np.maximum(end_ps, rows["time_ps"]), rows["value"])
    assert np.all(ends >= rows["time_ps"]), "a pause ends before it begins"
    total = np.zeros_like(columns["paused_ps"])
    np.add.at(total, (rows["port"], rows["class"]), ends - rows["time_ps"])
    np.testing.assert_array_equal(total, columns["paused_ps"], "pause rows and paused time")
    same = (rows["port"][1:] == rows["port"][:-1]) & (rows["class"][1:] == rows["class"][:-1])
    assert not np.any(same & is_open[:-1]), "a pause after one that is open"
    apart = rows["time_ps"][1:] - ends[:-1]
    # in ticks of ns-3 a RESUME and the next PAUSE can act at one instant
    least = np.where((lowered.port_tick_timing[rows["port"][1:]] != 0) | (not by_frames), 0, 1)
    assert not np.any(same & (apart < least)), "a pause within another"
    count = _count(rows, total.shape)
    sent = columns["pauses_sent"].astype(np.int64)[lowered.port_peer]
    assert np.all(count <= sent) or not by_frames, "paused more often than the peer sent PAUSE"
    if has_ended:
        np.testing.assert_array_equal(count, sent, "pauses and what the peer sent")


def _check_link_bytes(outcome: Outcome) -> None:
    """No link carries more than its rate, but for the frame that began last; in ticks of ns-3 links do."""
    lowered, sent = outcome.lowered, outcome.columns["port_tx_bytes"]
    occupied_ps = sent.astype(object) * BYTE_PS_AT_1_BPS / lowered.port_rate_bps.astype(object)
    frame_bytes = int(max(lowered.transports["frame_bytes"].max(), lowered.transports["control_bytes"].max()))
    wire_bytes = (frame_bytes + lowered.port_gap_bytes).astype(object)
    longest_ps = -(-wire_bytes * BYTE_PS_AT_1_BPS // lowered.port_rate_bps.astype(object))
    within = occupied_ps <= outcome.last_start_ps + longest_ps
    assert np.all(within | (lowered.port_tick_timing != 0)), "a link carried more than its rate"
    if records_all_packets(lowered):
        rows = outcome.rows["packet"]
        counted = np.zeros_like(sent)
        np.add.at(counted, rows["port"], rows["value"] + lowered.port_gap_bytes[rows["port"]])
        np.testing.assert_array_equal(counted, sent, "packet rows and bytes sent")


def _check_spacing(outcome: Outcome) -> None:
    """A frame begins only when the one before has left the port."""
    lowered, rows = outcome.lowered, outcome.rows["packet"]
    rows = rows[np.lexsort([rows["time_ps"], rows["port"]])]
    wire_bytes = rows["value"] + lowered.port_gap_bytes[rows["port"]]
    service_ps = -(-wire_bytes * BYTE_PS_AT_1_BPS // lowered.port_rate_bps[rows["port"]])
    same_port = rows["port"][1:] == rows["port"][:-1]
    exact = lowered.port_tick_timing[rows["port"][1:]] == 0
    too_early = same_port & exact & (rows["time_ps"][1:] < (rows["time_ps"] + service_ps)[:-1])
    assert not too_early.any(), f"a frame begins while another is sent: {rows[1:][too_early][:1]}"


def _check_throughput(outcome: Outcome) -> None:
    lowered, rows = outcome.lowered, outcome.rows["throughput"]
    recorded = (lowered.port_record & THROUGHPUT) > 0
    counted = np.zeros(lowered.n_ports, np.int64)
    np.add.at(counted, rows["port"], rows["value"])
    expected = np.where(recorded, outcome.columns["port_tx_bytes"], 0)
    np.testing.assert_array_equal(counted, expected, "throughput rows and bytes sent")
    assert np.all(rows["value"] > 0), "an empty interval has a row"


def _check_order(outcome: Outcome) -> None:
    """From port to port of a flow's path its data frames keep their order, though some are lost."""
    lowered, rows = outcome.lowered, outcome.rows["packet"]
    if lowered.node_choice.any() or lowered.transports["path_mode"].any() or len(lowered.pin_key):
        return
    if lowered.transports["repath"].any() or len(changes_of(lowered, FaultKind.ROUTES, FaultKind.MOVES)):
        return
    if not (records_all_packets(lowered) or np.any(lowered.flow_record & FLOW_PACKETS)):
        return
    data = rows[rows["kind"] == DATA]
    data = data[np.argsort(data["time_ps"], kind="stable")]
    trains: dict[int, dict[int, list[int]]] = {}
    for port, flow, sequence in data[["port", "flow", "sequence"]].tolist():
        trains.setdefault(flow, {}).setdefault(port, []).append(sequence)
    for flow, by_port in trains.items():
        if not (records_all_packets(lowered) or lowered.flow_record[flow] & FLOW_PACKETS):
            continue
        hops = list(by_port.items())
        assert hops[0][0] == lowered.flow_port[flow], f"flow {flow} begins at port {hops[0][0]}"
        for (before, ahead), (after, behind) in pairwise(hops):
            assert _is_part(behind, iter(ahead)), f"flow {flow}: order changes from port {before} to {after}"


def _check_failures(outcome: Outcome) -> None:
    """Over a link that is down nothing begins, and at no other time a frame is lost to that."""
    lowered, rows = outcome.lowered, outcome.rows
    lost = int(outcome.columns["drops_by_reason"][DropReason.LINK_DOWN])
    assert outcome.counters["lost_in_flight"] <= lost, "lost on a link, but not dropped"
    changes = changes_of(lowered, FaultKind.DOWN, FaultKind.UP)
    for port in np.unique(changes["port"]).tolist():
        mine = changes[changes["port"] == port]
        is_down = np.append(False, mine["kind"] == FaultKind.DOWN)
        began = rows["packet"][rows["packet"]["port"] == port]["time_ps"]
        then = is_down[np.searchsorted(mine["time_ps"], began, side="right")]
        assert not then.any(), f"port {port} begins a frame at {began[then][0]}, while its link is down"
        drops = rows["drop"][(rows["drop"]["port"] == port) & (rows["drop"]["value"] == DropReason.LINK_DOWN)]
        then = is_down[np.searchsorted(mine["time_ps"], drops["time_ps"], side="right")]
        assert then.all(), f"port {port} drops a frame at {drops[~then][:1]}, while its link is up"
    if lowered.record & DROPS and len(changes) == 0:
        assert lost == 0, "link down, but no link goes down"


def _is_part(train: list[int], of: Iterator[int]) -> bool:
    """Whether `train` is `of` with some left out."""
    return all(sequence in of for sequence in train)


def _count(rows: Rows, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Rows by port and class."""
    counts = np.zeros(shape, np.int64)
    np.add.at(counts, (rows["port"], rows["class"]), 1)
    return counts


def _by_node(lowered: Lowered, column: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Sum over the ports and classes of each node."""
    total = np.zeros(lowered.n_nodes, np.int64)
    np.add.at(total, lowered.port_node, column.sum(axis=1))
    return total
