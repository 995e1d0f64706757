"""Occurrences: each failure of one part of a network, with the cables and ports that it takes.

An entry of a scenario names parts by a pattern; each part that matches is an occurrence, and each time that a
link flaps is one. Ports stand for directions: a link is named by the port that sends on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fabric.errors import SpecError
from fabric.failures.draw import network_failures
from fabric.failures.log import read_log
from fabric.spec.failure_sources import DrawnFailures, FailureLog
from fabric.spec.failures import (
    Corruption,
    DegradedLink,
    Failure,
    HostHang,
    LinkDown,
    LinkDrain,
    LinkFlap,
    PfcStorm,
    SlowNic,
    SwitchDown,
)
from fabric.spec.recovery import Recovery
from fabric.spec.scenario import Scenario
from fabric.topology.network import TIER_SCALE_UP, Network
from fabric.topology.patterns import did_you_mean, match_names

__all__ = ["NEVER_PS", "Occurrence", "find_occurrences"]

NEVER_PS = 2**62
"""When something ends that does not."""


@dataclass(frozen=True, kw_only=True)
class Occurrence:
    """One failure.

    Attributes
    ----------
    kind : str
        That of its entry ("link_down").
    target : str
        The part, by its name ("leaf0-spine1", "spine2", "host3").
    began_ps, ended_ps : int
        `NEVER_PS` if it is not repaired.
    cables : tuple of int
        Rows of the network's link columns.
    ports : tuple of int
        Directions of these that are affected.
    rate_bps : int
        Of a degraded link.
    bit_error_rate : float
        Of a link that corrupts.
    classes : tuple of str
        Of a PFC storm.
    isolated_after_ps : int or None
        How long until the ends of the cables stop using them; None: they never do.
    """

    kind: str
    target: str
    began_ps: int
    ended_ps: int
    cables: tuple[int, ...]
    ports: tuple[int, ...]
    rate_bps: int = 0
    bit_error_rate: float = 0.0
    classes: tuple[str, ...] = ()
    isolated_after_ps: int | None = None


def find_occurrences(
    scenario: Scenario, network: Network, *, base_dir: str | Path | None = None
) -> list[Occurrence]:
    """All failures of a scenario, in order of time.

    Parameters
    ----------
    scenario : Scenario
    network : Network
        Its network.
    base_dir : path, optional
        Where logs that are named by a relative path are looked for.

    Returns
    -------
    list of Occurrence

    Raises
    ------
    fabric.errors.SpecError
        A pattern that matches nothing, a class that there is not, a log that cannot be read.

    Examples
    --------
    >>> from fabric.spec import Incast, LeafSpine
    >>> from fabric.topology import build_network
    >>> scenario = Scenario(
    ...     topology=LeafSpine(leaves=2, spines=2, hosts_per_leaf=2),
    ...     traffic=[Incast(senders=2, size="1MB")],
    ...     failures=[LinkFlap(link="leaf0-spine1", at="1ms", period="2ms", duty=0.25, lasts="5ms")],
    ... )
    >>> for each in find_occurrences(scenario, build_network(scenario.topology)):
    ...     print(each.target, each.began_ps // 10**6, each.ended_ps // 10**6)
    leaf0-spine1 1000 1500
    leaf0-spine1 3000 3500
    leaf0-spine1 5000 5500
    """
    finder = _Finder(network, scenario.recovery)
    found: list[Occurrence] = []
    for index, entry in enumerate(scenario.failures):
        path = f"failures[{index}]"
        if isinstance(entry, DrawnFailures):
            drawn = network_failures(entry, network, seed=scenario.run.seed, number=index)
            found += [each for failure in drawn for each in finder.of(failure, path)]
        elif isinstance(entry, FailureLog):
            for where, failure in read_log(Path(base_dir or ".") / entry.file, path=f"{path}.file"):
                found += finder.of(failure, where)
        else:
            found += finder.of(entry, path)
        _check_classes(found, scenario, path)
    tick_ps = scenario.run.tick_ps
    if tick_ps > 1:
        found = [_in_ticks(each, tick_ps) for each in found]
    return sorted(found, key=lambda each: (each.began_ps, each.ended_ps, each.kind, each.target))


def _in_ticks(each: Occurrence, tick_ps: int) -> Occurrence:
    """The same at the first ticks from its instants on, for one tick at least."""

    def up(time_ps: int) -> int:
        return time_ps + -time_ps % tick_ps

    began_ps, after_ps = up(each.began_ps), each.isolated_after_ps
    return replace(
        each,
        began_ps=began_ps,
        ended_ps=NEVER_PS if each.ended_ps >= NEVER_PS else max(up(each.ended_ps), began_ps + tick_ps),
        isolated_after_ps=None if after_ps is None else up(after_ps),
    )


def _check_classes(found: list[Occurrence], scenario: Scenario, path: str) -> None:
    known = [each.name for each in scenario.switch.classes]
    for each in found:
        for name in each.classes:
            if name not in known:
                allowed = "the name of a traffic class: " + ", ".join(f'"{one}"' for one in known)
                raise SpecError(f"{path}.classes", name, allowed + did_you_mean(name, known))


class _Finder:
    """Turns entries into occurrences on one network."""

    def __init__(self, network: Network, recovery: Recovery) -> None:
        self._network = network
        self._isolate_ps = int(recovery.isolate)

    def of(self, entry: Failure, path: str) -> Iterator[Occurrence]:
        match entry:
            case LinkDown():
                for each in self._links(entry, path, both_ways=True):
                    yield replace(each, isolated_after_ps=self._isolate_ps)
            case LinkDrain():
                for each in self._links(entry, path, both_ways=True):
                    yield replace(each, isolated_after_ps=0)
            case LinkFlap():
                yield from self._flaps(entry, path)
            case DegradedLink():
                for each in self._links(entry, path):
                    yield replace(each, rate_bps=int(entry.rate))
            case Corruption():
                after_ps = None if entry.isolate is None else int(entry.isolate)
                for each in self._links(entry, path):
                    yield replace(each, bit_error_rate=entry.bit_error_rate, isolated_after_ps=after_ps)
            case SwitchDown():
                yield from self._switches(entry, path)
            case HostHang() | SlowNic() | PfcStorm():
                yield from self._hosts(entry, path)
            case _:
                raise AssertionError(entry)

    def _flaps(self, entry: LinkFlap, path: str) -> Iterator[Occurrence]:
        assert entry.lasts is not None
        down_ps = int(entry.period * entry.duty)
        for each in self._links(entry, path, both_ways=True):
            for begin_ps in range(int(entry.at), int(entry.at + entry.lasts), int(entry.period)):
                end_ps = min(begin_ps + down_ps, int(entry.at + entry.lasts))
                yield replace(each, began_ps=begin_ps, ended_ps=end_ps, isolated_after_ps=self._isolate_ps)

    def _links(self, entry: Any, path: str, *, both_ways: bool = False) -> Iterator[Occurrence]:
        network = self._network
        one_way = "->" in entry.link and not both_ways
        if "->" in entry.link:
            ports = network.find_ports([entry.link], path=f"{path}.link")
            cables = np.unique(network.port_link[ports])
        else:
            cables = network.find_links(entry.link, path=f"{path}.link")
            ports = network.link_ports[cables].ravel()
        for cable in cables.tolist():
            ends = network.link_ports[cable].tolist()
            directions = [port for port in ends if port in set(ports.tolist())] if one_way else ends
            name = network.port_arrow(directions[0] if one_way else ends[0])
            yield self._made(entry, name if one_way else name.replace("->", "-"), [cable], directions)

    def _switches(self, entry: SwitchDown, path: str) -> Iterator[Occurrence]:
        network = self._network
        names = network.names[network.n_hosts :]
        found = np.flatnonzero(match_names(names, entry.switch)) + network.n_hosts
        if len(found) == 0:
            allowed = "the name or pattern of a switch" + did_you_mean(entry.switch, names)
            raise SpecError(f"{path}.switch", entry.switch, allowed)
        for node in found.tolist():
            cables = np.flatnonzero((network.link_a == node) | (network.link_b == node))
            ports = network.link_ports[cables].ravel()
            made = self._made(entry, network.names[node], cables.tolist(), ports.tolist())
            yield replace(made, isolated_after_ps=self._isolate_ps)

    def _hosts(self, entry: HostHang | SlowNic | PfcStorm, path: str) -> Iterator[Occurrence]:
        network = self._network
        for host in network.find_hosts(entry.host, path=f"{path}.host").tolist():
            mine = (network.link_a == host) | (network.link_b == host)
            if not isinstance(entry, HostHang):
                other = np.where(network.link_a == host, network.link_b, network.link_a)
                mine &= (network.tier[other] != TIER_SCALE_UP) & (other >= network.n_hosts)
            cables = np.flatnonzero(mine)
            ports = network.link_ports[cables].ravel()
            made = self._made(entry, network.names[host], cables.tolist(), ports.tolist())
            if isinstance(entry, SlowNic):
                made = replace(made, rate_bps=int(entry.rate))
            elif isinstance(entry, PfcStorm):
                from_host = [port for port in ports.tolist() if int(network.port_node[port]) == host]
                made = replace(made, classes=entry.classes, ports=tuple(from_host))
            yield made

    def _made(self, entry: Any, target: str, cables: list[int], ports: list[int]) -> Occurrence:
        began_ps = int(entry.at)
        return Occurrence(
            kind=type(entry).__struct_config__.tag,
            target=target,
            began_ps=began_ps,
            ended_ps=NEVER_PS if entry.lasts is None else began_ps + int(entry.lasts),
            cables=tuple(cables),
            ports=tuple(ports),
        )
