"""Copies of tokens in two legs at once: nothing is sent on before it has come, nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fabric
from fabric._core import Engine
from fabric.errors import SpecError
from fabric.lower import lower
from fabric.spec import Router
from fabric.training import (
    ExpertPlaces,
    Model,
    Parallelism,
    Step,
    StepPlan,
    StepTimes,
    TokenRoutes,
    TrainingJob,
    build_step,
    choose_experts,
    expert_weights,
    token_copies,
    token_copies_by_server,
)
from fabric.training.forwarding import Forwarding, gathered_first, passed_on_inside
from fabric.workload.chakra import import_chakra
from fabric.workload.chakra_export import export_chakra
from fabric.workload.collectives.check import check_template
from fabric.workload.job import Job
from fabric.workload.program import Program, ProgramBuilder

Kind = Literal["server", "regroup"]
TOKEN_BYTES = 4096
"""The payload of a frame."""


def chosen(servers: int, each: int, k: int, tokens: int) -> tuple[list[Any], ExpertPlaces]:
    n_ranks = servers * each
    weights = expert_weights("zipf", experts=8)
    choices = [choose_experts(weights, tokens=tokens, top_k=k, rank=rank) for rank in range(n_ranks)]
    return choices, ExpertPlaces.in_order(experts=8, n_ranks=n_ranks)


def routed(kind: Kind, *, servers: int, each: int, k: int, tokens: int, chunks: int) -> Forwarding:
    choices, places = chosen(servers, each, k, tokens)
    if kind == "regroup":
        copies = token_copies(choices, places=places)
        return gathered_first(copies, ranks_per_server=each, chunks=chunks)
    between, _ = token_copies_by_server(choices, places=places, ranks_per_server=each)
    wanted = token_copies(choices, places=places, per="rank")
    return passed_on_inside(between, wanted, ranks_per_server=each, chunks=chunks)


class TestTemplate:
    @settings(max_examples=60, deadline=None)
    @given(
        st.sampled_from(["server", "regroup"]),
        st.sampled_from([1, 2, 4]),
        st.sampled_from([1, 2]),
        st.integers(1, 4),
        st.integers(0, 20),
        st.integers(1, 5),
        st.booleans(),
    )
    def test_nothing_is_sent_on_before_it_has_come(
        self, kind: Kind, servers: int, each: int, k: int, tokens: int, chunks: int, back: bool
    ) -> None:
        """Copies of each transfer of the second leg against those that it waited for."""
        route = routed(kind, servers=servers, each=each, k=k, tokens=tokens, chunks=chunks)
        route = route.mirrored() if back else route
        template, copies = route.template, route.piece_copies
        sent = np.zeros((template.n_ranks, template.n_ranks), dtype=np.int64)
        if len(template):
            np.add.at(sent, (template.source, template.destination), copies)
        assert sent.tolist() == sum(route.matrices()).tolist()
        row, before = template.waits()
        assert (template.destination[before] == template.source[row]).all()
        assert (template.step[before] < template.step[row]).all()
        count = np.bincount(row, minlength=len(template))
        if kind == "server" and not back:
            assert count.max(initial=0) <= 1
            assert (copies[row] <= copies[before]).all()
        elif kind == "server":
            assert (copies[before] <= copies[row]).all()
        elif back:
            assert count.max(initial=0) <= 1
            assert (copies[row] <= copies[before]).all()
        else:
            brought = np.zeros(len(template), dtype=np.int64)
            np.add.at(brought, row, copies[before])
            own = copies - brought
            assert (own[count > 0] >= 0).all()

    @pytest.mark.parametrize("kind", ["server", "regroup"])
    def test_every_message_of_the_second_leg_waits_for_all_that_it_carries(self, kind: Kind) -> None:
        """4 servers of 2 ranks: chunk by chunk, the sum of all that came for others is what goes on."""
        route = routed(kind, servers=4, each=2, k=3, tokens=40, chunks=4)
        first = np.zeros(len(route.second.source), dtype=np.int64)
        np.add.at(first, route.passed[:, 0], 1)
        inside = route.second.source // 2 == route.second.destination // 2
        if kind == "server":
            assert inside.all()
            remote = route.second.channel != route.second.source // 2
            assert first.tolist() == remote.astype(int).tolist()
        else:
            assert not inside.any()
            for message in range(len(first)):
                brought = route.passed[route.passed[:, 0] == message, 1]
                gate = int(route.second.source[message])
                others = {int(each) for each in route.first.source[brought]}
                assert others == {gate ^ 1}
        assert route.first.copies.shape[1] == route.second.copies.shape[1] == 4

    def test_the_way_back_is_the_mirror_image(self) -> None:
        route = routed("server", servers=4, each=2, k=3, tokens=40, chunks=4)
        out, back = route.matrices(), route.mirrored().matrices()
        assert [leg.tolist() for leg in back] == [out[1].T.tolist(), out[0].T.tolist()]
        again = route.mirrored().mirrored()
        assert [leg.tolist() for leg in again.matrices()] == [leg.tolist() for leg in out]
        assert again.passed.tolist() == route.passed.tolist()

    def test_it_promises_nothing_as_a_collective(self) -> None:
        template = routed("server", servers=2, each=2, k=2, tokens=4, chunks=2).template
        assert (template.name, template.collective) == ("forwarded", "custom")
        with pytest.raises(SpecError, match="promises"):
            check_template(template)

    def test_nothing_to_send(self) -> None:
        route = routed("server", servers=1, each=1, k=1, tokens=3, chunks=2)
        assert (len(route.template), route.piece_copies.tolist()) == (0, [0])


def exchange_us(route: Forwarding) -> float:
    """Time of an exchange by itself: two servers of two on rails, every link 400 Gbit/s."""
    builder = ProgramBuilder(n_ranks=4)
    builder.operation(
        route.template, route.piece_copies * TOKEN_BYTES, ranks=range(4), size_bytes=0, eager=True
    )
    scenario = fabric.Scenario(
        topology=fabric.RailOptimized(  # type: ignore[arg-type]
            servers=2,
            accelerators_per_server=2,
            spines=1,
            host_link={"rate": "400Gbps", "delay": "500ns"},
            scale_up_link={"rate": "400Gbps", "delay": "500ns"},
        ),
        transport={"congestion": {"kind": "none"}},
        traffic=[fabric.Permutation(size="1KB", start="1s")],  # type: ignore[arg-type]
    )
    engine = Engine(lower(scenario, jobs=[Job(program=builder.build(), hosts=np.arange(4))]))
    assert engine.run(until_ps=10**11) == "UNTIL"
    return float(engine.columns()["task_left_ps"].max()) / 1e6


class TestTime:
    ONCE_US = 512 * (TOKEN_BYTES + 82) * 8 / 400e3
    """512 tokens, a frame each, on a wire."""

    @pytest.mark.parametrize("back", [False, True])
    @pytest.mark.parametrize("chunks", [2, 4, 8, 16])
    def test_passed_on_inside(self, chunks: int, back: bool) -> None:
        """Rank 0's tokens for rank 3, over rank 2: of the second leg one chunk is left at the end."""
        between, wanted = np.zeros((4, 4), dtype=np.int64), np.zeros((4, 4), dtype=np.int64)
        between[0, 2] = wanted[0, 3] = 512
        self.check(
            lambda each: passed_on_inside(between, wanted, ranks_per_server=2, chunks=each), chunks, back
        )

    @pytest.mark.parametrize("back", [False, True])
    @pytest.mark.parametrize("chunks", [2, 4, 8, 16])
    def test_gathered_first(self, chunks: int, back: bool) -> None:
        """The same over rank 1."""
        copies = np.zeros((4, 4), dtype=np.int64)
        copies[0, 3] = 512
        self.check(lambda each: gathered_first(copies, ranks_per_server=2, chunks=each), chunks, back)

    def check(self, make: Callable[[int], Forwarding], chunks: int, back: bool) -> None:
        whole, cut = (make(each).mirrored() if back else make(each) for each in (1, chunks))
        won = exchange_us(whole) - exchange_us(cut)
        assert won == pytest.approx(self.ONCE_US * (1 - 1 / chunks), abs=1e-6)
        assert exchange_us(whole) == pytest.approx(2 * self.ONCE_US, rel=0.25)


def sent_pairs(program: Program) -> list[tuple[int, int, int]]:
    """Source, destination and bytes of every message."""
    found = []
    for operation, number in enumerate(program.template.tolist()):
        template, ranks = program.templates[number], program.ranks_of(operation)
        base = np.concatenate([[0], np.cumsum(program.piece_bytes(operation))])
        for source, destination, piece, count in zip(
            template.source, template.destination, template.piece, template.count, strict=True
        ):
            if source != destination:
                size = int(base[int(piece) + int(count)] - base[int(piece)])
                found.append((int(ranks[source]), int(ranks[destination]), size))
    return sorted(found)


def end_ps(program: Program) -> int:
    """When the last rank is done, each on a host of its own."""
    scenario = fabric.Scenario(
        topology=fabric.SingleSwitch(hosts=4),
        traffic=[fabric.Permutation(size="1KB", start="1s")],  # type: ignore[arg-type]
    )
    engine = Engine(lower(scenario, jobs=[Job(program=program, hosts=np.arange(4))]))
    assert engine.run(until_ps=10**11) == "UNTIL"
    left = engine.columns()["task_left_ps"]
    assert left.min() >= 0
    return int(left.max())


class TestRouter:
    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"chunks": 4}, "one leg"),
            ({"chunks": 4, "copies": "rank"}, "one leg"),
            ({"chunks": 0, "copies": "server"}, "from 1 to 4096"),
            ({"chunks": 4097, "regroup": True}, "from 1 to 4096"),
        ],
    )
    def test_chunks_that_are_none(self, given: dict[str, Any], words: str) -> None:
        with pytest.raises(SpecError, match=words) as error:
            Router(**given)
        assert error.value.path.endswith("chunks")

    @pytest.mark.parametrize("way", [{"copies": "server"}, {"regroup": True}])
    def test_both_legs_at_once_send_what_they_send_one_after_the_other(self, way: dict[str, Any]) -> None:
        sent = [self.step(**way, chunks=chunks).sent_bytes("ep").tolist() for chunks in (None, 1, 7)]
        assert sent[0] == sent[1] == sent[2]
        assert min(sent[0]) > 0

    def test_exported_and_read_again_it_sends_the_same(self, tmp_path: Path) -> None:
        """As sends and receives: a trace of Chakra has no name for it."""
        program = self.step(copies="server", chunks=3).program
        for rank, trace in enumerate(export_chakra(program, collectives=False).traces):
            (tmp_path / f"w.{rank}.et").write_bytes(trace)
        again, _ = import_chakra(tmp_path / "w.0.et")
        assert sent_pairs(again) == sent_pairs(program)
        assert end_ps(again) == end_ps(program)

    @staticmethod
    def step(**router: Any) -> Step:
        job = TrainingJob(
            model=Model(
                layers=1,
                hidden=64,
                ffn=64,
                heads=4,
                vocabulary=64,
                experts={"count": 8, "top_k": 3, "ffn": 16},  # type: ignore[arg-type]
            ),
            sequence=32,
            global_batch=4,
            parallelism=Parallelism(dp=4, ep=4),
        )
        server_of = np.arange(4) // 2
        routes = TokenRoutes(job=job, router=Router(choice="zipf", **router), server_of=server_of)
        times = StepTimes(forward_ps=1000, backward_ps=2000)
        return build_step(job, times=times, plan=StepPlan(routes=routes, server_of=server_of))
