"""Flows that are written down one by one, in the scenario or in a CSV file.

The file has the header `source,destination,size,start`, optionally with `name` and `after`, in any
order of columns. Hosts are names or numbers; sizes and starts are written as in scenarios ("4MB",
"1.5us", or bytes and picoseconds); an empty start is 0; `after` holds names of flows separated by
semicolons. Flows keep their order: those of the scenario first, then those of the file. Files of other
simulators are read by `fabric.workload.foreign`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fabric.errors import SpecError
from fabric.spec.traffic import Flow, Flows
from fabric.topology.network import Network
from fabric.topology.patterns import did_you_mean
from fabric.units import Duration, QuantityError, Size
from fabric.workload.csv_rows import read_rows
from fabric.workload.draws import EntryDraws
from fabric.workload.foreign import foreign_flows, moved_starts
from fabric.workload.pattern_flows import PatternFlows, Wait

__all__ = ["explicit_flows"]

AFTER_SEPARATOR = ";"
LONGEST_INTEGER = 18
"""Digits of a bare number below which it needs no check against the largest quantity."""
_Row = tuple[str, "str | int", "str | int", int, int, str, tuple[str, ...]]
"""Place, source, destination, size, start, name, after."""


def explicit_flows(spec: Flows, *, network: Network, draws: EntryDraws, path: str) -> list[PatternFlows]:
    """Flows of a `Flows` entry.

    Parameters
    ----------
    spec : Flows
    network : Network
        Gives host numbers.
    draws : EntryDraws
        Not used.
    path : str
        Of the entry, for errors.

    Returns
    -------
    list of PatternFlows
        One element, or (from another simulator's file) one for each priority group.

    Raises
    ------
    SpecError
        If a host does not exist, the file has no flow, or a line of it is wrong (naming file and line).
    """
    del draws
    rows = [*_rows_of_spec(spec.flows, path)]
    foreign = foreign_flows(spec, network=network, path=path) if spec.file else []
    if spec.file and not foreign:
        of_file = list(_rows_of_file(spec.file, path=f"{path}.file"))
        if not of_file:
            raise SpecError(f"{path}.file", spec.file, "a file with at least one flow below its header")
        rows.extend(of_file)
    if foreign and not rows:
        return foreign
    starts = np.array([row[4] for row in rows], dtype=np.int64)
    if spec.first_start is not None and not foreign:
        own = len(spec.flows)
        waiting = np.array([bool(row[6]) for row in rows[own:]], dtype=np.bool_)
        starts[own:] = moved_starts(starts[own:], waiting=waiting, first_ps=int(spec.first_start))
    ends = [_ends(network, row) for row in rows]
    names = tuple(row[5] for row in rows)
    return [
        PatternFlows(
            source=np.array([source for source, _ in ends], dtype=np.int64),
            destination=np.array([destination for _, destination in ends], dtype=np.int64),
            size_bytes=np.array([row[3] for row in rows], dtype=np.int64),
            offset_ps=starts,
            names=names if any(names) else None,
            places=tuple(row[0] for row in rows) if any(names) else None,
            waits=tuple(Wait(flow, row[6], f"{row[0]}") for flow, row in enumerate(rows) if row[6]),
        ),
        *foreign,
    ]


def _rows_of_spec(flows: tuple[Flow, ...], path: str) -> Iterator[_Row]:
    for index, flow in enumerate(flows):
        place = f"{path}.flows[{index}]."
        yield place, flow.source, flow.destination, flow.size, flow.start, flow.name, flow.after


def _rows_of_file(file: str, *, path: str) -> Iterator[_Row]:
    required = ("source", "destination", "size", "start")
    for line, row in read_rows(file, required=required, optional=("name", "after"), path=path):
        place = f"{file}:{line} "
        size = _quantity(Size, row["size"], f"{place}size")
        if size == 0:
            raise SpecError(f"{place}size", row["size"], "a size above 0")
        start = _quantity(Duration, row["start"] or "0", f"{place}start")
        after = tuple(name.strip() for name in row["after"].split(AFTER_SEPARATOR) if name.strip())
        yield place, row["source"], row["destination"], size, start, row["name"], after


def _quantity(kind: type[Size] | type[Duration], text: str, place: str) -> int:
    if text.isascii() and text.isdigit() and len(text) < LONGEST_INTEGER:
        return int(text)
    try:
        return int(kind(text))
    except QuantityError as error:
        raise SpecError(place, error.value, error.allowed) from None


def _ends(network: Network, row: _Row) -> tuple[int, int]:
    place, source, destination = row[:3]
    ends = (
        _host_number(network, source, f"{place}source"),
        _host_number(network, destination, f"{place}destination"),
    )
    if ends[0] == ends[1]:
        raise SpecError(f"{place}destination", destination, "a host other than the source")
    return ends


def _host_number(network: Network, host: str | int, place: str) -> int:
    number = network.node_numbers.get(host) if isinstance(host, str) else host
    if number is None and isinstance(host, str) and host.isascii() and host.isdigit():
        number = int(host)
    if number is None or not 0 <= number < network.n_hosts:
        names = network.names[: network.n_hosts]
        hint = did_you_mean(host, names) if isinstance(host, str) else ""
        last = network.n_hosts - 1
        raise SpecError(place, host, f'a host: "{names[0]}" to "{names[-1]}", or 0 to {last}{hint}')
    return number
