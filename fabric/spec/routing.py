"""Routing: how switches choose among next hops of equal cost, and next hops that are given.

Next hops are those of shortest paths (`fabric.routing`). Which of them a frame takes is one choice for
all switches: by a hash of its flow (ECMP), or frame by frame (spraying, the shortest queue), or by
flowlet. Frames of one flow then overtake each other, which go-back-N answers by rewinding; selective
repeat (`fabric.spec.transport`) does not mind. What a sender does to choose its path is
`Transport.paths`; how routes change when something fails, `fabric.spec.recovery`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from fabric.spec.base import Problem, Spec, outside, quantity
from fabric.units import Duration

__all__ = ["Pin", "Routing"]

LARGEST_TTL = 127
"""As the field of IPv4 (RFC 791)."""
LARGEST_UDP_PORT = 2**16 - 1


class Pin(Spec, frozen=True, kw_only=True):
    """At one switch, the next hop of some frames, whatever the shortest paths are.

    Pins make detours and loops possible; give frames a `ttl` where they may circle. A pin of a flow
    goes before a pin of a destination.

    Parameters
    ----------
    at : str
        The switch ("leaf0").
    next : str
        Its neighbour that the frames go to: a switch, or the destination.
    destination : str, optional
        Frames to this host: of all kinds, unless `source` narrows it.
    source : str, optional
        With destination: only data frames of flows from this host.
    flow : str, optional
        Instead of destination: data frames of the flow with this name.
    cable : int
        Which of several parallel cables to the neighbour, from 0. Default 0.
    """

    at: str
    next: str
    destination: str | None = None
    source: str | None = None
    flow: str | None = None
    cable: int = 0

    def problems(self) -> Iterator[Problem]:
        if self.destination is None and self.flow is None:
            yield "destination", self.destination, "the name of a host, or flow: the name of a flow"
        if self.destination is not None and self.flow is not None:
            yield "flow", self.flow, "either destination or flow, not both"
        if self.source is not None and self.destination is None:
            yield "source", self.source, "no source without destination"
        if self.cable < 0:
            yield "cable", self.cable, "an integer, 0 or more"


class Routing(Spec, frozen=True, kw_only=True):
    """Path choice of every switch.

    Parameters
    ----------
    choice : {"ecmp", "spray_random", "spray_round_robin", "adaptive", "flowlet"}
        Default "ecmp": by a hash of the flow, salted per switch. Frame by frame: at random; in turn;
        to the port whose queue of the frame's class is shortest. "flowlet": the shortest queue, but a
        flow moves only after a gap.
    weights : {"equal", "rate"}
        Whether each next hop stands once in its group, or in proportion to the rate of its link
        (weighted ECMP: Zhou et al., "WCMP", EuroSys 2014). Default "equal".
    hash : {"seeded", "murmur3"}
        What "ecmp" hashes. Default "seeded": a number of each flow that the seed of the run gives, with
        one of each switch. "murmur3": MurmurHash3 (x86, 32 bits) of addresses and ports, seeded by the
        number of the switch, modulo the number of next hops, as in the HPCC simulator
        (github.com/alibaba-edu/High-Precision-Congestion-Control); see `fabric.lowering.paths`.
    udp_port : int
        Destination port of all data frames, for "murmur3". Default 4791, that of RoCEv2 (the simulator's
        generator of flows: 100).
    next_hop_order : {"ports", "neighbours_descending"}
        In which order a hash finds next hops: by port (default), or by number of the neighbour, highest
        first.
    flowlet_gap : Duration
        Idle time after which a flowlet may move, above 0. Default 10us, as the UET simulator
        (github.com/ultraethernet/uet-htsim).
    ttl : int, optional
        Lifetime of a frame, 1 to 127: every switch takes 1 off, and the one that would leave 0 drops
        it, as IPv4 routers do. None (default): no limit.
    pins : tuple of Pin
        Next hops that are given.

    Examples
    --------
    >>> Routing(choice="flowlet", flowlet_gap="20us").flowlet_gap
    Duration("20us")
    """

    choice: Literal["ecmp", "spray_random", "spray_round_robin", "adaptive", "flowlet"] = "ecmp"
    weights: Literal["equal", "rate"] = "equal"
    hash: Literal["seeded", "murmur3"] = "seeded"
    udp_port: int = 4791
    next_hop_order: Literal["ports", "neighbours_descending"] = "ports"
    flowlet_gap: Duration = quantity("10us")
    ttl: int | None = None
    pins: tuple[Pin, ...] = ()

    def problems(self) -> Iterator[Problem]:
        if self.flowlet_gap == 0:
            yield "flowlet_gap", self.flowlet_gap, "a duration above 0"
        if self.hash != "seeded" and self.choice != "ecmp":
            yield "hash", self.hash, '"seeded", or choice = "ecmp"'
        yield from outside("udp_port", self.udp_port, low=0, high=LARGEST_UDP_PORT)
        if self.ttl is not None and not 1 <= self.ttl <= LARGEST_TTL:
            yield "ttl", self.ttl, f"an integer from 1 to {LARGEST_TTL}, or no ttl"
