"""How long a rank computes: given, measured part by part, or from floating-point operations.

All three are times of one micro-batch on one rank, before slowness, imbalance of experts and lengths of
sequences are counted in. Recomputation adds a forward pass to the backward pass of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from fabric.spec.base import Problem, Spec, quantity
from fabric.units import Duration

__all__ = ["Compute", "FlopTimes", "GivenTimes", "MeasuredTimes"]

LARGEST_PS = 2**50
"""Of one part of one pass: 18 minutes."""

PARTS = ("attention", "feed_forward", "experts", "output")
"""What a measured table has a row for."""


class GivenTimes(Spec, frozen=True, kw_only=True, tag_field="kind", tag="given"):
    """Times of one layer, as they are.

    Parameters
    ----------
    forward : Duration
        Of one layer.
    backward : Duration, optional
        Of inputs and weights together. None (default): twice `forward`.
    weight : Duration, optional
        The part of `backward` that a schedule with split backwards may put off. None (default): half of it.
    update : Duration
        Of the optimizer, once a step. Default 0.
    """

    forward: Duration
    backward: Duration | None = None
    weight: Duration | None = None
    update: Duration = quantity("0ns")

    @property
    def whole_backward(self) -> int:
        """`backward`, or what it is when left out."""
        return 2 * int(self.forward) if self.backward is None else int(self.backward)

    @property
    def weight_part(self) -> int:
        """`weight`, or what it is when left out."""
        return self.whole_backward // 2 if self.weight is None else int(self.weight)

    def problems(self) -> Iterator[Problem]:
        yield from _bounded(self, "forward", "backward", "weight", "update")
        if self.weight_part > self.whole_backward:
            yield "weight", self.weight, f"at most backward ({Duration(self.whole_backward)})"


class MeasuredTimes(Spec, frozen=True, kw_only=True, tag_field="kind", tag="measured"):
    """Times of parts, as a profile of the model on one accelerator has them.

    Parameters
    ----------
    file : str
        CSV with the columns part, forward_us, backward_us and weight_us, in a scenario file relative to that
        file. Parts: attention, feed_forward, experts, output; those that the model has must be there, output
        (the vocabulary's matrix and the loss) may be left out.
    update : Duration
        Of the optimizer, once a step. Default 0.
    """

    FILES: ClassVar[tuple[str, ...]] = ("file",)

    file: str
    update: Duration = quantity("0ns")

    def problems(self) -> Iterator[Problem]:
        if not self.file:
            yield "file", self.file, "the name of a CSV file"
        yield from _bounded(self, "update")


class FlopTimes(Spec, frozen=True, kw_only=True, tag_field="kind", tag="flops"):
    """Floating-point operations over what an accelerator reaches.

    Parameters
    ----------
    peak_tflops : float
        10^12 operations a second in the precision of the matrices, dense. H100 SXM: 989 in bf16 (data sheet).
    efficiency : float
        Share of that which matrices reach; above 0, at most 1. Default 0.5.
    update : Duration
        Of the optimizer, once a step. Default 0.
    """

    peak_tflops: float
    efficiency: float = 0.5
    update: Duration = quantity("0ns")

    def problems(self) -> Iterator[Problem]:
        if not 0 < self.peak_tflops < 1e9:
            yield "peak_tflops", self.peak_tflops, "a number above 0"
        if not 0 < self.efficiency <= 1:
            yield "efficiency", self.efficiency, "above 0, at most 1"
        yield from _bounded(self, "update")


Compute = GivenTimes | MeasuredTimes | FlopTimes


def _bounded(spec: Spec, *names: str) -> Iterator[Problem]:
    for name in names:
        if (getattr(spec, name) or 0) > LARGEST_PS:
            yield name, getattr(spec, name), f"at most {Duration(LARGEST_PS)}"
