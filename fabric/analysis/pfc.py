"""Priority flow control: headroom, peak occupancy, dynamic thresholds, the response times of standards.

An ingress port that crosses XOFF sends PAUSE. Until the last byte stops arriving, the following has to
fit above XOFF: what is on the wire during the way of PAUSE and back (twice the one-way delay d), while
PAUSE is put on the wire (t_pause, with any wait behind a frame) and while the peer reacts (t_response);
one frame because the test falls on whole frames; one because the peer finishes the frame being sent:

    headroom = rate/8 * (2d + t_pause + t_response) + 2 * frame

The common form with a single frame is too small by up to one frame. When the port gets no service in
that time the peak is exact (:func:`peak_ingress_bytes`). Both were checked against packet simulation.

Sources: IEEE 802.1Qbb and IEEE 802.3 annex 31B for the frame, the quantum and the response times, the
latter as printed in github.com/sonic-net/sonic-swss `cfgmgr/buffer_headroom_mellanox.lua`; Choudhury and
Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM ToN 6, 1998.
"""

from __future__ import annotations

import math

__all__ = [
    "PAUSE_FRAME_BYTES",
    "RESPONSE_QUANTA",
    "dynamic_threshold_bytes",
    "ecn_before_pfc_bytes",
    "headroom_bound_bytes",
    "peak_ingress_bytes",
    "quanta_ps",
    "response_time_ps",
    "sonic_mellanox_xoff_bytes",
    "static_threshold_bytes",
]

PAUSE_FRAME_BYTES = 64
"""A MAC control frame of minimum size (IEEE 802.1Qbb)."""

QUANTUM_BITS = 512
"""One pause quantum, in bit times (IEEE 802.3 annex 31B.2)."""

RESPONSE_QUANTA = {10: 67, 25: 80, 40: 118, 50: 147, 100: 394, 200: 453, 400: 905, 800: 905}
"""Quanta that a receiver may take to obey PAUSE, by link rate in Gbit/s (IEEE 802.3 31B.3.7)."""

LIGHT_IN_FIBRE_M_PER_S = 198e6
"""As used by SONiC."""

PS_PER_SECOND = 10**12
BITS_PER_BYTE = 8
GIGABIT = 10**9


def quanta_ps(quanta: int, *, rate_bps: int) -> int:
    """Duration of a number of pause quanta, rounded up to the picosecond.

    Parameters
    ----------
    quanta : int
        Pause time as carried in the frame, 0 to 65535.
    rate_bps : int
        Link rate in bit/s.

    Returns
    -------
    int
        Picoseconds.

    Raises
    ------
    ValueError
        If the quanta do not fit 16 bits or the rate is not positive.

    Examples
    --------
    An unrefreshed PAUSE of the longest time ends after 84 us at 400 Gbit/s:

    >>> quanta_ps(65535, rate_bps=400 * 10**9)
    83884800
    """
    if not 0 <= quanta <= 0xFFFF:
        raise ValueError(f"quanta must fit 16 bits, not {quanta}")
    if rate_bps <= 0:
        raise ValueError("rate_bps must be positive")
    return -(-quanta * QUANTUM_BITS * PS_PER_SECOND // rate_bps)


def response_time_ps(rate_bps: int) -> int:
    """Longest time that the standard lets a receiver take before it obeys PAUSE.

    Parameters
    ----------
    rate_bps : int
        One of the rates of :data:`RESPONSE_QUANTA`, in bit/s.

    Returns
    -------
    int
        Picoseconds.

    Raises
    ------
    ValueError
        If the standard gives no figure for the rate.

    Examples
    --------
    >>> response_time_ps(100 * 10**9)
    2017280
    """
    return quanta_ps(_response_quanta(rate_bps), rate_bps=rate_bps)


def headroom_bound_bytes(
    rate_bps: int, *, delay_ps: int, frame_bytes: int, pause_ps: int | None = None, response_ps: int = 0
) -> int:
    """Headroom per ingress port and class that loses nothing for any fan-in.

    Parameters
    ----------
    rate_bps : int
        Link rate in bit/s.
    delay_ps : int
        One-way delay of the link.
    frame_bytes : int
        Largest frame, as charged to the buffer.
    pause_ps : int, optional
        Time until PAUSE is on the wire, with a wait behind a frame on the reverse direction if there
        can be one. Default: the PAUSE frame alone.
    response_ps : int
        Time that the peer takes to obey.

    Returns
    -------
    int
        Bytes, rounded up.

    Raises
    ------
    ValueError
        If a parameter is negative or the rate is not positive.

    Examples
    --------
    >>> headroom_bound_bytes(100 * 10**9, delay_ps=10**6, frame_bytes=4096)
    33256
    """
    blind_ps = _blind_time_ps(rate_bps, delay_ps, pause_ps, response_ps)
    return -(-rate_bps * blind_ps // (BITS_PER_BYTE * PS_PER_SECOND)) + 2 * frame_bytes


def peak_ingress_bytes(
    rate_bps: int,
    *,
    delay_ps: int,
    frame_bytes: int,
    xoff_bytes: int,
    wire_bytes: int | None = None,
    pause_ps: int | None = None,
    response_ps: int = 0,
) -> int:
    """Exact peak of an ingress that gets no service while PAUSE takes effect.

    That is the case of sixteen or more equal senders into one port, all at line rate. The overshoot
    is the peak less XOFF; a headroom of this size loses nothing and one frame less does.

    Parameters
    ----------
    rate_bps, delay_ps, frame_bytes, pause_ps, response_ps
        As in :func:`headroom_bound_bytes`; every frame has `frame_bytes`.
    xoff_bytes : int
        Static threshold of the ingress.
    wire_bytes : int, optional
        Bytes that a frame takes on the wire. Default: `frame_bytes`.

    Returns
    -------
    int
        Bytes charged at the peak. When the blind time is a whole number of frame times, one frame
        more or less depending on the order of events within an instant.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> peak_ingress_bytes(400 * 10**9, delay_ps=1_500_000, frame_bytes=4096, xoff_bytes=333_000)
    487424
    """
    wire = frame_bytes if wire_bytes is None else wire_bytes
    if frame_bytes <= 0 or wire < frame_bytes:
        raise ValueError("a frame has bytes, and at least as many on the wire")
    if xoff_bytes < 0:
        raise ValueError("xoff_bytes must not be negative")
    blind_ps = _blind_time_ps(rate_bps, delay_ps, pause_ps, response_ps)
    arriving = rate_bps * blind_ps // (BITS_PER_BYTE * PS_PER_SECOND * wire)
    return frame_bytes * (-(-xoff_bytes // frame_bytes) + arriving + 1)


def _blind_time_ps(rate_bps: int, delay_ps: int, pause_ps: int | None, response_ps: int) -> int:
    if rate_bps <= 0:
        raise ValueError("rate_bps must be positive")
    if pause_ps is None:
        pause_ps = -(-PAUSE_FRAME_BYTES * BITS_PER_BYTE * PS_PER_SECOND // rate_bps)
    if min(delay_ps, pause_ps, response_ps) < 0:
        raise ValueError("times must not be negative")
    return 2 * delay_ps + pause_ps + response_ps


def dynamic_threshold_bytes(alpha: float, *, queues: int, buffer_bytes: int) -> tuple[float, float]:
    """Where `queues` permanently full queues settle under a dynamic threshold.

    Each may use alpha times what is free, so each holds alpha B / (1 + n alpha) and B / (1 + n alpha)
    stays free.

    Parameters
    ----------
    alpha : float
        Share of the free buffer, positive.
    queues : int
        Number of full queues, at least 1.
    buffer_bytes : int
        Shared buffer B.

    Returns
    -------
    (float, float)
        Bytes of each queue, and bytes left free.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> dynamic_threshold_bytes(1.0, queues=2, buffer_bytes=12_000_000)
    (4000000.0, 4000000.0)
    """
    if alpha <= 0 or queues < 1 or buffer_bytes < 0:
        raise ValueError("alpha must be positive, queues at least 1, buffer_bytes not negative")
    free = buffer_bytes / (1 + queues * alpha)
    return alpha * free, free


def static_threshold_bytes(buffer_bytes: int, *, ports: int, headroom_bytes: int, classes: int = 8) -> float:
    """Largest static PFC threshold that keeps every port's headroom free.

    Every ingress queue of every port may fill to the threshold and then to its headroom at once
    (Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 4).

    Parameters
    ----------
    buffer_bytes : int
        Shared buffer of the switch.
    ports, classes : int
        Ports, and PFC classes per port.
    headroom_bytes : int
        Headroom per port and class.

    Returns
    -------
    float
        Bytes; negative when the headroom alone does not fit.

    Examples
    --------
    >>> static_threshold_bytes(12_000_000, ports=32, headroom_bytes=22_400)
    24475.0
    """
    return (buffer_bytes - classes * ports * headroom_bytes) / (classes * ports)


def ecn_before_pfc_bytes(
    buffer_bytes: int, *, ports: int, headroom_bytes: int, beta: float, classes: int = 8
) -> float:
    """Largest Kmin for which ECN always marks before PFC pauses, under a dynamic PFC threshold.

    The worst case is one egress queue fed evenly from all ports (same source as
    :func:`static_threshold_bytes`).

    Parameters
    ----------
    buffer_bytes, ports, headroom_bytes, classes
        As in :func:`static_threshold_bytes`.
    beta : float
        Share of the free buffer that all classes of an ingress port may use (`classes` times alpha).

    Returns
    -------
    float
        Bytes.

    Examples
    --------
    >>> round(ecn_before_pfc_bytes(12_000_000, ports=32, headroom_bytes=22_400, beta=8))
    21756
    """
    shared = buffer_bytes - classes * ports * headroom_bytes
    return beta * shared / (classes * ports * (beta + 1))


def sonic_mellanox_xoff_bytes(
    rate_bps: int,
    *,
    cable_m: float,
    lossless_mtu_bytes: int,
    port_mtu_bytes: int,
    cell_bytes: int,
    mac_phy_bytes: float = 0.8 * 1024,
) -> int:
    """Headroom that SONiC configures on Mellanox switches, for small packets only and no gearbox.

    It counts the response time of the standard, and that small frames fill cells badly. The cable
    term is kept as shipped, where a factor of 8 * 1024 for 8 * 1000 makes it 2.3 % too small.

    Parameters
    ----------
    rate_bps : int
        One of the rates of :data:`RESPONSE_QUANTA`.
    cable_m : float
        Cable length in metres.
    lossless_mtu_bytes, port_mtu_bytes : int
        Largest frame of the lossless class, and of the port.
    cell_bytes : int
        Buffer cell of the switch.
    mac_phy_bytes : float
        Bytes held in MAC and PHY.

    Returns
    -------
    int
        Bytes, a multiple of 1024.

    Raises
    ------
    ValueError
        If the standard gives no response time for the rate.

    Notes
    -----
    Source: github.com/sonic-net/sonic-swss, `cfgmgr/buffer_headroom_mellanox.lua`.

    Examples
    --------
    >>> sonic_mellanox_xoff_bytes(
    ...     400 * 10**9, cable_m=40, lossless_mtu_bytes=1024, port_mtu_bytes=9100, cell_bytes=144
    ... )
    198656
    """
    cable = 2 * cable_m * (rate_bps / 1e6) * 1e9 / LIGHT_IN_FIBRE_M_PER_S / (8 * 1024)
    response = QUANTUM_BITS // BITS_PER_BYTE * _response_quanta(rate_bps)
    worst_fill = cell_bytes / 64 if cell_bytes > 128 else 2 * cell_bytes / (1 + cell_bytes)
    in_flight = port_mtu_bytes + cable + mac_phy_bytes + response
    return math.ceil((lossless_mtu_bytes + worst_fill * in_flight) / 1024) * 1024


def _response_quanta(rate_bps: int) -> int:
    quanta = RESPONSE_QUANTA.get(rate_bps // GIGABIT) if rate_bps % GIGABIT == 0 else None
    if quanta is None:
        raise ValueError(f"no response time for {rate_bps} bit/s; known Gbit/s: {sorted(RESPONSE_QUANTA)}")
    return quanta
