"""What DualPipe makes a rank send: every stage has two chunks of the model, and micro-batches go both ways.

Stage r of p runs positions r and p - 1 - r, each for half of the micro-batches; both stages that hold a chunk
reduce its gradients together, so data groups are twice as large, and where every micro-batch is reduced, two
are at once, one of each way. A tied embedding needs no exchange of its own: the first and the last stage hold
both copies.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from fabric.errors import SpecError
from fabric.spec.training.job import TrainingJob
from fabric.training.volumes import Volume, data_volumes, volumes

__all__ = ["dualpipe_volumes"]


def dualpipe_volumes(job: TrainingJob, *, stage: int) -> list[Volume]:
    """Return what a rank on a stage sends in a step under DualPipe.

    Parameters
    ----------
    job : TrainingJob
    stage : int

    Returns
    -------
    list of Volume
        As of `volumes`.

    Raises
    ------
    SpecError
        If there is no such stage, or DualPipe cannot run the job.

    Examples
    --------
    >>> from fabric.spec.training.parallelism import Parallelism
    >>> job = TrainingJob(model="gpt3-175b", sequence=2048, global_batch=512,
    ...     parallelism=Parallelism(tp=8, pp=8, dp=16))
    >>> for row in dualpipe_volumes(job, stage=3):
    ...     print(row.dimension, row.what, row.n_ranks, row.count, row.collective, int(row.wire_bytes))
    tp layers 8 1536 all_reduce 135291469824
    pp activations 2 32 send_recv 1610612736
    pp gradients 2 32 send_recv 1610612736
    dp gradients 32 2 all_reduce 21065651712
    """
    layout = job.parallelism
    if layout.pp % 2 or job.micro_batches % 2:
        given = (layout.pp, job.micro_batches)
        raise SpecError("schedule", given, "even numbers of stages and micro-batches for dualpipe")
    if layout.zero == 3:
        raise SpecError("parallelism.zero", 3, "at most 2 for dualpipe, which keeps two chunks of weights")
    counts: dict[tuple[str, str, str, Fraction, int], int] = {}
    for position in (stage, layout.pp - 1 - stage):
        rows = [
            replace(row, count=row.count // 2)
            for row in volumes(job, stage=position)
            if row.dimension not in ("dp", "edp", "embedding")
        ]
        rows += [
            replace(row, n_ranks=2 * row.n_ranks, count=max(row.count // 2, 1))
            for row in data_volumes(job, position)
        ]
        for row in rows:
            key = (row.dimension, row.what, row.collective, row.size_bytes, row.n_ranks)
            counts[key] = counts.get(key, 0) + row.count
    return [
        Volume(dimension=dimension, what=what, collective=collective, size_bytes=size, n_ranks=n, count=count)
        for (dimension, what, collective, size, n), count in counts.items()
        if size and count
    ]
