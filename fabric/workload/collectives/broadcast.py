"""Broadcast and reduce: down a binomial tree, or along a chain.

The binomial tree doubles in every step the ranks that have the vector; a rank sends to one after the
other. The chain passes it on from rank to rank; cut into k chunks, all links are busy at once, and it takes
n - 2 + k steps of S/k: NCCL's broadcast. A reduce is a broadcast backwards.

Source: Thakur, Rabenseifner and Gropp, doi 10.1177/1094342005051521.
"""

from __future__ import annotations

import numpy as np

from fabric.errors import SpecError
from fabric.workload.collectives.registry import algorithm
from fabric.workload.collectives.sequence import backwards
from fabric.workload.collectives.split import relabel
from fabric.workload.collectives.template import Template
from fabric.workload.collectives.trees import tree_broadcast

__all__ = ["binomial_broadcast", "binomial_reduce", "chain_broadcast", "chain_reduce", "from_root"]


@algorithm("broadcast", "binomial")
def binomial_broadcast(n_ranks: int, *, root: int = 0) -> Template:
    """Broadcast in ⌈lg n⌉ steps of S from rank `root`."""
    rank = np.arange(n_ranks, dtype=np.int64)
    below = rank & -rank
    last_step = (n_ranks - 1).bit_length() - 1
    step = np.array([last_step - (int(bit).bit_length() - 1) for bit in below], dtype=np.int64)
    tree = tree_broadcast(
        np.where(rank > 0, rank - below, -1), n_ranks=n_ranks, name="binomial", step=step, one_by_one=True
    )
    return from_root(tree, root)


@algorithm("broadcast", "chain")
def chain_broadcast(n_ranks: int, *, root: int = 0) -> Template:
    """Broadcast from rank `root` to the next, to the next; meant to be cut into `chunks`."""
    tree = tree_broadcast(np.arange(-1, n_ranks - 1, dtype=np.int64), n_ranks=n_ranks, name="chain")
    return from_root(tree, root)


@algorithm("reduce", "binomial")
def binomial_reduce(n_ranks: int, *, root: int = 0) -> Template:
    """Reduce in ⌈lg n⌉ steps of S to rank `root`."""
    return backwards(binomial_broadcast(n_ranks, root=root), collective="reduce")


@algorithm("reduce", "chain")
def chain_reduce(n_ranks: int, *, root: int = 0) -> Template:
    """Reduce along a chain that ends at rank `root`; meant to be cut into `chunks`."""
    return backwards(chain_broadcast(n_ranks, root=root), collective="reduce")


def from_root(template: Template, root: int) -> Template:
    """Move what rank 0 does to another root, the others following in order.

    Raises
    ------
    SpecError
        If there is no such rank.
    """
    ranks = template.n_ranks
    if not isinstance(root, int) or not 0 <= root < ranks:
        raise SpecError("root", root, f"a rank from 0 to {ranks - 1}")
    if not root:
        return template
    return relabel(template, ((np.arange(ranks) + root) % ranks).tolist())
