"""Execution of MSCCL programs on sets of contributions.

Every chunk of every buffer holds a block of the vector and the ranks whose contributions are in it. Thread
blocks go through their steps as far as they can, connections are first in, first out; what a step sends is
a transfer that waits for the arrivals that its data is made of, and for those that the thread block had to
wait for since it last sent. Local copies and reductions take no time.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from fabric.errors import Said, SpecError
from fabric.formats.msccl_xml import RECEIVES, SENDS, STEP_TYPES, MscclAlgorithm
from fabric.formats.words import place

__all__ = ["Content", "Run", "Transfer"]

ADDS = frozenset({"rrs", "rrc", "rrcs"})
STORES = frozenset({"r", "rcs", "rrc", "rrcs"})


@dataclass(frozen=True)
class Content:
    """What a chunk holds: which block, whose contributions (bits), and the arrivals that brought it."""

    block: int
    ranks: int
    arrivals: tuple[int, ...] = ()


@dataclass
class Transfer:
    """A message that has been sent."""

    source: int
    destination: int
    channel: int
    line: int
    contents: list[Content]
    after: set[int]
    step: int
    reduce: bool = False


@dataclass
class _Thread:
    """A thread block at work."""

    block: int
    at: int
    end: int
    arrived: dict[tuple[int, int], int] = field(default_factory=dict)
    """Last arrival of each connection that it had to wait for."""
    since_sent: dict[tuple[int, int], int] = field(default_factory=dict)
    """Those since it last sent."""

    def heard(self, arrivals: dict[tuple[int, int], int]) -> None:
        for lane, transfer in arrivals.items():
            for known in (self.arrived, self.since_sent):
                known[lane] = max(known.get(lane, -1), transfer)


class Run:
    """A program while it is executed."""

    def __init__(self, given: MscclAlgorithm) -> None:
        self.given = given
        self.transfers: list[Transfer] = []
        self.cells: dict[tuple[int, int, int], Content] = {}
        self.queues: dict[tuple[int, int, int], deque[int]] = {}
        self.done: set[int] = set()
        self.news: dict[int, dict[tuple[int, int], int]] = {}
        self.wanted = {int(each) for each in given.waits_for if each >= 0}
        self.threads = [
            _Thread(block, int(given.step_base[block]), int(given.step_base[block + 1]))
            for block in range(len(given.block_rank))
        ]
        self._check_lanes()
        self._fill()

    def finish(self) -> None:
        """Execute everything.

        Raises
        ------
        SpecError
            If steps wait for ever, or something sent is never received.
        """
        moved = True
        while moved:
            moved = False
            for thread in self.threads:
                while thread.at < thread.end and self._advance(thread):
                    moved = True
        stuck = [thread for thread in self.threads if thread.at < thread.end]
        if stuck:
            first = stuck[0].at
            shown = ", ".join(f"line {self.given.step_line[thread.at]}" for thread in stuck[:8])
            what = f"{len(stuck)} thread blocks that wait for ever ({shown})"
            raise SpecError(self._where(first), Said(what), "steps that can all be done")
        for lane in self.queues.values():
            if lane:
                one = self.transfers[lane[0]]
                what = f"a message from {one.source} to {one.destination} that nobody receives"
                raise SpecError(place(self.given.file, one.line), Said(what), "a step that receives it")

    def check_result(self) -> int:
        """Compare what ranks have with what the collective promises; return the root."""
        given, ranks = self.given, self.given.n_ranks
        kind = given.collective
        root = 0
        if kind == "custom":
            return root
        if kind == "reduce":
            whole = [rank for rank in range(ranks) if self._wrong(rank, root=rank) is None]
            root = whole[0] if whole else 0
        elif kind == "broadcast":
            receivers = {transfer.destination for transfer in self.transfers}
            root = next((rank for rank in range(ranks) if rank not in receivers), 0)
        for rank in [root] if kind == "reduce" else range(ranks):
            wrong = self._wrong(rank, root=root)
            if wrong is not None:
                where = place(given.file, int(given.rank_line[rank]), f"rank {rank}")
                raise SpecError(where, Said(wrong), f"what {kind} promises")
        return root

    def _advance(self, thread: _Thread) -> bool:
        """Do the next step of a thread block, if it can be done."""
        given, step = self.given, thread.at
        other = int(given.waits_for[step])
        if other >= 0 and other not in self.done:
            return False
        rank, kind = int(given.block_rank[thread.block]), STEP_TYPES[given.step_type[step]]
        count = int(given.step_count[step])
        lane = (int(given.block_receive[thread.block]), rank, int(given.block_channel[thread.block]))
        if kind in RECEIVES and not self.queues.get(lane):
            return False
        if other >= 0:
            thread.heard(self.news[other])
        received: list[Content] = []
        if kind in RECEIVES:
            received = self._receive(thread, lane, step, count, adds=kind in ADDS)
        own = self._read(step, rank, count) if kind in ("s", "cpy", "re") or kind in ADDS else []
        result = self._result(kind, step, rank, received, own)
        if kind in STORES or kind in ("cpy", "re"):
            for number, content in enumerate(result):
                self.cells[
                    self._cell(rank, given.destination_buffer, given.destination_offset, step, number)
                ] = content
        if kind in SENDS:
            self._send(thread, rank, step, result)
        self.done.add(step)
        if step in self.wanted:
            self.news[step] = dict(thread.arrived)
        thread.at += 1
        return True

    def _receive(
        self, thread: _Thread, lane: tuple[int, int, int], step: int, count: int, *, adds: bool
    ) -> list[Content]:
        number = self.queues[lane].popleft()
        transfer = self.transfers[number]
        if len(transfer.contents) != count:
            allowed = f"{len(transfer.contents)} chunks, as line {transfer.line} sends"
            raise SpecError(self._where(step, "cnt"), count, allowed)
        transfer.reduce = adds
        thread.heard({(lane[0], lane[2]): number})
        return [Content(each.block, each.ranks, (number,)) for each in transfer.contents]

    def _result(
        self, kind: str, step: int, rank: int, received: list[Content], own: list[Content]
    ) -> list[Content]:
        """What a step has at hand to store or to send."""
        if kind == "re":
            given = self.given
            into = [
                self._at(rank, given.destination_buffer, given.destination_offset, step, number)
                for number in range(len(own))
            ]
            for content in own:
                for arrival in content.arrivals:
                    self.transfers[arrival].reduce = True
            return [self._sum(step, one, other) for one, other in zip(into, own, strict=True)]
        if kind in ADDS:
            return [self._sum(step, one, other) for one, other in zip(own, received, strict=True)]
        return received or own

    def _sum(self, step: int, one: Content, other: Content) -> Content:
        if self.given.collective == "custom":
            return Content(one.block, one.ranks | other.ranks, (*one.arrivals, *other.arrivals))
        if one.block != other.block:
            what = f"chunks {one.block} and {other.block} of the vector"
            raise SpecError(self._where(step), Said(what), "parts of one chunk to add up")
        if one.ranks & other.ranks:
            twice = (one.ranks & other.ranks).bit_length() - 1
            raise SpecError(self._where(step), Said(f"the contribution of rank {twice} twice"), "each once")
        return Content(one.block, one.ranks | other.ranks, (*one.arrivals, *other.arrivals))

    def _send(self, thread: _Thread, rank: int, step: int, contents: list[Content]) -> None:
        given = self.given
        peer, channel = int(given.block_send[thread.block]), int(given.block_channel[thread.block])
        after = {arrival for content in contents for arrival in content.arrivals}
        after |= set(thread.since_sent.values())
        thread.since_sent.clear()
        depth = max((self.transfers[each].step + 1 for each in after), default=0)
        number = len(self.transfers)
        line = int(given.step_line[step])
        self.transfers.append(Transfer(rank, peer, channel, line, contents, after, depth))
        self.queues.setdefault((rank, peer, channel), deque()).append(number)

    def _read(self, step: int, rank: int, count: int) -> list[Content]:
        given = self.given
        return [
            self._at(rank, given.source_buffer, given.source_offset, step, number) for number in range(count)
        ]

    def _at(self, rank: int, buffers: np.ndarray, offsets: np.ndarray, step: int, number: int) -> Content:
        cell = self._cell(rank, buffers, offsets, step, number)
        content = self.cells.get(cell)
        if content is None:
            what = (
                f"chunk {cell[2]} of buffer {'ios'[int(buffers[step])]} of rank {rank}, in which nothing is"
            )
            raise SpecError(self._where(step), Said(what), "data that is there before")
        return content

    def _cell(
        self, rank: int, buffers: np.ndarray, offsets: np.ndarray, step: int, number: int
    ) -> tuple[int, int, int]:
        return self._place(rank, int(buffers[step]), int(offsets[step]) + number)

    def _place(self, rank: int, buffer: int, offset: int) -> tuple[int, int, int]:
        """Where a chunk is; in place, input and output are one."""
        given = self.given
        if not given.in_place or buffer == 2:
            return rank, buffer, offset
        if given.collective == "all_gather" and buffer == 0:
            return rank, 1, rank * (given.n_chunks // given.n_ranks) + offset
        if given.collective == "reduce_scatter" and buffer == 1:
            return rank, 0, rank * (given.n_chunks // given.n_ranks) + offset
        return rank, 1 if given.collective == "all_gather" else 0, offset

    def _fill(self) -> None:
        """Put into the buffers what ranks have at the beginning."""
        given = self.given
        chunks, ranks = given.n_chunks, given.n_ranks
        divided = given.collective in ("all_gather", "reduce_scatter", "all_to_all")
        if divided and chunks % ranks:
            raise SpecError(place(given.file, 1, "nchunksperloop"), chunks, f"a multiple of {ranks} ranks")
        share = chunks // ranks
        for rank in range(ranks):
            if given.collective == "all_gather":
                held = [(offset, rank * share + offset) for offset in range(share)]
            elif given.collective == "custom":
                own = given.buffer_chunks[rank]
                held = [(each, each) for each in range(int(max(own[:2]) if given.in_place else own[0]))]
            else:
                held = [(offset, offset) for offset in range(chunks)]
            for offset, block in held:
                self.cells[self._place(rank, 0, offset)] = Content(block, 1 << rank)

    def _wrong(self, rank: int, *, root: int) -> str | None:
        """What is wrong with a rank's output, if anything is."""
        given = self.given
        ranks, share = given.n_ranks, given.n_chunks // given.n_ranks
        everyone = (1 << ranks) - 1
        for offset in range(share if given.collective == "reduce_scatter" else given.n_chunks):
            block, expected = offset, everyone
            if given.collective == "reduce_scatter":
                block = rank * share + offset
            elif given.collective == "all_gather":
                expected = 1 << offset // share
            elif given.collective == "all_to_all":
                block, expected = rank * share + offset % share, 1 << offset // share
            elif given.collective == "broadcast":
                expected = 1 << root
            content = self.cells.get(self._place(rank, 1, offset))
            if content is None:
                if given.collective == "broadcast" and rank == root:
                    continue
                if given.collective == "all_to_all" and offset // share == rank:
                    continue
                return f"output chunk {offset}: nothing"
            if content.block != block:
                return f"output chunk {offset}: chunk {content.block} of the vector instead of {block}"
            if content.ranks != expected:
                differ = (content.ranks ^ expected).bit_length() - 1
                there = "with" if content.ranks >> differ & 1 else "without"
                return f"output chunk {offset}: {there} the contribution of rank {differ}"
        return None

    def _check_lanes(self) -> None:
        given = self.given
        for peers, verb in ((given.block_send, "sends to"), (given.block_receive, "receives from")):
            seen: dict[tuple[int, int, int], int] = {}
            for block in np.flatnonzero(peers >= 0).tolist():
                lane = (int(given.block_rank[block]), int(peers[block]), int(given.block_channel[block]))
                line = int(given.block_line[block])
                if lane in seen:
                    what = f"a second thread block that {verb} {lane[1]} on channel {lane[2]}"
                    raise SpecError(
                        place(given.file, line, "tb"), Said(what), f"that of line {seen[lane]} alone"
                    )
                seen[lane] = line

    def _where(self, step: int, what: str = "") -> str:
        return place(self.given.file, int(self.given.step_line[step]), what)
