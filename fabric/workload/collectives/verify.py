"""What the columns of every template hold: numbers in range, and waits for earlier rows alone.

Whether a template does what its collective promises is another question (`check.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.workload.collectives.arrays import Int64Array
from fabric.workload.collectives.kinds import COLLECTIVES

if TYPE_CHECKING:
    from fabric.workload.collectives.template import Template

__all__ = ["MOST_RANKS", "NOTHING", "verify_numbers", "verify_rows"]

NOTHING = 2**32 - 1
"""In `follows`: no transfer."""

MOST_RANKS = 2**20


def verify_numbers(template: Template) -> None:
    """Refuse a template whose collective, ranks, pieces or blocks cannot be."""
    if template.collective not in (*COLLECTIVES, "custom"):
        allowed = f"one of {', '.join(COLLECTIVES)} or custom"
        raise SpecError(_path(template, "collective"), template.collective, allowed)
    if not 1 <= template.n_ranks <= MOST_RANKS:
        raise SpecError(_path(template, "n_ranks"), template.n_ranks, f"1 to {MOST_RANKS} ranks")
    if template.n_pieces < 1:
        raise SpecError(_path(template, "n_pieces"), template.n_pieces, "at least one piece")
    if not 0 <= template.root < template.n_ranks:
        allowed = f"a rank from 0 to {template.n_ranks - 1}"
        raise SpecError(_path(template, "root"), template.root, allowed)
    if int(np.prod(template.grid, dtype=np.int64)) != template.n_ranks:
        raise SpecError(_path(template, "grid"), template.grid, f"digits whose product is {template.n_ranks}")
    _verify_blocks(template)


def verify_rows(template: Template) -> None:
    """Refuse a template with a row that cannot be, or that waits for what does not come before it."""
    rows = len(template)
    for name in ("destination", "piece", "count", "channel", "reduce", "step"):
        if len(getattr(template, name)) != rows:
            raise SpecError(
                _path(template, name), len(getattr(template, name)), f"{rows} values, as of source"
            )
    places = template.n_ranks + template.n_reducers
    _refuse(template, "source", template.source >= places, f"a rank from 0 to {places - 1}")
    _refuse(template, "destination", template.destination >= places, f"a rank from 0 to {places - 1}")
    _refuse(template, "count", template.count < 1, "at least one piece")
    end = template.piece.astype(np.int64) + template.count
    _refuse(template, "piece", end > template.n_pieces, f"pieces below {template.n_pieces}")
    _refuse(template, "reduce", template.reduce > 1, "0 or 1")
    base = template.after_base.astype(np.int64)
    if len(base) != rows + 1 or base[0] or base[-1] != len(template.after) or (np.diff(base) < 0).any():
        allowed = "ascending places in `after`, one more than rows"
        raise SpecError(_path(template, "after_base"), len(base), allowed)
    transfer, before = template.waits()
    _refuse_wait(template, transfer, before, before >= transfer, "a transfer of an earlier row")
    elsewhere = template.destination[before] != template.source[transfer]
    _refuse_wait(template, transfer, before, elsewhere, "a transfer to the source of the one that waits")
    _verify_follows(template)


def _verify_blocks(template: Template) -> None:
    if template.block is None or template.block_base is None:
        if template.n_blocks != template.n_pieces:
            allowed = "lists of blocks, or as many as pieces"
            raise SpecError(_path(template, "n_blocks"), template.n_blocks, allowed)
        return
    base = template.block_base.astype(np.int64)
    ascend = not (np.diff(base) < 0).any()
    if len(base) != template.n_pieces + 1 or base[0] or base[-1] != len(template.block) or not ascend:
        allowed = "ascending places in `block`, one more than pieces"
        raise SpecError(_path(template, "block_base"), len(base), allowed)
    if len(template.block) and int(template.block.max()) >= template.n_blocks:
        allowed = f"blocks below {template.n_blocks}"
        raise SpecError(_path(template, "block"), int(template.block.max()), allowed)


def _verify_follows(template: Template) -> None:
    if template.follows is None:
        return
    if len(template.follows) != len(template):
        allowed = f"{len(template)} values, as of source"
        raise SpecError(_path(template, "follows"), len(template.follows), allowed)
    transfer = np.flatnonzero(template.follows != NOTHING)
    before = template.follows[transfer].astype(np.int64)
    _refuse_wait(template, transfer, before, before >= transfer, "a transfer of an earlier row", "follows")
    elsewhere = template.source[before] != template.source[transfer]
    elsewhere |= template.source[before] == template.destination[before]
    _refuse_wait(template, transfer, before, elsewhere, "a message of the same source", "follows")


def _path(template: Template, column: str) -> str:
    return f"template {template.collective}/{template.name}: {column}"


def _refuse(template: Template, column: str, wrong: npt.NDArray[np.bool_], allowed: str) -> None:
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise SpecError(_path(template, f"{column}[{row}]"), int(getattr(template, column)[row]), allowed)


def _refuse_wait(
    template: Template,
    transfer: Int64Array,
    before: Int64Array,
    wrong: npt.NDArray[np.bool_],
    allowed: str,
    column: str = "after",
) -> None:
    if wrong.any():
        one = int(np.flatnonzero(wrong)[0])
        raise SpecError(
            _path(template, f"{column} of transfer {int(transfer[one])}"), int(before[one]), allowed
        )
