"""`Schedule`: the order in which the stages of a pipeline run their passes, and what that order costs.

A pass is the forward (F) or backward (B) of one micro-batch through one chunk of layers; a backward may
be split into that of the input (I), which the stage before waits for, and that of the weights (W), which
nobody waits for. A stage runs its list in order. A pass waits for its own stage and for the neighbour's
result; a B or I on the last chunk waits for its own F; sending costs the sender nothing. Two passes in
one slot are run together (DualPipe's pair of a forward and a backward, two batches that overlap).

Chunks of the model are numbered along it: position = chunk * p + stage. Under DualPipe every stage holds two
positions, r and p - 1 - r, and half of the micro-batches goes each way, with numbers of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from fabric.errors import SpecError

__all__ = ["PassTimes", "Passage", "Schedule", "Timeline", "execute"]


class Passage(NamedTuple):
    """A pass: its kind ("F", "B", "I" or "W"), position in the model, and micro-batch."""

    kind: str
    position: int
    micro_batch: int


@dataclass(frozen=True, kw_only=True)
class PassTimes:
    """How long passes of one chunk take, in any unit.

    Attributes
    ----------
    forward, backward : float
    weight : float
        The part of `backward` that computes gradients of weights.
    pair : float, optional
        A forward and a backward together; their sum unless given.
    """

    forward: float = 1.0
    backward: float = 2.0
    weight: float = 1.0
    pair: float | None = None

    def of(self, slot: tuple[Passage, ...]) -> float:
        """Return the time of what runs in one slot."""
        each = {
            "F": self.forward,
            "B": self.backward,
            "I": self.backward - self.weight,
            "W": self.weight,
        }
        if self.pair is not None and [one.kind for one in slot] == ["F", "B"]:
            return self.pair
        return sum(each[one.kind] for one in slot)


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Passes of every stage in order.

    Attributes
    ----------
    name : str
    stages, micro_batches, chunks : int
        p; m of the pipeline and step; v positions on each stage.
    slots : tuple of tuple of tuple of Passage
        By stage, in order.
    """

    name: str
    stages: int
    micro_batches: int
    chunks: int
    slots: tuple[tuple[tuple[Passage, ...], ...], ...]

    def passes(self, stage: int) -> Iterator[Passage]:
        """Yield the passes of a stage in order."""
        for slot in self.slots[stage]:
            yield from slot

    def text(self, stage: int) -> str:
        """Return the order of a stage, as "F0 F1 B0"; positions, if there are several, behind a dot.

        Examples
        --------
        >>> from fabric.training.schedules import build_schedule
        >>> build_schedule("1f1b", stages=2, micro_batches=3).text(0)
        'F0 F1 B0 F2 B1 B2'
        """
        several = self.chunks > 1
        return " ".join(
            "".join(f"{one.kind}{one.micro_batch}{f'.{one.position}' if several else ''}" for one in slot)
            for slot in self.slots[stage]
        )

    @property
    def last_position(self) -> int:
        """Position of the last chunk of the model."""
        return max(one.position for stage in range(self.stages) for one in self.passes(stage))

    def alive(self, stage: int) -> int:
        """Return the most activations (micro-batches times chunks) that a stage keeps at one time.

        They live from their forward to the end of their backward, that of the weights included.
        """
        kept = most = 0
        for one in self.passes(stage):
            kept += {"F": 1, "B": -1, "I": 0, "W": -1}[one.kind]
            most = max(most, kept)
        return most

    def verify(self) -> Schedule:
        """Return itself, every forward being there once with its backward after it.

        Raises
        ------
        SpecError
            Naming the first stage and pass that is wrong.
        """
        seen: set[tuple[str, int, int]] = set()
        needs = {"F": "", "B": "F", "I": "F", "W": "I"}
        for stage in range(self.stages):
            for one in self.passes(stage):
                before = needs[one.kind]
                if one in seen or (before and (before, *one[1:]) not in seen):
                    why = f"once, and after {before or 'nothing'} of the same micro-batch"
                    raise SpecError(f"schedule[{stage}]", "".join(map(str, one)), why)
                seen.add(one)
        forwards = {one[1:] for one in seen if one[0] == "F"}
        whole = {one[1:] for one in seen if one[0] == "B"}
        split = {one[1:] for one in seen if one[0] == "W"}
        inputs = {one[1:] for one in seen if one[0] == "I"}
        if inputs != split or whole & split or whole | split != forwards or len(forwards) * 2 > len(seen):
            raise SpecError("schedule", self.name, "one backward of every forward")
        return self


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """When everything happens on an ideal network.

    Attributes
    ----------
    makespan : float
    busy : tuple of float
        Time that each stage computes.
    begin, end : tuple of tuple of float
        Of every slot of every stage.
    messages : int
        Results that cross from stage to stage.
    """

    makespan: float
    busy: tuple[float, ...]
    begin: tuple[tuple[float, ...], ...]
    end: tuple[tuple[float, ...], ...]
    messages: int

    @property
    def idle(self) -> tuple[float, ...]:
        """Time in which each stage does not compute."""
        return tuple(self.makespan - busy for busy in self.busy)

    @property
    def bubble(self) -> float:
        """Time in which the stage that computes most does not."""
        return min(self.idle)


def execute(
    schedule: Schedule,
    times: PassTimes | None = None,
    *,
    delay: float = 0.0,
    slowness: tuple[float, ...] | None = None,
) -> Timeline:
    """Run a schedule on an ideal network.

    Parameters
    ----------
    schedule : Schedule
    times : PassTimes, optional
        Of one chunk.
    delay : float
        Of every message.
    slowness : tuple of float, optional
        Factor of every stage's times.

    Raises
    ------
    SpecError
        If stages wait for each other for ever, naming the first that does and its pass.

    Examples
    --------
    >>> from fabric.training.schedules import build_schedule
    >>> execute(build_schedule("1f1b", stages=4, micro_batches=8)).makespan
    33.0
    """
    times = times or PassTimes()
    factors = slowness or (1.0,) * schedule.stages
    if len(factors) != schedule.stages:
        raise SpecError("slowness", len(factors), f"a factor for each of {schedule.stages} stages")
    last = schedule.last_position
    home = {one[1:]: stage for stage in range(schedule.stages) for one in schedule.passes(stage)}
    done: dict[tuple[str, int, int], float] = {}
    begin: list[list[float]] = [[] for _ in range(schedule.stages)]
    end: list[list[float]] = [[] for _ in range(schedule.stages)]
    messages = 0
    moved = True
    while moved:
        moved = False
        for stage, slots in enumerate(schedule.slots):
            while len(end[stage]) < len(slots):
                slot = slots[len(end[stage])]
                inputs = [found for one in slot for found in _needs(one, last)]
                if any(one not in done for one in inputs):
                    break
                crossing = [home[one[1:]] != stage for one in inputs]
                arrivals = [done[one] + delay * across for one, across in zip(inputs, crossing, strict=True)]
                messages += sum(crossing)
                begin[stage].append(max([*arrivals, end[stage][-1] if end[stage] else 0.0]))
                end[stage].append(begin[stage][-1] + times.of(slot) * factors[stage])
                for one in slot:
                    done["B" if one.kind == "I" else one.kind, one.position, one.micro_batch] = end[stage][-1]
                moved = True
    _refuse_stuck(schedule, end)
    busy = tuple(
        sum(times.of(slot) * factors[stage] for slot in slots) for stage, slots in enumerate(schedule.slots)
    )
    return Timeline(
        makespan=max((each[-1] for each in end if each), default=0.0),
        busy=busy,
        begin=tuple(map(tuple, begin)),
        end=tuple(map(tuple, end)),
        messages=messages,
    )


def _needs(one: Passage, last: int) -> list[tuple[str, int, int]]:
    """What must have been done, elsewhere or here, before a pass."""
    kind, position, micro_batch = one
    if kind == "F":
        return [("F", position - 1, micro_batch)] if position else []
    if kind == "W":
        return [("B", position, micro_batch)]
    own = ("F", position, micro_batch)
    return [own] if position == last else [own, ("B", position + 1, micro_batch)]


def _refuse_stuck(schedule: Schedule, end: list[list[float]]) -> None:
    for stage, slots in enumerate(schedule.slots):
        if len(end[stage]) < len(slots):
            waiting = slots[len(end[stage])][0]
            raise SpecError(
                f"schedule[{stage}]",
                f"{waiting.kind} of micro-batch {waiting.micro_batch} at {waiting.position}",
                "an order in which what a pass waits for is run",
            )
