"""What a `config.txt` of the HPCC simulator says, as specs.

What a configuration cannot say (frames, buffers, reliability, the clock) is that of the preset
`fabric.spec.ns3_hpcc`; what it says is set in it. `HAS_WIN` is a window of the network's largest
bandwidth-delay product. What the specs cannot say is listed with its reason, never dropped in silence; a
congestion control that is not modelled is an error. Defaults stand only for keys whose absence means "off".

Source: github.com/alibaba-edu/High-Precision-Congestion-Control, `simulation/scratch/third.cc`,
`simulation/src/point-to-point/model/`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from fabric.convert.hpcc_left_out import left_out, remark_on
from fabric.convert.path_times import PathTimes
from fabric.errors import Said, SpecError
from fabric.formats import Remark
from fabric.formats.hpcc_config import MAPS, Settings
from fabric.formats.words import seconds_ps
from fabric.spec import (
    Congestion,
    Dcqcn,
    Dctcp,
    Ecn,
    FixedWindow,
    Hpcc,
    Link,
    Nic,
    NoCongestionControl,
    Record,
    Routing,
    Run,
    Spec,
    Switch,
    Timely,
    Transport,
)
from fabric.spec.ns3_hpcc import ns3_hpcc
from fabric.topology import Network
from fabric.units import Duration, Rate, Size

__all__ = ["HpccSpecs", "hpcc_link", "hpcc_specs"]

ACK_HEADER_BYTES = 46
"""Of an ACK before telemetry and padding: 14 link, 20 IP, 12 of its own."""
HPCC_TELEMETRY_BYTES = 42
"""Five hops of 8 bytes and 2."""
TIMELY_TELEMETRY_BYTES = 8
"""One time stamp."""
MIB = 2**20
KB = 1000
PS_PER_NS = 1000
PS_PER_US = 10**6
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
    "variable_window": "VAR_WIN",
}
HPCC_KEYS = {
    "eta": "U_TARGET",
    "max_stage": "MI_THRESH",
    "fast_reaction": "FAST_REACT",
    "ai": "RATE_AI",
    "min_rate": "MIN_RATE",
    "base_rtt": "HAS_WIN",
    "telemetry_unit": "INT_MULTI",
}
DCTCP_KEYS = {
    "g": "EWMA_GAIN",
    "ai": "DCTCP_RATE_AI",
    "min_rate": "MIN_RATE",
    "window": "HAS_WIN",
    "variable_window": "VAR_WIN",
}
TIMELY_KEYS = {
    "ai": "RATE_AI",
    "hai": "RATE_HAI",
    "min_rate": "MIN_RATE",
    "window": "HAS_WIN",
    "variable_window": "VAR_WIN",
}
"""The key behind each field of a congestion control."""

_S = TypeVar("_S", bound=Spec)


@dataclass(frozen=True, kw_only=True)
class HpccSpecs:
    """Specs from a configuration.

    Attributes
    ----------
    switch : Switch
    nic : Nic
    transport : Transport
    routing : Routing
    run : Run
    record : Record
    remarks : tuple of Remark
    """

    switch: Switch
    nic: Nic
    transport: Transport
    routing: Routing
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
    congestion, remarks = _congestion(settings, network)
    remarks = [*left_out(settings, _keys_of(congestion)), *remarks]
    preset = ns3_hpcc(nic_rate=Rate(_nic_rate_bps(network)), classes=classes)
    switch, more = _switch(settings, network, preset["switch"])
    remarks += more
    transport, more = _transport(settings, preset["transport"], congestion)
    remarks += more
    until = None
    if settings.has("SIMULATOR_STOP_TIME"):
        where = settings.where("SIMULATOR_STOP_TIME")
        until = Duration(seconds_ps(settings.text("SIMULATOR_STOP_TIME"), where=where))
    return HpccSpecs(
        switch=switch,
        nic=preset["nic"].replace(control_ignores_pause=settings.flag("ACK_HIGH_PRIO", False)),
        transport=transport,
        routing=preset["routing"],
        run=_made(
            settings,
            Run,
            {"until": "SIMULATOR_STOP_TIME"},
            until=until,
            timing=preset["run"].timing,
            ties=preset["run"].ties,
            waits=preset["run"].waits,
        ),
        record=Record(pauses=settings.has("PFC_OUTPUT_FILE")),
        remarks=tuple(remarks),
    )


def _nic_rate_bps(network: Network) -> int:
    """Rate of the first host's first link, which the thresholds of faster ports are relative to."""
    first = int(np.argmax((network.link_a == 0) | (network.link_b == 0)))
    return int(network.link_rate_bps[first])


def _made(settings: Settings, cls: type[_S], keys: dict[str, str], **fields: Any) -> _S:
    """Make a spec; an error names the key that the field came from."""
    try:
        return cls(**fields)
    except SpecError as error:
        field = error.path.rpartition(".")[2].partition("[")[0]
        where = settings.where(keys[field]) if field in keys else f"{settings.file} {error.path}"
        raise SpecError(where, error.value, error.allowed) from None


def _window(settings: Settings, network: Network) -> Size | None:
    """The window that all flows have."""
    if not settings.flag("HAS_WIN"):
        return None
    payload = settings.whole("PACKET_PAYLOAD_SIZE", low=1)
    return Size(max(PathTimes(network, payload_bytes=payload).longest_window_bytes(), 1))


def _switch(settings: Settings, network: Network, preset: Switch) -> tuple[Switch, list[Remark]]:
    ecn: Ecn | None = None
    remarks: list[Remark] = []
    if settings.flag("ENABLE_QCN", True):
        ecn, remarks = _ecn(settings, network)
    else:
        remarks += remark_on(settings, " ".join(MAPS), "ENABLE_QCN 0: no frame is marked")
    buffer = Size(settings.whole("BUFFER_SIZE", low=1, high=10**6) * MIB)
    try:
        return preset.replace(buffer=buffer, ecn=ecn), remarks
    except SpecError as error:
        raise SpecError(settings.where("BUFFER_SIZE"), error.value, error.allowed) from None


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


def _transport(
    settings: Settings, preset: Transport, congestion: Congestion
) -> tuple[Transport, list[Remark]]:
    payload = settings.whole("PACKET_PAYLOAD_SIZE", low=1)
    ack_every, remarks = _ack_every(settings, payload)
    telemetry = getattr(congestion, "telemetry_header", Size(0))
    fields = {name: getattr(preset, name) for name in preset.__struct_fields__} | {
        "payload": Size(payload),
        "control_frame": Size(max(int(preset.control_frame), ACK_HEADER_BYTES + telemetry)),
        "ack_every": ack_every,
        "congestion": congestion,
    }
    keys = {"payload": "PACKET_PAYLOAD_SIZE", "ack_every": "L2_ACK_INTERVAL"}
    return _made(settings, Transport, keys, **fields), remarks


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


def _congestion(settings: Settings, network: Network) -> tuple[Congestion, list[Remark]]:
    mode = settings.whole("CC_MODE", high=LARGEST_COUNT)
    if mode not in CONGESTION:
        called = f" ({MODES[mode]})" if mode in MODES else ""
        known = ", ".join(f"{number} ({MODES[number]})" for number in CONGESTION)
        raise SpecError(
            settings.where("CC_MODE"),
            Said(f"{mode}{called}"),
            f"a congestion control that is modelled: {known}",
        )
    return CONGESTION[mode](settings, network)


def _keys_of(congestion: Congestion) -> frozenset[str]:
    """The keys that a congestion control was made of."""
    keys = {Dcqcn: DCQCN_KEYS, Hpcc: HPCC_KEYS, Dctcp: DCTCP_KEYS, Timely: TIMELY_KEYS}
    return frozenset(keys.get(type(congestion), {}).values()) | {"HAS_WIN"}


def _none(settings: Settings, network: Network) -> tuple[Congestion, list[Remark]]:
    window = _window(settings, network)
    return (NoCongestionControl() if window is None else FixedWindow(window=window)), []


def _dcqcn(settings: Settings, network: Network) -> tuple[Congestion, list[Remark]]:
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
        window=_window(settings, network),
        variable_window=settings.flag("VAR_WIN", False),
    )
    return spec, []


def _hpcc(settings: Settings, network: Network) -> tuple[Congestion, list[Remark]]:
    if not settings.flag("HAS_WIN"):
        raise SpecError(
            settings.where("HAS_WIN"), 0, "1 with CC_MODE 3 (HPCC), which takes its T from the window"
        )
    paths = PathTimes(network, payload_bytes=settings.whole("PACKET_PAYLOAD_SIZE", low=1))
    base_rtt = Duration(paths.longest_round_trip_ns() * PS_PER_NS)
    spec = _made(
        settings,
        Hpcc,
        HPCC_KEYS,
        base_rtt=base_rtt,
        eta=settings.number("U_TARGET"),
        max_stage=settings.whole("MI_THRESH", high=LARGEST_COUNT),
        fast_reaction=settings.flag("FAST_REACT"),
        ai=Rate(settings.rate("RATE_AI")),
        scale_from=None,
        min_rate=Rate(settings.rate("MIN_RATE")),
        telemetry_header=Size(HPCC_TELEMETRY_BYTES),
        telemetry_unit=settings.whole("INT_MULTI", 1, low=1),
    )
    remarks: list[Remark] = []
    if not settings.flag("VAR_WIN", False):
        remarks += remark_on(settings, "VAR_WIN", "the window of HPCC follows its rate")
    if settings.flag("MULTI_RATE", False):
        remarks += remark_on(settings, "MULTI_RATE", "one rate for the whole path holds, as with 0")
    if paths.longest_window_bytes() != base_rtt * _nic_rate_bps(network) // (8 * 10**12):
        reason = "the window of HPCC is rate times the longest base round trip, whatever the slowest link is"
        remarks += remark_on(settings, "HAS_WIN", reason)
    return spec, remarks


def _dctcp(settings: Settings, network: Network) -> tuple[Congestion, list[Remark]]:
    spec = _made(
        settings,
        Dctcp,
        DCTCP_KEYS,
        g=settings.number("EWMA_GAIN"),
        ai=Rate(settings.rate("DCTCP_RATE_AI")),
        min_rate=Rate(settings.rate("MIN_RATE")),
        window=_window(settings, network),
        variable_window=settings.flag("VAR_WIN", False),
    )
    return spec, []


def _timely(settings: Settings, network: Network) -> tuple[Congestion, list[Remark]]:
    spec = _made(
        settings,
        Timely,
        TIMELY_KEYS,
        ai=Rate(settings.rate("RATE_AI")),
        hai=Rate(settings.rate("RATE_HAI")),
        scale_from=None,
        min_rate=Rate(settings.rate("MIN_RATE")),
        window=_window(settings, network),
        variable_window=settings.flag("VAR_WIN", False),
        telemetry_header=Size(TIMELY_TELEMETRY_BYTES),
    )
    return spec, []


CONGESTION: dict[int, Callable[[Settings, Network], tuple[Congestion, list[Remark]]]] = {
    0: _none,
    1: _dcqcn,
    3: _hpcc,
    7: _timely,
    8: _dctcp,
}
"""What makes the congestion control of each CC_MODE that is modelled."""
