"""What parsers give back: networks and flows as arrays, and remarks about what was left out.

Nodes and hosts of a file keep their numbers as names ("host4", "switch11"), so that a topology and a
list of flows that name the same hosts fit each other whatever their order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

__all__ = ["FailedLink", "FlowData", "NetworkData", "Remark"]

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Remark:
    """Something in a file that was not taken over as it stands.

    Attributes
    ----------
    file : str
    line : int
        From 1; 0: the file as a whole.
    what : str
        The key, column or line.
    reason : str
        Why, and what holds instead.
    """

    file: str
    line: int
    what: str
    reason: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place} {self.what}: {self.reason}"


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkData:
    """Nodes and full-duplex cables of a file.

    Attributes
    ----------
    names : tuple of str
        Hosts first, then switches.
    n_hosts : int
    tier : ndarray of int64 [nodes]
        0 host, 1 leaf and so on, 9 scale-up; -1: the file does not say.
    link_a, link_b : ndarray of int64 [links]
        Positions in `names`, in the order of the file.
    link_rate_bps, link_delay_ps : ndarray of int64 [links]
    link_loss : ndarray of float64 [links]
        Per frame; 0 where the file leaves it to a default.
    """

    names: tuple[str, ...]
    n_hosts: int
    tier: Int64Array
    link_a: Int64Array
    link_b: Int64Array
    link_rate_bps: Int64Array
    link_delay_ps: Int64Array
    link_loss: npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class FailedLink:
    """A link that is down from the beginning.

    Attributes
    ----------
    where : str
        File and line.
    tier : int
        Of the switch: 1 leaf, 2 spine, 3 core.
    switch, link : int
        Number of the switch in its tier; of the link among those up from it (of a core switch: down).
    """

    where: str
    tier: int
    switch: int
    link: int


@dataclass(frozen=True, kw_only=True, eq=False)
class FlowData:
    """Flows of a file, in its order.

    Attributes
    ----------
    source, destination : ndarray of int64 [flows]
        Numbers of hosts as the file has them: host n is called "host<n>".
    size_bytes, start_ps : ndarray of int64 [flows]
    group : ndarray of int64 [flows]
        Priority group; 0 where the format has none.
    line : ndarray of int64 [flows]
        Where each stands.
    names : tuple of str, or None
        "" for flows without a name.
    waits : tuple of (int, tuple of str)
        A flow, and the names of the flows that must have ended before it starts.
    udp_port : int or None
        Destination port of all flows; None where they have none, or several.
    failures : tuple of FailedLink
        Links that a file of flows says are out of order.
    """

    source: Int64Array
    destination: Int64Array
    size_bytes: Int64Array
    start_ps: Int64Array
    group: Int64Array
    line: Int64Array
    names: tuple[str, ...] | None = None
    waits: tuple[tuple[int, tuple[str, ...]], ...] = field(default=())
    udp_port: int | None = None
    failures: tuple[FailedLink, ...] = ()
