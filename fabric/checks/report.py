"""All checks of a scenario in one report, and its text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from fabric.analysis.deadlock import REMEDIES, Failure
from fabric.analysis.domains import Domain, failure_domains
from fabric.checks.deadlocks import ClassCheck, check_classes
from fabric.checks.lints import Lint, lints
from fabric.errors import SpecError
from fabric.lower import lower
from fabric.result.text import align, count_text, counted, percent_text
from fabric.spec import Scenario
from fabric.topology import Network, build_network
from fabric.workload import build_flows

__all__ = ["Report", "State", "check_scenario"]

MOST_CYCLES = 8
"""Single failures with a cycle that the text shows."""


@dataclass(frozen=True)
class State:
    """What is down, all of it at once (empty: nothing), and what is then true of lossless classes."""

    failed: str
    classes: tuple[ClassCheck, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Report:
    """What was found.

    Attributes
    ----------
    network : Network
    states : tuple of State
        One for each set of failures that was given, or one without any.
    lints : tuple of Lint
    domains : tuple of Domain
    """

    network: Network
    states: tuple[State, ...]
    lints: tuple[Lint, ...]
    domains: tuple[Domain, ...]

    @property
    def can_deadlock(self) -> bool:
        """Whether some class has a cycle, in some state or after a single failure that was tried."""
        return any(
            each.verdict.can_deadlock or (each.single is not None and bool(each.single.cycles))
            for state in self.states
            for each in state.classes
        )

    def lines(self) -> Iterator[str]:
        """The report as text."""
        for state in self.states:
            yield f"deadlock{f' with {state.failed} down' if state.failed else ''}"
            if not state.classes:
                yield "  cannot: there is no lossless class, so nothing is ever paused"
            for each in state.classes:
                yield from _class_lines(each)
        yield ""
        yield "lints"
        rows = [[each.level, each.path, each.text] for each in self.lints]
        yield from (f"  {line}" for line in align(rows) or ["none"])
        yield ""
        yield "failure domains"
        yield from (f"  {line}" for line in _domain_lines(self.domains))


def check_scenario(
    scenario: Scenario,
    *,
    routes: Literal["all", "traffic"] = "all",
    fail: Sequence[str] = (),
    single: bool = True,
    apply: str | None = None,
) -> Report:
    """Check a scenario without running it.

    Parameters
    ----------
    scenario : Scenario
    routes : {"all", "traffic"}
        Which routes are judged: between all hosts, or of the scenario's flows.
    fail : sequence of str
        Sets of cables and switches to try one after the other, each down at once, with commas between:
        "leaf0-spine1,spine3".
    single : bool
        Whether each single failure is tried; not with `fail`.
    apply : {"up-down", "classes", "lossy"}, optional
        A remedy to check with.

    Returns
    -------
    Report

    Raises
    ------
    fabric.errors.SpecError
        The scenario cannot be run, or something that should fail does not exist.

    Examples
    --------
    >>> from fabric.spec import Incast, LeafSpine
    >>> scenario = Scenario(
    ...     topology=LeafSpine(leaves=4, spines=2, hosts_per_leaf=2), traffic=[Incast(senders=4, size="1MB")]
    ... )
    >>> check_scenario(scenario).can_deadlock
    False
    >>> check_scenario(scenario, fail=["leaf0-spine0,leaf1-spine1"]).can_deadlock
    True
    """
    if apply is not None and apply not in REMEDIES:
        raise SpecError("remedy", apply, f"one of {', '.join(REMEDIES)}")
    network = build_network(scenario.topology)
    flows = build_flows(scenario, network)
    lowered = lower(scenario, network=network, flows=flows)
    failures = [_failure(network, names, f"fail[{index}]") for index, names in enumerate(fail)]
    states = [
        State(
            failure.name(network),
            tuple(
                check_classes(
                    lowered,
                    network,
                    class_names=[each.name for each in scenario.switch.classes],
                    flow_names=flows.names,
                    routes=routes,
                    failure=failure,
                    single=single and not failures,
                    apply=apply,
                )
            ),
        )
        for failure in failures or [Failure()]
    ]
    return Report(
        network=network,
        states=tuple(states),
        lints=tuple(lints(scenario, network=network, flows=flows, lowered=lowered)),
        domains=tuple(failure_domains(network)),
    )


def _failure(network: Network, names: str, path: str) -> Failure:
    cables: list[int] = []
    switches: list[int] = []
    for name in names.split(","):
        number = network.node_numbers.get(name)
        if number is not None and number >= network.n_hosts:
            switches.append(number)
        elif number is not None:
            raise SpecError(path, name, f"a switch, or a cable such as {_cable_of(network, number)}")
        else:
            cables += network.find_links(name, path=path).tolist()
    return Failure(tuple(cables), tuple(switches))


def _cable_of(network: Network, host: int) -> str:
    """The first cable of a host, by its ends."""
    first = int(network.node_port_base[host])
    return network.port_arrow(first).replace("->", "-")


def _class_lines(each: ClassCheck) -> Iterator[str]:
    noun = "class" if len(each.classes) == 1 else "classes"
    yield f"  {noun} {', '.join(each.classes)}: {each.verdict.reason}"
    if each.applied is not None:
        yield f"    with {each.applied.what} ({each.applied.price})"
    for step in each.verdict.cycle:
        yield f"    {step.link} waits for {step.waits_for}: {step.route}"
    for remedy in each.remedies:
        verdict = "can still deadlock" if remedy.verdict.can_deadlock else "cannot deadlock"
        yield f"  with {remedy.what}: {verdict} ({remedy.price})"
    if each.single is None:
        return
    tried = (
        f"{counted(each.single.cables, 'cable')} and {counted(each.single.switches, 'switch', 'switches')}"
    )
    if not each.single.cycles:
        yield f"  any one of {tried} down: cannot deadlock"
        return
    yield f"  any one of {tried} down: {len(each.single.cycles)} of these make a cycle"
    for name, links in each.single.cycles[:MOST_CYCLES]:
        yield f"    {name}: {' -> '.join([*links, links[0]])}"
    if len(each.single.cycles) > MOST_CYCLES:
        yield f"    and {len(each.single.cycles) - MOST_CYCLES} more"


def _domain_lines(domains: Sequence[Domain]) -> list[str]:
    rows = [["loss of one", "of", "hosts cut off", "hosts slowed", "bisection lost"]]
    for each in domains:
        lost = "-" if each.bisection_lost is None else percent_text(each.bisection_lost)
        rows.append(
            [each.kind, count_text(each.count), count_text(each.cut_off), count_text(each.slowed), lost]
        )
    return align(rows, right=(1, 2, 3, 4))
