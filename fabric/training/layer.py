"""What a rank does in one layer, in order: compute, and the collectives between its parts.

Forward: the input is gathered (sequence parallel), keys and values are exchanged, attention computed, its
output reduced; the same for the feed-forward block, or tokens go to experts and back. Backward: the mirror
image, after the forward pass again if it is recomputed. The sums over a step are those of
`fabric.training.volumes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from fabric.spec.training.job import TrainingJob
from fabric.training.volumes import attention_bytes, context_block_bytes

__all__ = ["Part", "backward_parts", "first_parts", "forward_parts", "last_parts"]


class Part(NamedTuple):
    """A part of a pass.

    Attributes
    ----------
    dimension : str
        "compute", "recompute" (a forward pass again), or a key of `GROUPS`.
    what : str
        The collective, or the part of a layer that is computed; of "ep" the way: "dispatch" or "combine".
    size : Fraction
        Full logical vector in bytes; 0 of compute.
    """

    dimension: str
    what: str
    size: Fraction


NOTHING = Fraction(0)


def forward_parts(job: TrainingJob, layer: int) -> Iterator[Part]:
    """Yield what the forward pass of a layer does."""
    yield from _enter(job)
    yield from _exchange(job, back=False)
    yield Part("compute", "attention", NOTHING)
    if job.context == "all_to_all":
        yield Part("cp", "all_to_all", attention_bytes(job)[3])
    yield from _leave(job)
    if _whole_block(job, layer):
        yield from _enter(job)
        if not job.shape.has_experts(layer):
            yield Part("compute", "feed_forward", NOTHING)
        yield from _leave(job)
    if job.shape.has_experts(layer):
        out, back = _token_bytes(job)
        yield Part("ep", "dispatch", out)
        yield Part("etp", "all_gather", job.parallelism.expert_tp * out)
        yield Part("compute", "experts", NOTHING)
        yield Part("etp", "reduce_scatter", job.parallelism.expert_tp * back)
        yield Part("ep", "combine", back)


def backward_parts(job: TrainingJob, layer: int) -> Iterator[Part]:
    """Yield what the backward pass of a layer does."""
    if job.recompute:
        for part in forward_parts(job, layer):
            yield part._replace(dimension="recompute") if part.dimension == "compute" else part
    if job.shape.has_experts(layer):
        out, back = _token_bytes(job)
        yield Part("ep", "dispatch", out)
        yield Part("etp", "all_gather", job.parallelism.expert_tp * out)
        yield Part("compute", "experts", NOTHING)
        yield Part("etp", "reduce_scatter", job.parallelism.expert_tp * back)
        yield Part("ep", "combine", back)
    if _whole_block(job, layer):
        yield from _enter(job, back=True)
        if not job.shape.has_experts(layer):
            yield Part("compute", "feed_forward", NOTHING)
        yield from _leave(job)
    yield from _enter(job, back=True)
    if job.context == "all_to_all":
        yield Part("cp", "all_to_all", attention_bytes(job)[3])
    elif job.context == "ring":
        yield from _exchange(job, back=False)
    yield Part("compute", "attention", NOTHING)
    yield from _exchange(job, back=True)
    yield from _leave(job)


def first_parts(job: TrainingJob, *, back: bool) -> Iterator[Part]:
    """Yield what the embedding adds to a pass of the first chunk."""
    size = Fraction(job.hidden_state_bytes)
    if not back:
        yield Part("tp", "reduce_scatter" if job.parallelism.sp else "all_reduce", size)
    elif job.parallelism.sp:
        yield Part("tp", "all_gather", size)


def last_parts(job: TrainingJob, *, back: bool) -> Iterator[Part]:
    """Yield what the output matrix and the loss add to a pass of the last chunk."""
    size, cut = Fraction(job.hidden_state_bytes), job.parallelism.sp
    if back:
        yield Part("compute", "output", NOTHING)
        if job.regather:
            yield Part("tp", "all_gather", size)
        yield Part("tp", "reduce_scatter" if cut else "all_reduce", size)
        return
    if cut:
        yield Part("tp", "all_gather", size)
    yield Part("compute", "output", NOTHING)
    tokens = job.micro_batch * (job.sequence // job.parallelism.cp)
    yield from [Part("tp", "all_reduce", Fraction(4 * tokens))] * 3


def _whole_block(job: TrainingJob, layer: int) -> bool:
    """Whether a layer has a feed-forward block that every token takes."""
    experts = job.shape.experts
    return not job.shape.has_experts(layer) or (experts is not None and experts.shared > 0)


def _token_bytes(job: TrainingJob) -> tuple[Fraction, Fraction]:
    assert job.shape.experts is not None
    copies = job.tokens_per_rank * job.shape.experts.top_k
    return (
        Fraction(copies * job.dispatch_token_bytes),
        Fraction(copies * job.shape.hidden * job.activation_bytes),
    )


def _enter(job: TrainingJob, *, back: bool = False) -> Iterator[Part]:
    if job.parallelism.sp:
        times = 1 + int(back and job.regather)
        yield from [Part("tp", "all_gather", Fraction(job.hidden_state_bytes))] * times


def _leave(job: TrainingJob) -> Iterator[Part]:
    kind = "reduce_scatter" if job.parallelism.sp else "all_reduce"
    yield Part("tp", kind, Fraction(job.hidden_state_bytes))


def _exchange(job: TrainingJob, *, back: bool) -> Iterator[Part]:
    if job.context == "all_to_all":
        yield from (Part("cp", "all_to_all", each) for each in attention_bytes(job)[:3])
        return
    gathered = job.parallelism.cp * context_block_bytes(job)
    yield Part("cp", "reduce_scatter" if back else "all_gather", gathered)
