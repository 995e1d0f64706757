"""Scenario files with one mistake each: the error names the path, the value and the remedy."""

from __future__ import annotations

import contextlib
import tomllib

import pytest

from fabric.errors import SpecError
from fabric.scenario import dump_scenario, load_scenario, scenario_errors
from fabric.spec import Scenario
from fabric.spec.decode import convert

TOPOLOGY = """
[topology]
kind = "leaf_spine"
leaves = 2
spines = 2
hosts_per_leaf = 4
"""
TRAFFIC = """
[[traffic]]
kind = "incast"
senders = 3
size = "1MB"
"""
GOOD = TOPOLOGY + TRAFFIC


def topology(text):
    return f"[topology]\n{text}\n{TRAFFIC}"


def traffic(*entries):
    return TOPOLOGY + "".join(f"\n[[traffic]]\n{entry}\n" for entry in entries)


def flow(**changes):
    fields = {"source": 0, "destination": 1, "size": '"1MB"'} | changes
    return "{" + ", ".join(f"{name} = {value}" for name, value in fields.items()) + "}"


def flows(*elements):
    return traffic(f'kind = "flows"\nflows = [{", ".join(elements)}]')


def plus(text):
    return GOOD + text


BAD = {
    # What the file is made of
    "unknown section": (plus("[swich]\nbuffer = 1"), "swich", "'swich'", 'did you mean "switch"?'),
    "unknown key": (plus("[switch.ecn]\nkmim = 1"), "switch.ecn.kmim", "'kmim'", 'did you mean "kmin"?'),
    "unknown key in a list": (
        plus('[[switch.classes]]\nname = "data"\nprio = 1'),
        "switch.classes[0].prio",
        "'prio'",
        "name, priority, weight, reserved, ecn, pfc, lossy",
    ),
    "unknown key in a kind": (
        topology('kind = "fat_tree"\nk = 4\nspines = 2'),
        "topology.spines",
        "'spines'",
        "kind, k, link, ports_per_host, overrides",
    ),
    "no topology": (TRAFFIC, "topology", "(missing)", '"leaf_spine"'),
    "no traffic": (TOPOLOGY, "traffic", "(missing)", '"incast"'),
    "empty traffic": ("traffic = []\n" + TOPOLOGY, "traffic", "()", "at least one entry"),
    "missing field": (topology('kind = "fat_tree"'), "topology.k", "(missing)", "an integer"),
    "missing kind": (topology("k = 4"), "topology.kind", "(missing)", '"fat_tree"'),
    "unknown kind": (
        topology('kind = "leafspine"'),
        "topology.kind",
        "'leafspine'",
        'did you mean "leaf_spine"?',
    ),
    "kind is a number": (topology("kind = 3"), "topology.kind", "3", '"clos3"'),
    "unknown kind of traffic": (
        traffic('kind = "all_reduce"'),
        "traffic[0].kind",
        "'all_reduce'",
        '"all_to_all"',
    ),
    "one table for a list": (
        TOPOLOGY + '[traffic]\nkind = "incast"\nsenders = 3\nsize = 1',
        "traffic",
        "'senders': 3",
        "[[traffic]]",
    ),
    "value for a table": ("switch = 3\n" + GOOD, "switch", "3", "a table with the keys buffer, latency"),
    "string for an integer": (
        topology('kind = "fat_tree"\nk = "four"'),
        "topology.k",
        "'four'",
        "an integer",
    ),
    "float for an integer": (plus("[run]\nseed = 1.5"), "run.seed", "1.5", "an integer"),
    "truth value for a number": (plus("[switch.ecn]\npmax = true"), "switch.ecn.pmax", "True", "a number"),
    "number for a truth value": (
        plus("[switch]\ncut_through = 1"),
        "switch.cut_through",
        "1",
        "true or false",
    ),
    "number for a string": ("name = 3\n" + GOOD, "name", "3", "a string"),
    "list of the wrong type": (
        plus("[record]\nrates = [1]"),
        "record.rates[0]",
        "1",
        "a string",
    ),
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
    # Quantities
    "bits for bytes": (plus('[switch]\nbuffer = "64Mb"'), "switch.buffer", "'64Mb'", '"MB"'),
    "rate without a time": (
        plus('[topology.host_link]\nrate = "400Gb"'),
        "topology.host_link.rate",
        "'400Gb'",
        '"Gb/s"',
    ),
    "unit in lower case": (
        plus('[topology.host_link]\nrate = "400gbps"'),
        "topology.host_link.rate",
        "'400gbps'",
        "'Gbps'",
    ),
    "unit of another quantity": (plus('[nic]\nlatency = "9KB"'), "nic.latency", "'9KB'", "ps, ns, us, ms, s"),
    "fraction of a byte": (
        plus('[transport]\npayload = "0.5B"'),
        "transport.payload",
        "'0.5B'",
        "whole number",
    ),
    "fraction of a picosecond": (plus("[run]\nuntil = 0.5"), "run.until", "0.5", "whole number"),
    "negative duration": (plus('[switch]\nlatency = "-1us"'), "switch.latency", "'-1us'", "not negative"),
    "negative size": (plus("[switch]\nbuffer = -1"), "switch.buffer", "-1", "not negative"),
    "too large": (plus('[switch]\nbuffer = "9e9TB"'), "switch.buffer", "'9e9TB'", "at most"),
    # Links
    "rate 0": (plus("[topology.host_link]\nrate = 0"), "topology.host_link.rate", "0bps", "at least 1Kbps"),
    "loss 1": (plus("[topology.fabric_link]\nloss = 1"), "topology.fabric_link.loss", "1.0", "below 1"),
    "loss nan": (plus("[topology.fabric_link]\nloss = nan"), "topology.fabric_link.loss", "nan", "below 1"),
    "too many bit errors": (
        plus("[topology.host_link]\nbit_error_rate = 1e-3"),
        "topology.host_link.bit_error_rate",
        "0.001",
        "1e-6",
    ),
    "no delay at all": (
        plus('[switch]\nlatency = 0\n[topology.fabric_link]\ndelay = "999ps"'),
        "topology.fabric_link.delay",
        "999ps",
        "at least 1ns with switch.latency",
    ),
    "no delay to a host": (
        plus("[topology.host_link]\ndelay = 0"),
        "topology.host_link.delay",
        "0ps",
        "at least 1ns with nic.latency",
    ),
    "override without ends": (
        plus('[[topology.overrides]]\nmatch = "leaf0"\nrate = 5000'),
        "topology.overrides[0].match",
        "'leaf0'",
        '"leaf0-spine3"',
    ),
    "override of nothing": (
        plus('[[topology.overrides]]\nmatch = "leaf0-spine0"'),
        "topology.overrides[0].match",
        "'leaf0-spine0'",
        "at least one of rate",
    ),
    "second override": (
        plus("".join(f'[[topology.overrides]]\nmatch = "a-b"\nloss = {loss}\n' for loss in (0, 2))),
        "topology.overrides[1].loss",
        "2.0",
        "below 1",
    ),
    # Topologies
    "odd fat tree": (topology('kind = "fat_tree"\nk = 5'), "topology.k", "5", "an even integer"),
    "no leaves": (
        topology('kind = "leaf_spine"\nleaves = 0\nspines = 2\nhosts_per_leaf = 2'),
        "topology.leaves",
        "0",
        "from 1 to",
    ),
    "cores that do not divide": (
        topology(
            'kind = "clos3"\npods = 2\nleaves_per_pod = 2\nspines_per_pod = 2\ncores = 3\nhosts_per_leaf = 2'
        ),
        "topology.cores",
        "3",
        "a multiple of spines_per_pod (2)",
    ),
    "leaves that do not divide": (
        topology('kind = "leaf_spine"\nleaves = 3\nspines = 2\nhosts_per_leaf = 2\nports_per_host = 2'),
        "topology.ports_per_host",
        "2",
        "a divisor of leaves (3)",
    ),
    "leaves of a pod that do not divide": (
        topology(
            'kind = "clos3"\npods = 2\nleaves_per_pod = 3\nspines_per_pod = 2\ncores = 2\n'
            "hosts_per_leaf = 2\nports_per_host = 2"
        ),
        "topology.ports_per_host",
        "2",
        "a divisor of leaves_per_pod (3)",
    ),
    "ports that do not divide a fat tree": (
        topology('kind = "fat_tree"\nk = 6\nports_per_host = 2'),
        "topology.ports_per_host",
        "2",
        "a divisor of k/2 (3)",
    ),
    "oversubscription 0": (
        TOPOLOGY + "oversubscription = 0" + TRAFFIC,
        "topology.oversubscription",
        "0.0",
        "above 0",
    ),
    "oversubscription and a rate": (
        TOPOLOGY + 'oversubscription = 2\nfabric_link = {rate = "100Gbps"}' + TRAFFIC,
        "topology.fabric_link.rate",
        "100Gbps",
        "no rate beside oversubscription = 2",
    ),
    "one host": (topology('kind = "single_switch"\nhosts = 1'), "topology.hosts", "1", "at least 2 hosts"),
    # Switch
    "kmin above kmax": (
        plus('[switch.ecn]\nkmin = "4MB"\nkmax = "1MB"'),
        "switch.ecn.kmin",
        "4MB",
        "at most kmax (1MB)",
    ),
    "pmax 0": (plus("[switch.ecn]\npmax = 0"), "switch.ecn.pmax", "0.0", "above 0 and at most 1"),
    "pmax above 1": (plus("[switch.ecn]\npmax = 20"), "switch.ecn.pmax", "20.0", "at most 1"),
    "unknown mark": (
        plus('[switch.ecn]\nmark = "dequeued"'),
        "switch.ecn.mark",
        "'dequeued'",
        'did you mean "dequeue"?',
    ),
    "both PFC thresholds": (
        plus('[switch.pfc]\nalpha = 0.5\nxoff = "1MB"'),
        "switch.pfc.alpha",
        "0.5",
        "either alpha (dynamic) or xoff",
    ),
    "xon above xoff": (
        plus('[switch.pfc]\nxoff = "1MB"\nxon = "2MB"'),
        "switch.pfc.xon",
        "2MB",
        "at most xoff (1MB)",
    ),
    "xon without xoff": (plus("[switch.pfc]\nxon = 1"), "switch.pfc.xon", "1B", "no xon without xoff"),
    "alpha 0": (plus("[switch.pfc]\nalpha = 0"), "switch.pfc.alpha", "0.0", "2^-16"),
    "odd headroom": (plus('[switch.pfc]\nheadroom = "plenty"'), "switch.pfc.headroom", "'plenty'", '"auto"'),
    "headroom of a wrong type": (plus("[switch.pfc]\nheadroom = []"), "switch.pfc.headroom", "[]", '"auto"'),
    "buffer 0": (plus("[switch]\nbuffer = 0"), "switch.buffer", "0B", "above 0"),
    "nine classes": (
        plus("".join(f'[[switch.classes]]\nname = "c{index}"\n' for index in range(9))),
        "switch.classes",
        "'c8'",
        "1 to 8 classes",
    ),
    "class twice": (
        plus('[[switch.classes]]\nname = "data"\n' * 2),
        "switch.classes[1].name",
        "'data'",
        "not used by classes[0]",
    ),
    "priority 8": (
        plus('[[switch.classes]]\nname = "data"\npriority = 8'),
        "switch.classes[0].priority",
        "8",
        "from 0 to 7",
    ),
    "weight 0": (
        plus('[[switch.classes]]\nname = "data"\nweight = 0'),
        "switch.classes[0].weight",
        "0",
        "from 1 to 255",
    ),
    "drop threshold of a lossless class": (
        plus('[[switch.classes]]\nname = "data"\nlossy = {limit = "1MB"}'),
        "switch.classes[0].lossy",
        "Lossy(",
        "pfc = false",
    ),
    "reserve above the buffer": (
        plus('[[switch.classes]]\nname = "data"\nreserved = "65MB"'),
        "switch.classes[0].reserved",
        "65MB",
        "below the buffer (64MB)",
    ),
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
    # Traffic
    "size 0": (flows(flow(size=0)), "traffic[0].flows[0].size", "0B", "above 0"),
    "flow to itself": (
        flows(flow(destination=0)),
        "traffic[0].flows[0].destination",
        "0",
        "other than the source",
    ),
    "flow to itself by name": (
        flows(flow(source='"host1"')),
        "traffic[0].flows[0].destination",
        "1",
        "other than the source",
    ),
    "unknown host": (
        flows(flow(), flow(source='"leaf0"')),
        "traffic[0].flows[1].source",
        "'leaf0'",
        '"host0" to "host7"',
    ),
    "host number too large": (flows(flow(destination=8)), "traffic[0].flows[0].destination", "8", "0 to 7"),
    "negative host": (flows(flow(source=-1)), "traffic[0].flows[0].source", "-1", "name or number of a host"),
    "flow without an end": (
        flows("{source = 1, size = 1}"),
        "traffic[0].flows[0].destination",
        "(missing)",
        "a string",
    ),
    "no flows": (traffic('kind = "flows"'), "traffic[0].flows", "()", "or a file"),
    "unknown predecessor": (
        flows(flow(name='"first"'), flow(after='["frist"]')),
        "traffic[0].flows[1].after[0]",
        "'frist'",
        'did you mean "first"?',
    ),
    "cycle of flows": (
        flows(flow(name='"a"', after='["b"]'), flow(name='"b"', after='["a"]')),
        "traffic[0].flows[0].after",
        "('b',)",
        '"a" after "b" after "a"',
    ),
    "flow after itself": (
        flows(flow(name='"a"', after='["a"]')),
        "traffic[0].flows[0].after",
        "'a'",
        "other than this one",
    ),
    "flow name twice": (
        flows(flow(name='"a"'), flow(name='"a"')),
        "traffic[0].flows[1].name",
        "'a'",
        "not used by traffic[0].flows[0]",
    ),
    "too many frames": (
        flows(flow(size='"100TB"')),
        "traffic[0].flows[0].size",
        "100TB",
        "at most 2^32-1 frames",
    ),
    "entry name twice": (
        traffic(*['kind = "permutation"\nsize = 1\nname = "twice"'] * 2),
        "traffic[1].name",
        "'twice'",
        "not used by traffic[0]",
    ),
    "unknown class of an entry": (
        plus('traffic_class = "bulk"'),
        "traffic[0].traffic_class",
        "'bulk'",
        '"data", "control"',
    ),
    "fan-in above the hosts": (
        traffic('kind = "incast"\nsenders = 8\nsize = 1'),
        "traffic[0].senders",
        "8",
        "at most 7",
    ),
    "no senders": (
        traffic('kind = "incast"\nsenders = 0\nsize = 1'),
        "traffic[0].senders",
        "0",
        "an integer from 1 to ",
    ),
    "receivers above the hosts": (plus("receivers = 9"), "traffic[0].receivers", "9", "number of hosts (8)"),
    "unknown receiver": (plus('receivers = ["host8"]'), "traffic[0].receivers[0]", "'host8'", '"host7"'),
    "receiver twice": (plus('receivers = ["host1", "host1"]'), "traffic[0].receivers", "'host1'", "once"),
    "receivers as a string": (plus('receivers = "host1"'), "traffic[0].receivers", "'host1'", "a list"),
    "victim size without victims": (
        plus("victim_size = 5"),
        "traffic[0].victim_size",
        "5B",
        "without victims",
    ),
    "load 0": (
        traffic('kind = "poisson"\nload = 0\ndistribution = "websearch"\nflows = 1'),
        "traffic[0].load",
        "0.0",
        "above 0",
    ),
    "load in percent": (
        traffic('kind = "poisson"\nload = 80\ndistribution = "websearch"\nflows = 1'),
        "traffic[0].load",
        "80.0",
        "at most 2",
    ),
    "unknown distribution": (
        traffic('kind = "poisson"\nload = 0.8\ndistribution = "web_search"\nflows = 1'),
        "traffic[0].distribution",
        "'web_search'",
        'did you mean "websearch"?',
    ),
    "neither duration nor flows": (
        traffic('kind = "poisson"\nload = 0.8\ndistribution = "websearch"'),
        "traffic[0].duration",
        "None",
        "or flows",
    ),
    "duration and flows": (
        traffic('kind = "poisson"\nload = 0.8\ndistribution = "websearch"\nflows = 1\nduration = "1ms"'),
        "traffic[0].flows",
        "1",
        "not both",
    ),
    # Run and record
    "negative seed": (plus("[run]\nseed = -1"), "run.seed", "-1", "from 0 to 2^63-1"),
    "until 0": (plus("[run]\nuntil = 0"), "run.until", "0ps", "above 0"),
    "queues never": (plus("[record.queues]"), "record.queues.interval", "None", "delta: a size"),
    "queues twice": (
        plus('[record.queues]\ninterval = "1us"\ndelta = 1'),
        "record.queues.delta",
        "1B",
        "not both",
    ),
    "throughput without interval": (
        plus('[record.throughput]\nports = ["*"]'),
        "record.throughput.interval",
        "(missing)",
        "a duration",
    ),
    "packets of nothing": (plus("[record.packets]"), "record.packets.ports", "()", "or of flows"),
    "empty pattern": (plus('[record]\nrates = ["*", ""]'), "record.rates[1]", "''", "a pattern"),
}


def test_the_good_scenario_is_good():
    assert scenario_errors(GOOD) == []
    assert len(load_scenario(GOOD).traffic) == 1


@pytest.mark.parametrize(("text", "path", "value", "remedy"), BAD.values(), ids=BAD)
def test_one_clear_error(tmp_path, text, path, value, remedy):
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(SpecError) as caught:
        load_scenario(file)
    message = str(caught.value)
    assert caught.value.path == path
    assert message.startswith(f"{path}: ")
    assert value in message.partition(" is not allowed; expected ")[0]
    assert remedy in message.partition(" is not allowed; expected ")[2]
    assert "\n" not in message
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("text", [text for text, *_ in BAD.values()], ids=BAD)
def test_listed_too(text):
    with pytest.raises(SpecError) as caught:
        load_scenario(text)
    assert str(caught.value) in [str(error) for error in scenario_errors(text)]


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("name = \n" + GOOD, "line 1, column 8", ["'name ='", "Invalid value"]),
        (GOOD + "\n[switch\n", "line 13, column 8", ["[switch"]),
        (GOOD + '\nname = "open', "line 13, column 13", ["Unterminated string"]),
        ("name = 'a'\nname = 'b'\n" + GOOD, "line 2, column 11", ["name = 'b'", "overwrite"]),
        (GOOD + "[switch]\nbuffer = 64 MB\n", "line 13, column 13", ["buffer = 64 MB"]),
        ("=", "line 1, column 1", ["Invalid"]),
    ],
)
def test_toml_mistakes_name_file_line_and_column(tmp_path, text, place, words):
    file = tmp_path / "broken.toml"
    file.write_text(text)
    with pytest.raises(SpecError) as caught:
        load_scenario(file)
    assert f"{file}, {place}: " in str(caught.value)
    assert "TOML" in str(caught.value)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        f"name = {'[' * 3000}{']' * 3000}\n" + GOOD,
        f"{'.'.join(['a'] * 3000)} = 1\n" + GOOD,
        GOOD + "[switch]\necn = " + "{a = " * 3000 + "1" + "}" * 3000,
    ],
)
def test_documents_nested_too_deeply(tmp_path, text):
    file = tmp_path / "deep.toml"
    file.write_text(text)
    for source, path in ((file, str(file)), (text, "scenario")):
        with pytest.raises(SpecError, match="nested too deeply") as caught:
            load_scenario(source)
        assert caught.value.path == path
        assert [str(each) for each in scenario_errors(source)] == [str(caught.value)]
    with pytest.raises(SpecError, match="nested too deeply") as caught:
        load_scenario(GOOD, overrides=[f"name={'[' * 3000}"])
    assert caught.value.path == "--set"


def test_files_that_cannot_be_read(tmp_path):
    missing = tmp_path / "missing.toml"
    with pytest.raises(SpecError, match=r"missing\.toml: \(missing\) .* an existing scenario file"):
        load_scenario(missing)
    with pytest.raises(SpecError, match="missing"):
        load_scenario(str(missing))
    with pytest.raises(SpecError, match="Is a directory"):
        load_scenario(tmp_path)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"name = '\xff'")
    with pytest.raises(SpecError, match=r"b'\\xff' .* UTF-8"):
        load_scenario(binary)


@pytest.mark.parametrize(
    ("text", "path", "name"),
    [
        (topology('kind = "graph"\nfile = "net.json"'), "topology.file", "net.json"),
        (traffic('kind = "flows"\nfile = "flows.csv"'), "traffic[0].file", "flows.csv"),
        (
            traffic('kind = "poisson"\nload = 0.5\ndistribution = "my.csv"\nflows = 1'),
            "traffic[0].distribution",
            "my.csv",
        ),
    ],
)
def test_files_that_a_scenario_names(tmp_path, text, path, name):
    file = tmp_path / "names.toml"
    file.write_text(text)
    with pytest.raises(SpecError) as caught:
        load_scenario(file)
    assert caught.value.path == path
    assert repr(name) in str(caught.value)
    assert str(tmp_path / name) in str(caught.value)


@pytest.mark.parametrize(
    ("override", "path", "words"),
    [
        ("switch.ecn.kmin", "--set", ["path and a value"]),
        ("=3", "--set", ["path and a value"]),
        ("switch..ecn=3", "--set", ["path and a value"]),
        ("switch.ecn.kmim=3", "switch.ecn.kmim", ["'kmim'", 'did you mean "kmin"?']),
        ("swich.ecn.kmin=3", "swich", ['did you mean "switch"?']),
        ("traffic[1].size=3", "traffic[1]", ["an index from 0 to 0"]),
        ("traffic.size=3", "traffic", ["a table, to set size"]),
        ("topology[0]=3", "topology", ["a list, to set its element 0"]),
        ("topology.overrides[0].rate=3", "topology.overrides[0]", ["the list is empty"]),
        ("name.length=3", "name", ["a string"]),
        ("switch.ecn.kmin=9MB", "switch.ecn.kmin", ["9MB", "at most kmax"]),
        ("run.seed=two", "run.seed", ["'two'", "an integer"]),
    ],
)
def test_bad_overrides(override, path, words):
    with pytest.raises(SpecError) as caught:
        load_scenario(GOOD, overrides=[override])
    assert caught.value.path == path
    for word in words:
        assert word in str(caught.value)


EVERYTHING = plus(
    """
[switch]
ecn = {kmin = 1, kmax = 2, pmax = 0.5, mark = "enqueue", scale_from = "1Gbps"}
pfc = {xoff = "1MB", xon = 1, headroom = "auto"}
classes = [{name = "data", weight = 2, ecn = false}, {name = "control", pfc = {alpha = 1}, reserved = 1}]
[transport]
payload = 1000
reliability = {rto = "1ms", nack = false}
paths = {spread = "random", count = 8}
ack_delay = "1us"
congestion = {kind = "dcqcn", preset = "hpcc", ai = "1Mbps", window = 5000}
[[traffic]]
kind = "flows"
flows = [
  {source = 0, destination = "host1", size = 5, name = "a"},
  {source = 1, destination = 2, size = 5, after = ["a"]},
]
[[traffic]]
kind = "poisson"
load = 0.5
distribution = "websearch"
duration = "1ms"
[[topology.overrides]]
match = "leaf0-spine0"
rate = "1Gbps"
[routing]
choice = "flowlet"
flowlet_gap = "5us"
ttl = 9
pins = [{at = "leaf0", next = "spine1", destination = "host5", source = "host0", cable = 0}]
[run]
seed = 1
until = "1ms"
[record]
queues = {ports = ["*"], interval = "1us"}
rates = ["*"]
drops = true
"""
)
JUNK = [
    *(True, -1, 10**30, -0.5, float("nan"), float("inf")),
    *("", "junk", "1e99GB", "\ud800"),
    *([], [[]], [1, "a"], {}, {"kind": 1}),
]


def places(value, steps=()):
    """Every place in plain data, as the steps to it."""
    if steps:
        yield steps
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, each in items:
        yield from places(each, (*steps, step))


PLACES = {".".join(map(str, steps)): steps for steps in places(tomllib.loads(EVERYTHING))}


@pytest.mark.parametrize("steps", PLACES.values(), ids=PLACES)
def test_junk_anywhere_is_an_error_or_fine(steps):
    for junk in JUNK:
        document = tomllib.loads(EVERYTHING)
        at = document
        for step in steps[:-1]:
            at = at[step]
        at[steps[-1]] = junk
        scenario = None
        with contextlib.suppress(SpecError):
            scenario = convert(document, Scenario)
        if scenario is not None:
            assert load_scenario(dump_scenario(scenario)) == scenario


def test_there_are_enough_kinds():
    assert len(BAD) >= 100
