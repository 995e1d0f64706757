"""`Training`: a training job as traffic, step after step.

Its ranks walk a program (`fabric.training`): compute and collectives of every pass in the order of the
pipeline's schedule, gradients reduced beside the backward pass, the optimizer's update, then the next step.
Several such entries are several jobs that share the network, each with a traffic class of its own if wanted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from fabric.spec.base import Problem
from fabric.spec.entry import Entry
from fabric.spec.training.compression import Quantised, TopK
from fabric.spec.training.compute import FlopTimes, GivenTimes, MeasuredTimes
from fabric.spec.training.job import TrainingJob
from fabric.spec.training.packing import SequencePacking
from fabric.spec.training.router import Router
from fabric.spec.training.slowness import Slowness
from fabric.spec.training.storage import Batches, Checkpoint
from fabric.units import Size

__all__ = ["Training"]

LARGEST_STEPS = 10_000
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
DUALPIPE = "dualpipe"


class Training(Entry, frozen=True, kw_only=True, tag_field="kind", tag="training"):
    """Steps of a training job.

    Parameters
    ----------
    job : TrainingJob
        The model, its batch and its layout over ranks.
    compute : GivenTimes, MeasuredTimes or FlopTimes
        How long ranks compute.
    steps : int
        One after the other, each rank at its own pace. Default 1.
    schedule : {"gpipe", "1f1b", "interleaved", "zb1p", "dualpipe"}, optional
        Of the pipeline. None (default): "interleaved" with several chunks, else "1f1b".
    two_batch_overlap : bool
        Whether the passes of two micro-batches run side by side on a rank: they take turns to compute, part
        by part, and each dispatches, combines and reduces while the other computes. For an even number of
        micro-batches, and any schedule but dualpipe. Default False.
    bucket : Size, optional
        Gradients are reduced in buckets of whole layers of at least so many bytes, as the last backward pass
        leaves them. None (default): all of a chunk at once, after its last backward pass.
    algorithms : dict of str to str
        By collective. Default: "ring", and "direct" for "all_to_all". A group that has several ranks on each
        of several servers runs a ring for each of them, so that every rail is used.
    channels : int
        Connections that each pair of neighbours of a ring shares the data out over. Default 1.
    router : Router
        Of tokens to experts.
    slowness : tuple of Slowness
        Default: no rank is slower than another.
    compression : TopK or Quantised, optional
        Of gradients between data ranks.
    packing : SequencePacking, optional
        Batches of sequences of different lengths.
    storage : tuple of Batches or Checkpoint
        Default: none.
    hosts : str
        Which hosts the ranks are on. Default "*".
    placement : {"packed", "rail", "scattered"}
        One server after the other, dealt to the servers in turn, or drawn. Default "packed".
    accelerators : int, optional
        Of those hosts on a server, in order. None (default): those of a rail-optimised topology's server,
        else 1.
    tp_inside : bool
        Whether a tensor group must stay inside a server. Default False.
    eager : bool
        Whether a rank is done with a send when it has handed it to the network, as NCCL's kernels are
        (default), and not when it is acknowledged.
    name, transport, traffic_class, start : optional
        As for every entry: label, transport, class of the data frames, begin.
    jitter : Duration
        0: what ranks compute says when they begin to send.
    """

    job: TrainingJob
    compute: GivenTimes | MeasuredTimes | FlopTimes
    steps: int = 1
    schedule: Literal["gpipe", "1f1b", "interleaved", "zb1p", "dualpipe"] | None = None
    two_batch_overlap: bool = False
    bucket: Size | None = None
    algorithms: dict[str, str] = msgspec.field(default_factory=dict)
    channels: int = 1
    router: Router = msgspec.field(default_factory=Router)
    slowness: tuple[Slowness, ...] = ()
    compression: TopK | Quantised | None = None
    packing: SequencePacking | None = None
    storage: tuple[Batches | Checkpoint, ...] = ()
    hosts: str = "*"
    placement: Literal["packed", "rail", "scattered"] = "packed"
    accelerators: int | None = None
    tp_inside: bool = False
    eager: bool = True

    def problems(self) -> Iterator[Problem]:
        layout = self.job.parallelism
        if not 1 <= self.steps <= LARGEST_STEPS:
            yield "steps", self.steps, f"from 1 to {LARGEST_STEPS}"
        if not 1 <= self.channels <= 64:
            yield "channels", self.channels, "from 1 to 64"
        if self.bucket == 0:
            yield "bucket", self.bucket, "a size above 0, or none"
        if self.accelerators is not None and self.accelerators < 1:
            yield "accelerators", self.accelerators, "at least 1"
        if not self.hosts:
            yield "hosts", self.hosts, 'a pattern of host names, such as "*" or "host1?"'
        for name in self.algorithms:
            if name not in COLLECTIVES:
                yield f"algorithms.{name}", name, f"one of {', '.join(COLLECTIVES)}"
        if self.jitter:
            yield "jitter", self.jitter, "no jitter: what ranks compute says when they begin to send"
        if self.router != Router() and self.job.shape.experts is None:
            yield "router", self.router.choice, "none for a model without experts"
        if self.schedule == DUALPIPE and layout.zero == 3:
            yield "schedule", self.schedule, "another with ZeRO-3: dualpipe keeps two chunks of weights"
        if isinstance(self.compression, TopK) and layout.zero:
            allowed = "quantised, or parallelism.zero 0: Top-K replaces the all-reduce of whole gradients"
            yield "compression", "top_k", allowed
        if self.compression is not None and layout.zero == 3:
            yield "compression", "quantised", "none with ZeRO-3"
        yield from self._rank_problems()
        yield from super().problems()

    def _rank_problems(self) -> Iterator[Problem]:
        world = self.job.parallelism.world
        for index, entry in enumerate(self.slowness):
            for rank in entry.ranks:
                if rank >= world:
                    yield f"slowness[{index}].ranks", rank, f"ranks from 0 to {world - 1}"
            if entry.pause and entry.step >= self.steps:
                yield f"slowness[{index}].step", entry.step, f"from 0 to {self.steps - 1}"
        if self.packing is not None:
            longest = max(self.packing.lengths)
            if longest > self.job.sequence:
                yield "packing.lengths", longest, f"at most job.sequence ({self.job.sequence})"
