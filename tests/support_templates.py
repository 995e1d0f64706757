"""Templates for tests, and a second interpreter of templates, written for clarity: sets in dictionaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from fabric.workload.collectives import COLLECTIVES, Template, algorithm_names

ALGORITHMS = [
    (collective, name)
    for collective in COLLECTIVES
    for name in algorithm_names(collective)
    if not name.startswith("test")
]
INTERPRETED = [which for which in ALGORITHMS if which[0] not in ("barrier", "all_to_all_v")]
"""Those for `interpret`: not news that repeats, nor blocks that belong to pairs."""


def options_for(name: str, n_ranks: int) -> Iterator[dict[str, Any]]:
    """Options under which an algorithm is another one on so many ranks."""
    yield {}
    divisors = [each for each in range(2, n_ranks + 1) if n_ranks % each == 0]
    if name == "in_network" and n_ranks > 2:
        yield {"fan_in": (2, -(-n_ranks // 2))}
        yield {"fan_in": (3, 2, -(-n_ranks // 6))}
    elif name == "hierarchical":
        for inside in divisors[:3]:
            for levels in ("ring", "direct", "halving_doubling"):
                yield {"shape": (inside, n_ranks // inside), "levels": levels}
        if n_ranks % 8 == 0:
            yield {"shape": (2, 2, n_ranks // 4), "levels": ("direct", "ring", "halving_doubling")}
    elif name in ("rail_aligned", "double_binary_tree"):
        for inside in divisors[:4]:
            yield {"ranks_per_node": inside}


def interpret(template: Template) -> list[dict[int, Counter[Any]]]:
    """What every rank ends with: block to the multiset of contributions, by the words of `Template`."""
    initial = _initial(template)
    payload: list[dict[int, Counter[Any]]] = []
    arrivals: list[list[int]] = [[] for _ in initial]
    for row in range(len(template)):
        before = template.after[template.after_base[row] : template.after_base[row + 1]].tolist()
        source = int(template.source[row])
        payload.append(
            {
                block: _folded(initial[source].get(block, Counter()), before, block, payload, template)
                for block in blocks_of(template, row)
            }
        )
        arrivals[int(template.destination[row])].append(row)
    final = []
    for rank, rows in enumerate(arrivals[: template.n_ranks]):
        blocks = set(initial[rank]) | {block for row in rows for block in payload[row]}
        final.append(
            {
                block: _folded(initial[rank].get(block, Counter()), rows, block, payload, template)
                for block in blocks
            }
        )
    return final


def blocks_of(template: Template, row: int) -> list[int]:
    pieces = range(int(template.piece[row]), int(template.piece[row]) + int(template.count[row]))
    if template.block is None or template.block_base is None:
        return list(pieces)
    return [
        int(block)
        for piece in pieces
        for block in template.block[template.block_base[piece] : template.block_base[piece + 1]]
    ]


def holds(template: Template) -> bool:
    """Whether every rank ends with what the collective promises."""
    final = interpret(template)
    for rank in range(template.n_ranks):
        for block in range(template.n_blocks):
            wanted = _promised(template, rank, block)
            if wanted is not None and final[rank].get(block, Counter()) != wanted:
                return False
    return True


def _promised(template: Template, rank: int, block: int) -> Counter[Any] | None:
    kind, ranks = template.collective, template.n_ranks
    owner = block // max(template.n_blocks // ranks, 1)
    at_root, own = rank == template.root, owner == rank
    if {"all_reduce": True, "reduce": at_root, "reduce_scatter": own}.get(kind, False):
        return Counter(range(ranks))
    if {"all_gather": True, "gather": at_root}.get(kind, False):
        return Counter([owner])
    if {"broadcast": True, "scatter": own}.get(kind, False):
        return Counter([template.root])
    if kind == "all_to_all":
        inside = template.grid[-1]
        node = (rank // inside - owner // inside) % (ranks // inside)
        return Counter([node * inside + (rank - owner) % inside])
    return Counter([(rank - 1) % ranks]) if kind == "send_recv" else None


def changed(template: Template, column: str, row: int, value: int) -> Template:
    """A template with another value in one place."""
    values = getattr(template, column).copy()
    values[row] = value
    return replace(template, **{column: values})


def without_waits(template: Template, row: int) -> Template:
    """A template in which one transfer waits for nothing."""
    low, high = int(template.after_base[row]), int(template.after_base[row + 1])
    base = template.after_base.copy()
    base[row + 1 :] -= high - low
    return replace(template, after_base=base, after=np.delete(template.after, np.s_[low:high]))


def _initial(template: Template) -> list[dict[int, Counter[Any]]]:
    ranks, blocks = template.n_ranks, range(template.n_blocks)
    width = max(template.n_blocks // ranks, 1)
    initial: list[dict[int, Counter[Any]]] = []
    for rank in range(ranks):
        kind = template.collective
        if kind in ("all_gather", "gather"):
            own = [block for block in blocks if block // width == rank]
        elif kind in ("broadcast", "scatter"):
            own = list(blocks) if rank == template.root else []
        else:
            own = list(blocks)
        initial.append({block: Counter([rank]) for block in own})
    return initial + [{} for _ in range(template.n_reducers)]


def _folded(
    content: Counter[Any],
    rows: list[int],
    block: int,
    payload: list[dict[int, Counter[Any]]],
    template: Template,
) -> Counter[Any]:
    for row in rows:
        if block in payload[row]:
            content = content + payload[row][block] if template.reduce[row] else payload[row][block]
    return content
