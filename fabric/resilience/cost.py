"""The time that failures cost, taken apart by runs that leave one cause after the other out.

1. Nothing fails.
2. What fails is drained instead: new routes from the instant of the failure on, nothing is lost. What this
   costs more than 1 is *rehash imbalance*: less capacity, and flows that meet on what is left.
3. It fails, and everybody knows at once. What this costs more than 2 is *retransmission*: frames on the way
   are lost and sent again, mostly after a time-out.
4. It fails, and is noticed when it is. What this costs more than 3 is the *black hole*: what is sent into it
   meanwhile. Where all senders wait for a time-out anyway, a black hole that is shorter costs nothing.

The parts add up to the whole exactly, as differences of runs do; each can be negative, for a new path can be
better than the old one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fabric.errors import FabricError, Said, SpecError
from fabric.failures import find_occurrences
from fabric.result import Result
from fabric.simulate import EngineName, run
from fabric.spec import LinkDown, LinkDrain, LinkFlap, Scenario, SwitchDown
from fabric.spec.failures import Failure
from fabric.topology import build_network
from fabric.units import Duration

__all__ = ["LostTime", "end_ps", "lost_time"]


@dataclass(frozen=True, kw_only=True)
class LostTime:
    """When the last flow or operation was done, in each of the four runs, in ps.

    Attributes
    ----------
    healthy_ps, drained_ps, known_ps, total_ps : int
        Runs 1 to 4.
    """

    healthy_ps: int
    drained_ps: int
    known_ps: int
    total_ps: int

    @property
    def rehash_imbalance_ps(self) -> int:
        """Less capacity, and flows that meet on what is left."""
        return self.drained_ps - self.healthy_ps

    @property
    def retransmission_ps(self) -> int:
        """Frames on the way are lost and sent again."""
        return self.known_ps - self.drained_ps

    @property
    def black_hole_ps(self) -> int:
        """What is sent into it before routes change."""
        return self.total_ps - self.known_ps

    @property
    def lost_ps(self) -> int:
        """All of it."""
        return self.total_ps - self.healthy_ps

    def rows(self) -> list[tuple[str, int]]:
        """Names and times, from the run without failures to the one with."""
        return [
            ("without failures", self.healthy_ps),
            ("rehash imbalance", self.rehash_imbalance_ps),
            ("retransmission", self.retransmission_ps),
            ("black hole", self.black_hole_ps),
            ("with failures", self.total_ps),
        ]


def lost_time(scenario: Scenario, *, engine: EngineName = "native") -> LostTime:
    """Take the time that a scenario's failures cost apart.

    Parameters
    ----------
    scenario : Scenario
        With failures of links and switches.
    engine : {"native", "reference"}

    Returns
    -------
    LostTime

    Raises
    ------
    fabric.errors.SpecError
        The scenario has no failures.
    fabric.errors.FabricError
        One of the runs does not finish.

    Examples
    --------
    >>> from fabric.spec import LeafSpine, Permutation, Run
    >>> scenario = Scenario(
    ...     topology=LeafSpine(leaves=2, spines=2, hosts_per_leaf=2),
    ...     traffic=[Permutation(size="1MB")],
    ...     failures=[LinkDown(link="leaf0-spine1", at="10us", lasts="1ms")],
    ...     run=Run(until="50ms"),
    ... )
    >>> cost = lost_time(scenario)
    >>> cost.lost_ps == cost.rehash_imbalance_ps + cost.retransmission_ps + cost.black_hole_ps
    True
    """
    if not scenario.failures:
        raise SpecError("failures", Said("none"), "at least one, whose cost is asked for")
    at_once = scenario.recovery.replace(suspect=0, isolate=0, convergence=0)
    return LostTime(
        healthy_ps=end_ps(run(scenario.replace(failures=()), engine=engine, progress=False)),
        drained_ps=end_ps(
            run(
                scenario.replace(failures=tuple(_drained(scenario)), recovery=at_once),
                engine=engine,
                progress=False,
            )
        ),
        known_ps=end_ps(run(scenario.replace(recovery=at_once), engine=engine, progress=False)),
        total_ps=end_ps(run(scenario, engine=engine, progress=False)),
    )


def end_ps(result: Result) -> int:
    """When the last flow was complete or the last operation left.

    Raises
    ------
    fabric.errors.FabricError
        Something was not.
    """
    ends = [*result.flows["delivered_ps"].tolist(), *result.operations["left_ps"].tolist()]
    if not ends or min(ends) < 0:
        stopped = f"the run stopped at {Duration(result.counters['end_ps'])} ({result.status})"
        raise FabricError(f"{stopped} with work undone; what failures cost is known only of runs that finish")
    return int(max(ends))


def _drained(scenario: Scenario) -> Iterator[Failure]:
    """The failures with what goes down drained instead, and all others as they are."""
    kept = [each for each in scenario.failures if not isinstance(each, LinkDown | LinkFlap | SwitchDown)]
    yield from kept
    network = build_network(scenario.topology)
    gone = scenario.replace(failures=tuple(each for each in scenario.failures if each not in kept))
    for each in find_occurrences(gone, network):
        for cable in each.cables:
            yield LinkDrain(
                link=network.port_arrow(int(network.link_ports[cable, 0])),
                at=Duration(each.began_ps),
                lasts=Duration(each.ended_ps - each.began_ps) if each.ended_ps < 2**62 else None,
            )
