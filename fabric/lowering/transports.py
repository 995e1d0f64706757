"""Rows of the transport table, and which row and class each flow uses.

A pattern of flows uses its own transport, else the scenario's. Parameters that scale with the line rate
are resolved here, so a transport has a row for each rate at which it is used. Frames are payload plus
header, but never smaller than Ethernet's smallest. A window holds as many frames as it takes to cover
its bytes (rounded up, as a sender that stops once the bytes in flight reach the window).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.lowered import TRANSPORT
from fabric.spec.congestion import Dctcp, Hpcc, Timely
from fabric.spec.link import LARGEST_FRAME_BYTES
from fabric.spec.switch import Switch
from fabric.spec.transport import Dcqcn, FixedWindow, GoBackN, SelectiveRepeat, Transport
from fabric.workload.flow_table import FlowTable

__all__ = ["PatternTransports", "pattern_transports", "transport_columns"]

FEEDBACK = {"cnp": 1, "echo": 2}
CONGESTION = {"paper": 1, "vendor": 2, "hpcc": 3, "dctcp": 4, "timely": 5}
TELEMETRY = {"time": 1, "hops": 2}
PATH_MODE = {"none": 0, "round_robin": 1, "random": 2}
LARGEST_WINDOW_FRAMES = 2**32 - 1
MOST_ROWS = 2**16
"""Flows number rows of the transport table in 16 bits."""
BITS_TIMES_PS_PER_SECOND = 8 * 10**12


@dataclass(frozen=True, eq=False)
class PatternTransports:
    """The distinct transports of a flow table, and what each of its patterns uses.

    Attributes
    ----------
    specs : tuple of Transport
        At least one: the scenario's where there is no pattern.
    pattern_spec : numpy.ndarray of int64 [patterns]
        Index into `specs`.
    pattern_class : numpy.ndarray of uint8 [patterns]
        Traffic class of the data frames.
    paths : tuple of str
        Where the scenario has each of `specs`.
    """

    specs: tuple[Transport, ...]
    pattern_spec: npt.NDArray[np.int64]
    pattern_class: npt.NDArray[np.uint8]
    paths: tuple[str, ...]

    @property
    def largest_frame_bytes(self) -> int:
        """Of any data or control frame."""
        return max(max(_frame_bytes(spec), _control_bytes(spec)) for spec in self.specs)

    def payload_bytes(self) -> npt.NDArray[np.int64]:
        """Payload of a full frame, by spec."""
        return np.array([int(spec.payload) for spec in self.specs], dtype=np.int64)

    def header_bytes(self) -> npt.NDArray[np.int64]:
        """What a frame carries beside payload, by spec."""
        return np.array([int(spec.overhead) for spec in self.specs], dtype=np.int64)

    def smallest_frame_bytes(self) -> npt.NDArray[np.int64]:
        """What shorter frames are padded to, by spec."""
        return np.array([int(spec.smallest_frame) for spec in self.specs], dtype=np.int64)


def pattern_transports(
    flows: FlowTable, *, transport: Transport, switch: Switch, largest_gap_bytes: int
) -> PatternTransports:
    """Find the distinct transports of a flow table and check what refers to other parts.

    Parameters
    ----------
    flows : FlowTable
    transport : Transport
        That of patterns without one of their own.
    switch : Switch
        Its classes are what class names refer to.
    largest_gap_bytes : int
        Of any link; a frame and its gap have at most 65,535 bytes.

    Returns
    -------
    PatternTransports

    Raises
    ------
    fabric.errors.SpecError
        A class name that the switch does not have, or a frame that is too large for the wire.
    """
    numbers: dict[Transport, int] = {}
    paths: list[str] = []
    pattern_spec = np.zeros(len(flows.patterns), dtype=np.int64)
    pattern_class = np.zeros(len(flows.patterns), dtype=np.uint8)
    for pattern, (own, own_class) in enumerate(zip(flows.transport, flows.traffic_class, strict=True)):
        entry = flows.pattern_path(pattern)
        spec, path = (transport, "transport") if own is None else (own, f"{entry}.transport")
        if spec not in numbers:
            paths.append(path)
        pattern_spec[pattern] = numbers.setdefault(spec, len(numbers))
        _check_frames(spec, largest_gap_bytes, path=path)
        if own_class is None:
            pattern_class[pattern] = switch.class_index(spec.data_class, path=f"{path}.data_class")
        else:
            pattern_class[pattern] = switch.class_index(own_class, path=f"{entry}.traffic_class")
    specs = tuple(numbers) or (transport,)
    return PatternTransports(specs, pattern_spec, pattern_class, tuple(paths) or ("transport",))


def transport_columns(
    patterns: PatternTransports,
    *,
    flow_spec: npt.NDArray[np.int64],
    line_rate_bps: npt.NDArray[np.int64],
    switch: Switch,
    whole_rates: bool = False,
) -> dict[str, Any]:
    """The transport table and the row of each flow.

    Parameters
    ----------
    patterns : PatternTransports
    flow_spec : numpy.ndarray of int64 [flows]
        Index into `patterns.specs`.
    line_rate_bps : numpy.ndarray of int64 [flows]
        Rate of the port that each flow sends from.
    switch : Switch
    whole_rates : bool
        Whether senders keep rates as whole bit/s, and their pauses in ticks of ns-3. Default False.

    Returns
    -------
    dict
        `transports` (at least one row) and `flow_transport`.

    Raises
    ------
    fabric.errors.SpecError
        More than 65,536 rows, or a step of DCQCN that does not fit a rate once it is scaled.
    """
    scales = np.array([_scales(spec) for spec in patterns.specs])
    keys = np.stack([flow_spec, np.where(scales[flow_spec], line_rate_bps, 0)], axis=1)
    distinct, row = np.unique(keys, axis=0, return_inverse=True)
    if len(distinct) > MOST_ROWS:
        found = f"{len(distinct)} pairs of a transport and a line rate that it scales with"
        raise SpecError("traffic", found, f"at most {MOST_ROWS} of them")
    if len(distinct) == 0:
        distinct = np.zeros((1, 2), dtype=np.int64)
    table = np.zeros(len(distinct), dtype=TRANSPORT)
    for number, (spec, rate_bps) in enumerate(distinct.tolist()):
        _fill_row(
            table[number : number + 1], patterns.specs[spec], rate_bps, switch, path=patterns.paths[spec]
        )
    table["whole_rates"] = whole_rates
    return {"transports": table, "flow_transport": row.ravel().astype(np.uint16)}


def _scales(spec: Transport) -> bool:
    """Whether a row of the table depends on the line rate."""
    match spec.congestion:
        case Hpcc():
            return True
        case Dcqcn(scale_from=scale_from) | Timely(scale_from=scale_from):
            return scale_from is not None
        case _:
            return False


def _fill_row(
    row: npt.NDArray[np.void], spec: Transport, line_rate_bps: int, switch: Switch, *, path: str
) -> None:
    """Fill one row of the transport table, at a line rate (0 where it does not matter)."""
    reliability = spec.reliability
    row["frame_bytes"] = _frame_bytes(spec)
    row["payload_bytes"] = spec.payload
    row["least_frame_bytes"] = spec.smallest_frame
    row["control_bytes"] = _control_bytes(spec)
    row["control_class"] = switch.class_index(spec.control_class, path=f"{path}.control_class")
    row["ack_every"] = spec.ack_every
    row["ack_delay_ps"] = spec.ack_delay or 0
    row["path_mode"] = PATH_MODE[spec.paths.spread]
    row["path_count"] = spec.paths.count
    row["rto_ps"] = reliability.rto or 0
    match reliability:
        case GoBackN():
            row["nack_enabled"] = reliability.nack
            row["nack_on_rewind"] = reliability.nack_on_rewind
            row["nack_interval_ps"] = reliability.nack_interval or 0
            row["ack_duplicates"] = reliability.ack_duplicates
        case SelectiveRepeat():
            row["selective"] = 1
            row["ack_duplicates"] = 1
            row["reorder_frames"] = reliability.reorder
    match spec.congestion:
        case FixedWindow(window=window):
            row["window_frames"] = _window_frames(window, spec.payload)
        case Dcqcn() as dcqcn:
            _fill_dcqcn(row, _at_line_rate(dcqcn, line_rate_bps, path=path))
            _fill_window(row, dcqcn, spec.payload)
        case Hpcc() as hpcc:
            _fill_hpcc(row, _at_line_rate(hpcc, line_rate_bps, path=path), line_rate_bps)
        case Dctcp() as dctcp:
            _fill_dctcp(row, dctcp)
            _fill_window(row, dctcp, spec.payload)
        case Timely() as timely:
            _fill_timely(row, _at_line_rate(timely, line_rate_bps, path=path))
            _fill_window(row, timely, spec.payload)


_Scaled = TypeVar("_Scaled", Dcqcn, Hpcc, Timely)


def _at_line_rate(congestion: _Scaled, line_rate_bps: int, *, path: str) -> _Scaled:
    """The congestion control with its steps scaled to the line rate, where that is known."""
    if not line_rate_bps:
        return congestion
    try:
        return congestion.at_line_rate(line_rate_bps)
    except SpecError as error:
        where = error.path.replace(type(congestion).__name__, f"{path}.congestion", 1)
        raise SpecError(where, error.value, error.allowed) from None


def _fill_dcqcn(row: npt.NDArray[np.void], dcqcn: Dcqcn) -> None:
    row["congestion"] = CONGESTION[dcqcn.form]
    row["feedback"] = FEEDBACK[dcqcn.feedback]
    row["clamp_target"] = dcqcn.clamp_target
    row["fast_recovery"] = dcqcn.fast_recovery
    row["cnp_interval_ps"] = dcqcn.cnp_interval
    row["alpha_period_ps"] = dcqcn.alpha_period
    row["cut_period_ps"] = dcqcn.cut_period
    row["increase_period_ps"] = dcqcn.increase_period
    row["byte_counter"] = dcqcn.byte_counter or 0
    row["g"] = dcqcn.g
    row["ai_bps"] = dcqcn.ai
    row["hai_bps"] = dcqcn.hai
    row["min_rate_bps"] = dcqcn.min_rate
    row["first_cut"] = dcqcn.first_cut


def _fill_hpcc(row: npt.NDArray[np.void], hpcc: Hpcc, line_rate_bps: int) -> None:
    row["congestion"] = CONGESTION["hpcc"]
    row["telemetry"] = TELEMETRY["hops"]
    row["variable_window"] = True
    row["window_bytes"] = max(1, line_rate_bps * int(hpcc.base_rtt) // BITS_TIMES_PS_PER_SECOND)
    row["base_rtt_ps"] = hpcc.base_rtt
    row["eta"] = hpcc.eta
    row["max_stage"] = hpcc.max_stage
    row["telemetry_unit"] = hpcc.telemetry_unit or 0
    row["fast_reaction"] = hpcc.fast_reaction
    row["ai_bps"] = hpcc.ai
    row["min_rate_bps"] = hpcc.min_rate


def _fill_dctcp(row: npt.NDArray[np.void], dctcp: Dctcp) -> None:
    row["congestion"] = CONGESTION["dctcp"]
    row["feedback"] = FEEDBACK["echo"]
    row["g"] = dctcp.g
    row["ai_bps"] = dctcp.ai
    row["min_rate_bps"] = dctcp.min_rate


def _fill_timely(row: npt.NDArray[np.void], timely: Timely) -> None:
    row["congestion"] = CONGESTION["timely"]
    row["telemetry"] = TELEMETRY["time"]
    row["base_rtt_ps"] = timely.min_rtt
    row["rtt_low_ps"] = timely.rtt_low
    row["rtt_high_ps"] = timely.rtt_high
    row["g"] = timely.gain
    row["beta"] = timely.beta
    row["max_stage"] = timely.hyper_after
    row["ai_bps"] = timely.ai
    row["hai_bps"] = timely.hai
    row["min_rate_bps"] = timely.min_rate


def _fill_window(row: npt.NDArray[np.void], spec: Dcqcn | Dctcp | Timely, payload_bytes: int) -> None:
    """The window beside the rate, if there is one."""
    if spec.window is not None:
        row["window_frames"] = _window_frames(spec.window, payload_bytes)
        row["window_bytes"] = spec.window
        row["variable_window"] = spec.variable_window


def _frame_bytes(spec: Transport) -> int:
    return max(int(spec.smallest_frame), int(spec.frame))


def _control_bytes(spec: Transport) -> int:
    return int(max(spec.smallest_frame, spec.control_frame))


def _window_frames(window_bytes: int, payload_bytes: int) -> int:
    """Frames whose payload covers the window; at least 1, for 0 means no window."""
    return min(max(1, -(-window_bytes // payload_bytes)), LARGEST_WINDOW_FRAMES)


def _check_frames(spec: Transport, gap_bytes: int, *, path: str) -> None:
    for field, size_bytes in (("payload", _frame_bytes(spec)), ("control_frame", _control_bytes(spec))):
        if size_bytes + gap_bytes > LARGEST_FRAME_BYTES:
            allowed = f"frames of at most {LARGEST_FRAME_BYTES - gap_bytes} bytes, header included"
            raise SpecError(f"{path}.{field}", getattr(spec, field), allowed)
