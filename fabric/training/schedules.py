"""Pipeline schedules by name, and the closed forms of their bubbles.

=============  ==========================  ========================================================
name           bubble                      source
=============  ==========================  ========================================================
gpipe          (p-1)(F+B)                  arXiv 1811.06965
1f1b           (p-1)(F+B)                  arXiv 2006.09503; Megatron-LM `pipeline_parallel/schedules.py`
interleaved    (p-1)(F+B)/v                arXiv 2104.04473; the same file
zb1p           (p-1)(F+B-2W)               arXiv 2401.10241 (ZB-H1)
dualpipe       (p/2-1)(F&B+B-3W)           arXiv 2412.19437; github.com/deepseek-ai/DualPipe
=============  ==========================  ========================================================

F, B and W are the times of one stage and micro-batch: forward, whole backward, its weight part; F&B is a
forward and a backward run together. The forms hold for equal stages and free messages. The two last ones
are published for F = B - W = W and enough micro-batches (m >= p; DualPipe: m >= 2p); with I = B - W they are
exact as

=============  ====================================================  ==============================
zb1p           (p-1)(F+B-2W + max(0, W-min(F,I)))
dualpipe       (p/2-1)(F&B+B-3W) + max((p/2-1)(F-I), -F)             for W <= I; else at least that
=============  ====================================================  ==============================

A weight pass longer than what it fills in for delays the next pass; under DualPipe a forward that is longer
than I sets the pace of the way in, a shorter one lets the backwards catch up, by one forward at most.
DualPipe's is the idle time of the two stages in the middle: the others run fewer pairs, so where a pair is
shorter than its two passes they compute for longer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace

from fabric.errors import SpecError
from fabric.training.schedule import Passage, PassTimes, Schedule

__all__ = ["SCHEDULES", "bubble_time", "build_schedule", "two_batches"]

Slots = list[tuple[Passage, ...]]


def build_schedule(name: str, *, stages: int, micro_batches: int, chunks: int = 1) -> Schedule:
    """Return a schedule.

    Parameters
    ----------
    name : str
        Key of `SCHEDULES`.
    stages, micro_batches : int
        p and m.
    chunks : int
        v, of an interleaved schedule.

    Raises
    ------
    SpecError
        If there is none of that name, or it cannot run that many micro-batches.

    Examples
    --------
    >>> build_schedule("interleaved", stages=2, micro_batches=2, chunks=2).text(1)
    'F0.1 F1.1 F0.3 B0.3 F1.3 B1.3 B0.1 B1.1'
    """
    if name not in SCHEDULES:
        raise SpecError("schedule", name, f"one of {', '.join(SCHEDULES)}")
    for what, value in (("stages", stages), ("micro_batches", micro_batches), ("chunks", chunks)):
        if value < 1:
            raise SpecError(f"schedule.{what}", value, "at least 1")
    if chunks > 1 and name != "interleaved":
        raise SpecError("schedule.chunks", chunks, f"1 for {name}; interleaved has several")
    if name == "interleaved" and micro_batches % stages:
        raise SpecError("schedule.micro_batches", micro_batches, f"a multiple of the {stages} stages")
    if name == "dualpipe" and stages % 2:
        raise SpecError("schedule.stages", stages, "an even number for dualpipe")
    if name == "dualpipe" and (micro_batches % 2 or micro_batches < 2 * stages):
        raise SpecError("schedule.micro_batches", micro_batches, f"an even number of at least {2 * stages}")
    make = SCHEDULES[name]
    slots = tuple(tuple(make(stage, stages, micro_batches, chunks)) for stage in range(stages))
    held = 2 if name == "dualpipe" else chunks
    return Schedule(name=name, stages=stages, micro_batches=micro_batches, chunks=held, slots=slots).verify()


def bubble_time(name: str, *, stages: int, times: PassTimes, chunks: int = 1) -> float:
    """Return the closed form of a schedule's bubble: the idle time of the stage that has most of it.

    Parameters
    ----------
    name, stages, chunks
        As of `build_schedule`.
    times : PassTimes
        Of a whole stage.

    Raises
    ------
    SpecError
        If there is no such schedule.

    Examples
    --------
    >>> bubble_time("interleaved", stages=16, chunks=2, times=PassTimes(forward=1, backward=2))
    22.5
    """
    if name not in SCHEDULES:
        raise SpecError("schedule", name, f"one of {', '.join(SCHEDULES)}")
    forward, backward, weight = times.forward, times.backward, times.weight
    both, inputs = forward + backward, backward - weight
    if name == "dualpipe":
        pair = both if times.pair is None else times.pair
        ways = stages / 2 - 1
        return ways * (pair + backward - 3 * weight) + max(ways * (forward - inputs), -forward)
    if name == "zb1p":
        return (stages - 1) * (both - 2 * weight + max(0.0, weight - min(forward, inputs)))
    return (stages - 1) * both / chunks


def two_batches(name: str, *, stages: int, micro_batches: int, chunks: int = 1) -> Schedule:
    """Return a schedule whose slots have the same pass of two micro-batches each, one after the other.

    In a slot each communicates while the other computes (two-batch overlap, as of DeepSeek-V3's inference,
    arXiv 2412.19437, section 3.4; SGLang and vLLM have it under this name and as "dual batch overlap").

    Parameters
    ----------
    name, stages, micro_batches, chunks
        As of `build_schedule`.

    Raises
    ------
    SpecError
        If micro-batches cannot be paired, or passes are paired already, as with "dualpipe".

    Examples
    --------
    >>> two_batches("1f1b", stages=2, micro_batches=4).text(0)
    'F0F1 F2F3 B0B1 B2B3'
    """
    if name == "dualpipe":
        raise SpecError(
            "two_batch_overlap", True, "false with dualpipe, which overlaps passes in pairs of its own"
        )
    if micro_batches % 2:
        raise SpecError(
            "two_batch_overlap", True, f"false for an odd number of micro-batches, {micro_batches}"
        )
    half = build_schedule(name, stages=stages, micro_batches=micro_batches // 2, chunks=chunks)
    slots = tuple(
        tuple(
            tuple(one._replace(micro_batch=2 * one.micro_batch + which) for one in slot for which in (0, 1))
            for slot in of_stage
        )
        for of_stage in half.slots
    )
    return replace(half, micro_batches=micro_batches, slots=slots).verify()


def _gpipe(stage: int, p: int, m: int, v: int) -> Slots:
    forwards: Slots = [(Passage("F", stage, micro),) for micro in range(m)]
    return forwards + [(Passage("B", stage, micro),) for micro in range(m)]


def _one_forward_one_backward(stage: int, p: int, m: int, v: int) -> Slots:
    warm_up = min(p - stage - 1, m)
    return _paired(
        [Passage("F", stage, micro) for micro in range(m)],
        [Passage("B", stage, micro) for micro in range(m)],
        warm_up,
    )


def _paired(forwards: list[Passage], backwards: list[Passage], warm_up: int) -> Slots:
    """Forwards of the warm-up, then a forward and a backward in turn, then what backwards are left."""
    steady = len(forwards) - warm_up
    slots: Slots = [(one,) for one in forwards[:warm_up]]
    for forward, backward in zip(forwards[warm_up:], backwards[:steady], strict=True):
        slots += [(forward,), (backward,)]
    return slots + [(one,) for one in backwards[steady:]]


def _interleaved(stage: int, p: int, m: int, v: int) -> Slots:
    """Groups of p micro-batches go through the chunks one after the other; backwards in reverse."""
    turn = [
        (chunk, micro) for first in range(0, m, p) for chunk in range(v) for micro in range(first, first + p)
    ]
    forwards = [Passage("F", chunk * p + stage, micro) for chunk, micro in turn]
    backwards = [Passage("B", (v - 1 - chunk) * p + stage, micro) for chunk, micro in turn]
    if v == 1:
        return _paired(forwards, backwards, min(p - stage - 1, m))
    return _paired(forwards, backwards, min(2 * (p - stage - 1) + (v - 1) * p, m * v))


def _zero_bubble(stage: int, p: int, m: int, v: int) -> Slots:
    """1F1B with split backwards; stage r keeps r weight passes back, to fill its end with."""
    slots: Slots = []
    weights: deque[Passage] = deque()
    for slot in _one_forward_one_backward(stage, p, m, v):
        (one,) = slot
        if one.kind == "F":
            slots.append(slot)
            continue
        slots.append((one._replace(kind="I"),))
        weights.append(one._replace(kind="W"))
        if len(weights) > stage:
            slots.append((weights.popleft(),))
    return slots + [(one,) for one in weights]


class _DualPipeStage:
    """Builds the order of one rank. Direction 0 is the one whose micro-batches reach the rank first."""

    def __init__(self, stage: int, p: int, m: int) -> None:
        mirrored = int(stage >= p // 2)
        self.position = [stage, p - 1 - stage] if not mirrored else [p - 1 - stage, stage]
        self.first = [mirrored * (m // 2), (1 - mirrored) * (m // 2)]
        self.count = {"F": [0, 0], "B": [0, 0]}
        self.weights: deque[Passage] = deque()
        self.slots: Slots = []

    def next(self, kind: str, direction: int) -> Passage:
        micro = self.first[direction] + self.count[kind][direction]
        self.count[kind][direction] += 1
        return Passage(kind, self.position[direction], micro)

    def forward(self, direction: int) -> None:
        self.slots.append((self.next("F", direction),))

    def backward(self, direction: int, *, split: bool = False) -> None:
        one = self.next("B", direction)
        self.slots.append((one._replace(kind="I") if split else one,))
        if split:
            self.weights.append(one._replace(kind="W"))

    def pair(self, forward: int, backward: int) -> None:
        self.slots.append((self.next("F", forward), self.next("B", backward)))

    def weight(self) -> None:
        self.slots.append((self.weights.popleft(),))


def _dualpipe(stage: int, p: int, m: int, v: int) -> Slots:
    """The eight phases of the published implementation."""
    one = _DualPipeStage(stage, p, m)
    half = min(stage, p - 1 - stage)
    ahead = p // 2 - half - 1
    for _ in range(2 * ahead):
        one.forward(0)
    for _ in range(half + 1):
        one.forward(0)
        one.forward(1)
    for _ in range(ahead):
        one.backward(1, split=True)
        one.weight()
        one.forward(1)
    for turn in range(m // 2 - p + half + 1):
        if turn == 0 and ahead == 0:
            one.forward(0)
            one.backward(1)
        else:
            one.pair(0, 1)
        one.pair(1, 0)
    for _ in range(ahead):
        one.backward(1)
        one.pair(1, 0)
    split = False
    for turn in range(half + 1):
        split = split or (turn == (half + 1) // 2 and half % 2 == 1)
        one.backward(1, split=split)
        split = split or (turn == (half + 1) // 2 and half % 2 == 0)
        one.backward(0, split=split)
    for _ in range(ahead):
        one.weight()
        one.backward(0, split=True)
    for _ in range(half + 1):
        one.weight()
    return one.slots


SCHEDULES: dict[str, Callable[[int, int, int, int], Slots]] = {
    "gpipe": _gpipe,
    "1f1b": _one_forward_one_backward,
    "interleaved": _interleaved,
    "zb1p": _zero_bubble,
    "dualpipe": _dualpipe,
}
"""Functions of stage, p, m and v."""
