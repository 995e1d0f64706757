"""What an engine returns: the state at the end, and all that was counted, as NumPy columns.

The names and shapes are those at the end of `docs/design.md`, section 9.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from .buffer import IngressAccount
from .node import Node
from .port import Port
from .program import Walker
from .queues import EgressQueue
from .receiver import Receiver
from .sender import Sender
from .switch import Switch
from .tally import Tally

__all__ = ["Columns", "flow_columns", "node_columns", "port_columns", "program_columns", "scalar_counters"]

_T = TypeVar("_T")

Columns = dict[str, npt.NDArray[np.generic]]


def flow_columns(senders: list[Sender], receivers: list[Receiver]) -> Columns:
    """One value for each flow; times are -1 where something did not happen."""
    return {
        "flow_started_ps": np.array([s.started_ps for s in senders], np.int64),
        "flow_delivered_ps": np.array([r.delivered_ps for r in receivers], np.int64),
        "flow_completed_ps": np.array([s.completed_ps for s in senders], np.int64),
        "flow_sent": np.array([s.sent for s in senders], np.uint64),
        "flow_retransmitted": np.array([s.retransmitted for s in senders], np.uint64),
        "flow_timeouts": np.array([s.timeouts for s in senders], np.uint64),
        "flow_cnps": np.array([r.cnps for r in receivers], np.uint64),
        "flow_nacks": np.array([r.nacks for r in receivers], np.uint64),
        "flow_marked": np.array([r.marked for r in receivers], np.uint64),
    }


def port_columns(nodes: list[Node], ports: list[Port], tally: Tally) -> Columns:
    """One value for each port, or for each (port, class); what a host has not is 0."""
    shape = (len(ports), len(tally.drops[0]) if tally.drops else 0)
    switches = [node for node in nodes if isinstance(node, Switch)]

    def of_queue(value: Callable[[EgressQueue], float], dtype: npt.DTypeLike) -> npt.NDArray[np.generic]:
        return _scatter(switches, [switch.queues for switch in switches], value, shape, dtype)

    def of_account(value: Callable[[IngressAccount], int], dtype: npt.DTypeLike) -> npt.NDArray[np.generic]:
        return _scatter(switches, [switch.accounts for switch in switches], value, shape, dtype)

    paused_ps = [[pause.total_until(tally.end_ps) for pause in port.pauses] for port in ports]
    return {
        "port_tx_bytes": np.array([port.tx_bytes for port in ports], np.int64),
        "queue_bytes": of_queue(lambda q: q.bytes, np.int64),
        "queue_peak_bytes": of_queue(lambda q: q.peak_bytes, np.int64),
        "queue_wait_integral": of_queue(lambda q: q.wait_integral, np.float64),
        "queue_marks": of_queue(lambda q: q.marks, np.uint64),
        "queue_drops": np.array(tally.drops, np.uint64).reshape(shape),
        "ingress_bytes": of_account(lambda a: a.bytes, np.int64),
        "headroom_bytes": of_account(lambda a: a.headroom_bytes, np.int64),
        "headroom_peak_bytes": of_account(lambda a: a.headroom_peak_bytes, np.int64),
        "pauses_sent": of_account(lambda a: a.pauses_sent, np.uint64),
        "paused_ps": np.array(paused_ps, np.int64).reshape(shape),
    }


def node_columns(nodes: list[Node], tally: Tally) -> Columns:
    """One value for each node, and the drops by reason."""
    used_bytes = [node.pool.used_bytes if isinstance(node, Switch) else 0 for node in nodes]
    return {
        "shared_used": np.array(used_bytes, np.int64),
        "drops_by_reason": np.array(tally.drops_by_reason, np.uint64),
    }


def program_columns(walker: Walker | None) -> Columns:
    """One value for each task or operation of a program; nothing without one."""
    if walker is None:
        return {}
    return {
        "task_entered_ps": np.array(walker.entered_ps, np.int64),
        "task_left_ps": np.array(walker.left_ps, np.int64),
        "operation_sent_bytes": np.array(walker.sent_bytes, np.int64),
    }


def scalar_counters(tally: Tally) -> dict[str, int]:
    """Counters of the whole run."""
    return {
        "hops": tally.arrived,
        "frames_started": tally.started,
        "frames_arrived": tally.arrived,
        "in_flight": tally.in_flight,
        "lost_in_flight": tally.lost_in_flight,
        "pauses_repeated": tally.pauses_repeated,
        "pauses_run_out": tally.pauses_run_out,
        "end_ps": tally.end_ps,
        "fingerprint": tally.fingerprint,
    }


def _scatter(
    switches: list[Switch],
    tables: list[list[list[_T]]],
    value: Callable[[_T], float],
    shape: tuple[int, int],
    dtype: npt.DTypeLike,
) -> npt.NDArray[np.generic]:
    column = np.zeros(shape, dtype)
    for switch, table in zip(switches, tables, strict=True):
        for port, row in zip(switch.ports, table, strict=True):
            column[port.number] = [value(item) for item in row]
    return column
