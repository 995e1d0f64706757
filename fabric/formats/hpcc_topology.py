"""`topology.txt` of the HPCC simulator, as also SimAI and ASTRA-sim's ns-3 backend read it.

A stream of words: a header, the numbers of the switches, and five words for each full-duplex link.
The header is `nodes switches links`, or in SimAI's dialect `nodes gpus_per_server nv_switches switches
links gpu_type`, where NVSwitches are listed first and are not among `switches`. Nodes that are not
listed are hosts. What stands after the last link is a comment.

Ports of a node are numbered in the order of the lines that name it, here as there. Two links between
one pair of nodes are two links here; there, routing knows only the last one. Source:
github.com/alibaba-edu/High-Precision-Congestion-Control, `simulation/mix`; github.com/aliyun/SimAI.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.formats.data import NetworkData, Remark
from fabric.formats.words import Words, delay_ps, probability, rate_bps, read_text
from fabric.units import Duration, Rate

__all__ = ["node_ids", "parse_topology", "topology_text"]

LINK_WORDS = 5
HEADERS = "nodes switches links (or nodes gpus_per_server nv_switches switches links gpu_type)"
MOST_NODES = 2**31
UNKNOWN_TIER = -1

Int64Array = npt.NDArray[np.int64]


def parse_topology(file: str | Path) -> tuple[NetworkData, list[Remark]]:
    """Read a topology.

    Parameters
    ----------
    file : str or Path

    Returns
    -------
    NetworkData
        Host n is "host<n>", switch n "switch<n>" (an NVSwitch "nvswitch<n>").
    list of Remark

    Raises
    ------
    SpecError
        Naming file and line.
    """
    words = Words(file, read_text(file))
    at, nodes, nv_switches, switches, links = _header(words)
    words.need(at, nv_switches + switches, "numbers of switches")
    listed = words.wholes(at, count=nv_switches + switches, step=1, what="switch", high=nodes - 1)
    _check_distinct(words, at, listed)
    at += len(listed)
    words.need(at, links * LINK_WORDS, f"{links} links of source, destination, rate, delay, error rate")
    position, names = _nodes(nodes, listed, nv_switches)
    ends = [
        words.wholes(at + column, count=links, step=LINK_WORDS, what=what, high=nodes - 1)
        for column, what in enumerate(("source", "destination"))
    ]
    _check_ends(words, at, ends)
    data = NetworkData(
        names=names,
        n_hosts=nodes - len(listed),
        tier=np.where(np.arange(nodes) < nodes - len(listed), 0, UNKNOWN_TIER).astype(np.int64),
        link_a=position[ends[0]],
        link_b=position[ends[1]],
        link_rate_bps=_column(words, at + 2, links, "rate", rate_bps),
        link_delay_ps=_column(words, at + 3, links, "delay", delay_ps),
        link_loss=np.array(
            words.each(at + 4, count=links, step=LINK_WORDS, what="error rate", read=probability),
            dtype=np.float64,
        ),
    )
    return data, [*_parallel(words, at, data), *_rest(words, at + links * LINK_WORDS)]


def topology_text(data: NetworkData) -> str:
    """Return the text of a `topology.txt`.

    Parameters
    ----------
    data : NetworkData
        Nodes whose names end in different numbers that cover 0 .. nodes-1 keep them; otherwise they
        are numbered in the order of `names`.

    Returns
    -------
    str
    """
    number = node_ids(data.names)
    rows = zip(
        data.link_a.tolist(),
        data.link_b.tolist(),
        data.link_rate_bps.tolist(),
        data.link_delay_ps.tolist(),
        data.link_loss.tolist(),
        strict=True,
    )
    lines = [
        f"{number[a]} {number[b]} {Rate(rate)} {_delay(delay)} {loss or 0}"
        for a, b, rate, delay, loss in rows
    ]
    switches = number[data.n_hosts :]
    header = f"{len(data.names)} {len(switches)} {len(lines)}"
    return "\n".join([header, " ".join(map(str, switches)), *lines]) + "\n"


def _delay(time_ps: int) -> str:
    """A delay in nanoseconds, the clock of ns-3, if it is whole in them."""
    return f"{time_ps // 1000}ns" if time_ps % 1000 == 0 else str(Duration(time_ps))


def node_ids(names: Sequence[str]) -> list[int]:
    """Return the number that each node has in files: that of its name, or its position.

    Parameters
    ----------
    names : sequence of str

    Examples
    --------
    >>> node_ids(["host0", "host2", "switch1"]), node_ids(["host0", "leaf0"])
    ([0, 2, 1], [0, 1])
    """
    tails = [name[len(name.rstrip("0123456789")) :] for name in names]
    if all(tails) and {int(tail) for tail in tails} == set(range(len(names))):
        return [int(tail) for tail in tails]
    return list(range(len(names)))


def _header(words: Words) -> tuple[int, int, int, int, int]:
    """Words of the header; nodes, NVSwitches, other switches, links."""
    lines = (line.split() for line in words.text.splitlines())
    first = next((line for line in lines if line), [])
    if len(first) not in (3, 6):
        raise SpecError(words.where(0, "header"), " ".join(first), HEADERS)
    fields: tuple[str, ...] = ("nodes", "switches", "links")
    if len(first) == 6:
        fields = ("nodes", "gpus_per_server", "nv_switches", "switches", "links")
    value = {name: words.whole(index, name, high=MOST_NODES) for index, name in enumerate(fields)}
    nodes, switches = value["nodes"], value["switches"]
    nv_switches = value.get("nv_switches", 0)
    if nv_switches + switches >= nodes:
        allowed = f"more nodes than switches ({nv_switches + switches}): the rest are hosts"
        raise SpecError(words.where(0, "nodes"), nodes, allowed)
    if not value["links"]:
        raise SpecError(words.where(0, "links"), 0, "at least one link")
    hosts = nodes - nv_switches - switches
    if hosts > 2 * value["links"]:
        allowed = f"as many nodes as have a link: at most {2 * value['links']} hosts (these are {hosts})"
        raise SpecError(words.where(0, "nodes"), nodes, allowed)
    return len(first), nodes, nv_switches, switches, value["links"]


def _check_distinct(words: Words, at: int, listed: Int64Array) -> None:
    _, first = np.unique(listed, return_index=True)
    twice = np.setdiff1d(np.arange(len(listed)), first)
    if twice.size:
        index = int(twice[0])
        raise SpecError(words.where(at + index, "switch"), int(listed[index]), "every switch once")


def _nodes(nodes: int, listed: Int64Array, nv_switches: int) -> tuple[Int64Array, tuple[str, ...]]:
    """Position of every node of the file among hosts and then switches, and the names in that order."""
    is_host = np.ones(nodes, dtype=np.bool_)
    is_host[listed] = False
    hosts = np.flatnonzero(is_host)
    kind = np.full(nodes, "switch", dtype=object)
    kind[listed[:nv_switches]] = "nvswitch"
    switches = np.sort(listed)
    position = np.empty(nodes, dtype=np.int64)
    position[hosts] = np.arange(len(hosts))
    position[switches] = len(hosts) + np.arange(len(switches))
    names = [f"host{number}" for number in hosts.tolist()]
    names += [f"{kind[number]}{number}" for number in switches.tolist()]
    return position, tuple(names)


def _check_ends(words: Words, at: int, ends: list[Int64Array]) -> None:
    same = np.flatnonzero(ends[0] == ends[1])
    if same.size:
        index = at + LINK_WORDS * int(same[0])
        raise SpecError(
            words.where(index, "destination"), words.words[index + 1], "another node than the source"
        )


def _column(words: Words, at: int, links: int, what: str, read: object) -> Int64Array:
    assert callable(read)
    return np.array(words.each(at, count=links, step=LINK_WORDS, what=what, read=read), dtype=np.int64)


def _parallel(words: Words, at: int, data: NetworkData) -> list[Remark]:
    low, high = np.minimum(data.link_a, data.link_b), np.maximum(data.link_a, data.link_b)
    pair, first, counts = np.unique(low * len(data.names) + high, return_index=True, return_counts=True)
    several = np.flatnonzero(counts > 1)
    if not several.size:
        return []
    one, other = divmod(int(pair[several[0]]), len(data.names))
    ends = f"{data.names[one]} and {data.names[other]}"
    more = f" (and {len(several) - 1} other pairs)" if len(several) > 1 else ""
    line = words.line(at + LINK_WORDS * int(first[several[0]]))
    reason = "all carry traffic here; the HPCC simulator routes over the last one alone"
    return [
        Remark(
            file=words.file, line=line, what=f"{counts[several[0]]} links between {ends}{more}", reason=reason
        )
    ]


def _rest(words: Words, at: int) -> list[Remark]:
    if at >= len(words.words):
        return []
    return [
        Remark(
            file=words.file,
            line=words.line(at),
            what="text after the last link",
            reason="the header's counts end the file",
        )
    ]
