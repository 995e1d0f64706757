"""Generations of a template: which transfers can happen when every one takes one unit of time.

Transfers that wait for nothing are generation 0; the others come one after the latest that they wait
for (Kahn, "Topological sorting of large networks", Communications of the ACM 5, 1962), each generation
with arrays.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fabric.workload.collectives.arrays import Int64Array, bases, distinct, expand_ranges, lengths
from fabric.workload.collectives.template import Template

__all__ = ["depth", "generations", "longest_chain"]


def generations(template: Template) -> Int64Array:
    """Generation of every transfer, counted with joins.

    Examples
    --------
    >>> from fabric.workload.collectives import build_template
    >>> generations(build_template("all_gather", algorithm="ring", n_ranks=3)).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    return _longest(template, np.ones(len(template))).astype(np.int64) - 1


def depth(template: Template) -> int:
    """Messages of the longest chain in which each waits for the one before."""
    if template.rotation is not None:
        return template.rotation.depth
    return int(longest_chain(template, (template.source != template.destination).astype(np.float64)))


def longest_chain(template: Template, weight: npt.NDArray[np.float64]) -> float:
    """Greatest sum of weights, given by transfer, of transfers each of which waits for the one before."""
    return float(_longest(template, weight).max(initial=0.0))


def _longest(template: Template, weight: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Greatest sum of weights on a chain of waits that ends with each transfer."""
    transfer, before = template.waits()
    order = np.argsort(before, kind="stable")
    successor = transfer[order]
    base = bases(np.bincount(before, minlength=len(template)))
    waiting = lengths(template.after_base)
    longest = weight.copy()
    ready = np.flatnonzero(waiting == 0)
    while ready.size:
        counts = base[ready + 1] - base[ready]
        reached = successor[expand_ranges(base[ready], counts)]
        np.maximum.at(longest, reached, np.repeat(longest[ready], counts) + weight[reached])
        np.subtract.at(waiting, reached, 1)
        ready = distinct(reached[waiting[reached] == 0])
    return longest
