"""`Labels`: what the numbers in an engine's columns are called.

An engine knows nodes, ports, classes and flows by number. A result knows them by name, and keeps the
names itself, so that a saved result can be read without building its network again.
"""

from __future__ import annotations

from dataclasses import dataclass

from .table import Array, Category

__all__ = ["Labels"]


@dataclass(frozen=True, kw_only=True)
class Labels:
    """Names of everything that an engine's columns number.

    Attributes
    ----------
    nodes : numpy.ndarray of str, [nodes]
        Names of the hosts and switches ("host0", "leaf3").
    tiers : numpy.ndarray of str, [nodes]
        What each node is in the network ("host", "leaf", "spine").
    ports : numpy.ndarray of str, [ports]
        Names of the ports, each by the node that owns it ("leaf3:5").
    links : numpy.ndarray of str, [ports]
        Names of the links, each by the port that sends on it ("leaf3->spine1"); unique.
    classes : numpy.ndarray of str, [classes]
        Names of the traffic classes.
    flows : numpy.ndarray of str, [flows]
        Names of the flows.
    patterns : Category, [flows]
        The traffic pattern that made each flow.
    flow_bytes : numpy.ndarray of int64, [flows]
        Payload of each flow.
    """

    nodes: Array
    tiers: Array
    ports: Array
    links: Array
    classes: Array
    flows: Array
    patterns: Category
    flow_bytes: Array
