"""Traffic between a training job and storage: batches that are read, checkpoints that are written.

Storage hosts are hosts of the scenario's network on which no rank runs; what goes to and from them has a
traffic class of its own if it is given one. Each rank uses the storage host of its number, in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from fabric.spec.base import Problem, Spec, quantity
from fabric.units import Rate, Size

__all__ = ["Batches", "Checkpoint", "Storage"]


class Batches(Spec, frozen=True, kw_only=True, tag_field="kind", tag="batches"):
    """The batches of a job, read from storage.

    The ranks of the first stage read, each its share of the tokens of its micro-batches, one step ahead: the
    first step waits for its batch, a later one only if its batch has not come while the step before was run.

    Parameters
    ----------
    hosts : str
        Pattern of the names of storage hosts.
    token_bytes : int
        Bytes of a token in storage. Default 4; images and video have thousands.
    rate : Rate, optional
        At which a rank asks for parts of `part`. None (default): all at once.
    part : Size
        What a rank asks for at one time. Default 1MB.
    traffic_class : str, optional
        None (default): that of the job.
    """

    hosts: str
    token_bytes: int = 4
    rate: Rate | None = None
    part: Size = quantity("1MB")
    traffic_class: str | None = None

    def problems(self) -> Iterator[Problem]:
        yield from _hosts(self.hosts)
        if self.token_bytes < 1:
            yield "token_bytes", self.token_bytes, "at least 1"
        if self.part == 0:
            yield "part", self.part, "a size above 0"
        if self.rate == 0:
            yield "rate", self.rate, "a rate above 0, or none"


class Checkpoint(Spec, frozen=True, kw_only=True, tag_field="kind", tag="checkpoint"):
    """The state of a job, written to storage after some of its steps.

    Parameters
    ----------
    hosts : str
        Pattern of the names of storage hosts.
    mode : {"synchronous", "asynchronous"}
        Synchronous: the next step begins when a rank's state is acknowledged. Asynchronous, in tiers: a rank
        stops only while it copies its state to the memory of its server, from where it goes to storage beside
        the next steps; a rank begins a checkpoint when its last is there.
    every : int
        Steps from one to the next. Default 1.
    parameter_bytes : int
        Of one parameter's state: 2 for weights, 12 for the optimizer's in fp32. Default 14. Ranks that hold
        the same parameters share the writing.
    size : Size, optional
        Of a rank's state, instead of what follows from the model.
    copy_rate : Rate
        To the memory of the server. Default 400Gbps (PCIe 5, 16 lanes, 50 GB/s).
    rate : Rate, optional
        Of an asynchronous checkpoint on its way to storage, in parts of `part`. None (default): all at once.
    part : Size
        Default 1MB.
    traffic_class : str, optional
        None (default): that of the job.
    """

    hosts: str
    mode: Literal["synchronous", "asynchronous"] = "synchronous"
    every: int = 1
    parameter_bytes: int = 14
    size: Size | None = None
    copy_rate: Rate = quantity("400Gbps")
    rate: Rate | None = None
    part: Size = quantity("1MB")
    traffic_class: str | None = None

    def problems(self) -> Iterator[Problem]:
        yield from _hosts(self.hosts)
        for name in ("every", "parameter_bytes"):
            if getattr(self, name) < 1:
                yield name, getattr(self, name), "at least 1"
        for name in ("size", "rate"):
            if getattr(self, name) == 0:
                yield name, getattr(self, name), "above 0, or none"
        for name in ("copy_rate", "part"):
            if getattr(self, name) == 0:
                yield name, getattr(self, name), "above 0"
        if self.rate is not None and self.mode == "synchronous":
            yield "rate", self.rate, "none for a synchronous checkpoint"


Storage = Batches | Checkpoint


def _hosts(pattern: str) -> Iterator[Problem]:
    if not pattern:
        yield "hosts", pattern, 'a pattern of host names, such as "host12?"'
