"""Redundancy options compared: the same job, the same failures, fabrics built with different reserves.

From a leaf-spine fabric whose hosts have one port each, with the same hosts and the same bandwidth of hosts
and leaves:

* *single*: as it is.
* *dual-homed*: NICs with two ports of half the rate, to two leaves of one fabric; each leaf serves twice as
  many ports. Spines send to a host over either of its leaves, as a hash has it.
* *dual plane*: the same, but the two leaves and their spines belong to two fabrics (Qian et al., "Alibaba
  HPN", SIGCOMM 2024), so that what a host sends over one port arrives at one.
* *spare spine*: one spine more than the bandwidth needs.

In each one NIC cable, one leaf and one spine fail for good while the job runs. A job whose ranks are cut off
stops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fabric.errors import FabricError, Said, SpecError
from fabric.resilience.cost import end_ps
from fabric.simulate import EngineName, run
from fabric.spec import Collective, LeafSpine, LinkDown, Scenario, SwitchDown
from fabric.topology import build_network
from fabric.units import Duration, Rate

__all__ = ["FAILED_PARTS", "Redundancy", "compare_redundancy"]

FAILED_PARTS = ("NIC cable", "leaf", "spine")
PATIENCE = 20
"""A job that takes so many times as long as without failure has stopped."""


@dataclass(frozen=True, kw_only=True)
class Redundancy:
    """One option.

    Attributes
    ----------
    option : str
    switches, cables : int
        What it needs.
    healthy_ps : int
        The job without failures.
    failed_ps : dict of str to int
        By the part that fails, the job with it; -1: it stops.
    """

    option: str
    switches: int
    cables: int
    healthy_ps: int
    failed_ps: dict[str, int]

    def throughput_left(self, part: str) -> float:
        """Share of the job's speed that is left, over the whole job; 0: it stops."""
        failed_ps = self.failed_ps[part]
        return self.healthy_ps / failed_ps if failed_ps > 0 else 0.0


def compare_redundancy(scenario: Scenario, *, engine: EngineName = "native") -> list[Redundancy]:
    """Run the failures of one part on every option.

    Parameters
    ----------
    scenario : Scenario
        On a leaf-spine fabric with an even number of leaves and spines, whose hosts have one port; its
        traffic is one collective, which gets two channels, so that both ports of a NIC are used. Its own
        failures do not count.
    engine : {"native", "reference"}

    Returns
    -------
    list of Redundancy

    Raises
    ------
    fabric.errors.SpecError
        Another kind of scenario.
    """
    spec = scenario.topology
    if not isinstance(spec, LeafSpine) or spec.ports_per_host != 1 or spec.leaves % 2 or spec.spines % 2:
        allowed = "a leaf_spine of one port a host, with an even number of leaves and of spines"
        raise SpecError("topology", str(type(spec).__struct_config__.tag), allowed)
    if len(scenario.traffic) != 1 or not isinstance(scenario.traffic[0], Collective):
        raise SpecError("traffic", Said(f"{len(scenario.traffic)} entries"), "one collective")
    traffic = scenario.traffic[0].replace(channels=2)
    job = scenario.replace(traffic=(traffic,), failures=())
    return [_tried(name, job.replace(topology=each), engine) for name, each in _options(spec)]


def _options(spec: LeafSpine) -> Iterator[tuple[str, LeafSpine]]:
    fields: dict[str, Any] = {
        "leaves": spec.leaves,
        "spines": spec.spines,
        "links_per_pair": spec.links_per_pair,
        "fabric_link": spec.fabric_link,
    }
    half = spec.host_link.replace(rate=Rate(int(spec.host_link.rate) // 2))
    two_ports: dict[str, Any] = {
        "hosts_per_leaf": 2 * spec.hosts_per_leaf,
        "host_link": half,
        "ports_per_host": 2,
    }
    one_port: dict[str, Any] = {"hosts_per_leaf": spec.hosts_per_leaf, "host_link": spec.host_link}
    double = spec.fabric_link.replace(rate=Rate(2 * int(spec.fabric_link.rate)))
    yield "single", LeafSpine(**fields, **one_port)
    yield "dual-homed", LeafSpine(**fields, **two_ports)
    yield "dual plane", LeafSpine(**{**fields, "fabric_link": double}, **two_ports, planes=2)
    yield "spare spine", LeafSpine(**{**fields, "spines": spec.spines + 1}, **one_port)


def _tried(name: str, scenario: Scenario, engine: EngineName) -> Redundancy:
    network = build_network(scenario.topology)
    healthy_ps = end_ps(run(scenario, engine=engine, progress=False))
    at = Duration(healthy_ps // 10)
    cable = network.port_arrow(0)
    failures = (
        LinkDown(link=cable, at=at),
        SwitchDown(switch="leaf0", at=at),
        SwitchDown(switch="spine0", at=at),
    )
    failed_ps: dict[str, int] = {}
    for part, failure in zip(FAILED_PARTS, failures, strict=True):
        until = scenario.run.replace(until=Duration(PATIENCE * healthy_ps))
        failed = scenario.replace(failures=(failure,), run=until)
        try:
            failed_ps[part] = end_ps(run(failed, engine=engine, progress=False))
        except FabricError:
            failed_ps[part] = -1
    return Redundancy(
        option=name,
        switches=network.n_switches,
        cables=network.n_links,
        healthy_ps=healthy_ps,
        failed_ps=failed_ps,
    )
