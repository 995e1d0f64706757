"""Everything that changes while a run goes on, in order of time: `LoweredFaults` from the failures of a
scenario.

Changes of links follow from the occurrences alone (`link_changes.py`). Next hops and the ports of flows
follow from which cables are known to be out of order: for each time at which that changes, the tables of
all switches are made (`fabric.reroute`), and what differs from those before is kept. Times at which the
same becomes of the same share one range of the lists, so that a link that flaps a thousand times costs two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fabric.failures.intervals import isolated_intervals, shifted
from fabric.failures.occurrences import NEVER_PS, Occurrence
from fabric.lowered import FAULT, FaultKind, LoweredFaults
from fabric.reroute import Rerouter
from fabric.spec.recovery import Recovery
from fabric.spec.routing import Routing
from fabric.topology.network import Network

__all__ = ["Failing", "RouteChanges", "Row", "as_lowered", "plan_routes"]

BoolArray = npt.NDArray[np.bool_]
Row = tuple[int, int, int, int, float, float]
"""Time, kind, port, value, loss, ber_rate: in the order in which changes happen."""


@dataclass(frozen=True, eq=False)
class Failing:
    """What of a network is out of order from when to when, as its routing sees it.

    Attributes
    ----------
    times_ps : list of int
        When that changes.
    near, far : numpy.ndarray of bool [times, links]
        From each time on, cables that their own ends use; that everybody counts on.
    """

    times_ps: list[int]
    near: BoolArray
    far: BoolArray

    @classmethod
    def of(cls, occurrences: Sequence[Occurrence], recovery: Recovery, network: Network) -> Failing:
        """From failures and the levels at which they are noticed."""
        near = isolated_intervals(occurrences, recovery)
        far = {cable: shifted(each, int(recovery.convergence)) for cable, each in near.items()}
        bounds = {time for table in (near, far) for each in table.values() for pair in each for time in pair}
        times = sorted(bounds - {NEVER_PS})

        def in_order(table: dict[int, list[tuple[int, int]]]) -> BoolArray:
            used = np.ones((len(times), network.n_links), dtype=np.bool_)
            for cable, intervals in table.items():
                for begin, end in intervals:
                    first, last = np.searchsorted(times, [begin, end])
                    used[first:last, cable] = False
            return used

        return cls(times, in_order(near), in_order(far))

    @property
    def ever_down(self) -> BoolArray:
        """Cables that are ever out of use: bool [links]."""
        return np.asarray(~(self.near & self.far).all(axis=0))


@dataclass(eq=False)
class RouteChanges:
    """Changes of next hops and of flows' ports, as ranges of shared lists."""

    rows: list[Row] = field(default_factory=list)
    places: list[npt.NDArray[np.int64]] = field(default_factory=list)
    values: list[npt.NDArray[np.uint32]] = field(default_factory=list)
    flows: list[npt.NDArray[np.int64]] = field(default_factory=list)
    ports: list[npt.NDArray[np.int64]] = field(default_factory=list)


def plan_routes(
    failing: Failing, network: Network, *, recovery: Recovery, routing: Routing
) -> tuple[Rerouter, list[npt.NDArray[np.uint32]]]:
    """The tables from each time on at which something becomes known.

    Returns
    -------
    rerouter : Rerouter
        Whose `routes()` are those of the beginning, over the pools of all.
    tables : list of numpy.ndarray of uint32 [switches, edges]
        That of the beginning, then one for each of `failing.times_ps`; equal ones are the same array.
    """
    paths = recovery.reroute
    rerouter = Rerouter(
        network,
        ever_down=failing.ever_down,
        paths=paths if paths == "up_down" or paths == "resilient" else "ecmp",
        buckets=recovery.buckets,
        weights=routing.weights,
        order=routing.next_hop_order,
    )
    everything = np.ones(network.n_links, dtype=np.bool_)
    known: dict[bytes, npt.NDArray[np.uint32]] = {}

    def table(near: BoolArray, far: BoolArray) -> npt.NDArray[np.uint32]:
        key = np.packbits(np.stack([near, far])).tobytes()
        if key not in known:
            known[key] = rerouter.entries(near, far)
        return known[key]

    tables = [table(everything, everything)]
    for near, far in zip(failing.near, failing.far, strict=True):
        stays = paths in ("none", "end_host")
        tables.append(tables[0] if stays else table(near, far))
    return rerouter, tables


def plan_changes(
    failing: Failing,
    *,
    tables: list[npt.NDArray[np.uint32]],
    flow_ports: list[npt.NDArray[np.int64]],
    first_ports: npt.NDArray[np.int64],
) -> RouteChanges:
    """What differs from one time to the next, in next hops and in the ports of flows."""
    changes = RouteChanges()
    routes: dict[tuple[int, int], int] = {}
    moves: dict[tuple[bytes, bytes], int] = {}
    table, ports = tables[0], first_ports
    for time_ps, next_table, next_ports in zip(failing.times_ps, tables[1:], flow_ports, strict=True):
        pair = (id(table), id(next_table))
        if next_table is not table and pair not in routes:
            places = np.flatnonzero(next_table.ravel() != table.ravel())
            routes[pair] = len(changes.places)
            changes.places.append(places)
            changes.values.append(next_table.ravel()[places])
        if next_table is not table and len(changes.places[routes[pair]]):
            changes.rows.append((time_ps, FaultKind.ROUTES, 0, routes[pair], 0.0, 0.0))
        if not np.array_equal(next_ports, ports):
            key = (ports.tobytes(), next_ports.tobytes())
            if key not in moves:
                moved = np.flatnonzero(next_ports != ports)
                moves[key] = len(changes.flows)
                changes.flows.append(moved)
                changes.ports.append(next_ports[moved])
            changes.rows.append((time_ps, FaultKind.MOVES, 0, moves[key], 0.0, 0.0))
        table, ports = next_table, next_ports
    return changes


def as_lowered(link_rows: list[Row], routes: RouteChanges) -> LoweredFaults:
    """The arrays of all changes."""
    rows = sorted([*link_rows, *routes.rows])
    changes = np.zeros(len(rows), dtype=FAULT)
    for name, column in zip(
        ("time_ps", "kind", "port", "value", "loss", "ber_rate"), zip(*rows, strict=True), strict=False
    ):
        changes[name] = column
    return LoweredFaults(
        changes=changes,
        route_base=_bases(routes.places),
        route_place=_joined(routes.places, np.int64),
        route_value=_joined(routes.values, np.uint32),
        move_base=_bases(routes.flows),
        move_flow=_joined(routes.flows, np.uint32),
        move_port=_joined(routes.ports, np.uint32),
    )


def _bases(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
    return np.cumsum([0, *(len(part) for part in parts)], dtype=np.int64)


def _joined(parts: Sequence[npt.NDArray[Any]], dtype: Any) -> npt.NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype=dtype), *parts]).astype(dtype)
