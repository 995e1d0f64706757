"""What a collective will do, before anything runs: steps, messages, bytes, and how long it takes at least.

Three times are given, for links of a latency alpha and a rate B in each direction of every port, a message of
m bytes taking `alpha + m/B`:

* **alpha-beta**: every step of the template waits for the one before, and takes alpha and what the busiest
  port carries in it. For the algorithms here this is the textbook's form (ring all-reduce:
  `2(n-1) alpha + 2(n-1)/n S/B`).
* **streamed**: alpha for each message of the longest chain, and what the busiest port carries all in all:
  what many small chunks that follow each other come close to (in-network reduction with h hops to the
  root: `2 h alpha + S/B`).
* **lower bound**: the longest chain of messages, each of which waits for the one before, or the busiest
  port and one alpha, whichever is more. Nothing that sends these messages is faster.

Source: Thakur, Rabenseifner and Gropp, doi 10.1177/1094342005051521.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.units import Duration, Rate
from fabric.workload.collectives.arrays import Int64Array, distinct
from fabric.workload.collectives.kinds import COLLECTIVES, busbw_factor
from fabric.workload.collectives.levels import depth, longest_chain
from fabric.workload.collectives.template import Template

__all__ = ["Explanation", "Links", "explain"]

PS_PER_S = 10**12
BITS = 8


@dataclass(frozen=True, kw_only=True)
class Links:
    """How ranks are connected.

    Attributes
    ----------
    alpha : Duration
        Latency of a message.
    rate : Rate
        Of a port, in each direction.
    ports : int
        Of a rank; channel c uses port c mod ports.
    ranks_per_node : int
        Ranks `m k .. m k + m - 1` are a node; 1: every rank is one.
    inside_alpha, inside_rate
        Of messages inside a node; as between nodes unless given.
    """

    alpha: Duration | str = field(default_factory=lambda: Duration("5us"))
    rate: Rate | str = field(default_factory=lambda: Rate("400Gbps"))
    ports: int = 1
    ranks_per_node: int = 1
    inside_alpha: Duration | str | None = None
    inside_rate: Rate | str | None = None

    def __post_init__(self) -> None:
        for name, unit in (
            ("alpha", Duration),
            ("inside_alpha", Duration),
            ("rate", Rate),
            ("inside_rate", Rate),
        ):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, unit(getattr(self, name)))
        for name in ("ports", "ranks_per_node"):
            if getattr(self, name) < 1:
                raise SpecError(f"links.{name}", getattr(self, name), "at least 1")


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What a collective will do.

    Attributes
    ----------
    collective, algorithm : str
    n_ranks, size_bytes : int
        Of the full logical vector; of an all-to-all-v its nccl-tests size.
    steps : int
        If every step waits for the one before.
    depth : int
        Messages of the longest chain that wait for each other.
    messages : int
    connections : int
        Pairs of ranks and channels that messages use.
    sent_bytes, received_bytes : ndarray of int64 [ranks]
        By rank; what stays on a rank is not counted.
    largest_message_bytes : int
    alpha_beta_s, streamed_s, lower_bound_s : float
        See above.
    """

    collective: str
    algorithm: str
    n_ranks: int
    size_bytes: int
    steps: int
    depth: int
    messages: int
    connections: int
    sent_bytes: Int64Array
    received_bytes: Int64Array
    largest_message_bytes: int
    alpha_beta_s: float
    streamed_s: float
    lower_bound_s: float

    @property
    def busbw_bytes_per_s(self) -> float:
        """busbw at the alpha-beta time; NaN if that is 0, or the collective has no factor."""
        if not self.alpha_beta_s or self.collective not in COLLECTIVES:
            return float("nan")
        return self.size_bytes / self.alpha_beta_s * busbw_factor(self.collective, n_ranks=self.n_ranks)

    def __str__(self) -> str:
        sent, received = self.sent_bytes, self.received_bytes
        rows = [
            ("steps", f"{self.steps}, the longest chain has {self.depth} messages"),
            (
                "messages",
                f"{self.messages} on {self.connections} connections, {self.largest_message_bytes} B at most",
            ),
            ("sent per rank", f"{int(sent.min())} to {int(sent.max())} B"),
            ("received per rank", f"{int(received.min())} to {int(received.max())} B"),
            (
                "alpha-beta",
                f"{self.alpha_beta_s * 1e6:.3f} us, busbw {self.busbw_bytes_per_s / 1e9:.3f} GB/s",
            ),
            ("streamed", f"{self.streamed_s * 1e6:.3f} us, lower bound {self.lower_bound_s * 1e6:.3f} us"),
        ]
        title = f"{self.collective}, {self.algorithm}: {self.n_ranks} ranks, {self.size_bytes} B"
        return "\n".join([title, *(f"  {name:<18}{text}" for name, text in rows)])


def explain(
    template: Template,
    size: int | npt.ArrayLike,
    *,
    links: Links | None = None,
    size_bytes: int | None = None,
) -> Explanation:
    """Say what a template does with so many bytes.

    Parameters
    ----------
    template : Template
    size : int or array_like of int
        As of `Template.piece_bytes`.
    links : Links, optional
        5 us and 400 Gbit/s.
    size_bytes : int, optional
        What to call the size, where `size` is an array: its sum.

    Returns
    -------
    Explanation

    Raises
    ------
    SpecError
        If the sizes do not fit.

    Examples
    --------
    >>> from fabric.workload.collectives import build_template
    >>> ring = build_template("all_reduce", algorithm="ring", n_ranks=8)
    >>> told = explain(ring, 2**30, links=Links(alpha="5us", rate="400Gbps"))
    >>> told.steps, told.messages, round(told.alpha_beta_s * 1e3, 6)
    (14, 112, 37.650964)
    """
    links = links or Links()
    sizes = template.transfer_bytes(size)
    wire = np.flatnonzero(template.source != template.destination)
    source, destination = (each[wire].astype(np.int64) for each in (template.source, template.destination))
    sizes = sizes[wire]
    ranks = template.n_ranks
    lanes = (source * (ranks + template.n_reducers) + destination) * 256 + template.channel[wire]
    longest = depth(template)
    total = size_bytes if size_bytes is not None else int(np.sum(np.asarray(size, dtype=np.int64)))
    inside = (source // links.ranks_per_node == destination // links.ranks_per_node) & (
        links.ranks_per_node > 1
    )
    alphas, rates = np.array(_kinds(links)).T
    weight = np.zeros(len(template))
    weight[wire] = alphas[inside.astype(int)] + sizes / rates[inside.astype(int)]
    alpha = float(alphas[np.unique(inside.astype(int))].min(initial=np.inf)) if len(wire) else 0.0
    port = _busiest_port(template, wire, sizes, inside, links)
    return Explanation(
        collective=template.collective,
        algorithm=template.name,
        n_ranks=ranks,
        size_bytes=total,
        steps=template.n_steps,
        depth=longest,
        messages=len(wire),
        connections=len(distinct(lanes)),
        sent_bytes=_by_rank(source, sizes, ranks),
        received_bytes=_by_rank(destination, sizes, ranks),
        largest_message_bytes=int(sizes.max(initial=0)),
        alpha_beta_s=_alpha_beta(template, wire, sizes, inside, links),
        streamed_s=longest * alpha + port,
        lower_bound_s=max(longest_chain(template, weight), port + alpha if len(wire) else 0.0),
    )


def _by_rank(rank: Int64Array, sizes: Int64Array, n_ranks: int) -> Int64Array:
    sums = np.zeros(n_ranks, dtype=np.int64)
    own = rank < n_ranks
    np.add.at(sums, rank[own], sizes[own])
    return sums


def _alpha_beta(
    template: Template, wire: Int64Array, sizes: Int64Array, inside: npt.NDArray[np.bool_], links: Links
) -> float:
    step = template.step[wire].astype(np.int64)
    seconds = np.zeros(template.n_steps)
    for here, (alpha, rate) in zip((~inside, inside), _kinds(links), strict=True):
        busiest = np.zeros(template.n_steps)
        for ends in (template.source, template.destination):
            key = _port(template, wire[here], ends, links.ports) + step[here] * _ports(template, links.ports)
            places, of = np.unique(key, return_inverse=True)
            load = np.bincount(of.ravel(), weights=sizes[here], minlength=len(places))
            at = places // _ports(template, links.ports)
            np.maximum.at(busiest, at, load)
        used = np.zeros(template.n_steps, dtype=np.bool_)
        used[step[here]] = True
        seconds = np.maximum(seconds, np.where(used, alpha + busiest / rate, 0.0))
    return float(seconds.sum())


def _busiest_port(
    template: Template, wire: Int64Array, sizes: Int64Array, inside: npt.NDArray[np.bool_], links: Links
) -> float:
    """Seconds in which the busiest port carries all that it has to."""
    busiest = 0.0
    for here, (_, rate) in zip((~inside, inside), _kinds(links), strict=True):
        for ends in (template.source, template.destination):
            port = _port(template, wire[here], ends, links.ports)
            load = np.bincount(port, weights=sizes[here], minlength=1)
            busiest = max(busiest, float(load.max(initial=0.0)) / rate)
    return busiest


def _kinds(links: Links) -> list[tuple[float, float]]:
    """Seconds and bytes per second of messages between nodes, and inside one."""
    inside_alpha = links.alpha if links.inside_alpha is None else links.inside_alpha
    inside_rate = links.rate if links.inside_rate is None else links.inside_rate
    pairs = ((links.alpha, links.rate), (inside_alpha, inside_rate))
    return [(int(Duration(alpha)) / PS_PER_S, int(Rate(rate)) / BITS) for alpha, rate in pairs]


def _ports(template: Template, ports: int) -> int:
    """Ports of all ranks, and one for each message of a reducer, which has a port to each neighbour."""
    return template.n_ranks * ports + max(len(template), 1)


def _port(template: Template, wire: Int64Array, ends: npt.NDArray[np.uint32], ports: int) -> Int64Array:
    rank = ends[wire].astype(np.int64)
    own = rank * ports + template.channel[wire] % ports
    return np.where(rank < template.n_ranks, own, template.n_ranks * ports + wire)
