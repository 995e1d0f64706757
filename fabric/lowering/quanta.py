"""How long a PAUSE holds at each port, how often it is repeated, and whether that is often enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fabric.errors import SpecError
from fabric.failures.occurrences import Occurrence
from fabric.lowering.buffers import PS_PER_BYTE_AT_1_BPS, serialisation_ps
from fabric.spec.switch import Switch
from fabric.topology.network import Network
from fabric.units import Duration

__all__ = ["quanta_columns"]

BoolArray = npt.NDArray[np.bool_]
Int64Array = npt.NDArray[np.int64]

BYTES_PER_QUANTUM = 64
FRAMES_IN_THE_WAY = 3
"""A repetition waits for at most one frame and the PFC frames that this one made wait: for each of the
smallest frames that come in meanwhile, a PAUSE and a RESUME no larger than they."""


def quanta_columns(
    network: Network,
    *,
    switch: Switch,
    columns: dict[str, Any],
    occurrences: Sequence[Occurrence],
    largest_frame_bytes: int,
) -> dict[str, Any]:
    """`pfc_refresh_ps`, `port_pause_ps` and `port_pause_holds`; the arrays are empty without quanta.

    Parameters
    ----------
    network : Network
    switch : Switch
    columns : dict
        Rates and gaps of ports.
    occurrences : sequence of Occurrence
        Failures, which may slow links down.
    largest_frame_bytes : int

    Raises
    ------
    fabric.errors.SpecError
        PAUSE would be repeated so often that repetitions alone fill a link, or it hangs on what is in the way
        of a repetition whether it comes in time.
    """
    if switch.pfc.quanta is None:
        none = np.zeros(0, dtype=np.int64)
        return {"pfc_refresh_ps": 0, "port_pause_ps": none, "port_pause_holds": none.astype(np.uint8)}
    rates_bps: list[int] = columns["port_rate_bps"].tolist()
    quanta_bytes = switch.pfc.quanta * BYTES_PER_QUANTUM
    pause_ps = np.array([serialisation_ps(quanta_bytes, rate) for rate in rates_bps], dtype=np.int64)
    wait_ps = _longest_waits_ps(network, columns, occurrences, largest_frame_bytes)[network.port_peer]
    refresh = switch.pfc.refresh
    refresh_ps = int(pause_ps.min()) // 2 if refresh == "auto" else 0 if refresh == "never" else int(refresh)
    longest_ps = int(wait_ps.max())
    if refresh_ps and refresh_ps < longest_ps:
        _refuse(switch, longest_ps, fastest_bps=max(rates_bps))
    holds = (refresh_ps > 0) & (refresh_ps + wait_ps <= pause_ps)
    runs_out = (refresh_ps == 0) | (refresh_ps >= pause_ps + wait_ps)
    if not np.all(holds | runs_out):
        _refuse_between(switch, network, ~(holds | runs_out), pause_ps, wait_ps)
    return {
        "pfc_refresh_ps": refresh_ps,
        "port_pause_ps": pause_ps,
        "port_pause_holds": holds.astype(np.uint8),
    }


def _longest_waits_ps(
    network: Network, columns: dict[str, Any], occurrences: Sequence[Occurrence], largest_frame_bytes: int
) -> Int64Array:
    """By port, how long a repetition can wait there: the link at its slowest."""
    slowest_bps: list[int] = columns["port_rate_bps"].tolist()
    for each in occurrences:
        if each.rate_bps:
            for port in each.ports:
                slowest_bps[port] = min(slowest_bps[port], int(each.rate_bps))
    wire_bytes = FRAMES_IN_THE_WAY * (largest_frame_bytes + network.link_gap_bytes[network.port_link])
    return np.array(
        [serialisation_ps(int(size), rate) for size, rate in zip(wire_bytes, slowest_bps, strict=True)],
        dtype=np.int64,
    )


def _refuse(switch: Switch, longest_ps: int, *, fastest_bps: int) -> None:
    shortest = Duration(longest_ps)
    if switch.pfc.refresh != "auto":
        allowed = f'at least {shortest}, three of the largest frames at the slowest port, or "never"'
        raise SpecError("switch.pfc.refresh", switch.pfc.refresh, allowed)
    least = -(-2 * longest_ps * fastest_bps // (BYTES_PER_QUANTUM * PS_PER_BYTE_AT_1_BPS)) + 1
    raise SpecError(
        "switch.pfc.quanta", switch.pfc.quanta, f"at least {least}, to be repeated every {shortest} or later"
    )


def _refuse_between(
    switch: Switch, network: Network, between: BoolArray, pause_ps: Int64Array, wait_ps: Int64Array
) -> None:
    most = Duration(int((pause_ps - wait_ps)[between].min()))
    least = Duration(int((pause_ps + wait_ps)[between].max()))
    port = network.port_arrow(int(np.flatnonzero(between)[0]))
    allowed = f"at most {most} or at least {least}; between, PAUSE runs out at {port} if much is in the way"
    raise SpecError("switch.pfc.refresh", switch.pfc.refresh, allowed)
