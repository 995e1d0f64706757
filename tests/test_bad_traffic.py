"""Traffic with one mistake each: the error names the path, the value and the remedy."""

from __future__ import annotations

import pytest
from support_bad import check_listed, check_one_error, flow, flows, plus, traffic

BAD = {
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
}


@pytest.mark.parametrize(("text", "path", "value", "remedy"), BAD.values(), ids=BAD)
def test_one_clear_error(tmp_path, text, path, value, remedy):
    check_one_error(tmp_path, text, path, value, remedy)


@pytest.mark.parametrize("text", [text for text, *_ in BAD.values()], ids=BAD)
def test_listed_too(text):
    check_listed(text)
