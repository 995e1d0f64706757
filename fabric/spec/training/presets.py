"""Models whose shape is published. Parameter counts follow from the shapes, and are tested."""

from __future__ import annotations

from fabric.errors import SpecError
from fabric.spec.training.model import Experts, LatentAttention, Model

__all__ = ["MODELS", "preset"]

MODELS = {
    "gpt2-small": Model(
        name="GPT-2 small",
        layers=12,
        hidden=768,
        ffn=3072,
        heads=12,
        vocabulary=50257,
        positions=1024,
        gated=False,
        biases=True,
        tied=True,
        norm="layer",
    ),
    "gpt3-175b": Model(
        name="GPT-3 175B",
        layers=96,
        hidden=12288,
        ffn=49152,
        heads=96,
        vocabulary=50257,
        positions=2048,
        gated=False,
        biases=True,
        tied=True,
        norm="layer",
    ),
    "llama2-70b": Model(
        name="Llama 2 70B", layers=80, hidden=8192, ffn=28672, heads=64, kv_heads=8, vocabulary=32000
    ),
    "llama3-70b": Model(
        name="Llama 3 70B", layers=80, hidden=8192, ffn=28672, heads=64, kv_heads=8, vocabulary=128256
    ),
    "llama3-405b": Model(
        name="Llama 3.1 405B", layers=126, hidden=16384, ffn=53248, heads=128, kv_heads=8, vocabulary=128256
    ),
    "mixtral-8x7b": Model(
        name="Mixtral 8x7B",
        layers=32,
        hidden=4096,
        ffn=14336,
        heads=32,
        kv_heads=8,
        vocabulary=32000,
        experts=Experts(count=8, top_k=2, ffn=14336),
    ),
    "deepseek-v3": Model(
        name="DeepSeek-V3",
        layers=61,
        hidden=7168,
        ffn=18432,
        heads=128,
        vocabulary=129280,
        latent=LatentAttention(query_rank=1536, kv_rank=512, nope_dim=128, rope_dim=64, value_dim=128),
        experts=Experts(
            count=256,
            top_k=8,
            ffn=2048,
            shared=1,
            dense_layers=3,
            router_bias=True,
            groups=8,
            groups_per_token=4,
        ),
    ),
}
"""By name. GPT-2, GPT-3: Radford et al. 2019 and the released checkpoint; Brown et al., arXiv 2005.14165,
table 2.1. Llama 2: arXiv 2307.09288 and its model card. Llama 3: arXiv 2407.21783, table 3. Mixtral: arXiv
2401.04088, table 1. DeepSeek-V3: arXiv 2412.19437, section 4.2 (without the layer that predicts a second
token)."""


def preset(name: str, *, path: str = "model") -> Model:
    """Return a model by its name.

    Raises
    ------
    SpecError
        If there is none.

    Examples
    --------
    >>> preset("llama3-70b").parameters
    70553706496
    """
    if name not in MODELS:
        raise SpecError(path, name, f"one of {', '.join(MODELS)}, or a table with a model's shape")
    return MODELS[name]
