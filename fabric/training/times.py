"""How long the parts of a pass take on a rank: attention, feed-forward block, experts, output matrix.

A layer computes in two parts, attention and what follows it; the last chunk has the output matrix besides. A
table has a time for each; given times of a layer are shared out evenly between its two parts.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from fabric.errors import SpecError
from fabric.spec.training.compute import PARTS, Compute, FlopTimes, GivenTimes
from fabric.spec.training.job import TrainingJob
from fabric.training.flops import part_flops

__all__ = ["ComputeTimes", "PartTimes", "StepTimes", "compute_times"]

PS_PER_US, PS_PER_S = 10**6, 10**12
COLUMNS = ("forward_us", "backward_us", "weight_us")


class ComputeTimes(Protocol):
    """Times of parts."""

    @property
    def update_ps(self) -> int: ...

    def part_ps(self, part: str, kind: str) -> float:
        """Time of a part in a pass of a kind: "F", "B", "I" (inputs alone) or "W" (weights alone)."""
        ...


@dataclass(frozen=True, kw_only=True)
class StepTimes:
    """Compute of one layer and micro-batch on one rank, in picoseconds.

    Attributes
    ----------
    forward_ps, backward_ps : int
    weight_ps : int
        The part of `backward_ps` that a schedule with split backwards may put off.
    update_ps : int
        Of the optimizer, for the whole step.
    """

    forward_ps: int
    backward_ps: int
    weight_ps: int = 0
    update_ps: int = 0

    def __post_init__(self) -> None:
        for name in ("forward_ps", "backward_ps", "weight_ps", "update_ps"):
            if getattr(self, name) < 0:
                raise SpecError(f"times.{name}", getattr(self, name), "at least 0")
        if self.weight_ps > self.backward_ps:
            raise SpecError("times.weight_ps", self.weight_ps, f"at most backward_ps ({self.backward_ps})")

    def part_ps(self, part: str, kind: str) -> float:
        """Half of a layer's; nothing for the output matrix."""
        if part == "output":
            return 0.0
        return 0.5 * _by_kind(self.forward_ps, self.backward_ps, self.weight_ps)[kind]


@dataclass(frozen=True, kw_only=True)
class PartTimes:
    """Times part by part, in picoseconds.

    Attributes
    ----------
    parts : mapping of str to (float, float, float)
        By part: forward, backward, and the part of it that computes gradients of weights.
    update_ps : int
    """

    parts: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    update_ps: int = 0

    def part_ps(self, part: str, kind: str) -> float:
        """Time of a part; nothing for one that is not there."""
        return _by_kind(*self.parts.get(part, (0.0, 0.0, 0.0)))[kind]


def compute_times(job: TrainingJob, compute: Compute, *, path: str = "compute") -> ComputeTimes:
    """Return the times that a job's entry describes.

    Raises
    ------
    SpecError
        If a file of measured times cannot be read, or lacks a part that the model has.

    Examples
    --------
    >>> job = TrainingJob(model="llama3-70b", sequence=8192, global_batch=1)
    >>> times = compute_times(job, FlopTimes(peak_tflops=989, efficiency=0.4))
    >>> round(times.part_ps("feed_forward", "F") / 1e9, 2)  # milliseconds
    29.18
    """
    if isinstance(compute, GivenTimes):
        return StepTimes(
            forward_ps=int(compute.forward),
            backward_ps=compute.whole_backward,
            weight_ps=compute.weight_part,
            update_ps=int(compute.update),
        )
    if isinstance(compute, FlopTimes):
        rate = compute.peak_tflops * 1e12 * compute.efficiency / PS_PER_S
        parts = {}
        for part in PARTS:
            linear, core = part_flops(job, part)
            parts[part] = ((linear + core) / rate, 2 * (linear + core) / rate, linear / rate)
        return PartTimes(parts=parts, update_ps=int(compute.update))
    parts = _read(compute.file, path=f"{path}.file: {compute.file}")
    shape = job.shape
    needed = {"attention"} | {
        "experts" if shape.has_experts(layer) else "feed_forward" for layer in range(shape.layers)
    }
    missing = sorted(needed - set(parts))
    if missing:
        raise SpecError(f"{path}.file: {compute.file}", ", ".join(parts), f"a row for {missing[0]}")
    return PartTimes(parts=parts, update_ps=int(compute.update))


def _by_kind(forward: float, backward: float, weight: float) -> dict[str, float]:
    return {"F": forward, "B": backward, "I": backward - weight, "W": weight}


def _read(file: str, *, path: str) -> dict[str, tuple[float, float, float]]:
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(path, getattr(error, "strerror", None) or "no text", "a CSV file") from None
    rows = csv.DictReader(text.splitlines())
    if rows.fieldnames is None or not {"part", *COLUMNS} <= set(rows.fieldnames):
        raise SpecError(path, rows.fieldnames, f"the columns part, {', '.join(COLUMNS)}")
    parts: dict[str, tuple[float, float, float]] = {}
    for number, row in enumerate(rows, start=2):
        where = f"{path}, line {number}"
        if row["part"] not in PARTS:
            raise SpecError(where, row["part"], f"one of {', '.join(PARTS)}")
        try:
            forward, backward, weight = (float(row[name]) * PS_PER_US for name in COLUMNS)
        except (TypeError, ValueError):
            raise SpecError(where, list(row.values()), "a part and three numbers") from None
        if not 0 <= weight <= backward < float("inf") or not 0 <= forward < float("inf"):
            raise SpecError(where, list(row.values()), "times of at least 0, weight_us at most backward_us")
        parts[row["part"]] = (forward, backward, weight)
    return parts
