"""What one rank sends in a training step, row by row: which collective, how large, how often, on which group.

Sizes are of the full logical vector of a rank, as everywhere. `wire_bytes` is what a rank must send with an
algorithm that wastes nothing, and equals what it receives. Bytes need not be whole (a seventh of a vector
that cannot be cut in seven), so they are fractions; routing is uniform (see `fabric.training.router`).

Sources: Megatron-LM (`tensor_parallel/`, `pipeline_parallel/`, `transformer/moe/`, user guide on context
parallelism); sequence parallelism, arXiv 2205.05198; ZeRO, arXiv 1910.02054; ring attention, arXiv
2310.01889; Ulysses, arXiv 2309.14509.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from fabric.errors import SpecError
from fabric.spec.training.job import TrainingJob
from fabric.spec.training.stages import split_layers

__all__ = [
    "GROUPS",
    "NAMES",
    "Volume",
    "attention_bytes",
    "chunk_parameters",
    "context_block_bytes",
    "data_volumes",
    "held_parameters",
    "volumes",
    "wire_bytes",
]

GROUPS = {
    "tp": ("tp", False),
    "cp": ("cp", False),
    "etp": ("tp", True),
    "ep": ("ep", True),
    "dp": ("dp-cp", False),
    "edp": ("dp", True),
    "pp": ("pp", False),
    "embedding": ("pp", False),
}
"""The groups of each dimension of a volume, as `Parallelism.groups` takes them. Of "embedding" only the
first and the last member take part."""

NAMES = {
    "tp": "tensor",
    "cp": "context",
    "etp": "tensor, of experts",
    "ep": "expert",
    "dp": "data",
    "edp": "data, of experts",
    "pp": "pipeline",
    "embedding": "tied embedding",
}
"""What each dimension is called."""

_SHARE = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1}


def wire_bytes(collective: str, size: Fraction | int, *, n_ranks: int) -> Fraction:
    """Bytes that one rank must send in a collective; all of them for a message.

    Examples
    --------
    >>> int(wire_bytes("all_reduce", 50331648, n_ranks=8))
    88080384
    """
    if collective == "send_recv":
        return Fraction(size)
    return _SHARE[collective] * Fraction(n_ranks - 1, n_ranks) * size


@dataclass(frozen=True, kw_only=True)
class Volume:
    """One row of what a rank sends in a step.

    Attributes
    ----------
    dimension : str
        Key of `GROUPS`.
    what : str
        Which part of the step.
    collective : str
        "all_reduce", "all_gather", "reduce_scatter", "all_to_all" or "send_recv".
    size_bytes : Fraction
        Full logical vector of one operation.
    n_ranks : int
        Of the group; 2 for a message.
    count : int
        Operations in a step.
    """

    dimension: str
    what: str
    collective: str
    size_bytes: Fraction
    n_ranks: int
    count: int

    @property
    def wire_bytes(self) -> Fraction:
        """Bytes that the rank sends in the whole step."""
        return self.count * wire_bytes(self.collective, self.size_bytes, n_ranks=self.n_ranks)


def chunk_parameters(job: TrainingJob, position: int, *, embedding: bool = True) -> tuple[Fraction, Fraction]:
    """As `held_parameters`, of the chunk at one position of the model."""
    model, layout = job.shape, job.parallelism
    chunks = split_layers(model.layers, pp=layout.pp, vpp=layout.vpp)
    layers = chunks[position % layout.pp][position // layout.pp]
    dense = sum(model.dense_parameters(layer) for layer in layers)
    routed = sum(model.routed_parameters(layer) for layer in layers)
    if embedding and position == 0:
        dense += model.embedding_parameters
    if embedding and position == layout.pp * layout.vpp - 1:
        copy = model.vocabulary * model.hidden if model.tied and layout.pp > 1 else model.output_parameters
        dense += copy + model.norm_parameters
    return Fraction(dense, layout.tp), Fraction(routed, layout.expert_tp * layout.ep)


def held_parameters(job: TrainingJob, *, stage: int, embedding: bool = True) -> tuple[Fraction, Fraction]:
    """Parameters on one rank: those of its dense part, and those of routed experts.

    Norms are counted as cut over the tensor group like all else.

    Parameters
    ----------
    job : TrainingJob
    stage : int
    embedding : bool
        Whether the embedding, the output matrix and the last norm count where they are.

    Examples
    --------
    >>> from fabric.spec.training.parallelism import Parallelism
    >>> job = TrainingJob(model="gpt3-175b", sequence=2048, global_batch=1536,
    ...     parallelism=Parallelism(tp=8, pp=8, dp=16))
    >>> int(held_parameters(job, stage=3)[0])
    2718148608
    """
    layout = job.parallelism
    if not 0 <= stage < layout.pp:
        raise SpecError("stage", stage, f"0 to {layout.pp - 1}")
    chunks = range(stage, layout.pp * layout.vpp, layout.pp)
    each = [chunk_parameters(job, position, embedding=embedding) for position in chunks]
    return sum((dense for dense, _ in each), Fraction(0)), sum((routed for _, routed in each), Fraction(0))


def context_block_bytes(job: TrainingJob) -> Fraction:
    """Keys and values of one micro-batch on one context rank, which go around the ring.

    Where there are fewer heads of keys than tensor ranks, each rank has one.
    """
    return sum(attention_bytes(job)[1:3], Fraction(0))


def attention_bytes(job: TrainingJob) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    """Bytes of queries, keys, values and output of attention, of one micro-batch on one rank."""
    model, layout = job.shape, job.parallelism
    tokens = job.micro_batch * (job.sequence // layout.cp)
    if model.latent is not None:
        key = model.latent.nope_dim + model.latent.rope_dim
        widths = [
            (model.heads, width) for width in (key, key, model.latent.value_dim, model.latent.value_dim)
        ]
    else:
        narrow = max(model.key_heads, layout.tp)
        heads = (model.heads, narrow, narrow, model.heads)
        widths = [(each, model.head_width) for each in heads]
    query, keys, values, output = (
        Fraction(job.activation_bytes * tokens * heads * width, layout.tp) for heads, width in widths
    )
    return query, keys, values, output


def volumes(job: TrainingJob, *, stage: int = 0) -> list[Volume]:
    """Return what a rank on a stage sends in a step.

    Parameters
    ----------
    job : TrainingJob
    stage : int

    Returns
    -------
    list of Volume
        Those of groups of one rank, which send nothing, left out.

    Raises
    ------
    SpecError
        If there is no such stage.

    Examples
    --------
    >>> from fabric.spec.training.parallelism import Parallelism
    >>> job = TrainingJob(model="gpt3-175b", sequence=2048, global_batch=1536,
    ...     parallelism=Parallelism(tp=8, pp=8, dp=16))
    >>> for row in volumes(job, stage=3):
    ...     sizes = int(row.size_bytes), int(row.wire_bytes)
    ...     print(row.dimension, row.what, row.count, row.collective, *sizes)
    tp layers 4608 all_reduce 50331648 405874409472
    pp activations 96 send_recv 50331648 4831838208
    pp gradients 96 send_recv 50331648 4831838208
    dp gradients 1 all_reduce 5436297216 10193057280
    """
    held_parameters(job, stage=stage)
    rows = [*_tensor(job, stage), *_context(job, stage), *_experts(job, stage), *_pipeline(job, stage)]
    rows += data_volumes(job, stage)
    return [row for row in rows if row.n_ranks > 1 and row.count and row.size_bytes]


def _layers(job: TrainingJob, stage: int) -> list[int]:
    layout = job.parallelism
    chunks = split_layers(job.shape.layers, pp=layout.pp, vpp=layout.vpp)
    return [layer for chunk in chunks[stage] for layer in chunk]


def _tensor(job: TrainingJob, stage: int) -> Iterator[Volume]:
    model, layout, micro_batches = job.shape, job.parallelism, job.micro_batches
    size = Fraction(job.hidden_state_bytes)

    def row(what: str, collective: str, count: int, each: Fraction = size) -> Volume:
        return Volume(
            dimension="tp",
            what=what,
            collective=collective,
            size_bytes=each,
            n_ranks=layout.tp,
            count=count * micro_batches,
        )

    blocks = 0
    for layer in _layers(job, stage):
        shared = model.experts.shared if model.experts is not None else 0
        blocks += 2 if not model.has_experts(layer) or shared else 1
    again = int(job.recompute)
    if layout.sp:
        yield row("layers", "all_gather", (2 + again + int(job.regather)) * blocks)
        yield row("layers", "reduce_scatter", (2 + again) * blocks)
    else:
        yield row("layers", "all_reduce", (2 + again) * blocks)
    if stage == 0:
        yield row("embedding", "reduce_scatter" if layout.sp else "all_reduce", 1)
        yield row("embedding's gradient", "all_gather", int(layout.sp))
    if stage == layout.pp - 1:
        yield row("output's input", "all_gather", int(layout.sp) * (1 + int(job.regather)))
        yield row("output's gradient", "reduce_scatter" if layout.sp else "all_reduce", 1)
        tokens = job.micro_batch * (job.sequence // layout.cp)
        yield row("loss", "all_reduce", 3, Fraction(4 * tokens))


def _context(job: TrainingJob, stage: int) -> Iterator[Volume]:
    layout = job.parallelism
    passes = len(_layers(job, stage)) * job.micro_batches

    def row(what: str, collective: str, each: Fraction, count: int) -> Volume:
        return Volume(
            dimension="cp",
            what=what,
            collective=collective,
            size_bytes=each,
            n_ranks=layout.cp,
            count=count * passes,
        )

    again = int(job.recompute)
    if job.context == "all_to_all":
        for what, each in zip(("queries", "keys", "values", "output"), attention_bytes(job), strict=True):
            yield row(what, "all_to_all", each, 2 + again)
        return
    gathered = layout.cp * context_block_bytes(job)
    backward = 1 if job.context == "ring" else 0
    yield row("keys and values", "all_gather", gathered, 1 + backward + again)
    yield row("gradients of keys and values", "reduce_scatter", gathered, 1)


def _experts(job: TrainingJob, stage: int) -> Iterator[Volume]:
    experts, layout = job.shape.experts, job.parallelism
    if experts is None:
        return
    passes = sum(job.shape.has_experts(layer) for layer in _layers(job, stage)) * job.micro_batches
    copies = job.tokens_per_rank * experts.top_k
    out = Fraction(copies * job.dispatch_token_bytes)
    back = Fraction(copies * job.shape.hidden * job.activation_bytes)
    again = int(job.recompute)

    def row(dimension: str, what: str, collective: str, each: Fraction, count: int) -> Volume:
        n_ranks = layout.ep if dimension == "ep" else layout.expert_tp
        return Volume(
            dimension=dimension,
            what=what,
            collective=collective,
            size_bytes=each,
            n_ranks=n_ranks,
            count=count * passes,
        )

    yield row("ep", "dispatch", "all_to_all", out, 1 + again)
    yield row("ep", "combine", "all_to_all", back, 1 + again)
    yield row("ep", "gradient of dispatch", "all_to_all", back, 1)
    yield row("ep", "gradient of combine", "all_to_all", out, 1)
    yield row("etp", "dispatched tokens", "all_gather", layout.expert_tp * out, 1 + again)
    yield row("etp", "results", "reduce_scatter", layout.expert_tp * back, 1 + again)
    yield row("etp", "gradients of tokens", "reduce_scatter", layout.expert_tp * back, 1)
    yield row("etp", "gradients of results", "all_gather", layout.expert_tp * out, 1)


def _pipeline(job: TrainingJob, stage: int) -> Iterator[Volume]:
    layout = job.parallelism
    sends = {
        "activations": layout.vpp - int(stage == layout.pp - 1),
        "gradients": layout.vpp - int(stage == 0),
    }
    for what, chunks in sends.items():
        yield Volume(
            dimension="pp",
            what=what,
            collective="send_recv",
            size_bytes=Fraction(job.message_bytes),
            n_ranks=min(layout.pp, 2),
            count=chunks * job.micro_batches,
        )
    if job.shape.tied and layout.pp > 1 and stage in (0, layout.pp - 1):
        elements = Fraction(job.shape.vocabulary * job.shape.hidden, layout.tp)
        yield Volume(
            dimension="embedding",
            what="gradients",
            collective="all_reduce",
            size_bytes=job.gradient_bytes * elements,
            n_ranks=2,
            count=1,
        )


def data_volumes(job: TrainingJob, stage: int) -> Iterator[Volume]:
    """Yield what data ranks of a stage send, also where it is nothing."""
    layout = job.parallelism
    often = 1 if job.accumulate else job.micro_batches
    for dimension, held in zip(("dp", "edp"), held_parameters(job, stage=stage), strict=True):
        gradients, weights = job.gradient_bytes * held, job.weight_bytes * held
        n_ranks = layout.dp * layout.cp if dimension == "dp" else layout.expert_dp

        def row(
            what: str,
            collective: str,
            each: Fraction,
            count: int,
            *,
            where: str = dimension,
            n: int = n_ranks,
        ) -> Volume:
            return Volume(
                dimension=where, what=what, collective=collective, size_bytes=each, n_ranks=n, count=count
            )

        if layout.zero == 0:
            yield row("gradients", "all_reduce", gradients, 1)
        elif layout.zero == 3:
            yield row("weights", "all_gather", weights, 2 * often)
            yield row("gradients", "reduce_scatter", gradients, often)
        else:
            yield row("gradients", "reduce_scatter", gradients, often if layout.zero == 2 else 1)
            yield row("weights", "all_gather", weights, 1)
