"""The border to NumPy: records of a `Lowered` as small frozen Python objects.

Engines read arrays; people read names. This file turns each record type of `fabric.lowered` into a
frozen dataclass with the same field names (so a field that is added there and forgotten here is an
error at once), and each flow into a `Flow`. Nothing here changes during a run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from fabric.lowered import Lowered

__all__ = [
    "Feedback",
    "Flow",
    "Profile",
    "SchedulerTable",
    "Transport",
    "read_flows",
    "read_profiles",
    "read_schedulers",
]

MOST_FRAMES = 2**32 - 1
"""The largest window."""

_Record = TypeVar("_Record")


class EcnMode:
    """When a switch marks (`Profile.ecn_mode`)."""

    OFF, ENQUEUE, DEQUEUE = range(3)


class Feedback:
    """How a receiver reports marks (`Transport.feedback`)."""

    NONE, CNP, ECHO = range(3)


class PathMode:
    """How a sender spreads the frames of a flow over path hashes (`Transport.path_mode`)."""

    FLOW, IN_TURN, RANDOM = range(3)


class Congestion:
    """Which congestion control paces a flow (`Transport.congestion`)."""

    NONE, DCQCN_PAPER, DCQCN_VENDOR, HPCC, DCTCP, TIMELY = range(6)


class TelemetryKind:
    """What a sender remembers of its frames (`Transport.telemetry`)."""

    NONE, TIME, HOPS = range(3)


@dataclass(frozen=True, slots=True)
class Profile:
    """A class profile: buffer thresholds of an ingress (port, class), marking of an egress one."""

    lossless: int
    ecn_mode: int
    alpha_q16: int
    egress_alpha_q16: int
    reserved_bytes: int
    limit_bytes: int
    xon_offset_bytes: int
    headroom_bytes: int
    egress_limit_bytes: int
    ecn_kmin_bytes: int
    ecn_kmax_bytes: int
    ecn_pmax: float


@dataclass(frozen=True, slots=True)
class Transport:
    """How a flow is cut into frames, acknowledged and paced."""

    frame_bytes: int
    payload_bytes: int
    control_bytes: int
    control_class: int
    feedback: int
    congestion: int
    nack_enabled: int
    nack_on_rewind: int
    clamp_target: int
    ack_every: int
    window_frames: int
    fast_recovery: int
    rto_ps: int
    nack_interval_ps: int
    cnp_interval_ps: int
    alpha_period_ps: int
    cut_period_ps: int
    increase_period_ps: int
    byte_counter: int
    g: float
    ai_bps: float
    hai_bps: float
    min_rate_bps: float
    first_cut: float
    ack_duplicates: int
    variable_window: int
    telemetry: int
    fast_reaction: int
    max_stage: int
    window_bytes: int
    base_rtt_ps: int
    rtt_low_ps: int
    rtt_high_ps: int
    eta: float
    beta: float
    ack_delay_ps: int
    path_count: int
    reorder_frames: int
    path_mode: int
    selective: int
    whole_rates: int
    telemetry_unit: int
    least_frame_bytes: int
    repath: int

    def kept_rate(self, rate_bps: float) -> float:
        """A rate as it is kept: as it is, or cut to whole bit/s."""
        return float(int(rate_bps)) if self.whole_rates else rate_bps

    def mean_rate(self, one_bps: float, other_bps: float) -> float:
        """The mean of two rates; of whole ones the sum of their halves, each cut."""
        if self.whole_rates:
            return float(int(one_bps / 2.0) + int(other_bps / 2.0))
        return (one_bps + other_bps) / 2.0

    def window_at(self, rate_bps: float, *, line_bps: float) -> int:
        """Frames that may be outstanding at a rate; 0: as many as there are."""
        if not self.variable_window:
            return self.window_frames
        size_bytes = int(float(self.window_bytes) * rate_bps / line_bps)
        return min(max(self.ack_every, -(-size_bytes // self.payload_bytes)), MOST_FRAMES)


@dataclass(frozen=True, slots=True)
class SchedulerTable:
    """Priority levels, the first one served first, each the classes in it; quantum by class."""

    levels: tuple[tuple[int, ...], ...]
    quantum: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """One message from one host to another, as described before the run; or a connection, of 0 frames."""

    number: int
    source: int
    destination: int
    port: int
    traffic_class: int
    transport: Transport
    frames: int
    last_frame_bytes: int
    start_ps: int
    path_hash: int

    @property
    def is_connection(self) -> bool:
        """Whether messages are posted on it while time runs; otherwise it is one message itself."""
        return self.frames == 0


def _read_records(array: npt.NDArray[np.void], make: Callable[..., _Record]) -> list[_Record]:
    names = array.dtype.names or ()
    return [make(**dict(zip(names, row, strict=True))) for row in array.tolist()]


def read_profiles(lowered: Lowered) -> list[Profile]:
    """All class profiles, by number."""
    return _read_records(lowered.profiles, Profile)


def read_schedulers(lowered: Lowered) -> list[SchedulerTable]:
    """All scheduler tables, by number; empty levels are left out."""

    def table(n_levels: int, level_mask: list[int], quantum: list[int]) -> SchedulerTable:
        classes = range(lowered.n_classes)
        levels = (tuple(c for c in classes if mask >> c & 1) for mask in level_mask[:n_levels])
        return SchedulerTable(tuple(level for level in levels if level), tuple(int(q) for q in quantum))

    return _read_records(lowered.schedulers, table)


def read_flows(lowered: Lowered) -> list[Flow]:
    """All flows, by number."""
    transports = _read_records(lowered.transports, Transport)
    return [
        Flow(number, source, destination, port, traffic_class, transports[transport], *rest)
        for number, (source, destination, port, traffic_class, transport, *rest) in enumerate(
            zip(
                lowered.flow_source.tolist(),
                lowered.flow_destination.tolist(),
                lowered.flow_port.tolist(),
                lowered.flow_class.tolist(),
                lowered.flow_transport.tolist(),
                lowered.flow_frames.tolist(),
                lowered.flow_last_frame_bytes.tolist(),
                lowered.flow_start_ps.tolist(),
                lowered.flow_hash.tolist(),
                strict=True,
            )
        )
    ]
