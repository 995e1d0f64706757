"""Chakra traces of programs: one file a rank, and the groups of their collectives.

An operation whose template a Chakra type and the name of an algorithm say in full becomes one node a rank;
any other (channels, all-to-all-v, custom templates) becomes the sends and receives of its transfers. Times
are whole microseconds there: an exact one (`duration_ps`) stands beside the rounded one where they differ.
`algorithm`, `eager` and `concurrent` are added too. A trace that is read again means the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from fabric.errors import Said, SpecError
from fabric.formats.chakra import COLLECTIVE, COMM_TYPES, COMPUTE, RECEIVE, SEND
from fabric.formats.chakra_bytes import LARGEST_TAG, metadata_record, node_record
from fabric.workload.collectives import Template, algorithm_names, build_template
from fabric.workload.collectives.arrays import Int64Array
from fabric.workload.collectives.kinds import kind_of
from fabric.workload.program import Program, message_template
from fabric.workload.two_sided import RankWriter, tag_bases, tasks_by_rank, write_rank

__all__ = ["ChakraTexts", "export_chakra"]

PS_PER_US = 10**6


@dataclass(frozen=True, kw_only=True)
class ChakraTexts:
    """What the files of a program hold.

    Attributes
    ----------
    traces : iterator of bytes
        Of each rank, in order.
    groups : dict of str to tuple of int
        Ranks of the groups that are not all ranks.
    """

    traces: Iterator[bytes]
    groups: dict[str, tuple[int, ...]]


def export_chakra(program: Program, *, collectives: bool = True) -> ChakraTexts:
    """Write a program as Chakra traces, rank by rank.

    Parameters
    ----------
    program : Program
        Without reducers.
    collectives : bool
        Operations become nodes of collectives where one says them in full; False: always transfers.

    Returns
    -------
    ChakraTexts

    Raises
    ------
    SpecError
        If it has what Chakra has not.

    Examples
    --------
    >>> from fabric.workload.program import ProgramBuilder
    >>> work = ProgramBuilder(n_ranks=2)
    >>> message = work.message(0, 1, size_bytes=100)
    >>> [len(trace) for trace in export_chakra(work.build()).traces]
    [87, 75]
    """
    if any(template.n_reducers for template in program.templates):
        raise SpecError("program", Said("reducers in switches"), "operations between ranks, for Chakra")
    tags = tag_bases(program)
    if tags[-1] > LARGEST_TAG:
        raise SpecError("program", Said(f"{tags[-1]} transfers"), f"at most {LARGEST_TAG}, for Chakra")
    said = [collectives and _says_all(template) for template in program.templates]
    whole = np.array(said, dtype=np.bool_)[program.template]
    for operation in np.flatnonzero(whole).tolist():
        whole[operation] = _size_says_all(program, operation)
    groups: dict[tuple[int, ...], str] = {tuple(range(program.n_ranks)): ""}
    group = [""] * len(program)
    for operation in np.flatnonzero(whole).tolist():
        ranks = tuple(program.ranks_of(operation).tolist())
        group[operation] = groups.setdefault(ranks, str(len(groups)))
    traces = (_trace(program, tasks, tags, whole, group) for tasks in tasks_by_rank(program))
    return ChakraTexts(traces=traces, groups={name: ranks for ranks, name in groups.items() if name})


def _says_all(template: Template) -> bool:
    """Whether type and algorithm give the template; a message is a send and a receive."""
    if (
        template is message_template()
        or template.collective not in COMM_TYPES
        or template.name not in algorithm_names(template.collective)
    ):
        return False
    again = build_template(template.collective, algorithm=template.name, n_ranks=template.n_ranks)
    return again is template or all(
        np.array_equal(getattr(again, column.name), getattr(template, column.name))
        for column in fields(Template)
    )


def _size_says_all(program: Program, operation: int) -> bool:
    """Whether the operation's pieces follow from one size, and that of an all-gather from one rank's part."""
    template = program.templates[int(program.template[operation])]
    size = int(program.size_bytes[operation])
    if template.collective == "all_gather" and size % template.n_ranks:
        return False
    return np.array_equal(program.piece_bytes(operation), template.piece_bytes(size))


def _trace(
    program: Program, tasks: Int64Array, tags: Int64Array, whole: npt.NDArray[np.bool_], group: list[str]
) -> bytes:
    writer = _Writer(program, whole, group)
    write_rank(program, tasks, writer, tags=tags)
    return writer.content()


@dataclass
class _Node:
    name: str
    kind: int
    attributes: dict[str, int | str]
    duration_us: int = 0


class _Writer(RankWriter):
    """Nodes of a rank that is written."""

    def __init__(self, program: Program, whole: npt.NDArray[np.bool_], group: list[str]) -> None:
        self.program, self.whole, self.group = program, whole, group
        self.nodes: list[_Node] = []
        self.waits: list[dict[int, None]] = []

    def compute(self, picoseconds: int, *, name: str) -> int:
        node = _Node(name, COMPUTE, {}, round(picoseconds / PS_PER_US))
        if node.duration_us * PS_PER_US != picoseconds:
            node.attributes["duration_ps"] = picoseconds
        if picoseconds:
            node.attributes["concurrent"] = 1
        return self._take(node)

    def send(self, size_bytes: int, peer: int, tag: int, *, name: str, eager: bool) -> int:
        said = {"comm_size": size_bytes, "comm_dst": peer, "comm_tag": tag, "eager": int(eager)}
        return self._take(_Node(name, SEND, {**said}))

    def receive(self, size_bytes: int, peer: int, tag: int, *, name: str) -> int:
        said = {"comm_size": size_bytes, "comm_src": peer, "comm_tag": tag}
        return self._take(_Node(name, RECEIVE, {**said}))

    def wait(self, later: int, earlier: int) -> None:
        self.waits[later][earlier] = None

    def collective(self, operation: int) -> int | None:
        if not self.whole[operation]:
            return None
        template = self.program.templates[int(self.program.template[operation])]
        said: dict[str, int | str] = {"comm_type": COMM_TYPES.index(template.collective)}
        size = int(self.program.size_bytes[operation])
        said["comm_size"] = size // template.n_ranks if template.collective == "all_gather" else size
        if self.group[operation]:
            said["pg_name"] = self.group[operation]
        if kind_of(template.collective).rooted:
            said["comm_src"] = int(self.program.ranks_of(operation)[template.root])
        said["algorithm"] = template.name
        said["eager"] = int(self.program.eager[operation])
        return self._take(_Node(f"op{operation}", COLLECTIVE, said))

    def content(self) -> bytes:
        """Return the trace."""
        records = (
            node_record(
                number,
                name=node.name,
                kind=node.kind,
                waits=self.waits[number],
                duration_us=node.duration_us,
                attributes={"is_cpu_op": 0, **node.attributes},
            )
            for number, node in enumerate(self.nodes)
        )
        return b"".join((metadata_record(), *records))

    def _take(self, node: _Node) -> int:
        self.nodes.append(node)
        self.waits.append({})
        return len(self.nodes) - 1
