"""Steps of a training job as a `Program`: what every rank computes and sends, and what waits for what.

A rank runs the passes of its stage in the order of the schedule; in a pass, layer by layer, compute and
collectives one after the other. Messages of the pipeline leave when a pass is over; the next stage's pass
waits for them. The two passes of a slot (of DualPipe, or of two batches that overlap) take turns to compute,
and each sends while the other does. Gradients are reduced bucket by bucket once their last backward is over,
beside whatever else the rank still does; the optimizer's update waits for all of them, and weights that are
cut are gathered after it. Then the rank begins its next step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.spec.training.job import TrainingJob
from fabric.training.plan import StepPlan
from fabric.training.schedule import Schedule
from fabric.training.schedules import build_schedule, two_batches
from fabric.training.step_builder import StepBuilder
from fabric.training.times import ComputeTimes
from fabric.workload.job import Purpose
from fabric.workload.program import Program

__all__ = ["Step", "build_step"]

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    """Steps and what their operations are.

    Attributes
    ----------
    program : Program
        Ranks of storage, if there are some, after those of the job.
    schedule : Schedule
    purpose : Purpose
        Of every operation.
    """

    program: Program
    schedule: Schedule
    purpose: Purpose

    @property
    def dimension(self) -> tuple[str, ...]:
        """Of every operation: "compute", a key of `GROUPS`, or "storage"."""
        return self.purpose.dimension

    @property
    def what(self) -> tuple[str, ...]:
        """Of every operation: the collective; the pass, as "F3.1", of compute and messages."""
        return self.purpose.what

    def sent_bytes(self, dimension: str) -> Int64Array:
        """Return what each rank sends in a dimension [ranks]."""
        sent = np.zeros(self.program.n_ranks, dtype=np.int64)
        for operation, name in enumerate(self.dimension):
            if name != dimension:
                continue
            template = self.program.templates[int(self.program.template[operation])]
            offsets = np.concatenate([[0], np.cumsum(self.program.piece_bytes(operation))])
            first = template.piece.astype(np.int64)
            size = offsets[first + template.count] - offsets[first]
            moves = template.source != template.destination
            ranks = self.program.ranks_of(operation)
            np.add.at(sent, ranks[template.source[moves]], size[moves])
        return sent


def build_step(job: TrainingJob, *, times: ComputeTimes, plan: StepPlan | None = None) -> Step:
    """Return a job's steps.

    Parameters
    ----------
    job : TrainingJob
    times : StepTimes or PartTimes
    plan : StepPlan, optional
        One step, everything as evenly as can be, unless given.

    Raises
    ------
    SpecError
        If the schedule cannot be run, or factors or copies do not fit.

    Examples
    --------
    >>> from fabric.spec.training.parallelism import Parallelism
    >>> from fabric.training.times import StepTimes
    >>> job = TrainingJob(model="gpt2-small", sequence=1024, global_batch=4,
    ...     parallelism=Parallelism(tp=2, pp=2))
    >>> step = build_step(job, times=StepTimes(forward_ps=10**9, backward_ps=2 * 10**9))
    >>> step.sent_bytes("pp").tolist()
    [6291456, 6291456, 6291456, 6291456]
    """
    plan = plan or StepPlan()
    layout = job.parallelism
    name = plan.schedule or ("interleaved" if layout.vpp > 1 else "1f1b")
    if name == "dualpipe" and layout.zero == 3:
        raise SpecError("schedule", name, "another with ZeRO-3: dualpipe keeps two chunks of weights")
    make = two_batches if plan.two_batch_overlap else build_schedule
    schedule = make(name, stages=layout.pp, micro_batches=job.micro_batches, chunks=layout.vpp)
    slow = plan.slowdown
    if slow is not None and len(slow.factor) != layout.world:
        raise SpecError("slowness", len(slow.factor), f"a factor for each of {layout.world} ranks")
    program, purpose = StepBuilder(job, schedule, times, plan).build()
    return Step(program=program, schedule=schedule, purpose=purpose)
