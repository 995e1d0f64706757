"""Halving-doubling: a reduce-scatter by recursive halving, then an all-gather by recursive doubling.

2 lg n steps, and no more data than a ring. Numbers of ranks that are no power of two are folded: n - 2^k
ranks send their whole vector before and get it back after.

Source: Rabenseifner, "Optimization of collective reduction operations", ICCS 2004; Thakur, Rabenseifner
and Gropp, doi 10.1177/1094342005051521.
"""

from __future__ import annotations

from fabric.workload.collectives.cores import folded
from fabric.workload.collectives.recursive_doubling import doubling_all_gather, halving_reduce_scatter
from fabric.workload.collectives.registry import algorithm
from fabric.workload.collectives.sequence import then
from fabric.workload.collectives.template import Template

__all__ = ["halving_doubling"]

NAME = "halving_doubling"


@algorithm("all_reduce", NAME)
def halving_doubling(n_ranks: int) -> Template:
    """All-reduce in 2 lg n steps, 2(n-1)/n of the vector."""
    return folded(_on_power_of_two, n_ranks, name=NAME)


def _on_power_of_two(power: int) -> Template:
    return then(halving_reduce_scatter(power), doubling_all_gather(power), collective="all_reduce", name=NAME)
