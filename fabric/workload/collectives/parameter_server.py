"""All-reduce over one rank: everyone sends it the whole vector, it adds them up and sends the sum to all.

What a parameter server does whose server is one of the ranks (workers push gradients and pull the sum). Two
steps, but the port of the root carries n - 1 vectors each way: an incast of n - 1 whole vectors.

Source: Li et al., "Scaling Distributed Machine Learning with the Parameter Server", OSDI 2014.
"""

from __future__ import annotations

import numpy as np

from fabric.workload.collectives.broadcast import from_root
from fabric.workload.collectives.registry import algorithm
from fabric.workload.collectives.sequence import backwards, then
from fabric.workload.collectives.template import Template
from fabric.workload.collectives.trees import tree_broadcast

__all__ = ["parameter_server_all_reduce"]


@algorithm("all_reduce", "parameter_server")
def parameter_server_all_reduce(n_ranks: int, *, root: int = 0) -> Template:
    """All-reduce in which everyone sends to rank `root`, and that to everyone."""
    parent = np.where(np.arange(n_ranks) == 0, -1, 0)
    star = from_root(tree_broadcast(parent, n_ranks=n_ranks, name="parameter_server"), root)
    gathered = backwards(star, collective="reduce")
    return then(gathered, star, collective="all_reduce", name="parameter_server")
