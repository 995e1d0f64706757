"""Addresses and ports of frames, as far as switches hash them.

A frame has those of its flow, source first; what answers it has both swapped. The entropies of a flow
that is spread over several paths are source ports that count up from its own.
"""

from __future__ import annotations

from fabric.lowered import Lowered

from .frame import DATA, Frame
from .rng import entropy_number

__all__ = ["Sockets"]

PORT_MASK = 0xFFFF


class Sockets:
    """The table of all flows; empty where nothing hashes them."""

    __slots__ = ("_address", "_destination", "_path_hash", "_ports", "_source")

    def __init__(self, lowered: Lowered) -> None:
        self._address: list[int] = lowered.host_address.tolist()
        self._ports: list[int] = lowered.flow_ports.tolist()
        self._source: list[int] = lowered.flow_source.tolist()
        self._destination: list[int] = lowered.flow_destination.tolist()
        self._path_hash: list[int] = lowered.flow_hash.tolist()

    def words_of(self, frame: Frame) -> tuple[int, int, int]:
        """Source and destination address; source port, and destination port in the upper half."""
        flow = frame.flow
        source, destination = self._address[self._source[flow]], self._address[self._destination[flow]]
        entropy = entropy_number(self._path_hash[flow], frame.path_hash)
        first, second = self._ports[flow] + entropy & PORT_MASK, self._ports[flow] >> 16
        if frame.kind == DATA:
            return source, destination, first | second << 16
        return destination, source, second | first << 16
