"""Scenario files with one mistake each, or any: the error names the path, the value and the remedy."""

from __future__ import annotations

import contextlib
import tomllib

import pytest
from support_bad import GOOD, TOPOLOGY, TRAFFIC, check_listed, check_one_error, plus, topology, traffic
from test_bad_networks import BAD as NETWORKS
from test_bad_traffic import BAD as TRAFFICS
from test_bad_transports import BAD as TRANSPORTS

from fabric.errors import SpecError
from fabric.scenario import dump_scenario, load_scenario, scenario_errors
from fabric.spec import Scenario
from fabric.spec.decode import convert

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


@pytest.mark.parametrize(("text", "path", "value", "remedy"), BAD.values(), ids=BAD)
def test_one_clear_error(tmp_path, text, path, value, remedy):
    check_one_error(tmp_path, text, path, value, remedy)


@pytest.mark.parametrize("text", [text for text, *_ in BAD.values()], ids=BAD)
def test_listed_too(text):
    check_listed(text)


def test_the_good_scenario_is_good():
    assert scenario_errors(GOOD) == []
    assert len(load_scenario(GOOD).traffic) == 1


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
    assert sum(map(len, (BAD, NETWORKS, TRAFFICS, TRANSPORTS))) >= 100
