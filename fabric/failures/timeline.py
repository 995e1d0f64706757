"""What becomes of each failure, and when: suspected, isolated, known, dead; repaired, used again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fabric.failures.intervals import DOWN_KINDS
from fabric.failures.occurrences import NEVER_PS, Occurrence
from fabric.spec.recovery import Recovery
from fabric.topology.network import TIER_SCALE_UP, Network

__all__ = ["Milestones", "dead_hosts", "milestones"]

SEEN_KINDS = (*DOWN_KINDS, "host_hang", "link_drain")
"""Kinds that detection notices; links that are slow or corrupt look healthy, unless they are isolated."""


@dataclass(frozen=True, kw_only=True)
class Milestones:
    """The life of one failure; -1: it does not come to that.

    Attributes
    ----------
    kind, target : str
    began_ps, ended_ps : int
        `ended_ps` is -1 if it is never repaired.
    suspected_ps, isolated_ps, converged_ps, dead_ps : int
        When it is noticed, avoided by its neighbours, known everywhere, given up.
    restored_ps : int
        When what failed is used again by its neighbours.
    """

    kind: str
    target: str
    began_ps: int
    suspected_ps: int
    isolated_ps: int
    converged_ps: int
    dead_ps: int
    ended_ps: int
    restored_ps: int


def milestones(occurrences: Sequence[Occurrence], recovery: Recovery) -> list[Milestones]:
    """The life of each failure, each as if it were the only one.

    A link that flaps stays isolated over failures that follow soon (`fabric.failures.intervals`).
    """
    reroutes = recovery.reroute not in ("none", "end_host")
    found: list[Milestones] = []
    for each in occurrences:
        lasts_ps = each.ended_ps - each.began_ps
        is_seen = each.kind in SEEN_KINDS

        def reached(level_ps: int | None, each: Occurrence = each, lasts_ps: int = lasts_ps) -> int:
            return -1 if level_ps is None or level_ps >= lasts_ps else each.began_ps + level_ps

        isolated_ps = reached(each.isolated_after_ps)
        ends = each.ended_ps < NEVER_PS
        found.append(
            Milestones(
                kind=each.kind,
                target=each.target,
                began_ps=each.began_ps,
                suspected_ps=reached(int(recovery.suspect) if is_seen else None),
                isolated_ps=isolated_ps,
                converged_ps=isolated_ps + int(recovery.convergence) if isolated_ps >= 0 and reroutes else -1,
                dead_ps=reached(int(recovery.dead) if is_seen else None),
                ended_ps=each.ended_ps if ends else -1,
                restored_ps=each.ended_ps + int(recovery.restore) if ends and isolated_ps >= 0 else -1,
            )
        )
    return found


def dead_hosts(
    occurrences: Sequence[Occurrence], recovery: Recovery, network: Network, *, at_ps: int
) -> list[str]:
    """Hosts that hang, or whose every NIC link is down, and that are given up at an instant."""
    hanging: set[int] = set()
    lost: set[int] = set()
    for each in occurrences:
        if each.kind not in SEEN_KINDS or not each.began_ps + int(recovery.dead) <= at_ps < each.ended_ps:
            continue
        if each.kind == "host_hang":
            hanging.add(network.node_numbers[each.target])
        else:
            lost.update(each.cables)
    tier = network.tier[network.link_b]
    hosts: list[str] = []
    for host in range(network.n_hosts):
        mine = {
            cable
            for cable in (network.link_a == host).nonzero()[0].tolist()
            if int(tier[cable]) != TIER_SCALE_UP
        }
        if host in hanging or (mine and mine <= lost):
            hosts.append(network.names[host])
    return hosts
