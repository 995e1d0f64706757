"""Puts the steps of a job together, pass by pass.

Each rank has a front: the operations that its next one waits for. Compute, and collectives that a pass needs,
move it on; what runs beside (gradients, messages to the next stage, storage) does not. The two passes of
one slot have a front each, and share the rank's compute; what they send to other stages leaves when both are
over, as in DualPipe's published implementation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from fabric.spec.training.job import TrainingJob
from fabric.spec.training.stages import split_layers
from fabric.training.forwarding import Forwarding
from fabric.training.gradients import Gradients
from fabric.training.layer import Part, backward_parts, first_parts, forward_parts, last_parts
from fabric.training.plan import ALGORITHMS, StepPlan
from fabric.training.rings import ring_orders
from fabric.training.schedule import Passage, PassTimes, Schedule, execute
from fabric.training.storage import StorageTraffic
from fabric.training.times import ComputeTimes
from fabric.training.volumes import GROUPS
from fabric.workload.collectives import Collective
from fabric.workload.job import Purpose
from fabric.workload.program import Program, ProgramBuilder

__all__ = ["StepBuilder"]

Int64Array = npt.NDArray[np.int64]

Front = list[int]

ORDER_TIMES = PassTimes(forward=1.0, backward=2.0, weight=0.5)
"""In which order passes are put into the program; what they really take is another matter."""


class StepBuilder:
    """A program under way.

    Parameters
    ----------
    job : TrainingJob
    schedule : Schedule
    times : ComputeTimes
    plan : StepPlan
    """

    def __init__(self, job: TrainingJob, schedule: Schedule, times: ComputeTimes, plan: StepPlan) -> None:
        self.job, self.schedule, self.times, self.plan = job, schedule, times, plan
        self.layout = job.parallelism
        world = self.layout.world
        self.builder = ProgramBuilder(n_ranks=world + sum(one.n_ranks for one in plan.storage))
        self.rows: list[tuple[str, str, int, bool]] = []
        self.step = 0
        self.front: list[Front] = [[] for _ in range(world)]
        self.busy: dict[int, int] | None = None
        """By rank, while two passes share a slot: the last that either computed."""
        self.unsent: list[tuple[Passage, bool]] = []
        """Passes of a slot whose messages leave at its end, and whether these go back."""
        self.passes = [0] * self.layout.pp
        self.arriving: dict[tuple[str, int, int], dict[int, int]] = {}
        """Messages by pass and rank."""
        self.groups = {
            name: _by_stage(job, self.layout.groups(tokens, expert=expert), expert=expert)
            for name, (tokens, expert) in GROUPS.items()
            if name not in ("pp", "embedding")
        }
        self.pipelines = self.layout.groups("pp")
        self.data_index = self.layout.coordinates(np.arange(world))["dp"]
        self.home = {one[1:]: stage for stage in range(schedule.stages) for one in schedule.passes(stage)}
        """Stage of a position and micro-batch."""
        count = schedule.last_position + 1
        chunks = split_layers(job.shape.layers, pp=self.layout.pp, vpp=count // self.layout.pp)
        self.layers = [chunks[c % self.layout.pp][c // self.layout.pp] for c in range(count)]
        self.gradients = Gradients(self)
        self.storage = StorageTraffic(self)

    def build(self) -> tuple[Program, Purpose]:
        """Return the program and what its operations are for."""
        order = execute(self.schedule, ORDER_TIMES)
        slots = sorted(
            (begin, stage, number)
            for stage, begins in enumerate(order.begin)
            for number, begin in enumerate(begins)
        )
        for step in range(self.plan.steps):
            self.step = step
            self._pause()
            self.storage.begin_step()
            self.gradients.begin_step()
            for _, stage, number in slots:
                self._slot(stage, self.schedule.slots[stage][number])
            self.gradients.end_step()
            self.storage.end_step()
        dimension, what, steps, aside = zip(*self.rows, strict=True) if self.rows else ((), (), (), ())
        purpose = Purpose(
            dimension=dimension,
            what=what,
            step=np.array(steps, dtype=np.int64),
            aside=np.array(aside, dtype=np.bool_),
        )
        return self.builder.build(path="step"), purpose

    def named(self, operation: int, dimension: str, what: str, *, aside: bool = False) -> int:
        """Note what an operation is for."""
        self.rows.append((dimension, what, self.step, aside))
        assert len(self.rows) == operation + 1
        return operation

    def ranks_of_stage(self, stage: int) -> list[int]:
        """Ranks of a stage, one a pipeline."""
        ranks: list[int] = self.pipelines[:, stage].tolist()
        return ranks

    def collective(
        self,
        dimension: str,
        kind: str,
        size: Fraction | int,
        group: Int64Array,
        *,
        what: str = "",
        matrix: Int64Array | None = None,
        after: Sequence[int] | None = None,
    ) -> list[int]:
        """Add a collective, as several rings where these use all rails; return its operations.

        With `after` (operations that it waits for) it runs aside.
        """
        algorithm = self.plan.algorithms.get(kind, ALGORITHMS[kind])
        aside = after is not None
        ranks = group.tolist()
        before = sorted({one for rank in ranks for one in self.front[rank]}) if after is None else after
        orders = [group]
        if algorithm == "ring":
            orders = ring_orders(group, server_of=self.plan.server_of)
        each, larger = divmod(math.ceil(size), len(orders))
        numbers = []
        for ring, order in enumerate(orders):
            wanted = self._wanted(kind, algorithm, each + (ring < larger), len(group), matrix)
            number = self.builder.collective(
                wanted, ranks=order.tolist(), after=before, eager=self.plan.eager
            )
            numbers.append(self.named(number, dimension, what or kind, aside=aside))
        if not aside:
            for rank in ranks:
                self.front[rank] = list(numbers)
        return numbers

    def _wanted(
        self, kind: str, algorithm: str, size: int, n_ranks: int, matrix: Int64Array | None
    ) -> Collective:
        if matrix is not None:
            return Collective(kind="all_to_all_v", n_ranks=n_ranks, matrix=matrix, algorithm=algorithm)
        options: dict[str, Any] = {}
        if self.plan.channels > 1 and algorithm == "ring":
            options["channels"] = self.plan.channels
        return Collective(kind=kind, n_ranks=n_ranks, size_bytes=size, algorithm=algorithm, options=options)

    def compute(self, ranks: Sequence[int], name: str, times_ps: npt.NDArray[np.float64]) -> None:
        """Let ranks compute, each for its time."""
        for rank, time_ps in zip(ranks, np.rint(times_ps).astype(np.int64).tolist(), strict=True):
            if not time_ps:
                continue
            before = set(self.front[rank])
            if self.busy is not None and rank in self.busy:
                before.add(self.busy[rank])
            number = self.builder.compute(rank, picoseconds=time_ps, after=sorted(before))
            self.front[rank] = [self.named(number, "compute", name)]
            if self.busy is not None:
                self.busy[rank] = number

    def _pause(self) -> None:
        slow = self.plan.slowdown
        for (step, rank), time_ps in sorted(slow.pauses.items()) if slow is not None else ():
            if step == self.step:
                self.compute([rank], "pause", np.array([float(time_ps)]))

    def _slot(self, stage: int, slot: tuple[Passage, ...]) -> None:
        if len(slot) == 1:
            for _ in self._pass(stage, slot[0]):
                pass
            return
        ranks = self.ranks_of_stage(stage)
        fronts = [{rank: list(self.front[rank]) for rank in ranks} for _ in slot]
        under_way = [self._pass(stage, one) for one in slot]
        self.busy = {}
        turn = 0
        while under_way:
            chosen = turn % len(under_way)
            for rank in ranks:
                self.front[rank] = fronts[chosen][rank]
            over = next(under_way[chosen], None) is None
            for rank in ranks:
                fronts[chosen][rank] = self.front[rank]
            if over:
                fronts.append(fronts.pop(chosen))
                under_way.pop(chosen)
                turn = chosen
            else:
                turn = chosen + 1
        for rank in ranks:
            self.front[rank] = sorted({one for each in fronts for one in each[rank]})
        self.busy = None
        for one, back in self.unsent:
            self._send(stage, one, back=back)
        self.unsent = []

    def _pass(self, stage: int, one: Passage) -> Iterator[bool]:
        """Add a pass; stops after each part that is computed."""
        kind, position, micro_batch = one
        layers, whole = self.layers[position], len(self.layers)
        back = kind in "BI"
        factor = self._factors(stage)
        self._receive(one)
        last_backward = kind in "BW" and self.gradients.is_last(stage, one)
        if kind == "W":
            for layer in reversed(layers):
                block = "experts" if self.job.shape.has_experts(layer) else "feed_forward"
                for what in ("attention", block):
                    self._part(stage, Part("compute", what, Fraction(0)), one, factor=factor, layer=layer)
                    yield True
                self.gradients.leave(stage, one, layer, last=last_backward)
            if position == whole - 1:
                self._part(stage, Part("compute", "output", Fraction(0)), one, factor=factor)
        else:
            self.gradients.gather(stage, position, micro_batch)
            first = list(first_parts(self.job, back=back)) if position == 0 else []
            last = list(last_parts(self.job, back=back)) if position == whole - 1 else []
            for part in last if back else first:
                self._part(stage, part, one, factor=factor)
            for layer in reversed(layers) if back else layers:
                for part in backward_parts(self.job, layer) if back else forward_parts(self.job, layer):
                    self._part(stage, part, one, factor=factor, layer=layer)
                    if part.dimension in ("compute", "recompute"):
                        yield True
                if kind == "B":
                    self.gradients.leave(stage, one, layer, last=last_backward)
            for part in first if back else last:
                self._part(stage, part, one, factor=factor)
            if self.busy is None:
                self._send(stage, one, back=back)
            else:
                self.unsent.append((one, back))
        if kind in "BW":
            self.gradients.leave_chunk(stage, one, last=last_backward)

    def _factors(self, stage: int) -> npt.NDArray[np.float64]:
        """By how much the compute of a stage's ranks is longer in its next pass."""
        number, self.passes[stage] = self.passes[stage], self.passes[stage] + 1
        ranks = self.pipelines[:, stage]
        slow = self.plan.slowdown
        return np.ones(len(ranks)) if slow is None else slow.of_pass(ranks, number)

    def _part(
        self,
        stage: int,
        part: Part,
        one: Passage,
        *,
        factor: npt.NDArray[np.float64],
        layer: int = 0,
    ) -> None:
        if part.dimension in ("compute", "recompute"):
            again = part.dimension == "recompute"
            ranks = self.ranks_of_stage(stage)
            each = self.times.part_ps(part.what, "F" if again else one.kind) * factor
            each = each * self._work(ranks, part.what, one.micro_batch, layer)
            name = f"{'R' if again else one.kind}{one.micro_batch}.{one.position}"
            self.compute(ranks, name, each)
            return
        for number, group in enumerate(self.groups[part.dimension][stage]):
            if len(group) == 1:
                continue
            if part.dimension != "ep":
                self.collective(part.dimension, part.what, part.size, group)
                continue
            routes = self.plan.routes
            if routes is None:
                self.collective("ep", "all_to_all", part.size, group, what=part.what)
                continue
            key = (stage, number)
            token = int(part.size) // (self.job.tokens_per_rank * self._top_k)
            token += routes.router.header_bytes if part.what == "dispatch" else 0
            way = routes.way(part.what, layer, one.micro_batch, group=key, ranks=group)
            if isinstance(way, Forwarding) and routes.router.chunks is not None:
                self._forward(way, token, group, what=part.what)
                continue
            for matrix in way.matrices() if isinstance(way, Forwarding) else [way]:
                self.collective("ep", "all_to_all", 0, group, what=part.what, matrix=matrix * token)

    def _forward(self, way: Forwarding, token_bytes: int, group: Int64Array, *, what: str) -> None:
        """Add an all-to-all in two legs at once."""
        ranks = group.tolist()
        sent = np.sum(way.matrices(), axis=(0, 2))
        number = self.builder.operation(
            way.template,
            way.piece_copies * token_bytes,
            ranks=ranks,
            after=sorted({one for rank in ranks for one in self.front[rank]}),
            size_bytes=int(sent.max()) * token_bytes,
            eager=self.plan.eager,
        )
        self.named(number, "ep", what)
        for rank in ranks:
            self.front[rank] = [number]

    @property
    def _top_k(self) -> int:
        assert self.job.shape.experts is not None
        return self.job.shape.experts.top_k

    def _work(
        self, ranks: list[int], part: str, micro_batch: int, layer: int
    ) -> npt.NDArray[np.float64] | float:
        """What a part has to do on each rank, against even experts and full places."""
        work: npt.NDArray[np.float64] | float = 1.0
        if self.plan.work is not None:
            work = self.plan.work.factor(part, micro_batch, self.data_index[ranks])
        routes = self.plan.routes
        if part == "experts" and routes is not None:
            stage = int(self.layout.coordinates(ranks[:1])["pp"][0])
            load = np.ones(self.layout.world)
            for number, group in enumerate(self.groups["ep"][stage]):
                load[group] = routes.load(layer, micro_batch, group=(stage, number), ranks=group)
            work = work * load[ranks]
        return work

    def _receive(self, one: Passage) -> None:
        """Let the messages for a pass be what its ranks wait for next."""
        kind, position, micro_batch = one
        key = ("B" if kind in "BI" else kind, position, micro_batch)
        for rank, message in self.arriving.pop(key, {}).items():
            for before in self.front[rank]:
                if self.rows[before][0] != "pp":
                    self.builder.wait(message, before)
            self.front[rank] = sorted({*self.front[rank], message})

    def _send(self, stage: int, one: Passage, *, back: bool) -> None:
        position = one.position + (-1 if back else 1)
        if not 0 <= position < len(self.layers) or self.layout.pp == 1:
            return
        target_stage = self.home[position, one.micro_batch]
        messages = {}
        for pipeline in self.pipelines.tolist():
            source, target = pipeline[stage], pipeline[target_stage]
            number = self.builder.message(
                source,
                target,
                size_bytes=self.job.message_bytes,
                after=self.front[source],
                eager=self.plan.eager,
            )
            name = f"{one.kind}{one.micro_batch}.{one.position}"
            messages[target] = self.named(number, "pp", name)
        self.arriving["B" if back else "F", position, one.micro_batch] = messages


def _by_stage(job: TrainingJob, groups: Int64Array, *, expert: bool) -> list[Int64Array]:
    stage = job.parallelism.coordinates(groups[:, 0], expert=expert)["pp"]
    return [groups[stage == each] for each in range(job.parallelism.pp)]
