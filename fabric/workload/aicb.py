"""Programs of AICB and SimAI workloads: one pass over the rows forward, one back, by all ranks alike.

Forward, row by row: compute, then the collective, which everyone waits for. Back, from the last row on:
compute the gradient of inputs and begin its collective; compute the gradient of weights beside it and begin
its own, which only the row's update waits for; go on when the first is over. Rows from a checkpoint on run
forward once more before the row that asks for it. This is the order of SimAI's HYBRID_TRANSFORMER policies;
the others have it here too. MICRO runs column by column and row by row, inference forward only.

Stages of a pipeline run the same rows. Where the file shows its micro-batches (`aicb_micro_batches`), each
stage sends `pp_comm` bytes to the next after the forward rows of one, and to the one before when it has the
gradient of its first row's inputs: all forward and then all back, the order that the rows have.

Sizes are of the global vector. A collective of 0 bytes is none. Source: as of `fabric.formats.aicb`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from fabric.errors import Said, SpecError
from fabric.formats import Remark
from fabric.formats.aicb import AicbWorkload, read_aicb
from fabric.formats.words import place
from fabric.spec.traffic import LARGEST_START_PS
from fabric.workload.aicb_groups import AicbGroups, aicb_groups
from fabric.workload.aicb_micro_batches import micro_batches
from fabric.workload.choice import check_algorithms, choose_collective
from fabric.workload.collectives import Rows, Template
from fabric.workload.program import Program, ProgramBuilder

__all__ = ["aicb_remarks", "import_aicb"]

PS_PER_NS = 1000
FORWARD, INPUT, WEIGHT = range(3)
"""Columns."""
COLUMNS = ("forward", "gradient of inputs", "gradient of weights")

RECOMPUTING = "HYBRID_TRANSFORMER_FWD_IN_BCKWD"
REFUSED = ("HYBRID_DLRM", "HYBRID_DLRM_ENHANCED")


def import_aicb(
    file: str | Path,
    *,
    n_ranks: int | None = None,
    algorithms: Mapping[str, str] | None = None,
    eager: bool = True,
) -> tuple[Program, list[Remark]]:
    """Make a program of a workload.

    Parameters
    ----------
    file : str or Path
    n_ranks : int, optional
        Instead of the header's `all_gpus`: of all stages of the pipeline, or of one.
    algorithms : mapping of str to str, optional
        By collective ("all_reduce"); as NCCL would, unless given.
    eager : bool
        Sends are done when they have left.

    Returns
    -------
    Program
    list of Remark
        What was not taken as it stands.

    Raises
    ------
    SpecError
        Naming file, line and cause; or how many ranks it can be for.

    Examples
    --------
    >>> import tempfile
    >>> text = "MICRO\\n1\\nrow -1 1 NONE 0 1 NONE 0 1 ALLGATHER 4096 1"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "workload.txt")
    ...     characters = file.write_text(text)
    ...     program, remarks = import_aicb(file, n_ranks=4)
    >>> program.size_bytes.tolist(), program.n_messages
    ([0, 0, 0, 4096], 12)
    """
    check_algorithms(algorithms or {})
    workload = read_aicb(file)
    if workload.policy in REFUSED:
        allowed = "another policy: no row says where the layers of the two towers meet"
        raise SpecError(place(file, 1, "policy"), workload.policy, allowed)
    groups = aicb_groups(workload, n_ranks=n_ranks)
    program = _Importer(workload, groups, algorithms or {}, eager).program()
    return program, aicb_remarks(workload, n_ranks=n_ranks)


def aicb_remarks(workload: AicbWorkload, *, n_ranks: int | None = None) -> list[Remark]:
    """Return what of a workload its program does not take as it stands."""
    remarks = list(workload.remarks)
    stages, size = workload.header.get("pp", 1), workload.header.get("pp_comm", 0)
    if stages > 1:
        what = f"messages between {stages} stages, {size} bytes each"
        reason = ""
        if not micro_batches(workload):
            count = workload.header.get("ga", 1)
            reason = f"left out: rows are not as many equal micro-batches as ga says ({count}, of at least 2)"
        elif n_ranks is not None and aicb_groups(workload, n_ranks=n_ranks).stages == 1:
            reason = f"left out: {n_ranks} ranks are one stage"
        if reason:
            remarks.append(Remark(file=workload.file, line=1, what=what, reason=reason))
    waiting = np.flatnonzero(workload.dependency >= 0)
    if waiting.size:
        line = int(workload.line[waiting[0]])
        reason = "rows run in their order, as they do in SimAI"
        remarks.append(Remark(file=workload.file, line=line, what="dependency", reason=reason))
    if workload.policy != RECOMPUTING and workload.checkpoint_initiates:
        reason = f"only {RECOMPUTING} computes rows again"
        remarks.append(Remark(file=workload.file, line=1, what="checkpoints", reason=reason))
    return remarks


class _Importer:
    def __init__(
        self, workload: AicbWorkload, groups: AicbGroups, algorithms: Mapping[str, str], eager: bool
    ) -> None:
        self.workload, self.groups = workload, groups
        self.algorithms, self.eager = algorithms, eager
        self.builder = ProgramBuilder(groups.n_ranks)
        self.last: list[list[int]] = [[] for _ in range(groups.n_ranks)]
        """By rank: what its next operation waits for."""
        self.message_bytes = workload.header.get("pp_comm", 0)
        micro = micro_batches(workload) if groups.stages > 1 and self.message_bytes else []
        self.first_rows = {rows.start: number for number, rows in enumerate(micro)}
        self.last_rows = {rows.stop - 1: number for number, rows in enumerate(micro)}
        parts = groups.stages if micro else 1
        self.stages = np.split(np.arange(groups.n_ranks), parts)
        """Ranks that run the rows together: of a stage, or all where stages send each other nothing."""
        self.stage = 0
        self.idle = _idle(groups.n_ranks // parts)
        self.arriving: dict[tuple[int, int], dict[int, int]] = {}
        """Messages by the stage that they are for, and micro-batch: operations by rank."""

    def program(self) -> Program:
        """Return the program."""
        rows = range(len(self.workload))
        policy = self.workload.policy
        if policy == "MICRO":
            for row in rows:
                for column in (FORWARD, INPUT, WEIGHT):
                    self._blocking(row, column)
            return self.builder.build(path=self.workload.file)
        for stage in range(len(self.stages)):
            self.stage = stage
            for row in rows:
                self._receive(self.first_rows.get(row))
                self._blocking(row, FORWARD)
                self._send(self.last_rows.get(row), to=self.stage + 1, before=self.last)
        if policy != "DISTRIBUTED_INFERENCE":
            for stage in range(len(self.stages) - 1, -1, -1):
                self.stage = stage
                self._back()
        return self.builder.build(path=self.workload.file)

    @property
    def ranks(self) -> list[int]:
        """Of the stage whose rows are put in."""
        ranks: list[int] = self.stages[self.stage].tolist()
        return ranks

    def _send(self, micro_batch: int | None, *, to: int, before: list[list[int]]) -> None:
        """Let every rank send what it has of a micro-batch to its place in another stage."""
        if micro_batch is None or not 0 <= to < len(self.stages):
            return
        found = {}
        for rank, target in zip(self.ranks, self.stages[to].tolist(), strict=True):
            found[target] = self.builder.message(
                rank, target, size_bytes=self.message_bytes, after=before[rank], eager=self.eager
            )
        self.arriving[to, micro_batch] = found

    def _receive(self, micro_batch: int | None) -> None:
        if micro_batch is not None:
            self._add(self.arriving.pop((self.stage, micro_batch), {}))

    def _back(self) -> None:
        checkpoints = sorted(self.workload.checkpoints)
        again = set(self.workload.checkpoint_initiates) if self.workload.policy == RECOMPUTING else set()
        for row in range(len(self.workload) - 1, -1, -1):
            if row in again:
                before = [each for each in checkpoints if each <= row]
                if not before:
                    where = place(self.workload.file, 1, "checkpoint_initiates")
                    raise SpecError(where, row, "a row with a checkpoint before it")
                for each in range(before[-1], row):
                    self._blocking(each, FORWARD)
            self._receive(self.last_rows.get(row))
            self._compute(row, INPUT)
            inputs = self._collective(row, INPUT, self.last)
            ready = [[inputs[rank]] if rank in inputs else self.last[rank] for rank in range(len(self.last))]
            self._send(self.first_rows.get(row), to=self.stage - 1, before=ready)
            self._compute(row, WEIGHT)
            weights = self._collective(row, WEIGHT, self.last)
            self._update(row, weights)
            self._add(inputs)

    def _blocking(self, row: int, column: int) -> None:
        self._compute(row, column)
        found = self._collective(row, column, self.last)
        for rank, operation in found.items():
            self.last[rank] = [operation]

    def _add(self, operations: dict[int, int]) -> None:
        for rank, operation in operations.items():
            self.last[rank] = [*self.last[rank], operation]

    def _compute(self, row: int, column: int) -> None:
        """The ranks of the stage compute."""
        spent = self._time(row, int(self.workload.compute_ns[row, column]))
        if spent:
            number = self._all_compute(spent, self.last)
            for rank in self.ranks:
                self.last[rank] = [number]

    def _all_compute(self, picoseconds: int, before: list[list[int]]) -> int:
        ranks = self.ranks
        after = sorted({each for rank in ranks for each in before[rank]})
        return self.builder.operation(self.idle, 0, ranks=ranks, after=after, compute_ps=picoseconds)

    def _update(self, row: int, weights: dict[int, int]) -> None:
        """The ranks take the gradients of a row over, once they have them; nothing waits for that."""
        spent = self._time(row, int(self.workload.update_ns[row]))
        if spent:
            before = [
                [weights[rank]] if rank in weights else self.last[rank] for rank in range(len(self.last))
            ]
            self._all_compute(spent, before)

    def _collective(self, row: int, column: int, before: list[list[int]]) -> dict[int, int]:
        """Operations of the groups, by rank."""
        kind, size = str(self.workload.collective[row, column]), int(self.workload.size_bytes[row, column])
        if not kind or not size:
            return {}
        where = place(self.workload.file, int(self.workload.line[row]), COLUMNS[column])
        if kind == "all_reduce_all_to_all":
            allowed = "ALLREDUCE or ALLTOALL: which ranks do which of both is in no file"
            raise SpecError(where, Said("ALLREDUCEALLTOALL"), allowed)
        found = {}
        groups = self.groups.groups[str(self.workload.group[row, column])]
        own = self.stages[self.stage]
        groups = groups[(groups[:, 0] >= own[0]) & (groups[:, 0] <= own[-1])]
        wanted = choose_collective(
            kind, n_ranks=groups.shape[1], size_bytes=size, algorithms=self.algorithms, path=where
        )
        for ranks in groups.tolist() if groups.shape[1] > 1 else ():
            after = sorted({each for rank in ranks for each in before[rank]})
            number = self.builder.collective(wanted, ranks=ranks, after=after, eager=self.eager)
            found.update(dict.fromkeys(ranks, number))
        return found

    def _time(self, row: int, nanoseconds: int) -> int:
        if nanoseconds * PS_PER_NS > LARGEST_START_PS:
            where = place(self.workload.file, int(self.workload.line[row]), "time")
            raise SpecError(where, nanoseconds, f"at most {LARGEST_START_PS // PS_PER_NS} ns")
        return nanoseconds * PS_PER_NS


def _idle(n_ranks: int) -> Template:
    """Ranks that send nothing, and do not wait for each other."""
    return Rows().build("none", "custom", n_ranks=n_ranks, n_pieces=1)
