"""Links, topologies and switches with one mistake each: the error names path, value and remedy."""

from __future__ import annotations

import pytest
from support_bad import TOPOLOGY, TRAFFIC, check_listed, check_one_error, plus, topology

BAD = {
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
}


@pytest.mark.parametrize(("text", "path", "value", "remedy"), BAD.values(), ids=BAD)
def test_one_clear_error(tmp_path, text, path, value, remedy):
    check_one_error(tmp_path, text, path, value, remedy)


@pytest.mark.parametrize("text", [text for text, *_ in BAD.values()], ids=BAD)
def test_listed_too(text):
    check_listed(text)
