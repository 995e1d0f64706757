"""The shipped scenarios as cases: what each is expected to give, and what it gives (run once a process)."""

from __future__ import annotations

import functools
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import fabric
from fabric.result import Result

FOLDER = Path(__file__).resolve().parent.parent / "scenarios"


def _load_script(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


script = _load_script(FOLDER / "update_expected.py")
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
FILES = sorted(path.name for path in FOLDER.glob("*.toml"))


@functools.cache
def result_of(name: str) -> Result:
    return fabric.run(script.CASES[name].load(), progress=False)


def longest_ms(name: str, pattern: str = "*") -> float:
    return float(result_of(name).flows.where(pattern=pattern)["fct_ps"].max()) / 1e9


def slowdown(name: str, percentile: float) -> float:
    of = result_of(name).flows["slowdown"]
    return float(np.percentile(of, percentile, method="inverted_cdf"))


def operation_ms(name: str) -> float:
    """What the only operation of a case took."""
    (row,) = result_of(name).operations
    return float(row["duration_ps"]) / 1e9


def trains(scenario: fabric.Scenario) -> bool:
    return any(isinstance(entry, fabric.Training) for entry in scenario.traffic)


def step_ms(name: str, step: int = 0) -> float:
    """Time of a step of a case, from `expected.json`, which every case is held to."""
    return float(EXPECTED[name]["steps"][step]["duration_ps"]) / 1e9


def part_ms(name: str, part: str, step: int = 0) -> float:
    return float(EXPECTED[name]["steps"][step][part]) / 1e9
