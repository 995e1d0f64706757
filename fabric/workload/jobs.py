"""From collectives and programs of a scenario to jobs: which hosts, in which order, what they do, how often.

Ranks take the chosen hosts in the order of their numbers, or in one that is drawn; with several ranks a
host, rank r is on host r // ranks_per_host of these. Repetitions follow each other at every rank. With
jitter each rank first computes for a time that is drawn. In-network reduction takes the reducers of the
network (`topology.reducers`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fabric.errors import SpecError
from fabric.spec.traffic import Collective as CollectiveSpec
from fabric.spec.traffic import Program as ProgramSpec
from fabric.topology.network import Network
from fabric.topology.reducers import reduction_tree
from fabric.units import Size
from fabric.workload.build import free_label
from fabric.workload.collectives import Collective
from fabric.workload.collectives.arrays import Int64Array
from fabric.workload.collectives.split import MOST_PARTS
from fabric.workload.draws import EntryDraws, Stream
from fabric.workload.job import Job
from fabric.workload.program import Program, ProgramBuilder
from fabric.workload.program_files import read_program
from fabric.workload.ragged import read_matrix, zipf_matrix

if TYPE_CHECKING:
    from fabric.spec.scenario import Scenario

__all__ = ["build_jobs"]

IN_NETWORK = "in_network"
MOST_TASKS = 2**31
"""Of all ranks together: what each does in each repetition is numbered."""


def build_jobs(scenario: Scenario, network: Network) -> list[Job]:
    """Make the jobs of a scenario, one for each collective or program.

    Parameters
    ----------
    scenario : Scenario
        Its `traffic` and `run.seed` are used.
    network : Network
        Of the scenario's topology.

    Returns
    -------
    list of Job

    Raises
    ------
    SpecError
        If an entry does not fit the network, or there is no such collective or algorithm.

    Examples
    --------
    >>> from fabric.spec import Collective, Scenario, SingleSwitch
    >>> from fabric.topology import build_network
    >>> scenario = Scenario(
    ...     topology=SingleSwitch(hosts=4), traffic=[Collective(collective="all_reduce", size="1MB")]
    ... )
    >>> [job] = build_jobs(scenario, build_network(scenario.topology))
    >>> job.name, job.program.n_messages
    ('collective', 24)
    """
    jobs: list[Job] = []
    taken = {entry.name for entry in scenario.traffic if entry.name}
    labels: set[str] = set()
    kinds: Counter[str] = Counter()
    for index, entry in enumerate(scenario.traffic):
        if not isinstance(entry, CollectiveSpec | ProgramSpec):
            continue
        kind = str(entry.__struct_config__.tag)
        draws = EntryDraws.of_entry(scenario.run.seed, kind=kind, occurrence=kinds[kind])
        kinds[kind] += 1
        label = entry.name or free_label(kind, labels | taken)
        labels.add(label)
        jobs.append(_job(entry, network=network, draws=draws, name=label, index=index))
    return jobs


def _job(
    entry: CollectiveSpec | ProgramSpec, *, network: Network, draws: EntryDraws, name: str, index: int
) -> Job:
    path = f"traffic[{index}]"
    hosts = _hosts(entry, network=network, draws=draws, path=path)
    if isinstance(entry, ProgramSpec):
        program = read_program(entry, path=path, room=len(hosts))
        hosts = hosts[: program.n_ranks]
    else:
        if entry.ranks is not None and entry.ranks > len(hosts):
            raise SpecError(f"{path}.ranks", entry.ranks, f"at most {len(hosts)}, for which hosts have room")
        hosts = hosts[: entry.ranks]
        fan_in: tuple[int, ...] = ()
        reducers: list[int] = []
        if entry.algorithm == IN_NETWORK:
            fan_in, reducers = reduction_tree(network, hosts, path=f"{path}.hosts")
        most = MOST_TASKS // (len(hosts) + len(reducers))
        if entry.repeat > most:
            raise SpecError(f"{path}.repeat", entry.repeat, f"at most {most} for {len(hosts)} ranks")
        program = _program(entry, n_ranks=len(hosts), fan_in=fan_in, draws=draws, path=path)
        hosts = np.append(hosts, reducers).astype(np.int64)
    return Job(
        program=program,
        hosts=hosts,
        name=name,
        traffic_class=entry.traffic_class,
        transport=entry.transport,
        entry=index,
    )


def _hosts(
    entry: CollectiveSpec | ProgramSpec, *, network: Network, draws: EntryDraws, path: str
) -> Int64Array:
    """The host of each rank for which there is room."""
    hosts = network.find_hosts(entry.hosts, path=f"{path}.hosts").astype(np.int64)
    if isinstance(entry, CollectiveSpec):
        for number, pattern in enumerate(entry.without):
            out = network.find_hosts(pattern, path=f"{path}.without[{number}]")
            hosts = hosts[~np.isin(hosts, out)]
    if entry.order == "shuffled":
        hosts = hosts[np.argsort(draws.bits(Stream.HOST_ORDER, hosts), kind="stable")]
    return np.repeat(hosts, entry.ranks_per_host)


def _program(
    entry: CollectiveSpec, *, n_ranks: int, fan_in: tuple[int, ...], draws: EntryDraws, path: str
) -> Program:
    options: dict[str, Any] = {name: _frozen(value) for name, value in entry.options.items()}
    if entry.channels > 1:
        options["channels"] = entry.channels
    if fan_in:
        options["fan_in"] = fan_in
    matrix = _matrix(entry, n_ranks=n_ranks, draws=draws) if entry.collective == "all_to_all_v" else None
    try:
        whole = Collective(
            kind=entry.collective,
            n_ranks=n_ranks,
            size_bytes=int(entry.size) if matrix is None else 0,
            algorithm=entry.algorithm,
            options=options,
            matrix=matrix,
        )
        collective = whole if entry.chunk is None else _in_chunks(whole, int(entry.chunk))
        template = collective.template()
    except SpecError as error:
        field = "collective" if error.path == "kind" else error.path
        field = f"options.{field}" if field in entry.options else field
        raise SpecError(f"{path}.{field}", error.value, error.allowed) from None
    work = ProgramBuilder(n_ranks)
    before: list[int] = []
    if entry.jitter:
        late = draws.uniform(Stream.JITTER, np.arange(n_ranks)) * int(entry.jitter)
        before = [work.compute(rank, picoseconds=int(ps)) for rank, ps in enumerate(late.tolist())]
    for _ in range(entry.repeat):
        before = [
            work.collective(
                collective,
                ranks=range(n_ranks + template.n_reducers),
                after=before,
                start_ps=int(entry.start),
                eager=entry.eager,
            )
        ]
    return work.build(path=path)


def _frozen(value: Any) -> Any:
    """An option as templates are told apart by: lists as tuples."""
    return tuple(_frozen(each) for each in value) if isinstance(value, list | tuple) else value


def _in_chunks(whole: Collective, chunk_bytes: int) -> Collective:
    """The same collective with pieces of at most so many bytes."""
    largest = int(whole.piece_bytes().max(initial=0))
    chunks = max(-(-largest // chunk_bytes), 1)
    if chunks > MOST_PARTS:
        raise SpecError(
            "chunk", Size(chunk_bytes), f"a size of which a piece ({Size(largest)}) has at most 2^20"
        )
    return replace(whole, options={**whole.options, "chunks": chunks})


def _matrix(entry: CollectiveSpec, *, n_ranks: int, draws: EntryDraws) -> Int64Array:
    """Bytes by sender and receiver of an all-to-all-v."""
    if entry.matrix is not None:
        return read_matrix(entry.matrix, n_ranks=n_ranks)
    order = np.argsort(draws.bits(Stream.DESTINATION, np.arange(n_ranks)), kind="stable")
    popularity = np.empty(n_ranks, dtype=np.int64)
    popularity[order] = np.arange(n_ranks)
    return zipf_matrix(popularity, size_bytes=int(entry.size), skew=entry.skew)
