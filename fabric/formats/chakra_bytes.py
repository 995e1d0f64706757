"""Chakra execution traces as bytes: what `fabric.formats.chakra` reads, written.

Attributes stand in the fields that Chakra's own feeder reads: type and size as int64, ranks and tags
as int32, is_cpu_op as bool, texts as string. A chosen attribute is written although it is zero; other
zeros are not, as protocol buffers have it. Source as in `fabric.formats.chakra`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = ["LARGEST_TAG", "chakra_record", "metadata_record", "node_record"]

VERSION = "0.0.4"
LARGEST_TAG = 2**31 - 1
"""Ranks and tags are int32."""

_VARINT, _BYTES = 0, 2
_INT32, _INT64, _UINT64, _BOOL, _STRING = 7, 9, 13, 27, 29
_FIELDS = {
    **dict.fromkeys(("comm_src", "comm_dst", "comm_tag"), _INT32),
    **dict.fromkeys(("comm_type", "comm_size", "num_ops"), _INT64),
    "duration_ps": _UINT64,
    **dict.fromkeys(("is_cpu_op", "eager", "concurrent"), _BOOL),
    **dict.fromkeys(("pg_name", "algorithm"), _STRING),
}


def metadata_record() -> bytes:
    """Return the record that begins a trace.

    Examples
    --------
    >>> metadata_record().hex()
    '070a05302e302e34'
    """
    return chakra_record(_text(1, VERSION))


def node_record(
    number: int,
    *,
    name: str,
    kind: int,
    waits: Iterable[int] = (),
    duration_us: int = 0,
    attributes: Mapping[str, int | str],
) -> bytes:
    """Return the record of a node.

    Parameters
    ----------
    number : int
        From 0, below 2^64.
    name : str
    kind : int
        COMPUTE, SEND, RECEIVE or COLLECTIVE of `fabric.formats.chakra`.
    waits : iterable of int
        Numbers of the nodes that it waits for.
    duration_us : int
    attributes : mapping of str to int or str

    Returns
    -------
    bytes

    Examples
    --------
    >>> said = {"is_cpu_op": 0, "comm_type": 2, "comm_size": 4096}
    >>> node_record(0, name="ag", kind=7, attributes=said).hex()[:22]
    '35120261671807520e0a09'
    """
    waits = b"".join(map(_varint, waits))
    parts = [_number(1, number) if number else b"", _text(2, name), _number(3, kind)]
    parts += [_bytes(5, waits)] if waits else []
    parts += [_number(7, duration_us)] if duration_us else []
    parts += [_bytes(10, _text(1, key) + _value(key, value)) for key, value in attributes.items()]
    return chakra_record(b"".join(parts))


def chakra_record(content: bytes) -> bytes:
    """Return a message with its length before it."""
    return _varint(len(content)) + content


def _value(key: str, value: int | str) -> bytes:
    field = _FIELDS[key]
    return _text(field, value) if isinstance(value, str) else _number(field, value)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(content)) + content
