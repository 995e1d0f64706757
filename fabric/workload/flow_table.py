"""`FlowTable`: every flow of a scenario as NumPy columns, checked.

A flow is one message of `size_bytes` from one host to another. It starts at `start_ps`, and not before
every flow that it waits for has ended. Flows are numbered by their row; the number is observable where
flows tie (two queue pairs of a NIC that become eligible at one instant are served in this order).

Flows come in patterns: each traffic entry contributes one or two, and a pattern carries what its flows
share (a label, a traffic class, a transport). The table knows nothing of frames, paths or rates.

Invariants, checked when a table is made: columns of equal length; hosts that exist and differ; at
least one byte; starts not negative; waits that name flows and never form a cycle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fabric.errors import Said, SpecError
from fabric.spec.traffic import LARGEST_START_PS
from fabric.units import LARGEST
from fabric.workload.waits import find_cycle

if TYPE_CHECKING:
    from fabric.spec.transport import Transport

__all__ = ["FlowTable", "numbered_names"]


@dataclass(frozen=True, kw_only=True, eq=False)
class FlowTable:
    """Flows as columns, and the patterns that they belong to.

    Attributes
    ----------
    source, destination : ndarray of uint32 [flows]
        Host numbers.
    size_bytes : ndarray of int64 [flows]
        Payload of each flow.
    start_ps : ndarray of int64 [flows]
        Earliest start.
    pattern : ndarray of uint32 [flows]
        Index into the three tuples that follow.
    patterns : tuple of str
        Labels: the name of the traffic entry, or its kind.
    traffic_class : tuple of (str or None)
        Class of the data frames; None: as the transport says.
    transport : tuple of (Transport or None)
        None: the scenario's.
    names : tuple of str, or None
        One name per flow, "" for flows without; None when no flow has one.
    after_flow, after_predecessor : ndarray of uint32 [waits]
        Flow `after_flow[k]` starts when `after_predecessor[k]` has ended; ascending, no pair twice.
    entries : tuple of (int or None)
        Number of the traffic entry that each pattern comes from; None: from no scenario.
    """

    source: npt.NDArray[np.uint32]
    destination: npt.NDArray[np.uint32]
    size_bytes: npt.NDArray[np.int64]
    start_ps: npt.NDArray[np.int64]
    pattern: npt.NDArray[np.uint32]
    patterns: tuple[str, ...]
    traffic_class: tuple[str | None, ...]
    transport: tuple[Transport | None, ...]
    names: tuple[str, ...] | None
    after_flow: npt.NDArray[np.uint32]
    after_predecessor: npt.NDArray[np.uint32]
    entries: tuple[int | None, ...]

    def __len__(self) -> int:
        return len(self.source)

    @property
    def n_flows(self) -> int:
        """Number of flows."""
        return len(self.source)

    @classmethod
    def from_arrays(
        cls,
        source: npt.ArrayLike,
        destination: npt.ArrayLike,
        *,
        size_bytes: npt.ArrayLike,
        start_ps: npt.ArrayLike = 0,
        names: Sequence[str] | None = None,
        after: npt.ArrayLike = (),
        label: str = "flows",
        traffic_class: str | None = None,
        transport: Transport | None = None,
        n_hosts: int | None = None,
        entry: int | None = None,
        path: str = "flows",
    ) -> FlowTable:
        """Make a table of one pattern from arrays.

        Parameters
        ----------
        source, destination : array_like of int, shape [flows] or scalar
            Host numbers.
        size_bytes, start_ps : array_like of int, shape [flows] or scalar
            Payload in bytes, at least 1; earliest start in picoseconds.
        names : sequence of str, optional
            Distinct names of the flows; "" for none.
        after : array_like of int, shape [waits, 2]
            Pairs (flow, predecessor) of rows of this table.
        label, traffic_class, transport
            Of the pattern.
        n_hosts : int, optional
            Checks host numbers against it.
        entry : int, optional
            Number of the traffic entry, for errors of later stages.
        path : str
            How errors call the table.

        Returns
        -------
        FlowTable

        Raises
        ------
        SpecError
            If a value is not allowed; the path names column and flow ("flows[3].size").

        Examples
        --------
        >>> table = FlowTable.from_arrays([0, 1, 2], 3, size_bytes=10**6, after=[(2, 0)])
        >>> len(table), table.destination.tolist(), table.after_predecessor.tolist()
        (3, [3, 3, 3], [0])
        """
        columns = _broadcast(path, source=source, destination=destination, size=size_bytes, start=start_ps)
        flows = len(columns["source"])
        _check_hosts(columns["source"], columns["destination"], n_hosts=n_hosts, path=path)
        sizes, starts = columns["size"], columns["start"]
        _check_range(sizes, low=1, high=LARGEST, path=path, name="size", unit="byte")
        _check_range(starts, low=0, high=LARGEST_START_PS, path=path, name="start", unit="picosecond")
        checked_names = _check_names(names, flows, path=path)
        after_flow, after_predecessor = _check_waits(after, flows, path=path)
        return cls(
            source=columns["source"].astype(np.uint32),
            destination=columns["destination"].astype(np.uint32),
            size_bytes=columns["size"],
            start_ps=columns["start"],
            pattern=np.zeros(flows, dtype=np.uint32),
            patterns=(label,),
            traffic_class=(traffic_class,),
            transport=(transport,),
            names=checked_names,
            after_flow=after_flow,
            after_predecessor=after_predecessor,
            entries=(entry,),
        )

    def pattern_path(self, pattern: int) -> str:
        """Where a pattern is described: "traffic[2]", or its label if it is from no scenario."""
        entry = self.entries[pattern]
        return f'traffic "{self.patterns[pattern]}"' if entry is None else f"traffic[{entry}]"

    def flow_path(self, flow: int) -> str:
        """Where the pattern of a flow is described."""
        return self.pattern_path(int(self.pattern[flow]))

    def with_waits(
        self, after: npt.ArrayLike, *, path: str = "flows", places: Mapping[int, str] | None = None
    ) -> FlowTable:
        """The same flows, with these waits in place of the table's own.

        Parameters
        ----------
        after : array_like of int, shape [waits, 2]
            Pairs (flow, predecessor) of rows of this table.
        path : str
            How errors call the table.
        places : mapping of int to str, optional
            Where flows that wait are written down, for errors.

        Returns
        -------
        FlowTable

        Raises
        ------
        SpecError
            If a pair names no flow, or flows would wait for themselves.

        Examples
        --------
        >>> chain = FlowTable.from_arrays([0, 1], [1, 2], size_bytes=10).with_waits([(1, 0)])
        >>> chain.after_flow.tolist(), chain.after_predecessor.tolist()
        ([1], [0])
        """
        after_flow, after_predecessor = _check_waits(
            after, len(self), path=path, names=self.names, places=places
        )
        return replace(self, after_flow=after_flow, after_predecessor=after_predecessor)

    @classmethod
    def concatenate(cls, tables: Sequence[FlowTable]) -> FlowTable:
        """Join tables, in order; flows and patterns are renumbered.

        Parameters
        ----------
        tables : sequence of FlowTable
            Any number; none gives an empty table.

        Returns
        -------
        FlowTable

        Raises
        ------
        SpecError
            If two flows have one name.

        Examples
        --------
        >>> one = FlowTable.from_arrays(0, 1, size_bytes=10, label="ping")
        >>> both = FlowTable.concatenate([one, FlowTable.from_arrays([1, 2], 0, size_bytes=10)])
        >>> both.patterns, both.pattern.tolist()
        (('ping', 'flows'), [0, 1, 1])
        """
        first_flow = _offsets([len(table) for table in tables])
        first_pattern = _offsets([len(table.patterns) for table in tables])
        names = None
        if any(table.names is not None for table in tables):
            joined = [name for t in tables for name in t.names or ("",) * len(t)]
            names = _check_names(joined, len(joined), path="flows")
        return cls(
            source=_join([t.source for t in tables]).astype(np.uint32),
            destination=_join([t.destination for t in tables]).astype(np.uint32),
            size_bytes=_join([t.size_bytes for t in tables]),
            start_ps=_join([t.start_ps for t in tables]),
            pattern=_join([t.pattern for t in tables], offsets=first_pattern).astype(np.uint32),
            patterns=tuple(label for t in tables for label in t.patterns),
            traffic_class=tuple(name for t in tables for name in t.traffic_class),
            transport=tuple(transport for t in tables for transport in t.transport),
            names=names,
            after_flow=_join([t.after_flow for t in tables], offsets=first_flow).astype(np.uint32),
            after_predecessor=_join([t.after_predecessor for t in tables], offsets=first_flow).astype(
                np.uint32
            ),
            entries=tuple(entry for t in tables for entry in t.entries),
        )


def numbered_names(flows: FlowTable) -> list[str]:
    """Return what each flow is called: its name, or its pattern and its place in it ("incast#3").

    Examples
    --------
    >>> numbered_names(FlowTable.from_arrays([0, 1], 2, size_bytes=10, names=["first", ""]))
    ['first', 'flows#1']
    """
    counts = [0] * len(flows.patterns)
    names = []
    for flow, pattern in enumerate(flows.pattern.tolist()):
        own = flows.names[flow] if flows.names is not None else ""
        names.append(own or f"{flows.patterns[pattern]}#{counts[pattern]}")
        counts[pattern] += 1
    return names


def _offsets(lengths: Sequence[int]) -> list[int]:
    return [0, *np.cumsum(lengths, dtype=np.int64).tolist()][: len(lengths)]


def _join(
    parts: Sequence[npt.NDArray[np.integer]], *, offsets: Sequence[int] | None = None
) -> npt.NDArray[np.int64]:
    shifts = offsets if offsets is not None else [0] * len(parts)
    moved = [part.astype(np.int64) + shift for part, shift in zip(parts, shifts, strict=True)]
    return np.concatenate([np.empty(0, dtype=np.int64), *moved])


def _broadcast(path: str, **columns: npt.ArrayLike) -> dict[str, npt.NDArray[np.int64]]:
    arrays = {}
    for name, values in columns.items():
        array = np.asarray(values)
        if array.size == 0:
            array = array.astype(np.int64)
        if array.ndim > 1 or not np.issubdtype(array.dtype, np.integer):
            raise SpecError(f"{path}.{name}", values, "whole numbers in one column")
        if array.size and array.dtype == np.uint64 and int(array.max()) > LARGEST:
            raise SpecError(f"{path}.{name}", int(array.max()), f"at most {LARGEST}")
        arrays[name] = array.astype(np.int64)
    lengths = {array.size for array in arrays.values() if array.ndim}
    if len(lengths) > 1:
        sizes = {name: array.size for name, array in arrays.items() if array.ndim}
        raise SpecError(path, sizes, "columns of one length")
    flows = lengths.pop() if lengths else 1
    return {name: np.array(np.broadcast_to(array, (flows,))) for name, array in arrays.items()}


def _check_hosts(
    source: npt.NDArray[np.int64], destination: npt.NDArray[np.int64], *, n_hosts: int | None, path: str
) -> None:
    bound = 2**32 if n_hosts is None else n_hosts
    for name, hosts in (("source", source), ("destination", destination)):
        wrong = np.flatnonzero((hosts < 0) | (hosts >= bound))
        if wrong.size:
            flow = int(wrong[0])
            raise SpecError(
                f"{path}[{flow}].{name}", int(hosts[flow]), f"a host number from 0 to {bound - 1}"
            )
    same = np.flatnonzero(source == destination)
    if same.size:
        flow = int(same[0])
        raise SpecError(f"{path}[{flow}].destination", int(destination[flow]), "a host other than the source")


def _check_range(
    values: npt.NDArray[np.int64], *, low: int, high: int, path: str, name: str, unit: str
) -> None:
    wrong = np.flatnonzero((values < low) | (values > high))
    if wrong.size:
        flow = int(wrong[0])
        raise SpecError(f"{path}[{flow}].{name}", int(values[flow]), f"{low} {unit} to {high} {unit}s")


def _check_names(names: Sequence[str] | None, flows: int, *, path: str) -> tuple[str, ...] | None:
    if names is None:
        return None
    if len(names) != flows:
        raise SpecError(f"{path}.names", Said(f"{len(names)} names"), f"one name for each of {flows} flows")
    seen: dict[str, int] = {}
    for flow, name in enumerate(names):
        if name and seen.setdefault(name, flow) != flow:
            raise SpecError(f"{path}[{flow}].name", name, f"a name that flow {seen[name]} does not have")
    return tuple(names) if seen else None


def _check_waits(
    after: npt.ArrayLike,
    flows: int,
    *,
    path: str,
    names: tuple[str, ...] | None = None,
    places: Mapping[int, str] | None = None,
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    pairs = np.asarray(after, dtype=np.int64)
    if pairs.size == 0:
        return np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.uint32)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise SpecError(f"{path}.after", pairs.shape, "pairs (flow, predecessor)")
    wrong = np.flatnonzero(((pairs < 0) | (pairs >= flows)).any(axis=1))
    if wrong.size:
        row = int(wrong[0])
        raise SpecError(
            f"{path}.after[{row}]", tuple(pairs[row].tolist()), f"two flows from 0 to {flows - 1}"
        )
    pairs = np.unique(pairs, axis=0)
    cycle = find_cycle(pairs[:, 0], predecessor=pairs[:, 1], n_flows=flows)
    if cycle:
        place = (places or {}).get(cycle[0], f"{path}[{cycle[0]}].")
        called = [f'"{names[flow]}"' if names and names[flow] else str(flow) for flow in cycle]
        shown = " after ".join([*called, called[0]])
        raise SpecError(f"{place}after", shown, "flows that do not wait for themselves")
    return pairs[:, 0].astype(np.uint32), pairs[:, 1].astype(np.uint32)
