"""Fresh processes: a measurement of a case runs in an interpreter of its own.

The child finds `fabric` and `benchmarks` where this process found them. Libraries that start threads of
their own are told not to, so that process time is the time of one core.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fabric.units import Size

__all__ = ["ChildError", "measure_command", "run_measure", "run_process"]

ROOT = Path(__file__).resolve().parents[1]


class ChildError(RuntimeError):
    """A measuring process failed."""


def measure_command(kind: str, *, case: str, repeat: int = 1, flow_bytes: Size | None = None) -> list[str]:
    """Return the command line that measures a case (`benchmarks.measure`)."""
    command = [sys.executable, "-m", "benchmarks.measure", kind, case, f"--repeat={repeat}"]
    return command if flow_bytes is None else [*command, f"--flow-bytes={int(flow_bytes)}"]


def run_process(command: Sequence[str]) -> str:
    """Run a command to its end and return what it printed.

    Raises
    ------
    ChildError
        If it fails, with the last line of its complaint.
    """
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(paths),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        complaint = done.stderr.strip().splitlines() or ["no message"]
        raise ChildError(f"{command[0]} ended with {done.returncode}: {complaint[-1]}")
    return done.stdout


def run_measure(kind: str, *, case: str, repeat: int = 1, flow_bytes: Size | None = None) -> dict[str, Any]:
    """Measure a case in a fresh process: the fields of `Speed` or `Memory`."""
    printed = run_process(measure_command(kind, case=case, repeat=repeat, flow_bytes=flow_bytes))
    seen: dict[str, Any] = json.loads(printed)
    return seen
