"""A program as the files of Chakra: `x.et` stands for `x.0.et`, `x.1.et`, ... and `x.comm_groups.json`."""

from __future__ import annotations

import json
import re
from pathlib import Path

from fabric.errors import SpecError
from fabric.workload.chakra_export import export_chakra
from fabric.workload.chakra_files import rank_files
from fabric.workload.program import Program

__all__ = ["chakra_files"]


def chakra_files(program: Program, target: Path) -> dict[Path, bytes]:
    """Return what the files of a program hold.

    Parameters
    ----------
    program : Program
    target : Path
        "x.et", or the name of the file of any rank.

    Returns
    -------
    dict of Path to bytes
        Traces by rank, then the groups.

    Raises
    ------
    SpecError
        If the program has what Chakra has not, or traces of more ranks have the same name.
    """
    prefix = re.sub(r"(\.\d+)?\.et$", "", target.name)
    texts = export_chakra(program)
    first = target.with_name(f"{prefix}.0.et")
    present = len(rank_files(first)) if first.is_file() else 0
    if present > program.n_ranks:
        raise SpecError("--out", str(target), f"a name without traces of {present} ranks beside it")
    contents = {target.with_name(f"{prefix}.{rank}.et"): each for rank, each in enumerate(texts.traces)}
    groups = {name: list(ranks) for name, ranks in texts.groups.items()}
    contents[target.with_name(f"{prefix}.comm_groups.json")] = json.dumps(groups).encode() + b"\n"
    return contents
