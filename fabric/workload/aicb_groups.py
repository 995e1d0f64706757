"""Which ranks share what in an AICB or SimAI workload: its header has sizes only.

Ranks are numbered as Megatron-LM does, and AICB with it: tensor ranks fastest, then expert, then the rest of
the data ranks, stages slowest. Experts are spread over data ranks, so a data group holds whole expert groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fabric.errors import MISSING, SpecError
from fabric.formats.aicb import AicbWorkload
from fabric.formats.words import place
from fabric.workload.collectives.arrays import Int64Array
from fabric.workload.collectives.template import MOST_RANKS

__all__ = ["AicbGroups", "aicb_groups"]

EVERYONE = ("MICRO", "MODEL")
"""Policies whose collectives are of all ranks, unless the header has a tensor group."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AicbGroups:
    """Groups of a workload's ranks.

    Attributes
    ----------
    n_ranks : int
    stages : int
        Of the pipeline, side by side; each has as many ranks, the first stage the first ones.
    groups : dict of str to ndarray of int64 [groups, members]
        "tp", "dp", "ep" and "dp_ep".
    """

    n_ranks: int
    stages: int
    groups: dict[str, Int64Array]


def aicb_groups(workload: AicbWorkload, *, n_ranks: int | None = None) -> AicbGroups:
    """Return the groups of a workload.

    Parameters
    ----------
    workload : AicbWorkload
    n_ranks : int, optional
        Instead of `all_gpus` of the header: ranks of all stages, or of one (the rows are those of one).

    Returns
    -------
    AicbGroups

    Raises
    ------
    SpecError
        If the file does not say how many, or they cannot be shared out.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from fabric.formats.aicb import read_aicb
    >>> header = "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 2 all_gpus: 8"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "workload.txt")
    ...     characters = file.write_text(header + "\\n0\\n")
    ...     found = aicb_groups(read_aicb(file))
    >>> found.groups["ep"].tolist()
    [[0, 2], [1, 3], [4, 6], [5, 7]]
    """
    header, file = workload.header, workload.file
    n_ranks = header.get("all_gpus") if n_ranks is None else n_ranks
    if not n_ranks:
        raise SpecError("ranks", MISSING, f"how many: {file} has no all_gpus")
    if n_ranks > MOST_RANKS:
        raise SpecError("ranks", n_ranks, f"at most {MOST_RANKS}")
    everyone = workload.policy in EVERYONE and "tp" not in header
    tp = n_ranks if everyone else header.get("tp", 1)
    ep, pp = header.get("ep", 1), header.get("pp", 1)
    for name, value in (("model_parallel_NPU_group", tp), ("ep", ep)):
        if not 1 <= value <= n_ranks:
            raise SpecError(place(file, 1, name), value, f"1 to {n_ranks}, the number of ranks")
    if pp < 1:
        raise SpecError(place(file, 1, "pp"), pp, "at least 1")
    stages = pp if n_ranks % (tp * ep * pp) == 0 else 1
    if n_ranks % (tp * ep * stages):
        shared = f"{tp * ep} (tensor group of {tp}, expert group of {ep})"
        raise SpecError("ranks", n_ranks, f"a multiple of {shared}, as {file} says")
    grid = np.arange(n_ranks, dtype=np.int64).reshape(stages, -1, ep, tp)
    groups = {
        "tp": grid.reshape(-1, tp),
        "dp": grid.reshape(stages, -1, tp).transpose(0, 2, 1).reshape(stages * tp, -1),
        "ep": grid.transpose(0, 1, 3, 2).reshape(-1, ep),
        "dp_ep": grid.transpose(0, 2, 3, 1).reshape(stages * ep * tp, -1),
    }
    if everyone:
        groups = dict.fromkeys(groups, groups["tp"])
    return AicbGroups(n_ranks=n_ranks, stages=stages, groups=groups)
