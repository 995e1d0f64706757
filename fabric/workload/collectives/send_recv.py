"""Send and receive: every rank sends its vector to the next and receives that of the one before.

What nccl-tests' `sendrecv_perf` measures; with two ranks, an exchange.
"""

from __future__ import annotations

import numpy as np

from fabric.workload.collectives.registry import algorithm
from fabric.workload.collectives.rows import Rows
from fabric.workload.collectives.template import Template

__all__ = ["shift"]


@algorithm("send_recv", "shift")
def shift(n_ranks: int) -> Template:
    """Send S to the next rank, all at once."""
    rank = np.arange(n_ranks if n_ranks > 1 else 0, dtype=np.int64)
    rows = Rows()
    rows.add(rank, (rank + 1) % n_ranks, piece=0, step=0)
    return rows.build("shift", "send_recv", n_ranks=n_ranks, n_pieces=1)
