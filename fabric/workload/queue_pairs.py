"""Messages split over several queue pairs: a flow for each part.

A message of F frames over k queue pairs becomes k flows (fewer if it has fewer frames) of whole frames, as
equal as they can be, the longer ones first; the last one ends with the message's last, shorter frame. Each
has a path hash, window and rate of its own, as queue pairs do; together they are done when the last is.
Flows that wait for the message wait for all of its parts. A part is called "incast#3/0".
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fabric.spec.transport import Transport
from fabric.workload.flow_table import FlowTable, numbered_names

__all__ = ["split_over_queue_pairs"]

Int64Array = npt.NDArray[np.int64]


def split_over_queue_pairs(flows: FlowTable, transport: Transport) -> FlowTable:
    """Return the flows with each message split as its transport says.

    Parameters
    ----------
    flows : FlowTable
    transport : Transport
        Of patterns that have none of their own.

    Returns
    -------
    FlowTable
        The same table if no message is split.

    Examples
    --------
    >>> flows = FlowTable.from_arrays([0, 1], [1, 2], size_bytes=[10_000, 1500], after=[(1, 0)])
    >>> split = split_over_queue_pairs(flows, Transport(payload=1000, queue_pairs=4))
    >>> split.size_bytes.tolist(), split.names[:2]
    ([3000, 3000, 2000, 2000, 1000, 500], ('flows#0/0', 'flows#0/1'))
    >>> len(split.after_flow)
    8
    """
    used = [own or transport for own in flows.transport]
    pairs = np.array([one.queue_pairs for one in used], dtype=np.int64)[flows.pattern]
    if not len(flows) or pairs.max() == 1:
        return flows
    payload = np.array([int(one.payload) for one in used], dtype=np.int64)[flows.pattern]
    frames = -(-flows.size_bytes // payload)
    parts = np.minimum(pairs, frames)
    first = np.concatenate([[0], np.cumsum(parts)])
    message = np.repeat(np.arange(len(flows)), parts)
    number = np.arange(first[-1]) - first[message]
    part_frames = frames[message] // parts[message] + (number < frames[message] % parts[message])
    size_bytes = part_frames * payload[message]
    size_bytes[first[1:] - 1] -= frames * payload - flows.size_bytes
    whole = numbered_names(flows)
    names = tuple(
        f"{whole[flow]}/{part}" if parts[flow] > 1 else whole[flow]
        for flow, part in zip(message.tolist(), number.tolist(), strict=True)
    )
    split = replace(
        flows,
        source=flows.source[message],
        destination=flows.destination[message],
        size_bytes=size_bytes,
        start_ps=flows.start_ps[message],
        pattern=flows.pattern[message],
        names=names,
        after_flow=np.zeros(0, dtype=np.uint32),
        after_predecessor=np.zeros(0, dtype=np.uint32),
    )
    waits = _waits(flows, first=first, parts=parts)
    return split.with_waits(waits) if len(waits) else split


def _waits(flows: FlowTable, *, first: Int64Array, parts: Int64Array) -> Int64Array:
    """Every part of a flow that waits, with every part of what it waits for."""
    rows = [
        np.stack(
            np.meshgrid(
                np.arange(first[flow], first[flow] + parts[flow]),
                np.arange(first[before], first[before] + parts[before]),
                indexing="ij",
            ),
            axis=-1,
        ).reshape(-1, 2)
        for flow, before in zip(flows.after_flow.tolist(), flows.after_predecessor.tolist(), strict=True)
    ]
    return np.concatenate([np.zeros((0, 2), dtype=np.int64), *rows])
