"""Programs of collectives by chance, for Hypothesis: see `strategies.py`.

Rings, all-to-alls and tables without meaning on up to eight ranks, several on a host at times; operations
of up to a few dozen frames that follow each other in any order, with pauses to compute in between.
"""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st
from strategies import POOL_FRAMES, scenarios, with_pool
from strategies_topology import hosts_of, pick
from support_programs import random_job

from fabric.spec import Scenario
from fabric.workload.job import Job

__all__ = ["scenarios_with_programs"]


@st.composite
def scenarios_with_programs(draw: st.DrawFn) -> tuple[Scenario, Job]:
    """A scenario with its own traffic, and a program that runs beside it."""
    scenario = draw(scenarios())
    if draw(st.integers(0, 2)) == 2:
        scenario = scenario.replace(nic=scenario.nic.replace(queue_pairs="in_turn"))
    rng = Random(draw(st.integers(0, 2**32 - 1)))
    payload = int(scenario.transport.payload)
    job = random_job(rng, hosts_of(scenario.topology), most_bytes=payload * pick(draw, (4, 1, 12, 40)))
    pool_bytes = int(scenario.transport.frame) * pick(draw, POOL_FRAMES)
    return with_pool(scenario, pool_bytes=pool_bytes, jobs=[job]), job
