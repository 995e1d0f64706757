"""What failures do to links, whatever anybody knows: down and up, rate, loss, and pauses of a PFC storm.

The frames of a storm are not sent one by one. The first PAUSE acts when it would (its time on the link, the
delay, the response time of the switch) and holds until the storm ends; the refreshing ones that keep it would
take 84 bytes of every 65,535 quanta of 512 bits on the host's link. The storm starts anew when its link
comes up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fabric.failures.intervals import DOWN_KINDS, Interval, down_intervals, merged
from fabric.failures.occurrences import NEVER_PS, Occurrence
from fabric.lowered import FaultKind
from fabric.lowering.buffers import serialisation_ps
from fabric.topology.network import Network

__all__ = ["link_changes"]

Row = tuple[int, int, int, int, float, float]


def link_changes(
    occurrences: Sequence[Occurrence],
    network: Network,
    *,
    columns: dict[str, Any],
    class_numbers: dict[str, int],
    lossless: Sequence[str],
    pfc_frame_bytes: int,
    tick_ps: int,
) -> Iterator[Row]:
    """Rows of `LoweredFaults.changes`, in no order.

    Parameters
    ----------
    occurrences : sequence of Occurrence
    network : Network
    columns : dict
        Those of ports and nodes.
    class_numbers : dict
        Number of each traffic class.
    lossless : sequence of str
        Classes that a storm pauses if it names none.
    pfc_frame_bytes : int
    tick_ps : int
        Things happen at multiples of this.
    """
    down = down_intervals(occurrences)
    cut = {(port, each.began_ps) for each in occurrences if each.kind in DOWN_KINDS for port in each.ports}
    for port, intervals in down.items():
        is_host = int(network.port_node[port]) < network.n_hosts
        for begin_ps, end_ps in intervals:
            # what a host sent before it hung arrives
            loses = (port, begin_ps) in cut or not is_host
            yield begin_ps, FaultKind.DOWN, port, int(loses), 0.0, 0.0
            if end_ps < NEVER_PS:
                yield end_ps, FaultKind.UP, port, 0, 0.0, 0.0
    for port, time_ps, rate_bps in _levels(occurrences, lambda each: each.rate_bps, min):
        built_bps = int(columns["port_rate_bps"][port])
        value = built_bps if rate_bps is None else min(built_bps, int(rate_bps))
        yield time_ps, FaultKind.RATE, port, value, 0.0, 0.0
        cut_bytes = int(columns["port_cut_bytes"][port])
        if cut_bytes:
            # what comes in slower than it could go out is taken whole
            yield time_ps, FaultKind.CUT, port, cut_bytes if value == built_bps else 0, 0.0, 0.0
    for port, time_ps, bit_error_rate in _levels(occurrences, lambda each: each.bit_error_rate, max):
        own = float(network.link_bit_error_rate[network.port_link[port]])
        worst = own if bit_error_rate is None else max(own, float(bit_error_rate))
        ber_rate = float(0.0 - np.log1p(-worst))
        yield time_ps, FaultKind.LOSS, port, 0, float(columns["port_loss"][port]), ber_rate
    yield from _storms(occurrences, down, network, columns, class_numbers, lossless, pfc_frame_bytes, tick_ps)


def _levels(
    occurrences: Sequence[Occurrence], level: Callable[[Occurrence], float], worst: Callable[..., float]
) -> Iterator[tuple[int, int, float | None]]:
    """By port, when the worst of the levels that hold at a time changes, and to what; None: none holds."""
    by_port: dict[int, list[tuple[int, int, float]]] = defaultdict(list)
    for each in occurrences:
        if level(each):
            for port in each.ports:
                by_port[port].append((each.began_ps, each.ended_ps, level(each)))
    for port, spans in by_port.items():
        now: float | None = None
        for time_ps in sorted({time for begin, end, _ in spans for time in (begin, end)} - {NEVER_PS}):
            holding = [value for begin, end, value in spans if begin <= time_ps < end]
            then = worst(holding) if holding else None
            if then != now:
                yield port, time_ps, then
            now = then


def _storms(
    occurrences: Sequence[Occurrence],
    down: dict[int, list[Interval]],
    network: Network,
    columns: dict[str, Any],
    class_numbers: dict[str, int],
    lossless: Sequence[str],
    pfc_frame_bytes: int,
    tick_ps: int,
) -> Iterator[Row]:
    spans: dict[tuple[int, int], list[Interval]] = defaultdict(list)
    for each in occurrences:
        if each.kind == "pfc_storm":
            for port in each.ports:
                for name in each.classes or lossless:
                    spans[port, class_numbers[name]].append((each.began_ps, each.ended_ps))
    for (port, traffic_class), intervals in spans.items():
        paused = int(network.port_peer[port])
        wire_bytes = pfc_frame_bytes + int(columns["port_gap_bytes"][port])
        latency_ps = serialisation_ps(wire_bytes, int(columns["port_rate_bps"][port]))
        latency_ps += int(columns["port_delay_ps"][port])
        latency_ps += int(columns["node_pfc_response_ps"][network.port_node[paused]])
        latency_ps += -latency_ps % tick_ps
        for begin_ps, end_ps, is_cut in _without(merged(intervals), down.get(port, [])):
            if is_cut and begin_ps + latency_ps >= end_ps:
                continue
            yield begin_ps + latency_ps, FaultKind.PAUSE, paused, 2 * traffic_class + 1, 0.0, 0.0
            if not is_cut and end_ps < NEVER_PS:
                yield end_ps + latency_ps, FaultKind.PAUSE, paused, 2 * traffic_class, 0.0, 0.0


def _without(intervals: list[Interval], taken: list[Interval]) -> Iterator[tuple[int, int, bool]]:
    """Parts of intervals outside others, and whether one of these ends each."""
    for begin, end in intervals:
        at = begin
        for first, last in taken:
            if last <= at or first >= end:
                continue
            if first > at:
                yield at, first, True
            at = last
        if at < end:
            yield at, end, False
