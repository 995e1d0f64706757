"""Programs from files of other tools: GOAL schedules, MSCCL programs, Chakra traces, AICB workloads.

What a file is follows from its name and content (`fabric.formats.recognise`). GOAL, Chakra and AICB say what
ranks send and compute; MSCCL says which chunks move, of a vector whose size the scenario gives.
"""

from __future__ import annotations

from dataclasses import replace

from fabric.errors import MISSING, Said, SpecError
from fabric.formats import FORMATS, Remark, recognise
from fabric.formats.aicb import read_aicb
from fabric.spec.traffic import Program as ProgramSpec
from fabric.workload.aicb import aicb_remarks, import_aicb
from fabric.workload.chakra import import_chakra
from fabric.workload.collectives.msccl import import_msccl
from fabric.workload.goal import import_goal
from fabric.workload.program import Program, ProgramBuilder

__all__ = ["PROGRAM_FORMATS", "program_remarks", "read_program"]

PROGRAM_FORMATS = {"goal": "GOAL", "msccl": "MSCCL", "chakra": "Chakra", "aicb": "AICB"}
"""Formats that are programs, with what errors call them."""

OPTIONS = {
    "size": ("msccl",),
    "groups": ("chakra",),
    "element": ("chakra",),
    "flops": ("chakra",),
    "ranks": ("aicb",),
    "algorithms": ("chakra", "aicb"),
}
"""Formats that each option of an entry is for."""


def read_program(entry: ProgramSpec, *, path: str, room: int) -> Program:
    """Read the program of a traffic entry.

    Parameters
    ----------
    entry : fabric.spec.Program
    path : str
        Of the entry, for errors.
    room : int
        Ranks for which there are hosts.

    Returns
    -------
    Program
        Its operations start at the entry's start at the earliest.

    Raises
    ------
    SpecError
        If the file is no program or is damaged, or an option is missing or one too many.
    """
    kind = recognise(entry.file)
    if kind not in PROGRAM_FORMATS:
        found = Said(FORMATS[kind] if kind else "something else")
        allowed = "a GOAL schedule, an MSCCL program (XML), a Chakra trace (.et) or an AICB workload"
        raise SpecError(f"{path}.file: {entry.file}", found, allowed)
    for option, kinds in OPTIONS.items():
        value = getattr(entry, option)
        if kind not in kinds and value != entry.implied()[option]:
            raise SpecError(f"{path}.{option}", value, f"no {option} for {PROGRAM_FORMATS[kind]}")
    if kind == "msccl":
        return _msccl(entry, path)
    if kind == "goal":
        program, _ = import_goal(entry.file, eager=entry.eager)
    else:
        try:
            program = _chakra(entry) if kind == "chakra" else _aicb(entry, path, room)
        except SpecError as error:
            if not error.path.startswith(("algorithms", "ranks")):
                raise
            raise SpecError(f"{path}.{error.path}", error.value, error.allowed) from None
    return replace(program, start_ps=program.start_ps + int(entry.start)).verify(path=path)


def program_remarks(entry: ProgramSpec) -> list[Remark]:
    """Return what of the file of a traffic entry is not taken as it stands, having read it.

    Raises
    ------
    SpecError
        If it is damaged.
    """
    kind = recognise(entry.file)
    if kind == "goal":
        return import_goal(entry.file)[1]
    if kind == "chakra":
        return import_chakra(entry.file, groups=entry.groups)[1]
    return aicb_remarks(read_aicb(entry.file), n_ranks=entry.ranks) if kind == "aicb" else []


def _msccl(entry: ProgramSpec, path: str) -> Program:
    if entry.size is None:
        allowed = "the bytes of a rank's vector, such as 1MB: MSCCL programs are for any size"
        raise SpecError(f"{path}.size", MISSING, allowed)
    template = import_msccl(entry.file)
    work = ProgramBuilder(template.n_ranks)
    ranks = range(template.n_ranks)
    work.operation(template, int(entry.size), ranks=ranks, start_ps=int(entry.start), eager=entry.eager)
    return work.build(path=path)


def _chakra(entry: ProgramSpec) -> Program:
    return import_chakra(
        entry.file,
        groups=entry.groups,
        element_bytes=int(entry.element),
        flops=entry.flops,
        algorithms=entry.algorithms,
        eager=entry.eager,
    )[0]


def _aicb(entry: ProgramSpec, path: str, room: int) -> Program:
    said = read_aicb(entry.file).header.get("all_gpus")
    n_ranks = entry.ranks or said or room
    if n_ranks > room:
        whose = "" if entry.ranks else f" (all_gpus of {entry.file})"
        raise SpecError("ranks", Said(f"{n_ranks}{whose}"), f"at most {room}, for which hosts have room")
    return import_aicb(entry.file, n_ranks=n_ranks, algorithms=entry.algorithms, eager=entry.eager)[0]
