"""Checks between the parts of a scenario, as far as no network needs to be built for them.

They are: every class that a transport or traffic names exists; every host named exists (graphs
excepted, whose file decides); fan-in and receivers fit the number of hosts; flow names are unique;
`after` names flows of the scenario (unless files bring more) and has no cycle; every link delay
with its receiver's latency is at least 1 ns; the timing of ns-3 goes with PFC that acts at once and does
not run out; frame and gap fit 65,535 bytes; no message needs more than 2^32-1 frames.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fabric.spec.base import Problem
from fabric.spec.decode import did_you_mean
from fabric.spec.link import LARGEST_FRAME_BYTES
from fabric.spec.topology import host_count, links_of
from fabric.spec.traffic import Flow, Flows, Incast, Poisson, Traffic
from fabric.spec.training.entry import Training
from fabric.spec.transport import Transport
from fabric.units import Duration, Size

if TYPE_CHECKING:
    from fabric.spec.scenario import Scenario

__all__ = ["SHORTEST_DELAY_PS", "cross_problems"]

SHORTEST_DELAY_PS = 1_000
"""Smallest delay of a link with its receiver's latency: nodes are simulated apart for so long."""
LARGEST_FRAMES = 2**32 - 1
_GENERATED_HOST = re.compile(r"host(0|[1-9][0-9]*)")


def cross_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yield what does not fit together; paths start at the scenario."""
    if not scenario.traffic:
        yield "traffic", scenario.traffic, "at least one entry"
    yield from _delay_problems(scenario)
    if scenario.run.timing == "ns3" and (scenario.switch.pfc_response or scenario.nic.pfc_response):
        allowed = "exact, or pfc_response 0: frames that take no time could make PFC act out of order"
        yield "run.timing", scenario.run.timing, allowed
    if scenario.run.timing == "ns3" and scenario.switch.pfc.quanta is not None:
        yield "run.timing", scenario.run.timing, "exact, or no switch.pfc.quanta: in ns-3 no PAUSE runs out"
    for path, transport in _transports(scenario):
        yield from _transport_problems(scenario, transport, path)
    for index, entry in enumerate(scenario.traffic):
        path = f"traffic[{index}]"
        if entry.traffic_class is not None:
            yield from _class_problems(scenario, entry.traffic_class, f"{path}.traffic_class")
        yield from _host_problems(scenario, entry, path)
        yield from _length_problems(scenario, entry, path)
    yield from _failure_problems(scenario)
    yield from _entry_name_problems(scenario)
    yield from _dependency_problems(scenario)


def _failure_problems(scenario: Scenario) -> Iterator[Problem]:
    if not scenario.failures:
        return
    for name in ("suspect", "isolate", "dead", "convergence", "restore"):
        delay = getattr(scenario.recovery, name)
        if delay % scenario.run.tick_ps:
            yield f"recovery.{name}", delay, f'whole nanoseconds, with run.ties = "{scenario.run.ties}"'
    if scenario.recovery.reroute == "resilient" and scenario.routing.weights != "equal":
        allowed = '"equal", with recovery.reroute = "resilient": its tables have places of their own'
        yield "routing.weights", scenario.routing.weights, allowed
    if scenario.recovery.reroute == "resilient" and scenario.routing.choice != "ecmp":
        allowed = '"ecmp", with recovery.reroute = "resilient": it is about what a hash picks'
        yield "routing.choice", scenario.routing.choice, allowed


def _delay_problems(scenario: Scenario) -> Iterator[Problem]:
    delays: list[tuple[str, Duration, bool]] = [
        (f"topology.{name}.delay", link.delay, name in ("link", "host_link", "scale_up_link"))
        for name, link in links_of(scenario.topology)
    ]
    for index, override in enumerate(getattr(scenario.topology, "overrides", ())):
        if override.delay is not None:
            to_host = any(end == "*" or "host" in end for end in override.match.split("-"))
            delays.append((f"topology.overrides[{index}].delay", override.delay, to_host))
    for path, delay, to_host in delays:
        receivers = {"switch.latency": scenario.switch.latency}
        if to_host:
            receivers["nic.latency"] = scenario.nic.latency
        for receiver, latency in receivers.items():
            if delay + latency < SHORTEST_DELAY_PS:
                yield path, delay, f"a duration that makes at least 1ns with {receiver} ({latency})"


def _transports(scenario: Scenario) -> Iterator[tuple[str, Transport]]:
    yield "transport", scenario.transport
    for index, entry in enumerate(scenario.traffic):
        if entry.transport is not None:
            yield f"traffic[{index}].transport", entry.transport


def _transport_problems(scenario: Scenario, transport: Transport, path: str) -> Iterator[Problem]:
    yield from _class_problems(scenario, transport.data_class, f"{path}.data_class")
    yield from _class_problems(scenario, transport.control_class, f"{path}.control_class")
    gap = max((link.gap for _, link in links_of(scenario.topology)), default=0)
    for name, frame in (("payload", transport.frame), ("control_frame", transport.control_frame)):
        if frame + gap > LARGEST_FRAME_BYTES:
            value = getattr(transport, name)
            limit = max(0, LARGEST_FRAME_BYTES - gap - (frame - value))
            yield f"{path}.{name}", value, f"at most {limit} bytes: frame and gap have {LARGEST_FRAME_BYTES}"


def _class_problems(scenario: Scenario, name: str, path: str) -> Iterator[Problem]:
    names = [each.name for each in scenario.switch.classes]
    if name not in names:
        known = ", ".join(f'"{each}"' for each in names)
        yield path, name, f"the name of a traffic class: {known}{did_you_mean(name, names)}"


def _host_problems(scenario: Scenario, entry: Traffic, path: str) -> Iterator[Problem]:
    hosts = host_count(scenario.topology)
    if hosts is None:
        return
    if isinstance(entry, Flows):
        for index, flow in enumerate(entry.flows):
            where = f"{path}.flows[{index}]"
            yield from _one_host_problem(flow.source, hosts, f"{where}.source")
            yield from _one_host_problem(flow.destination, hosts, f"{where}.destination")
            if _host_number(flow.source) == _host_number(flow.destination):
                yield f"{where}.destination", flow.destination, "a host other than the source"
    if isinstance(entry, Incast):
        yield from _incast_problems(entry, hosts, path)


def _incast_problems(entry: Incast, hosts: int, path: str) -> Iterator[Problem]:
    if entry.senders >= hosts:
        yield f"{path}.senders", entry.senders, f"at most {hosts - 1}: there are {hosts} hosts, one receives"
    if isinstance(entry.receivers, int):
        if entry.receivers > hosts:
            yield f"{path}.receivers", entry.receivers, f"at most the number of hosts ({hosts})"
        return
    for index, host in enumerate(entry.receivers):
        yield from _one_host_problem(host, hosts, f"{path}.receivers[{index}]")


def _host_number(host: str | int) -> int | None:
    if isinstance(host, int):
        return host
    found = _GENERATED_HOST.fullmatch(host)
    return int(found[1]) if found else None


def _one_host_problem(host: str | int, hosts: int, path: str) -> Iterator[Problem]:
    number = _host_number(host)
    if number is None or number >= hosts:
        yield path, host, f'a host: "host0" to "host{hosts - 1}", or 0 to {hosts - 1}'


def _length_problems(scenario: Scenario, entry: Traffic, path: str) -> Iterator[Problem]:
    payload = (entry.transport or scenario.transport).payload
    sizes: list[tuple[str, Size]] = []
    if isinstance(entry, Flows):
        sizes += [(f"{path}.flows[{index}].size", flow.size) for index, flow in enumerate(entry.flows)]
    elif not isinstance(entry, Poisson | Training) and entry.size is not None:
        sizes.append((f"{path}.size", entry.size))
    if isinstance(entry, Incast) and entry.victim_size is not None:
        sizes.append((f"{path}.victim_size", entry.victim_size))
    for where, size in sizes:
        if size > payload * LARGEST_FRAMES:
            yield where, size, f"at most 2^32-1 frames of {payload} payload; split the message"


def _entry_name_problems(scenario: Scenario) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for index, entry in enumerate(scenario.traffic):
        if entry.name and entry.name in seen:
            yield f"traffic[{index}].name", entry.name, f"a name not used by traffic[{seen[entry.name]}]"
        seen.setdefault(entry.name, index)


def _dependency_problems(scenario: Scenario) -> Iterator[Problem]:
    named: dict[str, tuple[str, Flow]] = {}
    flows: list[tuple[str, Flow]] = [
        (f"traffic[{entry_index}].flows[{index}]", flow)
        for entry_index, entry in enumerate(scenario.traffic)
        if isinstance(entry, Flows)
        for index, flow in enumerate(entry.flows)
    ]
    for path, flow in flows:
        if flow.name in named:
            yield f"{path}.name", flow.name, f"a name not used by {named[flow.name][0]}"
        if flow.name:
            named[flow.name] = (path, flow)
    if any(isinstance(entry, Flows) and entry.file for entry in scenario.traffic):
        flows = []
    for path, flow in flows:
        for index, name in enumerate(flow.after):
            if name not in named:
                known = ", ".join(f'"{each}"' for each in list(named)[:8]) or "none has a name"
                hint = did_you_mean(name, named)
                yield f"{path}.after[{index}]", name, f"the name of a flow of this scenario: {known}{hint}"
                return
    yield from _cycle_problem(named)


def _cycle_problem(named: dict[str, tuple[str, Flow]]) -> Iterator[Problem]:
    """Take away flows that wait for nothing left; what remains waits for itself."""
    waits = {name: set(flow.after) & named.keys() for name, (_, flow) in named.items()}
    followers: dict[str, list[str]] = {name: [] for name in waits}
    for name, before in waits.items():
        for each in before:
            followers[each].append(name)
    ready = [name for name, before in waits.items() if not before]
    while ready:
        done = ready.pop()
        del waits[done]
        for name in followers[done]:
            waits[name].discard(done)
            if not waits[name]:
                ready.append(name)
    if not waits:
        return
    cycle = [next(iter(waits))]
    while True:
        following = min(waits[cycle[-1]])
        if following in cycle:
            cycle = cycle[cycle.index(following) :]
            break
        cycle.append(following)
    path, flow = named[cycle[0]]
    shown = " after ".join(f'"{name}"' for name in [*cycle, cycle[0]])
    yield f"{path}.after", flow.after, f"no cycle (here {shown})"
