"""A network drawn by tiers: hosts at the bottom, leaves, spines and cores above them.

Up to a few dozen hosts are drawn one by one. Of more, hosts that hang on the same switches are one box
with their number, and of many switches the first and the last of a tier are drawn with dots between
them: the counts at the left and the cables at the right stand for the whole. Scale-up switches, which
join the accelerators of a server, are drawn below the hosts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fabric.result.table import Array
from fabric.result.text import count_text, counted, rate_text, time_text

from .style import COLOURS, GREY, INK, spaced, styled, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fabric.topology import Network, NetworkSummary

__all__ = ["topology"]

Line = tuple[tuple[float, float], tuple[float, float]]

SINGLE_HOSTS = 40
"""Hosts up to which each is drawn."""

SHOWN_FIRST, SHOWN_LAST = 8, 3
"""Nodes of a long tier that are drawn before and after the dots."""

SCALE_UP_HEIGHT = -1.0

TIER_COLOURS = {
    "host": "#4D4D4D",
    "leaf": COLOURS[0],
    "spine": COLOURS[2],
    "core": COLOURS[1],
    "scaleup": COLOURS[3],
}
PLURALS = {
    "host": "hosts",
    "leaf": "leaves",
    "spine": "spines",
    "core": "cores",
    "scaleup": "scale-up switches",
}


@dataclass(frozen=True)
class Tier:
    """The nodes of one tier as they are drawn.

    Attributes
    ----------
    name : str
        "leaf".
    height : float
        Where it stands.
    boxes : list of list of int
        The nodes of every box that is drawn, from left to right.
    dots_after : int or None
        Box after which others were left out.
    count : int
        All nodes of the tier.
    """

    name: str
    height: float
    boxes: list[list[int]]
    dots_after: int | None
    count: int

    def places(self) -> list[float]:
        """Return where the boxes stand, in [0, 1]."""
        slots = len(self.boxes) + (self.dots_after is not None)
        passed = [k + (self.dots_after is not None and k > self.dots_after) for k in range(len(self.boxes))]
        return [(slot + 0.5) / slots for slot in passed]


def topology(network: Network, *, ax: Axes | None = None) -> Axes:
    """Draw a network.

    Parameters
    ----------
    network : Network
        What :func:`fabric.topology.build_network` made.
    ax : Axes
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    Axes
    """
    from fabric.topology import describe

    tiers = _tiers(network)
    with styled(ax, size=(9.6, 0.9 + 1.25 * len(tiers))) as axes:
        axes.grid(False)
        axes.set_axis_off()
        place = _draw_cables(axes, network, tiers)
        for tier in tiers:
            _draw_tier(axes, network, tier, place)
        _describe_cables(axes, network, tiers)
        low, high = tiers[0].height, tiers[-1].height
        axes.set(xlim=(-0.16, 1.24), ylim=(low - 0.3, high + 0.2))
        facts = describe(network)
        sizes = (
            counted(facts.n_hosts, "host"),
            counted(facts.n_switches, "switch", "switches"),
            counted(facts.n_links, "cable"),
        )
        title(axes, ", ".join(sizes), note=_facts(facts))
    return axes


def _facts(facts: NetworkSummary) -> str:
    """Return oversubscription, diameter and bisection bandwidth as a line."""
    ratios = sorted({round(ratio, 2) for ratio in facts.oversubscription.values()})
    parts = [f"at most {counted(facts.diameter_links, 'link')} between two hosts"]
    if len(ratios) == 1:
        parts.insert(0, f"oversubscription {ratios[0]:g}:1")
    elif ratios:
        parts.insert(0, f"oversubscription {ratios[0]:g}:1 to {ratios[-1]:g}:1")
    if facts.bisection_bps is not None:
        parts.append(f"bisection bandwidth {spaced(rate_text(facts.bisection_bps))}")
    return ", ".join(parts)


def _tiers(network: Network) -> list[Tier]:
    """Return the tiers from the bottom up."""
    from fabric.topology.describe import tier_name

    tiers = []
    for number in np.unique(network.tier).tolist():
        nodes = np.flatnonzero(network.tier == number)
        boxes = _host_boxes(network) if number == 0 else [[node] for node in nodes.tolist()]
        height = SCALE_UP_HEIGHT if tier_name(number) == "scaleup" else float(number)
        many = SHOWN_FIRST + SHOWN_LAST + 1
        single = number == 0 and network.n_hosts <= SINGLE_HOSTS
        if len(boxes) > many and not single:
            chosen, dots = boxes[:SHOWN_FIRST] + boxes[-SHOWN_LAST:], SHOWN_FIRST - 1
            tiers.append(Tier(tier_name(number), height, chosen, dots, len(nodes)))
        else:
            tiers.append(Tier(tier_name(number), height, boxes, None, len(nodes)))
    return sorted(tiers, key=lambda tier: tier.height)


def _host_boxes(network: Network) -> list[list[int]]:
    """Return hosts one by one if they are few, otherwise those on the same switches together."""
    if network.n_hosts <= SINGLE_HOSTS:
        return [[host] for host in range(network.n_hosts)]
    groups: dict[tuple[int, ...], list[int]] = {}
    first = network.node_port_base[: network.n_hosts + 1].tolist()
    peer = network.port_node[network.port_peer]
    tree = network.tier[peer] < SCALE_UP_TIER
    for host in range(network.n_hosts):
        ports = slice(first[host], first[host + 1])
        groups.setdefault(tuple(sorted(peer[ports][tree[ports]].tolist())), []).append(host)
    return list(groups.values())


SCALE_UP_TIER = 9


def _draw_cables(ax: Axes, network: Network, tiers: list[Tier]) -> dict[int, tuple[float, float]]:
    """Draw the cables between boxes that are shown; return where every shown node stands."""
    from matplotlib.collections import LineCollection

    place = {
        node: (x, tier.height)
        for tier in tiers
        for x, box in zip(tier.places(), tier.boxes, strict=True)
        for node in box
    }
    pairs = np.stack([network.link_a, network.link_b], axis=1).tolist()
    lines = sorted({(place[a], place[b]) for a, b in pairs if a in place and b in place})
    levels: dict[tuple[float, float], list[Line]] = {}
    for line in lines:
        levels.setdefault((line[0][1], line[1][1]), []).append(line)
    for level in levels.values():
        strength = float(np.clip(30 / len(level), 0.25, 0.7))
        ax.add_collection(LineCollection(level, colors=GREY, linewidths=0.8, alpha=strength, zorder=1))
    return place


def _draw_tier(ax: Axes, network: Network, tier: Tier, place: dict[int, tuple[float, float]]) -> None:
    colour = TIER_COLOURS.get(tier.name, INK)
    places = tier.places()
    room = 1 / (len(places) + (tier.dots_after is not None))
    for x, box in zip(places, tier.boxes, strict=True):
        single_host = tier.name == "host" and len(box) == 1
        if single_host:
            ax.plot(x, tier.height, marker="o", ms=6, color=colour, zorder=3)
            if len(places) <= SINGLE_HOSTS:
                name = network.names[box[0]].removeprefix("host")
                ax.text(x, tier.height - 0.1, name, ha="center", va="top", fontsize=7, color=INK)
            continue
        text = network.names[box[0]] if len(box) == 1 else f"{count_text(len(box))}\nhosts"
        _draw_box(ax, x, tier.height, text, colour, room)
    if tier.dots_after is not None:
        x = (places[tier.dots_after] + places[tier.dots_after + 1]) / 2
        ax.text(x, tier.height, "· · ·", ha="center", va="center", fontsize=11, color=colour, zorder=4)
    label = f"{count_text(tier.count)} {tier.name if tier.count == 1 else PLURALS.get(tier.name, tier.name)}"
    ax.text(-0.02, tier.height, label, ha="right", va="center", color=colour, fontweight="bold")


TIER_WIDTH_POINTS = 490
"""Width of a tier in a picture of the default size."""


def _draw_box(ax: Axes, x: float, y: float, text: str, colour: str, room: float) -> None:
    """Draw a box with its text, in letters that leave space to the next box."""
    letters = max(map(len, text.split("\n")))
    ax.text(
        x,
        y,
        text,
        ha="center",
        va="center",
        fontsize=min(8.5, room * TIER_WIDTH_POINTS / (0.66 * letters + 1.6)),
        color="white",
        zorder=3,
        bbox={"boxstyle": "round,pad=0.35", "facecolor": colour, "edgecolor": "white", "linewidth": 1},
    )


def _describe_cables(ax: Axes, network: Network, tiers: list[Tier]) -> None:
    """Write at the right how many cables of which rate and delay join neighbouring tiers."""
    height = {tier.name: tier.height for tier in tiers}
    from fabric.topology.describe import tier_name

    ends = np.sort(np.stack([network.tier[network.link_a], network.tier[network.link_b]]), axis=0)
    pairs = ends[0].astype(int) * 256 + ends[1]
    for pair in np.unique(pairs).tolist():
        links = pairs == pair
        low, high = tier_name(pair // 256), tier_name(pair % 256)
        rates = np.unique(network.link_rate_bps[links])
        delays = np.unique(network.link_delay_ps[links])
        cables = f"{count_text(int(links.sum()))} × {_range(rates, rate_text)}"
        text = f"{cables}\n{_range(delays, time_text)} each way"
        ax.text(
            1.02,
            (height[low] + height[high]) / 2,
            text,
            ha="left",
            va="center",
            fontsize=8.5,
            color=GREY,
            linespacing=1.4,
        )


def _range(values: Array, text: Callable[[float], str]) -> str:
    low, high = text(int(values[0])), text(int(values[-1]))
    return spaced(low if low == high else f"{low} to {high}")
