"""From when to when cables and directions are out of order, and when that is known.

All times are picoseconds; an interval includes its first instant and not its last.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from fabric.failures.occurrences import NEVER_PS, Occurrence
from fabric.spec.recovery import Recovery

__all__ = ["DOWN_KINDS", "Interval", "down_intervals", "isolated_intervals", "merged", "shifted"]

Interval = tuple[int, int]

DOWN_KINDS = ("link_down", "link_flap", "switch_down")
"""Kinds of failure in which cables are down in both directions, and their ends can see it."""


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """The same instants as intervals that do not touch, in order.

    Examples
    --------
    >>> merged([(5, 7), (0, 2), (2, 3), (6, 9)])
    [(0, 3), (5, 9)]
    """
    result: list[Interval] = []
    for begin, end in sorted(intervals):
        if result and begin <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((begin, end))
    return result


def down_intervals(occurrences: Sequence[Occurrence]) -> dict[int, list[Interval]]:
    """By port, when its direction carries nothing: its cable is down, or its host or its peer hangs."""
    by_port: dict[int, list[Interval]] = defaultdict(list)
    for each in occurrences:
        if each.kind in (*DOWN_KINDS, "host_hang"):
            for port in each.ports:
                by_port[port].append((each.began_ps, each.ended_ps))
    return {port: merged(intervals) for port, intervals in by_port.items()}


def isolated_intervals(occurrences: Sequence[Occurrence], recovery: Recovery) -> dict[int, list[Interval]]:
    """By cable, when its ends do not use it.

    From `isolated_after_ps` into a failure that lasts longer than that, until it has been in order for
    `recovery.restore`; what fails again before stays out.
    """
    failed: dict[int, list[Interval]] = defaultdict(list)
    isolated: dict[int, list[Interval]] = defaultdict(list)
    restore_ps = int(recovery.restore)
    for each in occurrences:
        if each.isolated_after_ps is None:
            continue
        for cable in each.cables:
            if each.kind in DOWN_KINDS:
                failed[cable].append((each.began_ps, each.ended_ps))
            elif each.began_ps + each.isolated_after_ps < each.ended_ps:
                begin_ps = each.began_ps + each.isolated_after_ps
                isolated[cable].append((begin_ps, _after(each.ended_ps, restore_ps)))
    for cable, intervals in failed.items():
        isolated[cable] += _held_down(merged(intervals), int(recovery.isolate), restore_ps)
    return {cable: merged(intervals) for cable, intervals in isolated.items() if intervals}


def _held_down(failed: list[Interval], isolate_ps: int, restore_ps: int) -> list[Interval]:
    result: list[Interval] = []
    for begin_ps, end_ps in failed:
        until_ps = _after(end_ps, restore_ps)
        if result and begin_ps < result[-1][1]:
            result[-1] = (result[-1][0], until_ps)
        elif end_ps - begin_ps > isolate_ps:
            result.append((begin_ps + isolate_ps, until_ps))
    return result


def shifted(intervals: Iterable[Interval], by_ps: int) -> list[Interval]:
    """The same, later; what never ends still does not."""
    return [(begin_ps + by_ps, _after(end_ps, by_ps)) for begin_ps, end_ps in intervals]


def _after(time_ps: int, delay_ps: int) -> int:
    return NEVER_PS if time_ps >= NEVER_PS else time_ps + delay_ps
