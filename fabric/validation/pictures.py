"""Time series of reference runs beside those of their repetitions.

Rates of flows where the folder has `rate.txt` (`time_ns source destination port rate_bps ...`), depths of
queues where it has `qts.txt` (`time_ns switch port egress_bytes ...`, rows with something in the queue),
either also compressed (`.gz`). A run of HPCC with few flows that has no series is drawn in the peer's order
of events on the left, with the peer's completions marked.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fabric._core import Engine
from fabric.errors import SpecError
from fabric.lower import lower
from fabric.plot import side_by_side, to_image
from fabric.plot.pairs import Curves
from fabric.reference import Simulator
from fabric.spec import QueueRecord, Record, Scenario
from fabric.topology import build_network
from fabric.validation.folder import Case, read_folder
from fabric.validation.peer_files import PeerRun, read_peer_run
from fabric.validation.repeat import named_ports, scenario_of

__all__ = ["pictures"]

PS_PER_NS = 1000
BPS_PER_GBPS = 1e9
BYTES_PER_KB = 1e3
FEW_FLOWS = 4
FULLEST = 3
"""Queues that are drawn: those that were fullest there."""

SAMPLE = "1us"
PEER, OURS = "ns-3 (HPCC)", "fabric, native engine"
IN_ORDER = "fabric, readable engine, order of ns-3 (dashes: ends there)"


def pictures(folder: str | Path, *, only: str = "*") -> Iterator[tuple[str, bytes]]:
    """Draw the runs of a folder that have time series.

    Parameters
    ----------
    folder : path
    only : str
        Pattern of names of runs.

    Yields
    ------
    name, image : str and bytes
        "RUN-rates.png" or "RUN-queues.png", and the file.

    Raises
    ------
    FabricError
        If the folder, or a series, is not as it must be.
    """
    for case in read_folder(folder, only=only):
        scenario = scenario_of(case.folder)
        peer = read_peer_run(case.folder)
        if (rows := _rows(case.folder, "rate.txt", 5)) is not None:
            first_ps = min(flow.start_ns for flow in peer.flows) * PS_PER_NS
            theirs = _peer_rates(rows, first_ps)
            ours = _our_rates(scenario, first_ps=first_ps, peer_order=False)
            yield f"{case.name}-rates.png", _rates(case, theirs, ours, (PEER, OURS), ())
        elif case.congestion == "hpcc" and len(peer.flows) <= FEW_FLOWS:
            yield f"{case.name}-rates.png", _hpcc(case, scenario, peer)
        if (rows := _rows(case.folder, "qts.txt", 4)) is not None:
            yield f"{case.name}-queues.png", _queues(case, scenario, peer, rows)


def _rows(folder: Path, name: str, columns: int) -> npt.NDArray[np.float64] | None:
    """The first columns of a table of numbers; None if it is not there."""
    for file in (folder / name, folder / f"{name}.gz"):
        if file.is_file():
            try:
                with gzip.open(file, "rt") if file.suffix == ".gz" else open(file) as text:
                    return np.loadtxt(text, usecols=range(columns), ndmin=2)
            except (ValueError, OSError, EOFError) as error:
                raise SpecError(str(file), str(error), f"{columns} or more columns of numbers") from None
    return None


def _peer_rates(rows: npt.NDArray[np.float64], first_ps: int) -> Curves:
    curves = {}
    for pair in np.unique(rows[:, 1:4], axis=0):
        part = rows[(rows[:, 1:4] == pair).all(axis=1)]
        name = f"host{pair[0]:.0f}→host{pair[1]:.0f}"
        curves[name] = part[:, 0] * PS_PER_NS - first_ps, part[:, 4] / BPS_PER_GBPS
    return curves


def _our_rates(scenario: Scenario, *, first_ps: int, peer_order: bool) -> Curves:
    described = scenario.replace(record=Record(rates=("*",)))
    lowered = lower(described)
    engine: Any = Simulator(lowered, order="insertion") if peer_order else Engine(lowered)
    engine.run()
    rows = engine.rows("rate")
    completed = engine.columns()["flow_completed_ps"]
    curves = {}
    for flow in np.unique(rows["flow"]).tolist():
        part = rows[rows["flow"] == flow]
        done = int(completed[flow])
        end_ps = done if done >= 0 else lowered.until_ps
        source, destination = int(lowered.flow_source[flow]), int(lowered.flow_destination[flow])
        times = np.append(part["time_ps"], end_ps) - first_ps
        rate = np.append(part["aux"], part["aux"][-1]) / BPS_PER_GBPS
        curves[f"host{source}→host{destination}"] = times, rate
    return curves


def _rates(
    case: Case, left: Curves, right: Curves, titles: tuple[str, str], instants_ps: tuple[int, ...]
) -> bytes:
    panels = side_by_side(
        left,
        right,
        titles=titles,
        ylabel="Sending rate (Gbit/s)",
        headline=f"{case.name}: {case.purpose}" if case.purpose else case.name,
        instants_ps=instants_ps,
    )
    return to_image(panels[0])


def _hpcc(case: Case, scenario: Scenario, peer: PeerRun) -> bytes:
    first_ps = min(flow.start_ns for flow in peer.flows) * PS_PER_NS
    curves = (_our_rates(scenario, first_ps=first_ps, peer_order=order) for order in (True, False))
    ends = tuple((flow.start_ns + flow.sender_ns) * PS_PER_NS - first_ps for flow in peer.flows)
    left, right = curves
    return _rates(case, left, right, (IN_ORDER, OURS), ends)


def _queues(case: Case, scenario: Scenario, peer: PeerRun, rows: npt.NDArray[np.float64]) -> bytes:
    first_ps = min(flow.start_ns for flow in peer.flows) * PS_PER_NS
    network = build_network(scenario.topology)
    record = Record(queues=QueueRecord(interval=SAMPLE))  # type: ignore[arg-type]
    lowered = lower(scenario.replace(record=record), network=network)
    engine = Engine(lowered)
    engine.run()
    queue = engine.rows("queue")
    number_of = {(node, local): port for port, (node, _, local) in enumerate(named_ports(lowered, network))}
    ports = np.unique(rows[:, 1:3], axis=0)
    peaks = [float(rows[(rows[:, 1:3] == port).all(axis=1), 3].max()) for port in ports]
    left, right = {}, {}
    for which in sorted(range(len(ports)), key=lambda k: -peaks[k])[:FULLEST]:
        node, local = (int(number) for number in ports[which])
        part = rows[(rows[:, 1:3] == ports[which]).all(axis=1)]
        port = number_of.get((node, local))
        if port is None or not peaks[which]:
            continue
        name = network.port_arrow(port).replace("->", "→")
        mine = queue[queue["port"] == port]
        left[name] = _dense(part[:, 0] * PS_PER_NS - first_ps, part[:, 3])
        right[name] = (
            np.concatenate([[0], mine["time_ps"] - first_ps]),
            np.concatenate([[0], mine["value"]]) / BYTES_PER_KB,
        )
    panels = side_by_side(
        left,
        right,
        titles=(PEER, OURS),
        ylabel="Queue (KB)",
        headline=f"{case.name}: {case.purpose}" if case.purpose else case.name,
    )
    return to_image(panels[0])


def _dense(times_ps: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> tuple[Any, Any]:
    """A sampled series in which samples without anything in the queue have no row: zeros put back."""
    step = float(np.diff(times_ps).min()) if len(times_ps) > 1 else 1.0
    after = np.diff(times_ps, append=np.inf) > 1.5 * step
    times = np.concatenate([[0.0], times_ps, times_ps[after] + step])
    depth = np.concatenate([[0.0], values, np.zeros(int(after.sum()))]) / BYTES_PER_KB
    order = np.argsort(times, kind="stable")
    return times[order], depth[order]
