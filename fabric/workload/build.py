"""From the traffic entries of a scenario to one `FlowTable`.

Entries are taken in order. Each pattern gives hosts, sizes and offsets; here they get their start (that
of the entry, plus the offset, plus a jitter drawn per flow), their label, class and transport, and the
flows that they wait for, which may stand in any entry of explicit flows.

A label is the entry's name, or its kind; if it is taken, "-2", "-3" and so on are added. (With "#" stands
the number of a flow in its entry: "permutation#1" is the second flow of "permutation".)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.spec.traffic import (
    LARGEST_START_PS,
    AllToAll,
    Collective,
    Flows,
    Incast,
    Permutation,
    Poisson,
    Program,
    Traffic,
    Uniform,
)
from fabric.spec.training.entry import Training
from fabric.topology.network import Network
from fabric.topology.patterns import did_you_mean
from fabric.units import format_duration
from fabric.workload.all_to_all import all_to_all_flows
from fabric.workload.draws import EntryDraws, Stream
from fabric.workload.explicit import explicit_flows
from fabric.workload.flow_table import FlowTable
from fabric.workload.incast import incast_flows
from fabric.workload.pattern_flows import PatternFlows, Wait
from fabric.workload.permutation import permutation_flows
from fabric.workload.poisson import poisson_flows
from fabric.workload.queue_pairs import split_over_queue_pairs
from fabric.workload.uniform import uniform_flows

if TYPE_CHECKING:
    from fabric.spec.scenario import Scenario

__all__ = ["build_flows", "free_label"]

PATTERNS: dict[type[Traffic], Callable[..., list[PatternFlows]]] = {
    Flows: explicit_flows,
    Incast: incast_flows,
    Permutation: permutation_flows,
    Uniform: uniform_flows,
    AllToAll: all_to_all_flows,
    Poisson: poisson_flows,
}


def build_flows(scenario: Scenario, network: Network) -> FlowTable:
    """Make the flows of a scenario.

    Parameters
    ----------
    scenario : Scenario
        Its `traffic`, `transport` and `run.seed` are used.
    network : Network
        Of the scenario's topology.

    Returns
    -------
    FlowTable
        The flows of the first entry, then those of the second, and so on; several for a message that is
        split over queue pairs. Collectives and programs are jobs (`fabric.workload.jobs`).

    Raises
    ------
    SpecError
        If an entry does not fit the network or names what does not exist; the path starts with
        "traffic[index]", or with the file and line that is wrong.

    Examples
    --------
    >>> from fabric.spec import Incast, LeafSpine, Permutation, Scenario
    >>> from fabric.topology import build_network
    >>> scenario = Scenario(
    ...     topology=LeafSpine(leaves=2, spines=2, hosts_per_leaf=4),
    ...     traffic=[Incast(senders=4, size="1MB"), Permutation(size="64KB")],
    ... )
    >>> flows = build_flows(scenario, build_network(scenario.topology))
    >>> len(flows), flows.patterns
    (12, ('incast', 'permutation'))
    """
    tables: list[FlowTable] = []
    waits: list[Wait] = []
    named: dict[str, str] = {}
    labels: set[str] = set()
    kinds: Counter[str] = Counter()
    taken = {entry.name for entry in scenario.traffic if entry.name}
    first = 0
    for index, entry in enumerate(scenario.traffic):
        if isinstance(entry, Collective | Program | Training):
            continue
        kind = _kind(entry)
        draws = EntryDraws.of_entry(scenario.run.seed, kind=kind, occurrence=kinds[kind])
        kinds[kind] += 1
        path = f"traffic[{index}]"
        patterns = PATTERNS[type(entry)](entry, network=network, draws=draws, path=path)
        for pattern in patterns:
            _check_names(pattern, named)
        label = entry.name or free_label(kind, labels | taken)
        for table, pattern in zip(
            _tables(entry, patterns, label=label, draws=draws, n_hosts=network.n_hosts, index=index),
            patterns,
            strict=True,
        ):
            waits.extend(Wait(first + wait.flow, wait.names, wait.place) for wait in pattern.waits)
            tables.append(table)
            labels.update(table.patterns)
            first += len(table)
    table = FlowTable.concatenate(tables)
    if waits:
        places = {wait.flow: wait.place for wait in waits}
        table = table.with_waits(_resolve(waits, table.names or ()), path="traffic", places=places)
    return split_over_queue_pairs(table, scenario.transport)


def _kind(entry: Traffic) -> str:
    return str(entry.__struct_config__.tag)


def free_label(kind: str, labels: Iterable[str]) -> str:
    """Return a label that is not taken.

    Examples
    --------
    >>> free_label("incast", ["incast", "incast-2"])
    'incast-3'
    """
    known = set(labels)
    if kind not in known:
        return kind
    number = 2
    while f"{kind}-{number}" in known:
        number += 1
    return f"{kind}-{number}"


def _tables(
    entry: Traffic,
    patterns: list[PatternFlows],
    *,
    label: str,
    draws: EntryDraws,
    n_hosts: int,
    index: int,
) -> Iterable[FlowTable]:
    first = 0
    for pattern in patterns:
        flow = np.arange(first, first + len(pattern.source), dtype=np.int64)
        first += len(pattern.source)
        start_ps = int(entry.start) + pattern.offset_ps + _jitter_ps(int(entry.jitter), flow, draws)
        latest_ps = int(start_ps.max(initial=0))
        if latest_ps > LARGEST_START_PS:
            allowed = "a start with which all flows begin within 2^60 ps (about 13 days); one begins at "
            raise SpecError(f"traffic[{index}].start", entry.start, allowed + format_duration(latest_ps))
        yield FlowTable.from_arrays(
            pattern.source,
            pattern.destination,
            size_bytes=pattern.size_bytes,
            start_ps=start_ps,
            names=pattern.names,
            label=label + pattern.suffix,
            traffic_class=entry.traffic_class or pattern.traffic_class,
            transport=entry.transport,
            n_hosts=n_hosts,
            entry=index,
            path=f"traffic[{index}].flows",
        )


def _check_names(pattern: PatternFlows, named: dict[str, str]) -> None:
    """Add the names of a pattern to those known, each with its place; refuse one that is taken."""
    if pattern.names is None or pattern.places is None:
        return
    for name, place in zip(pattern.names, pattern.places, strict=True):
        if name and name in named:
            other = named[name].rstrip(". ")
            raise SpecError(f"{place}name", name, f"a name that {other} does not have")
        named[name] = place


def _jitter_ps(jitter_ps: int, flow: npt.NDArray[np.int64], draws: EntryDraws) -> npt.NDArray[np.int64]:
    if jitter_ps == 0:
        return np.zeros(len(flow), dtype=np.int64)
    return (draws.uniform(Stream.JITTER, flow) * jitter_ps).astype(np.int64)


def _resolve(waits: list[Wait], names: tuple[str, ...]) -> list[tuple[int, int]]:
    number = {name: flow for flow, name in enumerate(names) if name}
    pairs: list[tuple[int, int]] = []
    for wait in waits:
        for name in wait.names:
            if name not in number:
                allowed = f"the name of a flow of this scenario{did_you_mean(name, number)}"
                raise SpecError(f"{wait.place}after", name, allowed)
            pairs.append((wait.flow, number[name]))
    return pairs
