"""One convention for sizes, what others mean by theirs, and sizes that do not divide."""

from __future__ import annotations

import numpy as np
import pytest
from support_templates import ALGORITHMS

from fabric.errors import SpecError
from fabric.workload.collectives import (
    COLLECTIVES,
    Collective,
    algorithm_names,
    build_template,
    busbw_factor,
    even_sizes,
    full_bytes,
)
from fabric.workload.collectives.all_to_all_v import blended_matrix
from fabric.workload.collectives.kinds import ragged_size

MIB = 2**20
PER_RANK = {"reduce_scatter", "all_gather", "all_to_all", "gather", "scatter"}


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_counts_of_nccl_tests_are_of_one_ranks_block(collective: str) -> None:
    blocks = 8 if collective in PER_RANK else 1
    for convention in ("nccl_count", "nccl_api"):
        found = full_bytes(1000, collective=collective, n_ranks=8, convention=convention, element_bytes=4)
        assert found == 4000 * blocks


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_of_chakras_sizes_only_the_all_gathers_is_a_shard(collective: str) -> None:
    found = full_bytes(MIB, collective=collective, n_ranks=8, convention="chakra")
    assert found == (8 * MIB if collective == "all_gather" else MIB)


def test_stage_counts_elements_and_simai_the_whole_vector() -> None:
    assert (
        full_bytes(262_144, collective="all_gather", n_ranks=2, convention="chakra", element_bytes=2) == MIB
    )
    assert full_bytes(MIB, collective="all_gather", n_ranks=8, convention="simai") == MIB
    assert full_bytes(MIB, collective="all_to_all", n_ranks=8, convention="full") == MIB


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"collective": "all_gatherv"}, "collective"),
        ({"convention": "mpi"}, "convention"),
        ({"given": -1}, "size"),
        ({"n_ranks": 0}, "n_ranks"),
        ({"element_bytes": 0}, "element_bytes"),
    ],
)
def test_what_cannot_be_converted_is_refused(wrong: dict[str, object], path: str) -> None:
    asked = {"given": 1, "collective": "all_reduce", "n_ranks": 2, "convention": "full", **wrong}
    with pytest.raises(SpecError) as error:
        full_bytes(asked.pop("given"), **asked)  # type: ignore[arg-type]
    assert error.value.path == path


def test_busbw_factors() -> None:
    share = 7 / 8
    expected = {"all_reduce": 2 * share} | dict.fromkeys((*PER_RANK, "all_to_all_v"), share)
    for collective in COLLECTIVES:
        assert busbw_factor(collective, n_ranks=8) == pytest.approx(expected.get(collective, 1.0))
        assert busbw_factor(collective, n_ranks=1) == (1.0 if collective not in expected else 0.0)
    ring = Collective(kind="all_reduce", n_ranks=8, size_bytes=2**30, algorithm="ring")
    assert ring.busbw(37.650964e-3) / 1e9 == pytest.approx(49.9070, rel=1e-6)
    assert ring.algbw(1.0) == 2**30


@pytest.mark.parametrize("which", ALGORITHMS, ids="{0[0]}-{0[1]}".format)
def test_sizes_that_do_not_divide_are_cut_exactly(which: tuple[str, str]) -> None:
    collective, name = which
    for n_ranks in (1, 2, 3, 7, 8):
        for parts in ({}, {"channels": 2, "slices": 3}):
            template = build_template(collective, algorithm=name, n_ranks=n_ranks, **parts)
            for size in (0, 1, n_ranks - 1, n_ranks + 1, 1_000_003):
                sizes = template.piece_bytes(
                    np.full(n_ranks**2, size) if collective == "all_to_all_v" else size
                )
                assert (sizes >= 0).all()
                if template.block is None:
                    assert sizes.sum() == size
                    assert sizes.max() - sizes.min() <= 1


def test_every_byte_reaches_every_rank() -> None:
    for n_ranks in (2, 3, 5, 8, 13):
        for size in (0, 1, n_ranks - 1, 10_007):
            for name in ("ring", "direct", "bruck", "recursive_doubling", "bidirectional_ring"):
                for parts in ({}, {"channels": 2, "chunks": 3}):
                    template = build_template("all_gather", algorithm=name, n_ranks=n_ranks, **parts)
                    received = np.bincount(
                        template.destination, weights=template.transfer_bytes(size), minlength=n_ranks
                    )
                    own = even_sizes(size, parts=template.n_blocks).reshape(n_ranks, -1).sum(axis=1)
                    lent = n_ranks & (n_ranks - 1) and name == "recursive_doubling"
                    if not lent:
                        assert received.tolist() == (size - own).tolist()
                    else:
                        assert received.sum() == size * n_ranks - own.sum()


def test_cutting() -> None:
    for total in (0, 1, 5, 2**40 + 3):
        for parts in (1, 2, 3, 7, 1024):
            sizes = even_sizes(total, parts=parts)
            assert sizes.sum() == total
            assert sorted(sizes.tolist(), reverse=True) == sizes.tolist()
            assert sizes[0] - sizes[-1] <= 1


def test_zero_bytes_are_messages_without_payload() -> None:
    template = build_template("all_reduce", algorithm="ring", n_ranks=4)
    assert template.transfer_bytes(0).tolist() == [0] * 24
    assert template.n_messages == 24
    told = Collective(kind="barrier", n_ranks=8).explain()
    assert (told.size_bytes, told.messages, told.sent_bytes.max()) == (0, 24, 0)


def test_groups_of_one_move_nothing() -> None:
    for collective, name in ALGORITHMS:
        template = build_template(collective, algorithm=name, n_ranks=1)
        assert (template.n_messages, template.n_steps) == (0, 0)


def test_nccl_tests_default_ragged_pattern() -> None:
    skewed = blended_matrix(4, size_bytes=MIB, spread=1.0)
    assert skewed[0].tolist() == [0, 174_752, 349_520, 524_288]
    assert skewed[1].tolist() == [524_288, 0, 174_752, 349_520]
    assert ragged_size(skewed) == 1_048_560
    assert blended_matrix(4, size_bytes=MIB, spread=0.0).tolist() == [[MIB // 4] * 4] * 4
    assert (blended_matrix(6, size_bytes=MIB + 7, spread=0.3) % 16 == 0).all()
    assert blended_matrix(1, size_bytes=64, spread=0.5).shape == (1, 1)
    with pytest.raises(SpecError, match="0 to 1"):
        blended_matrix(4, size_bytes=MIB, spread=1.5)


def test_ragged_sizes_count_what_stays_and_the_larger_of_row_and_column() -> None:
    matrix = np.array([[100, 0, 0], [50, 0, 7], [60, 0, 0]])
    ragged = Collective(kind="all_to_all_v", n_ranks=3, matrix=matrix, algorithm="direct")
    assert ragged.size_bytes == 210
    told = ragged.explain()
    assert told.sent_bytes.tolist() == [0, 57, 60]
    assert told.received_bytes.tolist() == [110, 0, 7]
    assert told.messages == 3
    assert ragged.busbw(1.0) == pytest.approx(210 * 2 / 3)


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"kind": "allreduce"}, "kind"),
        ({"size_bytes": -1}, "size"),
        ({"matrix": [[0]]}, "matrix"),
        ({"kind": "all_to_all_v"}, "matrix"),
        ({"kind": "all_to_all_v", "matrix": [[0, 1]]}, "matrix"),
        ({"kind": "all_to_all_v", "matrix": [[0, 1.5], [1, 0]]}, "matrix"),
        ({"kind": "all_to_all_v", "matrix": [[0, 1], [1, 0]], "size_bytes": 7}, "size"),
        ({"kind": "barrier", "size_bytes": 4}, "size"),
    ],
)
def test_collectives_are_checked(wrong: dict[str, object], path: str) -> None:
    with pytest.raises(SpecError) as error:
        Collective(**{"kind": "all_reduce", "n_ranks": 2, **wrong})  # type: ignore[arg-type]
    assert error.value.path == path


@pytest.mark.parametrize("sizes", [[1, 2, 3], [-1, 2], []])
def test_sizes_that_do_not_fit_are_refused(sizes: list[int]) -> None:
    ring = build_template("all_reduce", algorithm="ring", n_ranks=2)
    with pytest.raises(SpecError) as error:
        ring.piece_bytes(sizes)
    assert error.value.path == "sizes"
    with pytest.raises(SpecError, match="0 to"):
        ring.piece_bytes(-1)


def test_auto_has_an_answer_for_every_collective() -> None:
    for collective in COLLECTIVES:
        matrix = np.ones((4, 4), dtype=np.int64) if collective == "all_to_all_v" else None
        size = 0 if collective in ("barrier", "all_to_all_v") else MIB
        chosen = Collective(kind=collective, n_ranks=4, size_bytes=size, matrix=matrix).chosen()
        assert chosen in algorithm_names(collective)
