"""Settings of the HPCC simulator that specs cannot say, with the reasons."""

from __future__ import annotations

from collections.abc import Iterator

from fabric.formats import Remark
from fabric.formats.hpcc_config import Settings

__all__ = ["left_out", "remark_on"]

_OF_CONGESTION_CONTROLS = (
    "ALPHA_RESUME_INTERVAL RATE_DECREASE_INTERVAL CLAMP_TARGET_RATE RP_TIMER EWMA_GAIN FAST_RECOVERY_TIMES "
    "RATE_AI RATE_HAI MIN_RATE DCTCP_RATE_AI VAR_WIN FAST_REACT U_TARGET MI_THRESH INT_MULTI MULTI_RATE "
    "SAMPLE_FEEDBACK PINT_LOG_BASE PINT_PROB"
)

_ALWAYS_LEFT_OUT = {
    "TOPOLOGY_FILE FLOW_FILE": "used only to find files that are not given",
    "TRACE_FILE TRACE_OUTPUT_FILE": "frames are recorded with record.packets",
    "QLEN_MON_FILE QLEN_MON_START QLEN_MON_END": "queues are recorded with record.queues",
    "FCT_OUTPUT_FILE PFC_OUTPUT_FILE": "written from the saved result: fabric convert RESULT --out fct.txt",
    "USE_DYNAMIC_PFC_THRESHOLD": "thresholds are dynamic there whatever it says",
    "L2_CHUNK_SIZE": "an ACK at each multiple of it, or go-back-0 in such pieces; neither is modelled",
}
"""Reasons by the keys that no spec can say."""

_LEFT_OUT_UNLESS = {
    "ENABLE_TRACE": ("0", "frames are recorded with record.packets"),
    "L2_BACK_TO_ZERO": ("0", "go-back-0 is not modelled; go-back-N holds"),
    "RATE_BOUND": ("1", "senders here are always paced by their rate"),
    "GLOBAL_T": ("1", "one window for all pairs of hosts holds: that of the longest"),
}
"""The value that is what holds here, and why another one is left out."""


def remark_on(settings: Settings, keys: str, reason: str) -> Iterator[Remark]:
    """One remark for the keys of a blank-separated list that are in the file."""
    present = [key for key in keys.split() if settings.has(key)]
    if present:
        line = min(settings.lines[key] for key in present)
        yield Remark(file=settings.file, line=line, what=", ".join(present), reason=reason)


def left_out(settings: Settings, used: frozenset[str]) -> Iterator[Remark]:
    """What a configuration sets that has no meaning here, given the keys that its congestion control uses."""
    unused = " ".join(key for key in _OF_CONGESTION_CONTROLS.split() if key not in used)
    yield from remark_on(settings, unused, "parameters of congestion controls that CC_MODE does not choose")
    for keys, reason in _ALWAYS_LEFT_OUT.items():
        yield from remark_on(settings, keys, reason)
    for key, (same, reason) in _LEFT_OUT_UNLESS.items():
        if settings.has(key) and settings.words[key] != (same,):
            yield from remark_on(settings, key, reason)
    if settings.has("LINK_DOWN") and settings.words["LINK_DOWN"][0] != "0":
        yield from remark_on(settings, "LINK_DOWN", "links that fail are not imported")
    if settings.unknown:
        yield from remark_on(settings, " ".join(settings.unknown), "not a key of the HPCC simulator")
