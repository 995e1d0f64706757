"""Templates as rotations: the same rows and patterns as from the table, without the table."""

from __future__ import annotations

import tracemalloc
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fabric
from fabric.errors import SpecError
from fabric.lower import lower
from fabric.lowering.lanes import lanes_of
from fabric.lowering.patterns import Patterns
from fabric.workload.collectives import Template, build_template
from fabric.workload.collectives.levels import depth
from fabric.workload.collectives.rotation import Rotation
from fabric.workload.collectives.rows import Rows

RINGS = {"all_reduce": 2, "reduce_scatter": 1, "all_gather": 1}
"""Rounds of each collective."""


def written_down(collective: str, n_ranks: int) -> Template:
    """A ring, its rows step by step."""
    steps, first = RINGS[collective] * (n_ranks - 1), (n_ranks - 1) * (collective == "all_gather")
    rank = np.arange(n_ranks)
    rows, before = Rows(), np.full(n_ranks, -1)
    for step in range(steps):
        before = rows.add(
            rank,
            (rank + 1) % n_ranks,
            piece=(rank - step - first - 1) % n_ranks,
            reduce=int(step + first < n_ranks - 1),
            step=step,
            after=[np.roll(before, 1)],
        )
    return rows.build("ring", collective, n_ranks=n_ranks, n_pieces=n_ranks)


def same(one: Any, other: Any, *, but: tuple[str, ...] = ()) -> None:
    """Whether two objects of one class have the same fields, arrays down to their types."""
    for name in (field.name for field in fields(one) if field.name not in but):
        left, right = getattr(one, name), getattr(other, name)
        if isinstance(left, Patterns):
            same(left, right)
            continue
        assert np.array_equal(left, right), name
        assert getattr(left, "dtype", None) == getattr(right, "dtype", None), name


@pytest.mark.parametrize("n_ranks", [1, 2, 3, 4, 7, 16])
@pytest.mark.parametrize("collective", RINGS)
def test_a_ring_is_the_table_of_its_steps(collective: str, n_ranks: int) -> None:
    ring, table = (
        build_template(collective, algorithm="ring", n_ranks=n_ranks),
        written_down(collective, n_ranks),
    )
    assert (len(ring), ring.n_messages, ring.n_steps, depth(ring)) == (
        len(table),
        table.n_messages,
        table.n_steps,
        depth(table),
    )
    same(ring, table, but=("rotation",))
    assert not ring.source.flags.writeable


@st.composite
def rotations(draw: st.DrawFn) -> Rotation:
    n_ranks = draw(st.integers(2, 7))
    count = draw(st.integers(0, 12))
    columns = [
        draw(st.lists(st.integers(low, n_ranks - 1), min_size=count, max_size=count)) for low in (1, 0)
    ]
    after = [draw(st.integers(-1, number - 1)) for number in range(count)]
    numbers = [np.array(each, dtype=np.int64) for each in (*columns, range(count), after)]
    distance, piece, step, before = numbers
    return Rotation(n_ranks, distance, piece, np.zeros(count, dtype=np.uint8), step, before)


@given(rotations())
def test_its_patterns_are_those_of_its_rows(rotation: Rotation) -> None:
    rotated = Template.rotated("any", "custom", rotation)
    by_rule = lanes_of(rotated)
    assert "source" not in vars(rotated)
    table = replace(rotated).verify()
    assert table.rotation is None
    same(by_rule, lanes_of(table))
    assert (len(rotated), rotated.n_messages, depth(rotated)) == (len(table), table.n_messages, depth(table))


def every_transfer(template: Template) -> list[tuple[int, ...]]:
    columns = zip(*lanes_of(template).transfers(), strict=True)
    return sorted(zip(*(np.concatenate(parts).tolist() for parts in columns), strict=True))


@pytest.mark.parametrize("cells", [1, 10, 40])
@pytest.mark.parametrize("algorithm", ["ring", "double_binary_tree"])
def test_transfers_of_some_ranks_at_a_time_are_all(
    algorithm: str, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = build_template("all_reduce", algorithm=algorithm, n_ranks=9)
    whole = every_transfer(template)
    monkeypatch.setattr("fabric.lowering.lanes.CELLS", cells)
    assert every_transfer(template) == whole
    assert len(whole) == len(template)


def test_a_thousand_ranks_are_lowered_without_the_table() -> None:
    """Whose 2 million rows are 63 MB, and were 320 MB while they were made and lowered."""
    scenario = fabric.Scenario(
        topology=fabric.LeafSpine(leaves=32, spines=32, hosts_per_leaf=32),
        traffic=(fabric.Collective(collective="all_reduce", algorithm="ring", size="64MB"),),
    )
    lower(scenario)
    tracemalloc.start()
    lower(scenario)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40e6
    ring = build_template("all_reduce", algorithm="ring", n_ranks=1024)
    assert ring.nbytes < 200_000


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("distance", 0), ("distance", 4), ("piece", -1), ("piece", 4), ("after", 0), ("after", -2)],
)
def test_what_cannot_be_is_refused(name: str, wrong: int) -> None:
    columns = {"distance": [1], "piece": [0], "after": [-1]} | {name: [wrong]}
    arrays = {key: np.array(values, dtype=np.int64) for key, values in columns.items()}
    with pytest.raises(SpecError, match=rf"rotation: {name}\[0\]: {wrong} is not allowed"):
        Rotation(4, reduce=np.zeros(1, dtype=np.uint8), step=np.zeros(1, dtype=np.int64), **arrays)
