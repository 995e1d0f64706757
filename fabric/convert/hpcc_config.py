"""What a `config.txt` of the HPCC simulator says, as specs.

Frames are as there: 48 bytes of headers, ACKs of 60 bytes in the class of the data, no preamble or gap.
Switches: the buffer in MiB, 4096 bytes reserved per ingress port, an XOFF threshold of 1/8 of what is free,
RESUME 3072 bytes below it, headroom of three times rate times delay, marks at dequeue by the thresholds
of the port's rate. `HAS_WIN` is a window of the network's largest bandwidth-delay product. What the
specs cannot say is listed with its reason, never dropped in silence; a congestion control that is not
modelled is an error. Defaults stand only for keys whose absence means "off".

Source: github.com/alibaba-edu/High-Precision-Congestion-Control, `simulation/scratch/third.cc`,
`simulation/src/point-to-point/model/`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from fabric.convert.hpcc_left_out import left_out, remark_on
from fabric.convert.path_times import PathTimes
from fabric.errors import SpecError
from fabric.formats import Remark
from fabric.formats.hpcc_config import MAPS, Settings
from fabric.formats.words import Said, seconds_ps
from fabric.spec import (
    Congestion,
    Dcqcn,
    Ecn,
    FixedWindow,
    GoBackN,
    Link,
    NoCongestionControl,
    Pfc,
    Record,
    Run,
    Spec,
    Switch,
    TrafficClass,
    Transport,
)
from fabric.topology import Network
from fabric.units import Duration, Rate, Size

__all__ = ["HpccSpecs", "hpcc_link", "hpcc_specs"]

HEADER_BYTES = 48
ACK_BYTES = 60
RESERVED_BYTES = 4096
RESUME_OFFSET_BYTES = 3072
HEADROOM_ROUNDS = 3
PFC_ALPHA = 1 / 8
MIB = 2**20
KB = 1000
PS_PER_US = 10**6
NACK_INTERVAL = "500us"
LARGEST_COUNT = 2**32 - 1

MODES = {0: "none", 1: "DCQCN", 3: "HPCC", 7: "TIMELY", 8: "DCTCP", 10: "HPCC-PINT"}
"""What each CC_MODE is there."""

DCQCN_KEYS = {
    "alpha_period": "ALPHA_RESUME_INTERVAL",
    "cut_period": "RATE_DECREASE_INTERVAL",
    "increase_period": "RP_TIMER",
    "fast_recovery": "FAST_RECOVERY_TIMES",
    "g": "EWMA_GAIN",
    "ai": "RATE_AI",
    "hai": "RATE_HAI",
    "min_rate": "MIN_RATE",
    "clamp_target": "CLAMP_TARGET_RATE",
    "window": "HAS_WIN",
}
"""The key behind each field of `Dcqcn`."""

_S = TypeVar("_S", bound=Spec)


@dataclass(frozen=True, kw_only=True)
class HpccSpecs:
    """Specs from a configuration.

    Attributes
    ----------
    switch : Switch
    transport : Transport
    run : Run
    record : Record
    remarks : tuple of Remark
    """

    switch: Switch
    transport: Transport
    run: Run
    record: Record
    remarks: tuple[Remark, ...]


def hpcc_link(settings: Settings) -> Link:
    """Return what the links of a topology do not say: no gap, and the error rate for all links."""
    return Link(gap=Size(0), loss=settings.probability("ERROR_RATE_PER_LINK"))


def hpcc_specs(settings: Settings, *, network: Network, classes: tuple[str, ...] = ("data",)) -> HpccSpecs:
    """Turn a configuration into specs for a network.

    Parameters
    ----------
    settings : Settings
    network : Network
        Thresholds, headroom and windows depend on its rates and delays.
    classes : tuple of str
        Traffic classes of data, one for each priority group that flows have.

    Returns
    -------
    HpccSpecs

    Raises
    ------
    SpecError
        Naming file, line and key: a key that is needed is not there, a value is not allowed, thresholds
        for a rate of the network are missing, or the congestion control is not modelled.
    """
    remarks = [*left_out(settings)]
    window, more = _window(settings, network)
    remarks += more
    switch, more = _switch(settings, network, classes)
    remarks += more
    transport, more = _transport(settings, classes[0], window)
    remarks += more
    until = None
    if settings.has("SIMULATOR_STOP_TIME"):
        where = settings.where("SIMULATOR_STOP_TIME")
        until = Duration(seconds_ps(settings.text("SIMULATOR_STOP_TIME"), where=where))
    return HpccSpecs(
        switch=switch,
        transport=transport,
        run=_made(settings, Run, {"until": "SIMULATOR_STOP_TIME"}, until=until),
        record=Record(pauses=settings.has("PFC_OUTPUT_FILE")),
        remarks=tuple(remarks),
    )


def _made(settings: Settings, cls: type[_S], keys: dict[str, str], **fields: Any) -> _S:
    """Make a spec; an error names the key that the field came from."""
    try:
        return cls(**fields)
    except SpecError as error:
        field = error.path.rpartition(".")[2].partition("[")[0]
        where = settings.where(keys[field]) if field in keys else f"{settings.file} {error.path}"
        raise SpecError(where, error.value, error.allowed) from None


def _window(settings: Settings, network: Network) -> tuple[Size | None, list[Remark]]:
    if not settings.flag("HAS_WIN"):
        return None, []
    payload = settings.whole("PACKET_PAYLOAD_SIZE", low=1)
    window = Size(max(PathTimes(network, payload_bytes=payload).longest_window_bytes(), payload))
    moves = settings.flag("VAR_WIN", False) and settings.text("CC_MODE") != "0"
    reason = f"the window of {int(window)} bytes does not follow the sending rate"
    return window, list(remark_on(settings, "VAR_WIN", reason)) if moves else []


def _switch(settings: Settings, network: Network, classes: tuple[str, ...]) -> tuple[Switch, list[Remark]]:
    headroom, remarks = _headroom(settings, network)
    ecn = None
    if settings.flag("ENABLE_QCN", True):
        ecn, more = _ecn(settings, network)
        remarks += more
    else:
        remarks += remark_on(settings, " ".join(MAPS), "ENABLE_QCN 0: no frame is marked")
    return (
        _made(
            settings,
            Switch,
            {"buffer": "BUFFER_SIZE", "reserved": "BUFFER_SIZE"},
            buffer=Size(settings.whole("BUFFER_SIZE", low=1, high=10**6) * MIB),
            latency=Duration(0),
            ecn=ecn,
            pfc=Pfc(alpha=PFC_ALPHA, xon_offset=Size(RESUME_OFFSET_BYTES), headroom=headroom),
            classes=tuple(TrafficClass(name=name, reserved=Size(RESERVED_BYTES)) for name in classes),
        ),
        remarks,
    )


def _headroom(settings: Settings, network: Network) -> tuple[Size | Literal["auto"], list[Remark]]:
    """Headroom of all ports if it is one, else "auto"; and faster ports' other threshold."""
    at_switch = network.link_b >= network.n_hosts
    rates, delays = network.link_rate_bps[at_switch].tolist(), network.link_delay_ps[at_switch].tolist()
    sizes = {
        rate * (delay // 1000) // 8 // 10**9 * HEADROOM_ROUNDS
        for rate, delay in zip(rates, delays, strict=True)
    }
    host_rate = int(network.link_rate_bps[network.link_a < network.n_hosts].min(initial=2**62))
    remarks: list[Remark] = []
    if max(rates, default=0) > host_rate:
        reason = f"ports faster than {Rate(host_rate)} have a threshold above 1/8 there; here all have 1/8"
        remarks += remark_on(settings, "BUFFER_SIZE", reason)
    if len(sizes) == 1:
        return Size(sizes.pop()), remarks
    reason = (
        f"headroom differs by port there ({min(sizes)} to {max(sizes)} bytes); here it is what loses nothing"
    )
    return "auto", [*remarks, *remark_on(settings, "BUFFER_SIZE", reason)]


def _ecn(settings: Settings, network: Network) -> tuple[Ecn | None, list[Remark]]:
    """Thresholds at the slowest rate, scaled with rates if all agree with that."""
    maps = {key: settings.rate_map(key) for key in MAPS}
    used = np.unique(network.link_rate_bps[network.link_b >= network.n_hosts]).tolist()
    for key, values in maps.items():
        for rate in used:
            if rate not in values:
                known = ", ".join(str(Rate(each)) for each in values)
                raise SpecError(
                    settings.where(key), Said(f"no value for {Rate(rate)}"), f"one, as for {known}"
                )
    slowest = used[0]
    kmin, kmax = (
        {rate: KB * _count(settings, key, maps[key][rate]) for rate in used}
        for key in ("KMIN_MAP", "KMAX_MAP")
    )
    pmax = {rate: _share(settings, maps["PMAX_MAP"][rate]) for rate in used}
    scaled = all(bound[rate] * slowest == bound[slowest] * rate for bound in (kmin, kmax) for rate in used)
    same = all(bound[rate] == bound[slowest] for bound in (kmin, kmax) for rate in used)
    remarks: list[Remark] = []
    if not scaled and not same:
        reason = f"not in proportion to rates; the values for {Rate(slowest)} hold, scaled with the rate"
        remarks += remark_on(settings, "KMIN_MAP KMAX_MAP", reason)
    if len(set(pmax.values())) > 1:
        remarks += remark_on(settings, "PMAX_MAP", f"the value for {Rate(slowest)} holds at every rate")
    never_between = pmax[slowest] == 0
    return (
        _made(
            settings,
            Ecn,
            {"kmin": "KMIN_MAP", "kmax": "KMAX_MAP", "pmax": "PMAX_MAP"},
            kmin=Size(kmax[slowest] if never_between else kmin[slowest]),
            kmax=Size(kmax[slowest]),
            pmax=1.0 if never_between else pmax[slowest],
            scale_from=None if same else Rate(slowest),
        ),
        remarks,
    )


def _count(settings: Settings, key: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise SpecError(settings.where(key), text, "a queue length in whole kB")
    return int(text)


def _share(settings: Settings, text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise SpecError(settings.where("PMAX_MAP"), text, "a probability from 0 to 1")
    return share


def _transport(settings: Settings, data_class: str, window: Size | None) -> tuple[Transport, list[Remark]]:
    payload = settings.whole("PACKET_PAYLOAD_SIZE", low=1)
    ack_every, remarks = _ack_every(settings, payload)
    reliability = GoBackN(nack_on_rewind=False, nack_interval=Duration(NACK_INTERVAL))
    reason = f"senders rewind after {reliability.rto} without progress; there is no such timer there"
    remarks.append(Remark(file=settings.file, line=0, what="time-out", reason=reason))
    congestion, more = _congestion(settings, window)
    return (
        _made(
            settings,
            Transport,
            {"payload": "PACKET_PAYLOAD_SIZE", "ack_every": "L2_ACK_INTERVAL"},
            payload=Size(payload),
            header=Size(HEADER_BYTES),
            control_frame=Size(ACK_BYTES),
            data_class=data_class,
            control_class=data_class,
            ack_every=ack_every,
            reliability=reliability,
            congestion=congestion,
        ),
        [*remarks, *more],
    )


def _ack_every(settings: Settings, payload: int) -> tuple[int, list[Remark]]:
    """Frames for one ACK: the interval in bytes, or (0 there) the chunk."""
    interval = settings.whole("L2_ACK_INTERVAL", 1, high=LARGEST_COUNT)
    if interval == 0:
        interval = settings.whole("L2_CHUNK_SIZE", low=1, high=LARGEST_COUNT)
    frames = -(-interval // payload)
    if frames == 1:
        return 1, []
    reason = f"one ACK for {frames} frames; there, one for each frame after the first {interval} bytes"
    return frames, list(remark_on(settings, "L2_ACK_INTERVAL", reason))


def _congestion(settings: Settings, window: Size | None) -> tuple[Congestion, list[Remark]]:
    mode = settings.whole("CC_MODE", high=LARGEST_COUNT)
    if mode not in CONGESTION:
        called = f" ({MODES[mode]})" if mode in MODES else ""
        known = " or ".join(f"{number} ({MODES[number]})" for number in CONGESTION)
        raise SpecError(
            settings.where("CC_MODE"),
            Said(f"{mode}{called}"),
            f"a congestion control that is modelled: {known}",
        )
    return CONGESTION[mode](settings, window)


def _none(settings: Settings, window: Size | None) -> tuple[Congestion, list[Remark]]:
    reason = "parameters of DCQCN, which CC_MODE 0 does not choose"
    keys = " ".join(key for key in DCQCN_KEYS.values() if key != "HAS_WIN")
    remarks = list(remark_on(settings, keys, reason))
    return (NoCongestionControl() if window is None else FixedWindow(window=window)), remarks


def _dcqcn(settings: Settings, window: Size | None) -> tuple[Congestion, list[Remark]]:
    def micros(key: str) -> Duration:
        return Duration(int(settings.number(key) if settings.has(key) else settings.whole(key)) * PS_PER_US)

    spec = _made(
        settings,
        Dcqcn,
        DCQCN_KEYS,
        preset="hpcc",
        alpha_period=micros("ALPHA_RESUME_INTERVAL"),
        cut_period=micros("RATE_DECREASE_INTERVAL"),
        increase_period=micros("RP_TIMER"),
        fast_recovery=settings.whole("FAST_RECOVERY_TIMES", high=LARGEST_COUNT),
        g=settings.number("EWMA_GAIN"),
        ai=Rate(settings.rate("RATE_AI")),
        hai=Rate(settings.rate("RATE_HAI")),
        scale_from=None,
        min_rate=Rate(settings.rate("MIN_RATE")),
        clamp_target=settings.flag("CLAMP_TARGET_RATE", False),
        window=window,
    )
    return spec, []


CONGESTION: dict[int, Callable[[Settings, Size | None], tuple[Congestion, list[Remark]]]] = {
    0: _none,
    1: _dcqcn,
}
"""What makes the congestion control of each CC_MODE that is modelled."""
