"""Collectives, programs, benchmarks with one mistake each: errors name path, value and remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fabric
from fabric.bench import Bench, sizes_between
from fabric.cli import main
from fabric.errors import SpecError
from fabric.scenario import load_scenario

FABRIC = """
[topology]
kind = "leaf_spine"
leaves = 2
spines = 2
hosts_per_leaf = 4
"""
RING = {"kind": '"collective"', "collective": '"all_reduce"', "algorithm": '"ring"', "size": '"1MB"'}
GOAL = "num_ranks 2\nrank 0 {\nl1: send 8b to 1\n}\nrank 1 {\nl1: recv 8b from 0\n}\n"
MSCCL = """<algo name="one" proto="Simple" nchannels="1" nchunksperloop="1" ngpus="2" coll="broadcast"
inplace="1">
<gpu id="0" i_chunks="1" o_chunks="0" s_chunks="0"><tb id="0" send="1" recv="-1" chan="0">
<step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
</tb></gpu>
<gpu id="1" i_chunks="1" o_chunks="0" s_chunks="0"><tb id="0" send="-1" recv="0" chan="0">
<step s="0" type="r" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
</tb></gpu>
</algo>
"""


def entry(**fields: str) -> str:
    return "\n[[traffic]]\n" + "".join(f"{name} = {value}\n" for name, value in fields.items())


def ring(**changes: str) -> str:
    return FABRIC + entry(**{**RING, **changes})


def program(file: str, **changes: str) -> str:
    return FABRIC + entry(kind='"program"', file=f'"{file}"', **changes)


BAD: dict[str, tuple[str, str, str, str]] = {
    # What there is not
    "no such collective": (
        ring(collective='"allreduce"'),
        "traffic[0].collective",
        "'allreduce'",
        "one of all_reduce, reduce_scatter",
    ),
    "no such algorithm": (ring(algorithm='"rings"'), "traffic[0].algorithm", "'rings'", "halving_doubling"),
    "an algorithm of another collective": (
        ring(algorithm='"bruck"'),
        "traffic[0].algorithm",
        "'bruck'",
        "for all_reduce one of",
    ),
    "no such field": (ring(algo='"ring"'), "traffic[0].algo", "'algo'", "algorithm"),
    "no such order": (ring(order='"random"'), "traffic[0].order", "'random'", '"shuffled"'),
    "no such host": (ring(hosts='"gpu*"'), "traffic[0].hosts", "'gpu*'", "host"),
    # Ranks
    "no hosts": (ring(hosts='""'), "traffic[0].hosts", "''", "a pattern of host names"),
    "no ranks": (ring(ranks="0"), "traffic[0].ranks", "0", "an integer from 1 to "),
    "more ranks than hosts": (ring(ranks="9"), "traffic[0].ranks", "9", "at most 8"),
    "more ranks than hosts of a pattern": (
        ring(ranks="5", hosts='"host[0-3]"'),
        "traffic[0].ranks",
        "5",
        "at most 4",
    ),
    "no rank on a host": (
        ring(ranks_per_host="0"),
        "traffic[0].ranks_per_host",
        "0",
        "an integer from 1 to ",
    ),
    "ranks that are no number": (ring(ranks='"all"'), "traffic[0].ranks", "'all'", "an integer"),
    # Sizes and parts
    "a negative size": (ring(size="-1"), "traffic[0].size", "-1", "size"),
    "a size without unit": (ring(size='"big"'), "traffic[0].size", "'big'", "size"),
    "a size of bits": (ring(size='"1Mb"'), "traffic[0].size", "'1Mb'", "B"),
    "a size of a barrier": (
        ring(collective='"barrier"', algorithm='"dissemination"'),
        "traffic[0].size",
        "1000000",
        "0 for a barrier",
    ),
    "no channels": (ring(channels="0"), "traffic[0].channels", "0", "an integer from 1 to "),
    "too many channels": (ring(channels="1000"), "channels", "1000", "256"),
    "no chunk": (ring(chunk="0"), "traffic[0].chunk", "0B", "above 0"),
    "too often": (ring(repeat="2147483647"), "traffic[0].repeat", "2147483647", "at most "),
    "never": (ring(repeat="0"), "traffic[0].repeat", "0", "an integer from 1 to "),
    # Options
    "no such option": (
        ring(options="{ window = 4 }"),
        "traffic[0].options.window",
        "4",
        "for all_reduce by ring one of the options orders, channels, chunks, slices",
    ),
    "a window that is no number": (
        ring(algorithm='"direct"', options='{ window = "all" }'),
        "traffic[0].options.window",
        "'all'",
        "a whole number",
    ),
    "a window of nothing": (
        ring(algorithm='"direct"', options="{ window = 0 }"),
        "traffic[0].options.window",
        "0",
        "1",
    ),
    "a shape of other ranks": (
        ring(algorithm='"hierarchical"', options="{ shape = [4, 4] }"),
        "traffic[0].options.shape",
        "(4, 4)",
        "numbers whose product is 8",
    ),
    "a shape that is no list": (
        ring(algorithm='"hierarchical"', options="{ shape = 8 }"),
        "traffic[0].options.shape",
        "8",
        "a list of whole numbers",
    ),
    "a root that is no rank": (
        ring(collective='"broadcast"', algorithm='"chain"', options="{ root = 8 }"),
        "traffic[0].options.root",
        "8",
        "0 to 7",
    ),
    "no slices": (ring(options="{ slices = 0 }"), "traffic[0].options.slices", "0", "1 to"),
    "channels as an option": (
        ring(options="{ channels = 2 }"),
        "traffic[0].options.channels",
        "'2'",
        "channels is a field of its own",
    ),
    "chunks of a size and by number": (
        ring(chunk='"1KB"', options="{ chunks = 2 }"),
        "traffic[0].options.chunks",
        "2",
        "either chunk, a size, or a number of chunks",
    ),
    "reduction where switches have no reducer": (
        ring(algorithm='"in_network"'),
        "traffic[0].hosts",
        "ranks at leaf0",
        "topology.reducers",
    ),
    # All-to-all-v
    "skew of a ring": (ring(skew="1.0"), "traffic[0].skew", "1.0", "except for an all_to_all_v"),
    "a matrix of a ring": (
        ring(matrix='"m.csv"'),
        "traffic[0].matrix",
        "'m.csv'",
        "except for an all_to_all_v",
    ),
    "negative skew": (
        ring(collective='"all_to_all_v"', algorithm='"direct"', skew="-1.0"),
        "traffic[0].skew",
        "-1.0",
        "from 0 to 4",
    ),
    "a matrix and a size": (
        ring(collective='"all_to_all_v"', algorithm='"direct"', matrix='"m.csv"'),
        "traffic[0].size",
        "1MB",
        "no size with a matrix",
    ),
    "no such matrix": (
        FABRIC
        + entry(kind='"collective"', collective='"all_to_all_v"', algorithm='"direct"', matrix='"no.csv"'),
        "traffic[0].matrix",
        "'no.csv'",
        "an existing file",
    ),
    "a matrix that is too small": (
        FABRIC
        + entry(kind='"collective"', collective='"all_to_all_v"', algorithm='"direct"', matrix='"m.csv"'),
        "m.csv:1",
        "2",
        "8 numbers, one for each rank",
    ),
    "a matrix with too few lines": (
        FABRIC
        + entry(
            kind='"collective"',
            collective='"all_to_all_v"',
            algorithm='"direct"',
            matrix='"m.csv"',
            ranks="2",
        ),
        "m.csv",
        "1 lines",
        "2 lines",
    ),
    "a matrix of words": (
        FABRIC
        + entry(
            kind='"collective"',
            collective='"all_to_all_v"',
            algorithm='"direct"',
            matrix='"w.csv"',
            ranks="2",
        ),
        "w.csv:2",
        "'x'",
        "number",
    ),
    # Programs
    "no program": (program(""), "traffic[0].file", "''", "GOAL or MSCCL"),
    "no such program": (program("no.goal"), "traffic[0].file", "'no.goal'", "an existing file"),
    "not a program": (program("flow.txt"), "flow.txt", "flows of the HPCC simulator", "a GOAL schedule"),
    "nothing that is known": (program("m.csv"), "m.csv", "something else", "a GOAL schedule"),
    "a size for GOAL": (program("two.goal", size='"1MB"'), "traffic[0].size", "1MB", "no size for GOAL"),
    "no size for MSCCL": (program("two.xml"), "traffic[0].size", "(missing)", "such as 1MB"),
    "too few hosts": (program("two.goal", hosts='"host3"'), "traffic[0].hosts", "1 hosts", "each of 2 ranks"),
    "jitter of a program": (program("two.goal", jitter='"1us"'), "traffic[0].jitter", "1us", "no jitter"),
    "a damaged schedule": (program("bad.goal"), "bad.goal:3", "sand", "send"),
    "a damaged program": (program("bad.xml", size='"1MB"'), "bad.xml:5", "mismatched tag", "XML"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files that are named above."""
    texts = {
        "m.csv": "0,1\n",
        "w.csv": "0,1\nx,0\n",
        "flow.txt": "1\n0 1 3 100 1000 2.0\n",
        "two.goal": GOAL,
        "two.xml": MSCCL,
        "bad.goal": GOAL.replace("send", "sand"),
        "bad.xml": MSCCL.replace("</tb></gpu>\n<gpu", "</gpu>\n<gpu", 1),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("case", BAD)
def test_one_mistake_is_one_error(case: str, folder: Path) -> None:
    text, path, value, remedy = BAD[case]
    (folder / "scenario.toml").write_text(text)
    with pytest.raises(SpecError) as caught:
        fabric.Simulation(load_scenario(folder / "scenario.toml"))
    message = str(caught.value)
    assert path in caught.value.path
    for part in (value, remedy):
        assert part in message, message
    assert "\n" not in message


def test_the_files_are_good_without_their_mistakes(folder: Path) -> None:
    for text in (program("two.goal"), program("two.xml", size='"1MB"'), ring(ranks="8", chunk='"1KB"')):
        (folder / "scenario.toml").write_text(text)
        assert fabric.run(load_scenario(folder / "scenario.toml")).status == "FINISHED"


BAD_BENCHES: dict[str, tuple[dict[str, Any], str, str]] = {
    "no such collective": ({"collective": "allreduce"}, "--collective", "all_gather"),
    "no such algorithm": ({"algorithms": ["rings"]}, "--algorithm", "halving_doubling"),
    "one of several": ({"algorithms": ["ring", "three"]}, "--compare", "double_binary_tree"),
    "one twice": ({"algorithms": ["tree", "double_binary_tree"]}, "--compare", "every algorithm once"),
    "no sizes": ({"sizes": []}, "sizes", "at least one"),
    "no such type": ({"element": "float33"}, "--type", "bfloat16"),
    "never": ({"iterations": 0}, "--iterations", "an integer from 1 to 2^31-1"),
    "too often": ({"iterations": 2**31}, "--iterations", "an integer from 1 to 2^31-1"),
    "no ranks": ({"ranks": 0}, "--ranks", "an integer from 1 to "),
    "no chunk": ({"chunk": 0}, "--chunk", "above 0"),
    "no name": ({"collective": ""}, "--collective", "all_gather"),
    "no such option": (
        {"algorithms": ["direct", "ring"], "options": {"root": 1}},
        "--option root",
        "one of window, chunks, slices, orders",
    ),
    "an option of another": ({"algorithms": ["ring"], "options": {"window": 1}}, "--option window", "orders"),
}


@pytest.mark.parametrize("case", BAD_BENCHES)
def test_benches(case: str) -> None:
    changes, path, remedy = BAD_BENCHES[case]
    scenario = fabric.Scenario(
        topology=fabric.SingleSwitch(hosts=4), traffic=[fabric.Permutation(size="1MB")]
    )
    with pytest.raises(SpecError) as caught:
        Bench(**({"scenario": scenario, "sizes": [1024]} | changes))
    assert caught.value.path == path
    assert remedy in caught.value.allowed


@pytest.mark.parametrize(
    ("how", "path"),
    [
        ({"begin": 10, "end": 9}, "--end"),
        ({"begin": 10, "end": 20, "step": 0}, "--step"),
        ({"begin": 0, "end": 10**9, "step": 1}, "--step"),
        ({"begin": 10, "end": 20, "step": 5, "factor": 2.0}, "--step"),
        ({"begin": 10, "end": 20, "factor": 1.0}, "--factor"),
        ({"begin": 10, "end": 20, "factor": float("nan")}, "--factor"),
        ({"begin": 10, "end": 20, "factor": float("inf")}, "--factor"),
        ({"begin": 1, "end": 10**6, "factor": 1.0001}, "--factor"),
        ({"begin": 0, "end": 20}, "--begin"),
    ],
)
def test_ranges_of_sizes(how: dict[str, Any], path: str) -> None:
    with pytest.raises(SpecError) as caught:
        sizes_between(**how)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("-b 1Q", "--begin: '1Q' is not allowed"),
        ("-e -", "--end"),
        ("--chunk 1.5B", "--chunk"),
        ("--compare ring,ring", "--compare: 'ring' is not allowed; expected every algorithm once"),
        ("--compare ring --algorithm tree", "not allowed with argument"),
        ("--ranks 9", "ranks: 9 is not allowed; expected at most 4"),
        (
            "--collective all_to_all --algorithm ring",
            "--algorithm: 'ring' is not allowed; expected for all_to_all",
        ),
        ("--option window", "--option: 'window' is not allowed; expected NAME=VALUE"),
        ("--algorithm direct --option window=0", "options.window: 0 is not allowed"),
        ("--csv=", "--csv: '' is not allowed; expected the name of a file"),
        ("--out picture.bmp", "--out: 'picture.bmp' is not allowed"),
        ("--set traffic[0].size=1MX", "traffic[0].size"),
    ],
)
def test_the_command_says_it_in_a_line_and_writes_nothing(
    words: str, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(FABRIC.replace("hosts_per_leaf = 4", "hosts_per_leaf = 2") + entry(**RING))
    try:
        code = main(["bench", "s.toml", "-e", "2KiB", *words.split()])
    except SystemExit as stop:
        code = int(stop.code or 0)
    printed = capsys.readouterr()
    assert code == 2
    assert part in printed.err
    assert len(printed.err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["s.toml"]
