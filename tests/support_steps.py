"""Small training jobs, and what their steps take on a network that takes no time."""

from __future__ import annotations

from typing import Any

import fabric
from fabric.step import run_step

MODEL = {"layers": 4, "hidden": 64, "ffn": 128, "heads": 4, "vocabulary": 256}
SMALL_JOB = {"model": MODEL, "sequence": 64, "global_batch": 8}
MS = 10**9


def scenario_of(*entries: dict[str, Any], hosts: int = 8, **more: Any) -> fabric.Scenario:
    given = [{"kind": "training", **entry} for entry in entries]
    return fabric.Scenario(topology=fabric.SingleSwitch(hosts=hosts), traffic=given, **more)  # type: ignore[arg-type]


def entry_of(parallelism: dict[str, Any], *, forward: str = "100us", **more: Any) -> dict[str, Any]:
    job = {**SMALL_JOB, **more.pop("job", {}), "parallelism": parallelism}
    return {"job": job, "compute": {"kind": "given", "forward": forward}, **more}


def ideal_ps(entry: dict[str, Any], *, hosts: int = 16, step: int = 0) -> int:
    return int(run_step(scenario_of(entry, hosts=hosts), progress=False).ideal["duration_ps"][step])
