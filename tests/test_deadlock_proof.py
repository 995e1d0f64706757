"""What the static check proves holds in runs: routes without a cycle never deadlock, at any threshold tried.

Random streams along random simple paths of random networks, all at line rate, run until nothing is left to
happen; bytes that then wait in switches are a deadlock. The other way round there is no claim: a cycle is
necessary and not sufficient.
"""

from __future__ import annotations

import numpy as np
import pytest
from support_deadlock import Setting, Stream, judge
from test_deadlock_check import pinned

from fabric.analysis.deadlock import check_deadlock


def random_streams(seed: int) -> tuple[list[tuple[str, str]], list[Stream]]:
    """3 to 6 switches in a ring with chords, and 2 to 9 streams along self-avoiding walks."""
    random = np.random.default_rng(seed)
    n = int(random.integers(3, 7))
    cables = {tuple(sorted((k, (k + 1) % n))) for k in range(n)}
    for _ in range(int(random.integers(0, 4))):
        cables.add(tuple(sorted(random.choice(n, 2, replace=False).tolist())))
    beside: dict[int, list[int]] = {k: [] for k in range(n)}
    for a, b in sorted(cables):
        beside[a].append(b)
        beside[b].append(a)
    streams = []
    for number in range(int(random.integers(2, 10))):
        path = [int(random.integers(n))]
        for _ in range(int(random.integers(1, 4))):
            onwards = [each for each in beside[path[-1]] if each not in path]
            if onwards:
                path.append(int(random.choice(onwards)))
        streams.append(Stream(str(number), [f"s{each}" for each in path]))
    return [(f"s{a}", f"s{b}") for a, b in sorted(cables)], streams


@pytest.mark.parametrize("arbiter", ["fifo", "round_robin"])
def test_no_cycle_no_deadlock(arbiter: str) -> None:
    counts = {(can, dead): 0 for can in (False, True) for dead in (False, True)}
    for seed in range(150):
        cables, streams = random_streams(seed)
        routes, demands = pinned(cables, streams)
        can = check_deadlock(routes, demands=demands).can_deadlock
        xoff = (4_000, 12_000, 40_000)[seed % 3]
        setting = Setting(xoff=xoff, xon=xoff // 2, duration_ms=1, seed=seed)
        dead = judge(cables, streams, arbiter=arbiter, setting=setting).deadlock
        counts[can, dead] += 1
        assert can or not dead, (seed, streams)
    assert counts[False, False] > 20
    assert counts[True, True] > 5
    assert counts[True, False] > 5
