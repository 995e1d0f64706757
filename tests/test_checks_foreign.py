"""`fabric check` on files of other simulators: the verdicts are those of the scenario that they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_convert import with_setting, write_case
from test_foreign_files import CONFIGURATIONS, TOO_SMALL, TOPOLOGIES, name_of

from fabric.checks import check_scenario
from fabric.cli import main
from fabric.convert import network_spec
from fabric.spec import LeafSpine, Link, Permutation, Scenario, Switch

TOPO = """\
Nodes 16
Tiers 2
Podsize 16
Tier 0
Downlink_speed_Gbps 100
Radix_Down 4
Radix_Up 2
Oversubscribed 2
Downlink_Latency_ns 500
Tier 1
Downlink_speed_Gbps 100
Radix_Down 4
Downlink_Latency_ns 1000
"""
RING = "8 4 8\n4 5 6 7\n" + "".join(
    f"{host} {host + 4} 100Gbps 1000ns 0\n{host + 4} {(host + 1) % 4 + 4} 100Gbps 1000ns 0\n"
    for host in range(4)
)
"""Four switches in a ring, a host at each: two hops either way, so that paths chase each other."""
SIMAI = "5 2 1 1 5 H100\n2 3 \n0 2 2880Gbps 0.000025ms 0\n1 2 2880Gbps 0.000025ms 0\n" + "".join(
    f"{host} 3 400Gbps 0.0005ms 0\n" for host in (0, 1, 4)
)


def config() -> str:
    """A configuration that names the two other files of its folder."""
    lines = with_setting("FLOW_FILE", "flow.txt").splitlines()
    lines = [line for line in lines if line.split()[0] != "TOPOLOGY_FILE"]
    return "\n".join([*lines, "TOPOLOGY_FILE topology.txt"]) + "\n"


def report(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    """Exit code, and what is said of deadlocks, settings and failures."""
    capsys.readouterr()
    code = main(["check", *arguments])
    lines = capsys.readouterr().out.splitlines()[1:]
    return code, [
        line for line in lines if line.strip() and not line.startswith(("  left out", "  no flows"))
    ]


def test_a_fat_tree_is_what_it_is_as_a_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "small.topo"
    file.write_text(TOPO)
    native = Scenario(
        topology=LeafSpine(
            leaves=4,
            spines=2,
            hosts_per_leaf=4,
            host_link=Link(rate="100Gbps", delay="500ns"),
            fabric_link=Link(rate="100Gbps", delay="1us"),
        ),
        traffic=[Permutation(size="1KB")],
        switch=Switch(latency="0s"),
    )
    expected = [f"  {line}".rstrip() for line in check_scenario(native).lines() if line.strip()]
    assert report(capsys, str(file)) == (0, expected)


def test_a_ring_can_deadlock(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "topology.txt"
    file.write_text(RING)
    scenario = Scenario(
        topology=network_spec(file), traffic=[Permutation(size="1KB")], switch=Switch(latency="0s")
    )
    expected = [f"  {line}".rstrip() for line in check_scenario(scenario).lines() if line.strip()]
    code, found = report(capsys, str(file))
    assert (code, found) == (1, expected)
    assert "can deadlock" in " ".join(found)
    assert report(capsys, str(file), "--remedy", "lossy")[0] == 0


def test_a_topology_alone_says_what_stands_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "DCN_5g"
    file.write_text(SIMAI)
    assert main(["check", str(file), "--set", "switch.buffer=64MB"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("DCN_5g\n")
    assert "no flows    one message of every host" in printed
    assert "scaleup" in printed


def test_a_folder_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topology, flows, settings = (str(each) for each in write_case(tmp_path, config=config()))
    whole = report(capsys, topology, flows, settings)
    assert whole[0] == 0
    assert report(capsys, str(tmp_path)) == whole == report(capsys, settings)
    Path(settings).unlink()
    without = report(capsys, str(tmp_path))
    assert without == report(capsys, topology, flows)
    Path(flows).unlink()
    assert report(capsys, str(tmp_path))[0] == 0
    Path(topology).unlink()
    assert main(["check", str(tmp_path)]) == 2
    assert "a folder with config.txt or topology.txt" in capsys.readouterr().err


def test_files_beside_a_configuration_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not those of the same name in the folder that one happens to be in."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    write_case(there, config=config())
    (here / "topology.txt").write_text(RING)
    monkeypatch.chdir(here)
    _, found = report(capsys, str(there))
    assert "of 2 cables" in " ".join(found)


def test_damage_is_said_before_anything_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "topology.txt"
    file.write_text(RING.replace("100Gbps", "fast", 1))
    assert main(["check", str(file)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"{file}:3 rate" in captured.err


# Real files, where they are at hand: the same as of the scenarios that they are converted to.

SOME = [each for each in CONFIGURATIONS[::12] if each.parent.name != TOO_SMALL]


@pytest.mark.skipif(not TOPOLOGIES, reason="no files of other simulators here")
@pytest.mark.parametrize("file", TOPOLOGIES, ids=name_of)
def test_real_topologies(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    single = [] if file.stat().st_size < 10**4 and "1024" not in file.name else ["--no-single"]
    scenario = Scenario(
        topology=network_spec(file), traffic=[Permutation(size="1KB")], switch=Switch(latency="0s")
    )
    expected = check_scenario(scenario, single=not single)
    code, found = report(capsys, str(file), *single)
    assert code == (1 if expected.can_deadlock else 0)
    assert found == [f"  {line}".rstrip() for line in expected.lines() if line.strip()]


@pytest.mark.skipif(not SOME, reason="no files of other simulators here")
@pytest.mark.parametrize("file", SOME, ids=name_of)
def test_real_runs_of_hpcc(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(file), "--out", str(tmp_path / "x.toml")]) == 0
    converted = report(capsys, str(tmp_path / "x.toml"))
    assert report(capsys, str(file.parent)) == converted
