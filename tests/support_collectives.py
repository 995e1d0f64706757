"""An ideal fabric for collectives: closed forms of alpha and beta hold on it.

Frames carry nothing but payload, ACKs have one byte, and a switch passes a frame on after its first bytes,
so that a message of m bytes takes `alpha + m/B`: no more than a few nanoseconds are left. Ranks are done
with a send when it is posted, and an operation ends with its last arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from support_lowered import small_lowered
from support_programs import with_jobs

from fabric._core import Engine
from fabric.lowered import Lowered
from fabric.workload.collectives import Template, build_template, busbw_factor
from fabric.workload.job import Job
from fabric.workload.program import ProgramBuilder

__all__ = [
    *("ALPHA_PS", "RATE_BPS", "Finished", "finish", "ideal_transport"),
    *("job_of", "on_one_switch", "run_alone", "with_two_ports"),
]

ALPHA_PS = 5_000_000
"""Two links."""
RATE_BPS = 400 * 10**9
CUT_BYTES = 64
"""Of a frame that a switch has seen when it passes it on."""


@dataclass(frozen=True, kw_only=True)
class Finished:
    """What became of one operation alone: its duration, and the bytes that it sent."""

    template: Template
    size_bytes: int
    picoseconds: int
    sent_bytes: int

    @property
    def busbw_bytes_per_s(self) -> float:
        """As nccl-tests has it."""
        factor = busbw_factor(self.template.collective, n_ranks=self.template.n_ranks)
        return self.size_bytes * 1e12 / self.picoseconds * factor


def ideal_transport(payload_bytes: int) -> dict[str, int]:
    """Frames without headers, and ACKs that cost nothing."""
    return {
        "frame_bytes": payload_bytes,
        "payload_bytes": payload_bytes,
        "control_bytes": 1,
        "least_frame_bytes": 1,
    }


def on_one_switch(job: Job, *, hosts: int, payload_bytes: int, **fields: Any) -> Lowered:
    """A job on hosts at one switch."""
    return small_lowered(
        **with_jobs(job, hosts=hosts),
        **{
            "rate_bps": RATE_BPS,
            "delay_ps": ALPHA_PS // 2,
            "transport": ideal_transport(payload_bytes),
            "ports": {host: {"cut_bytes": CUT_BYTES} for host in range(hosts)},
            **fields,
        },
    )


def with_two_ports(
    job: Job,
    *,
    second_switch: Sequence[int],
    is_second: Callable[[int, int], bool],
    payload_bytes: int,
    rate_bps: int = RATE_BPS,
    delay_ps: int = ALPHA_PS // 2,
    second_rate_bps: int | None = None,
    second_delay_ps: int | None = None,
) -> Lowered:
    """A job on hosts with a port to switch 0, and one to a switch of each host's (1 ..).

    Connections for whose ends `is_second` holds go by way of that. It is like the first one unless given.
    """
    second_rate_bps = rate_bps if second_rate_bps is None else second_rate_bps
    second_delay_ps = delay_ps if second_delay_ps is None else second_delay_ps
    hosts = len(second_switch)
    connected = with_jobs(job, hosts=hosts)
    for flow in connected["flows"]:
        flow["local_port"] = int(is_second(flow["source"], flow["destination"]))
    return small_lowered(
        **connected,
        attach=[(0, switch) for switch in second_switch],
        switches=1 + max(second_switch),
        rate_bps=[rate_bps, second_rate_bps] * hosts + [rate_bps] * max(second_switch),
        delay_ps=[delay_ps, second_delay_ps] * hosts + [ALPHA_PS] * max(second_switch),
        transport=ideal_transport(payload_bytes),
        ports={port: {"cut_bytes": CUT_BYTES} for port in range(2 * hosts)},
    )


def job_of(
    template: Template, size: int | Sequence[int], *, size_bytes: int | None = None, eager: bool = True
) -> Job:
    """One operation of all ranks (and reducers), on hosts of their own."""
    places = template.n_ranks + template.n_reducers
    builder = ProgramBuilder(template.n_ranks)
    total = int(np.sum(size)) if size_bytes is None else size_bytes
    builder.operation(template, size, ranks=range(places), size_bytes=total, eager=eager)
    return Job(program=builder.build(), hosts=range(places))


def finish(lowered: Lowered) -> dict[str, Any]:
    """Columns of a run to the end on the native engine."""
    engine = Engine(lowered)
    assert engine.run() == "FINISHED"
    columns: dict[str, Any] = engine.columns()
    return columns


def run_alone(
    collective: str,
    algorithm: str,
    n_ranks: int,
    size: int | Sequence[int],
    *,
    payload_bytes: int = 8192,
    eager: bool = True,
    **options: Any,
) -> Finished:
    """One operation, all ranks (and reducers) on hosts of their own at one switch.

    A reducer stands for a switch: its link carries all that its members send at once.
    """
    template = build_template(collective, algorithm=algorithm, n_ranks=n_ranks, **options)
    size_bytes = size if isinstance(size, int) else int(np.max(_sums(size, n_ranks)))
    job = job_of(template, size, size_bytes=size_bytes, eager=eager)
    hosts = max(2, n_ranks + template.n_reducers)
    rates = [RATE_BPS] * (hosts - template.n_reducers) + [RATE_BPS * n_ranks] * template.n_reducers
    columns = finish(on_one_switch(job, hosts=hosts, payload_bytes=payload_bytes, rate_bps=rates))
    return Finished(
        template=template,
        size_bytes=size_bytes,
        picoseconds=int(columns["task_left_ps"][:n_ranks].max()),
        sent_bytes=int(columns["operation_sent_bytes"][0]),
    )


def _sums(matrix: Sequence[int], n_ranks: int) -> npt.NDArray[np.int64]:
    """Row and column sums: nccl-tests calls the largest the size of an all-to-all-v."""
    square = np.asarray(matrix, dtype=np.int64).reshape(n_ranks, n_ranks)
    return np.concatenate([square.sum(0), square.sum(1)])
