"""Path choice by chance, for Hypothesis: see `strategies.py`.

Half of the cases have plain ECMP. Pins lead some frames to any neighbour of a switch, so that they take
detours or circle; then a lifetime is likely. Choices are listed simplest first, towards which
Hypothesis shrinks.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from strategies_topology import pick

from fabric.spec import GoBackN, Paths, Pin, Routing, SelectiveRepeat, Topology
from fabric.topology import Network, build_network

__all__ = ["path_spreads", "reliabilities", "routings"]

CHOICES = ("ecmp", "ecmp", "ecmp", "spray_random", "spray_round_robin", "adaptive", "flowlet")
RTOS = ("60us", "20us", "200us", "5us", "4ms", None)


@st.composite
def routings(draw: st.DrawFn, topology: Topology) -> Routing:
    """Path choice, most often without pins."""
    pins = _pins(draw, build_network(topology)) if draw(st.integers(0, 5)) == 5 else ()
    choice = pick(draw, CHOICES)
    return Routing(
        choice=choice,
        hash=pick(draw, ("seeded", "seeded", "murmur3")) if choice == "ecmp" else "seeded",
        udp_port=pick(draw, (4791, 100, 0, 65_535)),
        next_hop_order=pick(draw, ("ports", "ports", "neighbours_descending")),
        weights=pick(draw, ("equal", "equal", "rate")),
        flowlet_gap=pick(draw, ("10us", "1us", "200ns", "1ps")),
        ttl=pick(draw, (3, 6, 20, None) if pins else (None, None, None, 4, 127, 2)),
        pins=pins,
    )


def _pins(draw: st.DrawFn, network: Network) -> tuple[Pin, ...]:
    """One to four next hops; of those for the same frames at one switch the first."""
    switches = range(network.n_hosts, network.n_nodes)
    pins: dict[tuple[Any, ...], Pin] = {}
    for _ in range(draw(st.integers(1, 4))):
        node = draw(st.sampled_from(switches))
        base, end = network.node_port_base[node : node + 2]
        neighbours = network.port_node[network.port_peer[base:end]].tolist()
        towards = [n for n in neighbours if n >= network.n_hosts] or neighbours
        following = draw(st.sampled_from(towards))
        to_host = following < network.n_hosts
        destination = following if to_host else draw(st.sampled_from((0, 1, network.n_hosts - 1)))
        source = draw(st.none() | st.sampled_from((0, 1, 2)).map(lambda n: n % network.n_hosts))
        pin = Pin(
            at=network.names[node],
            next=network.names[following],
            destination=network.names[destination],
            source=None if source in (None, destination) else network.names[source],
            cable=draw(st.integers(0, neighbours.count(following) - 1)),
        )
        pins.setdefault((node, pin.destination, pin.source), pin)
    return tuple(pins.values())


@st.composite
def reliabilities(draw: st.DrawFn) -> GoBackN | SelectiveRepeat:
    """With time-outs of microseconds."""
    if pick(draw, (False, False, True)):
        return SelectiveRepeat(rto=pick(draw, RTOS), reorder=pick(draw, (3, 1, 2, 8, 64)))
    return GoBackN(
        rto=pick(draw, RTOS),
        nack=pick(draw, (True, True, True, False)),
        nack_on_rewind=draw(st.booleans()),
        nack_interval=pick(draw, (None, None, "3us", "1ns")),
        ack_duplicates=draw(st.integers(0, 3)) > 0,
    )


def path_spreads() -> st.SearchStrategy[Paths]:
    """Most often one path hash a flow."""
    return st.builds(
        Paths,
        spread=st.sampled_from(("none", "none", "none", "round_robin", "random")),
        count=st.sampled_from((2, 1, 7, 64)),
    )
