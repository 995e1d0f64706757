"""GOAL: schedules of sends, receives and computation of each rank, as LogGOPSim and its relatives read them.

    num_ranks N
    rank r {
    [label:] send <n>b to <rank> [tag t] [cpu c] [nic k]
    [label:] recv <n>b from <rank> [tag t] [cpu c] [nic k]
    [label:] calc <ns> [cpu c]
    a requires b        a starts when b has finished
    a irequires b       a starts when b has started
    }

Operations of a rank that nothing orders are concurrent. Labels belong to their rank, options stand in this
order, -1 is a wildcard for source and tag of a receive; `//` and `/* */` are comments. Files are large (a
ring on 512 ranks has 44 MB), so they are read line by line, one rank at a time.

Source: Hoefler, Schneider and Lumsdaine, "LogGOPSim", HPDC 2010; github.com/spcl/LogGOPSim, `txt2bin.re`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fabric.errors import Said, SpecError
from fabric.formats.words import LONGEST_NUMBER, place
from fabric.units import LARGEST

__all__ = ["ANY", "CALC", "RECV", "SEND", "GoalRank", "goal_text", "read_goal"]

SEND, RECV, CALC = 0, 1, 2
"""Kinds of operations."""
ANY = -1
"""A wildcard."""

MOST_RANKS = 2**20

_LABEL = re.compile(r"\s*([A-Za-z_]\w*)\s*:\s*(.*)$")
_MESSAGE = re.compile(
    r"(send|recv)\s+(\S+)\s+(to|from)\s+(\S+)(?:\s+tag\s+(\S+))?(?:\s+cpu\s+(\S+))?(?:\s+nic\s+(\S+))?$"
)
_CALC = re.compile(r"calc\s+(\S+)(?:\s+cpu\s+(\S+))?$")
_WAIT = re.compile(r"([A-Za-z_]\w*)\s+(requires|irequires)\s+([A-Za-z_]\w*)$")
_RANK = re.compile(r"rank\s+(\S+)\s*(\{?)$")

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class GoalRank:
    """The block of one rank.

    Attributes
    ----------
    n_ranks : int
        Of the file.
    rank : int
    line : int
        Where the block begins.
    kind : ndarray of int64 [operations]
        SEND, RECV or CALC.
    size : ndarray of int64 [operations]
        Bytes; nanoseconds of CALC.
    peer, tag : ndarray of int64 [operations]
        ANY: a wildcard. 0 where there is none.
    cpu, nic : ndarray of int64 [operations]
    operation_line : ndarray of int64 [operations]
    waits : ndarray of int64 [waits, 3]
        Operation, operation that it waits for, and 1 if only for its start.
    """

    n_ranks: int
    rank: int
    line: int
    kind: Int64Array
    size: Int64Array
    peer: Int64Array
    tag: Int64Array
    cpu: Int64Array
    nic: Int64Array
    operation_line: Int64Array
    waits: Int64Array


@dataclass
class _Block:
    rank: int
    line: int
    rows: list[tuple[int, int, int, int, int, int, int]] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    waits: list[tuple[str, str, int, int]] = field(default_factory=list)
    is_open: bool = False


def read_goal(file: str | Path) -> Iterator[GoalRank]:
    """Read a file rank by rank.

    Parameters
    ----------
    file : str or Path

    Yields
    ------
    GoalRank
        In the order of the file; ranks without a block are idle and do not come.

    Raises
    ------
    SpecError
        Naming file, line and cause, when the place that is wrong is reached.
    """
    reader = _Reader(str(file))
    try:
        with Path(file).open(encoding="utf-8-sig") as stream:
            for number, line in enumerate(stream, start=1):
                block = reader.take(number, line)
                if block is not None:
                    yield block
    except FileNotFoundError:
        raise SpecError(str(file), Said("nothing"), "an existing file") from None
    except OSError as error:
        raise SpecError(str(file), error.strerror, "a file that can be read") from None
    except UnicodeDecodeError as error:
        raise SpecError(str(file), error.object[error.start : error.end], "text in UTF-8") from None
    reader.finish()


class _Reader:
    """Takes lines; gives the blocks that they end."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.n_ranks = 0
        self.seen: dict[int, int] = {}
        self.block: _Block | None = None
        self.in_comment = 0
        self.line = 0

    def take(self, number: int, line: str) -> GoalRank | None:
        self.line = number
        text = self._without_comments(line).strip()
        if not text:
            return None
        if not self.n_ranks:
            self._header(text)
            return None
        if self.block is None:
            self._begin(text)
            return None
        if not self.block.is_open:
            if not text.startswith("{"):
                raise SpecError(self._where(), text, "{ after the rank")
            self.block.is_open = True
            text = text[1:].strip()
        ends = text.endswith("}")
        if ends:
            text = text[:-1].strip()
        if text:
            self._statement(text)
        return self._end() if ends else None

    def finish(self) -> None:
        """Refuse a file that ends too early."""
        if self.in_comment:
            raise SpecError(self._where(self.in_comment), Said("/* without an end"), "*/")
        if not self.n_ranks:
            raise SpecError(self._where(), Said("the end of the file"), "a line num_ranks n")
        if self.block is not None:
            what = f"the end of the file in the block of rank {self.block.rank} (line {self.block.line})"
            raise SpecError(self._where(), Said(what), "}")

    def _without_comments(self, line: str) -> str:
        if not self.in_comment and "/" not in line:
            return line
        kept = []
        while line:
            if self.in_comment:
                _, found, line = line.partition("*/")
                if found:
                    self.in_comment = 0
                continue
            slashes, stars = line.find("//"), line.find("/*")
            if slashes >= 0 and (stars < 0 or slashes < stars):
                kept.append(line[:slashes])
                break
            if stars < 0:
                kept.append(line)
                break
            kept.append(line[:stars] + " ")
            line = line[stars + 2 :]
            self.in_comment = self.line
        return "".join(kept)

    def _header(self, text: str) -> None:
        words = text.split()
        if len(words) != 2 or words[0] != "num_ranks":
            raise SpecError(self._where(), text, "num_ranks and a number")
        self.n_ranks = self._number(words[1], "num_ranks", low=1, high=MOST_RANKS)

    def _begin(self, text: str) -> None:
        head, brace, rest = text.partition("{")
        match = _RANK.match(head.strip())
        if match is None:
            raise SpecError(self._where(), text, "rank r {")
        rank = self._number(match[1], "rank", high=self.n_ranks - 1)
        if rank in self.seen:
            raise SpecError(self._where(what="rank"), rank, f"another rank than on line {self.seen[rank]}")
        self.seen[rank] = self.line
        self.block = _Block(rank=rank, line=self.line, is_open=bool(brace))
        if rest.strip():
            raise SpecError(self._where(), rest.strip(), "statements and } on lines of their own")

    def _statement(self, text: str) -> None:
        assert self.block is not None
        wait = _WAIT.match(text)
        if wait:
            self.block.waits.append((wait[1], wait[3], int(wait[2] == "irequires"), self.line))
            return
        label = _LABEL.match(text)
        if label:
            name, text = label[1], label[2].strip()
            if name in self.block.labels:
                other = int(self.block.rows[self.block.labels[name]][-1])
                raise SpecError(self._where(what="label"), name, f"another label than on line {other}")
            self.block.labels[name] = len(self.block.rows)
        self.block.rows.append(self._operation(text))

    def _operation(self, text: str) -> tuple[int, int, int, int, int, int, int]:
        assert self.block is not None
        calc = _CALC.match(text)
        if calc:
            time = self._number(calc[1], "calc", high=LARGEST // 1000)
            return CALC, time, 0, 0, self._option(calc[2], "cpu"), 0, self.line
        message = _MESSAGE.match(text)
        if message is None or (message[1] == "send") != (message[3] == "to"):
            allowed = (
                "send nb to r, recv nb from r (then tag, cpu, nic in this order), calc n, or a requires b"
            )
            raise SpecError(self._where(), text, allowed)
        kind = SEND if message[1] == "send" else RECV
        if not message[2].endswith("b"):
            raise SpecError(self._where(what=message[1]), message[2], 'bytes, such as "1024b"')
        size = self._number(message[2][:-1], message[1])
        wild = kind == RECV
        peer = self._option(message[4], "rank", wild=wild, high=self.n_ranks - 1)
        if peer == self.block.rank:
            raise SpecError(
                self._where(what=message[1]), peer, f"another rank than {peer}, whose block this is"
            )
        tag = self._option(message[5], "tag", wild=wild)
        return (
            kind,
            size,
            peer,
            tag,
            self._option(message[6], "cpu"),
            self._option(message[7], "nic"),
            self.line,
        )

    def _end(self) -> GoalRank:
        block = self.block
        assert block is not None
        waits = np.empty((len(block.waits), 3), dtype=np.int64)
        for row, (later, earlier, started, line) in enumerate(block.waits):
            for name in (later, earlier):
                if name not in block.labels:
                    raise SpecError(self._where(line, "label"), name, f"a label of rank {block.rank}")
            if later == earlier:
                raise SpecError(self._where(line), later, "another operation to wait for")
            waits[row] = block.labels[later], block.labels[earlier], started
        columns = np.array(block.rows, dtype=np.int64).reshape(-1, 7).T
        self.block = None
        return GoalRank(
            n_ranks=self.n_ranks,
            rank=block.rank,
            line=block.line,
            kind=columns[0],
            size=columns[1],
            peer=columns[2],
            tag=columns[3],
            cpu=columns[4],
            nic=columns[5],
            operation_line=columns[6],
            waits=waits,
        )

    def _option(self, text: str | None, what: str, *, wild: bool = False, high: int = LARGEST) -> int:
        if text is None:
            return 0
        return ANY if wild and text == "-1" else self._number(text, what, high=high)

    def _number(self, text: str, what: str, *, low: int = 0, high: int = LARGEST) -> int:
        number = int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER else low - 1
        if not low <= number <= high:
            raise SpecError(self._where(what=what), text, f"a whole number from {low} to {high}")
        return number

    def _where(self, line: int | None = None, what: str = "") -> str:
        return place(self.file, self.line if line is None else line, what)


def goal_text(n_ranks: int, ranks: Iterator[GoalRank]) -> Iterator[str]:
    """Write blocks as text, piece by piece.

    Parameters
    ----------
    n_ranks : int
    ranks : iterator of GoalRank

    Yields
    ------
    str
    """
    yield f"num_ranks {n_ranks}\n"
    for block in ranks:
        lines = [f"\nrank {block.rank} {{"]
        columns = (block.kind, block.size, block.peer, block.tag, block.cpu, block.nic)
        for number, row in enumerate(zip(*(each.tolist() for each in columns), strict=True), start=1):
            lines.append(f"l{number}: {_operation_text(*row)}")
        for later, earlier, started in block.waits.tolist():
            lines.append(f"l{later + 1} {'irequires' if started else 'requires'} l{earlier + 1}")
        lines.append("}\n")
        yield "\n".join(lines)


def _operation_text(kind: int, size: int, peer: int, tag: int, cpu: int, nic: int) -> str:
    options = "".join(f" {name} {value}" for name, value in (("cpu", cpu), ("nic", nic)) if value)
    if kind == CALC:
        return f"calc {size}{options}"
    verb = f"send {size}b to" if kind == SEND else f"recv {size}b from"
    return f"{verb} {peer} tag {tag}{options}"
