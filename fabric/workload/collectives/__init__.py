"""Collectives as data: an algorithm on n ranks is a table of transfers, a `Template`.

`build_template("all_reduce", algorithm="ring", n_ranks=8)` makes one, `check_template` proves that it does
what it should, `Collective` is one with a size, and explains itself. Algorithms stand one a file, made with
NumPy; `algorithm` registers another.
"""

from __future__ import annotations

from fabric.workload.collectives import (
    all_to_all,
    all_to_all_v,
    barrier,
    bidirectional_ring,
    broadcast,
    bruck,
    direct,
    double_binary_tree,
    gather_scatter,
    halving_doubling,
    hierarchical,
    in_network,
    parameter_server,
    rail_aligned,
    recursive_doubling,
    ring,
    send_recv,
)
from fabric.workload.collectives.check import check_template
from fabric.workload.collectives.collective import Collective
from fabric.workload.collectives.explain import Explanation, Links, explain
from fabric.workload.collectives.kinds import COLLECTIVES, busbw_factor, full_bytes
from fabric.workload.collectives.registry import (
    algorithm,
    algorithm_names,
    algorithm_options,
    build_template,
)
from fabric.workload.collectives.rows import Rows
from fabric.workload.collectives.template import Template, even_sizes
from fabric.workload.collectives.tuning import NcclMachine, choose, nccl_parts

ALGORITHM_FILES = (
    *(all_to_all, all_to_all_v, barrier, bidirectional_ring, broadcast, bruck, direct, double_binary_tree),
    *(gather_scatter, halving_doubling, hierarchical, in_network, parameter_server, rail_aligned),
    *(recursive_doubling, ring, send_recv),
)
"""Modules whose import registers the algorithms."""

__all__ = [
    "COLLECTIVES",
    "Collective",
    "Explanation",
    "Links",
    "NcclMachine",
    "Rows",
    "Template",
    "algorithm",
    "algorithm_names",
    "algorithm_options",
    "build_template",
    "busbw_factor",
    "check_template",
    "choose",
    "even_sizes",
    "explain",
    "full_bytes",
    "nccl_parts",
]
