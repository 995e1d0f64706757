"""Small tables of transfers, written down row by row, and random ones.

A row is (source, destination, piece, count, channel, after), `after` a list of rows; that is what a
program needs of a template. No knowledge of data: a random table moves pieces without meaning.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from support_lowered import US, busy_lowered, small_lowered

from fabric.lowered import Lowered
from fabric.lowering.programs import program_arrays
from fabric.reference.rng import fmix32
from fabric.workload.program import Operation, Program

__all__ = ["Table", "all_to_all", "busy_program", "random_program", "random_table", "ring", "with_program"]

MOST_RANKS = 8
FLOW_COLUMNS = (
    *("flow_source", "flow_destination", "flow_frames", "flow_last_frame_bytes", "flow_start_ps"),
    *("flow_hash", "flow_waits", "dep_base", "dep_flow", "dep_delay_ps", "dep_on"),
)

Row = tuple[int, int, int, int, int, Sequence[int]]


@dataclass(frozen=True, eq=False)
class Table:
    """Transfers of `n_ranks` ranks."""

    n_ranks: int
    n_pieces: int
    rows: Sequence[Row]
    n_reducers: int = 0
    block: Any = None

    def _column(self, number: int, dtype: Any) -> Any:
        return np.array([row[number] for row in self.rows], dtype=dtype)

    source = property(lambda self: self._column(0, np.uint32))
    destination = property(lambda self: self._column(1, np.uint32))
    piece = property(lambda self: self._column(2, np.uint32))
    count = property(lambda self: self._column(3, np.uint32))
    channel = property(lambda self: self._column(4, np.uint8))

    @property
    def after_base(self) -> Any:
        return np.cumsum([0, *(len(row[5]) for row in self.rows)]).astype(np.uint32)

    @property
    def after(self) -> Any:
        return np.array([before for row in self.rows for before in row[5]], np.uint32)

    def piece_bytes(self, total: Any) -> Any:
        return np.array(total, np.int64)


def ring(n_ranks: int, *, rounds: int = 2) -> Table:
    """Each rank passes a piece on `rounds * (n - 1)` times: twice round is a ring all-reduce."""
    rows: list[Row] = []
    for step in range(rounds * (n_ranks - 1)):
        for rank in range(n_ranks):
            after = [(step - 1) * n_ranks + (rank - 1) % n_ranks] if step else []
            rows.append((rank, (rank + 1) % n_ranks, (rank - step) % n_ranks, 1, 0, after))
    return Table(n_ranks, n_ranks, rows)


def all_to_all(n_ranks: int) -> Table:
    """Each rank sends its piece to every other, all at once."""
    steps, ranks = range(1, n_ranks), range(n_ranks)
    return Table(
        n_ranks, n_ranks, [(r, (r + k) % n_ranks, (r + k) % n_ranks, 1, 0, []) for k in steps for r in ranks]
    )


def random_table(rng: random.Random, n_ranks: int, *, transfers: int) -> Table:
    """A table by chance: some transfers come after arrivals at their source, some are joins."""
    pieces = rng.randint(1, 5)
    rows: list[Row] = []
    for _ in range(transfers):
        source = rng.randrange(n_ranks)
        destination = rng.choice([(source + 1) % n_ranks, rng.randrange(n_ranks)])
        arrivals = [number for number, row in enumerate(rows) if row[1] == source]
        after = sorted(rng.sample(arrivals, min(len(arrivals), rng.choice([0, 1, 1, 2, 4]))))
        piece = rng.randrange(pieces)
        rows.append(
            (source, destination, piece, rng.randint(1, pieces - piece), rng.choice([0, 0, 1]), after)
        )
    return Table(n_ranks, pieces, rows)


def random_program(rng: random.Random, n_hosts: int, *, most_bytes: int) -> Program:
    """A program by chance: operations on some ranks, several ranks on a host, orders that differ."""
    n_ranks = rng.randint(1, min(MOST_RANKS, 2 * n_hosts))
    hosts = tuple(rng.randrange(n_hosts) for _ in range(n_ranks))
    groups = [tuple(rng.sample(range(n_ranks), rng.randint(1, n_ranks))) for _ in range(3)]
    tables = {group: _some_table(rng, len(group)) for group in groups}
    operations: list[Operation] = []
    for number in range(rng.randint(1, 6)):
        ranks = rng.choice(groups)
        before = [k for k in range(number) if not set(operations[k].ranks).isdisjoint(ranks)]
        operations.append(
            Operation(
                ranks=ranks,
                template=None if rng.random() < 0.15 else tables[ranks],
                size=_some_size(rng, tables[ranks], most_bytes),
                after=tuple(rng.sample(before, rng.randint(0, len(before)))),
                start_ps=rng.choice([0, 0, rng.randrange(5_000_000)]),
                compute_ps=rng.choice([0, 0, rng.randrange(8_000_000)]),
                eager=rng.random() < 0.3,
            )
        )
    return Program(
        hosts=hosts,
        operations=tuple(operations),
        local_rate_bps=rng.choice([0, 900 * 10**9, 7 * 10**9]),
        local_latency_ps=rng.choice([0, 500_000]),
    )


def _some_table(rng: random.Random, n_ranks: int) -> Table:
    kinds = [ring(n_ranks), all_to_all(n_ranks), random_table(rng, n_ranks, transfers=rng.randint(0, 30))]
    return rng.choice([*kinds, kinds[2]])


def _some_size(rng: random.Random, table: Table, most_bytes: int) -> Any:
    if rng.random() < 0.7:
        return rng.choice([0, *[rng.randint(0, most_bytes)] * 3])
    return tuple(rng.randint(0, most_bytes // table.n_pieces) for _ in range(table.n_pieces))


def with_program(program: Program, *, hosts: int) -> dict[str, Any]:
    """Keywords of `small_lowered` for a program: flows that are its connections, and its arrays."""
    lowered = program_arrays(program, n_hosts=hosts)
    flows = [
        {"source": source, "destination": destination, "frames": 0, "path_hash": fmix32(number + 77)}
        for number, (source, destination) in enumerate(
            zip(lowered.flows.source.tolist(), lowered.flows.destination.tolist(), strict=True)
        )
    ]
    return {"hosts": hosts, "flows": flows, "program": lowered.program}


def busy_program(seed: int) -> Lowered:
    """A program on a small fabric with everything in it, by chance: `busy_lowered` with other flows."""
    rng = random.Random(seed)
    busy = busy_lowered(seed)
    base, hosts = busy.node_port_base, busy.n_hosts
    connected = with_program(
        random_program(rng, hosts, most_bytes=rng.choice([3_000, 40_000, 120_000])), hosts=hosts
    )
    transports = busy.transports.copy()
    for row in transports:
        row["rto_ps"] = rng.choice([60, 60, 200, 200, 0]) * US
        row["ack_delay_ps"] = rng.choice([0, 0, US, 10 * US])
        row["path_mode"], row["path_count"] = rng.choice([0, 0, 1, 2]), 4
        row["payload_bytes"] = row["frame_bytes"] - 64
        if row["congestion"] not in (3, 5) and rng.random() < 0.6:
            row["selective"], row["reorder_frames"], row["telemetry"] = 1, rng.choice([1, 3]), 0
    flows = connected["flows"]
    sources = [flow["source"] for flow in flows]
    columns = small_lowered(**connected)
    return replace(
        busy,
        n_flows=len(flows),
        program=columns.program,
        transports=transports,
        **{name: getattr(columns, name) for name in FLOW_COLUMNS},
        flow_port=np.array([rng.randrange(base[host], base[host + 1]) for host in sources], np.uint32),
        flow_class=np.array([rng.randrange(busy.n_classes) for _ in flows], np.uint8),
        flow_transport=np.array([rng.randrange(len(transports)) for _ in flows], np.uint16),
        flow_record=np.full(len(flows), 3, np.uint8),
    )
