"""From an engine that has stopped to a `Result`: names, ideal times, tables.

The only place that knows a scenario's description, its network and its arrays at once. It gives every
number of the engine its name, and works out how long each flow would have taken with the network to
itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fabric.analysis.ideal import PathTimes, ideal_delivery_ps, serialisation_ps
from fabric.errors import SimulationError
from fabric.loads import busiest_ports, group_bytes
from fabric.lowered import DEADLOCK_CHANNEL, DEADLOCK_FRAME, ON_ITS_WAY, POSTED, ROW, DropReason, Lowered
from fabric.result import Category, Labels, Provenance, Result, Table
from fabric.result.collect import (
    connection_table,
    flow_table,
    node_table,
    port_class_table,
    port_table,
)
from fabric.result.critical import critical_table
from fabric.result.deadlocks import deadlock_frame_table, deadlock_link_table, watchdog_table
from fabric.result.programs import OperationLabels, operation_table, rank_table, waiting_table
from fabric.result.series import STREAM_OF, series_table
from fabric.result.steps import step_tables
from fabric.result.tasks import TaskLabels, link_table, task_table
from fabric.routing import NO_PORT, hashed_words, trace_path
from fabric.spec import Scenario
from fabric.topology import Network
from fabric.topology.describe import tier_name
from fabric.topology.patterns import REDUCER_SUFFIX
from fabric.workload import FlowTable, Job, Program
from fabric.workload.collectives import busbw_factor
from fabric.workload.collectives.levels import depth
from fabric.workload.flow_table import numbered_names

__all__ = [
    "Built",
    "Engine",
    "build_result",
    "ideal_times",
    "labels_of",
    "operation_labels",
    "own_ranks",
    "recorded_tables",
    "task_labels",
]

TIME_ONLY = ("send_recv", "custom")
"""Collectives that are nothing but time to compute where nothing is sent."""

NOT_DELIVERED_EVER = -1
"""Ideal time of a flow that no path leads to."""


class Engine(Protocol):
    """What both engines offer."""

    def run(self, until_ps: int | None = None, max_hops: int | None = None) -> str: ...
    @property
    def now_ps(self) -> int: ...
    def columns(self) -> dict[str, Any]: ...
    def rows(self, stream: str) -> npt.NDArray[np.void]: ...
    def deadlocks(self) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]: ...
    def waiting(self) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]: ...


@dataclass(frozen=True, kw_only=True)
class Built:
    """A scenario with everything that was made from it.

    Attributes
    ----------
    scenario : Scenario
    network : Network
    flows : FlowTable
        The connections of jobs last.
    jobs : tuple of Job
    lowered : Lowered
    """

    scenario: Scenario
    network: Network
    flows: FlowTable
    jobs: tuple[Job, ...] = ()
    lowered: Lowered


def build_result(
    engine: Engine, *, built: Built, status: str, wall_s: float, provenance: Provenance
) -> Result:
    """Return what an engine has recorded so far.

    Parameters
    ----------
    engine : Engine
        It has stopped, or stands between two chunks.
    built : Built
        What it runs.
    status : str
        Why it stopped, one of `fabric.result.result.STATUSES`.
    wall_s : float
        Seconds that it ran.
    provenance : Provenance
        Where the result comes from.
    """
    lowered, columns = built.lowered, engine.columns()
    labels, operations = labels_of(built), operation_labels(built.jobs)
    nothing = np.zeros(0, dtype=POSTED), np.zeros(0, dtype=ON_ITS_WAY)
    waiting = engine.waiting() if status == "STALLED" and built.jobs else nothing
    counters = {name: int(value) for name, value in columns["counters"].items()}
    ended = status in ("FINISHED", "STALLED", "DEADLOCK")
    lost = set()

    def kept(name: str, read: Callable[[], Any], otherwise: Any) -> Any:
        """What an engine has recorded, or nothing if there is no memory for it."""
        try:
            return read()
        except (SimulationError, MemoryError):
            lost.add(name)
            return otherwise

    no_deadlocks = np.zeros(0, dtype=DEADLOCK_CHANNEL), np.zeros(0, dtype=DEADLOCK_FRAME)
    channels, frames = kept("deadlocks", engine.deadlocks, no_deadlocks)
    watched = kept("watchdog", partial(engine.rows, "watchdog"), np.zeros(0, dtype=ROW))
    duration_ps = counters["end_ps"] if ended else int(engine.now_ps)
    recorded = recorded_tables(lowered)
    tables: dict[str, Table] = {
        "flows": flow_table(columns, lowered=lowered, labels=labels, ideal_ps=ideal_times(lowered)),
        "ports": port_table(columns, lowered=lowered, labels=labels, duration_ps=duration_ps),
        "classes": port_class_table(columns, lowered=lowered, labels=labels, duration_ps=duration_ps),
        "nodes": node_table(columns, lowered=lowered, labels=labels),
        "connections": connection_table(columns, lowered=lowered, labels=labels),
        "operations": operation_table(columns, lowered=lowered, labels=operations),
        "ranks": rank_table(columns, lowered=lowered, labels=operations, nodes=labels.nodes),
        "deadlock_links": deadlock_link_table(channels, lowered=lowered, labels=labels),
        "deadlock_frames": deadlock_frame_table(frames, lowered=lowered, labels=labels),
        "watchdog": watchdog_table(watched, labels=labels),
        "waiting": waiting_table(*waiting, columns, lowered=lowered, labels=operations),
    }
    if any(job.purpose is not None for job in built.jobs):
        tables |= training_tables(columns, built=built, operations=operations, ports=tables["ports"])
    for name, stream in STREAM_OF.items():
        rows = kept(name, partial(engine.rows, stream), np.zeros(0, dtype=ROW))
        tables[name] = series_table(name, rows, lowered=lowered, labels=labels)
    if lost & recorded:
        names = ", ".join(sorted(lost & recorded))
        warnings.warn(f"memory has run out: what was recorded of {names} is lost", stacklevel=3)
    return Result(
        status=status,
        tables=tables,
        recorded=recorded - lost,
        counters=counters,
        drops_by_reason=dict(zip(DropReason.NAMES, columns["drops_by_reason"].tolist(), strict=False)),
        duration_ps=duration_ps,
        wall_s=wall_s,
        provenance=provenance,
    )


def training_tables(
    columns: dict[str, Any], *, built: Built, operations: OperationLabels, ports: Table
) -> dict[str, Table]:
    """Return what is known of training jobs: tasks, steps, communication, critical paths, loads of links."""
    lowered, jobs = built.lowered, {job.name: job for job in built.jobs if job.purpose is not None}
    nodes = np.array(built.network.names, dtype=np.str_)
    labels = task_labels(built.jobs, operations)
    tasks = task_table(columns, lowered=lowered, labels=labels, nodes=nodes)
    n_ranks = {name: own_ranks(job) for name, job in jobs.items()}
    facts = {name: job.purpose.facts for name, job in jobs.items() if job.purpose is not None}
    steps, communication = step_tables(tasks, n_ranks=n_ranks, facts=facts)
    named = sorted(set(labels.dimension) - {"", "compute"})
    critical = critical_table(tasks, jobs=list(jobs), nodes=nodes)
    link = busiest_ports(lowered, [job.program for job in built.jobs], critical["operation"])
    links = np.append(ports["link"], "")
    columns_of = {name: critical.raw(name) for name in critical.columns}
    return {
        "tasks": tasks,
        "steps": steps,
        "communication": communication,
        "critical": Table({**columns_of, "link": _category(links[link].tolist())}, name="critical"),
        "loads": link_table(_dimension_bytes(built, named), names=named, ports=ports),
    }


def _dimension_bytes(built: Built, named: Sequence[str]) -> npt.NDArray[np.int64]:
    """Payload of each dimension of training jobs on every port."""
    program, flows = built.lowered.program, built.flows
    count = 0 if program is None else program.n_connections
    trains = {job.name for job in built.jobs if job.purpose is not None}
    group = []
    for label in flows.patterns:
        job, _, dimension = label.rpartition("/")
        group.append(named.index(dimension) if job in trains else -1)
    own = flows.pattern[len(flows) - count :]
    return group_bytes(
        built.lowered,
        flows.size_bytes[len(flows) - count :],
        group=np.array(group, dtype=np.int64)[own] if count else own,
        n_groups=len(named),
    )


def own_ranks(job: Job) -> int:
    """Ranks whose steps a training job's are; storage is none."""
    own = None if job.purpose is None else job.purpose.n_ranks
    return job.program.n_ranks if own is None else own


def task_labels(jobs: Sequence[Job], operations: OperationLabels) -> TaskLabels:
    """Return what the operations of all jobs are for; nothing, of those that are no training jobs."""
    dimension: list[str] = []
    what: list[str] = []
    step, aside, own, message = [], [], [], []
    for job in jobs:
        count = len(job.program)
        purpose = job.purpose
        dimension += [""] * count if purpose is None else purpose.dimension
        what += [""] * count if purpose is None else purpose.what
        step.append(np.full(count, -1) if purpose is None else purpose.step)
        aside.append(np.zeros(count, dtype=np.bool_) if purpose is None else purpose.aside)
        own.append(np.full(count, own_ranks(job)))
        named = purpose is not None and np.isin(np.array(purpose.dimension, dtype=np.str_), MESSAGES)
        message.append((np.diff(job.program.task_base) == 2) & named)
    return TaskLabels(
        jobs=operations.jobs,
        dimension=dimension,
        what=what,
        step=np.concatenate(step).astype(np.int64),
        aside=np.concatenate(aside).astype(np.bool_),
        own_ranks=np.concatenate(own).astype(np.int64),
        is_message=np.concatenate(message).astype(np.bool_),
        size_bytes=operations.size_bytes,
        ranks=operations.ranks,
    )


MESSAGES = ("pp", "storage")
"""Dimensions in which one rank sends to another."""


def labels_of(built: Built) -> Labels:
    """Return the names of nodes, ports, classes and flows.

    A flow without a name is called by its pattern and its place in it ("incast#3").
    """
    network, flows = built.network, built.flows
    ports = range(network.n_ports)
    return Labels(
        nodes=np.array(network.names, dtype=np.str_),
        tiers=np.array(_tiers(network), dtype=np.str_),
        ports=np.array([network.port_name(port) for port in ports], dtype=np.str_),
        links=np.array([network.port_arrow(port) for port in ports], dtype=np.str_),
        classes=np.array([one.name for one in built.scenario.switch.classes], dtype=np.str_),
        flows=np.array(numbered_names(flows), dtype=np.str_),
        patterns=Category(flows.pattern, np.array(flows.patterns, dtype=np.str_)),
        flow_bytes=flows.size_bytes,
    )


def _tiers(network: Network) -> list[str]:
    """Tier of each node; of what stands for a switch that adds up, "reducer"."""
    return [
        "reducer" if name.endswith(REDUCER_SUFFIX) else tier_name(tier)
        for name, tier in zip(network.names, network.tier.tolist(), strict=True)
    ]


def operation_labels(jobs: Sequence[Job]) -> OperationLabels:
    """Return the names and sizes of the operations of jobs; the third collective of a job is "job#2"."""
    programs = [job.program for job in jobs]
    templates = [program.templates[index] for program in programs for index in program.template.tolist()]
    factors = [
        busbw_factor(template.collective, n_ranks=template.n_ranks)
        if template.collective != "custom"
        else 1.0
        for template in templates
    ]
    chains = {id(template): depth(template) for program in programs for template in program.templates}
    none = np.zeros(0, dtype=np.int64)
    return OperationLabels(
        names=[f"{one.name}#{number}" for one in jobs for number in _numbers(one.program)],
        jobs=Category(
            np.repeat(np.arange(len(jobs)), [len(program) for program in programs]).astype(np.int64),
            np.array([one.name for one in jobs], dtype=np.str_),
        ),
        collectives=_category([template.collective for template in templates]),
        algorithms=_category([template.name for template in templates]),
        is_compute=np.array([number < 0 for one in jobs for number in _numbers(one.program)], dtype=np.bool_),
        size_bytes=np.concatenate([none, *(program.size_bytes for program in programs)]),
        busbw_factor=np.array(factors, dtype=np.float64),
        n_ranks=np.array([template.n_ranks for template in templates], dtype=np.int64),
        chain=np.array([chains[id(template)] for template in templates], dtype=np.int64),
        ranks=np.concatenate([none, *(program.task_rank for program in programs)]),
    )


def _numbers(program: Program) -> list[int]:
    """Number of each operation among those that are more than time to compute; of these, -1."""
    idle = np.array([not one.n_messages for one in program.templates], dtype=np.bool_)
    named = np.array([one.collective in TIME_ONLY for one in program.templates], dtype=np.bool_)
    computes = idle[program.template] & (named[program.template] | (program.compute_ps > 0))
    numbers: list[int] = np.where(computes, -1, np.cumsum(~computes) - 1).tolist()
    return numbers


def _category(names: Sequence[str]) -> Category:
    labels, codes = np.unique(np.array(names, dtype=np.str_), return_inverse=True)
    return Category(codes.astype(np.int32), labels)


def recorded_tables(lowered: Lowered) -> frozenset[str]:
    """Return the names of the time series that a run of `lowered` records."""
    per_port = int(np.bitwise_or.reduce(lowered.port_record, initial=0))
    per_flow = int(np.bitwise_or.reduce(lowered.flow_record, initial=0))
    asked = {
        "queue": per_port & 1,
        "throughput": per_port & 2,
        "packets": (per_port & 4) | (per_flow & 2),
        "rates": per_flow & 1,
        "pauses": lowered.record & 1,
        "marks": lowered.record & 2,
        "drops": lowered.record & 4,
    }
    return frozenset(name for name, bits in asked.items() if bits)


def ideal_times(lowered: Lowered) -> npt.NDArray[np.int64]:
    """Return for each flow the time from start to delivery in an empty network.

    Parameters
    ----------
    lowered : Lowered
        Any scenario.

    Returns
    -------
    numpy.ndarray of int64, [flows]
        Picoseconds along the flow's own path at the line rate of its links, without congestion control
        or windows; -1 for a flow that no path leads to, and for connections.
    """
    if not lowered.n_flows:
        return np.zeros(0, dtype=np.int64)
    path = trace_path(
        lowered,
        first_port=lowered.flow_port,
        destination=lowered.flow_destination,
        path_hash=lowered.flow_hash,
        words=hashed_words(
            lowered,
            source=lowered.flow_source,
            destination=lowered.flow_destination,
            flow=np.arange(lowered.n_flows),
        ),
    )
    full_bytes = lowered.transports["frame_bytes"][lowered.flow_transport].astype(np.int64)
    last_bytes = lowered.flow_last_frame_bytes.astype(np.int64)
    is_flow = lowered.flow_frames > 0
    frames = np.maximum(lowered.flow_frames.astype(np.int64), 1)
    delivery = ideal_delivery_ps(
        frames, path=_path_times(lowered, path=path, full_bytes=full_bytes, last_bytes=last_bytes)
    )
    hops = (path != NO_PORT).sum(axis=1)
    last_port = path[np.arange(len(path)), hops - 1]
    arrives = lowered.port_node[lowered.port_peer[last_port]] == lowered.flow_destination
    return np.where(arrives & is_flow, delivery, NOT_DELIVERED_EVER)


def _path_times(
    lowered: Lowered,
    *,
    path: npt.NDArray[np.int64],
    full_bytes: npt.NDArray[np.int64],
    last_bytes: npt.NDArray[np.int64],
) -> PathTimes:
    """Return how long frames occupy the links of each path; zeros after its end."""
    exists = path != NO_PORT
    port = np.where(exists, path, 0)
    rate_bps = lowered.port_rate_bps[port]
    gap_bytes = lowered.port_gap_bytes[port].astype(np.int64)
    cut_bytes = lowered.port_cut_bytes[port].astype(np.int64)

    def times(frame_bytes: npt.NDArray[np.int64], *, forwarding: bool) -> npt.NDArray[np.int64]:
        wire = frame_bytes[:, None] + gap_bytes
        if forwarding:
            wire = np.where(cut_bytes > 0, np.minimum(wire, cut_bytes), wire)
        return np.where(exists, serialisation_ps(wire, rate_bps=rate_bps), 0)

    return PathTimes(
        full_ps=times(full_bytes, forwarding=False),
        last_ps=times(last_bytes, forwarding=False),
        delay_ps=np.where(exists, lowered.port_delay_ps[port], 0),
        full_forward_ps=times(full_bytes, forwarding=True),
        last_forward_ps=times(last_bytes, forwarding=True),
    )
