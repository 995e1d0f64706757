"""Failures of a scenario: its routes in every state, and all changes in order of time.

The routes of the beginning belong to the other columns, so failures are planned before these are made, and
lowered after.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.failures.occurrences import NEVER_PS, Occurrence, find_occurrences
from fabric.lowered import LoweredFaults
from fabric.lowering.failover import ports_over_time
from fabric.lowering.faults import Failing, RouteChanges, as_lowered, plan_changes, plan_routes
from fabric.lowering.link_changes import link_changes
from fabric.reroute import Rerouter
from fabric.routing import Routes, find_routes
from fabric.spec.scenario import Scenario
from fabric.topology.network import Network
from fabric.units import Rate

__all__ = ["PlannedFailures", "plan_failures"]


@dataclass(frozen=True, eq=False)
class PlannedFailures:
    """What fails, and the routes in all states.

    Attributes
    ----------
    routes : Routes
        When all is well.
    occurrences : list of Occurrence
    failing : Failing or None
        None where no route ever changes.
    rerouter, tables
        Next hops from each time on.
    """

    routes: Routes
    occurrences: list[Occurrence]
    failing: Failing | None = None
    rerouter: Rerouter | None = None
    tables: list[npt.NDArray[np.uint32]] = field(default_factory=list)

    def lowered(
        self, scenario: Scenario, network: Network, *, columns: dict[str, Any]
    ) -> LoweredFaults | None:
        """All changes of a run whose other columns are made."""
        if not self.occurrences:
            return None
        classes = scenario.switch.classes
        rows = link_changes(
            self.occurrences,
            network,
            columns=columns,
            class_numbers={each.name: number for number, each in enumerate(classes)},
            lossless=[each.name for each in classes if each.pfc is not False],
            pfc_frame_bytes=int(scenario.switch.pfc.frame),
            tick_ps=scenario.run.tick_ps,
        )
        return as_lowered(list(rows), self._route_changes(scenario, network, columns))

    def _route_changes(self, scenario: Scenario, network: Network, columns: dict[str, Any]) -> RouteChanges:
        if self.failing is None or self.rerouter is None:
            return RouteChanges()
        own = columns["flow_port"].astype(np.int64)
        ports = [own] * len(self.failing.times_ps)
        if scenario.recovery.failover == "next_port":
            ports = ports_over_time(
                self.failing,
                network,
                tables=self.tables[1:],
                host_edge=self.rerouter.host_edge,
                source=columns["flow_source"],
                destination=columns["flow_destination"],
                port=columns["flow_port"],
            )
        return plan_changes(
            self.failing,
            tables=self.tables,
            flow_ports=ports,
            first_ports=own,
        )


def plan_failures(scenario: Scenario, network: Network) -> PlannedFailures:
    """Find the failures of a scenario, and the routes of its network in every state.

    Raises
    ------
    fabric.errors.SpecError
        Failures that the network has no part for, or that its switches cannot be run with.
    """
    recovery, routing = scenario.recovery, scenario.routing
    occurrences = find_occurrences(scenario, network) if scenario.failures else []
    slowed = [each.rate_bps for each in occurrences if each.rate_bps]
    if slowed and scenario.run.ties == "transmission_start":
        allowed = f'"fair", where links come to run at another rate ({Rate(slowed[0])})'
        raise SpecError("run.ties", scenario.run.ties, allowed)
    for_ever = [each.target for each in occurrences if each.ended_ps >= NEVER_PS]
    if for_ever and scenario.run.until is None:
        allowed = f"an end, where a failure is never repaired ({for_ever[0]}): flows can try for ever"
        raise SpecError("run.until", None, allowed)
    failing = Failing.of(occurrences, recovery, network)
    if not failing.times_ps and recovery.reroute != "up_down":
        routes = find_routes(network, weights=routing.weights, order=routing.next_hop_order)
        return PlannedFailures(routes, occurrences)
    rerouter, tables = plan_routes(failing, network, recovery=recovery, routing=routing)
    return PlannedFailures(rerouter.routes(), occurrences, failing, rerouter, tables)
