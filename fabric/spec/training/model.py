"""`Model`: the shape of a transformer, and how many parameters it has, exactly.

Attention is multi-head, grouped-query, or with latents (DeepSeek's MLA: queries and keys/values go through
narrow vectors, which have norms of their own). The feed-forward block is two matrices, three where it is
gated, or a router with experts of such blocks, of which a few shared ones take every token. A layer has two
norms, the model one more; a layer norm has two vectors, an RMS norm one.

Counts are those of the published checkpoints; padding of the vocabulary that a framework adds is not in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from fabric.spec.base import Problem, Spec

__all__ = ["Experts", "LatentAttention", "Model"]


class LatentAttention(Spec, frozen=True, kw_only=True):
    """Attention with latents (DeepSeek-V2, arXiv 2405.04434).

    Parameters
    ----------
    query_rank, kv_rank : int
        Width of the latent vectors.
    nope_dim, rope_dim, value_dim : int
        Of a head: the part of a key without and with position, and the value.
    """

    query_rank: int
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int

    def problems(self) -> Iterator[Problem]:
        return _positive(self, *self.__struct_fields__)


class Experts(Spec, frozen=True, kw_only=True):
    """The experts of a layer.

    Parameters
    ----------
    count : int
        Experts that a router chooses from.
    top_k : int
        Of them, for each token.
    ffn : int
        Width of one.
    shared : int
        Experts that take every token.
    dense_layers : int
        First layers, which have no experts.
    router_bias : bool
        Whether each expert has a bias in the choice (balance without an auxiliary loss).
    groups, groups_per_token : int
        Experts are in so many groups, of which a token's experts come from so few.
    """

    count: int
    top_k: int
    ffn: int
    shared: int = 0
    dense_layers: int = 0
    router_bias: bool = False
    groups: int = 1
    groups_per_token: int = 1

    def problems(self) -> Iterator[Problem]:
        yield from _positive(self, "count", "top_k", "ffn", "groups", "groups_per_token")
        for name in ("shared", "dense_layers"):
            if getattr(self, name) < 0:
                yield name, getattr(self, name), "at least 0"
        if self.top_k > self.count:
            yield "top_k", self.top_k, f"at most the {self.count} experts"
        if self.count % self.groups:
            yield "groups", self.groups, f"a divisor of the {self.count} experts"
        if self.groups_per_token > self.groups:
            yield "groups_per_token", self.groups_per_token, f"at most the {self.groups} groups"
        if self.top_k > self.groups_per_token * (self.count // self.groups):
            room = self.groups_per_token * (self.count // self.groups)
            yield "top_k", self.top_k, f"at most the {room} experts of {self.groups_per_token} groups"


class Model(Spec, frozen=True, kw_only=True):
    """A transformer.

    Parameters
    ----------
    layers, hidden, ffn, heads, vocabulary : int
        `ffn` is the width of a dense feed-forward block.
    kv_heads : int, optional
        As many as `heads` unless given.
    head_dim : int, optional
        hidden / heads unless given.
    positions : int
        Learned position vectors; 0 where positions are rotary.
    gated : bool
        Three matrices in a feed-forward block, not two.
    biases : bool
        In every matrix but the vocabulary's.
    tied : bool
        The output matrix is the embedding.
    norm : {"rms", "layer"}
        Of which a layer has two and the model one more.
    latent : LatentAttention, optional
        Attention with latents instead of heads of keys and values.
    experts : Experts, optional
        Instead of dense feed-forward blocks.
    name : str
        For reports.

    Raises
    ------
    SpecError
        If a number is below 1 or two do not fit.

    Examples
    --------
    >>> model = Model(layers=12, hidden=768, ffn=3072, heads=12, vocabulary=50257, positions=1024,
    ...     gated=False, biases=True, tied=True, norm="layer")
    >>> model.layer_parameters(0), model.parameters
    (7087872, 124439808)
    """

    layers: int
    hidden: int
    ffn: int
    heads: int
    vocabulary: int
    kv_heads: int | None = None
    head_dim: int | None = None
    positions: int = 0
    gated: bool = True
    biases: bool = False
    tied: bool = False
    norm: Literal["rms", "layer"] = "rms"
    latent: LatentAttention | None = None
    experts: Experts | None = None
    name: str = ""

    def problems(self) -> Iterator[Problem]:
        yield from _positive(self, "layers", "hidden", "ffn", "heads", "vocabulary")
        for name in ("kv_heads", "head_dim"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                yield name, getattr(self, name), "at least 1"
        if self.positions < 0:
            yield "positions", self.positions, "at least 0"
        if self.head_dim is None and self.hidden % self.heads:
            yield "heads", self.heads, f"a divisor of hidden ({self.hidden}), or head_dim"
        if self.heads % self.key_heads:
            yield "kv_heads", self.key_heads, f"a divisor of the {self.heads} heads"
        if self.experts is not None and self.experts.dense_layers > self.layers:
            yield "experts.dense_layers", self.experts.dense_layers, f"at most the {self.layers} layers"

    @property
    def key_heads(self) -> int:
        """Heads of keys and values."""
        return self.heads if self.kv_heads is None else self.kv_heads

    @property
    def head_width(self) -> int:
        """Elements of a head."""
        return self.hidden // self.heads if self.head_dim is None else self.head_dim

    def has_experts(self, layer: int) -> bool:
        """Whether a layer, counted from 0, has experts."""
        return self.experts is not None and layer >= self.experts.dense_layers

    @property
    def norm_parameters(self) -> int:
        """Of one norm over the hidden width."""
        return self.hidden * (2 if self.norm == "layer" else 1)

    @property
    def attention_parameters(self) -> int:
        """Of one layer, norms of latents included."""
        h, n = self.hidden, self.heads
        if self.latent is not None:
            each = self.latent
            query = h * each.query_rank + each.query_rank * n * (each.nope_dim + each.rope_dim)
            shared = h * (each.kv_rank + each.rope_dim)
            spread = each.kv_rank * n * (each.nope_dim + each.value_dim)
            scale = 2 if self.norm == "layer" else 1
            norms = (each.query_rank + each.kv_rank) * scale
            return query + shared + spread + n * each.value_dim * h + norms
        wide, narrow = n * self.head_width, self.key_heads * self.head_width
        return 2 * h * wide + 2 * h * narrow + (wide + 2 * narrow + h if self.biases else 0)

    def block_parameters(self, ffn: int) -> int:
        """Of a feed-forward block of a width."""
        into = 2 if self.gated else 1
        return (into + 1) * self.hidden * ffn + (into * ffn + self.hidden if self.biases else 0)

    @property
    def expert_parameters(self) -> int:
        """Of one expert; 0 without experts."""
        return 0 if self.experts is None else self.block_parameters(self.experts.ffn)

    @property
    def router_parameters(self) -> int:
        """Of one layer's router; 0 without experts."""
        if self.experts is None:
            return 0
        return self.experts.count * (self.hidden + (1 if self.experts.router_bias else 0))

    def routed_parameters(self, layer: int) -> int:
        """Of the experts that a router chooses from, in a layer counted from 0."""
        if self.experts is None or not self.has_experts(layer):
            return 0
        return self.experts.count * self.expert_parameters

    def dense_parameters(self, layer: int) -> int:
        """Of a layer without the experts that a router chooses from."""
        common = self.attention_parameters + 2 * self.norm_parameters
        if self.experts is None or not self.has_experts(layer):
            return common + self.block_parameters(self.ffn)
        return common + self.router_parameters + self.experts.shared * self.expert_parameters

    def layer_parameters(self, layer: int) -> int:
        """Of a layer counted from 0."""
        return self.dense_parameters(layer) + self.routed_parameters(layer)

    @property
    def embedding_parameters(self) -> int:
        """Of the embedding, with positions."""
        return (self.vocabulary + self.positions) * self.hidden

    @property
    def output_parameters(self) -> int:
        """Of the output matrix; 0 where it is the embedding."""
        return 0 if self.tied else self.vocabulary * self.hidden

    @property
    def parameters(self) -> int:
        """Of the whole model."""
        layers = sum(self.layer_parameters(layer) for layer in range(self.layers))
        return self.embedding_parameters + layers + self.norm_parameters + self.output_parameters

    @property
    def active_parameters(self) -> int:
        """Those that one token meets: of the routed experts only its top k."""
        if self.experts is None:
            return self.parameters
        idle = (self.experts.count - self.experts.top_k) * self.expert_parameters
        return self.parameters - idle * (self.layers - self.experts.dense_layers)


def _positive(spec: Spec, *names: str) -> Iterator[Problem]:
    for name in names:
        if getattr(spec, name) < 1:
            yield name, getattr(spec, name), "at least 1"
