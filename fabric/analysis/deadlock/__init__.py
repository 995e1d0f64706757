"""Can the routes of a network deadlock? A static check of the buffer-dependency graph.

PFC holds frames back hop by hop, so buffers can wait for each other in a circle, and then for ever. Without
a circle of dependencies that never happens, whatever the traffic, the thresholds and the timing; with one
it may, if enough traffic meets in it (`docs/deadlock.md`). :func:`check_deadlock` gives the verdict with
its reason, :func:`single_failures` that of each failure, :func:`remedies` what breaks the circle, checked
again.

Not considered: how much traffic there is, and what time-outs of watchdogs do.
"""

from __future__ import annotations

from fabric.analysis.deadlock.causes import route_over
from fabric.analysis.deadlock.cycles import rounds, shortest_cycle, strong_components
from fabric.analysis.deadlock.failures import Failure, failed_routes, single_failures
from fabric.analysis.deadlock.graph import DependencyGraph, Turns, turns_of
from fabric.analysis.deadlock.routes import RouteSet, find_route_set, without
from fabric.analysis.deadlock.verdict import (
    REMEDIES,
    Remedy,
    Step,
    Verdict,
    check_deadlock,
    remedies,
    remedy,
)
from fabric.analysis.deadlock.walks import Demand, Walk, demands_of, walk
from fabric.topology.heights import heights

__all__ = [
    "REMEDIES",
    "Demand",
    "DependencyGraph",
    "Failure",
    "Remedy",
    "RouteSet",
    "Step",
    "Turns",
    "Verdict",
    "Walk",
    "check_deadlock",
    "demands_of",
    "failed_routes",
    "find_route_set",
    "heights",
    "remedies",
    "remedy",
    "rounds",
    "route_over",
    "shortest_cycle",
    "single_failures",
    "strong_components",
    "turns_of",
    "walk",
    "without",
]
