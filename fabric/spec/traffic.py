"""Traffic: which messages are sent between which hosts, and when.

Every entry becomes flows; one flow is one message. Patterns choose hosts by keyed hashing of the
seed, so another entry does not change this one's flows. Hosts are named ("host3") or numbered (3).
Collectives and training jobs become programs, in which ranks wait for each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import msgspec

from fabric.spec.base import Problem, Spec, outside, quantity
from fabric.spec.decode import did_you_mean
from fabric.spec.entry import LARGEST_START_PS, Entry, bounded_time
from fabric.spec.training.entry import Training
from fabric.units import Duration, Size

__all__ = [
    "DISTRIBUTIONS",
    "LARGEST_START_PS",
    "AllToAll",
    "Collective",
    "Flow",
    "Flows",
    "Incast",
    "Permutation",
    "Poisson",
    "Program",
    "Traffic",
    "Uniform",
]

DISTRIBUTIONS = ("websearch", "fb_hadoop", "ali_storage")
"""Flow-size distributions that ship with the package."""
LARGEST_COUNT = 2**31 - 1
LARGEST_LOAD = 2.0
LARGEST_SKEW = 4.0
"""Zipf's exponent at which the most popular of many has 92 % of all."""
NO_OPTIONS = {
    "channels": "no option: channels is a field of its own",
    "matrix": "no option: matrix is a field of its own",
    "fan_in": "no option: where the reducers are says it",
}
"""What algorithms take that scenarios say otherwise."""


class Flow(Spec, frozen=True, kw_only=True):
    """One message.

    Parameters
    ----------
    source, destination : str or int
        Two different hosts, by name or number.
    size : Size
        Message bytes, above 0.
    start : Duration
        Earliest start, after that of its entry. Default 0.
    name : str
        By which `after` refers to it; unique in the scenario. Default: none.
    after : tuple of str
        Names of flows that must have been delivered first.
    """

    source: str | int
    destination: str | int
    size: Size
    start: Duration = quantity("0ns")
    name: str = ""
    after: tuple[str, ...] = ()

    def problems(self) -> Iterator[Problem]:
        for end in ("source", "destination"):
            host = getattr(self, end)
            if host == "" or (isinstance(host, int) and host < 0):
                yield end, host, "the name or number of a host"
        if self.source == self.destination:
            yield "destination", self.destination, "a host other than the source"
        yield from _positive_size(self.size, "size")
        yield from bounded_time(self.start, "start")
        if self.name and self.name in self.after:
            yield "after", self.name, "flows other than this one"


class Flows(Entry, frozen=True, kw_only=True, tag_field="kind", tag="flows"):
    """Flows one by one, from the scenario, from a file, or both.

    Parameters
    ----------
    flows : tuple of Flow
        Default: none, if there is a file.
    file : str, optional
        CSV with the header `source,destination,size,start` and, if need be, `name` and `after`
        (names separated by semicolons); quantities are written as in scenarios. Also `flow.txt` of
        the HPCC simulator and `.cm` of htsim (`docs/formats.md`). In a scenario file the name is
        relative to that file.
    start_unit : {"ps", "ns", "us"}
        What `start` counts in a `.cm`, which does not say. Default "ps".
    wait_file : str, optional
        Which flows of a `flow.txt` wait for which, counted from 0: a line "flow predecessor" for each
        wait. Starts of flows that wait do not count. None (default): none waits.
    first_start : Duration, optional
        When the first flow of the file that waits for no other starts; all others of the file move with
        it. None (default): as the file says.
    name, transport, traffic_class, start, jitter : optional
        As for every entry: label, transport, class of the data frames, begin, spread of starts.
    """

    FILES: ClassVar[tuple[str, ...]] = ("file", "wait_file")

    flows: tuple[Flow, ...] = ()
    file: str | None = None
    start_unit: Literal["ps", "ns", "us"] = "ps"
    first_start: Duration | None = None
    wait_file: str | None = None

    def problems(self) -> Iterator[Problem]:
        if self.wait_file is not None and not self.file:
            yield "wait_file", self.wait_file, "no wait_file without a file of flows"
        if not self.flows and not self.file:
            yield "flows", self.flows, "at least one flow, or a file of them"
        if self.start_unit != "ps" and not (self.file or "").lower().endswith(".cm"):
            yield "start_unit", self.start_unit, 'no start_unit without a file ending in ".cm"'
        if self.first_start is not None and not self.file:
            yield "first_start", self.first_start, "no first_start without a file"
        if self.first_start is not None:
            yield from bounded_time(self.first_start, "first_start")
        yield from super().problems()


class Incast(Entry, frozen=True, kw_only=True, tag_field="kind", tag="incast"):
    """Many senders to each of a few receivers, at once.

    Parameters
    ----------
    receivers : tuple of str, or int
        Hosts by name, or how many to choose. Default 1.
    senders : int
        Senders to each receiver (the fan-in); below the number of hosts.
    size : Size
        Bytes from each sender.
    victims : int
        Further flows between hosts that neither send nor receive in the incast, over links that it
        uses. Default 0.
    victim_size : Size, optional
        Bytes of each victim. None (default): `size`.
    name, transport, traffic_class, start, jitter : optional
        As for every entry: label, transport, class of the data frames, begin, spread of starts.
    """

    senders: int
    size: Size
    receivers: tuple[str, ...] | int = 1
    victims: int = 0
    victim_size: Size | None = None

    def problems(self) -> Iterator[Problem]:
        if isinstance(self.receivers, int):
            yield from _count(self.receivers, "receivers")
        elif not self.receivers:
            yield "receivers", self.receivers, "at least one host, or how many to choose"
        elif len(set(self.receivers)) < len(self.receivers):
            twice = next(name for name in self.receivers if self.receivers.count(name) > 1)
            yield "receivers", twice, "every host once"
        yield from _count(self.senders, "senders")
        yield from _positive_size(self.size, "size")
        yield from outside("victims", self.victims, low=0, high=LARGEST_COUNT)
        if self.victim_size == 0:
            yield "victim_size", self.victim_size, "a size above 0"
        if self.victim_size is not None and self.victims == 0:
            yield "victim_size", self.victim_size, "no victim_size without victims"
        yield from super().problems()


class Permutation(Entry, frozen=True, kw_only=True, tag_field="kind", tag="permutation"):
    """Every host sends to one other, and receives from one other.

    Parameters
    ----------
    size : Size
        Bytes of each flow.
    cross_leaf : bool
        Only between hosts of different leaves. Default False.
    count : int
        Permutations, one beside the other: flows per host. Default 1.
    name, transport, traffic_class, start, jitter : optional
        As for every entry: label, transport, class of the data frames, begin, spread of starts.
    """

    size: Size
    cross_leaf: bool = False
    count: int = 1

    def problems(self) -> Iterator[Problem]:
        yield from _positive_size(self.size, "size")
        yield from _count(self.count, "count")
        yield from super().problems()


class Uniform(Entry, frozen=True, kw_only=True, tag_field="kind", tag="uniform"):
    """Every host sends to hosts drawn at random.

    Parameters
    ----------
    flows : int
        Flows per host.
    size : Size
        Bytes of each flow.
    name, transport, traffic_class, start, jitter : optional
        As for every entry: label, transport, class of the data frames, begin, spread of starts.
    """

    flows: int
    size: Size

    def problems(self) -> Iterator[Problem]:
        yield from _count(self.flows, "flows")
        yield from _positive_size(self.size, "size")
        yield from super().problems()


class AllToAll(Entry, frozen=True, kw_only=True, tag_field="kind", tag="all_to_all"):
    """Every host of a selection sends to every other, all at once.

    Parameters
    ----------
    size : Size
        Bytes of each pair.
    hosts : str
        Which hosts, as a pattern of names. Default "*": all.
    name, transport, traffic_class, start, jitter : optional
        As for every entry: label, transport, class of the data frames, begin, spread of starts.
    """

    size: Size
    hosts: str = "*"

    def problems(self) -> Iterator[Problem]:
        yield from _positive_size(self.size, "size")
        if not self.hosts:
            yield "hosts", self.hosts, 'a pattern of host names, such as "*" or "host1?"'
        yield from super().problems()


class Poisson(Entry, frozen=True, kw_only=True, tag_field="kind", tag="poisson"):
    """Open-loop arrivals: at each host a Poisson process of flows to hosts drawn at random.

    The mean gap is 8 * mean size / (load * rate of the host's link), as in the traffic generator
    of github.com/alibaba-edu/High-Precision-Congestion-Control.

    Parameters
    ----------
    load : float
        Offered load as a share of each host's link rate, above 0 and at most 2.
    distribution : str
        Of sizes: "websearch", "fb_hadoop", "ali_storage", or a CSV file `bytes,cdf` (in a
        scenario file relative to that file).
    duration : Duration, optional
        Flows arrive for this long.
    flows : int, optional
        So many flows arrive in all. Exactly one of duration and flows is given.
    name, transport, traffic_class, start, jitter : optional
        As for every entry: label, transport, class of the data frames, begin, spread of starts.
    """

    FILES: ClassVar[tuple[str, ...]] = ("distribution",)

    load: float
    distribution: str
    duration: Duration | None = None
    flows: int | None = None

    def problems(self) -> Iterator[Problem]:
        if not 0 < self.load <= LARGEST_LOAD:
            yield "load", self.load, f"a number above 0 and at most {LARGEST_LOAD:g}, 1 being line rate"
        if self.distribution not in DISTRIBUTIONS and not self.distribution.endswith(".csv"):
            known = ", ".join(f'"{name}"' for name in DISTRIBUTIONS)
            hint = did_you_mean(self.distribution, DISTRIBUTIONS)
            yield "distribution", self.distribution, f"one of {known}, or the name of a .csv file{hint}"
        if self.duration is None and self.flows is None:
            yield "duration", self.duration, "a duration, or flows: how many arrive"
        if self.duration is not None and self.flows is not None:
            yield "flows", self.flows, f"either duration (here {self.duration}) or flows, not both"
        if self.duration == 0:
            yield "duration", self.duration, "a duration above 0"
        if self.duration is not None:
            yield from bounded_time(self.duration, "duration")
        if self.flows is not None:
            yield from _count(self.flows, "flows")
        yield from super().problems()


class Collective(Entry, frozen=True, kw_only=True, tag_field="kind", tag="collective"):
    """A collective operation of ranks on hosts, once or several times in a row.

    Parameters
    ----------
    collective : str
        "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "all_to_all_v", "broadcast", "reduce",
        "gather", "scatter", "barrier" or "send_recv". Default "all_reduce".
    algorithm : str
        "ring", "double_binary_tree", "halving_doubling" and others that there are for it; "auto": what
        NCCL's published model takes; "in_network", where switches have reducers (`topology.reducers`).
        Default "auto".
    options : dict
        Of the algorithm, as docs/collectives.md lists them: `window`, `root`, `shape`, `levels`, `orders`,
        `ranks_per_node`; of every one: `chunks` and `slices`. Default: none.
    size : Size
        Bytes of the full vector of a rank, as nccl-tests prints it. Default 0.
    skew : float
        Of "all_to_all_v": every rank shares `size` out over the others by Zipf's law with this exponent,
        in an order of popularity that is the same for all and drawn from the seed, as tokens go to
        experts; at most 4. Default 0: all alike.
    matrix : str, optional
        Of "all_to_all_v": a CSV file without header, a row a sender, of the bytes for each receiver (in a
        scenario file relative to that file), instead of `size` and `skew`.
    hosts : str
        Which hosts the ranks are on. Default "*".
    without : tuple of str
        Hosts of these that do not take part, by name or pattern, such as one that has failed. Default: none.
    order : {"as_named", "shuffled"}
        Ranks take hosts by number, or in an order drawn from the seed. Default "as_named".
    ranks_per_host : int
        Default 1.
    ranks : int, optional
        How many, on the first hosts in that order. None (default): as many as there is room for.
    channels : int
        Connections that each pair of neighbours shares the data out over. Default 1.
    chunk : Size, optional
        Pieces of the vector that are larger are cut into chunks of at most so many bytes, which go through
        the algorithm one after the other; trees and chains forward one while the next arrives. None
        (default): pieces stay whole.
    repeat : int
        How often, each rank one after the other. Default 1.
    eager : bool
        Whether a rank is done with a send when it has handed it to the network, as NCCL's kernels are
        (default), and not when it is acknowledged.
    name, transport, traffic_class, start : optional
        As for every entry: label, transport, class of the data frames, begin.
    jitter : Duration
        Each rank enters later by a uniform draw from [0, jitter).
    """

    FILES: ClassVar[tuple[str, ...]] = ("matrix",)

    collective: str = "all_reduce"
    algorithm: str = "auto"
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    size: Size = quantity(0)
    skew: float = 0.0
    matrix: str | None = None
    hosts: str = "*"
    without: tuple[str, ...] = ()
    order: Literal["as_named", "shuffled"] = "as_named"
    ranks_per_host: int = 1
    ranks: int | None = None
    channels: int = 1
    chunk: Size | None = None
    repeat: int = 1
    eager: bool = True

    def problems(self) -> Iterator[Problem]:
        for field in ("ranks_per_host", "channels", "repeat"):
            yield from _count(getattr(self, field), field)
        if self.ranks is not None:
            yield from _count(self.ranks, "ranks")
        if self.chunk == 0:
            yield "chunk", self.chunk, "a size above 0"
        if not 0 <= self.skew <= LARGEST_SKEW:
            yield "skew", self.skew, f"a number from 0 to {LARGEST_SKEW:g}"
        for name, instead in NO_OPTIONS.items():
            if name in self.options:
                yield f"options.{name}", str(self.options[name]), instead
        if self.chunk is not None and "chunks" in self.options:
            yield "options.chunks", self.options["chunks"], "either chunk, a size, or a number of chunks"
        for field in ("skew", "matrix"):
            if getattr(self, field) and self.collective != "all_to_all_v":
                yield field, getattr(self, field), f"no {field}, except for an all_to_all_v"
        if self.matrix and (self.size or self.skew):
            field = "size" if self.size else "skew"
            yield field, getattr(self, field), f"no {field} with a matrix, which says what is sent"
        if not self.hosts:
            yield "hosts", self.hosts, 'a pattern of host names, such as "*" or "host1?"'
        yield from super().problems()


class Program(Entry, frozen=True, kw_only=True, tag_field="kind", tag="program"):
    """What ranks do, as a file of another tool has it: GOAL, MSCCL, Chakra, AICB.

    Parameters
    ----------
    file : str
        A GOAL schedule, an MSCCL program (XML), the Chakra trace of one rank (`w.0.et`; the others stand
        beside it) or an AICB workload (in a scenario file relative to that file).
    size : Size, optional
        Bytes of the full vector of a rank, for MSCCL, whose programs are for any size; others have their own.
    groups : str, optional
        Of Chakra traces: file of groups of ranks (JSON). None (default): the one beside the traces.
    element : Size
        Of Chakra traces: what their sizes count, such as "2B" where they are numbers of 16-bit elements.
        Default "1B".
    flops : float, optional
        Of Chakra traces: operations a second of nodes that say how many, but no time; by default they take
        none.
    ranks : int, optional
        Of AICB: how many, instead of what the file says, of all stages of the pipeline or of one. Where
        neither says so: as many as there is room for.
    algorithms : dict
        Of Chakra and AICB: algorithm by collective, such as `{all_reduce = "tree"}`; else what the file
        says, else as NCCL would choose.
    hosts : str
        Which hosts the ranks are on, the first ones of these. Default "*".
    order : {"as_named", "shuffled"}
        Ranks take hosts by number, or in an order drawn from the seed. Default "as_named".
    ranks_per_host : int
        Default 1.
    eager : bool
        Whether a rank is done with a send when it has handed it to the network (default), and not when
        it is acknowledged.
    name, transport, traffic_class, start : optional
        As for every entry: label, transport, class of the data frames, begin.
    jitter : Duration
        0: the file says when ranks begin.
    """

    FILES: ClassVar[tuple[str, ...]] = ("file", "groups")

    file: str
    size: Size | None = None
    groups: str | None = None
    element: Size = quantity("1B")
    flops: float | None = None
    ranks: int | None = None
    algorithms: dict[str, str] = msgspec.field(default_factory=dict)
    hosts: str = "*"
    order: Literal["as_named", "shuffled"] = "as_named"
    ranks_per_host: int = 1
    eager: bool = True

    def problems(self) -> Iterator[Problem]:
        yield from _count(self.ranks_per_host, "ranks_per_host")
        if not self.file:
            yield "file", self.file, "the name of a GOAL or MSCCL file, a Chakra trace or AICB workload"
        if self.ranks is not None:
            yield from _count(self.ranks, "ranks")
        yield from _positive_size(self.element, "element")
        if self.flops is not None and not 0 < self.flops < math.inf:
            yield "flops", self.flops, "operations a second, above 0"
        if not self.hosts:
            yield "hosts", self.hosts, 'a pattern of host names, such as "*" or "host1?"'
        if self.jitter:
            yield "jitter", self.jitter, "no jitter: the file says when ranks begin"
        yield from super().problems()


Traffic = Flows | Incast | Permutation | Uniform | AllToAll | Poisson | Collective | Program | Training


def _positive_size(size: Size, name: str) -> Iterator[Problem]:
    if size == 0:
        yield name, size, "a size above 0"


def _count(value: int, name: str) -> Iterator[Problem]:
    yield from outside(name, value, low=1, high=LARGEST_COUNT)
