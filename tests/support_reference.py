"""Chains and incasts for the readable engine, by hand."""

from __future__ import annotations

from support_lowered import small_lowered

from fabric.lowered import Lowered
from fabric.reference import Simulator

__all__ = ["FRAME_PS", "GBPS", "chain", "finished", "incast", "port_to_host"]

GBPS = 10**9
FRAME_PS = 83_200
"""4160 bytes at 400 Gbit/s."""


def finished(lowered: Lowered) -> Simulator:
    simulator = Simulator(lowered)
    assert simulator.run() == "FINISHED"
    simulator.check_invariants()
    return simulator


def chain(n_links: int, frames: int, **overrides: object) -> Lowered:
    """Two hosts at the ends of a chain with so many links, and one flow along it."""
    return small_lowered(
        switches=n_links - 1,
        attach=[0, n_links - 2],
        flows=[dict(source=0, destination=1, frames=frames, **overrides.pop("flow", {}))],
        **overrides,
    )


def incast(senders: int, frames: int, **overrides: object) -> Lowered:
    """Hosts 1 .. senders to host 0, over one switch, all starting at 0."""
    return small_lowered(
        hosts=senders + 1,
        flows=[{"source": i, "destination": 0, "frames": frames} for i in range(1, senders + 1)],
        **overrides,
    )


def port_to_host(simulator: Simulator, host: int) -> int:
    """The switch port of a one-switch scenario that leads to a host."""
    return next(p.peer for p in simulator._ports if p.node == host)
