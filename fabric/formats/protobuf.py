"""The wire format of protocol buffers, as a reader needs it: fields of messages with their offsets.

A message is a run of fields, each a key (number * 8 + type) and a value: 0 a varint, 1 eight bytes, 2 a
length and so many bytes, 5 four bytes. Groups (3, 4) are long gone. Source:
protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from fabric.errors import Said, SpecError

__all__ = ["BYTES", "FIXED32", "FIXED64", "VARINT", "Field", "Wire", "floating", "signed", "zigzag"]

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
LONGEST_VARINT = 10


class Field(NamedTuple):
    """One field of a message.

    Attributes
    ----------
    number, type : int
    value : int
        Of a varint, and of four or eight bytes as an unsigned number.
    begin, end : int
        Offsets of the content.
    """

    number: int
    type: int
    value: int
    begin: int
    end: int


class Wire:
    """Bytes of a file.

    Parameters
    ----------
    file : str
        Its name, for errors.
    data : bytes
    """

    def __init__(self, file: str, data: bytes) -> None:
        self.file = file
        self.data = data

    def refuse(self, offset: int, found: str, allowed: str) -> SpecError:
        """Return the error about what stands at an offset."""
        return SpecError(f"{self.file}: byte {offset}", Said(found), allowed)

    def varint(self, offset: int, end: int) -> tuple[int, int]:
        """Return the number at an offset, and the offset behind it."""
        if offset < end and self.data[offset] < 0x80:
            return self.data[offset], offset + 1
        value = 0
        for place in range(LONGEST_VARINT):
            if offset + place >= end:
                raise self.refuse(offset, "the end in the middle of a number", "a whole varint")
            byte = self.data[offset + place]
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                if value >= 2**64:
                    break
                return value, offset + place + 1
        raise self.refuse(offset, "a number of more than 64 bits", "a varint of at most 64 bits")

    def fields(self, begin: int, end: int) -> Iterator[Field]:
        """Yield the fields of the message between two offsets."""
        offset = begin
        while offset < end:
            key, after = self.varint(offset, end)
            number, kind = key >> 3, key & 7
            if number == 0:
                raise self.refuse(offset, "field 0", "a field number from 1 on")
            if kind == VARINT:
                value, stop = self.varint(after, end)
                yield Field(number, kind, value, after, stop)
            elif kind in (FIXED32, FIXED64):
                stop = after + (4 if kind == FIXED32 else 8)
                self._whole(offset, stop, end)
                yield Field(number, kind, int.from_bytes(self.data[after:stop], "little"), after, stop)
            elif kind == BYTES:
                length, first = self.varint(after, end)
                stop = first + length
                self._whole(offset, stop, end)
                yield Field(number, kind, length, first, stop)
            else:
                raise self.refuse(offset, f"wire type {kind}", "0, 1, 2 or 5")
            offset = stop

    def text(self, field: Field) -> str:
        """Return a field as text.

        Raises
        ------
        SpecError
            If it is none.
        """
        self.expect(field, BYTES)
        try:
            return self.data[field.begin : field.end].decode()
        except UnicodeDecodeError:
            raise self.refuse(field.begin, "bytes that are no UTF-8", "text in UTF-8") from None

    def expect(self, field: Field, kind: int) -> None:
        """Refuse a field of another wire type."""
        if field.type != kind:
            where = f"wire type {field.type} of field {field.number}"
            raise self.refuse(field.begin, where, f"wire type {kind}")

    def numbers(self, field: Field) -> list[int]:
        """Return the varints of a repeated field, packed or one by itself."""
        if field.type == VARINT:
            return [field.value]
        self.expect(field, BYTES)
        found, offset = [], field.begin
        while offset < field.end:
            value, offset = self.varint(offset, field.end)
            found.append(value)
        return found

    def _whole(self, offset: int, stop: int, end: int) -> None:
        if stop > end:
            raise self.refuse(offset, f"a field that ends at byte {stop}", f"its end by byte {end}")


def signed(value: int, *, bits: int = 64) -> int:
    """Return an unsigned number as the two's complement that it stands for."""
    value &= 2**bits - 1
    return value - 2**bits if value >= 2 ** (bits - 1) else value


def zigzag(value: int) -> int:
    """Return what a number of a "sint" field stands for: 0, -1, 1, -2, ..."""
    return (value >> 1) ^ -(value & 1)


def floating(value: int, *, kind: int) -> float:
    """Return four or eight bytes as the number that they stand for."""
    code, size = ("<f", 4) if kind == FIXED32 else ("<d", 8)
    return float(struct.unpack(code, value.to_bytes(size, "little"))[0])
