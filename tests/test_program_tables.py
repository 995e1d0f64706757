"""Tables of lowered programs, read back, are the templates: every transfer, and all that it waits for."""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import Any

import pytest
from support_programs import random_job
from support_templates import ALGORITHMS, options_for

from fabric.lowered import LoweredProgram
from fabric.lowering.programs import lower_jobs
from fabric.workload.collectives import Template, build_template
from fabric.workload.collectives.template import NOTHING
from fabric.workload.job import Job
from fabric.workload.program import ProgramBuilder

Transfer = tuple[Any, ...]
"""Lane, destination, is it a join, piece, count, waits, what comes after it there, what follows it here."""


def in_the_template(template: Template) -> list[list[Transfer]]:
    """By rank, the transfers that it sends, lane by lane; those of others by (rank, number there)."""
    lanes: dict[int, dict[Any, list[int]]] = defaultdict(dict)
    for row, (source, destination) in enumerate(zip(template.source, template.destination, strict=True)):
        lane = (row,) if source == destination else (int(destination), int(template.channel[row]))
        lanes[int(source)].setdefault((source == destination, lane), []).append(row)
    ranks = range(template.n_ranks + template.n_reducers)
    order = [[row for rows in lanes[rank].values() for row in rows] for rank in ranks]
    number = {row: place for rows in order for place, row in enumerate(rows)}
    after, followers, waits = defaultdict(list), defaultdict(list), defaultdict(int)
    for row in range(len(template)):
        for before in template.after[template.after_base[row] : template.after_base[row + 1]].tolist():
            after[before].append(number[row])
            waits[row] += 1
        if template.follows is not None and template.follows[row] != NOTHING:
            followers[int(template.follows[row])].append(number[row])
            waits[row] += 1
    found = []
    for rank in ranks:
        lane_of = {row: lane for lane, rows in enumerate(lanes[rank].values()) for row in rows}
        found.append(
            [
                (
                    lane_of[row],
                    int(template.destination[row]),
                    bool(template.destination[row] == rank),
                    None if template.destination[row] == rank else int(template.piece[row]),
                    None if template.destination[row] == rank else int(template.count[row]),
                    waits[row],
                    sorted(after[row]),
                    sorted(followers[row]),
                )
                for row in order[rank]
            ]
        )
    return found


def in_the_tables(program: LoweredProgram, operation: int) -> list[list[Transfer]]:
    """The same of an operation, from the arrays."""
    template = int(program.operation_template[operation])
    pieces = int(program.template_pieces[template])
    first_rank, end_rank = program.template_rank_base[template : template + 2].tolist()
    first_lane = int(program.rank_lane_base[first_rank])
    found: list[list[Transfer]] = []
    for rank in range(first_rank, end_rank):
        own: list[Transfer] = []
        pattern = int(program.rank_pattern[rank])
        lanes = range(*program.pattern_lane_base[pattern : pattern + 2].tolist())
        assert len(lanes) == program.rank_lane_base[rank + 1] - program.rank_lane_base[rank]
        for place, lane in enumerate(lanes):
            is_join = bool(program.lane_joins[lane])
            row = (
                int(program.operation_lanes[operation])
                + int(program.rank_lane_base[rank])
                - first_lane
                + place
            )
            connection = int(program.lane_connection[row])
            assert (connection == 2**32 - 1) == is_join
            destination = rank - first_rank
            if not is_join:
                assert program.connection_source[connection] == destination
                destination = int(program.connection_destination[connection])
            for transfer in range(*program.lane_transfer_base[lane : lane + 2].tolist()):
                assert program.transfer_lane[transfer] == place
                piece = (int(program.transfer_piece[transfer]) + int(program.rank_piece[rank])) % pieces
                followers = []
                if len(program.transfer_follower):
                    base = program.transfer_follower_base[transfer : transfer + 2].tolist()
                    followers = program.transfer_follower[slice(*base)].tolist()
                base = program.transfer_next_base[transfer : transfer + 2].tolist()
                own.append(
                    (
                        place,
                        destination,
                        is_join,
                        None if is_join else piece,
                        None if is_join else int(program.transfer_count[transfer]),
                        int(program.transfer_waits[transfer]),
                        program.transfer_next[slice(*base)].tolist(),
                        followers,
                    )
                )
        found.append(own)
    for rank in range(first_rank, end_rank):
        to = sum(to_other[1] == rank - first_rank and not to_other[2] for own in found for to_other in own)
        assert program.pattern_receives[program.rank_pattern[rank]] == to
    return found


@pytest.mark.parametrize("which", ALGORITHMS, ids="{0[0]}-{0[1]}".format)
def test_every_algorithm(which: tuple[str, str]) -> None:
    collective, name = which
    parts = ({}, {"channels": 2}, {"chunks": 3}, {"slices": 2, "channels": 2})
    for n_ranks in (1, 2, 3, 5, 8, 12):
        for number, options in enumerate(options_for(name, n_ranks)):
            more = parts[(number + n_ranks) % len(parts)]
            template = build_template(collective, algorithm=name, n_ranks=n_ranks, **options, **more)
            work = ProgramBuilder(n_ranks)
            places = n_ranks + template.n_reducers
            work.operation(template, [0] * template.n_blocks, ranks=range(places), size_bytes=0)
            job = Job(program=work.build(), hosts=range(places))
            program = lower_jobs([job], n_hosts=places).program
            assert in_the_tables(program, 0) == in_the_template(template)


@pytest.mark.parametrize("seed", range(40))
def test_tables_without_meaning(seed: int) -> None:
    """Several templates and operations, some ranks on one host."""
    job = random_job(Random(seed), 8, most_bytes=10_000)
    program = lower_jobs([job], n_hosts=8).program
    for operation, template in enumerate(job.program.template.tolist()):
        assert in_the_tables(program, operation) == in_the_template(job.program.templates[template])


def test_ranks_share_what_they_do_and_nothing_else() -> None:
    """Every rank of the symmetric ones has the same pattern; a root has one of its own."""
    for collective, name, patterns in (
        ("all_reduce", "ring", 1),
        ("all_gather", "bruck", 1),
        ("all_to_all", "pairwise", 1),
        ("all_reduce", "recursive_doubling", 1),
        ("broadcast", "chain", 4),
    ):
        template = build_template(collective, algorithm=name, n_ranks=8)
        work = ProgramBuilder(8)
        work.operation(template, 800, ranks=range(8))
        program = lower_jobs([Job(program=work.build(), hosts=range(8))], n_hosts=8).program
        assert len(set(program.rank_pattern.tolist())) == len(program.pattern_receives) == patterns, name
