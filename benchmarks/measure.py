"""Measures one case in this process, and prints what it saw as JSON.

`benchmarks.run` starts this module afresh for every figure, so that no measurement sees the memory or the
caches of another; callgrind runs it too. Time is process time of `Engine.run` alone: lowering the
scenario and building the engine are reported beside it. Each repetition is a new engine. Memory is the
growth of this process from the lowered scenario on: after the engine is built, and at its highest while
the engine runs in short chunks.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.cases import case_named
from benchmarks.memory import resident_bytes, settle
from fabric._core import Engine
from fabric.lower import lower
from fabric.lowered import Lowered
from fabric.spec import Permutation, Scenario, SingleSwitch
from fabric.units import Size

__all__ = ["Memory", "Speed", "lowered_bytes", "measure_memory", "measure_speed", "payload_bytes"]

CHUNK_HOPS = 50_000
"""Between two readings of memory."""


@dataclass(frozen=True, kw_only=True)
class Speed:
    """How fast a scenario runs.

    Attributes
    ----------
    hops : int
        Frames that arrived at the end of a link, control and PFC frames included.
    payload_bytes : int
        Message bytes of all flows and operations.
    simulated_ps : int
        Time of the last arrival.
    run_s : list of float
        Process time of each repetition.
    lower_s, build_s : float
        Process time from the scenario to arrays, and from arrays to an engine.
    collective_ps, collective_bytes : int
        What the collective took, from the first rank that entered it to the last that left, and its size;
        0 without one.
    """

    hops: int
    payload_bytes: int
    simulated_ps: int
    run_s: list[float]
    lower_s: float
    build_s: float
    collective_ps: int = 0
    collective_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What a scenario holds, in bytes; None where the system does not tell.

    Attributes
    ----------
    hosts : int
    arrays : int
        The lowered scenario, which the engine reads and does not copy.
    built, peak : int or None
        Growth of the process by a new engine, and by that engine at its highest.
    """

    hosts: int
    arrays: int
    built: int | None
    peak: int | None


def measure_speed(scenario: Scenario, *, repeat: int) -> Speed:
    """Run a scenario `repeat` times on the native engine."""
    began_s = time.process_time()
    lowered = lower(scenario)
    lower_s = time.process_time() - began_s
    run_s: list[float] = []
    build_s: list[float] = []
    for _ in range(repeat):
        began_s = time.process_time()
        engine = Engine(lowered)
        built_s = time.process_time()
        status = engine.run()
        ended_s = time.process_time()
        build_s.append(built_s - began_s)
        run_s.append(ended_s - built_s)
        if status != "FINISHED":
            raise RuntimeError(f"{scenario.name}: the run ended as {status}")
    columns = engine.columns()
    return Speed(
        hops=int(engine.hops),
        payload_bytes=payload_bytes(lowered) + int(columns.get("operation_sent_bytes", np.zeros(1)).sum()),
        simulated_ps=int(columns["counters"]["end_ps"]),
        run_s=run_s,
        lower_s=lower_s,
        build_s=min(build_s),
        collective_ps=_collective_ps(columns),
        collective_bytes=int(lowered.program.operation_bytes[0]) if lowered.program is not None else 0,
    )


def _collective_ps(columns: Mapping[str, Any]) -> int:
    if not len(columns.get("task_left_ps", ())):
        return 0
    return int(columns["task_left_ps"].max() - columns["task_entered_ps"].min())


def measure_memory(scenario: Scenario) -> Memory:
    """Build and run a scenario once, reading this process's memory."""
    _touch_code()
    lowered = lower(scenario)
    settle()
    before = resident_bytes()
    engine = Engine(lowered)
    built = peak = resident_bytes()
    status = "BUDGET"
    while status == "BUDGET":
        status = engine.run(max_hops=CHUNK_HOPS)
        now = resident_bytes()
        if now is not None and peak is not None:
            peak = max(peak, now)
    return Memory(
        hosts=lowered.n_hosts,
        arrays=lowered_bytes(lowered),
        built=_growth(before, built),
        peak=_growth(before, peak),
    )


def lowered_bytes(lowered: Lowered) -> int:
    """Return the memory of all arrays of a lowered scenario, its program's included."""
    tables = [*vars(lowered).values(), *(vars(lowered.program).values() if lowered.program else ())]
    return sum(array.nbytes for array in tables if isinstance(array, np.ndarray))


def payload_bytes(lowered: Lowered) -> int:
    """Return the message bytes of all flows that are no connections."""
    transports = lowered.transports[lowered.flow_transport]
    payload = transports["payload_bytes"].astype(np.int64)
    header = transports["frame_bytes"].astype(np.int64) - payload
    frames = lowered.flow_frames.astype(np.int64)
    sizes = (frames - 1) * payload + lowered.flow_last_frame_bytes - header
    return int(sizes[frames > 0].sum())


def _growth(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before


def _touch_code() -> None:
    """Run a few frames, so that what Python and libraries allocate once is there before a reading."""
    tiny = Scenario(topology=SingleSwitch(hosts=2), traffic=(Permutation(size=Size("64KB")),))
    engine = Engine(lower(tiny))
    engine.run()
    engine.columns()


def main(argv: Sequence[str] | None = None) -> None:
    """Measure what the command line names and print one line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.measure", description=__doc__)
    parser.add_argument("kind", choices=("speed", "memory", "idle"))
    parser.add_argument("case")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--flow-bytes", type=Size, default=None)
    chosen = parser.parse_args(argv)
    case = case_named(chosen.case)
    seen: Speed | Memory
    if chosen.kind == "idle":
        seen = measure_memory(case.idle_scenario())
    elif chosen.kind == "memory":
        seen = measure_memory(case.scenario(flow_bytes=chosen.flow_bytes))
    else:
        seen = measure_speed(case.scenario(flow_bytes=chosen.flow_bytes), repeat=chosen.repeat)
    json.dump(asdict(seen), sys.stdout)
    print()


if __name__ == "__main__":
    main()
