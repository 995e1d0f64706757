"""What the loss of each kind of part takes away: hosts cut off, hosts slowed, bisection lost, as bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fabric.result.text import count_text, counted

from .style import COLOURS, GREY, styled, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fabric.analysis.domains import Domain

__all__ = ["failure_domains"]


def failure_domains(domains: Sequence[Domain], *, ax: Axes | None = None) -> Axes:
    """Draw failure domains.

    Parameters
    ----------
    domains : sequence of Domain
        What :func:`fabric.analysis.domains.failure_domains` found.
    ax : Axes
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    Axes
    """
    with styled(ax, size=(8.0, 1.2 + 0.55 * len(domains))) as axes:
        places = [len(domains) - k for k in range(len(domains))]
        lost = [100 * (each.bisection_lost or 0.0) for each in domains]
        axes.barh(places, lost, height=0.55, color=COLOURS[0])
        for place, share, each in zip(places, lost, domains, strict=True):
            said = [f"{share:.3g} %" if each.bisection_lost is not None else "not layered"]
            said += [f"{counted(each.cut_off, 'host')} cut off"] if each.cut_off else []
            said += [f"{count_text(each.slowed)} slowed"] if each.slowed else []
            axes.text(share + 1, place, ", ".join(said), va="center", fontsize=8.5, color=GREY)
        axes.set_yticks(places, [f"{each.kind} (of {count_text(each.count)})" for each in domains])
        axes.set(
            xlabel="bisection bandwidth lost (%)",
            xlim=(0, max([*lost, 10]) * 1.6),
            ylim=(0.4, len(domains) + 0.6),
        )
        axes.grid(False, axis="y")
        title(axes, "What the loss of one part takes away", note="the worst part of each kind")
    return axes
