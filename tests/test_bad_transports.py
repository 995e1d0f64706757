"""Transports and paths with one mistake each: the error names the path, the value and the remedy."""

from __future__ import annotations

import pytest
from support_bad import check_listed, check_one_error, plus

BAD = {
    # Paths and reliability
    "unknown choice": (
        plus('[routing]\nchoice = "spray"'),
        "routing.choice",
        "'spray'",
        '"spray_round_robin"',
    ),
    "misspelt choice": (
        plus('[routing]\nchoice = "adaptve"'),
        "routing.choice",
        "'adaptve'",
        'did you mean "adaptive"?',
    ),
    "no gap between flowlets": (plus("[routing]\nflowlet_gap = 0"), "routing.flowlet_gap", "0", "above 0"),
    "lifetime 0": (plus("[routing]\nttl = 0"), "routing.ttl", "0", "from 1 to 127"),
    "lifetime that is too long": (plus("[routing]\nttl = 128"), "routing.ttl", "128", "from 1 to 127"),
    "a pin of nothing": (
        plus('[[routing.pins]]\nat = "leaf0"\nnext = "spine0"'),
        "routing.pins[0].destination",
        "None",
        "or flow",
    ),
    "a pin of two things": (
        plus('[[routing.pins]]\nat = "leaf0"\nnext = "spine0"\ndestination = "host4"\nflow = "a"'),
        "routing.pins[0].flow",
        "'a'",
        "not both",
    ),
    "a pin of a source alone": (
        plus('[[routing.pins]]\nat = "leaf0"\nnext = "spine0"\nflow = "a"\nsource = "host1"'),
        "routing.pins[0].source",
        "'host1'",
        "no source without destination",
    ),
    "a negative cable": (
        plus('[[routing.pins]]\nat = "leaf0"\nnext = "spine0"\nflow = "a"\ncable = -1'),
        "routing.pins[0].cable",
        "-1",
        "0 or more",
    ),
    "HPCC with selective repeat": (
        plus('[transport]\ncongestion = {kind = "hpcc"}\nreliability = {kind = "selective_repeat"}'),
        "transport.reliability",
        "selective_repeat",
        "hpcc and timely need go-back-N",
    ),
    "TIMELY with selective repeat": (
        plus('[transport]\ncongestion = {kind = "timely"}\nreliability = {kind = "selective_repeat"}'),
        "transport.reliability",
        "selective_repeat",
        "hpcc and timely need go-back-N",
    ),
    "unknown reliability": (
        plus('[transport.reliability]\nkind = "selective_repat"'),
        "transport.reliability.kind",
        "'selective_repat'",
        'did you mean "selective_repeat"?',
    ),
    "key of the other reliability": (
        plus("[transport.reliability]\nreorder = 4"),
        "transport.reliability.reorder",
        "'reorder'",
        "kind, rto, nack",
    ),
    "distance 0": (
        plus('[transport.reliability]\nkind = "selective_repeat"\nreorder = 0'),
        "transport.reliability.reorder",
        "0",
        "an integer from 1 to ",
    ),
    "no paths": (plus("[transport.paths]\ncount = 0"), "transport.paths.count", "0", "an integer from 1 to "),
    "ACK delay 0": (plus("[transport]\nack_delay = 0"), "transport.ack_delay", "0", "above 0"),
    # Transport
    "unknown data class": (
        plus('[transport]\ndata_class = "dada"'),
        "transport.data_class",
        "'dada'",
        'did you mean "data"?',
    ),
    "no control class": (
        plus('[[switch.classes]]\nname = "data"'),
        "transport.control_class",
        "'control'",
        'traffic class: "data"',
    ),
    "payload 0": (plus("[transport]\npayload = 0"), "transport.payload", "0B", "above 0"),
    "frame too large": (plus('[transport]\npayload = "64KiB"'), "transport.payload", "64KiB", "65473"),
    "frame and gap too large": (
        plus("[transport]\npayload = 65470"),
        "transport.payload",
        "65470B",
        "at most 65453 bytes",
    ),
    "acknowledged never": (
        plus("[transport]\nack_every = 0"),
        "transport.ack_every",
        "0",
        "an integer from 1 to ",
    ),
    "window below the ACKs": (
        plus('[transport]\nack_every = 9\ncongestion = {kind = "window", window = "16KB"}'),
        "transport.ack_every",
        "9",
        "frames of a window (4)",
    ),
    "window 0": (
        plus('[transport]\ncongestion = {kind = "window", window = 0}'),
        "transport.congestion.window",
        "0B",
        "above 0",
    ),
    "unknown congestion control": (
        plus('[transport]\ncongestion = {kind = "dcqnc"}'),
        "transport.congestion.kind",
        "'dcqnc'",
        'did you mean "dcqcn"?',
    ),
    "unknown preset": (
        plus('[transport]\ncongestion = {kind = "dcqcn", preset = "paper"}'),
        "transport.congestion.preset",
        "'paper'",
        '"paper_2015"',
    ),
    "gain above 1": (
        plus('[transport]\ncongestion = {kind = "dcqcn", g = 256}'),
        "transport.congestion.g",
        "256.0",
        "at most 1",
    ),
    "byte counter of the vendor form": (
        plus('[transport]\ncongestion = {kind = "dcqcn", byte_counter = "10MB"}'),
        "transport.congestion.byte_counter",
        "10MB",
        '0 with form = "vendor"',
    ),
    "headroom twice": (
        plus('[switch.pfc]\nheadroom = "100KB"\nheadroom_delays = 3'),
        "switch.pfc.headroom_delays",
        "3.0",
        "either headroom",
    ),
    "alpha scaled without alpha": (
        plus('[switch.pfc]\nxoff = "100KB"\nalpha_scale_from = "100Gbps"'),
        "switch.pfc.alpha_scale_from",
        "100Gbps",
        "no alpha_scale_from with xoff",
    ),
    "no PFC frame": (plus("[switch.pfc]\nframe = 0"), "switch.pfc.frame", "0B", "from 1 to 1500"),
    "smallest frame 0": (
        plus("[transport]\nsmallest_frame = 0"),
        "transport.smallest_frame",
        "0B",
        "from 1 to",
    ),
    "timing of ns-3 with a late PAUSE": (
        plus('[run]\ntiming = "ns3"\n[nic]\npfc_response = "1us"'),
        "run.timing",
        "ns3",
        "pfc_response 0",
    ),
    "unknown timing": (plus('[run]\ntiming = "ns-3"'), "run.timing", "ns-3", "exact"),
    "target use above 1": (
        plus('[transport]\ncongestion = {kind = "hpcc", eta = 1.5}'),
        "transport.congestion.eta",
        "1.5",
        "at most 1",
    ),
    "base round trip 0": (
        plus('[transport]\ncongestion = {kind = "hpcc", base_rtt = 0}'),
        "transport.congestion.base_rtt",
        "0ps",
        "a duration above 0",
    ),
    "a window for HPCC": (
        plus('[transport]\ncongestion = {kind = "hpcc", window = "1MB"}'),
        "transport.congestion.window",
        "window",
        "base_rtt",
    ),
    "telemetry beyond the largest frame": (
        plus('[transport]\npayload = 65453\ncongestion = {kind = "hpcc", telemetry_header = 42}'),
        "transport.payload",
        "65453",
        "at most 65431 bytes",
    ),
    "DCTCP's gain 0": (
        plus('[transport]\ncongestion = {kind = "dctcp", g = 0}'),
        "transport.congestion.g",
        "0.0",
        "above 0",
    ),
    "a misspelt field of DCTCP": (
        plus('[transport]\ncongestion = {kind = "dctcp", variable_windw = true}'),
        "transport.congestion.variable_windw",
        "variable_windw",
        'did you mean "variable_window"?',
    ),
    "TIMELY's thresholds reversed": (
        plus('[transport]\ncongestion = {kind = "timely", rtt_low = "600us"}'),
        "transport.congestion.rtt_high",
        "500us",
        "at least rtt_low (600us)",
    ),
    "TIMELY's smallest rate 0": (
        plus('[transport]\ncongestion = {kind = "timely", min_rate = 0}'),
        "transport.congestion.min_rate",
        "0bps",
        "a rate above 0",
    ),
    "period 0": (
        plus('[transport]\ncongestion = {kind = "dcqcn", alpha_period = 0}'),
        "transport.congestion.alpha_period",
        "0ps",
        "at least 1ns",
    ),
    "period of a picosecond": (
        plus('[transport]\ncongestion = {kind = "dcqcn", increase_period = "1ps"}'),
        "transport.congestion.increase_period",
        "1ps",
        "at least 1ns",
    ),
    "headroom beyond any buffer": (
        plus("[switch.pfc]\nheadroom = 4611686018427387904"),
        "switch.pfc.headroom",
        "4194304TiB",
        "below 1TB",
    ),
    "response of days": (plus('[nic]\npfc_response = "9e5s"'), "nic.pfc_response", "900000s", "at most 1s"),
    "transport of one entry": (
        plus('transport = {control_class = "acks"}'),
        "traffic[0].transport.control_class",
        "'acks'",
        '"control"',
    ),
}


@pytest.mark.parametrize(("text", "path", "value", "remedy"), BAD.values(), ids=BAD)
def test_one_clear_error(tmp_path, text, path, value, remedy):
    check_one_error(tmp_path, text, path, value, remedy)


@pytest.mark.parametrize("text", [text for text, *_ in BAD.values()], ids=BAD)
def test_listed_too(text):
    check_listed(text)
