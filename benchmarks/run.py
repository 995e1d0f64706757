"""Speed and memory of every case, against the goals.

Prints two tables. Speed: hops, process seconds of the best, the median and the worst repetition, and, of
the best, hops per second, nanoseconds per hop and payload bytes simulated per second, beside what the case
must reach and aims at. Memory: bytes per host of the lowered scenario, of an engine in which one message of
one frame has been sent (idle), and of an engine at its highest under the case's load.

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

from benchmarks.cases import ALL_CASES, CASES, IDLE_GOAL_BYTES, LOADED_GOAL_BYTES, Case, case_named
from benchmarks.child import run_measure
from benchmarks.machine import describe_machine, machine_line
from benchmarks.measure import Memory, Speed
from benchmarks.tables import table_text
from fabric.units import Size

__all__ = ["Row", "main", "measure_case", "memory_table", "speed_table"]

REPEAT = 7

SPEED_HEADER = (
    "case", "hops", "best s", "median s", "worst s",
    "Mhops/s", "must", "aim", "met", "ns/hop", "payload GB/s",
)  # fmt: skip
MEMORY_HEADER = ("case", "hosts", "scenario B/host", "idle B/host", "goal", "loaded B/host", "goal", "met")


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
        f"{best_s / speed.hops * 1e9:.1f}",
        f"{speed.payload_bytes / best_s / 1e9:.2f}",
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
    if must is None or aim is None:
        return "-"
    return "aim" if per_s >= aim else "must" if per_s >= must else "no"


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
    parser.add_argument("--repeat", type=int, default=REPEAT, help=f"repetitions (default {REPEAT})")
    parser.add_argument("--flow-bytes", type=Size, help="message size instead of the case's own")
    parser.add_argument("--no-memory", action="store_true", help="measure speed only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure to a file")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    chosen = parser.parse_args(argv)
    if chosen.repeat < 1:
        parser.error("--repeat: at least 1")
    return chosen


def main(argv: Sequence[str] | None = None, *, write: Callable[[str], object] = print) -> None:
    """Measure the chosen cases (default: all) and print the tables."""
    chosen = _arguments(argv)
    cases = [case_named(name) for name in chosen.case] if chosen.case else list(CASES)
    write(machine_line() + "\n")
    rows = [
        measure_case(case, repeat=chosen.repeat, memory=not chosen.no_memory, flow_bytes=chosen.flow_bytes)
        for case in cases
    ]
    write(speed_table(rows, markdown=chosen.markdown))
    if not chosen.no_memory:
        write("\n" + memory_table(rows, markdown=chosen.markdown))
    if chosen.json is not None:
        _write_json(chosen.json, rows)


if __name__ == "__main__":
    main()
