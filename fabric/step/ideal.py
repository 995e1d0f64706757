"""The same steps on a network that takes no time: every rank on one host, where copies are immediate.

What is left is what ranks compute and wait for each other. The same engine walks the same program, so that
the difference is the network's alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fabric._core import Engine
from fabric.lower import lower_with_flows
from fabric.outcome import operation_labels, own_ranks, task_labels
from fabric.result import Table
from fabric.result.steps import step_tables
from fabric.result.tasks import task_table
from fabric.spec import Scenario
from fabric.topology import Network
from fabric.workload import FlowTable, Job

__all__ = ["ideal_steps"]


def ideal_steps(scenario: Scenario, *, network: Network, jobs: Sequence[Job]) -> Table:
    """Return the table of the steps of a scenario's training jobs as they would be on an infinitely fast
    network.

    Parameters
    ----------
    scenario : Scenario
    network : Network
    jobs : sequence of Job
        Of the scenario; those that do not train are left out.

    Returns
    -------
    Table
        As `Result.steps`.
    """
    jobs = [
        replace(job, hosts=np.zeros_like(job.host_of), rank_classes={})
        for job in jobs
        if job.purpose is not None
    ]
    free = scenario.replace(failures=(), nic=scenario.nic.replace(copy_rate=None, copy_latency=0), sweep={})
    nothing = FlowTable.concatenate([])
    lowered, _ = lower_with_flows(free, network=network, flows=nothing, jobs=jobs)
    engine = Engine(lowered)
    engine.run()
    tasks = task_table(
        engine.columns(),
        lowered=lowered,
        labels=task_labels(jobs, operation_labels(jobs)),
        nodes=np.array(network.names, dtype=np.str_),
    )
    facts = {job.name: job.purpose.facts for job in jobs if job.purpose is not None}
    steps, _ = step_tables(tasks, n_ranks={job.name: own_ranks(job) for job in jobs}, facts=facts)
    return steps
