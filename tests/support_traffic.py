"""Flows of traffic entries on a small leaf-spine."""

from __future__ import annotations

import numpy as np

from fabric.spec import LeafSpine, Scenario
from fabric.topology import build_network
from fabric.workload import build_flows

__all__ = ["FABRIC", "HOSTS", "HOSTS_PER_LEAF", "LEAVES", "US", "flows_of", "leaf_of", "rows"]

US = 10**6
LEAVES = 4
HOSTS_PER_LEAF = 4
HOSTS = LEAVES * HOSTS_PER_LEAF
FABRIC = LeafSpine(leaves=LEAVES, spines=2, hosts_per_leaf=HOSTS_PER_LEAF)


def flows_of(*traffic, topology=FABRIC, seed=1):
    scenario = Scenario(topology=topology, traffic=traffic, run={"seed": seed})
    return build_flows(scenario, build_network(topology))


def leaf_of(hosts):
    return np.asarray(hosts).astype(int) // HOSTS_PER_LEAF


def rows(table, label=None):
    keep = slice(None) if label is None else table.pattern == table.patterns.index(label)
    return list(
        zip(
            table.source[keep].tolist(),
            table.destination[keep].tolist(),
            table.size_bytes[keep].tolist(),
            table.start_ps[keep].tolist(),
            strict=True,
        )
    )
