"""What a reference run put out, from the files in its folder.

* `rx.txt`: a line a flow in the order of `flow.txt`: `index source destination port bytes start_ns
  sender_fct_ns receiver_fct_ns packets wire_bytes marked_packets`, -1 for what did not happen or is unknown.
* `fct.txt`, where there is no `rx.txt`: the simulator's own, in order of completion, matched to flows by
  addresses and source port (`docs/formats.md`).
* `pfc.txt`: `time_ns node type port kind`, each PAUSE (1) and RESUME (0) where it is received.
* `summary.json`: `switch_ports`, a list of `sw`, `port`, `max_egress_B`, `max_headroom_B`.
* `goodput.txt`: `begin_ms end_ms` and Gbit/s of each flow, acknowledged payload, ms after the first start.
* `seeds.txt`: one of its runs a line, by seed; a header names columns.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fabric.convert.hpcc_results import host_address
from fabric.errors import Said, SpecError
from fabric.formats.hpcc_flows import parse_flows

__all__ = ["FlowLine", "GoodputWindow", "PeerRun", "PfcLine", "read_peer_run"]

FIRST_SOURCE_PORT = 10_000
RX_FIELDS, FCT_FIELDS, PFC_FIELDS = 11, 8, 5
NOT_YET = -1

PfcLine = tuple[int, int, int, int, int]
"""Time in ns, node, 1 for a switch, port from 1, 1 for PAUSE."""


@dataclass(frozen=True)
class FlowLine:
    """One flow: times in ns; what is not known is None, what did not happen -1.

    Attributes
    ----------
    start_ns, sender_ns, receiver_ns : int or None
        Start; from there to the last ACK at the sender, to the last byte at the receiver.
    packets, marked : int or None
        Data frames that the receiver has got, those among them that were marked.
    """

    start_ns: int
    sender_ns: int
    receiver_ns: int | None = None
    packets: int | None = None
    marked: int | None = None


@dataclass(frozen=True)
class GoodputWindow:
    """Acknowledged payload of each flow in a time: begin and end in ns from the first start."""

    begin_ns: int
    end_ns: int
    gbps: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class PeerRun:
    """What a reference run put out.

    Attributes
    ----------
    flows : tuple of FlowLine
        In the order of `flow.txt`.
    pfc : tuple of PfcLine or None
        Sorted; None if it is not known, empty if there were none.
    ports : dict of (int, int) to (int, int)
        By node and port from 1: most bytes queued, most bytes in headroom.
    goodput : tuple of GoodputWindow
    seeds : dict of str to array
        By quantity (those of `grades`), a value a seed.
    """

    flows: tuple[FlowLine, ...]
    pfc: tuple[PfcLine, ...] | None
    ports: dict[tuple[int, int], tuple[int, int]]
    goodput: tuple[GoodputWindow, ...]
    seeds: dict[str, npt.NDArray[np.float64]]


def read_peer_run(folder: Path) -> PeerRun:
    """Read the outputs in the folder of a run.

    Raises
    ------
    SpecError
        Naming file and line of what is not as it must be.
    """
    count = len(parse_flows(folder / "flow.txt")[0].source)
    flows = _rx(folder / "rx.txt") if (folder / "rx.txt").is_file() else _fct(folder)
    if len(flows) != count:
        raise SpecError(str(folder / "rx.txt"), Said(f"{len(flows)} flows"), f"the {count} of flow.txt")
    goodput = tuple(_goodput(folder / "goodput.txt"))
    summary = _summary(folder / "summary.json")
    return PeerRun(
        flows=tuple(flows),
        pfc=_pfc(folder / "pfc.txt", summary),
        ports={
            (one["sw"], one["port"]): (one["max_egress_B"], one["max_headroom_B"])
            for one in summary.get("switch_ports", ())
        },
        goodput=goodput,
        seeds=_seeds(folder / "seeds.txt", goodput),
    )


def _lines(file: Path) -> Iterator[tuple[str, list[str]]]:
    """Place and words of every line that is neither empty nor a remark."""
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SpecError(str(file), Said("(bytes)"), "text in UTF-8") from None
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            yield f"{file}:{number}", line.split()


def _numbers(file: Path, count: int) -> Iterator[tuple[str, list[int]]]:
    for where, words in _lines(file):
        try:
            numbers = [int(word) for word in words]
        except ValueError:
            numbers = []
        if len(numbers) != count:
            raise SpecError(where, Said(" ".join(words)), f"{count} whole numbers")
        yield where, numbers


def _rx(file: Path) -> list[FlowLine]:
    flows: list[FlowLine] = []
    for where, numbers in _numbers(file, RX_FIELDS):
        if numbers[0] != len(flows):
            raise SpecError(where, numbers[0], f"flow {len(flows)}: one after the other, as in flow.txt")
        start, sender, receiver, packets, _, marked = numbers[5:]
        known = (None if count == NOT_YET else count for count in (packets, marked))
        flows.append(FlowLine(start, sender, receiver, *known))
    return flows


def _fct(folder: Path) -> list[FlowLine]:
    """Completion times by the simulator's own file; starts of flows that did not complete are unknown."""
    data, _ = parse_flows(folder / "flow.txt")
    pairs = list(zip(data.source.tolist(), data.destination.tolist(), strict=True))
    seen: Counter[tuple[int, int]] = Counter()
    number_of: dict[tuple[str, str, str], int] = {}
    for flow, pair in enumerate(pairs):
        source, destination = (f"{host_address(end):08x}" for end in pair)
        number_of[source, destination, str(FIRST_SOURCE_PORT + seen[pair])] = flow
        seen[pair] += 1
    found: dict[int, FlowLine] = {}
    for where, words in _lines(folder / "fct.txt"):
        key = (words[0], words[1], words[2]) if len(words) == FCT_FIELDS else ("", "", "")
        if key not in number_of or not (words[5].isdigit() and words[6].isdigit()):
            allowed = (
                "source, destination, port of a flow in flow.txt, then its port, bytes, start, time, ideal"
            )
            raise SpecError(where, Said(" ".join(words)), allowed)
        found[number_of[key]] = FlowLine(int(words[5]), int(words[6]))
    starts = (data.start_ps // 1000).tolist()
    return [found.get(flow, FlowLine(starts[flow], NOT_YET)) for flow in range(len(pairs))]


def _pfc(file: Path, summary: dict[str, Any]) -> tuple[PfcLine, ...] | None:
    if not file.is_file():
        return () if summary.get("pfc_frames_sent") == 0 else None
    lines = [tuple(numbers) for _, numbers in _numbers(file, PFC_FIELDS)]
    return tuple(sorted((line[0], line[1], line[2], line[3], line[4]) for line in lines))


def _summary(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        summary = json.loads(file.read_text(encoding="utf-8"))
        fields = ("sw", "port", "max_egress_B", "max_headroom_B")
        if not all(
            isinstance(one[field], int) for one in summary.get("switch_ports", ()) for field in fields
        ):
            raise ValueError("switch_ports holds something else than whole numbers")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SpecError(str(file), str(error), "JSON with a list switch_ports, as the module says") from None
    return dict(summary)


def _goodput(file: Path) -> Iterator[GoodputWindow]:
    if not file.is_file():
        return
    for where, words in _lines(file):
        begin, end, *rates = _floats(words, where)
        yield GoodputWindow(round(begin * 1e6), round(end * 1e6), tuple(rates))


def _floats(words: Sequence[str], where: str) -> list[float]:
    try:
        return [float(word) for word in words]
    except ValueError:
        raise SpecError(where, Said(" ".join(words)), "numbers") from None


def _seeds(file: Path, goodput: tuple[GoodputWindow, ...]) -> dict[str, npt.NDArray[np.float64]]:
    """Values of each quantity by seed: times in ns, sizes in bytes, rates in Gbit/s."""
    if not file.is_file():
        return {}
    rows = [(where, _floats(words, where)) for where, words in _lines(file)]
    names = (
        [name for flow in range(len(goodput[0].gbps)) for name in goodput_names(goodput, flow)]
        if goodput
        else []
    )
    plain = ["min", "mean", "p50", "max", "pauses", "queue", "marks", "victim"]
    columns = [*names, "queue", "marks"] if names else plain
    scale = {"min": 1e3, "mean": 1e3, "p50": 1e3, "max": 1e3, "victim": 1e3, "queue": 1e3}
    table: dict[str, list[float]] = {}
    for where, values in rows:
        if len(values) - 1 not in (len(columns), len(columns) - (not names)):
            raise SpecError(where, Said(f"{len(values)} numbers"), f"a seed, then {', '.join(columns)}")
        for name, value in zip(columns, values[1:], strict=False):
            table.setdefault(name, []).append(value * scale.get(name, 1.0))
    return {name: np.array(values) for name, values in table.items() if name not in ("min", "p50", "marks")}


def goodput_names(windows: Sequence[GoodputWindow], flow: int) -> list[str]:
    """Return what the goodput of a flow in each window is called."""
    return [f"goodput of flow {flow}, {one.begin_ns / 1e6:g} to {one.end_ns / 1e6:g} ms" for one in windows]
