"""`.topo` of htsim: a fat tree of two or three tiers, described tier by tier.

A header (`Nodes`, `Tiers`, `Podsize`: hosts in a pod) and, for `Tier 0` (ToR) up, `Downlink_speed_Gbps`,
`Downlink_latency_ns`, `Radix_Down`, `Radix_Up` (not in the top tier), and where they differ from 0, 1, 1:
`Switch_latency_ns`, `Oversubscribed`, `Bundle` (parallel cables to each neighbour below). Letter case
does not matter; `#` begins a comment.

An uplink is the downlink of the tier above, in rate and latency. The number of switches follows from
the radices; what htsim derives from speeds and oversubscription must agree and is checked. Half of the
latency of a switch stands on each cable that ends at it, so that any way between two hosts takes what
htsim's takes whatever the tiers' latencies; `switch.latency` is then 0. Source:
github.com/Broadcom/csg-htsim, `sim/datacenter/fat_tree_topology.cpp`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fabric.errors import Said, SpecError
from fabric.formats.data import NetworkData, Remark
from fabric.formats.words import place, read_text, whole
from fabric.units import LARGEST

__all__ = ["parse_fat_tree"]

MOST_HOSTS = 2**24
FASTEST_GBPS = 10**6
GBPS = 10**9
PS_PER_NS = 1000
PREFIXES = {2: ("leaf", "spine"), 3: ("leaf", "spine", "core")}
TIER_KEYS = {
    "downlink_speed_gbps": 1,
    "radix_down": 1,
    "radix_up": 1,
    "downlink_latency_ns": 0,
    "switch_latency_ns": 0,
    "oversubscribed": 1,
    "bundle": 1,
}
"""What each tier may say, and the smallest value."""
QUEUE_KEYS = ("queue_up", "queue_down")
HEADER_KEYS = ("nodes", "tiers", "podsize")
DEFAULTS = {"switch_latency_ns": 0, "oversubscribed": 1, "bundle": 1}

Int64Array = npt.NDArray[np.int64]


@dataclass
class _Tier:
    line: int
    values: dict[str, int] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    def __getitem__(self, key: str) -> int:
        return self.values.get(key, DEFAULTS.get(key, 0))


@dataclass
class _File:
    name: str
    header: dict[str, int] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    tiers: dict[int, _Tier] = field(default_factory=dict)
    remarks: list[Remark] = field(default_factory=list)

    def where(self, line: int, what: str) -> str:
        return place(self.name, line, what)

    def tier_where(self, tier: int, key: str) -> str:
        at = self.tiers[tier]
        return self.where(at.lines.get(key, at.line), key)


def parse_fat_tree(file: str | Path) -> tuple[NetworkData, list[Remark]]:
    """Read a fat tree.

    Parameters
    ----------
    file : str or Path

    Returns
    -------
    NetworkData
        "host0" ..., then "leaf0" ..., "spine0" ... and, with three tiers, "core0" ....
    list of Remark

    Raises
    ------
    SpecError
        Naming file and line.
    """
    content = _read(str(file))
    _check_complete(content)
    _check_fit(content)
    return _network(content), content.remarks


def _read(name: str) -> _File:
    content = _File(name)
    current: int | None = None
    for number, line in enumerate(read_text(name).splitlines(), start=1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        key = words[0].lower()
        if len(words) != 2:
            raise SpecError(content.where(number, words[0]), " ".join(words[1:]), "one number")
        if key == "tier":
            current = whole(words[1], where=content.where(number, "Tier"), high=2)
            if current in content.tiers:
                raise SpecError(content.where(number, "Tier"), current, "every tier once")
            content.tiers[current] = _Tier(number)
        else:
            _set(content, current, key, words, number)
    return content


def _set(content: _File, current: int | None, key: str, words: list[str], number: int) -> None:
    where = content.where(number, words[0])
    if key in QUEUE_KEYS:
        reason = "switches here share one buffer over all ports: set switch.buffer, or switch.lossy.limit"
        content.remarks.append(Remark(file=content.name, line=number, what=words[0], reason=reason))
        return
    if key in HEADER_KEYS:
        values, lines, low, high = content.header, content.lines, 1, MOST_HOSTS
    elif key in TIER_KEYS:
        if current is None:
            raise SpecError(where, words[1], 'a line "Tier 0" before what belongs to a tier')
        tier = content.tiers[current]
        values, lines, low = tier.values, tier.lines, TIER_KEYS[key]
        high = FASTEST_GBPS if key == "downlink_speed_gbps" else LARGEST // PS_PER_NS
        high = MOST_HOSTS if key.startswith("radix") else high
    else:
        known = ", ".join([*HEADER_KEYS, "tier", *TIER_KEYS, *QUEUE_KEYS])
        raise SpecError(where, words[0], f"one of {known}")
    if key in values:
        raise SpecError(where, words[1], f"every key once (it also stands on line {lines[key]})")
    values[key] = whole(words[1], where=where, low=low, high=high)
    lines[key] = number


def _check_complete(content: _File) -> None:
    last = len(read_text(content.name).splitlines()) or 1
    for key in HEADER_KEYS:
        if key not in content.header:
            raise SpecError(
                content.where(last, "header"), Said("the end of the file"), f"{key.capitalize()} before it"
            )
    tiers = content.header["tiers"]
    if tiers not in PREFIXES:
        raise SpecError(content.where(content.lines["tiers"], "Tiers"), tiers, "2 or 3")
    for tier in range(tiers):
        if tier not in content.tiers:
            raise SpecError(
                content.where(last, ""), Said("the end of the file"), f"a section Tier {tier} before it"
            )
    for tier in range(tiers):
        needed = ["downlink_speed_gbps", "radix_down", "downlink_latency_ns"]
        needed += ["radix_up"] if tier < tiers - 1 else []
        for key in needed:
            if key not in content.tiers[tier].values:
                raise SpecError(
                    content.tier_where(tier, f"Tier {tier}"), Said("nothing"), f"{key} in this section"
                )
    for tier in sorted(content.tiers):
        if tier >= tiers:
            raise SpecError(content.tier_where(tier, "Tier"), tier, f"tiers below Tiers ({tiers})")
    if "radix_up" in content.tiers[tiers - 1].values:
        where = content.tier_where(tiers - 1, "radix_up")
        raise SpecError(where, content.tiers[tiers - 1]["radix_up"], "no uplinks in the top tier")
    if content.tiers[0]["bundle"] != 1:
        raise SpecError(
            content.tier_where(0, "bundle"), content.tiers[0]["bundle"], "1: hosts have one cable"
        )


def _check_fit(content: _File) -> None:
    for where, value, allowed in _misfits(content):
        raise SpecError(where, value, allowed)


def _misfits(content: _File) -> Iterator[tuple[str, int, str]]:
    """What does not fit together, by the arithmetic of the module's text."""
    hosts, pod = content.header["nodes"], content.header["podsize"]
    tiers = [content.tiers[tier] for tier in range(content.header["tiers"])]
    if len(tiers) == 2 and pod != hosts:
        yield (
            content.where(content.lines["podsize"], "Podsize"),
            pod,
            f"all hosts ({hosts}): two tiers have one pod",
        )
    if hosts % pod:
        yield content.where(content.lines["podsize"], "Podsize"), pod, f"a divisor of Nodes ({hosts})"
    down = tiers[0]["radix_down"]
    if pod % down:
        yield content.tier_where(0, "radix_down"), down, f"a divisor of Podsize ({pod})"
    leaves, pods = pod // max(down, 1), hosts // pod
    spines = _switches_above(leaves * tiers[0]["radix_up"], tiers[1]["radix_down"])
    if spines is None:
        allowed = f"a divisor of the uplinks of a pod's ToRs ({leaves * tiers[0]['radix_up']})"
        yield content.tier_where(1, "radix_down"), tiers[1]["radix_down"], allowed
    elif spines * tiers[1]["bundle"] != tiers[0]["radix_up"]:
        allowed = f"the uplinks of a ToR: {spines} switches above, {tiers[1]['bundle']} cables to each"
        yield content.tier_where(0, "radix_up"), tiers[0]["radix_up"], allowed
    elif len(tiers) == 3:
        up, core = tiers[1]["radix_up"], tiers[2]
        per_core = pods * core["bundle"]
        cores = _switches_above(pods * spines * up, core["radix_down"])
        if cores is None or core["radix_down"] % per_core or up % core["bundle"]:
            uplinks = f"a divisor of the uplinks below ({pods * spines * up})"
            allowed = f"{uplinks} and a multiple of pods times Bundle ({per_core})"
            yield content.tier_where(2, "radix_down"), core["radix_down"], allowed
        elif core["radix_down"] // per_core > spines:
            yield content.tier_where(2, "radix_down"), core["radix_down"], f"at most {spines * per_core}"
    for number, (tier, above) in enumerate(itertools.pairwise(tiers)):
        ratio = Fraction(
            tier["radix_down"] * tier["downlink_speed_gbps"], tier["radix_up"] * above["downlink_speed_gbps"]
        )
        if tier["oversubscribed"] != ratio:
            allowed = f"the capacity below over that above by radices and speeds ({ratio}, as Oversubscribed)"
            yield content.tier_where(number, "oversubscribed"), tier["oversubscribed"], allowed


def _switches_above(uplinks: int, radix_down: int) -> int | None:
    return None if uplinks % radix_down else uplinks // radix_down


def _network(content: _File) -> NetworkData:
    hosts, pod = content.header["nodes"], content.header["podsize"]
    tiers = [content.tiers[tier] for tier in range(content.header["tiers"])]
    pods, down = hosts // pod, tiers[0]["radix_down"]
    leaves = hosts // down
    spines = leaves * tiers[0]["radix_up"] // tiers[1]["radix_down"]
    counts = [leaves, spines]
    cables = [_host_cables(hosts, down), _pod_cables(pods, leaves, spines, tiers[1]["bundle"])]
    if len(tiers) == 3:
        counts.append(spines * tiers[1]["radix_up"] // tiers[2]["radix_down"])
        cables.append(_core_cables(pods, counts, tiers[1]["radix_up"], tiers[2]["bundle"]))
    base = np.cumsum([0, hosts, *counts])
    latency_ps = [0, *(tier["switch_latency_ns"] * PS_PER_NS for tier in tiers)]
    delay_ps = [
        tier["downlink_latency_ns"] * PS_PER_NS + (latency_ps[number] + latency_ps[number + 1]) // 2
        for number, tier in enumerate(tiers)
    ]
    lengths = [len(a) for a, _ in cables]
    names = [f"host{number}" for number in range(hosts)]
    for prefix, count in zip(PREFIXES[len(tiers)], counts, strict=True):
        names += [f"{prefix}{number}" for number in range(count)]
    return NetworkData(
        names=tuple(names),
        n_hosts=hosts,
        tier=np.repeat(np.arange(len(tiers) + 1), [hosts, *counts]).astype(np.int64),
        link_a=np.concatenate([a + base[tier] for tier, (a, _) in enumerate(cables)]),
        link_b=np.concatenate([b + base[tier + 1] for tier, (_, b) in enumerate(cables)]),
        link_rate_bps=np.repeat([tier["downlink_speed_gbps"] * GBPS for tier in tiers], lengths).astype(
            np.int64
        ),
        link_delay_ps=np.repeat(delay_ps, lengths).astype(np.int64),
        link_loss=np.zeros(sum(lengths)),
    )


def _host_cables(hosts: int, radix_down: int) -> tuple[Int64Array, Int64Array]:
    host = np.arange(hosts, dtype=np.int64)
    return host, host // radix_down


def _pod_cables(pods: int, leaves: int, spines: int, bundle: int) -> tuple[Int64Array, Int64Array]:
    """Every ToR of a pod to every switch above it, `bundle` times."""
    pod, leaf, spine, _ = (
        axis.ravel() for axis in np.indices((pods, leaves // pods, spines // pods, bundle), dtype=np.int64)
    )
    return pod * (leaves // pods) + leaf, pod * (spines // pods) + spine


def _core_cables(pods: int, counts: list[int], radix_up: int, bundle: int) -> tuple[Int64Array, Int64Array]:
    """The uplinks of a pod in order, dealt out to the cores one after the other."""
    spines_of_pod = counts[1] // pods
    pod, spine, up, _ = (
        axis.ravel() for axis in np.indices((pods, spines_of_pod, radix_up // bundle, bundle), dtype=np.int64)
    )
    return pod * spines_of_pod + spine, (spine * (radix_up // bundle) + up) % counts[2]
