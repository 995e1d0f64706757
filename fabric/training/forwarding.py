"""`Forwarding`: copies of tokens that go in two legs, passed on by a rank in between.

Out of a server and on inside it (DeepEP's normal kernels), or gathered inside and then out (NCCL's PXN). What
a message of the second leg carries comes with certain messages of the first: that is kept. So the legs can
follow each other as two all-to-alls, or go on at once: every message is cut into chunks, and the rank in
between sends a chunk on when what it consists of has arrived. On the way back everything is mirrored: results
go to the rank in between first, which adds those of one token up and sends one.

A rank's chunks to another go one after the other; senders of different servers do not wait for each other.
Chunks are of whole tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fabric.workload.collectives import Rows, Template
from fabric.workload.collectives.template import MOST_CHANNELS

__all__ = ["Forwarding", "Leg", "gathered_first", "passed_on_inside"]

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Leg:
    """Messages of one leg.

    Attributes
    ----------
    source, destination : ndarray of int64 [messages]
    channel : ndarray of int64 [messages]
        Messages between the same two ranks that must not wait for each other have different ones.
    copies : ndarray of int64 [messages, chunks]
    """

    source: Int64Array
    destination: Int64Array
    channel: Int64Array
    copies: Int64Array

    def reversed(self) -> Leg:
        """Return the leg of the way back."""
        return Leg(source=self.destination, destination=self.source, channel=self.channel, copies=self.copies)

    def matrix(self, n_ranks: int) -> Int64Array:
        """Return the copies from each rank to each [ranks, ranks]."""
        total = np.zeros((n_ranks, n_ranks), dtype=np.int64)
        np.add.at(total, (self.source, self.destination), self.copies.sum(axis=1))
        return total


@dataclass(frozen=True, kw_only=True, eq=False)
class Forwarding:
    """An all-to-all in two legs.

    Attributes
    ----------
    n_ranks : int
    first, second : Leg
        Of as many chunks.
    passed : ndarray of int64 [pairs, 2]
        A message of the second leg, and one of the first that brings what it carries.

    Examples
    --------
    >>> between, inside = np.zeros((4, 4), dtype=np.int64), np.zeros((4, 4), dtype=np.int64)
    >>> between[0, 2], inside[0, 2], inside[0, 3] = 6, 4, 5
    >>> route = passed_on_inside(between, inside, ranks_per_server=2, chunks=2)
    >>> [leg.copies.tolist() for leg in (route.first, route.second)], route.passed.tolist()
    ([[[3, 3]], [[3, 2]]], [[0, 0]])
    >>> template = route.template
    >>> template.source.tolist(), template.destination.tolist(), template.after.tolist()
    ([0, 2, 0, 2], [2, 3, 2, 3], [0, 2])
    """

    n_ranks: int
    first: Leg
    second: Leg
    passed: Int64Array

    def mirrored(self) -> Forwarding:
        """Return the way back."""
        return Forwarding(
            n_ranks=self.n_ranks,
            first=self.second.reversed(),
            second=self.first.reversed(),
            passed=self.passed[:, ::-1],
        )

    def matrices(self) -> list[Int64Array]:
        """Return the copies from rank to rank, leg by leg."""
        return [leg.matrix(self.n_ranks) for leg in (self.first, self.second)]

    @cached_property
    def template(self) -> Template:
        """Both legs at once, chunk by chunk. Each piece is a chunk of one message, of `piece_copies`.

        It promises nothing as a collective: what is passed on are parts of what has come, and sums.
        """
        rows = Rows()
        messages_and_none = (len(self.first.source) + 1, self.first.copies.shape[1])
        arrival = np.full(messages_and_none, -1, dtype=np.int64)
        brought_by = self._brought_by()
        for which, leg, chunk, messages in self._pieces():
            numbers = rows.add(
                leg.source[messages],
                leg.destination[messages],
                piece=len(rows) + np.arange(len(messages)),
                step=chunk + which,
                channel=leg.channel[messages],
                after=[arrival[brought_by[messages], chunk]] if which else (),
            )
            if not which:
                arrival[messages, chunk] = numbers
        return rows.build("forwarded", "custom", n_ranks=self.n_ranks, n_pieces=max(len(rows), 1))

    @cached_property
    def piece_copies(self) -> Int64Array:
        """Copies in each piece of the template [pieces]."""
        each = [leg.copies[messages, chunk] for _, leg, chunk, messages in self._pieces()]
        copies = np.concatenate([np.zeros(0, dtype=np.int64), *each])
        return copies if len(copies) else np.zeros(1, dtype=np.int64)

    def _pieces(self) -> Iterator[tuple[int, Leg, int, Int64Array]]:
        """Yield legs with their numbers, chunks, and the messages with something in a chunk, by distance."""
        legs = (self.first, self.second)
        order = [np.lexsort((leg.source, (leg.destination - leg.source) % self.n_ranks)) for leg in legs]
        for chunk in range(self.first.copies.shape[1]):
            for which, leg in enumerate(legs):
                yield which, leg, chunk, order[which][leg.copies[order[which], chunk] > 0]

    def _brought_by(self) -> Int64Array:
        """Messages of the first leg that each of the second waits for; -1: none [messages, most]."""
        second, first = self.passed[np.argsort(self.passed[:, 0], kind="stable")].T
        count = np.bincount(second, minlength=len(self.second.source))
        place = np.arange(len(second)) - (np.cumsum(count) - count)[second]
        brought = np.full((len(count), max(int(count.max(initial=0)), 1)), -1, dtype=np.int64)
        brought[second, place] = first
        return brought


def passed_on_inside(
    between: Int64Array, wanted: Int64Array, *, ranks_per_server: int, chunks: int
) -> Forwarding:
    """Copies that go to the rank on the sender's rail of each server, and from there to all that want them.

    Parameters
    ----------
    between : ndarray of int64 [ranks, ranks]
        As of `token_copies_by_server`.
    wanted : ndarray of int64 [ranks, ranks]
        Copies that a rank makes of a sender's tokens, as of `token_copies` for each rank.
    ranks_per_server, chunks : int
    """
    n_ranks = len(between)
    source, gate = np.nonzero(between)
    first = Leg(
        source=source,
        destination=gate,
        channel=np.zeros_like(source),
        copies=_cut(between[source, gate], chunks),
    )
    message = np.full((n_ranks, n_ranks), -1, dtype=np.int64)
    message[source, gate] = np.arange(len(source))
    sender, receiver = np.nonzero(wanted)
    gate = receiver // ranks_per_server * ranks_per_server + sender % ranks_per_server
    crosses = gate != receiver
    sender, receiver, gate = sender[crosses], receiver[crosses], gate[crosses]
    second = Leg(
        source=gate,
        destination=receiver,
        channel=sender // ranks_per_server % MOST_CHANNELS,
        copies=_cut(wanted[sender, receiver], chunks),
    )
    return Forwarding(n_ranks=n_ranks, first=first, second=second, passed=_pairs(message[sender, gate]))


def gathered_first(copies: Int64Array, *, ranks_per_server: int, chunks: int) -> Forwarding:
    """Copies for other servers that go over the rank of the sender's server on the receiver's rail.

    Parameters
    ----------
    copies : ndarray of int64 [ranks, ranks]
        As of `token_copies`.
    ranks_per_server, chunks : int
    """
    n_ranks = len(copies)
    sender, receiver = np.nonzero(copies)
    cut = _cut(copies[sender, receiver], chunks)
    server = receiver // ranks_per_server
    away = sender // ranks_per_server != server
    gate = np.where(
        away, sender // ranks_per_server * ranks_per_server + receiver % ranks_per_server, receiver
    )
    inside = sender != gate
    first = Leg(
        source=sender[inside],
        destination=gate[inside],
        channel=server[inside] % MOST_CHANNELS,
        copies=cut[inside],
    )
    pair, place = np.unique(gate[away] * n_ranks + receiver[away], return_inverse=True)
    total = np.zeros((len(pair), chunks), dtype=np.int64)
    np.add.at(total, place, cut[away])
    second = Leg(
        source=pair // n_ranks,
        destination=pair % n_ranks,
        channel=np.zeros_like(pair),
        copies=total,
    )
    number = np.where(inside, np.cumsum(inside) - 1, -1)[away]
    passed = np.stack([place, number], axis=1)[number >= 0]
    return Forwarding(n_ranks=n_ranks, first=first, second=second, passed=passed)


def _cut(copies: Int64Array, chunks: int) -> Int64Array:
    """Whole tokens in as many chunks, as even as can be, the first ones larger."""
    base, rest = np.divmod(copies[:, np.newaxis], chunks)
    cut: Int64Array = base + (np.arange(chunks) < rest)
    return cut


def _pairs(first: Int64Array) -> Int64Array:
    """Messages of the second leg with the one of the first that each has; -1: none."""
    there = np.flatnonzero(first >= 0)
    return np.stack([there, first[there]], axis=1)
