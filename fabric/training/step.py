"""A training step as a `Program`: what every rank computes and sends, and what waits for what.

A rank runs the passes of its stage in the order of the schedule; in a pass, layer by layer, compute and
collectives one after the other. Messages of the pipeline leave when a pass is over; the next stage's pass
waits for them. Gradients of each chunk are reduced once its last backward is over, beside whatever else the
rank still does; the optimizer's update waits for all of them, and weights that are cut are gathered after it.

Left out: DualPipe, whose weights are on two stages at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.training.job import TrainingJob
from fabric.training.layer import Part, backward_parts, first_parts, forward_parts, last_parts
from fabric.training.schedule import Passage, PassTimes, Schedule, execute
from fabric.training.schedules import build_schedule
from fabric.training.stages import split_layers
from fabric.training.volumes import GROUPS, chunk_parameters
from fabric.workload.collectives import Collective
from fabric.workload.program import Program, ProgramBuilder

__all__ = ["Step", "StepTimes", "build_step"]

Int64Array = npt.NDArray[np.int64]

ALGORITHMS = {"all_reduce": "ring", "all_gather": "ring", "reduce_scatter": "ring", "all_to_all": "direct"}

Copies = Callable[[int, int], npt.ArrayLike]


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

    def of(self, kind: str) -> int:
        """Return the time of a layer in a pass of a kind."""
        return {
            "F": self.forward_ps,
            "B": self.backward_ps,
            "I": self.backward_ps - self.weight_ps,
            "W": self.weight_ps,
        }[kind]


@dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    """A step and what its operations are.

    Attributes
    ----------
    program : Program
    schedule : Schedule
    dimension : tuple of str [operations]
        "compute", or a key of `GROUPS`.
    what : tuple of str [operations]
        The collective; the pass, as "F3.1" (micro-batch 3 at position 1), of compute and messages.
    """

    program: Program
    schedule: Schedule
    dimension: tuple[str, ...]
    what: tuple[str, ...]

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


def build_step(
    job: TrainingJob,
    *,
    times: StepTimes,
    schedule: str | None = None,
    slowness: Sequence[float] | None = None,
    copies: Copies | None = None,
    algorithms: Mapping[str, str] | None = None,
) -> Step:
    """Return a job's step.

    Parameters
    ----------
    job : TrainingJob
    times : StepTimes
    schedule : str, optional
        "gpipe", "1f1b", "interleaved" or "zb1p"; interleaved if there are several chunks, else 1f1b.
    slowness : sequence of float [ranks], optional
        Factor of every rank's compute.
    copies : callable, optional
        Of a layer and a micro-batch: copies of tokens between expert ranks (`token_copies`), for each
        group the same; uniform unless given.
    algorithms : mapping of str to str, optional
        By collective; ring, and direct for all-to-all, unless given.

    Raises
    ------
    SpecError
        If the schedule cannot be run, or factors or copies do not fit.

    Examples
    --------
    >>> from fabric.training.parallelism import Parallelism
    >>> job = TrainingJob(model="gpt2-small", sequence=1024, global_batch=4,
    ...     parallelism=Parallelism(tp=2, pp=2))
    >>> step = build_step(job, times=StepTimes(forward_ps=10**9, backward_ps=2 * 10**9))
    >>> step.sent_bytes("pp").tolist()
    [6291456, 6291456, 6291456, 6291456]
    """
    layout = job.parallelism
    name = schedule or ("interleaved" if layout.vpp > 1 else "1f1b")
    if name == "dualpipe":
        raise SpecError("schedule", name, "gpipe, 1f1b, interleaved or zb1p")
    plan = build_schedule(name, stages=layout.pp, micro_batches=job.micro_batches, chunks=layout.vpp)
    factors = (1.0,) * layout.world if slowness is None else tuple(slowness)
    if len(factors) != layout.world or not all(math.isfinite(one) and one >= 0 for one in factors):
        raise SpecError("slowness", len(factors), f"a factor of at least 0 for each of {layout.world} ranks")
    return _StepBuilder(job, plan, times, factors, copies, {**ALGORITHMS, **(algorithms or {})}).build()


class _StepBuilder:
    def __init__(
        self,
        job: TrainingJob,
        plan: Schedule,
        times: StepTimes,
        factors: Sequence[float],
        copies: Copies | None,
        algorithms: Mapping[str, str],
    ) -> None:
        self.job, self.plan, self.times, self.factors = job, plan, times, factors
        self.copies, self.algorithms = copies, algorithms
        layout = job.parallelism
        self.builder = ProgramBuilder(n_ranks=layout.world)
        self.dimension: list[str] = []
        self.what: list[str] = []
        self.last: list[list[int]] = [[] for _ in range(layout.world)]
        """By rank: what its next operation waits for."""
        self.reduced: list[list[int]] = [[] for _ in range(layout.world)]
        """By rank: reductions of gradients, which its update waits for."""
        self.arriving: dict[tuple[str, int, int], dict[int, int]] = {}
        """Messages by pass and rank."""
        self.groups = {
            name: _by_stage(job, layout.groups(tokens, expert=expert), expert=expert)
            for name, (tokens, expert) in GROUPS.items()
            if name not in ("pp", "embedding")
        }
        self.pipelines = layout.groups("pp")
        chunks = split_layers(job.shape.layers, pp=layout.pp, vpp=layout.vpp)
        self.layers = [chunks[c % layout.pp][c // layout.pp] for c in range(layout.pp * layout.vpp)]

    def build(self) -> Step:
        order = execute(self.plan, PassTimes(forward=1.0, backward=2.0, weight=0.5))
        slots = sorted(
            (begin, stage, number)
            for stage, begins in enumerate(order.begin)
            for number, begin in enumerate(begins)
        )
        for _, stage, number in slots:
            for one in self.plan.slots[stage][number]:
                self._pass(stage, one)
        for stage in range(self.job.parallelism.pp):
            self._finish(stage)
        return Step(
            program=self.builder.build(path="step"),
            schedule=self.plan,
            dimension=tuple(self.dimension),
            what=tuple(self.what),
        )

    def _named(self, operation: int, dimension: str, what: str) -> int:
        self.dimension.append(dimension)
        self.what.append(what)
        assert len(self.what) == operation + 1
        return operation

    def _pass(self, stage: int, one: Passage) -> None:
        kind, position, micro_batch = one
        name = f"{kind}{micro_batch}.{position}"
        layers, whole = self.layers[position], len(self.layers)
        back = kind in "BI"
        for rank, message in self.arriving.pop(("B" if back else kind, position, micro_batch), {}).items():
            self.last[rank].append(message)
        if kind == "W":
            self._compute(stage, name, len(layers) * self.times.of("W"))
        else:
            if self._gathers(micro_batch):
                self._data(stage, position, "all_gather", self.job.weight_bytes, waits=True)
            first = list(first_parts(self.job, back=back)) if position == 0 else []
            last = list(last_parts(self.job, back=back)) if position == whole - 1 else []
            self._parts(stage, last if back else first, one)
            for layer in reversed(layers) if back else layers:
                parts = backward_parts if back else forward_parts
                self._parts(stage, parts(self.job, layer), one, layer=layer)
            self._parts(stage, first if back else last, one)
            self._send(stage, one, back=back)
        if kind in "BW":
            self._reduce(stage, position, micro_batch)

    def _gathers(self, micro_batch: int) -> bool:
        return self.job.parallelism.zero == 3 and (micro_batch == 0 or not self.job.accumulate)

    def _reduce(self, stage: int, position: int, micro_batch: int) -> None:
        """Reduce the gradients of a chunk, if a micro-batch is the last, or each is by itself."""
        zero = self.job.parallelism.zero
        last = micro_batch == self.job.micro_batches - 1
        if last or (zero >= 2 and not self.job.accumulate):
            kind = "all_reduce" if zero == 0 else "reduce_scatter"
            self._data(stage, position, kind, self.job.gradient_bytes, waits=False)

    def _parts(self, stage: int, parts: Iterable[Part], one: Passage, *, layer: int = 0) -> None:
        ways = 0
        for part in parts:
            if part.dimension == "compute":
                name = f"{one.kind}{one.micro_batch}.{one.position}"
                self._compute(stage, name, int(part.size * self.times.of(one.kind)))
                continue
            ways += part.dimension == "ep"
            matrix = None
            if part.dimension == "ep" and self.copies is not None:
                matrix = self._matrix(layer, one, part, out=ways % 2 == 1)
            for group in self.groups[part.dimension][stage]:
                if len(group) > 1:
                    self._collective(part.dimension, part.what, part.size, group, matrix=matrix)

    def _matrix(self, layer: int, one: Passage, part: Part, *, out: bool) -> Int64Array:
        assert self.copies is not None
        assert self.job.shape.experts is not None
        given = np.asarray(self.copies(layer, one.micro_batch), dtype=np.int64)
        each = int(part.size) // (self.job.tokens_per_rank * self.job.shape.experts.top_k)
        return (given if out else given.T) * each

    def _collective(
        self,
        dimension: str,
        kind: str,
        size: Fraction,
        group: Int64Array,
        *,
        matrix: Int64Array | None = None,
        waits: bool = True,
    ) -> int:
        algorithm = self.algorithms[kind]
        if matrix is None:
            wanted = Collective(
                kind=kind, n_ranks=len(group), size_bytes=math.ceil(size), algorithm=algorithm
            )
        else:
            wanted = Collective(kind="all_to_all_v", n_ranks=len(group), matrix=matrix, algorithm=algorithm)
        ranks = group.tolist()
        after = sorted({earlier for rank in ranks for earlier in self.last[rank]})
        number = self._named(self.builder.collective(wanted, ranks=ranks, after=after), dimension, kind)
        if waits:
            for rank in ranks:
                self.last[rank] = [number]
        return number

    def _compute(self, stage: int, name: str, time_ps: int) -> None:
        for rank in self.pipelines[:, stage].tolist():
            spent = round(time_ps * self.factors[rank])
            if spent:
                number = self.builder.compute(rank, picoseconds=spent, after=self.last[rank])
                self.last[rank] = [self._named(number, "compute", name)]

    def _send(self, stage: int, one: Passage, *, back: bool) -> None:
        step = -1 if back else 1
        position, layout = one.position + step, self.job.parallelism
        if not 0 <= position < len(self.layers) or layout.pp == 1:
            return
        messages = {}
        for pipeline in self.pipelines.tolist():
            source, target = pipeline[stage], pipeline[(stage + step) % layout.pp]
            number = self.builder.message(
                source, target, size_bytes=self.job.message_bytes, after=self.last[source]
            )
            messages[target] = self._named(number, "pp", f"{one.kind}{one.micro_batch}.{one.position}")
        self.arriving["B" if back else "F", position, one.micro_batch] = messages

    def _data(self, stage: int, position: int, kind: str, each: int, *, waits: bool) -> None:
        held = chunk_parameters(self.job, position)
        for dimension, parameters in zip(("dp", "edp"), held, strict=True):
            for group in self.groups[dimension][stage] if parameters else ():
                if len(group) > 1:
                    number = self._collective(dimension, kind, each * parameters, group, waits=waits)
                    for rank in group.tolist() if not waits else ():
                        self.reduced[rank].append(number)

    def _finish(self, stage: int) -> None:
        job, layout = self.job, self.job.parallelism
        ends = self.pipelines[:, [0, -1]]
        if job.shape.tied and layout.pp > 1 and stage == layout.pp - 1:
            size = Fraction(job.gradient_bytes * job.shape.vocabulary * job.shape.hidden, layout.tp)
            for pair in ends:
                for rank in pair.tolist():
                    self.last[rank] += self.reduced[rank]
                self._collective("embedding", "all_reduce", size, pair)
        if stage < layout.pp - 1:
            return
        for rank in range(layout.world):
            self.last[rank] = sorted({*self.last[rank], *self.reduced[rank]})
        for each in range(layout.pp):
            self._compute(each, "update", self.times.update_ps)
            if layout.zero in (1, 2):
                for position in range(each, len(self.layers), layout.pp):
                    self._data(each, position, "all_gather", job.weight_bytes, waits=True)


def _by_stage(job: TrainingJob, groups: Int64Array, *, expert: bool) -> list[Int64Array]:
    stage = job.parallelism.coordinates(groups[:, 0], expert=expert)["pp"]
    return [groups[stage == each] for each in range(job.parallelism.pp)]
