"""All jobs of a scenario: collectives and programs, and training jobs, in the order of its traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.spec.training.entry import Training
from fabric.workload.job import Job
from fabric.workload.jobs import build_jobs

if TYPE_CHECKING:
    from fabric.spec.scenario import Scenario
    from fabric.topology.network import Network

__all__ = ["scenario_jobs"]


def scenario_jobs(scenario: Scenario, network: Network) -> list[Job]:
    """Make the jobs of a scenario.

    Raises
    ------
    SpecError
        If an entry does not fit the network.
    """
    jobs = build_jobs(scenario, network)
    if any(isinstance(entry, Training) for entry in scenario.traffic):
        from fabric.training.entries import training_jobs

        jobs = sorted([*jobs, *training_jobs(scenario, network)], key=lambda job: job.entry or 0)
    return jobs
