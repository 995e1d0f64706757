"""Names of ports, hosts and cables as patterns: "leaf0:*", "*->host7", "leaf*-spine0".

Wherever a scenario names a part of the network (a recorder, a link override, a selection of hosts) it
does so with these patterns. The parts of a pattern are shell patterns (`*`, `?`, `[0-7]`) over node
names and are matched on nodes first, then on ports with arrays, so that a pattern costs little on
large networks. A pattern that matches nothing is an error that suggests the closest name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import translate
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.spec.decode import did_you_mean

if TYPE_CHECKING:
    from fabric.topology.network import Network

__all__ = ["REDUCER_SUFFIX", "did_you_mean", "find_hosts", "find_links", "find_ports", "match_names"]

REDUCER_SUFFIX = ".reducer"
"""Of names of hosts that stand for what a switch adds up (`fabric.topology.reducers`)."""

BoolArray = npt.NDArray[np.bool_]


def match_names(names: Sequence[str], pattern: str) -> BoolArray:
    """Which names match a shell pattern (case counts).

    Examples
    --------
    >>> match_names(["leaf0", "leaf1", "spine0"], "leaf*").tolist()
    [True, True, False]
    """
    if pattern == "*":
        return np.ones(len(names), dtype=np.bool_)
    matches = re.compile(translate(pattern)).match
    return np.fromiter((matches(name) is not None for name in names), dtype=np.bool_, count=len(names))


def find_hosts(network: Network, pattern: str, *, path: str) -> npt.NDArray[np.uint32]:
    """Numbers of the hosts that match; see `Network.find_hosts`."""
    hosts = network.names[: network.n_hosts]
    number = network.node_numbers.get(pattern, network.n_hosts)
    if number < network.n_hosts:
        return np.array([number], dtype=np.uint32)
    matches = match_names(hosts, pattern)
    if not pattern.endswith(REDUCER_SUFFIX):
        matches &= [not name.endswith(REDUCER_SUFFIX) for name in hosts]
    found = np.flatnonzero(matches).astype(np.uint32)
    if len(found) == 0:
        span = f'"{hosts[0]}" .. "{hosts[-1]}"' if hosts else "there are none"
        allowed = f"the name or pattern of a host ({span})"
        raise SpecError(path, pattern, allowed + did_you_mean(pattern, hosts))
    return found


def find_ports(network: Network, patterns: Iterable[str], *, path: str) -> npt.NDArray[np.uint32]:
    """Numbers of the ports that match any pattern; see `Network.find_ports`."""
    if isinstance(patterns, str):
        patterns = (patterns,)
    chosen = np.zeros(network.n_ports, dtype=np.bool_)
    for index, pattern in enumerate(patterns):
        matching = _match_ports(network, pattern)
        if not matching.any():
            allowed = 'ports such as "leaf0:3", "leaf0:*", "leaf0->host7" or "*->host7" that exist'
            hint = _suggest_nodes(network, re.split(r"->|:|#", pattern))
            raise SpecError(f"{path}[{index}]", pattern, allowed + hint)
        chosen |= matching
    return np.flatnonzero(chosen).astype(np.uint32)


def find_links(network: Network, pattern: str, *, path: str) -> npt.NDArray[np.uint32]:
    """Rows of the cables whose ends match in either order; see `Network.find_links`."""
    ends, number = _split_number(pattern)
    chosen = np.zeros(network.n_links, dtype=np.bool_)
    for one, other in _split_everywhere(ends, "-"):
        near, far = _match_nodes(network, one), _match_nodes(network, other)
        chosen |= (near[network.link_a] & far[network.link_b]) | (near[network.link_b] & far[network.link_a])
    chosen &= _match_numbers(network.link_parallel, number)
    if not chosen.any():
        allowed = 'two ends of a link such as "leaf0-spine3" or "leaf*-spine0"'
        raise SpecError(path, pattern, allowed + _suggest_nodes(network, ends.split("-")))
    return np.flatnonzero(chosen).astype(np.uint32)


def _match_ports(network: Network, pattern: str) -> BoolArray:
    if "->" in pattern:
        ends, number = _split_number(pattern)
        owner, _, peer = ends.partition("->")
        sends = _match_nodes(network, owner)[network.port_node]
        receives = _match_nodes(network, peer)[network.port_node[network.port_peer]]
        return sends & receives & _match_numbers(network.link_parallel[network.port_link], number)
    owner, _, local = pattern.partition(":")
    matching = _match_nodes(network, owner)[network.port_node]
    if local:
        first = network.node_port_base[network.port_node]
        matching = matching & _match_numbers(np.arange(network.n_ports) - first, local)
    return matching


def _match_nodes(network: Network, pattern: str) -> BoolArray:
    number = network.node_numbers.get(pattern)
    if number is None:
        return match_names(network.names, pattern)
    matching = np.zeros(network.n_nodes, dtype=np.bool_)
    matching[number] = True
    return matching


def _match_numbers(numbers: npt.NDArray[np.integer], pattern: str) -> BoolArray:
    distinct, where = np.unique(numbers, return_inverse=True)
    return match_names([str(number) for number in distinct], pattern)[where]


def _split_number(pattern: str) -> tuple[str, str]:
    ends, _, number = pattern.partition("#")
    return ends, number or "*"


def _split_everywhere(text: str, separator: str) -> Iterator[tuple[str, str]]:
    """Every way to cut a text in two at a separator (node names may contain it)."""
    parts = text.split(separator)
    for cut in range(1, len(parts)):
        yield separator.join(parts[:cut]), separator.join(parts[cut:])


def _suggest_nodes(network: Network, parts: Iterable[str]) -> str:
    """Suggestions for the first part of a pattern that names no node."""
    for part in parts:
        if part and not part.isdigit() and not _match_nodes(network, part).any():
            return did_you_mean(part, network.names)
    return ""
