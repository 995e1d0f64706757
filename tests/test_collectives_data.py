"""Every algorithm, interpreted symbolically: each rank ends with what the collective promises, once."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from support_templates import ALGORITHMS, INTERPRETED, changed, holds, options_for, without_waits

from fabric.errors import SpecError
from fabric.workload.collectives import (
    Rows,
    Template,
    algorithm,
    build_template,
    check_template,
    registry,
)
from fabric.workload.collectives.sequence import in_groups, then
from fabric.workload.collectives.split import relabel, side_by_side, split
from fabric.workload.collectives.template import NOTHING

SIZES = [*range(1, 34), 64, 100]
LARGE = 1000
OPTIONS = {
    "hierarchical": {"shape": (8, 125)},
    "rail_aligned": {"ranks_per_node": 8},
    "double_binary_tree": {"ranks_per_node": 4},
    "in_network": {"fan_in": (32, 32)},
}
KINDS = "{0[0]}-{0[1]}".format
LONG = {("all_reduce", "bidirectional_ring"), ("all_to_all", "bruck")}
ON_MANY = [
    pytest.param(which, marks=pytest.mark.exhaustive if which in LONG else pytest.mark.slow)
    for which in ALGORITHMS
]


@pytest.mark.parametrize("which", ALGORITHMS, ids=KINDS)
def test_every_algorithm_does_what_it_promises(which: tuple[str, str]) -> None:
    collective, name = which
    for n_ranks in SIZES:
        for options in options_for(name, n_ranks):
            check_template(build_template(collective, algorithm=name, n_ranks=n_ranks, **options))


@pytest.mark.parametrize("which", ON_MANY, ids=KINDS)
def test_on_a_thousand_ranks(which: tuple[str, str]) -> None:
    collective, name = which
    options = OPTIONS.get(name, {})
    check_template(build_template(collective, algorithm=name, n_ranks=LARGE, **options))
    registry.forget_templates()


@pytest.mark.parametrize("which", ALGORITHMS, ids=KINDS)
def test_channels_chunks_and_slices_change_no_result(which: tuple[str, str]) -> None:
    collective, name = which
    for n_ranks in (1, 2, 3, 6, 8):
        for parts in ({"channels": 3}, {"chunks": 4}, {"channels": 2, "chunks": 2, "slices": 2}):
            for options in options_for(name, n_ranks):
                whole = build_template(collective, algorithm=name, n_ranks=n_ranks, **options)
                template = build_template(collective, algorithm=name, n_ranks=n_ranks, **options, **parts)
                check_template(template)
                copies = int(np.prod(list(parts.values())))
                assert template.n_messages == whole.n_messages * copies
                assert template.n_blocks == whole.n_blocks * copies
                if collective != "all_to_all_v":
                    assert template.transfer_bytes(10_007).sum() == pytest.approx(
                        whole.transfer_bytes(10_007).sum(), abs=template.n_messages
                    )


@pytest.mark.parametrize("which", INTERPRETED, ids=KINDS)
def test_the_second_interpreter_agrees(which: tuple[str, str]) -> None:
    collective, name = which
    for n_ranks in (1, 2, 3, 4, 5, 7, 8):
        template = build_template(collective, algorithm=name, n_ranks=n_ranks)
        check_template(template)
        assert holds(template)


@pytest.mark.parametrize("which", INTERPRETED, ids=KINDS)
def test_a_wrong_template_is_refused_when_the_second_interpreter_sees_it(which: tuple[str, str]) -> None:
    collective, name = which
    template = build_template(collective, algorithm=name, n_ranks=6)
    wrong = 0
    for row in range(len(template)):
        for other in _mutations(template, row):
            if holds(other):
                continue
            wrong += 1
            with pytest.raises(SpecError, match=rf"template {collective}/{name}"):
                check_template(other)
    assert wrong >= len(template)


def _mutations(template: Template, row: int) -> list[Template]:
    places = template.n_ranks
    others = [
        changed(template, "destination", row, (int(template.destination[row]) + 1) % places),
        changed(template, "reduce", row, 1 - int(template.reduce[row])),
    ]
    room = template.n_pieces - int(template.count[row])
    if room:
        others.append(changed(template, "piece", row, (int(template.piece[row]) + 1) % (room + 1)))
    if template.after_base[row + 1] > template.after_base[row]:
        others.append(without_waits(template, row))
    return others


def test_errors_name_rank_block_and_transfer() -> None:
    ring = build_template("all_reduce", algorithm="ring", n_ranks=4)
    with pytest.raises(SpecError, match="rank 0, block 3: ends without the contribution of rank 0"):
        check_template(without_waits(ring, 5))
    gather = build_template("all_gather", algorithm="ring", n_ranks=4)
    with pytest.raises(SpecError, match=r"transfer 4 \(0 -> 1, step 1\), block 3: carries what its source"):
        check_template(without_waits(gather, 4))
    everything = build_template("all_reduce", algorithm="recursive_doubling", n_ranks=4)
    with pytest.raises(SpecError, match="rank 1, block 0: has contributions twice"):
        check_template(changed(everything, "destination", 4, 1))
    twice = Rows()
    first = twice.add([0, 0], [1, 1], piece=0, step=0, reduce=1)
    twice.add([1], [0], piece=0, step=1, after=[first[np.newaxis, :]])
    with pytest.raises(
        SpecError, match=r"transfer 2 \(1 -> 0, step 1\), block 0: carries contributions twice"
    ):
        check_template(twice.build("twice", "all_reduce", n_ranks=2, n_pieces=1))


def test_a_rank_that_gets_what_it_has_is_an_error() -> None:
    rows = Rows()
    first = rows.add([0, 1], [1, 0], piece=[0, 1], step=0)
    rows.add([1], [0], piece=[0], step=1, after=[first[:1]])
    useless = rows.build("useless", "all_gather", n_ranks=2, n_pieces=2)
    with pytest.raises(SpecError, match="rank 0, block 0: gets what it already has"):
        check_template(useless)


def test_a_ring_that_goes_once_too_far_is_refused() -> None:
    """Ring generators of htsim send every chunk 2n - 1 times, where 2n - 2 are enough."""
    n_ranks = 5
    rank = np.arange(n_ranks)
    rows = Rows()
    sent = np.full(n_ranks, -1)
    for step in range(2 * n_ranks - 1):
        sent = rows.add(
            rank,
            (rank + 1) % n_ranks,
            piece=(rank - step - 1) % n_ranks,
            reduce=step < n_ranks - 1,
            step=step,
            after=[np.roll(sent, 1)],
        )
    with pytest.raises(SpecError, match="gets what it already has"):
        check_template(rows.build("far", "all_reduce", n_ranks=n_ranks, n_pieces=n_ranks))


@pytest.mark.parametrize(
    ("column", "value", "what"),
    [
        ("source", 9, "a rank from 0 to 3"),
        ("destination", 4, "a rank from 0 to 3"),
        ("count", 0, "at least one piece"),
        ("piece", 4, "pieces below 4"),
        ("reduce", 2, "0 or 1"),
    ],
)
def test_a_table_that_is_no_template_is_refused(column: str, value: int, what: str) -> None:
    ring = build_template("all_reduce", algorithm="ring", n_ranks=4)
    with pytest.raises(SpecError, match=what) as error:
        changed(ring, column, 2, value).verify()
    assert column in error.value.path


def test_waits_point_backwards_and_to_the_sender() -> None:
    rows = Rows()
    rows.add([0, 1], [1, 2], piece=0, step=0, after=[[1, -1]])
    with pytest.raises(SpecError, match="a transfer of an earlier row"):
        rows.build("late", "broadcast", n_ranks=3, n_pieces=1)
    rows = Rows()
    rows.add([0, 0], [1, 2], piece=0, step=0, after=[[-1, 0]])
    with pytest.raises(SpecError, match="a transfer to the source of the one that waits"):
        rows.build("elsewhere", "broadcast", n_ranks=3, n_pieces=1)


def test_a_user_adds_an_algorithm_with_one_function() -> None:
    @algorithm("broadcast", "test_star")
    def star(n_ranks: int, *, twice: bool = False) -> Template:
        """Rank 0 sends everybody everything."""
        others = np.arange(1, n_ranks)
        rows = Rows()
        for step in range(1 + twice):
            rows.add(0, others, piece=0, step=step)
        return rows.build("test_star", "broadcast", n_ranks=n_ranks, n_pieces=1)

    template = build_template("broadcast", algorithm="test_star", n_ranks=5, chunks=3)
    check_template(template)
    assert template.n_messages == 12
    assert build_template("broadcast", algorithm="test_star", n_ranks=5, chunks=3) is template
    with pytest.raises(SpecError, match="already has"):
        check_template(build_template("broadcast", algorithm="test_star", n_ranks=5, twice=True))
    with pytest.raises(SpecError, match="no other algorithm"):

        @algorithm("broadcast", "chain")
        def chain(n_ranks: int) -> Template:
            raise AssertionError


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda: build_template("all_reduce", algorithm="rnig", n_ranks=4), "one of bidirectional_ring"),
        (lambda: build_template("reduce_all", algorithm="ring", n_ranks=4), "one of all_reduce"),
        (lambda: build_template("all_reduce", algorithm="ring", n_ranks=0), "1 to 1048576 ranks"),
        (
            lambda: build_template("all_reduce", algorithm="ring", n_ranks=4, window=2),
            "one of the options orders",
        ),
        (lambda: build_template("all_reduce", algorithm="ring", n_ranks=4, chunks=0), "1 to"),
        (lambda: build_template("all_reduce", algorithm="ring", n_ranks=4, channels=257), "1 to 256"),
        (lambda: build_template("all_reduce", algorithm="ring", n_ranks=3, orders=((0, 1, 1),)), "once"),
        (lambda: build_template("all_reduce", algorithm="hierarchical", n_ranks=6, shape=(4, 2)), "product"),
        (
            lambda: build_template("all_reduce", algorithm="hierarchical", n_ranks=6, levels="bus"),
            "one of ring",
        ),
        (
            lambda: build_template("all_reduce", algorithm="in_network", n_ranks=6, fan_in=(2,)),
            "one reducer on top",
        ),
        (lambda: build_template("all_to_all", algorithm="direct", n_ranks=6, window=0), "at least 1"),
        (
            lambda: build_template("all_to_all", algorithm="rail_aligned", n_ranks=6, ranks_per_node=4),
            "divisor",
        ),
        (lambda: build_template("broadcast", algorithm="chain", n_ranks=6, root=6), "0 to 5"),
        (
            lambda: build_template("all_to_all_v", algorithm="direct", n_ranks=2, matrix=[[0, -1], [1, 0]]),
            "at least 0",
        ),
    ],
)
def test_bad_questions_get_one_answer(call: object, what: str) -> None:
    with pytest.raises(SpecError, match=what):
        call()  # type: ignore[operator]


@pytest.mark.parametrize("root", [0, 1, 4])
@pytest.mark.parametrize("collective", ["broadcast", "reduce", "gather", "scatter"])
def test_any_rank_may_be_the_root(collective: str, root: int) -> None:
    for name in registry.algorithm_names(collective):
        if not name.startswith("test"):
            template = build_template(collective, algorithm=name, n_ranks=5, root=root)
            assert template.root == root
            check_template(template)
            check_template(split(template, chunks=3))


def test_rings_in_several_orders_share_the_data() -> None:
    orders = ((0, 1, 2, 3), (0, 2, 1, 3), (3, 1, 0, 2))
    for collective in ("all_reduce", "all_gather", "reduce_scatter"):
        template = build_template(collective, algorithm="ring", n_ranks=4, orders=orders)
        check_template(template)
        assert set(template.channel.tolist()) == {0, 1, 2}
        pairs = set(zip(template.source.tolist(), template.destination.tolist(), strict=True))
        assert {(0, 1), (0, 2), (1, 0)} <= pairs


def test_parts_and_labels_keep_what_belongs_to_ranks() -> None:
    gather = build_template("all_gather", algorithm="recursive_doubling", n_ranks=6)
    turned = relabel(gather, [5, 3, 1, 0, 2, 4])
    check_template(turned)
    both = side_by_side([turned, gather, split(gather, slices=2)], name="three")
    check_template(both)
    sizes = both.transfer_bytes(6 * 40)
    received = np.bincount(both.destination, weights=sizes)
    assert received.tolist() == [5 * 40] * 6


def test_a_binomial_tree_sends_to_one_child_after_the_other() -> None:
    for collective in ("broadcast", "scatter"):
        template = build_template(collective, algorithm="binomial", n_ranks=8)
        assert template.follows is not None
        root = np.flatnonzero(template.source == 0)
        assert template.destination[root].tolist() == [4, 2, 1]
        assert template.follows[root].tolist() == [NOTHING, root[0], root[1]]
        turned = build_template(collective, algorithm="binomial", n_ranks=8, root=3)
        both = side_by_side([split(turned, chunks=2, slices=3), turned], name="both")
        assert both.follows is not None
        for each in (turned, both):
            row = np.flatnonzero(each.follows != NOTHING)
            before = each.follows[row]
            assert (each.source[row] == each.source[before]).all()
            assert (each.channel[row] == each.channel[before]).all()
            assert (before < row).all()
        assert np.count_nonzero(both.follows != NOTHING) == 7 * np.count_nonzero(template.follows != NOTHING)
        assert build_template("gather", algorithm="binomial", n_ranks=8).follows is None
        with pytest.raises(SpecError, match="follows of transfer 6: 0 is not allowed; expected a message of"):
            changed(template, "follows", 6, 0).verify()
        with pytest.raises(
            SpecError, match="follows of transfer 2: 4 is not allowed; expected a transfer of"
        ):
            changed(template, "follows", 2, 4).verify()


def test_sends_in_turn_survive_composition() -> None:
    scatter = build_template("scatter", algorithm="binomial", n_ranks=4)
    gather = build_template("all_gather", algorithm="ring", n_ranks=4)
    both = then(scatter, gather, collective="broadcast", name="scatter_gather")
    check_template(both, redundant=True)
    with pytest.raises(SpecError, match="rank 0, block 1: gets what it already has"):
        check_template(both)
    assert both.follows is not None
    assert np.array_equal(both.follows[:3], scatter.follows)
    twice = in_groups(
        scatter,
        np.array([[0, 1, 2, 3], [4, 5, 6, 7]]),
        n_ranks=8,
        n_pieces=4,
        piece=np.zeros(2, int),
        width=1,
    )
    rows = np.flatnonzero(twice.follows != NOTHING)
    assert (twice.source[rows] == twice.source[twice.follows[rows]]).all()


def test_many_arrivals_are_joined() -> None:
    direct = build_template("all_reduce", algorithm="direct", n_ranks=64)
    joins = direct.source == direct.destination
    assert joins.sum() == 64
    assert len(direct.after) == 64 * 63 * 2
    assert direct.transfer_bytes(6400)[joins].sum() == 0
    check_template(direct)


def test_templates_grow_as_their_algorithms_do() -> None:
    ring = build_template("all_reduce", algorithm="ring", n_ranks=1024)
    assert (ring.n_messages, len(ring.after)) == (2 * 1023 * 1024, (2 * 1023 - 1) * 1024)
    assert ring.nbytes < 32 * ring.n_messages
    large = build_template("all_reduce", algorithm="halving_doubling", n_ranks=8192)
    assert large.n_messages == 2 * 13 * 8192
    assert large.nbytes < 8192 * 13 * 26 * 8
    rails = build_template("all_to_all", algorithm="rail_aligned", n_ranks=4096, ranks_per_node=8)
    assert rails.n_messages == 4096 * (7 + 511)
    registry.forget_templates()


def test_all_to_all_v_sends_only_what_there_is() -> None:
    rng = np.random.default_rng(5)
    for n_ranks in (1, 2, 3, 7, 16):
        for _ in range(5):
            matrix = rng.integers(0, 5, (n_ranks, n_ranks)) * rng.integers(0, 2, (n_ranks, n_ranks))
            for name, options in (("direct", {}), ("direct", {"window": 2}), ("pairwise", {})):
                template = build_template(
                    "all_to_all_v", algorithm=name, n_ranks=n_ranks, matrix=matrix, **options
                )
                check_template(template)
                check_template(split(template, channels=2, chunks=2))
                sizes = template.transfer_bytes(matrix)
                sent = np.zeros_like(matrix)
                np.add.at(sent, (template.source, template.destination), sizes)
                assert np.array_equal(sent, matrix * (1 - np.eye(n_ranks, dtype=np.int64)))
                assert (sizes > 0).all()


def test_templates_live_as_long_as_someone_uses_them() -> None:
    def ring() -> Template:
        return build_template("all_reduce", algorithm="ring", n_ranks=9, chunks=5)

    used = ring()
    for n_ranks in range(2, 2 + 2 * registry.KEPT_TEMPLATES):
        build_template("all_gather", algorithm="ring", n_ranks=n_ranks)
    assert ring() is used
    seen = weakref.ref(used)
    del used
    registry.forget_templates()
    gc.collect()
    assert seen() is None
