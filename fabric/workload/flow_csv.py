"""Flows as the CSV file that `Flows.file` names (`fabric.workload.explicit` reads it).

Hosts are written by name, round quantities with a unit, and the columns `name` and `after` only where
some flow has them.
"""

from __future__ import annotations

import csv
import io

import numpy as np
import numpy.typing as npt

from fabric.topology.network import Network
from fabric.units import Duration, Quantity, Size
from fabric.workload.flow_table import FlowTable

__all__ = ["flow_csv"]

COLUMNS = ("source", "destination", "size", "start")


def flow_csv(flows: FlowTable, *, network: Network, pattern: int = 0) -> bytes:
    """Return the flows of one pattern as the content of a CSV file.

    Parameters
    ----------
    flows : FlowTable
        Flows that others wait for must have names.
    network : Network
        Names the hosts.
    pattern : int
        Which of the table's patterns.

    Returns
    -------
    bytes
        UTF-8 text.

    Examples
    --------
    >>> from fabric.spec.topology import SingleSwitch
    >>> from fabric.topology import build_network
    >>> table = FlowTable.from_arrays([0, 1], 2, size_bytes=4000)
    >>> print(flow_csv(table, network=build_network(SingleSwitch(hosts=3))).decode())
    source,destination,size,start
    host0,host2,4KB,0ps
    host1,host2,4KB,0ps
    <BLANKLINE>
    """
    rows = np.flatnonzero(flows.pattern == pattern)
    named = flows.names is not None
    before: dict[int, list[str]] = {}
    for flow, predecessor in zip(flows.after_flow.tolist(), flows.after_predecessor.tolist(), strict=True):
        before.setdefault(flow, []).append((flows.names or ())[predecessor])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*COLUMNS, *(["name"] if named else []), *(["after"] if before else [])])
    sizes = _texts(flows.size_bytes, Size, round_to=10**3)
    starts = _texts(flows.start_ps, Duration, round_to=10**6)
    columns = (
        rows,
        flows.source[rows],
        flows.destination[rows],
        flows.size_bytes[rows],
        flows.start_ps[rows],
    )
    for flow, source, destination, size, start in zip(*(column.tolist() for column in columns), strict=True):
        row = [network.names[source], network.names[destination], sizes[size], starts[start]]
        row += [flows.names[flow]] if flows.names is not None else []
        row += [";".join(before.get(flow, ()))] if before else []
        writer.writerow(row)
    return text.getvalue().encode()


def _texts(values: npt.NDArray[np.int64], kind: type[Quantity], *, round_to: int) -> dict[int, str]:
    """Text of every value: with a unit if it is round, else the bare number, which is quick to read."""
    return {
        value: str(kind(value)) if value % round_to == 0 else str(value)
        for value in np.unique(values).tolist()
    }
