"""`flow.txt` of the HPCC simulator: a count, and six words for each flow.

`source destination priority_group destination_port bytes start`, the start in decimal seconds. There
they must stand in order of their starts, and bytes end at 2^32; here neither. What stands after the
last flow is a comment. The destination port only enters the hash of ECMP there. Source:
github.com/alibaba-edu/High-Precision-Congestion-Control, `simulation/mix/flow.txt`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fabric.errors import Said, SpecError
from fabric.formats.data import FlowData, Remark
from fabric.formats.words import Words, read_text, seconds_ps

__all__ = ["flows_text", "parse_flows"]

FLOW_WORDS = 6
HIGHEST_GROUP = 7
HIGHEST_HOST = 2**31
PS_PER_S = 10**12


def parse_flows(file: str | Path) -> tuple[FlowData, list[Remark]]:
    """Read flows.

    Parameters
    ----------
    file : str or Path

    Returns
    -------
    FlowData
    list of Remark

    Raises
    ------
    SpecError
        Naming file and line.
    """
    words = Words(file, read_text(file))
    if not words.words:
        raise SpecError(words.where(0, "count"), Said("an empty file"), "the number of flows")
    count = words.whole(0, "count", low=1, high=2**31)
    words.need(1, count * FLOW_WORDS, f"{count} flows of source, destination, group, port, bytes, start")

    def column(index: int, what: str, low: int, high: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return words.wholes(1 + index, count=count, step=FLOW_WORDS, what=what, low=low, high=high)

    source = column(0, "source", 0, HIGHEST_HOST)
    destination = column(1, "destination", 0, HIGHEST_HOST)
    same = np.flatnonzero(source == destination)
    if same.size:
        index = 2 + FLOW_WORDS * int(same[0])
        raise SpecError(words.where(index, "destination"), words.words[index], "another host than the source")
    port = column(3, "destination port", 0, 2**16 - 1)
    starts = words.each(6, count=count, step=FLOW_WORDS, what="start", read=seconds_ps)
    data = FlowData(
        source=source,
        destination=destination,
        size_bytes=column(4, "bytes", 1, 2**62),
        start_ps=np.array(starts, dtype=np.int64),
        group=column(2, "priority group", 0, HIGHEST_GROUP),
        line=words.lines(1 + FLOW_WORDS * np.arange(count, dtype=np.int64)),
        udp_port=int(port[0]) if (port == port[0]).all() else None,
    )
    return data, [*_port_remarks(words, port), *_rest(words, 1 + count * FLOW_WORDS)]


def flows_text(data: FlowData, *, destination_port: int = 100) -> str:
    """Return the text of a `flow.txt`, in order of starts.

    Parameters
    ----------
    data : FlowData
    destination_port : int
        Of every flow; the HPCC simulator's generator writes 100.

    Returns
    -------
    str

    Raises
    ------
    SpecError
        If flows wait for each other, which this format cannot say.
    """
    if data.waits:
        raise SpecError(
            "flow.txt", Said(f"{len(data.waits)} flows that wait for others"), "flows with a start alone"
        )
    order = np.argsort(data.start_ps, kind="stable")
    columns = (data.source, data.destination, data.group, data.size_bytes, data.start_ps)
    rows = zip(*(column[order].tolist() for column in columns), strict=True)
    lines = [
        f"{source} {destination} {group} {destination_port} {size} {_seconds(start)}"
        for source, destination, group, size, start in rows
    ]
    return "\n".join([str(len(lines)), *lines]) + "\n"


def _seconds(time_ps: int) -> str:
    """Decimal seconds, exact, with at least nine digits."""
    whole, rest = divmod(time_ps, PS_PER_S)
    digits = f"{rest:012d}"
    return f"{whole}.{digits[:9]}{digits[9:].rstrip('0')}"


def _port_remarks(words: Words, port: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[Remark]:
    ports = np.unique(port)
    if len(ports) == 1:
        return []
    reason = "all flows have one destination port here, that of routing.udp_port; paths are hashed from it"
    what = f"destination port ({len(ports)} different ones)"
    return [Remark(file=words.file, line=0, what=what, reason=reason)]


def _rest(words: Words, at: int) -> list[Remark]:
    if at >= len(words.words):
        return []
    reason = "the count on the first line ends the file"
    return [Remark(file=words.file, line=words.line(at), what="text after the last flow", reason=reason)]
