"""Orders of micro-batches as published, bubbles in closed form, and no order that waits for itself."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.errors import SpecError
from fabric.training import (
    SCHEDULES,
    Passage,
    PassTimes,
    Schedule,
    bubble_time,
    build_schedule,
    execute,
    two_batches,
)

WHOLE = PassTimes(forward=1, backward=2, weight=1, pair=3)
HALF = PassTimes(forward=0.5, backward=1, weight=0.5)


def made(name: str, *, p: int, m: int, v: int = 1) -> Schedule:
    return build_schedule(name, stages=p, micro_batches=m, chunks=v)


@pytest.mark.parametrize(
    ("name", "v", "bubble", "messages"),
    [
        ("gpipe", 1, 45, 1920),
        ("1f1b", 1, 45, 1920),
        ("interleaved", 2, 22.5, 3968),
        ("zb1p", 1, 15, 1920),
        ("dualpipe", 1, 14, 1920),
    ],
)
def test_sixteen_stages_sixty_four_micro_batches(name: str, v: int, bubble: float, messages: int) -> None:
    line = execute(made(name, p=16, m=64, v=v), HALF if v == 2 else WHOLE)
    assert line.bubble == bubble == bubble_time(name, stages=16, times=WHOLE, chunks=v)
    assert line.messages == messages
    if name == "1f1b":
        assert (line.bubble / max(line.busy), line.bubble / line.makespan) == (15 / 64, 15 / 79)


@pytest.mark.parametrize(
    ("delay", "one", "all_first", "chunks"), [(0.0, 33.0, 33.0, 28.5), (0.25, 37.0, 34.5, 32.0)]
)
def test_makespans_of_four_stages(delay: float, one: float, all_first: float, chunks: float) -> None:
    assert execute(made("1f1b", p=4, m=8), delay=delay).makespan == one
    assert execute(made("gpipe", p=4, m=8), delay=delay).makespan == all_first
    assert execute(made("interleaved", p=4, m=8, v=2), HALF, delay=delay).makespan == chunks


@pytest.mark.parametrize(("stage", "one", "all_first"), [(0, 40.5, 45.0), (3, 45.0, 45.0)])
def test_a_slow_stage(stage: int, one: float, all_first: float) -> None:
    slowness = tuple(1.5 if each == stage else 1.0 for each in range(4))
    assert execute(made("1f1b", p=4, m=8), slowness=slowness).makespan == one
    assert execute(made("gpipe", p=4, m=8), slowness=slowness).makespan == all_first


def warm_up(schedule: Schedule, stage: int) -> int:
    """Forwards before the first slot whose next one is a backward, which belongs to the steady state."""
    kinds = [slot[0].kind for slot in schedule.slots[stage]]
    return kinds.index("B") - 1


def test_forwards_of_the_warm_up() -> None:
    one = made("1f1b", p=4, m=8)
    assert [warm_up(one, stage) for stage in range(4)] == [3, 2, 1, 0]
    two = made("interleaved", p=4, m=8, v=2)
    assert [warm_up(two, stage) for stage in range(4)] == [10, 8, 6, 4]


def test_orders() -> None:
    assert made("gpipe", p=2, m=2).text(1) == "F0 F1 B0 B1"
    assert made("1f1b", p=4, m=5).text(2) == "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4"
    assert made("zb1p", p=3, m=4).text(2) == "F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3"
    assert made("interleaved", p=2, m=4, v=2).text(0) == (
        "F0.0 F1.0 F0.2 F1.2 F2.0 B0.2 F3.0 B1.2 F2.2 B0.0 F3.2 B1.0 B2.2 B3.2 B2.0 B3.0"
    )
    assert made("dualpipe", p=2, m=4).text(0) == "F0.0 F2.1 F1.0 B2.1 F3.1B0.0 B3.1 I1.0 W1.0"


@pytest.mark.slow
@pytest.mark.parametrize("p", range(1, 17))
def test_no_order_waits_for_itself_and_bubbles_are_as_stated(p: int) -> None:
    """Every number of stages up to 16, of micro-batches up to 64, of chunks up to 4."""
    for m in range(1, 65):
        for name in ("gpipe", "1f1b", "zb1p"):
            line = execute(made(name, p=p, m=m))
            assert line.messages == 2 * (p - 1) * m
            if name != "zb1p" or m >= p:
                assert line.bubble == bubble_time(name, stages=p, times=WHOLE), (name, m)
        if m % p == 0:
            for v in (1, 2, 3, 4):
                line = execute(made("interleaved", p=p, m=m, v=v))
                assert line.messages == (2 * (p * v - 1) * m if p > 1 else 0)
                closed = bubble_time("interleaved", stages=p, times=WHOLE, chunks=v) * v
                assert line.bubble == closed, (m, v)
        if p % 2 == 0 and m % 2 == 0 and m >= 2 * p:
            line = execute(made("dualpipe", p=p, m=m), WHOLE)
            assert line.bubble == bubble_time("dualpipe", stages=p, times=WHOLE), m
            assert line.messages == 2 * (p - 1) * m


DURATIONS = st.integers(1, 40)


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 12), st.integers(0, 8), DURATIONS, DURATIONS, DURATIONS)
def test_zero_bubble_is_exact_for_any_times(p: int, more: int, f: int, i: int, w: int) -> None:
    """Published is (p-1)(F+B-2W): for a weight pass that fits in where others would wait."""
    times = PassTimes(forward=f, backward=i + w, weight=w)
    closed = bubble_time("zb1p", stages=p, times=times)
    assert execute(made("zb1p", p=p, m=p + more), times).bubble == closed
    if w <= min(f, i):
        assert closed == (p - 1) * (f + i + w - 2 * w)


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 6), st.integers(0, 6), DURATIONS, DURATIONS, DURATIONS, st.integers(0, 39))
def test_dualpipe_is_exact_for_any_times(half: int, more: int, f: int, i: int, w: int, won: int) -> None:
    """Published is (p/2-1)(F&B+B-3W): for a forward as long as the input part of a backward.

    It is the idle time of the middle stages. Others have fewer pairs, and so less of what these win.
    """
    p, m = 2 * half, 4 * half + 2 * more
    pair = f + i + w - won % min(f, i + w)
    times = PassTimes(forward=f, backward=i + w, weight=w, pair=pair)
    schedule = made("dualpipe", p=p, m=m)
    line, closed = execute(schedule, times), bubble_time("dualpipe", stages=p, times=times)
    middle = line.idle[half - 1]
    assert middle == line.idle[half] == max(line.idle) >= closed
    if w <= i:
        assert middle == closed
        if f == i:
            assert middle == (p / 2 - 1) * (pair + i + w - 3 * w)
    pairs = [sum(len(slot) == 2 for slot in slots) for slots in schedule.slots]
    for stage, idle in enumerate(line.idle):
        assert middle - idle == (pairs[half] - pairs[stage]) * (f + i + w - pair)


@pytest.mark.parametrize("m", [1, 2, 5, 16])
def test_activations_alive(m: int) -> None:
    assert [made("gpipe", p=4, m=m).alive(stage) for stage in range(4)] == [m] * 4
    assert [made("1f1b", p=4, m=m).alive(stage) for stage in range(4)] == [min(4 - r, m) for r in range(4)]


def test_zero_bubble_needs_no_more_memory_than_the_first_stage_of_1f1b() -> None:
    assert [made("zb1p", p=4, m=8).alive(stage) for stage in range(4)] == [4] * 4
    assert [made("dualpipe", p=8, m=16).alive(stage) for stage in range(8)] == [9] * 8


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("2f2b", {"p": 2, "m": 2}),
        ("1f1b", {"p": 0, "m": 2}),
        ("1f1b", {"p": 2, "m": 0}),
        ("1f1b", {"p": 2, "m": 2, "v": 2}),
        ("interleaved", {"p": 2, "m": 3, "v": 2}),
        ("dualpipe", {"p": 3, "m": 8}),
        ("dualpipe", {"p": 4, "m": 7}),
        ("dualpipe", {"p": 4, "m": 6}),
    ],
)
def test_schedules_that_are_none(name: str, given: dict[str, int]) -> None:
    with pytest.raises(SpecError, match="schedule"):
        made(name, **given)
    if name not in SCHEDULES:
        with pytest.raises(SpecError):
            bubble_time(name, stages=2, times=WHOLE)


def test_an_order_that_waits_for_itself_is_named() -> None:
    one, last = made("gpipe", p=1, m=2).slots[0], made("1f1b", p=2, m=2).slots[1]
    twisted = Schedule(
        name="twisted",
        stages=2,
        micro_batches=2,
        chunks=1,
        slots=((one[0], one[2], one[1], one[3]), last[2:] + last[:2]),
    )
    with pytest.raises(SpecError, match=r"schedule\[0\].*B of micro-batch 0"):
        execute(twisted.verify())


@pytest.mark.parametrize(
    "passes",
    [
        [Passage("F", 0, 0)],
        [Passage("B", 0, 0), Passage("F", 0, 0)],
        [Passage("F", 0, 0), Passage("F", 0, 0)],
        [Passage("F", 0, 0), Passage("I", 0, 0)],
        [Passage("F", 0, 0), Passage("I", 0, 0), Passage("B", 0, 0)],
        [Passage("F", 0, 0), Passage("I", 0, 0), Passage("W", 0, 0), Passage("B", 0, 0)],
    ],
)
def test_lists_that_are_no_schedule(passes: list[Passage]) -> None:
    slots = (tuple((one,) for one in passes),)
    with pytest.raises(SpecError):
        Schedule(name="wrong", stages=1, micro_batches=1, chunks=1, slots=slots).verify()


def test_slowness_of_every_stage() -> None:
    with pytest.raises(SpecError, match="slowness"):
        execute(made("1f1b", p=2, m=2), slowness=(1.0,))


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "interleaved", "zb1p"])
def test_two_batches_in_a_slot(name: str) -> None:
    """The schedule of half as many micro-batches, each twice as long."""
    v = 2 if name == "interleaved" else 1
    single = made(name, p=4, m=8, v=v)
    double = two_batches(name, stages=4, micro_batches=16, chunks=v)
    assert double.micro_batches == 16
    assert [[slot[0].kind for slot in slots] for slots in double.slots] == [
        [slot[0].kind for slot in slots] for slots in single.slots
    ]
    pairs = {(slot[0].micro_batch, slot[1].micro_batch) for slots in double.slots for slot in slots}
    assert pairs == {(even, even + 1) for even in range(0, 16, 2)}
    assert execute(double, WHOLE).makespan == 2 * execute(single, WHOLE).makespan
    assert execute(double, WHOLE).messages == 2 * execute(single, WHOLE).messages


@pytest.mark.parametrize(("name", "m", "words"), [("1f1b", 3, "odd"), ("dualpipe", 16, "dualpipe")])
def test_batches_that_cannot_overlap(name: str, m: int, words: str) -> None:
    with pytest.raises(SpecError, match=f"two_batch_overlap.*{words}"):
        two_batches(name, stages=4, micro_batches=m)
