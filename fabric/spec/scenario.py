"""`Scenario`: everything that a run depends on, in one frozen value.

A scenario checks itself when it is made: first every part, then what only shows between parts
(`fabric.spec.cross`). What depends on the built network (buffer space over all ports, patterns
that match nothing, the contents of files) is judged when it is lowered, with the same paths.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec

from fabric.spec.base import Problem, Spec
from fabric.spec.cross import cross_problems
from fabric.spec.failure_sources import DrawnFailures, FailureLog
from fabric.spec.failures import (
    Corruption,
    DegradedLink,
    HostHang,
    LinkDown,
    LinkDrain,
    LinkFlap,
    PfcStorm,
    SlowNic,
    SwitchDown,
)
from fabric.spec.nic import Nic
from fabric.spec.recovery import Recovery
from fabric.spec.routing import Routing
from fabric.spec.run import Record, Run
from fabric.spec.sweep import sweep_problems
from fabric.spec.switch import Switch
from fabric.spec.topology import Clos3, FatTree, GraphFile, LeafSpine, RailOptimized, SingleSwitch
from fabric.spec.traffic import AllToAll, Collective, Flows, Incast, Permutation, Poisson, Program, Uniform
from fabric.spec.training.entry import Training
from fabric.spec.transport import Transport

__all__ = ["Scenario"]


class Scenario(Spec, frozen=True, kw_only=True):
    """A network, its traffic, and how to run and record it.

    Parameters
    ----------
    name : str
        A short name for reports.
    question : str
        What the scenario answers.
    expect : str
        The answer to expect, with its number.
    topology : SingleSwitch, LeafSpine, Clos3, FatTree, RailOptimized or GraphFile
        Hosts, switches, links; `kind` in a file is the name with underscores ("leaf_spine"), "graph"
        for the last.
    traffic : tuple of Flows, Incast, Permutation, Uniform, AllToAll, Poisson, Collective, Program, Training
        At least one entry.
    switch : Switch
        Every switch.
    nic : Nic
        Every host's interface.
    routing : Routing
        Path choice of every switch.
    transport : Transport
        Of all traffic that does not bring its own.
    run : Run
        Seed and end.
    record : Record
        What is recorded besides totals.
    failures : tuple of LinkDown, LinkDrain, LinkFlap, DegradedLink, Corruption, ...
        What breaks, and when. Default: nothing.
    recovery : Recovery
        What is done about it.
    sweep : dict
        Several runs of it: by path ("transport.congestion.kind") a list of values, or a table of values
        with names. Every combination is a run of its own (`fabric.run_sweep`). Default: one run.

    Examples
    --------
    >>> from fabric.spec import Incast, LeafSpine
    >>> scenario = Scenario(
    ...     topology=LeafSpine(leaves=2, spines=2, hosts_per_leaf=8),
    ...     traffic=[Incast(senders=8, size="1MB")],
    ... )
    >>> scenario.topology.host_link.rate
    Rate("400Gbps")
    """

    ROOT: ClassVar[bool] = True

    name: str = ""
    question: str = ""
    expect: str = ""
    topology: SingleSwitch | LeafSpine | Clos3 | FatTree | RailOptimized | GraphFile
    traffic: tuple[
        Flows | Incast | Permutation | Uniform | AllToAll | Poisson | Collective | Program | Training, ...
    ]
    switch: Switch = msgspec.field(default_factory=Switch)
    nic: Nic = msgspec.field(default_factory=Nic)
    transport: Transport = msgspec.field(default_factory=Transport)
    run: Run = msgspec.field(default_factory=Run)
    record: Record = msgspec.field(default_factory=Record)
    routing: Routing = msgspec.field(default_factory=Routing)
    failures: tuple[
        LinkDown
        | LinkDrain
        | LinkFlap
        | DegradedLink
        | Corruption
        | SwitchDown
        | HostHang
        | SlowNic
        | PfcStorm
        | DrawnFailures
        | FailureLog,
        ...,
    ] = ()
    recovery: Recovery = msgspec.field(default_factory=Recovery)
    sweep: dict[str, Any] = msgspec.field(default_factory=dict)

    def problems(self) -> Iterator[Problem]:
        yield from cross_problems(self)
        yield from sweep_problems(self.sweep)
