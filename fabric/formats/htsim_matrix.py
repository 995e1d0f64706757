"""`.cm` of htsim: a connection matrix, flows with starts or triggers.

A header (`Nodes n`, `Connections n`, and where there are any `Triggers n`, `Failures n`), then lines

    src->dst [id i] (start t | trigger j) size bytes [prio p] [send_done_trigger j] [recv_done_trigger j]
    trigger id j (oneshot | multishot | barrier count n)
    failure switch_type TOR|AGG|CORE switch_id s link_id l

in any order. Triggers become dependencies (`fabric.formats.htsim_triggers`). `start` has no unit of its own:
csg-htsim reads picoseconds, programs of uet-htsim read microseconds. Sizes may exceed 2^31 and starts
are exact, unlike there.

Sources: github.com/Broadcom/csg-htsim and github.com/ultraethernet/uet-htsim,
`sim/datacenter/connection_matrix.cpp`.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np

from fabric.errors import Said, SpecError
from fabric.formats.data import FailedLink, FlowData, Remark
from fabric.formats.htsim_triggers import (
    Matrix,
    MatrixFlow,
    MatrixTrigger,
    MatrixWait,
    moved_starts,
    places_of_waits,
    waits_of_triggers,
)
from fabric.formats.words import LONGEST_NUMBER, read_text, whole
from fabric.units import LARGEST

__all__ = ["START_UNITS", "MatrixWait", "parse_matrix", "parse_schedule"]

START_UNITS = {"ps": 1, "ns": 1000, "us": 10**6}
"""Picoseconds in each unit that `start` may have."""

HEADER_KEYS = ("nodes", "connections", "triggers", "failures")
NUMBERS = ("id", "start", "trigger", "size", "prio", "send_done_trigger", "recv_done_trigger")
FLAGS = ("msg", "addon")
SWITCH_TIERS = {"TOR": 1, "AGG": 2, "CORE": 3}
KINDS = ("oneshot", "multishot", "barrier")
DEFAULT_PRIORITY = "2000000"
MOST = 2**31


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
    matrix, data, waits = _flows(file, start_unit)
    return data, list(_remarks(matrix, waits))


def parse_schedule(file: str | Path, *, start_unit: str = "ps") -> tuple[int, FlowData, list[MatrixWait]]:
    """Read a connection matrix with where each flow's end is known that another waits for.

    Parameters and errors as of `parse_matrix`.

    Returns
    -------
    int
        Nodes.
    FlowData
    list of MatrixWait
    """
    matrix, data, waits = _flows(file, start_unit)
    return matrix.header["nodes"][0], data, places_of_waits(matrix, waits)


def _flows(file: str | Path, start_unit: str) -> tuple[Matrix, FlowData, list[tuple[int, list[int]]]]:
    matrix = _read(str(file))
    _check_counts(matrix)
    names = _names(matrix)
    waits = waits_of_triggers(matrix)
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
        failures=tuple(matrix.failures),
    )
    return matrix, data, waits


def _read(name: str) -> Matrix:
    matrix = Matrix(name)
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


def _count(matrix: Matrix, key: str, words: list[str], line: int) -> None:
    where = matrix.where(line, words[0])
    if len(words) != 2:
        raise SpecError(where, " ".join(words[1:]), "one number")
    if key in matrix.header:
        raise SpecError(where, words[1], f"every count once (it also stands on line {matrix.header[key][1]})")
    matrix.header[key] = whole(words[1], where=where, high=MOST), line


def _flow(matrix: Matrix, words: list[str], line: int) -> MatrixFlow:
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
    return MatrixFlow(line, ends[0], ends[1], options)


def _options(matrix: Matrix, words: list[str], line: int) -> dict[str, str]:
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


def _size(matrix: Matrix, flow: MatrixFlow) -> int:
    return whole(flow.words["size"], where=matrix.where(flow.line, "size"), low=1)


def _start_ps(matrix: Matrix, flow: MatrixFlow, unit: int) -> int:
    text = flow.words.get("start", "0")
    try:
        exact = Decimal(text) * unit
    except InvalidOperation:
        exact = Decimal(-1)
    if len(text) > LONGEST_NUMBER or not exact.is_finite() or not 0 <= exact <= LARGEST:
        raise SpecError(matrix.where(flow.line, "start"), text, "a time of 0 or more, without a unit")
    return int(exact.to_integral_value())


def _trigger(matrix: Matrix, words: list[str], line: int) -> None:
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
    matrix.triggers[numbers["id"]] = MatrixTrigger(line, kinds[0], numbers.get("count", 0))


def _failure(matrix: Matrix, words: list[str], line: int) -> None:
    values = dict(zip(words[1::2], words[2::2], strict=False))
    if set(values) != {"switch_type", "switch_id", "link_id"} or len(words) != 7:
        allowed = "failure switch_type TOR|AGG|CORE switch_id n link_id n"
        raise SpecError(matrix.where(line), " ".join(words), allowed)
    if values["switch_type"] not in SWITCH_TIERS:
        raise SpecError(matrix.where(line, "switch_type"), values["switch_type"], "TOR, AGG or CORE")
    switch, link = (
        whole(values[key], where=matrix.where(line, key), high=MOST) for key in ("switch_id", "link_id")
    )
    tier = SWITCH_TIERS[values["switch_type"]]
    matrix.failures.append(FailedLink(where=matrix.where(line), tier=tier, switch=switch, link=link))


def _check_counts(matrix: Matrix) -> None:
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


def _names(matrix: Matrix) -> list[str]:
    """Names of the flows, having checked their ids."""
    seen: dict[int, MatrixFlow] = {}
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


def _remarks(matrix: Matrix, waits: list[tuple[int, list[int]]]) -> Iterable[Remark]:
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
    yield from remark(
        moved_starts(matrix, waits),
        "trigger",
        "the news of a flow's end travels to the next sender; there it takes no time",
    )
    used = {int(flow.words["trigger"]) for flow in flows if "trigger" in flow.words}
    unused = [one.line for number, one in matrix.triggers.items() if number not in used]
    yield from remark(unused, "trigger", "starts no flow")
