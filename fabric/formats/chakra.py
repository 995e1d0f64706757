"""Chakra execution traces: what one rank computes, sends and takes part in, as MLCommons' tools write it.

A file (`PREFIX.RANK.et`) is a stream of records, each a varint length and a protobuf message:
GlobalMetadata, then nodes. All of it may be gzipped, whatever its name. Nodes are in no order and their
numbers are any; an attribute's integer may come in any width. What a node does is in its type, not in
`comm_type`, which converted collectives use otherwise. Groups of ranks are a JSON file beside the traces;
no group, "" or "0" is all ranks.

Sizes are as in the file: an all-gather's is the part of one rank, and STAGE counts elements.

Source: github.com/mlcommons/chakra, `schema/protobuf/et_def.proto`; github.com/astra-sim/astra-sim,
`extern/graph_frontend`.
"""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fabric.errors import Said, SpecError
from fabric.formats.protobuf import BYTES, FIXED32, FIXED64, VARINT, Field, Wire, floating, signed, zigzag

__all__ = [
    "COLLECTIVE",
    "COMM_TYPES",
    "COMPUTE",
    "RECEIVE",
    "SEND",
    "ChakraTrace",
    "read_chakra",
    "read_chakra_groups",
]

INVALID, METADATA, MEMORY_LOAD, MEMORY_STORE, COMPUTE, SEND, RECEIVE, COLLECTIVE = range(8)
STORAGE, BATCH, CHECKPOINT = 8, 9, 10
"""Types of nodes."""

COMM_TYPES = (
    *("all_reduce", "reduce", "all_gather", "gather", "scatter", "broadcast"),
    *("all_to_all", "reduce_scatter", "reduce_scatter_block", "barrier"),
)
"""Names of the values of `comm_type`."""

ABSENT = -1
"""An attribute that is not there."""

Int64Array = npt.NDArray[np.int64]

_GZIP = b"\x1f\x8b"
_INTEGERS = {7: 32, 9: 64, 11: 0, 13: 0}
_ZIGZAG = (15, 17)
_FIXED = {19: 0, 21: 0, 23: 32, 25: 64}
_NUMBERS = (
    *("comm_type", "comm_size", "comm_src", "comm_dst", "comm_tag", "num_ops", "tensor_size"),
    *("duration_ps", "eager", "concurrent"),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class ChakraTrace:
    """Nodes of one file, in its order.

    Attributes
    ----------
    file, version : str
        The version is "" where the file has none.
    offset : ndarray of int64 [nodes]
        Where each stands, in the content if the file is gzipped.
    number : ndarray of uint64 [nodes]
    kind : ndarray of int64 [nodes]
        COMPUTE, SEND, RECEIVE, COLLECTIVE or another type of the format.
    name, group : tuple of str
        "" where there is none.
    algorithm : tuple of str
        Of a collective, as `fabric` writes it ("ring"); "" elsewhere.
    duration_us : ndarray of int64 [nodes]
    comm_type : ndarray of int64 [nodes]
        Index into `COMM_TYPES`; ABSENT where it is not written, and on nodes that are no collectives.
    comm_size, comm_src, comm_dst, comm_tag, num_ops, tensor_size : ndarray of int64 [nodes]
        ABSENT where not written.
    duration_ps, eager, concurrent : ndarray of int64 [nodes]
        Exact time, whether a rank is done when it has sent, whether it computes this beside all else (0 or
        1), as `fabric` writes them; ABSENT elsewhere.
    on_cpu : ndarray of bool [nodes]
    wait_node, wait_for : ndarray of int64 [waits]
        Node `wait_node[k]` waits for node `wait_for[k]`, by their places here; data and control alike.
    """

    file: str
    version: str
    offset: Int64Array
    number: npt.NDArray[np.uint64]
    kind: Int64Array
    name: tuple[str, ...]
    group: tuple[str, ...]
    algorithm: tuple[str, ...]
    duration_us: Int64Array
    comm_type: Int64Array
    comm_size: Int64Array
    comm_src: Int64Array
    comm_dst: Int64Array
    comm_tag: Int64Array
    num_ops: Int64Array
    tensor_size: Int64Array
    duration_ps: Int64Array
    eager: Int64Array
    concurrent: Int64Array
    on_cpu: npt.NDArray[np.bool_]
    wait_node: Int64Array
    wait_for: Int64Array

    def __len__(self) -> int:
        return len(self.kind)

    def where(self, node: int) -> str:
        """Return how errors name a node, by its place here."""
        return f"{self.file}: byte {self.offset[node]} (node {self.number[node]})"


@dataclass
class _Node:
    offset: int
    number: int = 0
    kind: int = 0
    name: str = ""
    duration_us: int = 0
    waits: tuple[int, ...] = ()


def read_chakra(file: str | Path) -> ChakraTrace:
    """Read a trace.

    Parameters
    ----------
    file : str or Path

    Returns
    -------
    ChakraTrace

    Raises
    ------
    SpecError
        Naming the offset (in the content, if the file is gzipped) of what is damaged or missing.
    """
    wire = Wire(str(file), _content(file))
    version, nodes, attributes = "", [], []
    offset, end = 0, len(wire.data)
    if not end:
        raise wire.refuse(0, "nothing", "an execution trace")
    while offset < end:
        length, begin = wire.varint(offset, end)
        if begin + length > end:
            allowed = f"at most the {end - begin} that are left"
            raise wire.refuse(offset, f"a record of {length} bytes", allowed)
        if offset == 0:
            version = _version(wire, begin, begin + length)
        elif length == 0:
            break
        else:
            node, found = _node(wire, begin, begin + length)
            nodes.append(node)
            attributes.append(found)
        offset = begin + length
    return _trace(wire, version, nodes, attributes)


def read_chakra_groups(file: str | Path) -> dict[str, tuple[int, ...]]:
    """Read the ranks of every group.

    Raises
    ------
    SpecError
        If the file is not JSON, or a group not a list of different ranks.
    """
    try:
        document = json.loads(_content(file))
    except (ValueError, RecursionError) as error:
        raise SpecError(str(file), Said(str(error)), "JSON") from None
    if not isinstance(document, dict):
        raise SpecError(str(file), Said(type(document).__name__), 'groups, such as {"1": [0, 1]}')
    for name, ranks in document.items():
        good = isinstance(ranks, list) and ranks and all(type(rank) is int and rank >= 0 for rank in ranks)
        if not good or len(set(ranks)) < len(ranks):
            raise SpecError(f"{file}: group {name!r}", ranks, "a list of different ranks")
    return {name: tuple(ranks) for name, ranks in document.items()}


def _content(file: str | Path) -> bytes:
    try:
        data = Path(file).read_bytes()
        return gzip.decompress(data) if data.startswith(_GZIP) else data
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise SpecError(str(file), Said(str(error)), "a whole gzip file") from None
    except OSError as error:
        raise SpecError(str(file), Said(error.strerror or "nothing"), "a file that can be read") from None


def _version(wire: Wire, begin: int, end: int) -> str:
    return next((wire.text(field) for field in wire.fields(begin, end) if field.number == 1), "")


def _node(wire: Wire, begin: int, end: int) -> tuple[_Node, dict[str, Any]]:
    node, attributes = _Node(begin), {}
    for field in wire.fields(begin, end):
        if field.number in (1, 3, 7):
            wire.expect(field, VARINT)
            setattr(node, {1: "number", 3: "kind", 7: "duration_us"}[field.number], field.value)
        elif field.number == 2:
            node.name = wire.text(field)
        elif field.number in (4, 5):
            node.waits += tuple(wire.numbers(field))
        elif field.number == 10:
            wire.expect(field, BYTES)
            name, value = _attribute(wire, field.begin, field.end)
            if value is not None:
                attributes[name] = value
    if node.kind > CHECKPOINT:
        raise wire.refuse(begin, f"node type {node.kind}", f"0 to {CHECKPOINT}")
    if node.duration_us >= 2**62:
        raise wire.refuse(begin, f"a duration of {node.duration_us} us", "less than 2^62")
    return node, attributes


def _attribute(wire: Wire, begin: int, end: int) -> tuple[str, Any]:
    """Name and value of an attribute; None where it has no value that a node needs (lists among them)."""
    name, value = "", None
    for field in wire.fields(begin, end):
        if field.number == 1:
            name = wire.text(field)
        elif field.number != 2:
            found = _value(wire, field)
            value = value if found is None else found
    return name, value


def _value(wire: Wire, field: Field) -> int | float | str | None:
    number = field.number
    if number in _INTEGERS:
        wire.expect(field, VARINT)
        return signed(field.value) if _INTEGERS[number] else field.value
    if number in _ZIGZAG:
        wire.expect(field, VARINT)
        return zigzag(field.value)
    if number in _FIXED:
        wire.expect(field, FIXED32 if number in (19, 23) else FIXED64)
        return signed(field.value, bits=_FIXED[number]) if _FIXED[number] else field.value
    if number == 27:
        wire.expect(field, VARINT)
        return int(field.value != 0)
    if number in (3, 5):
        wire.expect(field, FIXED64 if number == 3 else FIXED32)
        return floating(field.value, kind=field.type)
    return wire.text(field) if number == 29 else None


def _trace(wire: Wire, version: str, nodes: list[_Node], attributes: list[dict[str, Any]]) -> ChakraTrace:
    place: dict[int, int] = {}
    for k, node in enumerate(nodes):
        if node.number in place:
            raise wire.refuse(node.offset, f"a second node {node.number}", "a number for each node")
        place[node.number] = k
    waits = []
    for k, node in enumerate(nodes):
        for number in dict.fromkeys(node.waits):
            if number not in place or number == node.number:
                shown = f"node {node.number} after {number}"
                raise wire.refuse(node.offset, shown, "another node of the file")
            waits.append((k, place[number]))
    pairs = np.array(waits, dtype=np.int64).reshape(-1, 2)
    numbers = {name: _numbers(wire, nodes, attributes, name) for name in _NUMBERS}
    kind = np.array([node.kind for node in nodes], dtype=np.int64)
    numbers["comm_type"] = np.where(kind == COLLECTIVE, numbers["comm_type"], ABSENT)
    wrong = np.flatnonzero(numbers["comm_type"] >= len(COMM_TYPES))
    if wrong.size:
        shown = f"comm_type {numbers['comm_type'][wrong[0]]}"
        raise wire.refuse(nodes[wrong[0]].offset, shown, f"0 to {len(COMM_TYPES) - 1}")
    return ChakraTrace(
        file=wire.file,
        version=version,
        offset=np.array([node.offset for node in nodes], dtype=np.int64),
        number=np.array([node.number for node in nodes], dtype=np.uint64),
        kind=kind,
        name=tuple(node.name for node in nodes),
        group=tuple(str(each.get("pg_name", "")) for each in attributes),
        algorithm=tuple(str(each.get("algorithm", "")) for each in attributes),
        duration_us=np.array([node.duration_us for node in nodes], dtype=np.int64),
        on_cpu=np.array([bool(each.get("is_cpu_op", 0)) for each in attributes], dtype=np.bool_),
        wait_node=pairs[:, 0],
        wait_for=pairs[:, 1],
        **numbers,
    )


def _numbers(wire: Wire, nodes: list[_Node], attributes: list[dict[str, Any]], name: str) -> Int64Array:
    values = np.full(len(nodes), ABSENT, dtype=np.int64)
    for k, found in enumerate(attributes):
        value = found.get(name)
        if value is None:
            continue
        if not isinstance(value, int) or not 0 <= value < 2**62:
            raise wire.refuse(nodes[k].offset, f"{name} {value!r}", "a whole number from 0, below 2^62")
        values[k] = value
    return values
