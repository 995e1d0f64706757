"""Options that repeat ns-3 with one mistake each: the error names the path, the value and the remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fabric.errors import SpecError
from fabric.lower import lower
from fabric.scenario import load_scenario
from fabric.spec.ns3_hpcc import ns3_hpcc, ns3_hpcc_link
from fabric.topology import build_network
from fabric.workload import build_flows

TOPOLOGY = """
[topology]
kind = "single_switch"
hosts = 4
"""
GOOD = (
    TOPOLOGY
    + """
[[traffic]]
kind = "incast"
senders = 3
size = "1MB"
"""
)


def plus(section: str, text: str) -> str:
    return f"{GOOD}\n[{section}]\n{text}\n"


BAD = {
    # Order of simultaneous events
    "unknown ties": (plus("run", 'ties = "global"'), "run.ties", "'global'", '"fair", "transmission_start"'),
    "misspelt ties": (
        plus("run", 'timing = "ns3"\nties = "transmision_start"'),
        "run.ties",
        "'transmision_start'",
        'did you mean "transmission_start"?',
    ),
    "ties that are a number": (plus("run", "ties = 1"), "run.ties", "1", '"fair"'),
    "ties of an exact clock": (
        plus("run", 'ties = "transmission_start"'),
        "run.ties",
        "'transmission_start'",
        'or timing = "ns3"',
    ),
    "ties with a delay within a nanosecond": (
        GOOD.replace("hosts = 4", 'hosts = 4\nlink = {delay = "1.5ns"}')
        + '[run]\ntiming = "ns3"\nties = "transmission_start"\n',
        "run.ties",
        "'transmission_start'",
        '"fair", or delays of whole ns',
    ),
    "unknown timing": (plus("run", 'timing = "ns4"'), "run.timing", "'ns4'", 'did you mean "ns3"?'),
    # Ends of other flows
    "unknown waits": (plus("run", 'waits = "later"'), "run.waits", "'later'", '"news", "instant"'),
    "misspelt waits": (plus("run", 'waits = "instnt"'), "run.waits", "'instnt'", 'did you mean "instant"?'),
    "waits that are a truth value": (plus("run", "waits = true"), "run.waits", "True", '"news"'),
    # Path choice
    "unknown hash": (plus("routing", 'hash = "crc32"'), "routing.hash", "'crc32'", '"seeded", "murmur3"'),
    "misspelt hash": (
        plus("routing", 'hash = "murmur"'),
        "routing.hash",
        "'murmur'",
        'did you mean "murmur3"?',
    ),
    "a hash that is not asked for": (
        plus("routing", 'hash = "murmur3"\nchoice = "adaptive"'),
        "routing.hash",
        "'murmur3'",
        'or choice = "ecmp"',
    ),
    "a port below 0": (plus("routing", "udp_port = -1"), "routing.udp_port", "-1", "from 0 to 65535"),
    "a port above 16 bits": (
        plus("routing", "udp_port = 65536"),
        "routing.udp_port",
        "65536",
        "from 0 to 65535",
    ),
    "a port by name": (plus("routing", 'udp_port = "roce"'), "routing.udp_port", "'roce'", "an integer"),
    "unknown order of next hops": (
        plus("routing", 'next_hop_order = "neighbours"'),
        "routing.next_hop_order",
        "'neighbours'",
        '"neighbours_descending"',
    ),
    # Queue pairs: how a NIC serves them, and how many a message has
    "unknown turns": (
        plus("nic", 'queue_pairs = "random"'),
        "nic.queue_pairs",
        "'random'",
        '"earliest", "in_turn"',
    ),
    "a number of turns": (plus("nic", "queue_pairs = 4"), "nic.queue_pairs", "4", '"in_turn"'),
    "no queue pair": (
        plus("transport", "queue_pairs = 0"),
        "transport.queue_pairs",
        "0",
        "an integer from 1 to 1024",
    ),
    "too many queue pairs": (
        plus("transport", "queue_pairs = 1025"),
        "transport.queue_pairs",
        "1025",
        "an integer from 1 to 1024",
    ),
    "turns of a message": (
        plus("transport", 'queue_pairs = "in_turn"'),
        "transport.queue_pairs",
        "'in_turn'",
        "an integer",
    ),
}


def prepare(file: Path) -> None:
    """All that comes before a run."""
    scenario = load_scenario(file)
    network = build_network(scenario.topology)
    lower(scenario, network=network, flows=build_flows(scenario, network))


@pytest.mark.parametrize("what", BAD)
def test_an_option_with_a_mistake(what: str, tmp_path: Path) -> None:
    text, path, value, remedy = BAD[what]
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(SpecError) as caught:
        prepare(file)
    assert caught.value.path == path
    assert f"{path}: {value} is not allowed; expected " in str(caught.value)
    assert remedy in str(caught.value)


FLOWS = "2\n0 1 3 100 1000 2.0\n1 2 3 100 1000 2.0\n"
CSV = "source,destination,size,start\nhost0,host1,1KB,0\n"
MATRIX = "Nodes 4\nConnections 1\n0->1 start 0 size 1000\n"

BAD_WAITS = {
    "no flows": ("", None, "1 0\n", "traffic[0].wait_file", "'waits.txt'", "no wait_file without a file"),
    "no such file": ("flow.txt", FLOWS, None, "traffic[0].wait_file", "'waits.txt'", "an existing file"),
    "flows of a CSV": ("f.csv", CSV, "1 0\n", "traffic[0].wait_file", "waits.txt'", "says itself what waits"),
    "flows of htsim": (
        "f.cm",
        MATRIX,
        "1 0\n",
        "traffic[0].wait_file",
        "waits.txt'",
        "says itself what waits",
    ),
    "one number": ("flow.txt", FLOWS, "# a remark\n1\n", "waits.txt:2", "'1'", "two numbers of flows"),
    "three numbers": ("flow.txt", FLOWS, "1 0 0\n", "waits.txt:1", "'1 0 0'", "two numbers of flows"),
    "a word": ("flow.txt", FLOWS, "1 first\n", "waits.txt:1", "'first'", "a whole number from 0 to 1"),
    "a flow too many": ("flow.txt", FLOWS, "1 0\n2 0\n", "waits.txt:2", "'2'", "a whole number from 0 to 1"),
    "a flow below 0": ("flow.txt", FLOWS, "1 -1\n", "waits.txt:1", "'-1'", "a whole number from 0 to 1"),
    "a flow after itself": ("flow.txt", FLOWS, "\n1 1\n", "waits.txt:2", "'1 1'", "two different flows"),
    "a cycle": (
        *("flow.txt", FLOWS, "0 1\n1 0\n", "waits.txt:1 after"),
        '"flow0" after "flow1" after "flow0"',
        "flows that do not wait for themselves",
    ),
}


@pytest.mark.parametrize("what", BAD_WAITS)
def test_a_file_of_waits_with_a_mistake(what: str, tmp_path: Path) -> None:
    name, flows, waits, path, value, remedy = BAD_WAITS[what]
    if flows is not None:
        (tmp_path / name).write_text(flows)
    if waits is not None:
        (tmp_path / "waits.txt").write_text(waits)
    entry = f'file = "{name}"' if name else "flows = [{source = 0, destination = 1, size = 1}]"
    file = tmp_path / "bad.toml"
    file.write_text(f'{TOPOLOGY}\n[[traffic]]\nkind = "flows"\n{entry}\nwait_file = "waits.txt"\n')
    with pytest.raises(SpecError) as caught:
        prepare(file)
    assert caught.value.path.removeprefix(f"{tmp_path}/") == path
    assert value in str(caught.value)
    assert remedy in str(caught.value)


@pytest.mark.parametrize(
    ("given", "path", "remedy"),
    [
        ({"nic_rate": "junk"}, "nic_rate", "a rate such as"),
        ({"nic_rate": True}, "nic_rate", "a rate such as"),
        ({"nic_rate": "1.5bps"}, "nic_rate", "a whole number of bit/s"),
        ({"buffer": "junk"}, "buffer", "a size such as"),
        ({"buffer": -1}, "buffer", "not negative"),
        ({"classes": ()}, "classes", "at least one name"),
        ({"classes": "data"}, "classes", "a list"),
        ({"classes": ("data", 1)}, "classes[1]", "a string"),
    ],
)
def test_a_preset_of_junk(given: dict[str, Any], path: str, remedy: str) -> None:
    with pytest.raises(SpecError) as caught:
        ns3_hpcc(**given)
    assert caught.value.path == path
    assert remedy in str(caught.value)


def test_a_cable_of_junk() -> None:
    with pytest.raises(SpecError, match=r"^Link\.rate: 'junk' is not allowed; expected a rate such as"):
        ns3_hpcc_link("junk")
