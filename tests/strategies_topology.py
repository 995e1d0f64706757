"""Small networks of every kind by chance, for Hypothesis: see `strategies.py`.

A few switches in one to three tiers, rails, or a ring; hosts with several ports, parallel links. Links
are either all alike, so that many events share an instant, or drawn one kind at a time from rates
whose frame times are no whole picoseconds and delays from a nanosecond to longer than any timer.
Choices are listed simplest first, towards which Hypothesis shrinks.

Files that a scenario names (a graph, a distribution) go to a directory that lives as long as the
process.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from fabric.spec import (
    Clos3,
    FatTree,
    GraphFile,
    LeafSpine,
    Link,
    LinkOverride,
    RailOptimized,
    SingleSwitch,
    Topology,
    host_count,
)

__all__ = ["hosts_of", "links_of_path", "pick", "topologies", "written_file"]

MANY_PORTS = 67
"""Of a switch: more than a machine word has bits."""
GRAPH_HOSTS_PER_SWITCH = 2
RATES = ("400Gbps", "100Gbps", "900Gbps", "1.6Tbps", "7Gbps", "33333333333bps")
DELAYS = ("500ns", "1us", "1ns", "333337ps", "2us", "20us")
LOSSES = (*[(0.0, 0.0)] * 9, (0.003, 1e-7), (0.02, 0.0), (0.0, 1e-6))
"""Probability of losing a frame, and of flipping a bit."""
GAPS = (20, 0, 13)

_FILES = tempfile.TemporaryDirectory(prefix="scenarios-")


def topologies(*, alike: bool) -> st.SearchStrategy[Topology]:
    """Every kind of topology; if `alike`, all links of one have the same rate and delay."""
    kinds = (_single_switch, _leaf_spine, _clos3, _fat_tree, _rails, _graph)
    return st.sampled_from((*kinds, _single_switch, _leaf_spine)).flatmap(lambda kind: kind(alike))


def hosts_of(topology: Topology) -> int:
    """Its number of hosts."""
    if isinstance(topology, GraphFile):
        nodes = json.loads(Path(topology.file).read_text())["nodes"]
        return sum(node["id"].startswith("host") for node in nodes)
    hosts = host_count(topology)
    assert hosts is not None
    return hosts


def links_of_path(topology: Topology) -> int:
    """Links on a long path, about."""
    return {SingleSwitch: 2, Clos3: 6, FatTree: 6}.get(type(topology), 4)


def pick(draw: st.DrawFn, choices: Sequence[Any]) -> Any:
    """One of some values, the first being the simplest."""
    return draw(st.sampled_from(choices))


def written_file(text: str, *, suffix: str) -> str:
    """Name of a file with this content."""
    path = Path(_FILES.name) / (sha256(text.encode()).hexdigest()[:16] + suffix)
    path.write_text(text)
    return str(path)


def _some_links(draw: st.DrawFn, alike: bool, *names: str) -> dict[str, Link]:
    """A link for each name: the same one if alike. All lose the same, most often nothing."""
    loss, bit_error_rate = pick(draw, LOSSES)

    def link() -> Link:
        return Link(
            rate=pick(draw, RATES),
            delay=pick(draw, DELAYS),
            loss=loss,
            bit_error_rate=bit_error_rate,
            gap=pick(draw, GAPS),
        )

    first = link()
    return {name: first if alike else link() for name in names}


def _overrides(draw: st.DrawFn, alike: bool, match: str) -> tuple[LinkOverride, ...]:
    if alike or draw(st.booleans()):
        return ()
    return (LinkOverride(match=match, rate=pick(draw, RATES), delay=pick(draw, DELAYS)),)


@st.composite
def _single_switch(draw: st.DrawFn, alike: bool) -> SingleSwitch:
    return SingleSwitch(
        hosts=draw(st.integers(2, 9)) if draw(st.integers(0, 19)) else MANY_PORTS,
        ports_per_host=pick(draw, (1, 1, 2)),
        overrides=_overrides(draw, alike, "host0-switch0"),
        **_some_links(draw, alike, "link"),
    )


@st.composite
def _leaf_spine(draw: st.DrawFn, alike: bool) -> LeafSpine:
    leaves = draw(st.integers(2, 3))
    links = _some_links(draw, alike, "host_link", "fabric_link")
    oversubscription = None if alike else pick(draw, (None, 2.0, 3.7))
    if oversubscription is not None:
        links["fabric_link"] = links["fabric_link"].replace(rate=Link().rate)
    return LeafSpine(
        leaves=leaves,
        spines=draw(st.integers(1, 2)),
        hosts_per_leaf=draw(st.integers(2, 3)),
        links_per_pair=pick(draw, (1, 1, 2)),
        ports_per_host=pick(draw, (1, 1, leaves)),
        oversubscription=oversubscription,
        overrides=_overrides(draw, alike, "leaf*-spine0"),
        **links,
    )


@st.composite
def _clos3(draw: st.DrawFn, alike: bool) -> Clos3:
    spines = draw(st.integers(1, 2))
    leaves = draw(st.integers(1, 2))
    return Clos3(
        pods=2,
        leaves_per_pod=leaves,
        spines_per_pod=spines,
        cores=spines * draw(st.integers(1, 2)),
        hosts_per_leaf=draw(st.integers(1, 2)),
        links_per_pair=pick(draw, (1, 1, 2)),
        ports_per_host=pick(draw, (1, 1, leaves)),
        overrides=_overrides(draw, alike, "spine*-core0"),
        **_some_links(draw, alike, "host_link", "fabric_link", "core_link"),
    )


@st.composite
def _fat_tree(draw: st.DrawFn, alike: bool) -> FatTree:
    k = pick(draw, (2, 4))
    return FatTree(
        k=k,
        ports_per_host=pick(draw, (1, 1, k // 2)),
        overrides=_overrides(draw, alike, "host0-leaf0"),
        **_some_links(draw, alike, "link"),
    )


@st.composite
def _rails(draw: st.DrawFn, alike: bool) -> RailOptimized:
    return RailOptimized(
        servers=draw(st.integers(2, 3)),
        accelerators_per_server=draw(st.integers(1, 3)),
        spines=draw(st.integers(1, 2)),
        scale_up_switches=pick(draw, (1, 1, 2)),
        servers_per_rail_leaf=pick(draw, (None, 1)),
        **_some_links(draw, alike, "host_link", "fabric_link", "scale_up_link"),
    )


@st.composite
def _graph(draw: st.DrawFn, alike: bool) -> GraphFile:
    """A ring of switches, where buffers can wait for each other in a circle."""
    switches = draw(st.integers(3, 5))
    ends = [
        (f"host{h}", f"switch{h // GRAPH_HOSTS_PER_SWITCH}") for h in range(GRAPH_HOSTS_PER_SWITCH * switches)
    ]
    ends += [(f"switch{s}", f"switch{(s + 1) % switches}") for s in range(switches)]
    odd = {} if alike else {"rate": pick(draw, RATES), "delay": pick(draw, DELAYS)}
    edges: list[dict[str, Any]] = [{"source": one, "target": other} for one, other in ends]
    edges[draw(st.integers(0, len(edges) - 1))].update(odd)
    nodes = [{"id": name} for name in dict.fromkeys(name for pair in ends for name in pair)]
    text = json.dumps({"nodes": nodes, "edges": edges})
    return GraphFile(file=written_file(text, suffix=".json"), **_some_links(draw, alike, "link"))
