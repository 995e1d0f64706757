"""`StepPlan`: how the steps of a job run, beside what the job says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fabric.spec.training.compression import Compression

if TYPE_CHECKING:
    from fabric.training.routes import TokenRoutes
    from fabric.training.slowdown import Slowdown
    from fabric.training.storage import StoragePlan
    from fabric.training.work import SequenceWork

__all__ = ["ALGORITHMS", "StepPlan"]

ALGORITHMS = {"all_reduce": "ring", "all_gather": "ring", "reduce_scatter": "ring", "all_to_all": "direct"}


@dataclass(frozen=True, kw_only=True)
class StepPlan:
    """How steps run.

    Attributes
    ----------
    steps : int
    schedule : str, optional
        Key of `SCHEDULES`; interleaved if there are several chunks, else 1f1b.
    two_batch_overlap : bool
        As of `Training`.
    bucket_bytes : int, optional
        Least size of a bucket of gradients; whole chunks unless given.
    algorithms : mapping of str to str
        By collective; what is not there is of `ALGORITHMS`.
    channels : int
        Of rings.
    server_of : ndarray of int64, optional
        Server of every rank, for rings that use all rails; each has one of its own unless given.
    eager : bool
        As of `Program`.
    slowdown : Slowdown, optional
        All ranks alike unless given.
    routes : TokenRoutes, optional
        Tokens spread evenly unless given.
    compression : TopK or Quantised, optional
    work : SequenceWork, optional
        Every place full unless given.
    storage : tuple of StoragePlan
    """

    steps: int = 1
    schedule: str | None = None
    two_batch_overlap: bool = False
    bucket_bytes: int | None = None
    algorithms: Mapping[str, str] = field(default_factory=dict)
    channels: int = 1
    server_of: npt.NDArray[np.int64] | None = None
    eager: bool = True
    slowdown: Slowdown | None = None
    routes: TokenRoutes | None = None
    compression: Compression | None = None
    work: SequenceWork | None = None
    storage: tuple[StoragePlan, ...] = ()
