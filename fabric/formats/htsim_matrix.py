"""`.cm` of htsim: a connection matrix, flows with starts or triggers.

A header (`Nodes n`, `Connections n`, and where there are any `Triggers n`, `Failures n`), then lines

    src->dst [id i] (start t | trigger j) size bytes [prio p] [send_done_trigger j] [recv_done_trigger j]
    trigger id j (oneshot | multishot | barrier count n)
    failure switch_type TOR|AGG|CORE switch_id s link_id l

in any order. A trigger becomes a dependency: the flows that it starts wait for the flow that activates
it, or (barrier) for all that do. What waits for the first of several flows, or for some of them, is no
dependency and is refused. `start` has no unit of its own: csg-htsim reads picoseconds, programs of
uet-htsim read microseconds. Sizes may exceed 2^31 and starts are exact, unlike there.

Sources: github.com/Broadcom/csg-htsim and github.com/ultraethernet/uet-htsim,
`sim/datacenter/connection_matrix.cpp`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np

from fabric.errors import SpecError
from fabric.formats.data import FlowData, Remark
from fabric.formats.words import LONGEST_NUMBER, Said, place, read_text, whole
from fabric.units import LARGEST

__all__ = ["START_UNITS", "matrix_text", "parse_matrix"]

START_UNITS = {"ps": 1, "ns": 1000, "us": 10**6}
"""Picoseconds in each unit that `start` may have."""

HEADER_KEYS = ("nodes", "connections", "triggers", "failures")
NUMBERS = ("id", "start", "trigger", "size", "prio", "send_done_trigger", "recv_done_trigger")
FLAGS = ("msg", "addon")
KINDS = ("oneshot", "multishot", "barrier")
DEFAULT_PRIORITY = "2000000"
MOST = 2**31


@dataclass
class _Flow:
    line: int
    source: int
    destination: int
    words: dict[str, str]


@dataclass
class _Trigger:
    line: int
    kind: str
    count: int = 0
    by: list[int] = field(default_factory=list)
    """Flows that activate it."""


@dataclass
class _Matrix:
    name: str
    header: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Value and line of each count."""
    flows: list[_Flow] = field(default_factory=list)
    triggers: dict[int, _Trigger] = field(default_factory=dict)
    failures: list[int] = field(default_factory=list)
    last_line: int = 1

    def where(self, line: int, what: str = "") -> str:
        return place(self.name, line, what)


def parse_matrix(file: str | Path, *, start_unit: str = "ps") -> tuple[FlowData, list[Remark]]:
    """Read a connection matrix.

    Parameters
    ----------
    file : str or Path
    start_unit : "ps", "ns" or "us"
        What `start` counts.

    Returns
    -------
    FlowData
        Flows with an id are called "flow<id>".
    list of Remark

    Raises
    ------
    SpecError
        Naming file and line.
    """
    matrix = _read(str(file))
    _check_counts(matrix)
    names = _names(matrix)
    waits = _waits(matrix, names)
    flows = matrix.flows
    unit = START_UNITS[start_unit]
    data = FlowData(
        source=np.array([flow.source for flow in flows], dtype=np.int64),
        destination=np.array([flow.destination for flow in flows], dtype=np.int64),
        size_bytes=np.array([_size(matrix, flow) for flow in flows], dtype=np.int64),
        start_ps=np.array([_start_ps(matrix, flow, unit) for flow in flows], dtype=np.int64),
        group=np.zeros(len(flows), dtype=np.int64),
        line=np.array([flow.line for flow in flows], dtype=np.int64),
        names=tuple(names) if any(names) else None,
        waits=tuple((flow, tuple(names[each] for each in before)) for flow, before in waits),
    )
    return data, list(_remarks(matrix, waits))


def matrix_text(data: FlowData, *, n_hosts: int) -> str:
    """Return the text of a `.cm` with starts in picoseconds.

    Parameters
    ----------
    data : FlowData
        Waits become one-shot triggers and barriers, activated when the flow before is sent and
        acknowledged if both have one source, else when it is received.
    n_hosts : int

    Returns
    -------
    str

    Raises
    ------
    SpecError
        If one flow would have to activate two triggers of one kind.
    """
    number = {name: flow for flow, name in enumerate(data.names or ()) if name}
    groups: dict[frozenset[int], int] = {}
    trigger_of: dict[int, int] = {}
    for flow, names in data.waits:
        before = frozenset(number[name] for name in names)
        trigger_of[flow] = groups.setdefault(before, len(groups) + 1)
    done: dict[int, str] = {}
    starts = {trigger: flow for flow, trigger in trigger_of.items()}
    for before, trigger in groups.items():
        for flow in before:
            sent = data.source[flow] == data.source[starts[trigger]]
            key = "send_done_trigger" if sent else "recv_done_trigger"
            if f" {key} " in done.get(flow, ""):
                name = (data.names or ())[flow]
                raise SpecError(".cm", name, f"flows that activate one {key} (this one would need several)")
            done[flow] = f"{done.get(flow, '')} {key} {trigger}"
    columns = (data.source, data.destination, data.size_bytes, data.start_ps)
    rows = enumerate(zip(*(column.tolist() for column in columns), strict=True))
    lines = [f"Nodes {n_hosts}", f"Connections {len(data.source)}"]
    lines += [f"Triggers {len(groups)}"] if groups else []
    for flow, (source, destination, size, start) in rows:
        begin = f"trigger {trigger_of[flow]}" if flow in trigger_of else f"start {start}"
        lines.append(f"{source}->{destination} id {flow + 1} {begin} size {size}{done.get(flow, '')}")
    for before, trigger in groups.items():
        kind = "oneshot" if len(before) == 1 else f"barrier count {len(before)}"
        lines.append(f"trigger id {trigger} {kind}")
    return "\n".join(lines) + "\n"


def _read(name: str) -> _Matrix:
    matrix = _Matrix(name)
    for number, line in enumerate(read_text(name).splitlines(), start=1):
        matrix.last_line = number
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        key = words[0].lower()
        if "->" in words[0] or (len(words) > 1 and words[1].startswith("->")):
            matrix.flows.append(_flow(matrix, words, number))
        elif key == "trigger":
            _trigger(matrix, words, number)
        elif key == "failure":
            _failure(matrix, words, number)
        elif key in HEADER_KEYS:
            _count(matrix, key, words, number)
        else:
            allowed = "Nodes, Connections, Triggers, Failures, src->dst ..., trigger ... or failure ..."
            raise SpecError(matrix.where(number), words[0], allowed)
    return matrix


def _count(matrix: _Matrix, key: str, words: list[str], line: int) -> None:
    where = matrix.where(line, words[0])
    if len(words) != 2:
        raise SpecError(where, " ".join(words[1:]), "one number")
    if key in matrix.header:
        raise SpecError(where, words[1], f"every count once (it also stands on line {matrix.header[key][1]})")
    matrix.header[key] = whole(words[1], where=where, high=MOST), line


def _flow(matrix: _Matrix, words: list[str], line: int) -> _Flow:
    if "nodes" not in matrix.header:
        raise SpecError(matrix.where(line), words[0], "a line Nodes n before the first flow")
    while "->" not in words[0] or words[0].endswith("->"):
        if len(words) < 2:
            raise SpecError(matrix.where(line), words[0], "source->destination")
        words = [words[0] + words[1], *words[2:]]
    source, _, destination = words[0].partition("->")
    high = matrix.header["nodes"][0] - 1
    ends = [
        whole(text, where=matrix.where(line, what), high=high)
        for text, what in ((source, "source"), (destination, "destination"))
    ]
    if ends[0] == ends[1]:
        raise SpecError(matrix.where(line, "destination"), destination, "another host than the source")
    options = _options(matrix, words, line)
    if ("start" in options) == ("trigger" in options):
        given = "both" if "start" in options else "neither"
        raise SpecError(matrix.where(line), Said(given), "either start or trigger")
    if "size" not in options:
        raise SpecError(matrix.where(line, "size"), Said("nothing"), "size and a number of bytes")
    return _Flow(line, ends[0], ends[1], options)


def _options(matrix: _Matrix, words: list[str], line: int) -> dict[str, str]:
    options: dict[str, str] = {}
    at = 1
    while at < len(words):
        key = words[at]
        at += 1
        if key in FLAGS:
            at += at < len(words) and words[at].isdigit()
            options[key] = ""
            continue
        if key not in NUMBERS:
            raise SpecError(matrix.where(line), key, f"one of {', '.join((*NUMBERS, *FLAGS))}")
        if at == len(words):
            raise SpecError(matrix.where(line, key), Said("nothing"), "a number after it")
        if key in options:
            raise SpecError(matrix.where(line, key), words[at], "every option once")
        options[key] = words[at]
        at += 1
    return options


def _size(matrix: _Matrix, flow: _Flow) -> int:
    return whole(flow.words["size"], where=matrix.where(flow.line, "size"), low=1)


def _start_ps(matrix: _Matrix, flow: _Flow, unit: int) -> int:
    text = flow.words.get("start", "0")
    try:
        exact = Decimal(text) * unit
    except InvalidOperation:
        exact = Decimal(-1)
    if len(text) > LONGEST_NUMBER or not exact.is_finite() or not 0 <= exact <= LARGEST:
        raise SpecError(matrix.where(flow.line, "start"), text, "a time of 0 or more, without a unit")
    return int(exact.to_integral_value())


def _trigger(matrix: _Matrix, words: list[str], line: int) -> None:
    numbers: dict[str, int] = {}
    kinds: list[str] = []
    at = 1
    while at < len(words):
        key = words[at]
        at += 1
        if key in KINDS:
            kinds.append(key)
        elif key in ("id", "count") and at < len(words):
            numbers[key] = whole(words[at], where=matrix.where(line, key), low=1, high=MOST)
            at += 1
        else:
            raise SpecError(
                matrix.where(line, "trigger"), key, f"id n, count n, or one of {', '.join(KINDS)}"
            )
    if "id" not in numbers:
        raise SpecError(matrix.where(line, "trigger"), Said("nothing"), "id and a number")
    if len(kinds) != 1:
        raise SpecError(matrix.where(line, "trigger"), " ".join(kinds), f"one of {', '.join(KINDS)}")
    if (kinds[0] == "barrier") != ("count" in numbers):
        raise SpecError(matrix.where(line, "trigger"), kinds[0], "a count with barrier, and only with it")
    if numbers["id"] in matrix.triggers:
        other = matrix.triggers[numbers["id"]].line
        raise SpecError(matrix.where(line, "id"), numbers["id"], f"another id than on line {other}")
    matrix.triggers[numbers["id"]] = _Trigger(line, kinds[0], numbers.get("count", 0))


def _failure(matrix: _Matrix, words: list[str], line: int) -> None:
    values = dict(zip(words[1::2], words[2::2], strict=False))
    if set(values) != {"switch_type", "switch_id", "link_id"} or len(words) != 7:
        allowed = "failure switch_type TOR|AGG|CORE switch_id n link_id n"
        raise SpecError(matrix.where(line), " ".join(words), allowed)
    if values["switch_type"] not in ("TOR", "AGG", "CORE"):
        raise SpecError(matrix.where(line, "switch_type"), values["switch_type"], "TOR, AGG or CORE")
    for key in ("switch_id", "link_id"):
        whole(values[key], where=matrix.where(line, key), high=MOST)
    matrix.failures.append(line)


def _check_counts(matrix: _Matrix) -> None:
    found = {
        "connections": len(matrix.flows),
        "triggers": len(matrix.triggers),
        "failures": len(matrix.failures),
    }
    for key in ("nodes", "connections"):
        if key not in matrix.header:
            raise SpecError(
                matrix.where(matrix.last_line), Said("the end of the file"), f"a line {key.capitalize()} n"
            )
    for key, lines in found.items():
        declared, at = matrix.header.get(key, (0, matrix.last_line))
        if declared != lines:
            raise SpecError(
                matrix.where(at, key.capitalize()), declared, f"the number of such lines ({lines})"
            )
    if not matrix.flows:
        raise SpecError(matrix.where(matrix.header["connections"][1], "Connections"), 0, "at least one flow")


def _names(matrix: _Matrix) -> list[str]:
    """Names of the flows, having checked their ids."""
    seen: dict[int, _Flow] = {}
    names = []
    for flow in matrix.flows:
        if "id" not in flow.words:
            activates = "send_done_trigger" in flow.words or "recv_done_trigger" in flow.words
            names.append(f"line{flow.line}" if activates else "")
            continue
        where = matrix.where(flow.line, "id")
        number = whole(flow.words["id"], where=where, low=1)
        first = seen.setdefault(number, flow)
        if first is flow:
            names.append(f"flow{number}")
        elif "msg" in flow.words and "msg" in first.words:
            names.append(f"flow{number}.line{flow.line}")
        else:
            raise SpecError(where, number, f"another id than on line {first.line}")
    return names


def _waits(matrix: _Matrix, names: list[str]) -> list[tuple[int, list[int]]]:
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


def _check_activation(matrix: _Matrix, number: int, flows: int) -> None:
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


def _remarks(matrix: _Matrix, waits: list[tuple[int, list[int]]]) -> Iterable[Remark]:
    flows = matrix.flows

    def remark(lines: list[int], what: str, reason: str) -> Iterable[Remark]:
        if lines:
            shown = what if len(lines) == 1 else f"{what} ({len(lines)} lines)"
            yield Remark(file=matrix.name, line=lines[0], what=shown, reason=reason)

    priorities = [flow.line for flow in flows if flow.words.get("prio", DEFAULT_PRIORITY) != DEFAULT_PRIORITY]
    yield from remark(priorities, "prio", "no transport here orders the messages of a host by priority")
    messages = [flow.line for flow in flows if "msg" in flow.words]
    yield from remark(messages, "msg", "every message is a flow of its own; those of one id run side by side")
    addon = [flow.line for flow in flows if "addon" in flow.words]
    yield from remark(addon, "addon", "has no documented meaning")
    yield from remark(matrix.failures, "failure", "links that fail are not imported")
    yield from remark(
        _moved(matrix, waits),
        "trigger",
        "the news of a flow's end travels to the next sender; there it takes no time",
    )
    used = {int(flow.words["trigger"]) for flow in flows if "trigger" in flow.words}
    unused = [one.line for number, one in matrix.triggers.items() if number not in used]
    yield from remark(unused, "trigger", "starts no flow")


def _moved(matrix: _Matrix, waits: list[tuple[int, list[int]]]) -> list[int]:
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
