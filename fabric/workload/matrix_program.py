"""Programs of htsim's connection matrices: every flow a message, every trigger a wait.

A flow that a trigger starts is sent when the flows that activate it are over, as their source
(`send_done_trigger`: the last ACK is there) or their destination (`recv_done_trigger`) knows it. Where
that is not the source of the flow that starts, the news travels as a message without payload; there it
takes no time.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fabric.errors import Said, SpecError
from fabric.formats import Remark
from fabric.formats.htsim_matrix import parse_matrix, parse_schedule
from fabric.formats.words import place
from fabric.workload.program import Program, ProgramBuilder
from fabric.workload.waits import find_cycle

__all__ = ["import_matrix"]


def import_matrix(file: str | Path, *, start_unit: str = "ps") -> tuple[Program, list[Remark]]:
    """Make a program of a connection matrix.

    Parameters
    ----------
    file : str or Path
        Its nodes are ranks of the program.
    start_unit : "ps", "ns" or "us"
        What `start` counts.

    Returns
    -------
    Program
        Flows in the order of the file, then messages without payload that carry news.
    list of Remark

    Raises
    ------
    SpecError
        Naming file, line and cause.
    """
    nodes, data, waits = parse_schedule(file, start_unit=start_unit)
    remarks = parse_matrix(file, start_unit=start_unit)[1]
    pairs = np.array([(wait.flow, wait.before) for wait in waits], dtype=np.int64).reshape(-1, 2)
    cycle = find_cycle(pairs[:, 0], predecessor=pairs[:, 1], n_flows=len(data.source))
    if cycle:
        lines = " after ".join(f"line {data.line[flow]}" for flow in [*cycle, cycle[0]])
        where = place(str(file), int(data.line[cycle[0]]), "trigger")
        raise SpecError(where, Said(lines), "flows that do not wait for themselves")
    job = ProgramBuilder(n_ranks=nodes)
    columns = (data.source, data.destination, data.size_bytes, data.start_ps)
    for source, destination, size, start in zip(*(each.tolist() for each in columns), strict=True):
        job.message(source, destination, size_bytes=size, start_ps=start)
    for wait in waits:
        knows = int((data.source if wait.sent else data.destination)[wait.before])
        source = int(data.source[wait.flow])
        news = wait.before
        if knows != source:
            news = job.message(knows, source, size_bytes=0, after=[wait.before])
        job.wait(wait.flow, news)
    return job.build(path=str(file)), remarks
