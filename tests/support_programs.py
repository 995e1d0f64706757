"""Programs for tests of the engines: random ones, and how a `Lowered` made by hand gets one."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
from support_lowered import US, busy_lowered, small_lowered

from fabric.lowered import Lowered
from fabric.lowering.programs import lower_jobs
from fabric.reference.rng import fmix32
from fabric.workload.collectives import Rows, Template, algorithm_names, build_template
from fabric.workload.job import Job
from fabric.workload.program import ProgramBuilder, compute_template

__all__ = ["busy_program", "random_job", "random_template", "with_jobs"]

MOST_RANKS = 8
FLOW_COLUMNS = (
    *("flow_source", "flow_destination", "flow_frames", "flow_last_frame_bytes", "flow_start_ps"),
    *("flow_hash", "flow_waits", "dep_base", "dep_flow", "dep_delay_ps", "dep_on"),
)


def random_template(rng: random.Random, n_ranks: int, *, transfers: int) -> Template:
    """A table by chance, without meaning: transfers come after arrivals at their source, or follow its sends;
    some are joins."""
    pieces = rng.randint(1, 5)
    rows, destinations = Rows(), []
    own: dict[int, list[int]] = {}
    for _ in range(transfers):
        source = rng.randrange(n_ranks)
        destination = rng.choice([(source + 1) % n_ranks, rng.randrange(n_ranks)])
        arrivals = [number for number, to in enumerate(destinations) if to == source]
        after = sorted(rng.sample(arrivals, min(len(arrivals), rng.choice([0, 1, 1, 2, 4]))))
        piece = rng.randrange(pieces)
        sent = own.setdefault(source, [])
        follows = rng.choice(sent) if sent and rng.random() < 0.3 else -1
        rows.add(
            source,
            destination,
            piece=piece,
            count=rng.randint(1, pieces - piece),
            channel=rng.choice([0, 0, 1]),
            step=0,
            after=[np.array([before]) for before in after],
            follows=follows,
        )
        if destination != source:
            sent.append(len(destinations))
        destinations.append(destination)
    return rows.build("random", "custom", n_ranks=n_ranks, n_pieces=pieces)


def random_job(rng: random.Random, n_hosts: int, *, most_bytes: int) -> Job:
    """A program by chance: operations on some ranks, several ranks on a host, orders that differ."""
    n_ranks = rng.randint(1, min(MOST_RANKS, 2 * n_hosts))
    groups = [tuple(rng.sample(range(n_ranks), rng.randint(1, n_ranks))) for _ in range(3)]
    templates = {group: _some_template(rng, len(group)) for group in groups}
    builder = ProgramBuilder(n_ranks)
    taken: list[tuple[int, ...]] = []
    for number in range(rng.randint(1, 6)):
        ranks = rng.choice(groups)
        template = templates[ranks]
        if rng.random() < 0.15:
            ranks, template = ranks[:1], compute_template()
        before = [k for k in range(number) if not set(taken[k]).isdisjoint(ranks)]
        builder.operation(
            template,
            _some_size(rng, template, most_bytes),
            ranks=ranks,
            after=rng.sample(before, rng.randint(0, len(before))),
            size_bytes=0,
            start_ps=rng.choice([0, 0, rng.randrange(5_000_000)]),
            compute_ps=rng.choice([0, 0, rng.randrange(8_000_000)]),
            eager=rng.random() < 0.3,
        )
        taken.append(ranks)
    hosts = [rng.randrange(n_hosts) for _ in range(n_ranks)]
    return Job(program=builder.build(), hosts=hosts, slow=_some_slowness(rng.randrange(2**16), n_ranks))


def _some_slowness(seed: int, n_ranks: int) -> tuple[tuple[int, int, int, float], ...]:
    """Ranks that are slow for a while, in half of the cases; a single number says it all."""
    rng = random.Random(seed)
    slow = []
    for _ in range(rng.choice([0, 0, 1, 4])):
        begin_ps = rng.randrange(8_000_000)
        end_ps = begin_ps + rng.choice([1, 1_000_000, 2**61])
        slow.append((rng.randrange(n_ranks), begin_ps, end_ps, rng.choice([1.0, 1.5, 7.3])))
    return tuple(slow)


def _some_template(rng: random.Random, n_ranks: int) -> Template:
    """Most often a random one; or an algorithm that there is for so many ranks."""
    if rng.random() < 0.6 or n_ranks < 2:
        return random_template(rng, n_ranks, transfers=rng.randint(0, 30))
    kind = rng.choice(["all_reduce", "all_to_all", "all_gather", "broadcast", "scatter", "barrier"])
    name = rng.choice([name for name in algorithm_names(kind) if name != "in_network"])
    return build_template(kind, algorithm=name, n_ranks=n_ranks, channels=rng.choice([1, 1, 2]))


def _some_size(rng: random.Random, template: Template, most_bytes: int) -> Any:
    if rng.random() < 0.7:
        return rng.choice([0, *[rng.randint(0, most_bytes)] * 3])
    return [rng.randint(0, most_bytes // template.n_blocks) for _ in range(template.n_blocks)]


def with_jobs(*jobs: Job, hosts: int, **local: int) -> dict[str, Any]:
    """Keywords of `small_lowered` for jobs: flows that are their connections, and their arrays."""
    lowered = lower_jobs(jobs, n_hosts=hosts, **local)
    flows = [
        {"source": source, "destination": destination, "frames": 0, "path_hash": fmix32(number + 77)}
        for number, (source, destination) in enumerate(
            zip(lowered.flows.source.tolist(), lowered.flows.destination.tolist(), strict=True)
        )
    ]
    return {"hosts": hosts, "flows": flows, "program": lowered.program}


def busy_program(seed: int) -> Lowered:
    """A program on a small fabric with everything in it, by chance: `busy_lowered` with other flows."""
    rng = random.Random(seed)
    busy = busy_lowered(seed)
    base, hosts = busy.node_port_base, busy.n_hosts
    jobs = [
        random_job(rng, hosts, most_bytes=rng.choice([3_000, 40_000, 120_000]))
        for _ in range(rng.choice([1, 1, 2]))
    ]
    local = {
        "local_rate_bps": rng.choice([0, 900 * 10**9, 7 * 10**9]),
        "local_latency_ps": rng.choice([0, 500_000]),
    }
    connected = with_jobs(*jobs, hosts=hosts, **local)
    transports = busy.transports.copy()
    for row in transports:
        row["rto_ps"] = rng.choice([60, 60, 200, 200, 0]) * US
        row["ack_delay_ps"] = rng.choice([0, 0, US, 10 * US])
        row["path_mode"], row["path_count"] = rng.choice([0, 0, 1, 2]), 4
        row["payload_bytes"] = row["frame_bytes"] - 64
        if row["congestion"] not in (3, 5) and rng.random() < 0.6:
            row["selective"], row["reorder_frames"], row["telemetry"] = 1, rng.choice([1, 3]), 0
    flows = connected["flows"]
    sources = [flow["source"] for flow in flows]
    columns = small_lowered(**connected)
    return replace(
        busy,
        n_flows=len(flows),
        program=columns.program,
        transports=transports,
        **{name: getattr(columns, name) for name in FLOW_COLUMNS},
        flow_port=np.array([rng.randrange(base[host], base[host + 1]) for host in sources], np.uint32),
        flow_class=np.array([rng.randrange(busy.n_classes) for _ in flows], np.uint8),
        flow_transport=np.array([rng.randrange(len(transports)) for _ in flows], np.uint16),
        flow_record=np.full(len(flows), 3, np.uint8),
    )
