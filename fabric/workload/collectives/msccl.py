"""Templates of MSCCL programs, which are executed symbolically and proved on the way.

A program that gets stuck, or leaves a rank with anything but what its collective promises, is refused
(`fabric.workload.collectives.msccl_run`). One that passes a sum on both as it came and with something added
is more than the rows of a template can say of data; it is proved all the same, and its template "custom".
Whole programs run once: the loops over `nchunksperloop` chunks that NCCL runs for large data are one, with
larger chunks.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from fabric.errors import SpecError
from fabric.formats.msccl_xml import MscclAlgorithm, parse_msccl
from fabric.workload.collectives.check import check_template
from fabric.workload.collectives.kinds import COLLECTIVES
from fabric.workload.collectives.msccl_run import Content, Run, Transfer
from fabric.workload.collectives.rows import Rows
from fabric.workload.collectives.template import Template

__all__ = ["import_msccl"]


def import_msccl(source: str | Path | MscclAlgorithm) -> Template:
    """Make a template of an MSCCL program.

    Parameters
    ----------
    source : str, Path or MscclAlgorithm
        A file, or what `parse_msccl` made of it.

    Returns
    -------
    Template
        Its blocks are the program's chunks.

    Raises
    ------
    SpecError
        Naming file, line and cause: what cannot be read, gets stuck, or does not do what it says.
    """
    given = source if isinstance(source, MscclAlgorithm) else parse_msccl(source)
    run = Run(given)
    run.finish()
    root = run.check_result()
    template = _template(given, run.transfers, root)
    if template.collective == "custom":
        return template
    try:
        check_template(template, redundant=True)
    except SpecError:
        return replace(template, collective="custom")
    return template


def _template(given: MscclAlgorithm, transfers: list[Transfer], root: int) -> Template:
    chunks = max(
        given.n_chunks, int(given.buffer_chunks.max(initial=1)) if given.collective == "custom" else 1
    )
    blocks = [[_block(given, content) for content in transfer.contents] for transfer in transfers]
    ranges = all(each == list(range(each[0], each[0] + len(each))) for each in blocks)
    lists = sorted({tuple(each) for each in blocks})
    number = {each: index for index, each in enumerate(lists)}
    rows = Rows()
    reduces = COLLECTIVES[given.collective].reduces if given.collective != "custom" else True
    for transfer, own in zip(transfers, blocks, strict=True):
        rows.add(
            transfer.source,
            transfer.destination,
            piece=own[0] if ranges else number[tuple(own)],
            count=len(own) if ranges else 1,
            channel=transfer.channel,
            reduce=int(transfer.reduce and reduces),
            step=transfer.step,
            after=[np.array([sorted(transfer.after)], dtype=np.int64)] if transfer.after else [],
        )
    others: dict[str, object] = {}
    if not ranges:
        others = {
            "n_blocks": chunks,
            "block_base": np.concatenate([[0], np.cumsum([len(each) for each in lists])]).astype(np.uint32),
            "block": np.concatenate([np.array(each) for each in lists]).astype(np.uint32),
        }
    return rows.build(
        given.name,
        given.collective,
        n_ranks=given.n_ranks,
        n_pieces=chunks if ranges else len(lists),
        root=root,
        **others,
    )


def _block(given: MscclAlgorithm, content: Content) -> int:
    """Block of the template: of an all-to-all by distance, else the chunk."""
    if given.collective != "all_to_all":
        return content.block
    share = given.n_chunks // given.n_ranks
    source, destination = content.ranks.bit_length() - 1, content.block // share
    return (destination - source) % given.n_ranks * share + content.block % share
