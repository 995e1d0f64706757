"""Programs from files: GOAL schedules, and MSCCL programs with a size.

What a file is follows from its content (`fabric.formats.recognise`). GOAL says what each rank sends and
computes; MSCCL says which chunks move, of a vector whose size the scenario gives.
"""

from __future__ import annotations

from dataclasses import replace

from fabric.errors import SpecError
from fabric.formats import FORMATS, recognise
from fabric.formats.words import Said
from fabric.spec.traffic import Program as ProgramSpec
from fabric.workload.collectives.msccl import import_msccl
from fabric.workload.goal import import_goal
from fabric.workload.program import Program, ProgramBuilder

__all__ = ["read_program"]


def read_program(entry: ProgramSpec, *, path: str) -> Program:
    """Read the program of a traffic entry.

    Parameters
    ----------
    entry : fabric.spec.Program
    path : str
        Of the entry, for errors.

    Returns
    -------
    Program
        Its operations start at the entry's start at the earliest.

    Raises
    ------
    SpecError
        If the file is neither GOAL nor MSCCL or is damaged, or a size is missing or one too many.
    """
    kind = recognise(entry.file)
    if kind == "goal":
        if entry.size is not None:
            raise SpecError(f"{path}.size", entry.size, "no size for GOAL, whose messages have their own")
        program, _ = import_goal(entry.file, eager=entry.eager)
        return replace(program, start_ps=program.start_ps + int(entry.start)).verify(path=path)
    if kind == "msccl":
        if entry.size is None:
            allowed = "the bytes of a rank's vector, such as 1MB: MSCCL programs are for any size"
            raise SpecError(f"{path}.size", Said("(missing)"), allowed)
        template = import_msccl(entry.file)
        work = ProgramBuilder(template.n_ranks)
        ranks = range(template.n_ranks)
        work.operation(template, int(entry.size), ranks=ranks, start_ps=int(entry.start), eager=entry.eager)
        return work.build(path=path)
    found = Said(FORMATS[kind] if kind else "something else")
    raise SpecError(f"{path}.file: {entry.file}", found, "a GOAL schedule or an MSCCL program (XML)")
