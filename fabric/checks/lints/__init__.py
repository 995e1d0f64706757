"""Lints: settings that run, and that a network engineer would ask about.

Each compares a setting with a bound that the network and the traffic give: headroom with what arrives after
PAUSE; the ECN threshold with that of PFC, which should fire later; a dynamic threshold with what is left of
it when all ports are busy; quanta with how often PAUSE is repeated; a watchdog with the longest pause that
ends by itself; RED with the marking that N flows of DCQCN need at rest (`fabric.analysis.dcqcn_fluid`);
uplinks with what the hosts below send through them; the long-run load of links between switches with 70 %,
above which queues are long for any arrivals that are not paced; the class of control frames with the loss
that it permits.

Long-run load is that of Poisson traffic, whose rate is stated, spread evenly over equal paths.
"""

from __future__ import annotations

from fabric.analysis.deadlock import find_route_set
from fabric.checks.lints.buffers import class_lints
from fabric.checks.lints.congestion import control_lints, dcqcn_lints
from fabric.checks.lints.lint import Lint
from fabric.checks.lints.loads import load_lints
from fabric.checks.lints.pauses import pause_lints, watchdog_lints
from fabric.lowered import Lowered
from fabric.spec import Scenario
from fabric.topology import Network
from fabric.workload import FlowTable

__all__ = ["Lint", "lints"]


def lints(scenario: Scenario, *, network: Network, flows: FlowTable, lowered: Lowered) -> list[Lint]:
    """Judge the settings of a scenario.

    Parameters
    ----------
    scenario : Scenario
    network, flows, lowered
        What it makes.

    Returns
    -------
    list of Lint
    """
    found = [*class_lints(scenario, network, lowered), *dcqcn_lints(scenario, network, lowered)]
    found += [*control_lints(scenario, lowered), *pause_lints(scenario, network, lowered)]
    found += watchdog_lints(scenario, network, flows, lowered)
    if network.n_switches:
        routes = find_route_set(network, source=flows.source, destination=flows.destination)
        found += load_lints(scenario, routes, flows)
    return found
