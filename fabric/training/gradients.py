"""Gradients of the steps of a job: when they are reduced, in which buckets, in which form; then the update.

A chunk's gradients are complete when its last backward pass of the step has left its layers, last layer
first. They are reduced in buckets of whole layers, as large together as the chunk to the byte, one after
the other in each group. Under DualPipe two stages hold a chunk, and both reduce it together;
the two that hold the embedding hold the output matrix, too, and tie them without a message. Compressed
gradients take time to encode before they leave and to decode before the update.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fabric.spec.training.compression import TopK
from fabric.training.schedule import Passage
from fabric.training.volumes import chunk_parameters

if TYPE_CHECKING:
    from fabric.training.step_builder import StepBuilder

__all__ = ["Gradients"]

Int64Array = npt.NDArray[np.int64]

DIMENSIONS = ("dp", "edp")
PS_PER_S, BITS_PER_BYTE = 10**12, 8


class Gradients:
    """The data-parallel part of a step under way."""

    def __init__(self, steps: StepBuilder) -> None:
        self.steps = steps
        self.job, self.layout = steps.job, steps.layout
        self.compression = steps.plan.compression
        stages = steps.schedule.stages
        self.positions = [
            sorted({one.position for one in steps.schedule.passes(stage)}) for stage in range(stages)
        ]
        self.holders: dict[int, list[int]] = {}
        for stage, positions in enumerate(self.positions):
            for position in positions:
                self.holders.setdefault(position, []).append(stage)
        self.stream: dict[tuple[str, int], list[int]] = {}
        """By dimension and rank: the last reduction, which the next one waits for."""
        self.begin_step()

    def begin_step(self) -> None:
        """Forget what was reduced."""
        self.left: dict[tuple[int, int], int] = {}
        for stage, positions in enumerate(self.positions):
            for position in positions:
                backwards = [
                    one
                    for one in self.steps.schedule.passes(stage)
                    if one.kind in "BW" and one.position == position
                ]
                self.left[stage, position] = len(backwards)
        self.cut: dict[tuple[int, int, int], list[Fraction]] = {}
        """By stage, position and micro-batch: parameters of layers that wait for their bucket."""
        self.sent: dict[tuple[int, int, int], list[Fraction]] = {}
        """Parameters that are in buckets already."""
        self.number: dict[tuple[int, int], int] = {}
        self.halves: dict[tuple[int, int, str, int], dict[int, list[int]]] = {}
        """Buckets of which one of two stages is there: by position, number, dimension, group; fronts by
        rank."""
        self.reduced: dict[int, list[int]] = {rank: [] for rank in range(self.layout.world)}
        self.arrived: dict[int, float] = dict.fromkeys(range(self.layout.world), 0.0)
        """Payload that each rank has to decode."""

    def is_last(self, stage: int, one: Passage) -> bool:
        """Count a backward pass; True if what it leaves is reduced."""
        key = (stage, one.position)
        self.left[key] -= 1
        return self.left[key] == 0 or (self.layout.zero >= 2 and not self.job.accumulate)

    def gather(self, stage: int, position: int, micro_batch: int) -> None:
        """With ZeRO-3: gather a chunk's weights for a pass."""
        if self.layout.zero == 3 and (micro_batch == 0 or not self.job.accumulate):
            for dimension, parameters in zip(DIMENSIONS, chunk_parameters(self.job, position), strict=True):
                for group in self._groups(dimension, stage, position) if parameters else ():
                    self.steps.collective(dimension, "all_gather", self.job.weight_bytes * parameters, group)

    def leave(self, stage: int, one: Passage, layer: int, *, last: bool) -> None:
        """A backward pass has left a layer; reduce its bucket if that is full."""
        bucket_bytes = self.steps.plan.bucket_bytes
        if not last or bucket_bytes is None:
            return
        model, layout = self.job.shape, self.layout
        key = (stage, one.position, one.micro_batch)
        kept = self.cut.setdefault(key, [Fraction(0), Fraction(0)])
        kept[0] += Fraction(model.dense_parameters(layer), layout.tp)
        kept[1] += Fraction(model.routed_parameters(layer), layout.expert_tp * layout.ep)
        if sum(kept) * self.job.gradient_bytes >= bucket_bytes:
            self._bucket(stage, one, kept[0], kept[1])
            self.cut[key] = [Fraction(0), Fraction(0)]

    def leave_chunk(self, stage: int, one: Passage, *, last: bool) -> None:
        """A backward pass is over: reduce what is in no bucket yet."""
        if not last:
            return
        key = (stage, one.position, one.micro_batch)
        whole = chunk_parameters(self.job, one.position)
        sent = self.sent.get(key, [Fraction(0), Fraction(0)])
        self._bucket(stage, one, whole[0] - sent[0], whole[1] - sent[1])
        self.sent.pop(key, None)
        self.cut.pop(key, None)

    def end_step(self) -> None:
        """Let every rank wait for its gradients, update, and gather weights that are cut."""
        steps, job, layout = self.steps, self.job, self.layout
        if job.shape.tied and self.holders[0] != self.holders[steps.schedule.last_position]:
            size = Fraction(job.gradient_bytes * job.shape.vocabulary * job.shape.hidden, layout.tp)
            for pair in steps.pipelines[:, [0, -1]]:
                for rank in pair.tolist():
                    steps.front[rank] = sorted({*steps.front[rank], *self.reduced[rank]})
                steps.collective("embedding", "all_reduce", size, pair)
        for rank in range(layout.world):
            steps.front[rank] = sorted({*steps.front[rank], *self.reduced[rank]})
        every = np.arange(layout.world)
        rate = None if self.compression is None else self.compression.decode_rate
        if rate:
            arrived = np.array([self.arrived[rank] for rank in every.tolist()])
            steps.compute(every.tolist(), "decode", arrived * BITS_PER_BYTE * PS_PER_S / int(rate))
        slow = steps.plan.slowdown
        factor = np.ones(layout.world) if slow is None else slow.factor
        steps.compute(every.tolist(), "update", steps.times.update_ps * factor)
        if layout.zero in (1, 2):
            for position in sorted(self.holders):
                stage = self.holders[position][0]
                for dimension, held in zip(DIMENSIONS, chunk_parameters(job, position), strict=True):
                    for group in self._groups(dimension, stage, position) if held else ():
                        steps.collective(dimension, "all_gather", job.weight_bytes * held, group)

    def _groups(self, dimension: str, stage: int, position: int) -> list[Int64Array]:
        """Groups that hold a chunk and this stage's ranks are in, of more than one rank."""
        own = self.steps.groups[dimension]
        stages = self.holders[position]
        whole = [np.concatenate(each) for each in zip(*(own[one] for one in stages), strict=True)]
        return [group for group in whole if len(group) > 1]

    def _bucket(self, stage: int, one: Passage, dense: Fraction, routed: Fraction) -> None:
        """Reduce parameters of a chunk, behind those that the pass has reduced already."""
        position = one.position
        key = (stage, position, one.micro_batch)
        before = self.sent.get(key, [Fraction(0), Fraction(0)])
        after = [before[0] + dense, before[1] + routed]
        self.sent[key] = after
        number = self.number[stage, position] = self.number.get((stage, position), -1) + 1
        for dimension, first, end in zip(DIMENSIONS, before, after, strict=True):
            groups = self._groups(dimension, stage, position) if end > first else []
            own = [set(group.tolist()) & set(self.steps.ranks_of_stage(stage)) for group in groups]
            self._encode(sorted(set().union(*own)), end - first)
            for index, group in enumerate(groups):
                self._reduce(dimension, group, own[index], first, end, place=(position, number, index))

    def _encode(self, ranks: list[int], parameters: Fraction) -> None:
        rate = None if self.compression is None else self.compression.encode_rate
        if rate:
            dense = float(parameters * self.job.gradient_bytes)
            time_ps = dense * BITS_PER_BYTE * PS_PER_S / int(rate)
            self.steps.compute(ranks, "encode", np.full(len(ranks), time_ps))

    def _reduce(
        self,
        dimension: str,
        group: Int64Array,
        own: set[int],
        first: Fraction,
        end: Fraction,
        *,
        place: tuple[int, int, int],
    ) -> None:
        position, number, index = place
        fronts = {rank: list(self.steps.front[rank]) for rank in own}
        if len(own) < len(group):
            key = (position, number, dimension, index)
            fronts |= self.halves.pop(key, {})
            if len(fronts) < len(group):
                self.halves[key] = fronts
                return
        before = {one for front in fronts.values() for one in front}
        before |= {one for rank in group.tolist() for one in self.stream.get((dimension, rank), ())}
        each = self.job.gradient_bytes
        size = math.ceil(each * end) - math.ceil(each * first)
        last = self._exchange(dimension, group, size, math.ceil(end) - math.ceil(first), sorted(before))
        for rank in group.tolist():
            self.stream[dimension, rank] = last
            self.reduced[rank] += last

    def _exchange(
        self, dimension: str, group: Int64Array, size: int, values: int, before: list[int]
    ) -> list[int]:
        """Reduce a bucket of so many bytes and values; return the operations that end it."""
        collective, how = self.steps.collective, self.compression
        if how is None:
            kind = "all_reduce" if self.layout.zero == 0 else "reduce_scatter"
            return collective(dimension, kind, size, group, after=before)
        payload = how.payload_bytes(values)
        for rank in group.tolist():
            self.arrived[rank] += payload * (len(group) if isinstance(how, TopK) else 1)
        if isinstance(how, TopK):
            return collective(dimension, "all_gather", payload * len(group), group, after=before)
        last = collective(dimension, "reduce_scatter", payload, group, after=before)
        if self.layout.zero == 0:
            last = collective(dimension, "all_gather", payload, group, after=last)
        return last
