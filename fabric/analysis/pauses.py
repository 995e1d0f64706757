"""How PFC pauses spread: which link was paused because which other was.

A switch pauses a link into it when what came over that link fills its buffer. If a link out of it was
paused at that moment, that is why; of several the one that was paused last. If none was, the switch itself
was short of bandwidth: a root. The first pauses of all links make a forest; its roots are where pauses
began.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Pause", "PausedLink", "spread_of_pauses"]


@dataclass(frozen=True)
class Pause:
    """An interval in which a class of a link was paused.

    Attributes
    ----------
    sender, receiver : str
        The ends of the link: the receiver paused the sender.
    traffic_class : str
    begin_ps : int
    end_ps : int or None
        None: not over yet.
    """

    sender: str
    receiver: str
    traffic_class: str
    begin_ps: int
    end_ps: int | None


@dataclass(frozen=True)
class PausedLink:
    """A link in the forest of first pauses.

    Attributes
    ----------
    pauses : tuple of Pause
        All of its pauses, in order of time.
    cause : int or None
        Place in the list of the link that was paused before it, None for a root.
    depth : int
        Links from its root.
    """

    pauses: tuple[Pause, ...]
    cause: int | None
    depth: int


def spread_of_pauses(pauses: Sequence[Pause]) -> list[PausedLink]:
    """Return the links that were paused, each after the one that caused it, roots in order of time.

    Parameters
    ----------
    pauses : sequence of Pause

    Examples
    --------
    >>> spread = spread_of_pauses(
    ...     [Pause("leaf0", "spine0", "data", 20, 90), Pause("spine0", "leaf1", "data", 10, 80)]
    ... )
    >>> [(link.pauses[0].sender, link.depth) for link in spread]
    [('spine0', 0), ('leaf0', 1)]
    """
    by_link: dict[tuple[str, str, str], list[Pause]] = {}
    for pause in sorted(pauses, key=lambda one: (one.begin_ps, one.sender, one.receiver)):
        by_link.setdefault((pause.sender, pause.receiver, pause.traffic_class), []).append(pause)
    links = list(by_link.values())
    causes = [_cause(link[0], links) for link in links]
    placed: list[PausedLink] = []
    place: dict[int, int] = {}

    def add(number: int, depth: int) -> None:
        cause = causes[number]
        place[number] = len(placed)
        placed.append(PausedLink(tuple(links[number]), None if cause is None else place[cause], depth))
        for other, because in enumerate(causes):
            if because == number:
                add(other, depth + 1)

    for number, cause in enumerate(causes):
        if cause is None:
            add(number, 0)
    return placed


def _cause(first: Pause, links: Sequence[Sequence[Pause]]) -> int | None:
    """The link out of the receiver that was paused last, of those that were when the receiver paused."""
    best: tuple[int, int] | None = None
    for number, others in enumerate(links):
        one = others[0]
        if one.sender != first.receiver or one.traffic_class != first.traffic_class:
            continue
        for other in others:
            holds = other.begin_ps < first.begin_ps and (
                other.end_ps is None or other.end_ps > first.begin_ps
            )
            # what was first paused after this link cannot be why this one was first paused
            if holds and others[0].begin_ps < first.begin_ps:
                best = max(best or (-1, -1), (other.begin_ps, number))
    return None if best is None else best[1]
