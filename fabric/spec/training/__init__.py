"""Training jobs in a scenario: the model, its layout, and how its steps run."""

from __future__ import annotations

from fabric.spec.training.compression import Quantised, TopK
from fabric.spec.training.compute import FlopTimes, GivenTimes, MeasuredTimes
from fabric.spec.training.entry import Training
from fabric.spec.training.job import TrainingJob
from fabric.spec.training.model import Experts, LatentAttention, Model
from fabric.spec.training.packing import SequencePacking
from fabric.spec.training.parallelism import Parallelism
from fabric.spec.training.router import Router
from fabric.spec.training.slowness import Slowness
from fabric.spec.training.storage import Batches, Checkpoint

__all__ = [
    "Batches",
    "Checkpoint",
    "Experts",
    "FlopTimes",
    "GivenTimes",
    "LatentAttention",
    "MeasuredTimes",
    "Model",
    "Parallelism",
    "Quantised",
    "Router",
    "SequencePacking",
    "Slowness",
    "TopK",
    "Training",
    "TrainingJob",
]
