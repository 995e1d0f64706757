"""`PatternFlows`: what a traffic pattern gives back, before labels, starts and jitter are applied.

A pattern is a pure function of its spec, the network and the draws of its entry. It returns one or more
of these; `fabric.workload.build` turns them into a `FlowTable`. Columns have one row per flow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabric.errors import Said, SpecError

__all__ = ["MOST_FLOWS", "PatternFlows", "Wait", "check_flow_count", "check_two_hosts", "other_host"]

MOST_FLOWS = 2**31
"""Flow numbers are 32-bit in the engine, with room for markers."""


@dataclass(frozen=True)
class Wait:
    """One flow that starts after others.

    Attributes
    ----------
    flow : int
        Row of the pattern.
    names : tuple of str
        Names of the flows that it waits for, anywhere in the scenario.
    place : str
        Where that is written, for errors.
    """

    flow: int
    names: tuple[str, ...]
    place: str


@dataclass(frozen=True)
class PatternFlows:
    """Flows that share a label.

    Attributes
    ----------
    source, destination : ndarray of int64 [flows]
        Host numbers.
    size_bytes : ndarray of int64 [flows] or int
        Payload.
    offset_ps : ndarray of int64 [flows] or int
        Start, counted from that of the entry.
    suffix : str
        Added to the label of the entry.
    names : tuple of str, or None
        Names of the flows.
    places : tuple of str, or None
        Where each flow is written down, for errors about its name; given with `names`.
    waits : tuple of Wait
        Flows that start after others.
    traffic_class : str, optional
        Of these flows, unless their entry has one.
    """

    source: npt.NDArray[np.int64]
    destination: npt.NDArray[np.int64]
    size_bytes: npt.NDArray[np.int64] | int
    offset_ps: npt.NDArray[np.int64] | int = 0
    suffix: str = ""
    names: tuple[str, ...] | None = None
    places: tuple[str, ...] | None = None
    waits: tuple[Wait, ...] = ()
    traffic_class: str | None = None


def check_two_hosts(n_hosts: int, *, path: str) -> None:
    """Refuse a pattern on fewer than two hosts."""
    if n_hosts < 2:
        raise SpecError(path, Said(f"{n_hosts} hosts"), "traffic between at least two hosts")


def check_flow_count(flows: float, *, path: str, value: object) -> None:
    """Refuse a pattern with more flows than can be numbered."""
    if flows > MOST_FLOWS:
        raise SpecError(path, value, f"at most {MOST_FLOWS} flows in all (this would make {flows:.4g})")


def other_host(source: npt.NDArray[np.int64], *, pick: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Number of the `pick`-th host of all but `source`, for picks in [0, hosts - 1).

    Examples
    --------
    >>> other_host(np.array([1, 1, 1]), pick=np.array([0, 1, 2])).tolist()
    [0, 2, 3]
    """
    return pick + (pick >= source)
