"""What a summary says of training jobs: how many steps were done, and where the time of one goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .table import Table
from .text import align, count_text, percent_text, time_text

if TYPE_CHECKING:
    from .result import Result

__all__ = ["apart_from_training", "training_rows", "training_text"]

STEP_PARTS = (
    ("compute", "compute_ps"),
    ("exposed", "exposed_ps"),
    ("bubble", "bubble_ps"),
    ("waiting", "waiting_ps"),
)
"""Parts of the time of a step that are shown."""


def apart_from_training(result: Result) -> Table:
    """Return the operations of jobs that are no training jobs."""
    if "tasks" not in result.tables:
        return result.operations
    trained = np.unique(result.tables["tasks"]["operation"])
    return result.operations[~np.isin(result.operations["operation"], trained)]


def training_rows(result: Result) -> list[dict[str, Any]]:
    """Return for each training job how many steps were done, and where the time of one goes on average."""
    if "steps" not in result.tables:
        return []
    steps = result.tables["steps"]
    rows = []
    for job in dict.fromkeys(result.tables["tasks"]["job"].tolist()):
        own = steps[steps["job"] == job]
        parts = {key: float(own[key].mean()) if len(own) else None for _, key in STEP_PARTS}
        step_ps = float(own["duration_ps"].mean()) if len(own) else None
        rows.append({"job": job, "steps": len(own), "step_ps": step_ps, **parts})
    return rows


def training_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return these rows as a table for people."""
    if not rows:
        return ""
    header = ["", "steps", "time: mean", *(name for name, _ in STEP_PARTS)]
    lines = [
        [
            row["job"],
            count_text(row["steps"]),
            time_text(row["step_ps"]) if row["steps"] else "-",
            *(percent_text(row[key] / row["step_ps"]) if row["steps"] else "-" for _, key in STEP_PARTS),
        ]
        for row in rows
    ]
    return "\n".join(align([header, *lines], right=range(1, len(header))))
