"""Every known case of PFC deadlock, by its number: the run, and the verdict with either arbiter.

Numbers are those of the table that the verdicts come from (an independent event simulation, several seeds;
`test_oracle_deadlock.py` names the literature): K10 to K16 frames that circle in a loop of routes until their
lifetime is over, K20 to K30 rings, K50 to K53 the square, K60 and K70 the Clos with and without a bounce. K1
to K6 are static and have no run (`test_deadlock_check.py`).

A verdict that depends on timing is None: then both engines agree on it, and that is all. Rates near a
threshold are tried for 100 ms, all others for 10 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from support_deadlock import Setting, Verdict, at_rate, clos, judge, judge_loop, ring, square

ARBITERS = ("fifo", "round_robin")
DEADLOCK, FREE, EITHER = True, False, None
LONG_MS, USUAL_MS = 100, 10


@dataclass(frozen=True)
class Row:
    """One run.

    Attributes
    ----------
    start : callable
        With `arbiter`, `setting` and `engine`.
    verdicts : tuple of (bool or None)
        With first in, first out, and round robin.
    setting : Setting
    """

    start: Callable[..., Verdict]
    verdicts: tuple[bool | None, bool | None]
    setting: Setting

    def expected(self, arbiter: str) -> bool | None:
        return self.verdicts[ARBITERS.index(arbiter)]

    def run(self, arbiter: str, engine: Any, *, duration_ms: float | None = None) -> Verdict:
        """As long as the row says, or shorter."""
        setting = replace(self.setting, duration_ms=duration_ms or self.setting.duration_ms)
        return self.start(arbiter=arbiter, setting=setting, engine=engine)


def _in_network(
    case: Any, fifo: bool | None, round_robin: bool | None, *, duration_ms: int = USUAL_MS, **setting: int
) -> Row:
    cables, streams = case
    return Row(
        lambda **how: judge(cables, streams, **how),
        (fifo, round_robin),
        Setting(duration_ms=duration_ms, **setting),
    )


def _in_loop(switches: int, ttl: int, rate_gbps: float, verdict: bool | None, **setting: int) -> Row:
    """The rates of the table that end in a deadlock are tried for long, those that do not for 10 ms."""
    duration_ms = LONG_MS if verdict else USUAL_MS
    return Row(
        lambda **how: judge_loop(switches, ttl, rate_gbps, **how),
        (verdict, verdict),
        Setting(duration_ms=duration_ms, **setting),
    )


def _loops() -> Iterator[tuple[str, Row]]:
    boundaries: dict[str, tuple[int, int, list[float], list[float]]] = {
        "K10": (2, 16, [4.90, 5.00], [5.10, 6, 10, 20, 40]),
        "K11": (2, 8, [10.0], [10.2, 12]),
        "K12": (3, 10, [13.3], [13.6, 20, 40]),
        "K13": (4, 16, [10.0], [10.2]),
        "K14": (5, 12, [13.3], [14, 40]),
        "K15 two": (2, 4, [20.0], []),
        "K15 three": (3, 6, [20.0], []),
        "K16 two": (2, 3, [40], []),
        "K16 three": (3, 4, [40], []),
    }
    for name, (switches, ttl, quiet, dead) in boundaries.items():
        for rate_gbps, verdict in [*((rate, FREE) for rate in quiet), *((rate, DEADLOCK) for rate in dead)]:
            yield f"{name}, {rate_gbps:g}G", _in_loop(switches, ttl, rate_gbps, verdict)
    for xoff in (20_000, 100_000, 400_000):
        buffer = {"xoff": xoff, "xon": xoff - 2_000}
        yield f"K10, 10G, {xoff // 1000} KB", _in_loop(2, 16, 10, DEADLOCK, **buffer)
        yield f"K10, 5G, {xoff // 1000} KB", _in_loop(2, 16, 5, FREE, **buffer)
    for name, switches, ttl in (("K15 two", 2, 4), ("K15 three", 3, 6)):
        for rate_gbps in (25, 40):
            row = _in_loop(switches, ttl, rate_gbps, FREE)
            yield f"{name}, {rate_gbps}G", replace(row, verdicts=(EITHER, FREE))


def _slow(case: Any, rate_gbps: float) -> Any:
    cables, streams = case
    return cables, at_rate(streams, rate_gbps)


ROWS: dict[str, Row] = {
    **dict(_loops()),
    **{f"K20, {n} switches": _in_network(ring(n, 1, 1), FREE, FREE) for n in (3, 4, 5, 8)},
    "K21": _in_network(ring(3, 2, 1), DEADLOCK, FREE),
    "K22, 20.0G": _in_network(_slow(ring(3, 2, 1), 20.0), FREE, FREE, duration_ms=LONG_MS),
    "K22, 20.2G": _in_network(_slow(ring(3, 2, 1), 20.2), DEADLOCK, FREE, duration_ms=LONG_MS),
    "K23": _in_network(ring(4, 2, 1), DEADLOCK, FREE),
    "K24": _in_network(ring(4, 3, 1), DEADLOCK, DEADLOCK),
    "K25": _in_network(ring(5, 3, 1), DEADLOCK, DEADLOCK),
    "K26": _in_network(ring(8, 2, 1), DEADLOCK, FREE),
    "K27": _in_network(ring(3, 2, 2), DEADLOCK, DEADLOCK),
    "K28, 9.9G": _in_network(_slow(ring(3, 2, 2), 9.9), FREE, FREE, duration_ms=LONG_MS),
    "K28, 10.2G": _in_network(_slow(ring(3, 2, 2), 10.2), DEADLOCK, DEADLOCK, duration_ms=LONG_MS),
    "K29, 2 hops": _in_network(ring(4, 2, 2), DEADLOCK, DEADLOCK),
    "K29, 3 hops": _in_network(ring(4, 3, 2), DEADLOCK, DEADLOCK),
    **{
        f"K30, {xoff // 1000} KB": _in_network(ring(3, 2, 1), DEADLOCK, FREE, xoff=xoff, xon=xoff - 2_000)
        for xoff in (20_000, 100_000, 400_000)
    },
    "K50": _in_network(square(), FREE, FREE),
    "K51": _in_network(square(40), DEADLOCK, FREE),
    "K52": _in_network(square(10), DEADLOCK, FREE),
    **{f"K53, {f3}G": _in_network(square(f3), EITHER, FREE) for f3 in (1, 2, 4)},
    "K60": _in_network(clos(bounced=True), DEADLOCK, FREE),
    "K70": _in_network(clos(bounced=False), FREE, FREE),
}
"""Number of the case, and what tells its runs apart."""
