"""Which layers are on which stage of a pipeline.

With v chunks per stage there are p * v chunks; chunk c of the model is chunk c // p of stage c % p. If
the layers are not a multiple of that, chunks at the ends have one less, alternately last and first, since
the embedding and the output are there (Llama 3 405B has one layer less on its first and on its last
stage: arXiv 2407.21783, section 3.3.2).
"""

from __future__ import annotations

from fabric.errors import SpecError

__all__ = ["split_layers"]


def split_layers(layers: int, *, pp: int, vpp: int = 1) -> list[list[range]]:
    """Return the layers, counted from 0, of every chunk of every stage.

    Parameters
    ----------
    layers : int
    pp, vpp : int
        Stages, and chunks on each.

    Raises
    ------
    SpecError
        If there are fewer layers than chunks.

    Examples
    --------
    >>> split_layers(16, pp=4, vpp=2)[1]
    [range(2, 4), range(10, 12)]
    >>> [len(stage[0]) for stage in split_layers(126, pp=16)]
    [7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7]
    """
    chunks = pp * vpp
    if layers < chunks:
        raise SpecError("parallelism.pp", pp, f"pp * vpp of at most the {layers} layers")
    most = -(-layers // chunks)
    size = [most] * chunks
    for short in range(most * chunks - layers):
        size[-1 - short // 2 if short % 2 == 0 else short // 2] -= 1
    first = [sum(size[:chunk]) for chunk in range(chunks)]
    ranges = [range(begin, begin + count) for begin, count in zip(first, size, strict=True)]
    return [ranges[stage::pp] for stage in range(pp)]
