"""Switch buffers and scheduling: class profiles, headroom, the shared pool, priorities and quanta.

Every (port, class) has a profile: thresholds as they hold at that port. What depends on the port is the
ECN thresholds (scaled with its rate, if asked) and the headroom, which must hold what still arrives
after the port has decided to send PAUSE. With "auto" it is the bound that loses nothing for any
fan-in,

    H = ceil(C (d_out + d_in + t_pfc + t_response)) + 2 L,

where C is the rate of the cable, d_out and d_in are the delays of its two directions including the
receivers' latencies, t_response is what the sender of the data needs to react, and t_pfc is what
passes until the PAUSE is on the wire: one largest frame that may just have been begun in that
direction, and one PFC frame of each lossless class. The two largest frames L are the one that crosses
the threshold and the one that is being sent when PAUSE takes effect (the annex of IEEE 802.1Qbb on
buffer requirements adds up the same terms). What neither reserves nor headroom take of the buffer is
the pool that all ports share.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fabric.errors import Said, SpecError
from fabric.lowered import PROFILE, SCHEDULER
from fabric.spec.switch import BUFFER_LIMIT_BYTES, Ecn, Lossy, Pfc, Switch, TrafficClass
from fabric.topology.network import Network
from fabric.units import Rate, Size, format_duration, format_size

__all__ = ["auto_headroom_bytes", "buffer_columns", "scheduler_row", "serialisation_ps", "waiting_pfc_frames"]

PS_PER_BYTE_AT_1_BPS = 8 * 10**12
Q16 = 1 << 16
ECN_MODE = {"enqueue": 1, "dequeue": 2}
LARGEST_PROFILES = 2**16
DEFAULT_XON_FRAMES = 2
"""Hysteresis of PAUSE and RESUME, in largest frames, where the spec leaves it open."""


def buffer_columns(
    network: Network, *, switch: Switch, columns: dict[str, Any], largest_frame_bytes: int
) -> dict[str, Any]:
    """Profiles of all (port, class), schedulers, and the shared pool of every switch.

    Parameters
    ----------
    network : Network
    switch : Switch
    columns : dict
        Rates, delays and gaps of ports (`fabric.lowering.ports`), and `node_pfc_response_ps`.
    largest_frame_bytes : int
        Of any frame in the scenario.

    Returns
    -------
    dict
        `n_classes`, `schedulers`, `node_scheduler`, `profiles`, `port_profile`, `node_shared_bytes`. Row 0 of
        `profiles` is that of host ports, which have no limits and mark nothing.

    Raises
    ------
    fabric.errors.SpecError
        Reserves and headroom leave no shared pool in some switch, or a threshold that follows from a
        port's rate is beyond any buffer (1 TB).
    """
    rows, port_row = _profile_rows(network, switch, columns, largest_frame_bytes)
    profiles, number = _deduplicate(rows)
    if len(profiles) > LARGEST_PROFILES:
        allowed = f"at most {LARGEST_PROFILES} kinds of ports (by rate, delay and gap) and class"
        raise SpecError("topology", Said(f"{len(profiles)} kinds"), allowed)
    port_profile = number[port_row]
    return {
        "n_classes": len(switch.classes),
        "schedulers": scheduler_row(switch, largest_frame_bytes=largest_frame_bytes),
        "node_scheduler": np.zeros(network.n_nodes, dtype=np.uint16),
        "profiles": profiles,
        "port_profile": port_profile.ravel().astype(np.uint16),
        "node_shared_bytes": _shared_bytes(network, switch, profiles[port_profile]),
    }


def scheduler_row(switch: Switch, *, largest_frame_bytes: int) -> npt.NDArray[np.void]:
    """The one scheduler: a level per priority, highest first, and quanta by class.

    A quantum is the class's weight in largest frames, so that every turn sends at least one frame.

    Examples
    --------
    >>> row = scheduler_row(Switch(), largest_frame_bytes=4158)
    >>> int(row["n_levels"][0]), row["level_mask"][0][:2].tolist(), row["quantum"][0][:2].tolist()
    (2, [2, 1], [4158, 4158])
    """
    row = np.zeros(1, dtype=SCHEDULER)
    levels = sorted({each.priority for each in switch.classes}, reverse=True)
    row["n_levels"] = len(levels)
    for number, each in enumerate(switch.classes):
        row["level_mask"][0, levels.index(each.priority)] |= 1 << number
        row["quantum"][0, number] = each.weight * largest_frame_bytes
    return row


def serialisation_ps(wire_bytes: int, rate_bps: int) -> int:
    """Time that bytes occupy a link, rounded up to a picosecond.

    Examples
    --------
    >>> serialisation_ps(4178, 400 * 10**9)
    83560
    """
    return -(-wire_bytes * PS_PER_BYTE_AT_1_BPS // rate_bps)


def waiting_pfc_frames(switch: Switch) -> int:
    """PFC frames that may wait for each other at a port: one of each lossless class, and its repetition.

    Examples
    --------
    >>> waiting_pfc_frames(Switch()), waiting_pfc_frames(Switch(pfc=Pfc(quanta=65535)))
    (1, 2)
    """
    lossless_classes = sum(each.pfc is not False for each in switch.classes)
    return lossless_classes if switch.pfc.quanta is None else 2 * lossless_classes


def auto_headroom_bytes(
    rate_bps: int,
    *,
    round_trip_ps: int,
    response_ps: int,
    gap_bytes: int,
    largest_frame_bytes: int,
    waiting_pfc_frames: int = 1,
    pfc_frame_bytes: int = 64,
) -> int:
    """Headroom of an ingress port and class that loses nothing for any fan-in.

    Parameters
    ----------
    rate_bps : int
        Rate of the cable.
    round_trip_ps : int
        Delays of both directions, the receivers' latencies included.
    response_ps : int
        From the arrival of PAUSE at the upstream node to its effect.
    gap_bytes : int
        Wire bytes per frame beside the frame.
    largest_frame_bytes : int
    waiting_pfc_frames : int
        That may wait for each other, the PAUSE in question among them.
    pfc_frame_bytes : int

    Returns
    -------
    int
        Bytes.

    Examples
    --------
    >>> auto_headroom_bytes(400 * 10**9, round_trip_ps=2_000_000, response_ps=0, gap_bytes=20,
    ...                     largest_frame_bytes=4158)
    112578
    """
    wait_ps = serialisation_ps(largest_frame_bytes + gap_bytes, rate_bps)
    pause_ps = waiting_pfc_frames * serialisation_ps(pfc_frame_bytes + gap_bytes, rate_bps)
    total_ps = round_trip_ps + wait_ps + pause_ps + response_ps
    return -(-rate_bps * total_ps // PS_PER_BYTE_AT_1_BPS) + 2 * largest_frame_bytes


def _profile_rows(
    network: Network, switch: Switch, columns: dict[str, Any], largest_frame_bytes: int
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.int64]]:
    """Profiles by kind of port and class, behind a neutral row 0: rows, and int64 [ports, classes]."""
    peer = network.port_peer
    kinds, kind_of_port = np.unique(
        np.stack(
            [
                columns["port_rate_bps"],
                columns["port_delay_ps"] + columns["port_delay_ps"][peer],
                columns["node_pfc_response_ps"][network.port_node[peer]],
                columns["port_gap_bytes"].astype(np.int64),
            ],
            axis=1,
        )[network.port_node >= network.n_hosts],
        axis=0,
        return_inverse=True,
    )
    n_classes = len(switch.classes)
    rows = np.zeros(1 + len(kinds) * n_classes, dtype=PROFILE)
    for kind, (rate_bps, round_trip_ps, response_ps, gap_bytes) in enumerate(kinds.tolist()):
        bound_bytes = auto_headroom_bytes(
            rate_bps,
            round_trip_ps=round_trip_ps,
            response_ps=response_ps,
            gap_bytes=gap_bytes,
            largest_frame_bytes=largest_frame_bytes,
            waiting_pfc_frames=waiting_pfc_frames(switch),
            pfc_frame_bytes=int(switch.pfc.frame),
        )
        for number, each in enumerate(switch.classes):
            row = rows[1 + kind * n_classes + number : 2 + kind * n_classes + number]
            _fill_class(
                row,
                each,
                switch,
                path="switch.pfc" if not isinstance(each.pfc, Pfc) else f"switch.classes[{number}].pfc",
                rate_bps=rate_bps,
                delay_ps=round_trip_ps // 2,
                bound_bytes=bound_bytes,
                largest_frame_bytes=largest_frame_bytes,
            )
            path = "switch.ecn" if not isinstance(each.ecn, Ecn) else f"switch.classes[{number}].ecn"
            _fill_ecn(row, each, switch, rate_bps, path=path)
    port_row = np.zeros((network.n_ports, n_classes), dtype=np.int64)
    first = 1 + kind_of_port.reshape(-1, 1) * n_classes
    port_row[network.port_node >= network.n_hosts] = first + np.arange(n_classes)
    return rows, port_row


def _fill_class(
    row: npt.NDArray[np.void],
    each: TrafficClass,
    switch: Switch,
    *,
    path: str,
    rate_bps: int,
    delay_ps: int,
    bound_bytes: int,
    largest_frame_bytes: int,
) -> None:
    """Thresholds of a class at a port; `bound_bytes` is the headroom that loses nothing there."""
    row["reserved_bytes"] = each.reserved
    if each.pfc is False:
        _fill_lossy(row, each.lossy or switch.lossy)
        return
    pfc = each.pfc if isinstance(each.pfc, Pfc) else switch.pfc
    row["lossless"] = 1
    headroom_bytes = _headroom_bytes(pfc, rate_bps=rate_bps, delay_ps=delay_ps, bound_bytes=bound_bytes)
    if headroom_bytes >= BUFFER_LIMIT_BYTES:
        scaled = pfc.headroom_delays is not None
        field = "headroom_delays" if scaled else "headroom"
        allowed = (
            f"what makes a headroom below 1TB: at a port of {Rate(rate_bps)} with delays of "
            f"{format_duration(2 * delay_ps)} there and back it takes {format_size(headroom_bytes)}"
        )
        raise SpecError(f"{path}.{field}", getattr(pfc, field), allowed)
    row["headroom_bytes"] = headroom_bytes
    two_frames = DEFAULT_XON_FRAMES * largest_frame_bytes
    if pfc.xoff is None:
        assert pfc.alpha is not None
        row["alpha_q16"] = round(_port_alpha(pfc.alpha, pfc.alpha_scale_from, rate_bps) * Q16)
        row["xon_offset_bytes"] = two_frames if pfc.xon_offset is None else int(pfc.xon_offset)
    else:
        row["limit_bytes"] = pfc.xoff
        xon = max(0, pfc.xoff - two_frames) if pfc.xon is None else int(pfc.xon)
        row["xon_offset_bytes"] = pfc.xoff - xon


def _headroom_bytes(pfc: Pfc, *, rate_bps: int, delay_ps: int, bound_bytes: int) -> int:
    if pfc.headroom_delays is not None:
        return int(pfc.headroom_delays * (rate_bps * delay_ps // PS_PER_BYTE_AT_1_BPS))
    return bound_bytes if pfc.headroom == "auto" else int(pfc.headroom)


def _port_alpha(alpha: float, scale_from: Rate | None, rate_bps: int) -> float:
    """Alpha of a port: doubled for every doubling of its rate, begun or whole, beyond `scale_from`."""
    rate = float(rate_bps)
    while scale_from is not None and rate > scale_from and alpha < 1.0:
        alpha, rate = 2 * alpha, rate / 2
    return alpha


def _fill_lossy(row: npt.NDArray[np.void], lossy: Lossy) -> None:
    if lossy.limit is None:
        assert lossy.alpha is not None
        row["egress_alpha_q16"] = round(lossy.alpha * Q16)
    else:
        row["egress_limit_bytes"] = lossy.limit


def _fill_ecn(
    row: npt.NDArray[np.void], each: TrafficClass, switch: Switch, rate_bps: int, *, path: str
) -> None:
    if each.ecn is False:
        return
    ecn = each.ecn if isinstance(each.ecn, Ecn) else switch.ecn
    if ecn is None:
        return
    base_bps = rate_bps if ecn.scale_from is None else int(ecn.scale_from)
    if ecn.kmax * rate_bps // base_bps >= BUFFER_LIMIT_BYTES:
        allowed = f"a size that remains below 1TB if scaled from {Rate(base_bps)} to {Rate(rate_bps)}"
        raise SpecError(f"{path}.kmax", ecn.kmax, allowed)
    row["ecn_mode"] = ECN_MODE[ecn.mark]
    row["ecn_kmin_bytes"] = ecn.kmin * rate_bps // base_bps
    row["ecn_kmax_bytes"] = ecn.kmax * rate_bps // base_bps
    row["ecn_pmax"] = ecn.pmax


def _deduplicate(rows: npt.NDArray[np.void]) -> tuple[npt.NDArray[np.void], npt.NDArray[np.int64]]:
    """Distinct rows in the order of their first appearance, and the number of each given row.

    Written into zeros, so that the padding between fields is the same on every run.
    """
    numbers: dict[tuple[float, ...], int] = {}
    number = [numbers.setdefault(row, len(numbers)) for row in rows.tolist()]
    distinct = np.zeros(len(numbers), dtype=rows.dtype)
    distinct[:] = list(numbers)
    return distinct, np.array(number, dtype=np.int64)


def _shared_bytes(
    network: Network, switch: Switch, port_profiles: npt.NDArray[np.void]
) -> npt.NDArray[np.int64]:
    """What reserves and headroom of all ports and classes leave of each switch's buffer.

    Each is below 10^12 bytes and a switch has at most 2^16 ports of 8 classes: sums stay below 2^60.
    """
    reserved = np.zeros(network.n_nodes, dtype=np.int64)
    headroom = np.zeros(network.n_nodes, dtype=np.int64)
    np.add.at(reserved, network.port_node, port_profiles["reserved_bytes"].sum(axis=1))
    np.add.at(headroom, network.port_node, port_profiles["headroom_bytes"].sum(axis=1))
    shared = int(switch.buffer) - reserved - headroom
    is_switch = np.arange(network.n_nodes) >= network.n_hosts
    short = np.flatnonzero(is_switch & (shared <= 0))
    if len(short):
        node = int(short[np.argmin(shared[short])])
        ports = int(network.node_port_base[node + 1] - network.node_port_base[node])
        rates = network.link_rate_bps[network.port_link[network.port_node == node]]
        reserves, headrooms = Size(int(reserved[node])), Size(int(headroom[node]))
        allowed = (
            f"more than {Size(reserves + headrooms)}: the {ports} ports of {network.names[node]} (up to "
            f"{Rate(int(rates.max()))}) have {reserves} of reserves and {headrooms} of headroom"
        )
        raise SpecError("switch.buffer", switch.buffer, allowed)
    return np.where(is_switch, shared, 0)
