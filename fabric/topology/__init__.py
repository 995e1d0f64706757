"""Networks: what is plugged into what, from a description, a graph, or a file.

`build_network` turns a topology spec into a `Network`; `from_networkx` and `to_networkx` are the way in
and out for graphs; `describe` sums a network up. Patterns that name hosts, ports and cables are
explained in `fabric.topology.patterns`.
"""

from __future__ import annotations

from fabric.topology.assemble import Cables, Switches, assemble_network
from fabric.topology.build import apply_overrides, build_network
from fabric.topology.clos3 import clos3, fat_tree
from fabric.topology.describe import NetworkSummary, describe
from fabric.topology.leaf_spine import leaf_spine
from fabric.topology.network import (
    TIER_CORE,
    TIER_HOST,
    TIER_LEAF,
    TIER_SCALE_UP,
    TIER_SPINE,
    Network,
)
from fabric.topology.networkx_io import from_networkx, to_networkx
from fabric.topology.rail_optimized import rail_optimized
from fabric.topology.reducers import attach_reducers, reduction_tree
from fabric.topology.single_switch import single_switch

__all__ = [
    "TIER_CORE",
    "TIER_HOST",
    "TIER_LEAF",
    "TIER_SCALE_UP",
    "TIER_SPINE",
    "Cables",
    "Network",
    "NetworkSummary",
    "Switches",
    "apply_overrides",
    "assemble_network",
    "attach_reducers",
    "build_network",
    "clos3",
    "describe",
    "fat_tree",
    "from_networkx",
    "leaf_spine",
    "rail_optimized",
    "reduction_tree",
    "single_switch",
    "to_networkx",
]
