"""Flows from the files of other simulators, which `fabric.formats` parses.

Host n of such a file is the host called "host<n>", whatever its number in the network. Flows of
different priority groups become patterns of their own, in the traffic classes "group<n>"; where all
have one group they are of the class that the transport names.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.formats import FlowData, recognise
from fabric.formats.hpcc_flows import parse_flows
from fabric.formats.hpcc_waits import parse_waits
from fabric.formats.htsim_matrix import parse_matrix
from fabric.formats.words import place
from fabric.spec.traffic import Flows
from fabric.topology.network import Network
from fabric.workload.pattern_flows import PatternFlows, Wait

__all__ = ["foreign_flows", "group_class", "moved_starts"]

_HOST = re.compile(r"host(0|[1-9][0-9]{0,9})")
NO_HOST = -1

Int64Array = npt.NDArray[np.int64]


def group_class(group: int) -> str:
    """Return the name of the traffic class of a priority group."""
    return f"group{group}"


def foreign_flows(spec: Flows, *, network: Network, path: str) -> list[PatternFlows]:
    """Flows of the file of a `Flows` entry if it is another simulator's; none if it is not.

    Parameters
    ----------
    spec : Flows
        Its `file` is used.
    network : Network
        Gives host numbers.
    path : str
        Where the entry stands in the scenario, for errors.

    Returns
    -------
    list of PatternFlows
        One for each priority group, in order of the groups.

    Raises
    ------
    SpecError
        Naming file, line and what is wrong; or that a file needs no other to say what waits.
    """
    assert spec.file is not None
    kind = None if spec.file.lower().endswith(".csv") else _recognised(spec.file)
    if spec.wait_file is not None and kind != "hpcc_flows":
        raise SpecError(
            f"{path}.wait_file", spec.wait_file, f"no wait_file: {spec.file} says itself what waits"
        )
    if kind == "hpcc_flows":
        data, _ = parse_flows(spec.file)
    elif kind == "htsim_matrix":
        data, _ = parse_matrix(spec.file, start_unit=spec.start_unit)
    else:
        return []
    wait_places = {flow: place(spec.file, int(data.line[flow])) for flow, _ in data.waits}
    if spec.wait_file is not None:
        data, wait_places = _with_waits(data, spec.wait_file)
    if spec.first_start is not None:
        waiting = np.zeros(len(data.start_ps), dtype=np.bool_)
        waiting[[flow for flow, _ in data.waits]] = True
        moved = moved_starts(data.start_ps, waiting=waiting, first_ps=int(spec.first_start))
        data = replace(data, start_ps=moved)
    ends = [
        _host_numbers(data, hosts, network=network, file=spec.file, what=what)
        for hosts, what in ((data.source, "source"), (data.destination, "destination"))
    ]
    groups = np.unique(data.group)
    if len(groups) == 1:
        rows = np.arange(len(data.group))
        return [_pattern(data, ends, rows, spec.file, wait_places, suffix="", group=None)]
    return [
        _pattern(
            data,
            ends,
            np.flatnonzero(data.group == group),
            spec.file,
            wait_places,
            suffix=f"-{group}",
            group=group,
        )
        for group in groups.tolist()
    ]


def _with_waits(data: FlowData, file: str) -> tuple[FlowData, dict[int, str]]:
    """Flows with the waits of a file, and where those of each are; their own starts then do not count."""
    waits = parse_waits(file, n_flows=len(data.source))
    start_ps = data.start_ps.copy()
    start_ps[[flow for flow, _, _ in waits]] = 0
    predecessors: dict[int, list[str]] = {}
    for flow, predecessor, _ in waits:
        predecessors.setdefault(flow, []).append(f"flow{predecessor}")
    waiting = replace(
        data,
        start_ps=start_ps,
        names=tuple(f"flow{number}" for number in range(len(data.source))),
        waits=tuple((flow, tuple(names)) for flow, names in predecessors.items()),
    )
    return waiting, {flow: place(file, line) for flow, _, line in reversed(waits)}


def moved_starts(start_ps: Int64Array, *, waiting: npt.NDArray[np.bool_], first_ps: int) -> Int64Array:
    """Move starts together so that the first flow that waits for no other starts at `first_ps`.

    Examples
    --------
    >>> moved_starts(np.array([7, 5, 0]), waiting=np.array([False, False, True]), first_ps=1).tolist()
    [3, 1, 0]
    """
    if waiting.all():
        return start_ps
    return np.maximum(start_ps + (first_ps - int(start_ps[~waiting].min())), 0)


def _recognised(file: str) -> str | None:
    try:
        return recognise(file)
    except SpecError:
        return None


def _pattern(
    data: FlowData,
    ends: list[Int64Array],
    rows: Int64Array,
    file: str,
    wait_places: dict[int, str],
    *,
    suffix: str,
    group: int | None,
) -> PatternFlows:
    position = {flow: number for number, flow in enumerate(rows.tolist())} if data.waits else {}
    places = None
    if data.names is not None:
        places = tuple(place(file, int(data.line[flow])) + " " for flow in rows.tolist())
    return PatternFlows(
        source=ends[0][rows],
        destination=ends[1][rows],
        size_bytes=data.size_bytes[rows],
        offset_ps=data.start_ps[rows],
        suffix=suffix,
        names=None if data.names is None else tuple(data.names[flow] for flow in rows.tolist()),
        places=places,
        waits=tuple(
            Wait(position[flow], names, wait_places[flow] + " ")
            for flow, names in data.waits
            if flow in position
        ),
        traffic_class=None if group is None else group_class(group),
    )


def _host_numbers(data: FlowData, hosts: Int64Array, *, network: Network, file: str, what: str) -> Int64Array:
    known = [_HOST.fullmatch(name) for name in network.names[: network.n_hosts]]
    named = {int(found[1]): number for number, found in enumerate(known) if found}
    if not named:
        named = {number: number for number in range(network.n_hosts)}
    ids = np.array(sorted(named), dtype=np.int64)
    place_of = np.minimum(np.searchsorted(ids, hosts), len(ids) - 1)
    number_of = np.array([named[each] for each in ids.tolist()], dtype=np.int64)
    numbers = np.where(ids[place_of] == hosts, number_of[place_of], NO_HOST)
    lost = np.flatnonzero(numbers == NO_HOST)
    if lost.size:
        flow = int(lost[0])
        where = place(file, int(data.line[flow]), what)
        allowed = f"a host of the network: {len(ids)} of them, from {ids[0]} to {ids[-1]}"
        raise SpecError(where, int(hosts[flow]), allowed)
    return numbers
