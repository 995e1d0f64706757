"""Floating-point operations of a training step.

Two a multiplication and addition: 2 for a token and a parameter of a matrix, and in attention, for each
pair of a token and one that it sees (itself included), 2 for the score and 2 for the value, by head and its
width. Attention is causal. A backward pass has twice the forward's. Recomputation is not counted: model
FLOPs utilisation (MFU) is that of operations that the model needs.

Source: Chowdhery et al., arXiv 2204.02311, appendix B (MFU), without its 12 for what causal masking leaves
out.
"""

from __future__ import annotations

from fabric.errors import SpecError
from fabric.spec.training.compute import PARTS
from fabric.spec.training.job import TrainingJob

__all__ = ["part_flops", "step_flops"]


def part_flops(job: TrainingJob, part: str) -> tuple[float, float]:
    """Forward operations of one layer's part and one micro-batch on one rank.

    Parameters
    ----------
    job : TrainingJob
    part : str
        "attention", "feed_forward", "experts" (shared and routed, tokens spread evenly) or "output".

    Returns
    -------
    linear, core : float
        Of matrices; of scores and values, which have no weights.

    Examples
    --------
    >>> job = TrainingJob(model="llama3-70b", sequence=8192, global_batch=1)
    >>> [round(each / 1e12, 2) for each in part_flops(job, "attention")]
    [2.47, 1.1]
    """
    if part not in PARTS:
        raise SpecError("part", part, f"one of {', '.join(PARTS)}")
    model, layout = job.shape, job.parallelism
    tokens = job.micro_batch * (job.sequence // layout.cp)
    if part == "attention":
        pairs = job.micro_batch * job.sequence * (job.sequence + 1) / 2 / layout.cp
        if model.latent is not None:
            width = model.latent.nope_dim + model.latent.rope_dim + model.latent.value_dim
        else:
            width = 2 * model.head_width
        core = 2.0 * pairs * model.heads * width
        return 2.0 * tokens * model.attention_parameters / layout.tp, core / layout.tp
    if part == "feed_forward":
        return 2.0 * tokens * model.block_parameters(model.ffn) / layout.tp, 0.0
    if part == "output":
        return 2.0 * tokens * model.vocabulary * model.hidden / layout.tp, 0.0
    if model.experts is None:
        return 0.0, 0.0
    shared = 2.0 * tokens * model.experts.shared * model.expert_parameters / layout.tp
    routed = 2.0 * job.tokens_per_rank * model.experts.top_k * model.expert_parameters
    return shared + routed, 0.0


def step_flops(job: TrainingJob) -> tuple[float, float]:
    """Operations that the model needs for a whole step, forward and backward, on all ranks together.

    Returns
    -------
    linear, core : float
        As `part_flops`.

    Examples
    --------
    >>> job = TrainingJob(model="llama3-70b", sequence=8192, global_batch=1)
    >>> [round(each / (6 * job.shape.parameters * 8192), 3) for each in step_flops(job)]
    [0.985, 0.076]
    """
    model, layout = job.shape, job.parallelism
    each = {part: part_flops(job, part) for part in PARTS}
    total = [0.0, 0.0]
    for kind in (0, 1):
        layers = sum(
            each["attention"][kind] + each["experts" if model.has_experts(layer) else "feed_forward"][kind]
            for layer in range(model.layers)
        )
        many = job.micro_batches * layout.tp * layout.cp * layout.dp
        total[kind] = 3.0 * (layers + each["output"][kind]) * many
    return total[0], total[1]
