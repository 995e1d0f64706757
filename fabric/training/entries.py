"""From the training jobs of a scenario to jobs: where their ranks are, and the program that they walk."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.spec.topology import RailOptimized
from fabric.spec.training.compute import FlopTimes
from fabric.spec.training.entry import Training
from fabric.spec.training.job import TrainingJob
from fabric.spec.training.router import Router
from fabric.topology.network import Network
from fabric.training.flops import step_flops
from fabric.training.placement import place_ranks
from fabric.training.plan import StepPlan
from fabric.training.routes import TokenRoutes
from fabric.training.slowdown import Slowdown
from fabric.training.step import Step, build_step
from fabric.training.storage import StoragePlan
from fabric.training.times import compute_times
from fabric.training.work import SequenceWork, packed_job
from fabric.workload.build import free_label
from fabric.workload.job import Job
from fabric.workload.program import Program

if TYPE_CHECKING:
    from fabric.spec.scenario import Scenario

__all__ = ["training_job", "training_jobs"]

Int64Array = npt.NDArray[np.int64]


def training_jobs(scenario: Scenario, network: Network) -> list[Job]:
    """Make the training jobs of a scenario.

    Parameters
    ----------
    scenario : Scenario
        Its `traffic`, `topology` and `run.seed` are used.
    network : Network

    Returns
    -------
    list of Job

    Raises
    ------
    SpecError
        If a job does not fit the network, or its parts do not fit each other.

    Examples
    --------
    >>> from fabric.spec import Scenario, SingleSwitch
    >>> from fabric.topology import build_network
    >>> scenario = Scenario(topology=SingleSwitch(hosts=4), traffic=[Training(
    ...     job={"model": "gpt2-small", "sequence": 1024, "global_batch": 4, "parallelism": {"pp": 4}},
    ...     compute={"kind": "given", "forward": "1ms"})])
    >>> [job] = training_jobs(scenario, build_network(scenario.topology))
    >>> job.name, job.program.n_ranks, job.purpose.dimension.count("pp")
    ('training', 4, 24)
    """
    jobs: list[Job] = []
    taken = {entry.name for entry in scenario.traffic if entry.name}
    for index, entry in enumerate(scenario.traffic):
        if not isinstance(entry, Training):
            continue
        label = entry.name or free_label("training", taken)
        taken.add(label)
        jobs.append(
            replace(training_job(scenario, network, entry, path=f"traffic[{index}]"), name=label, entry=index)
        )
    return jobs


def training_job(scenario: Scenario, network: Network, entry: Training, *, path: str) -> Job:
    """Make one training job of a scenario."""
    seed = scenario.run.seed
    try:
        job, work = entry.job, None
        if entry.packing is not None:
            job, work = packed_job(job, entry.packing, seed=seed)
        hosts, server_of = _places(scenario, network, entry, seed=seed, path=path)
        plans, storage_hosts, classes = _storage(network, entry, set(hosts.tolist()), path=path)
        routes = None
        if entry.router != Router():
            routes = TokenRoutes(
                job=job, router=entry.router, server_of=server_of, seed=seed, path=f"{path}.router"
            )
        plan = StepPlan(
            steps=entry.steps,
            schedule=entry.schedule,
            two_batch_overlap=entry.two_batch_overlap,
            bucket_bytes=None if entry.bucket is None else int(entry.bucket),
            algorithms=entry.algorithms,
            channels=entry.channels,
            server_of=server_of,
            eager=entry.eager,
            slowdown=Slowdown.of_entries(entry.slowness, n_ranks=job.parallelism.world, seed=seed),
            routes=routes,
            compression=entry.compression,
            work=work,
            storage=plans,
        )
        step = build_step(job, times=compute_times(job, entry.compute, path=f"{path}.compute"), plan=plan)
    except SpecError as error:
        inside = error.path.startswith((path, "topology"))
        raise SpecError(
            error.path if inside else f"{path}.{error.path}", error.value, error.allowed
        ) from None
    return Job(
        program=_begun(step, int(entry.start), path=path),
        hosts=np.concatenate([hosts, storage_hosts]).astype(np.int64),
        traffic_class=entry.traffic_class,
        transport=entry.transport,
        purpose=replace(step.purpose, n_ranks=job.parallelism.world, facts=_facts(entry, job, work)),
        slow=() if plan.slowdown is None else plan.slowdown.windows,
        rank_classes=classes,
    )


def _begun(step: Step, start_ps: int, *, path: str) -> Program:
    program = step.program
    return replace(program, start_ps=program.start_ps + start_ps).verify(path=path) if start_ps else program


def _facts(entry: Training, job: TrainingJob, work: SequenceWork | None) -> dict[str, float]:
    facts = {"flops": sum(step_flops(job)) if work is None else work.flops(job)}
    if isinstance(entry.compute, FlopTimes):
        facts["peak_flops"] = entry.compute.peak_tflops * 1e12
    return facts


def _places(
    scenario: Scenario, network: Network, entry: Training, *, seed: int, path: str
) -> tuple[Int64Array, Int64Array]:
    """Host and server of every rank."""
    found = network.find_hosts(entry.hosts, path=f"{path}.hosts").astype(np.int64)
    accelerators = entry.accelerators
    if accelerators is None:
        topology = scenario.topology
        accelerators = topology.accelerators_per_server if isinstance(topology, RailOptimized) else 1
    world = entry.job.parallelism.world
    servers = len(found) // accelerators
    if servers * accelerators < world:
        raise SpecError(
            f"{path}.hosts",
            entry.hosts,
            f"at least {world} hosts, on servers of {accelerators}, not {len(found)}",
        )
    place = place_ranks(
        entry.job.parallelism,
        servers=servers,
        accelerators=accelerators,
        how=entry.placement,
        tp_inside=entry.tp_inside,
        seed=seed,
    )
    return found[place], place // accelerators


def _storage(
    network: Network, entry: Training, used: set[int], *, path: str
) -> tuple[tuple[StoragePlan, ...], list[int], dict[int, str]]:
    """Plans of storage, the hosts of its ranks, and traffic classes by rank."""
    plans: list[StoragePlan] = []
    hosts: list[int] = []
    classes: dict[int, str] = {}
    first = entry.job.parallelism.world
    for index, spec in enumerate(entry.storage):
        where = f"{path}.storage[{index}].hosts"
        own = network.find_hosts(spec.hosts, path=where).tolist()
        both = sorted(used & set(own))
        if both:
            raise SpecError(where, spec.hosts, f"hosts without a rank, not {network.names[both[0]]}")
        plans.append(StoragePlan(spec=spec, first_rank=first + len(hosts), n_ranks=len(own)))
        if spec.traffic_class is not None:
            begin = first + len(hosts)
            classes |= dict.fromkeys(range(begin, begin + len(own)), spec.traffic_class)
        hosts += own
    return tuple(plans), hosts, classes
