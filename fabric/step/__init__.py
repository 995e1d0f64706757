"""Training steps run and explained: `fabric.run_step`, the report, and what more ranks cost."""

from __future__ import annotations

from fabric.step.report import StepReport
from fabric.step.run import run_step, run_step_sweep
from fabric.step.scale import scale_loss

__all__ = ["StepReport", "run_step", "run_step_sweep", "scale_loss"]
