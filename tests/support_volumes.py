"""GPT-3 on 1024 ranks."""

from __future__ import annotations

from typing import Any

from fabric.training import Parallelism, TrainingJob

__all__ = ["GIB", "MIB", "gpt3"]

MIB = 2**20
GIB = 2**30


def gpt3(
    *, sequence: int = 2048, batch: int = 1536, layout: dict[str, Any] | None = None, **how: Any
) -> TrainingJob:
    parallelism = Parallelism(**{"tp": 8, "pp": 8, "dp": 16} | (layout or {}))
    return TrainingJob(
        model="gpt3-175b", sequence=sequence, global_batch=batch, parallelism=parallelism, **how
    )
