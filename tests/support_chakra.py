"""Chakra traces by hand: protocol buffers as their documentation has them, apart from reader and writer."""

from __future__ import annotations

import struct
from pathlib import Path

__all__ = [
    "METADATA",
    "attribute",
    "collective",
    "node",
    "put",
    "receive",
    "record",
    "saved",
    "send",
    "traces",
    "varint",
]

COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7


def varint(value: int) -> bytes:
    value %= 2**64
    out = b""
    while value >= 0x80:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def put(number: int, value: int | bytes | str | float) -> bytes:
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def attribute(name: str, value: int | str | float, *, arm: int = 9) -> bytes:
    arm = {str: 29, float: 3}.get(type(value), arm)
    return put(10, put(1, name) + put(arm, value))


def record(*parts: bytes) -> bytes:
    content = b"".join(parts)
    return varint(len(content)) + content


def node(number: int, kind: int, *parts: bytes, name: str = "n") -> bytes:
    numbered = put(1, number) if number else b""
    return record(numbered, put(2, name), put(3, kind), *parts)


METADATA = record(put(1, "0.0.4"))


def send(number: int, to: int, size: int, *parts: bytes, tag: int = 0) -> bytes:
    """A send of `size` bytes."""
    said = (attribute("comm_dst", to, arm=7), attribute("comm_size", size), attribute("comm_tag", tag, arm=7))
    return node(number, SEND, *said, *parts)


def receive(number: int, of: int, size: int, *parts: bytes, tag: int = 0) -> bytes:
    """The receive of `size` bytes."""
    said = (attribute("comm_src", of, arm=7), attribute("comm_size", size), attribute("comm_tag", tag, arm=7))
    return node(number, RECEIVE, *said, *parts)


def collective(number: int, kind: int, size: int, *parts: bytes, group: str = "", name: str = "c") -> bytes:
    """A node of a collective, by the number of its `comm_type`."""
    said = (attribute("comm_type", kind), attribute("comm_size", size))
    named = (attribute("pg_name", group),) if group else ()
    return node(number, COLLECTIVE, *said, *named, *parts, name=name)


def traces(folder: Path, *by_rank: bytes, groups: str | None = None, prefix: str = "w") -> Path:
    """Write the nodes of every rank and, if there are any, groups; return the first file."""
    for rank, nodes in enumerate(by_rank):
        (folder / f"{prefix}.{rank}.et").write_bytes(METADATA + nodes)
    if groups is not None:
        (folder / "comm_groups.json").write_text(groups)
    return folder / f"{prefix}.0.et"


def saved(folder: Path, data: bytes) -> Path:
    """Write one trace as it is."""
    file = folder / "w.0.et"
    file.write_bytes(data)
    return file
