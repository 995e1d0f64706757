"""Storage in the program of a job: batches that are asked for and come, checkpoints that are written.

Storage hosts are ranks of the program behind the job's. A rank asks for its next batch with a small message
when it begins a step, and waits for it when it begins the next. A part at a time, at a rate, is a chain of
pauses on the side that sends. A synchronous checkpoint is a message that the next step waits for until it
is acknowledged; an asynchronous one is a pause for the copy, then parts beside the next steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fabric.spec.training.storage import Batches, Checkpoint
from fabric.training.volumes import held_parameters
from fabric.units import Rate

if TYPE_CHECKING:
    from fabric.training.step_builder import StepBuilder

__all__ = ["StoragePlan", "StorageTraffic"]

REQUEST_BYTES = 64
"""What asks for a batch."""

PS_PER_S, BITS_PER_BYTE = 10**12, 8


@dataclass(frozen=True, kw_only=True)
class StoragePlan:
    """One kind of storage traffic, and the ranks of the program that are its storage.

    Attributes
    ----------
    spec : Batches or Checkpoint
    first_rank, n_ranks : int
    """

    spec: Batches | Checkpoint
    first_rank: int
    n_ranks: int

    def rank_for(self, rank: int) -> int:
        """Rank of the storage that a rank of the job uses."""
        return self.first_rank + rank % self.n_ranks


class StorageTraffic:
    """The storage part of a step under way."""

    def __init__(self, steps: StepBuilder) -> None:
        self.steps = steps
        self.batch: dict[tuple[int, int], list[int]] = {}
        """By plan and rank: the batch that the next step waits for."""
        self.flushed: dict[tuple[int, int], list[int]] = {}
        """By plan and rank: the checkpoint that is on its way."""

    def begin_step(self) -> None:
        """Wait for this step's batch and ask for the next one's."""
        steps = self.steps
        for number, plan in enumerate(steps.plan.storage):
            if not isinstance(plan.spec, Batches):
                continue
            for rank in steps.ranks_of_stage(0):
                if steps.step == 0:
                    self._ask(number, plan, plan.spec, rank)
                front = steps.front[rank]
                steps.front[rank] = sorted({*front, *self.batch[number, rank]})
                if steps.step + 1 < steps.plan.steps:
                    self._ask(number, plan, plan.spec, rank, after=front)

    def end_step(self) -> None:
        """Write a checkpoint, if this step is followed by one."""
        steps = self.steps
        for number, plan in enumerate(steps.plan.storage):
            spec = plan.spec
            if not isinstance(spec, Checkpoint) or (steps.step + 1) % spec.every:
                continue
            for rank in range(steps.layout.world):
                size = self._state_bytes(spec, rank)
                if spec.mode == "synchronous":
                    self._write(plan, rank, size)
                else:
                    self._write_aside(number, plan, spec, rank, size)

    def _ask(
        self, number: int, plan: StoragePlan, spec: Batches, rank: int, *, after: list[int] | None = None
    ) -> None:
        steps, storage, layout = self.steps, plan.rank_for(rank), self.steps.layout
        tokens = steps.job.micro_batches * steps.job.micro_batch * steps.job.sequence
        size = -(-tokens * spec.token_bytes // (layout.tp * layout.cp))
        request = steps.builder.message(
            rank, storage, size_bytes=REQUEST_BYTES, after=after or (), eager=True
        )
        steps.named(request, "storage", "request", aside=True)
        parts = self._parts(storage, rank, size, rate=spec.rate, part=int(spec.part), after=[request])
        self.batch[number, rank] = parts

    def _parts(
        self, source: int, target: int, size: int, *, rate: Rate | None, part: int, after: list[int]
    ) -> list[int]:
        """Send so many bytes, a part at a time if there is a rate; return the messages that end it."""
        steps, ends, begun = self.steps, [], list(after)
        sizes = [size] if rate is None else [part] * (size // part) + [size % part] * bool(size % part)
        for each in sizes:
            message = steps.builder.message(source, target, size_bytes=each, after=begun, eager=True)
            ends.append(steps.named(message, "storage", "part", aside=True))
            if rate is not None:
                time_ps = round(each * BITS_PER_BYTE * PS_PER_S / int(rate))
                pause = steps.builder.compute(source, picoseconds=time_ps, after=begun)
                begun = [steps.named(pause, "storage", "pace", aside=True)]
        return ends

    def _state_bytes(self, spec: Checkpoint, rank: int) -> int:
        if spec.size is not None:
            return int(spec.size)
        job, layout = self.steps.job, self.steps.layout
        stage = int(layout.coordinates(rank)["pp"])
        dense, routed = held_parameters(job, stage=stage)
        shares = dense / (layout.dp * layout.cp) + routed / layout.expert_dp
        return math.ceil(shares * spec.parameter_bytes)

    def _write(self, plan: StoragePlan, rank: int, size: int) -> None:
        steps = self.steps
        message = steps.builder.message(
            rank, plan.rank_for(rank), size_bytes=size, after=steps.front[rank], eager=False
        )
        steps.front[rank] = [steps.named(message, "storage", "checkpoint")]

    def _write_aside(self, number: int, plan: StoragePlan, spec: Checkpoint, rank: int, size: int) -> None:
        steps = self.steps
        steps.front[rank] = sorted({*steps.front[rank], *self.flushed.get((number, rank), ())})
        copy_ps = size * BITS_PER_BYTE * PS_PER_S / int(spec.copy_rate)
        steps.compute([rank], "copy", np.array([copy_ps]))
        self.flushed[number, rank] = self._parts(
            rank,
            plan.rank_for(rank),
            size,
            rate=spec.rate,
            part=int(spec.part),
            after=list(steps.front[rank]),
        )
