"""Programs by chance as Chakra traces, and how runs of them end."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
from support_chakra import collective, put, varint

from fabric._core import Engine
from fabric.lower import lower
from fabric.spec import Permutation, Scenario, SingleSwitch
from fabric.workload.chakra_export import export_chakra
from fabric.workload.collectives import Collective
from fabric.workload.job import Job
from fabric.workload.program import Program, ProgramBuilder

__all__ = [
    "ALL_REDUCE",
    "MANY_PEERS",
    "ONE_PEER",
    "OWN",
    "US",
    "Draw",
    "after",
    "ended",
    "random_program",
    "waits",
    "written",
]

US = 10**6
ALL_REDUCE = 0


def after(*numbers: int) -> bytes:
    return put(5, b"".join(map(varint, numbers)))


def waits(program: Program) -> set[tuple[int, int, int]]:
    """Rank, operation, and the operation that it waits for there."""
    later, earlier = program.operation_of(program.wait_task), program.operation_of(program.wait_for)
    rank = program.task_rank[program.wait_task]
    return set(zip(rank.tolist(), later.tolist(), earlier.tolist(), strict=True))


OWN = collective(1, ALL_REDUCE, 8)


# There and back.


def written(program: Program, folder: Path, *, collectives: bool) -> Path:
    texts = export_chakra(program, collectives=collectives)
    for rank, text in enumerate(texts.traces):
        (folder / f"x.{rank}.et").write_bytes(text)
    (folder / "comm_groups.json").write_text(json.dumps(texts.groups))
    return folder / "x.0.et"


def ended(program: Program) -> tuple[str, list[int], int]:
    """How a run ends, when each rank does, and what was sent."""
    scenario = Scenario(topology=SingleSwitch(hosts=8), traffic=[Permutation(size="1KB", start="1s")])
    engine = Engine(lower(scenario, jobs=[Job(program=program, hosts=np.arange(8))]))
    status = engine.run()
    columns = engine.columns()
    ends = np.full(8, -1, dtype=np.int64)
    np.maximum.at(ends, program.task_rank, columns["task_left_ps"])
    return status, ends.tolist(), int(columns["operation_sent_bytes"].sum())


ONE_PEER = [
    ("all_reduce", ("ring", "halving_doubling")),
    ("all_gather", ("ring",)),
    ("reduce_scatter", ("ring",)),
    ("all_to_all", ("pairwise",)),
    ("broadcast", ("chain",)),
    ("barrier", ("dissemination",)),
]
"""Algorithms in which a rank sends to one other at a time."""
MANY_PEERS = [
    ("all_reduce", ("double_binary_tree", "direct")),
    ("all_gather", ("direct",)),
    ("reduce_scatter", ("bruck",)),
    ("all_to_all", ("direct",)),
    ("broadcast", ("binomial",)),
]


class Draw:
    """Operations by chance, which wait for any before them; `chained`: each rank does and sends one thing at
    a time, so that no order of what may be sent at one instant plays a part (it is in no file)."""

    def __init__(self, seed: int, *, chained: bool) -> None:
        self.random, self.chained = random.Random(seed), chained
        self.last: list[list[int]] = [[] for _ in range(8)]

    def before(self, number: int, ranks: list[int]) -> list[int]:
        """What the operation of that number waits for."""
        chain = sorted({each for rank in ranks for each in self.last[rank]})
        for rank in ranks:
            self.last[rank] = [number]
        some = self.random.sample(range(number), min(number, self.random.randint(0, 3)))
        return chain if self.chained else some


def random_program(seed: int, *, chained: bool) -> Program:
    """Collectives on groups, messages, compute; times that are no whole microseconds."""
    drawn = Draw(seed, chained=chained)
    draw = drawn.random
    work = ProgramBuilder(n_ranks=8)
    kinds = ONE_PEER if chained else [*ONE_PEER, *MANY_PEERS]
    for number in range(draw.randint(3, 15)):
        what = draw.random()
        if what < 0.3:
            ranks = [draw.randrange(8)]
            spent = draw.choice([0, US, 1234567])
            work.compute(ranks[0], picoseconds=spent, after=drawn.before(number, ranks))
        elif what < 0.6:
            ranks = draw.sample(range(8), 2)
            work.message(
                *ranks,
                size_bytes=draw.choice([0, 1, 9000]),
                after=drawn.before(number, ranks),
                eager=not chained and draw.random() < 0.5,
            )
        else:
            kind, algorithms = draw.choice(kinds)
            size = 0 if kind == "barrier" else draw.choice([8 * 840, 10_007])
            ranks = draw.sample(range(8), draw.choice([1, 2, 4, 8]))
            options = {"channels": 2} if draw.random() < 0.2 else {}
            one = Collective(
                kind=kind,
                n_ranks=len(ranks),
                size_bytes=size,
                algorithm=draw.choice(algorithms),
                options=options,
            )
            work.collective(
                one,
                ranks=ranks,
                after=drawn.before(number, ranks),
                compute_ps=draw.choice([0, 777]),
                start_ps=draw.choice([0, 0, 5 * US]),
                eager=not chained and draw.random() < 0.7,
            )
    return work.build()
