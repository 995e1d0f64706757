"""`Parallelism`: how many ranks share what, and which ranks form which group.

A rank has a coordinate along every dimension: tensor (tp), context (cp), expert (ep), data (dp) and pipeline
(pp). The order string says which varies fastest: rank = sum of coordinate times the product of the sizes
before it. A group over some dimensions holds the ranks that differ in those alone.

Ranks are numbered twice: the dense grid has tp, cp, dp, pp and no ep; the expert grid has etp in the place of
tp, ep, edp in the place of dp, and no cp. Both number the same world and must agree about the pipeline. So
experts may span tensor, context and data ranks ("parallel folding").

Source: github.com/NVIDIA/Megatron-LM, `megatron/core/parallel_state.py` (`RankGenerator`). Its "sequence
parallel" is no dimension of its own: it cuts activations inside the tensor group.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.spec.base import Problem, Spec

__all__ = ["DIMENSIONS", "Parallelism", "hierarchical_groups"]

Int64Array = npt.NDArray[np.int64]

DIMENSIONS = ("tp", "cp", "ep", "dp", "pp")
"""Tokens of an order string."""

MOST_RANKS = 2**24


class Parallelism(Spec, frozen=True, kw_only=True):
    """Sizes of the dimensions of parallelism.

    Parameters
    ----------
    tp, cp, dp, pp : int
        Ranks that share a layer's matrices, a sequence, nothing but gradients, and the layers.
    ep : int
        Ranks that share the experts of a layer.
    etp : int, optional
        Ranks that share the matrices of an expert; as `tp` unless given.
    sp : bool
        Whether activations between the blocks of a layer are cut over the tensor group, too.
    zero : int
        0: every rank has everything; 1: optimizer state is cut over the data group, 2: gradients, too,
        3: weights, too (FSDP).
    vpp : int
        Chunks of layers on each pipeline stage.
    order : str
        Dimensions, the fastest first.

    Raises
    ------
    SpecError
        If a size is below 1, the order is none, or the two grids do not fit each other.

    Examples
    --------
    >>> layout = Parallelism(tp=2, pp=4, dp=2)
    >>> layout.world, layout.groups("dp")[:4].tolist(), layout.groups("pp")[1].tolist()
    (16, [[0, 2], [1, 3], [4, 6], [5, 7]], [1, 5, 9, 13])
    """

    tp: int = 1
    sp: bool = False
    cp: int = 1
    dp: int = 1
    pp: int = 1
    ep: int = 1
    etp: int | None = None
    zero: int = 0
    vpp: int = 1
    order: str = "tp-cp-ep-dp-pp"

    def problems(self) -> Iterator[Problem]:
        for name in ("tp", "cp", "dp", "pp", "ep", "vpp"):
            if getattr(self, name) < 1:
                yield name, getattr(self, name), "at least 1"
        if self.etp is not None and self.etp < 1:
            yield "etp", self.etp, "at least 1"
        if self.zero not in (0, 1, 2, 3):
            yield "zero", self.zero, "0, 1, 2 or 3"
        if self.sp and self.tp == 1:
            yield "sp", self.sp, "false with tp = 1: it cuts over the tensor group"
        if self.world > MOST_RANKS:
            yield "dp", self.dp, f"at most {MOST_RANKS} ranks in all, not {self.world}"
        yield from self._order_problems()

    def _order_problems(self) -> Iterator[Problem]:
        tokens = self.order.split("-")
        if len(set(tokens)) < len(tokens) or not set(tokens) <= set(DIMENSIONS):
            yield "order", self.order, f"some of {', '.join(DIMENSIONS)}, each once, joined by -"
        for name in DIMENSIONS:
            size = getattr(self, name)
            if name not in tokens and size > 1:
                yield "order", self.order, f"an order with {name}, whose size is {size}"
        share = self.expert_tp * self.ep * self.pp
        if self.world % share:
            yield (
                "ep",
                self.ep,
                f"such that etp * ep * pp ({share}) divides the world of {self.world} ranks",
            )
        if not np.array_equal(self.groups("pp"), self.groups("pp", expert=True)):
            yield "order", self.order, "an order in which dense and expert layers have the same pipelines"

    @property
    def world(self) -> int:
        """Number of ranks."""
        return self.tp * self.cp * self.dp * self.pp

    @property
    def expert_tp(self) -> int:
        """Ranks that share the matrices of an expert."""
        return self.tp if self.etp is None else self.etp

    @property
    def expert_dp(self) -> int:
        """Ranks with the same experts: the group over which their gradients are reduced."""
        return self.world // (self.expert_tp * self.ep * self.pp)

    def sizes(self, *, expert: bool = False) -> dict[str, int]:
        """Size of every dimension of the dense or the expert grid, in the order of the order string."""
        if expert:
            named = {"tp": self.expert_tp, "cp": 1, "ep": self.ep, "dp": self.expert_dp, "pp": self.pp}
        else:
            named = {"tp": self.tp, "cp": self.cp, "ep": 1, "dp": self.dp, "pp": self.pp}
        listed = self.order.split("-")
        return {name: named[name] for name in [*listed, *(one for one in DIMENSIONS if one not in listed)]}

    def coordinates(self, ranks: npt.ArrayLike, *, expert: bool = False) -> dict[str, Int64Array]:
        """Coordinates of ranks along every dimension.

        Examples
        --------
        >>> layout = Parallelism(tp=8, dp=128, pp=16)
        >>> {name: int(value) for name, value in layout.coordinates(5000).items()}
        {'tp': 0, 'cp': 0, 'ep': 0, 'dp': 113, 'pp': 4}
        """
        left = np.asarray(ranks, dtype=np.int64)
        found = {}
        for name, size in self.sizes(expert=expert).items():
            left, found[name] = np.divmod(left, size)
        return found

    def groups(self, dimensions: str, *, expert: bool = False) -> Int64Array:
        """Groups over one or several dimensions.

        Parameters
        ----------
        dimensions : str
            Names joined by "-", in any order: members follow the order string. In the expert grid "tp" is
            etp and "dp" is edp.
        expert : bool
            Of the expert grid.

        Returns
        -------
        ndarray of int64 [groups, members]

        Raises
        ------
        SpecError
            If a dimension is unknown, or both ep and cp are asked of one grid.

        Examples
        --------
        >>> layout = Parallelism(tp=2, cp=2, dp=2, pp=2, ep=4, etp=1)
        >>> layout.groups("dp-cp")[0].tolist(), layout.groups("ep", expert=True)[0].tolist()
        ([0, 2, 4, 6], [0, 1, 2, 3])
        """
        wanted = dimensions.split("-")
        if not set(wanted) <= set(DIMENSIONS) or len(set(wanted)) < len(wanted):
            raise SpecError("dimensions", dimensions, f"some of {', '.join(DIMENSIONS)}, joined by -")
        absent = ("cp", self.cp) if expert else ("ep", self.ep)
        if absent[0] in wanted and absent[1] > 1:
            grid, other = ("expert", "dense") if expert else ("dense", "expert")
            raise SpecError(
                "dimensions", dimensions, f"dimensions of the {grid} grid; {absent[0]} is in the {other} grid"
            )
        sizes = self.sizes(expert=expert)
        names = list(sizes)[::-1]
        grid_of_ranks = np.arange(self.world, dtype=np.int64).reshape([sizes[name] for name in names])
        outer = [k for k, name in enumerate(names) if name not in wanted]
        inner = [k for k, name in enumerate(names) if name in wanted]
        members = math.prod(sizes[name] for name in wanted)
        return np.ascontiguousarray(grid_of_ranks.transpose(outer + inner).reshape(-1, members))


def hierarchical_groups(ranks: Sequence[int], *, sizes: Sequence[int]) -> list[Int64Array]:
    """Groups of a group, level by level: the ranks as a grid whose first size varies fastest.

    Parameters
    ----------
    ranks : sequence of int
    sizes : sequence of int
        Their product is the number of ranks.

    Returns
    -------
    list of ndarray of int64 [groups, members]
        One for each size.

    Raises
    ------
    SpecError
        If the product differs.

    Examples
    --------
    >>> [level[0].tolist() for level in hierarchical_groups(range(16), sizes=[2, 2, 4])]
    [[0, 1], [0, 2], [0, 4, 8, 12]]
    """
    if any(size < 1 for size in sizes) or math.prod(sizes) != len(ranks):
        raise SpecError("sizes", list(sizes), f"sizes whose product is {len(ranks)}")
    grid = np.asarray(ranks, dtype=np.int64).reshape(list(sizes)[::-1])
    levels = []
    for level, size in enumerate(sizes):
        axis = len(sizes) - 1 - level
        levels.append(np.ascontiguousarray(np.moveaxis(grid, axis, -1).reshape(-1, size)))
    return levels
