"""MSCCL XML: a collective as the steps of thread blocks, as arrays.

    <algo name proto nchannels nchunksperloop ngpus coll inplace>
      <gpu id i_chunks o_chunks s_chunks>
        <tb id send recv chan>
          <step s type srcbuf srcoff dstbuf dstoff cnt depid deps hasdep/>

A thread block sends to one rank and receives from one rank (-1: none) on a channel, and goes through its
steps in order; a step waits for one of another thread block of its rank (`depid`, `deps`). A newer dialect
writes `<op step type buf off>`, with one place for source and destination, and leaves out counts of 1 and
dependencies.

Source: github.com/microsoft/msccl-tools and github.com/Azure/msccl, `src/graph/xml.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

import numpy as np
import numpy.typing as npt

from fabric.errors import Said, SpecError
from fabric.formats.words import place

__all__ = ["BUFFERS", "COLLECTIVE_NAMES", "STEP_TYPES", "MscclAlgorithm", "parse_msccl"]

STEP_TYPES = ("nop", "s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re")
"""What steps do, by their number."""
BUFFERS = ("i", "o", "s")
"""Input, output, scratch."""

COLLECTIVE_NAMES = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "reduce": "reduce",
    "broadcast": "broadcast",
    "custom": "custom",
}
PROTOCOLS = ("Simple", "LL", "LL128")

MOST = 2**20
DEFAULT_MOST_BYTES = 2**27

SENDS = frozenset({"s", "rcs", "rrs", "rrcs"})
RECEIVES = frozenset({"r", "rcs", "rrs", "rrc", "rrcs"})

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class MscclAlgorithm:
    """An algorithm as its file has it.

    Attributes
    ----------
    file, name, protocol : str
    collective : str
        As `COLLECTIVE_NAMES` calls it here.
    n_ranks, n_channels, n_chunks : int
        Chunks of the vector (`nchunksperloop`).
    in_place : bool
    least_bytes, most_bytes : int
        Sizes for which it is meant.
    buffer_chunks : ndarray of int64 [ranks, 3]
        Chunks of the input, output and scratch buffer of each rank.
    rank_line : ndarray of int64 [ranks]
    block_rank, block_id, block_send, block_receive, block_channel, block_line : ndarray of int64 [blocks]
        Thread blocks, by rank and id; -1: sends, or receives, nothing.
    step_base : ndarray of int64 [blocks + 1]
        Steps of each thread block.
    step_type, step_count, step_line : ndarray of int64 [steps]
    source_buffer, source_offset, destination_buffer, destination_offset : ndarray of int64 [steps]
        Offset -1: none.
    waits_for : ndarray of int64 [steps]
        Step (of all steps) that must be done first; -1: none.
    """

    file: str
    name: str
    protocol: str
    collective: str
    n_ranks: int
    n_channels: int
    n_chunks: int
    in_place: bool
    least_bytes: int
    most_bytes: int
    buffer_chunks: Int64Array
    rank_line: Int64Array
    block_rank: Int64Array
    block_id: Int64Array
    block_send: Int64Array
    block_receive: Int64Array
    block_channel: Int64Array
    block_line: Int64Array
    step_base: Int64Array
    step_type: Int64Array
    step_count: Int64Array
    step_line: Int64Array
    source_buffer: Int64Array
    source_offset: Int64Array
    destination_buffer: Int64Array
    destination_offset: Int64Array
    waits_for: Int64Array


@dataclass
class _Element:
    name: str
    line: int
    attributes: dict[str, str]
    children: list[_Element] = field(default_factory=list)


def parse_msccl(file: str | Path) -> MscclAlgorithm:
    """Read an algorithm.

    Parameters
    ----------
    file : str or Path

    Returns
    -------
    MscclAlgorithm
        Consistent in itself; whether it does what it says is not checked here.

    Raises
    ------
    SpecError
        Naming file, line and cause.
    """
    name = str(file)
    root = _elements(name)
    if root.name != "algo":
        raise SpecError(place(name, root.line), root.name, "an algo element")
    read = _Reader(name)
    ranks = read.whole(root, "ngpus", low=1)
    chunks = read.whole(root, "nchunksperloop", low=1)
    channels = read.whole(root, "nchannels", low=1, high=256)
    collective = read.choice(root, "coll", tuple(COLLECTIVE_NAMES))
    protocol = read.choice(root, "proto", PROTOCOLS)
    gpus = read.numbered(root, "gpu", count=ranks)
    buffers = np.array(
        [[read.whole(gpu, f"{each}_chunks", high=MOST) for each in BUFFERS] for gpu in gpus], dtype=np.int64
    )
    in_place = bool(read.whole(root, "inplace", high=1))
    blocks, steps, waits = _blocks(read, gpus, buffers, channels=channels, in_place=in_place)
    block = np.array(blocks, dtype=np.int64).reshape(-1, 7).T
    step = np.array(steps, dtype=np.int64).reshape(-1, 7).T
    return MscclAlgorithm(
        file=name,
        name=root.attributes.get("name", Path(name).stem),
        protocol=protocol,
        collective=COLLECTIVE_NAMES[collective],
        n_ranks=ranks,
        n_channels=channels,
        n_chunks=chunks,
        in_place=in_place,
        least_bytes=read.whole(root, "minBytes", default=0),
        most_bytes=read.whole(root, "maxBytes", default=DEFAULT_MOST_BYTES),
        buffer_chunks=buffers,
        rank_line=np.array([gpu.line for gpu in gpus], dtype=np.int64),
        block_rank=block[0],
        block_id=block[1],
        block_send=block[2],
        block_receive=block[3],
        block_channel=block[4],
        block_line=block[5],
        step_base=np.concatenate([[0], np.cumsum(block[6])]).astype(np.int64),
        step_type=step[0],
        source_buffer=step[1],
        source_offset=step[2],
        destination_buffer=step[3],
        destination_offset=step[4],
        step_count=step[5],
        step_line=step[6],
        waits_for=np.array(waits, dtype=np.int64),
    )


def _elements(name: str) -> _Element:
    """The elements of a file with their lines; no entities, no document types."""
    parser = expat.ParserCreate()
    top = _Element("", 0, {})
    stack = [top]

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = _Element(tag, parser.CurrentLineNumber, attributes)
        stack[-1].children.append(element)
        stack.append(element)

    def doctype(*_: object) -> None:
        raise SpecError(place(name, parser.CurrentLineNumber), Said("a DOCTYPE"), "elements alone")

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: stack.pop()
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(Path(name).read_bytes(), True)
    except FileNotFoundError:
        raise SpecError(name, Said("nothing"), "an existing file") from None
    except OSError as error:
        raise SpecError(name, error.strerror, "a file that can be read") from None
    except expat.ExpatError as error:
        raise SpecError(place(name, error.lineno), Said(expat.ErrorString(error.code)), "XML") from None
    return top.children[0]


class _Reader:
    """Attributes of elements, or the error that names them."""

    def __init__(self, file: str) -> None:
        self.file = file

    def where(self, element: _Element, what: str = "") -> str:
        return place(self.file, element.line, what)

    def whole(
        self, element: _Element, key: str, *, low: int = 0, high: int = 2**62, default: int | None = None
    ) -> int:
        """A whole number; the default where the attribute is missing."""
        text = element.attributes.get(key)
        if text is None and default is not None:
            return default
        digits = (text or "").removeprefix("-")
        if not (
            digits.isascii() and digits.isdigit() and len(digits) < 20 and low <= int(text or "") <= high
        ):
            shown = Said("nothing") if text is None else text
            raise SpecError(self.where(element, key), shown, f"a whole number from {low} to {high}")
        return int(text or "")

    def choice(self, element: _Element, key: str, names: tuple[str, ...]) -> str:
        """One of some words."""
        text = element.attributes.get(key, "")
        if text not in names:
            raise SpecError(self.where(element, key), text, f"one of {', '.join(names)}")
        return text

    def numbered(self, element: _Element, name: str, *, count: int | None = None) -> list[_Element]:
        """Children of a name, by ids 0, 1, 2, ..., each once."""
        found: dict[int, _Element] = {}
        for child in element.children:
            if child.name != name:
                raise SpecError(self.where(child), child.name, f"{name} in {element.name}")
            number = self.whole(child, "id", high=MOST)
            if number in found:
                raise SpecError(
                    self.where(child, "id"), number, f"another id than on line {found[number].line}"
                )
            found[number] = child
        wanted = len(found) if count is None else count
        missing = next((each for each in range(wanted) if each not in found), None)
        if missing is not None or len(found) != wanted:
            what = f"{len(found)} of {name}" if missing is None else f"no {name} {missing}"
            raise SpecError(self.where(element), Said(what), f"{name} 0 to {wanted - 1}")
        return [found[number] for number in range(wanted)]


_Row = tuple[int, int, int, int, int, int, int]


def _blocks(
    read: _Reader, gpus: list[_Element], buffers: Int64Array, *, channels: int, in_place: bool
) -> tuple[list[_Row], list[_Row], list[int]]:
    """Thread blocks, steps, and the step that each step waits for."""
    blocks: list[_Row] = []
    steps: list[_Row] = []
    waits: list[int] = []
    for rank, gpu in enumerate(gpus):
        own = read.numbered(gpu, "tb")
        bodies = [_ordered(read, block) for block in own]
        base = [len(steps)]
        for body in bodies:
            base.append(base[-1] + len(body))
        for number, (block, body) in enumerate(zip(own, bodies, strict=True)):
            peers = [_peer(read, block, key, rank=rank, ranks=len(gpus)) for key in ("send", "recv")]
            channel = read.whole(block, "chan", high=channels - 1)
            blocks.append((rank, number, peers[0], peers[1], channel, block.line, len(body)))
            for step in body:
                steps.append(_step(read, step, peers, buffers[rank], in_place=in_place))
                waits.append(_wait(read, step, number, base))
    return blocks, steps, waits


def _ordered(read: _Reader, block: _Element) -> list[_Element]:
    """Steps of a thread block, which are numbered from 0 in order."""
    for number, step in enumerate(block.children):
        if step.name not in ("step", "op"):
            raise SpecError(read.where(step), step.name, "step or op in tb")
        key = "s" if "s" in step.attributes else "step"
        if read.whole(step, key) != number:
            raise SpecError(read.where(step, key), step.attributes[key], f"{number}, steps in order")
    return block.children


def _peer(read: _Reader, block: _Element, key: str, *, rank: int, ranks: int) -> int:
    peer = read.whole(block, key, low=-1, high=ranks - 1)
    if peer == rank:
        raise SpecError(read.where(block, key), peer, f"-1 or another rank than {rank}")
    return peer


def _step(read: _Reader, step: _Element, peers: list[int], chunks: Int64Array, *, in_place: bool) -> _Row:
    kind = read.choice(step, "type", STEP_TYPES)
    sends, receives = kind in SENDS, kind in RECEIVES
    for there, peer, key in ((sends, peers[0], "send"), (receives, peers[1], "recv")):
        if there and peer < 0:
            raise SpecError(read.where(step, "type"), kind, f"a thread block with a rank to {key} to do it")
    count = read.whole(step, "cnt", high=MOST, default=1)
    if count == 0 and kind != "nop":
        raise SpecError(read.where(step, "cnt"), 0, "at least one chunk")
    places = []
    needed = {
        "src": kind in ("s", "rrs", "rrc", "rrcs", "cpy", "re"),
        "dst": kind in ("r", "rcs", "rrc", "rrcs", "cpy", "re"),
    }
    for side in ("src", "dst"):
        short = "buf" in step.attributes
        buffer_key, offset_key = ("buf", "off") if short else (f"{side}buf", f"{side}off")
        if kind == "nop" or (not needed[side] and offset_key not in step.attributes):
            places += [0, -1]
            continue
        buffer = BUFFERS.index(read.choice(step, buffer_key, BUFFERS))
        offset = read.whole(step, offset_key, low=0 if needed[side] else -1, high=MOST)
        most = int(max(chunks[0], chunks[1]) if in_place and buffer < 2 else chunks[buffer])
        if needed[side] and offset + count > most:
            allowed = f"chunks below {most} of buffer {BUFFERS[buffer]}"
            raise SpecError(read.where(step, offset_key), offset + count - 1, allowed)
        places += [buffer, offset]
    return STEP_TYPES.index(kind), places[0], places[1], places[2], places[3], count, step.line


def _wait(read: _Reader, step: _Element, block: int, base: list[int]) -> int:
    other = read.whole(step, "depid", low=-1, high=len(base) - 2, default=-1)
    if other < 0:
        return -1
    steps = base[other + 1] - base[other]
    number = read.whole(step, "deps", low=0, high=steps - 1)
    if other == block:
        raise SpecError(read.where(step, "depid"), other, "another thread block")
    return base[other] + number
