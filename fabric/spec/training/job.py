"""`TrainingJob`: a model, how it is laid out over ranks, its batch, and the precision of what it sends."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Literal

from fabric.spec.base import Problem, Spec
from fabric.spec.training.model import Model
from fabric.spec.training.parallelism import Parallelism
from fabric.spec.training.presets import preset
from fabric.spec.training.stages import split_layers

__all__ = ["TrainingJob"]


class TrainingJob(Spec, frozen=True, kw_only=True):
    """What a training step computes and where.

    Parameters
    ----------
    model : Model or str
        Or the name of a preset.
    layers, dense_layers : int, optional
        Instead of the model's own: fewer, so that a step is small enough to send packet by packet.
    sequence, micro_batch : int
        Tokens of a sequence; sequences that pass a pipeline together.
    global_batch : int
        Sequences of a step, over all data ranks.
    parallelism : Parallelism
        Default: one rank.
    activation_bytes, weight_bytes, gradient_bytes : int
        Per element, as sent: 2 for bf16, 4 for fp32.
    recompute : bool
        Whether the backward pass runs the forward pass again (full recomputation).
    regather : bool
        With `sp`: whether the backward pass gathers inputs again instead of keeping them.
    context : {"ring", "all_gather", "all_to_all"}
        How context ranks exchange keys and values; the last is Ulysses.
    dispatch : {"bf16", "fp8"}
        Precision of tokens on their way to experts; with fp8 a 4-byte scale goes with every 128 elements.
    accumulate : bool
        Whether gradients add up locally over micro-batches (ZeRO-2) and gathered weights are kept from
        one to the next (ZeRO-3). If not, every micro-batch reduces, and gathers again.
    name : str
        For pictures. Default: none.

    Raises
    ------
    SpecError
        If the batch, the layers, the heads or the experts cannot be divided as the layout asks.

    Examples
    --------
    >>> job = TrainingJob(model="gpt3-175b", sequence=2048, global_batch=1536,
    ...     parallelism=Parallelism(tp=8, pp=8, dp=16))
    >>> job.micro_batches, int(job.hidden_state_bytes)
    (96, 50331648)
    """

    model: str | Model
    layers: int | None = None
    dense_layers: int | None = None
    sequence: int
    global_batch: int
    micro_batch: int = 1
    parallelism: Parallelism = Parallelism()
    activation_bytes: int = 2
    weight_bytes: int = 2
    gradient_bytes: int = 2
    recompute: bool = False
    regather: bool = False
    context: Literal["ring", "all_gather", "all_to_all"] = "ring"
    dispatch: Literal["bf16", "fp8"] = "bf16"
    accumulate: bool = True
    name: str = ""

    def problems(self) -> Iterator[Problem]:
        for name in (
            *("sequence", "global_batch", "micro_batch"),
            *("activation_bytes", "weight_bytes", "gradient_bytes"),
        ):
            if getattr(self, name) < 1:
                yield name, getattr(self, name), "at least 1"
        if self.layers is not None and self.layers < 1:
            yield "layers", self.layers, "at least 1"
            return
        model, layout = self.shape, self.parallelism
        if self.dense_layers is not None and model.experts is None:
            yield "dense_layers", self.dense_layers, "none for a model without experts"
        if self.global_batch % (self.micro_batch * layout.dp):
            share = self.micro_batch * layout.dp
            yield "global_batch", self.global_batch, f"a multiple of micro_batch * dp ({share})"
        if self.sequence % (layout.cp * (layout.tp if layout.sp else 1)):
            yield "sequence", self.sequence, "a multiple of cp, and of cp * tp with sp"
        if model.heads % layout.tp:
            yield "parallelism.tp", layout.tp, f"a divisor of the {model.heads} heads"
        if self.regather and not layout.sp:
            yield "regather", self.regather, "false without parallelism.sp"
        split_layers(model.layers, pp=layout.pp, vpp=layout.vpp)
        yield from self._context_problems()
        yield from self._expert_problems()

    def _context_problems(self) -> Iterator[Problem]:
        model, layout = self.shape, self.parallelism
        heads = model.heads if model.latent is not None else model.key_heads
        if self.context == "all_to_all" and heads % (layout.tp * layout.cp):
            yield "context", self.context, f"tp * cp that divides the {heads} heads of keys, or another way"

    def _expert_problems(self) -> Iterator[Problem]:
        experts, layout = self.shape.experts, self.parallelism
        if experts is None:
            if layout.ep > 1:
                yield "parallelism.ep", layout.ep, "1 for a model without experts"
            return
        if experts.count % layout.ep:
            yield "parallelism.ep", layout.ep, f"a divisor of the {experts.count} experts"
        if experts.ffn % layout.expert_tp:
            yield "parallelism.etp", layout.expert_tp, f"a divisor of an expert's width, {experts.ffn}"
        if layout.tp > 1 and not layout.sp:
            yield (
                "parallelism.sp",
                layout.sp,
                "true where a model with experts has tp > 1: else every token would go out tp times",
            )
        if self.dispatch == "fp8" and self.shape.hidden % 128:
            yield "dispatch", self.dispatch, "bf16 where the hidden width is no multiple of 128"

    @property
    def shape(self) -> Model:
        """The model, a preset looked up, with as many layers as the job wants."""
        return _shape(self.model, self.layers, self.dense_layers)

    @property
    def micro_batches(self) -> int:
        """Micro-batches of each pipeline in a step."""
        return self.global_batch // (self.micro_batch * self.parallelism.dp)

    @property
    def hidden_state_bytes(self) -> int:
        """A: the hidden state of one micro-batch on one context rank."""
        tokens = self.micro_batch * (self.sequence // self.parallelism.cp)
        return self.activation_bytes * tokens * self.shape.hidden

    @property
    def message_bytes(self) -> int:
        """What one rank sends to the next stage for one micro-batch."""
        return self.hidden_state_bytes // (self.parallelism.tp if self.parallelism.sp else 1)

    @property
    def tokens_per_rank(self) -> int:
        """T: tokens of a micro-batch whose experts one rank looks up."""
        layout = self.parallelism
        return self.micro_batch * self.sequence // (layout.cp * (layout.tp if layout.sp else 1))

    @property
    def dispatch_token_bytes(self) -> int:
        """One copy of a token on its way to an expert."""
        if self.dispatch == "fp8":
            return self.shape.hidden + self.shape.hidden // 128 * 4
        return self.activation_bytes * self.shape.hidden


@cache
def _shape(model: str | Model, layers: int | None, dense_layers: int | None) -> Model:
    shape = model if isinstance(model, Model) else preset(model)
    changes: dict[str, Any] = {} if layers is None else {"layers": layers}
    if dense_layers is not None and shape.experts is not None:
        changes["experts"] = shape.experts.replace(dense_layers=dense_layers)
    return shape.replace(**changes) if changes else shape
