"""Lowering: from a scenario to the arrays that an engine runs.

`lower` builds the network, its routes and the flows, and hands each part of the layout
(`docs/design.md`, section 9) to the module of `fabric.lowering` that is about it. What can only be
judged once the network is there is judged here, with the path in the scenario: that delays are long
enough, that reserves and headroom fit the buffers, that hosts have paths, that patterns match.
Lowering is deterministic: the same scenario gives the same arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.lowered import OPEN_END_PS, Lowered
from fabric.lowering.buffers import buffer_columns
from fabric.lowering.dependencies import dependency_columns
from fabric.lowering.failures import plan_failures
from fabric.lowering.flows import flow_columns
from fabric.lowering.paths import path_columns
from fabric.lowering.ports import node_columns, port_columns
from fabric.lowering.programs import lower_jobs
from fabric.lowering.quanta import quanta_columns
from fabric.lowering.recording import record_columns
from fabric.lowering.ticks import ns3_ticks_ps
from fabric.lowering.transports import pattern_transports
from fabric.routing import Routes
from fabric.spec.run import DEADLOCK_MODES, Run
from fabric.spec.scenario import Scenario
from fabric.spec.switch import Watchdog
from fabric.topology.build import build_network
from fabric.topology.network import Network
from fabric.units import Duration
from fabric.workload.flow_table import FlowTable
from fabric.workload.job import Job

__all__ = ["lookahead_ps", "lower", "lower_with_flows"]

WATCHDOG_ACTIONS = ("alert", "drop", "forward")
"""By the number that an engine knows them by."""
WATCHDOG_FIELDS = (
    *("poll_ps", "detect_polls", "restore_polls", "restores_by_time", "action", "drops_ingress"),
)


def lower(
    scenario: Scenario,
    *,
    network: Network | None = None,
    flows: FlowTable | None = None,
    jobs: Sequence[Job] | None = None,
    base_dir: str | Path | None = None,
) -> Lowered:
    """Build the arrays of a scenario.

    Parameters
    ----------
    scenario : Scenario
    network : Network, optional
        Used instead of the one that `scenario.topology` describes.
    flows : FlowTable, optional
        Used instead of those that `scenario.traffic` describes.
    jobs : sequence of Job, optional
        Programs that run beside the flows, their connections numbered after these; by default those that
        `scenario.traffic` describes, and none if flows are given.
    base_dir : path, optional
        Where files that the topology names by a relative path are looked for.

    Returns
    -------
    Lowered

    Raises
    ------
    fabric.errors.SpecError
        What the scenario describes cannot be run; the error says where and what is allowed.

    Examples
    --------
    >>> from fabric.spec import Incast, Scenario, SingleSwitch
    >>> scenario = Scenario(topology=SingleSwitch(hosts=9), traffic=[Incast(senders=8, size="1MB")])
    >>> lowered = lower(scenario)
    >>> lowered.n_flows, lowered.n_ports, int(lowered.flow_frames[0])
    (8, 18, 245)
    """
    if network is None:
        network = build_network(scenario.topology, base_dir=base_dir)
    if flows is None:
        from fabric.jobs import scenario_jobs
        from fabric.workload import build_flows

        flows = build_flows(scenario, network)
        jobs = scenario_jobs(scenario, network) if jobs is None else jobs
    return lower_with_flows(scenario, network=network, flows=flows, jobs=jobs or ())[0]


def lower_with_flows(
    scenario: Scenario, *, network: Network, flows: FlowTable, jobs: Sequence[Job]
) -> tuple[Lowered, FlowTable]:
    """As `lower`, from parts that are there; also returns the flows with the connections of the jobs."""
    n_flows = len(flows)
    lowered_jobs = lower_jobs(
        jobs,
        n_hosts=network.n_hosts,
        local_rate_bps=int(scenario.nic.copy_rate or 0),
        local_latency_ps=int(scenario.nic.copy_latency),
        tick_ps=scenario.run.tick_ps,
    )
    flows = FlowTable.concatenate([flows, lowered_jobs.flows])
    run, switch = scenario.run, scenario.switch
    failures = plan_failures(scenario, network)
    routes = failures.routes
    patterns = pattern_transports(
        flows,
        transport=scenario.transport,
        switch=switch,
        largest_gap_bytes=int(network.link_gap_bytes.max(initial=0)),
    )
    columns = {
        **node_columns(network, switch=switch, nic=scenario.nic, seed=run.seed),
        **port_columns(network, switch=switch, nic=scenario.nic),
        **_route_columns(routes),
        **path_columns(scenario.routing, network=network, flows=flows),
        **flow_columns(
            flows,
            network=network,
            routes=routes,
            patterns=patterns,
            switch=switch,
            seed=run.seed,
            whole_rates=run.timing == "ns3",
        ),
        **record_columns(scenario.record, network=network, flows=flows),
    }
    if run.timing == "ns3":
        columns["flow_start_ps"] = ns3_ticks_ps(columns["flow_start_ps"])
    columns |= buffer_columns(
        network, switch=switch, columns=columns, largest_frame_bytes=patterns.largest_frame_bytes
    )
    columns |= dependency_columns(
        flows,
        network=network,
        routes=routes,
        tables=_Tables(**{name: columns[name] for name in _Tables.__dataclass_fields__}),
        port_delay_ps=columns["port_delay_ps"],
        flow_hash=columns["flow_hash"],
        at_once=run.waits == "instant",
    )
    columns["flow_frames"][n_flows:] = 0
    if scenario.recovery.reroute == "end_host":
        columns["transports"]["repath"] = columns["transports"]["path_mode"] == 0
    lowered = Lowered(
        **columns,
        **_run_fields(run, columns["port_delay_ps"]),
        pfc_frame_bytes=int(switch.pfc.frame),
        **_watchdog_fields(switch.watchdog),
        **quanta_columns(
            network,
            switch=switch,
            columns=columns,
            occurrences=failures.occurrences,
            largest_frame_bytes=patterns.largest_frame_bytes,
        ),
        program=lowered_jobs.program if jobs else None,
        faults=failures.lowered(scenario, network, columns=columns),
    )
    return lowered, flows


def lookahead_ps(lowered: Lowered) -> int:
    """The smallest delay of any link: for so long no node can affect another.

    Examples
    --------
    >>> from fabric.spec import Incast, Scenario, SingleSwitch
    >>> scenario = Scenario(topology=SingleSwitch(hosts=3), traffic=[Incast(senders=2, size="1MB")])
    >>> lookahead_ps(lower(scenario))
    500000
    """
    return int(lowered.port_delay_ps.min())


@dataclass(frozen=True, kw_only=True, eq=False)
class _Tables:
    """The columns that tracing a path needs, before there is a `Lowered`."""

    n_hosts: int
    n_nodes: int
    node_port_base: npt.NDArray[np.uint32]
    node_salt: npt.NDArray[np.uint32]
    host_address: npt.NDArray[np.uint32]
    flow_ports: npt.NDArray[np.uint32]
    port_node: npt.NDArray[np.uint32]
    port_peer: npt.NDArray[np.uint32]
    host_edge: npt.NDArray[np.uint32]
    route_base: npt.NDArray[np.int64]
    route_entry: npt.NDArray[np.uint32]
    route_ports_base: npt.NDArray[np.int64]
    route_ports: npt.NDArray[np.uint16]


def _route_columns(routes: Routes) -> dict[str, Any]:
    return {
        "n_edges": routes.n_edges,
        "host_edge": routes.host_edge,
        "route_base": routes.route_base,
        "route_entry": routes.route_entry,
        "route_ports_base": routes.route_ports_base,
        "route_ports": routes.route_ports,
    }


def _watchdog_fields(watchdog: Watchdog | None) -> dict[str, Any]:
    if watchdog is None:
        return dict.fromkeys((f"watchdog_{name}" for name in WATCHDOG_FIELDS), 0)
    poll_ps = int(watchdog.poll)
    return {
        "watchdog_poll_ps": poll_ps,
        "watchdog_detect_polls": -(-int(watchdog.detection) // poll_ps),
        "watchdog_restore_polls": -(-int(watchdog.restoration) // poll_ps),
        "watchdog_restores_by_time": int(watchdog.restore == "time" and watchdog.action != "alert"),
        "watchdog_action": WATCHDOG_ACTIONS.index(watchdog.action),
        "watchdog_drops_ingress": int(watchdog.drop_ingress),
    }


def _run_fields(run: Run, port_delay_ps: npt.NDArray[np.int64]) -> dict[str, Any]:
    lookahead = Duration(int(port_delay_ps.min()))
    if run.window is not None and run.window > lookahead:
        raise SpecError("run.window", run.window, f"at most the smallest link delay ({lookahead})")
    if (port_delay_ps % run.tick_ps).any():
        delay = Duration(int(port_delay_ps[np.argmax(port_delay_ps % run.tick_ps)]))
        raise SpecError(
            "run.ties", run.ties, f'"fair", or delays of whole ns, latencies included (not {delay})'
        )
    return {
        "seed": run.seed,
        "until_ps": OPEN_END_PS if run.until is None else int(run.until),
        "window_ps": int(run.window or 0),
        "fingerprint": int(run.fingerprint),
        "deadlock": DEADLOCK_MODES.index(run.deadlock),
        "ties_by_start": int(run.ties == "transmission_start"),
        "port_tick_timing": np.full(len(port_delay_ps), run.timing == "ns3", dtype=np.uint8),
    }
