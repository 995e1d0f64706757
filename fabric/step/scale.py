"""What more ranks cost: the same job with more data ranks, each with as much to do as before."""

from __future__ import annotations

from collections.abc import Sequence

from fabric.errors import Said, SpecError
from fabric.result import Table
from fabric.result.steps import step_numbers
from fabric.simulate import EngineName
from fabric.spec import Scenario, Training
from fabric.step.run import run_step

__all__ = ["scale_loss"]


def scale_loss(
    scenario: Scenario,
    data_ranks: Sequence[int],
    *,
    engine: EngineName = "native",
    progress: bool | None = None,
) -> Table:
    """Run the first training job of a scenario on fewer and more data ranks (weak scaling).

    Parameters
    ----------
    scenario : Scenario
        Its network must have room for the largest.
    data_ranks : sequence of int
        Sizes of `parallelism.dp`. The global batch grows in proportion, so a rank computes the same.
    engine, progress
        As for :func:`fabric.run`.

    Returns
    -------
    Table
        One row a size: ranks, time of a step, efficiency against an infinitely fast network, and against the
        first size: its time over this one's.

    Raises
    ------
    SpecError
        If a size is below 1, or the batch of one data rank is not whole.
    """
    index, entry = next(
        ((number, one) for number, one in enumerate(scenario.traffic) if isinstance(one, Training)), (0, None)
    )
    if entry is None:
        raise SpecError("traffic", Said("no training job"), 'an entry of kind "training"')
    share, rest = divmod(entry.job.global_batch, entry.job.parallelism.dp)
    if rest:
        path, allowed = f"traffic[{index}].job.global_batch", f"a multiple of dp ({entry.job.parallelism.dp})"
        raise SpecError(path, entry.job.global_batch, allowed)
    for size in data_ranks:
        if size < 1:
            raise SpecError("data_ranks", size, "sizes of at least 1")
    rows = []
    for size in data_ranks:
        job = entry.job.replace(global_batch=share * size, parallelism=entry.job.parallelism.replace(dp=size))
        traffic = [*scenario.traffic]
        traffic[index] = entry.replace(job=job)
        report = run_step(
            scenario.replace(traffic=tuple(traffic), sweep={}), engine=engine, progress=progress
        )
        numbers = step_numbers(report.result.tables)
        rows.append((job.parallelism.world, numbers["step_ps"], numbers["efficiency"]))
    first = rows[0][1] if rows else 0.0
    return Table(
        {
            "ranks": [row[0] for row in rows],
            "step_ps": [row[1] for row in rows],
            "efficiency": [row[2] for row in rows],
            "scale_efficiency": [first / row[1] for row in rows],
        },
        name="scale loss",
    )
