"""Every published run of the HPCC group's ns-3 simulator, run again here, and graded.

    python tests/validation/ns3_runs.py RUNS [--engine native|reference] [NAME ...]

RUNS is a folder of runs with an `index.csv`; each run has the simulator's own input files, which are
imported as any other (`fabric.convert`). It prints one line for each run and ends with 1 if any is
outside its grade:

* *exact*: starts, completions at the sender, deliveries at the receiver and frames of every flow, every
  PAUSE and RESUME with its nanosecond, node and port, frames on links, headroom, the fullest queue, drops;
  marks too where they have an effect. The readable engine has to be exact in every run without random
  marks, in the simulator's order of events; the native one where a node can know that order.
* *own order*: within what other fair orders of simultaneous events differ by (columns `tol_own_order_*`).
* *statistics*: where marks are drawn, means over 20 seeds: `3 sd sqrt(1/20 + 1/20)` and 1 % (5 % for
  pauses and queues) of the simulator's. What never happened in its 20 seeds has no deviation: in how
  many seeds it happens here is judged by Fisher's exact test. (A PAUSE comes in 9 of our first 300 seeds
  of S2_incast2_dcqcn_buf4, and in one of the first 20.)

A frame that begins at once is no queue here; there it counts for the instant in which it does.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from dataclasses import dataclass
from math import comb
from pathlib import Path
from typing import Any

import numpy as np

from fabric._core import Engine
from fabric.convert import import_files
from fabric.lower import lower
from fabric.lowered import Lowered
from fabric.reference import Simulator
from fabric.workload import build_flows

__all__ = ["Graded", "grade", "read_index"]

PS_PER_NS = 1000
NOT_YET = -1
SEEDS = 20
THREE_SIGMA = 0.0027
"""What is less likely than three standard deviations."""
STATISTICS = (
    ("mean FCT", "mean_fct_us", 0.01),
    ("max FCT", "max_fct_us", 0.01),
    ("victim FCT", "victim_us", 0.01),
    ("pauses", "pauses", 0.05),
    ("peak queue", "max_queue_kB", 0.05),
)
"""Name, column and share of the simulator's value that is allowed besides chance."""


@dataclass(frozen=True)
class Graded:
    """A run, what was asked of it, and what is not as it should be."""

    name: str
    grade: str
    wrong: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name:42} {self.grade:11} " + ("; ".join(self.wrong) or "ok")


def read_index(runs: Path) -> list[dict[str, str]]:
    """The rows of `index.csv`."""
    with open(runs / "index.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def grade(runs: Path, row: dict[str, str], *, engine: str) -> Graded:
    """Run a row of the index on the "native" or the "reference" engine, and compare."""
    name, folder = row["scenario"], runs / row["scenario"]
    if row["tol_reference_order"] != "exact":
        return Graded(name, "statistics", tuple(_by_chance(folder, row)))
    lowered, outcome = _outcome(folder, engine=engine)
    if engine == "reference" or row["exact_under_local_rule"] == "yes":
        return Graded(name, "exact", tuple(_unequal(folder, row, lowered, outcome)))
    return Graded(name, "own order", tuple(_outside(row, outcome)))


def _outcome(folder: Path, *, engine: str, seed: int = 1) -> tuple[Lowered, Any]:
    imported = import_files(folder / "config.txt")
    scenario = imported.scenario.replace(run=imported.scenario.run.replace(seed=seed))
    lowered = lower(scenario, network=imported.network, flows=build_flows(scenario, imported.network))
    outcome = Engine(lowered) if engine == "native" else Simulator(lowered, order="insertion")
    outcome.run()
    return lowered, outcome


def _times_ns(columns: dict[str, Any], name: str) -> np.ndarray:
    """Times of flows after their starts; -1 where something did not happen."""
    times_ps = columns[f"flow_{name}_ps"]
    since = times_ps // PS_PER_NS - columns["flow_started_ps"] // PS_PER_NS
    return np.where(times_ps == NOT_YET, NOT_YET, since)


def _rows(file: Path) -> np.ndarray:
    lines = (line for line in file.read_text().splitlines() if not line.startswith("#"))
    return np.array(sorted([int(word) for word in line.split()] for line in lines), dtype=np.int64)


def _peak_bytes(columns: dict[str, Any], lowered: Lowered) -> int:
    """The fullest queue, counting frames that begin at once."""
    largest = lowered.flow_last_frame_bytes.max()
    if (lowered.flow_frames > 1).any():
        largest = max(largest, lowered.transports["frame_bytes"].max())
    return max(int(columns["queue_peak_bytes"].max()), int(largest))


def _unequal(folder: Path, row: dict[str, str], lowered: Lowered, outcome: Any) -> list[str]:
    columns, theirs = outcome.columns(), _rows(folder / "rx.txt")
    summary = json.loads((folder / "summary.json").read_text())
    finished = (columns["flow_completed_ps"] != NOT_YET).all()
    pairs: list[tuple[str, Any, Any]] = [
        ("start", columns["flow_started_ps"] // PS_PER_NS, theirs[:, 5]),
        ("completion", _times_ns(columns, "completed"), theirs[:, 6]),
        ("delivery", _times_ns(columns, "delivered"), theirs[:, 7]),
        ("pauses", int(columns["pauses_sent"].sum()), int(row["pauses"])),
        ("peak queue", _peak_bytes(columns, lowered), int(row["max_queue_bytes"])),
        ("drops", int(columns["drops_by_reason"].sum()), int(row["drops"])),
        ("headroom", int(columns["headroom_peak_bytes"].max()), _most_headroom(summary)),
    ]
    if finished:
        pairs.append(("frames", columns["flow_sent"].astype(np.int64), theirs[:, 8]))
        pairs.append(("on links", columns["counters"]["frames_started"], int(row["link_transmissions"])))
        if row["cc"] == "dctcp" or row["scenario"].startswith("S9_"):
            pairs.append(("marks", columns["flow_marked"].astype(np.int64), theirs[:, 10]))
    if (folder / "pfc.txt").is_file() and lowered.record & 1:
        pairs.append(("PFC frames", _pfc_rows(lowered, outcome), _rows(folder / "pfc.txt")[:, [0, 3, 4]]))
    return [f"{what}: {_difference(ours, other)}" for what, ours, other in pairs if not _same(ours, other)]


def _same(ours: Any, other: Any) -> bool:
    return np.shape(ours) == np.shape(other) and bool(np.all(np.asarray(ours) == np.asarray(other)))


def _difference(ours: Any, other: Any) -> str:
    ours, other = np.atleast_1d(ours), np.atleast_1d(other)
    if ours.shape != other.shape:
        return f"{len(ours)} for {len(other)}"
    first = np.flatnonzero(ours.ravel() != other.ravel())[0]
    return f"{ours.ravel()[first]} for {other.ravel()[first]} at {first} of {ours.size}"


def _most_headroom(summary: dict[str, Any]) -> int:
    return max((int(port["max_headroom_B"]) for port in summary["switch_ports"]), default=0)


def _pfc_rows(lowered: Lowered, outcome: Any) -> np.ndarray:
    """Time in ns, port from 1, and 1 for PAUSE, of every PFC frame where it was received; sorted."""
    rows = outcome.rows("pause")
    local = rows["port"] - lowered.node_port_base[lowered.port_node[rows["port"]]] + 1
    events = [
        (int(time) // PS_PER_NS, int(port), kind)
        for begin, end, port in zip(rows["time_ps"], rows["value"], local, strict=True)
        for time, kind in ((begin, 1), (end, 0))
        if time != NOT_YET
    ]
    return np.array(sorted(events), dtype=np.int64).reshape(-1, 3)


def _outside(row: dict[str, str], outcome: Any) -> list[str]:
    """What is not within the tolerances of other orders of simultaneous events."""
    columns = outcome.columns()
    completed = _times_ns(columns, "completed")
    makespan = (columns["flow_completed_ps"].max() - columns["flow_started_ps"].min()) // PS_PER_NS
    measured = (
        ("mean", float(completed.mean()), row["mean_fct_ns"]),
        ("max", float(completed.max()), row["max_fct_ns"]),
        ("pauses", float(columns["pauses_sent"].sum()), row["pauses"]),
        ("queue", float(columns["queue_peak_bytes"].max()), row["max_queue_bytes"]),
        ("makespan", float(makespan), row["makespan_ns"]),
        ("victim", float(completed[-1]), row["victim_fct_ns"]),
    )
    wrong = []
    for what, ours, other in measured:
        allowed = row[f"tol_own_order_{what}"]
        if allowed in ("", "goodput") or not other:
            continue
        theirs = float(other)
        margin = 1e-3
        if allowed.endswith("%"):
            margin = float(allowed[:-1]) / 100 * theirs
        elif allowed != "exact":
            margin = float(allowed.removesuffix(" B"))
        if abs(ours - theirs) > margin:
            wrong.append(f"{what}: {ours:.1f} for {theirs:.1f}, allowed {allowed}")
    return wrong


def _by_chance(folder: Path, row: dict[str, str]) -> list[str]:
    """What is not within the chance of 20 seeds here and there (native engine)."""
    samples: dict[str, list[float]] = {column: [] for _, column, _ in STATISTICS}
    for seed in range(1, SEEDS + 1):
        columns = _outcome(folder, engine="native", seed=seed)[1].columns()
        completed_us = _times_ns(columns, "completed") / 1000
        own = completed_us[:-1] if row["victim_us_avg"] else completed_us
        samples["mean_fct_us"].append(float(completed_us.mean()))
        samples["max_fct_us"].append(float(own.max()))
        samples["victim_us"].append(float(completed_us[-1]))
        samples["pauses"].append(float(columns["pauses_sent"].sum()))
        samples["max_queue_kB"].append(float(columns["queue_peak_bytes"].max()) / 1000)
    wrong = []
    for what, column, share in STATISTICS:
        if not row[f"{column}_avg"]:
            continue
        theirs, deviation = float(row[f"{column}_avg"]), float(row[f"{column}_sd"])
        if theirs == deviation == 0:
            seeds = sum(value > 0 for value in samples[column])
            if comb(SEEDS, seeds) / comb(2 * SEEDS, seeds) < THREE_SIGMA:
                wrong.append(f"{what}: in {seeds} of {SEEDS} seeds for none")
            continue
        ours = float(np.mean(samples[column]))
        margin = 3 * deviation * np.sqrt(2 / SEEDS) + share * theirs
        if abs(ours - theirs) > margin + 1e-3:
            wrong.append(f"{what}: {ours:.1f} for {theirs:.1f} +- {margin:.1f}")
    return wrong


def main() -> int:
    """Grade runs and print a table."""
    parser = argparse.ArgumentParser(
        description="Run the published runs of the HPCC simulator and grade them."
    )
    parser.add_argument("runs", type=Path)
    parser.add_argument("names", nargs="*", help="of runs (default: all)")
    parser.add_argument("--engine", choices=("native", "reference"), default="native")
    options = parser.parse_args()
    failed = 0
    for row in read_index(options.runs):
        if options.names and row["scenario"] not in options.names:
            continue
        if options.engine == "reference" and row["tol_reference_order"] != "exact":
            continue
        graded = grade(options.runs, row, engine=options.engine)
        failed += bool(graded.wrong)
        print(graded, flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
