"""Speed and memory of every case, against the goals.

Prints two tables. Speed: hops, process seconds of the best, the median and the worst repetition, and, of
the best, hops per second, nanoseconds per hop and payload bytes simulated per second, beside what the case
must reach and aims at. Memory: bytes per host of the lowered scenario, of an engine in which one message of
one frame has been sent (idle), and of an engine at its highest under the case's load. Of collectives a
third says what they took and all memory together.

Other work on the machine only ever makes a repetition slower, so the best is the robust figure; the median
and the worst say how quiet the machine was. Every figure comes from a process of its own.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.cases import (
    ALL_CASES,
    CASES,
    IDLE_GOAL_BYTES,
    LOADED_GOAL_BYTES,
    VARIANT_GOAL,
    VARIANTS,
    Case,
    case_named,
)
from benchmarks.child import run_measure
from benchmarks.machine import describe_machine, machine_line
from benchmarks.measure import Memory, Speed
from benchmarks.tables import table_text
from fabric.spec import Collective
from fabric.units import Size
from fabric.workload.collectives import busbw_factor

__all__ = [
    *("Row", "collective_table", "main", "measure_case", "memory_table", "speed_table", "variant_table"),
]

REPEAT = 7

SPEED_HEADER = (
    "case", "hops", "best s", "median s", "worst s",
    "Mhops/s", "must", "aim", "met", "ns/hop", "payload GB/s",
)  # fmt: skip
MEMORY_HEADER = ("case", "hosts", "scenario B/host", "idle B/host", "goal", "loaded B/host", "goal", "met")
COLLECTIVE_HEADER = (
    "case", "collective", "algorithm", "ranks", "size", "time us", "algbw GB/s", "busbw GB/s", "memory MB"
)  # fmt: skip
VARIANT_HEADER = ("case", "beside", "ns/hop, times", "goal", "met")


@dataclass(frozen=True, kw_only=True)
class Row:
    """What was measured of one case; memory is None if it was not asked for."""

    case: Case
    speed: Speed
    idle: Memory | None
    loaded: Memory | None


def measure_case(case: Case, *, repeat: int, memory: bool = True, flow_bytes: Size | None = None) -> Row:
    """Measure a case in fresh processes."""
    speed = run_measure("speed", case=case.name, repeat=repeat, flow_bytes=flow_bytes)
    if not memory:
        return Row(case=case, speed=Speed(**speed), idle=None, loaded=None)
    return Row(
        case=case,
        speed=Speed(**speed),
        idle=Memory(**run_measure("idle", case=case.name)),
        loaded=Memory(**run_measure("memory", case=case.name, flow_bytes=flow_bytes)),
    )


def speed_table(rows: Sequence[Row], *, markdown: bool = False) -> str:
    """Return the table of speed."""
    return table_text(SPEED_HEADER, [_speed_cells(row) for row in rows], markdown=markdown)


def memory_table(rows: Sequence[Row], *, markdown: bool = False) -> str:
    """Return the table of memory."""
    return table_text(MEMORY_HEADER, [_memory_cells(row) for row in rows], markdown=markdown)


def collective_table(rows: Sequence[Row], *, markdown: bool = False) -> str:
    """Return what collectives took, as nccl-tests reckons it, and the memory of scenario and engine."""
    return table_text(COLLECTIVE_HEADER, [_collective_cells(row) for row in rows], markdown=markdown)


def variant_table(rows: Sequence[Row], *, markdown: bool = False) -> str:
    """Return the table of what variants take beside the cases that they are compared with."""
    ns_per_hop = {row.case.name: _ns_per_hop(row.speed) for row in rows}
    table = []
    for row in rows:
        if row.case.beside in ns_per_hop:
            ratio = ns_per_hop[row.case.name] / ns_per_hop[row.case.beside]
            met = "yes" if ratio <= VARIANT_GOAL else "no"
            table.append([row.case.name, row.case.beside, f"{ratio:.2f}", f"{VARIANT_GOAL:.2f}", met])
    return table_text(VARIANT_HEADER, table, markdown=markdown)


def _ns_per_hop(speed: Speed) -> float:
    return min(speed.run_s) / speed.hops * 1e9


def _speed_cells(row: Row) -> list[str]:
    speed, case = row.speed, row.case
    best_s = min(speed.run_s)
    return [
        case.name,
        f"{speed.hops:,}",
        f"{best_s:.4f}",
        f"{statistics.median(speed.run_s):.4f}",
        f"{max(speed.run_s):.4f}",
        f"{speed.hops / best_s / 1e6:.1f}",
        _millions(case.must),
        _millions(case.aim),
        _verdict(speed.hops / best_s, must=case.must, aim=case.aim),
        f"{_ns_per_hop(speed):.1f}",
        f"{speed.payload_bytes / best_s / 1e9:.2f}",
    ]


def _collective_cells(row: Row) -> list[str]:
    [entry] = row.case.scenario().traffic
    assert isinstance(entry, Collective)
    ranks = entry.ranks or row.case.hosts
    algbw = row.speed.collective_bytes / (row.speed.collective_ps / 1e12)
    memory = None if row.loaded is None or row.loaded.peak is None else row.loaded.peak + row.loaded.arrays
    return [
        row.case.name,
        entry.collective,
        entry.algorithm,
        f"{ranks:,}",
        str(Size(row.speed.collective_bytes)),
        f"{row.speed.collective_ps / 1e6:,.1f}",
        f"{algbw / 1e9:.2f}",
        f"{algbw * busbw_factor(entry.collective, n_ranks=ranks) / 1e9:.2f}",
        "-" if memory is None else f"{memory / 1e6:,.1f}",
    ]


def _memory_cells(row: Row) -> list[str]:
    assert row.idle is not None
    assert row.loaded is not None
    hosts = row.loaded.hosts
    idle, loaded = _per_host(row.idle.peak, hosts), _per_host(row.loaded.peak, hosts)
    return [
        row.case.name,
        f"{hosts:,}",
        f"{row.loaded.arrays / hosts:,.0f}",
        "-" if idle is None else f"{idle:,.0f}",
        f"{IDLE_GOAL_BYTES:,d}",
        "-" if loaded is None else f"{loaded:,.0f}",
        f"{LOADED_GOAL_BYTES:,d}",
        _memory_verdict(idle, loaded),
    ]


def _memory_verdict(idle: float | None, loaded: float | None) -> str:
    if idle is None or loaded is None:
        return "-"
    return "yes" if idle <= IDLE_GOAL_BYTES and loaded <= LOADED_GOAL_BYTES else "no"


def _per_host(size_bytes: int | None, hosts: int) -> float | None:
    return None if size_bytes is None else size_bytes / hosts


def _millions(per_s: float | None) -> str:
    return "-" if per_s is None else f"{per_s / 1e6:.0f}"


def _verdict(per_s: float, *, must: float | None, aim: float | None) -> str:
    if must is None:
        return "-"
    return "aim" if aim is not None and per_s >= aim else "must" if per_s >= must else "no"


def _write_json(path: Path, rows: Sequence[Row]) -> None:
    """Write every figure, whole or not at all."""
    cases = [
        {
            "case": row.case.name,
            "must_hops_per_s": row.case.must,
            "aim_hops_per_s": row.case.aim,
            "speed": asdict(row.speed),
            "idle": row.idle and asdict(row.idle),
            "loaded": row.loaded and asdict(row.loaded),
        }
        for row in rows
    ]
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(json.dumps({"machine": describe_machine(), "cases": cases}, indent=2) + "\n")
    unfinished.replace(path)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    names = [case.name for case in ALL_CASES]
    parser.add_argument("--case", action="append", choices=names, help="measure this case (may be repeated)")
    parser.add_argument(
        "--variants",
        action="store_true",
        help="measure every congestion control and path choice, and what they are compared with",
    )
    parser.add_argument("--repeat", type=int, default=REPEAT, help=f"repetitions (default {REPEAT})")
    parser.add_argument("--flow-bytes", type=Size, help="message size instead of the case's own")
    parser.add_argument("--no-memory", action="store_true", help="measure speed only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure to a file")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    chosen = parser.parse_args(argv)
    if chosen.repeat < 1:
        parser.error("--repeat: at least 1")
    return chosen


def _chosen_cases(names: Sequence[str], *, variants: bool) -> list[Case]:
    cases = [case_named(name) for name in names]
    if variants:
        cases += [case_named(name) for name in dict.fromkeys(case.beside for case in VARIANTS if case.beside)]
        cases += VARIANTS
    return list(dict.fromkeys(cases)) if cases else list(CASES)


def main(argv: Sequence[str] | None = None, *, write: Callable[[str], object] = print) -> None:
    """Measure the chosen cases (default: all) and print the tables."""
    chosen = _arguments(argv)
    cases = _chosen_cases(chosen.case or (), variants=chosen.variants)
    write(machine_line() + "\n")
    rows = [
        measure_case(case, repeat=chosen.repeat, memory=not chosen.no_memory, flow_bytes=chosen.flow_bytes)
        for case in cases
    ]
    write(speed_table(rows, markdown=chosen.markdown))
    if not chosen.no_memory:
        write("\n" + memory_table(rows, markdown=chosen.markdown))
    collectives = [row for row in rows if row.speed.collective_ps]
    if collectives:
        write("\n" + collective_table(collectives, markdown=chosen.markdown))
    if any(case.beside in {each.name for each in cases} for case in cases):
        write("\n" + variant_table(rows, markdown=chosen.markdown))
    if chosen.json is not None:
        _write_json(chosen.json, rows)


if __name__ == "__main__":
    main()
