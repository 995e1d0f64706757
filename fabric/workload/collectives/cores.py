"""Any number of ranks for algorithms that want a power of two.

Of n ranks, p = 2^k <= n are the core; of the first 2 (n-p) ranks those with an even number lend their part to
the next rank before, and get it back after. Source: Thakur, Rabenseifner and Gropp, "Optimization of
collective communication operations in MPICH", doi 10.1177/1094342005051521.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fabric.workload.collectives.arrays import Int64Array
from fabric.workload.collectives.rows import Rows
from fabric.workload.collectives.sequence import in_groups, then
from fabric.workload.collectives.template import Template

__all__ = ["core_ranks", "folded"]


def core_ranks(n_ranks: int) -> tuple[Int64Array, Int64Array]:
    """Ranks of the core, and the first of the ranks that each stands for (with the end as last).

    Examples
    --------
    >>> [each.tolist() for each in core_ranks(5)]
    [[1, 2, 3, 4], [0, 2, 3, 4, 5]]
    """
    power = 1 << (n_ranks.bit_length() - 1)
    extra = n_ranks - power
    core = np.arange(power + 1, dtype=np.int64)
    first = core + np.minimum(core, extra)
    return first[:-1] + (core[:-1] < extra), first


def folded(inner: Callable[[int], Template], n_ranks: int, *, name: str) -> Template:
    """An all-reduce on any number of ranks from one on a power of two.

    Ranks outside the core send their whole vector to the core before and get the result after.
    """
    core, first = core_ranks(n_ranks)
    template = inner(len(core))
    pieces = template.n_pieces
    template = in_groups(
        template,
        core[np.newaxis, :],
        n_ranks=n_ranks,
        n_pieces=pieces,
        piece=np.zeros(1, dtype=np.int64),
        width=1,
    )
    extra = n_ranks - len(core)
    if not extra:
        return template
    fold, unfold = Rows(), Rows()
    lender, holder = first[:extra], core[:extra]
    fold.add(lender, holder, piece=0, count=pieces, reduce=1, step=0)
    unfold.add(holder, lender, piece=0, count=pieces, step=0)
    before, after = (rows.build(name, "custom", n_ranks=n_ranks, n_pieces=pieces) for rows in (fold, unfold))
    both = then(before, template, collective="custom", name=name)
    return then(both, after, collective="all_reduce", name=name)
