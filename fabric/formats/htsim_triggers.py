"""Triggers of htsim's connection matrices as dependencies of flows.

A flow that is sent (`send_done_trigger`) or received (`recv_done_trigger`) activates a trigger, and a
trigger starts flows: `oneshot` all of them at once, `barrier` all at its n-th activation, `multishot` the
next one at each activation. The flows that it starts wait for the flow that activates it, or (barrier)
for all that do. What waits for the first of several flows, or for some of them, is no dependency and is
refused; so is a trigger that is activated too seldom to start what waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fabric.errors import Said, SpecError
from fabric.formats.data import FailedLink
from fabric.formats.words import place, whole

__all__ = ["Matrix", "MatrixFlow", "MatrixTrigger", "MatrixWait", "moved_starts", "waits_of_triggers"]

MOST = 2**31


@dataclass
class MatrixFlow:
    """A line of a flow: its ends, and its other words by their key."""

    line: int
    source: int
    destination: int
    words: dict[str, str]


@dataclass
class MatrixTrigger:
    """A line of a trigger, and which flows activate it."""

    line: int
    kind: str
    count: int = 0
    by: list[int] = field(default_factory=list)
    """Flows that activate it."""


@dataclass(frozen=True)
class MatrixWait:
    """Flow `flow` starts when flow `before` is over, as its source (`sent`) or its destination knows it."""

    flow: int
    before: int
    sent: bool


@dataclass
class Matrix:
    """The lines of a connection matrix."""

    name: str
    header: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Value and line of each count."""
    flows: list[MatrixFlow] = field(default_factory=list)
    triggers: dict[int, MatrixTrigger] = field(default_factory=dict)
    failures: list[FailedLink] = field(default_factory=list)
    last_line: int = 1

    def where(self, line: int, what: str = "") -> str:
        return place(self.name, line, what)


def waits_of_triggers(matrix: Matrix) -> list[tuple[int, list[int]]]:
    """For each flow that a trigger starts, the flows that it waits for."""
    started: list[tuple[int, int]] = []
    for number, flow in enumerate(matrix.flows):
        for key in ("trigger", "send_done_trigger", "recv_done_trigger"):
            if key not in flow.words:
                continue
            where = matrix.where(flow.line, key)
            trigger = whole(flow.words[key], where=where, low=1, high=MOST)
            if trigger not in matrix.triggers:
                raise SpecError(where, trigger, "the id of a trigger of this file")
            if key == "trigger":
                started.append((number, trigger))
            else:
                matrix.triggers[trigger].by.append(number)
    members: dict[int, int] = {}
    for _, trigger in started:
        members[trigger] = members.get(trigger, 0) + 1
    for trigger, flows in members.items():
        _check_activation(matrix, trigger, flows)
    return [(number, sorted(set(matrix.triggers[trigger].by))) for number, trigger in started]


def _check_activation(matrix: Matrix, number: int, flows: int) -> None:
    trigger = matrix.triggers[number]
    by = len(trigger.by)
    needed = trigger.count if trigger.kind == "barrier" else 1
    where = matrix.where(trigger.line, f"trigger {number}")
    if by < needed or (trigger.kind == "multishot" and by < flows):
        needed = max(needed, flows if trigger.kind == "multishot" else 0)
        allowed = f"{needed} activations, or the flows that wait for it never start"
        raise SpecError(where, Said(f"activated {by} times"), allowed)
    if by > needed:
        allowed = "as many activations as it needs: the first of several flows cannot be waited for"
        raise SpecError(where, Said(f"{trigger.kind} activated {by} times"), allowed)


def places_of_waits(matrix: Matrix, waits: list[tuple[int, list[int]]]) -> list[MatrixWait]:
    """Waits one by one; where both ends of a flow activate a trigger, its destination counts."""
    found = []
    for number, before in waits:
        trigger = matrix.flows[number].words["trigger"]
        for each in before:
            received = matrix.flows[each].words.get("recv_done_trigger") == trigger
            found.append(MatrixWait(number, each, not received))
    return found


def moved_starts(matrix: Matrix, waits: list[tuple[int, list[int]]]) -> list[int]:
    """Lines of flows that do not start at the instant that the file says."""
    lines = []
    for number, before in waits:
        flow = matrix.flows[number]
        trigger = flow.words["trigger"]
        for each in before:
            other = matrix.flows[each]
            sent = other.words.get("send_done_trigger") == trigger
            at = other.source if sent else other.destination
            if at != flow.source or (sent and other.destination == flow.source):
                lines.append(flow.line)
                break
    return lines
