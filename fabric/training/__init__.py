"""Training steps as data: who shares what, what each rank sends, and in which order.

`Parallelism` says which ranks form which groups, `Model` how large what they share is; a `TrainingJob` is
both with a batch, and `volumes` and `communication_matrix` say what its step sends. `build_schedule`
orders the micro-batches of a pipeline; the router's functions make the matrices of expert traffic.
`docs/training.md` explains.
"""

from __future__ import annotations

from fabric.spec.training.compression import Quantised, TopK
from fabric.spec.training.job import TrainingJob
from fabric.spec.training.model import Experts, LatentAttention, Model
from fabric.spec.training.parallelism import Parallelism, hierarchical_groups
from fabric.spec.training.presets import MODELS, preset
from fabric.spec.training.stages import split_layers
from fabric.training.compression import step_time
from fabric.training.dispatch import (
    ExpertPlaces,
    padded_copies,
    scaled_token_bytes,
    token_copies,
    token_copies_by_server,
)
from fabric.training.dualpipe import dualpipe_volumes
from fabric.training.entries import training_jobs
from fabric.training.flops import part_flops, step_flops
from fabric.training.load import load_job
from fabric.training.matrix import CommunicationMatrix, communication_matrix
from fabric.training.packing import Packing, draw_lengths, pack_sequences
from fabric.training.placement import place_ranks
from fabric.training.plan import StepPlan
from fabric.training.replication import rank_loads, replicate_experts
from fabric.training.router import (
    balanced_choice,
    check_choice,
    choose_experts,
    distinct_targets,
    expert_capacity,
    expert_weights,
    within_capacity,
)
from fabric.training.routes import TokenRoutes
from fabric.training.schedule import Passage, PassTimes, Schedule, Timeline, execute
from fabric.training.schedules import SCHEDULES, bubble_time, build_schedule, two_batches
from fabric.training.slowdown import Slowdown
from fabric.training.step import Step, build_step
from fabric.training.times import PartTimes, StepTimes, compute_times
from fabric.training.volumes import Volume, context_block_bytes, held_parameters, volumes, wire_bytes

__all__ = [
    "MODELS",
    "SCHEDULES",
    "CommunicationMatrix",
    "ExpertPlaces",
    "Experts",
    "LatentAttention",
    "Model",
    "Packing",
    "Parallelism",
    "PartTimes",
    "PassTimes",
    "Passage",
    "Quantised",
    "Schedule",
    "Slowdown",
    "Step",
    "StepPlan",
    "StepTimes",
    "Timeline",
    "TokenRoutes",
    "TopK",
    "TrainingJob",
    "Volume",
    "balanced_choice",
    "bubble_time",
    "build_schedule",
    "build_step",
    "check_choice",
    "choose_experts",
    "communication_matrix",
    "compute_times",
    "context_block_bytes",
    "distinct_targets",
    "draw_lengths",
    "dualpipe_volumes",
    "execute",
    "expert_capacity",
    "expert_weights",
    "held_parameters",
    "hierarchical_groups",
    "load_job",
    "pack_sequences",
    "padded_copies",
    "part_flops",
    "place_ranks",
    "preset",
    "rank_loads",
    "replicate_experts",
    "scaled_token_bytes",
    "split_layers",
    "step_flops",
    "step_time",
    "token_copies",
    "token_copies_by_server",
    "training_jobs",
    "two_batches",
    "volumes",
    "wire_bytes",
    "within_capacity",
]
