"""Real files of other simulators, where they are at hand.

They are looked for in the directory that FABRIC_FOREIGN_FILES names, or in `shared` beside the
repository, and are not part of it: without them these tests are skipped. What must be found in them
was counted in the files by hand or by the tools that they belong to.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import fabric
from fabric.convert import fct_text, import_files, network_spec
from fabric.errors import SpecError
from fabric.formats import recognise
from fabric.formats.htsim_matrix import parse_matrix
from fabric.topology import build_network, describe

ROOT = Path(os.environ.get("FABRIC_FOREIGN_FILES", Path(__file__).resolve().parents[2] / "shared"))
SAMPLES, RUNS = ROOT / "samples", ROOT / "reference" / "ns3"
CONFIGURATIONS = sorted([*RUNS.glob("*/config.txt"), *RUNS.glob("defects/*/config.txt")])
TOPOLOGIES = sorted(
    [
        *SAMPLES.glob("*/topologies/*.topo"),
        *SAMPLES.glob("*/config/*.topo"),
        *SAMPLES.glob("simai/topology/*"),
    ]
)
MATRICES = sorted(SAMPLES.glob("*/connection_matrices/*.cm"))

pytestmark = pytest.mark.skipif(
    not TOPOLOGIES or not CONFIGURATIONS, reason="no files of other simulators here"
)

TOO_SMALL = "short_cable_5000ns"
"""Its headroom does not fit its buffer, which is refused by design."""
LONG = ("flow_4.2GB", "flow_4.5GB")
LOSSY = ("loss_", "short_cable_10ns")
"""A flow that loses its last frame there never ends: there is no time-out."""

COUNTS = {
    "leaf_spine_tiny.topo": ({"host": 32, "leaf": 4, "spine": 2}, 40, 4.0),
    "leaf_spine_1024_oversub.topo": ({"host": 1024, "leaf": 32, "spine": 8}, 1280, 4.0),
    "fat_tree_1024.topo": ({"host": 1024, "leaf": 128, "spine": 128, "core": 64}, 3072, 1.0),
    "fat_tree_1024_4os.topo": ({"host": 1024, "leaf": 128, "spine": 32, "core": 16}, 1536, 4.0),
}
TOTALS = {
    "one.cm": (1, 0, 2_000_000),
    "incast.cm": (15, 0, 30_000_000),
    "perm_16n_16c_2MB.cm": (16, 0, 32_000_000),
    "perm_1024n_1024c_0u_2000000b.cm": (1024, 0, 2_048_000_000),
    "foo2.cm": (12, 8, 24_000_000),
    "test_cr_1f10m1p.cm": (10, 0, 40_860),
}


def name_of(path: Path) -> str:
    return path.name if path.name != "config.txt" else path.parent.name


@pytest.mark.parametrize("file", TOPOLOGIES, ids=name_of)
def test_topologies(file: Path) -> None:
    network = build_network(network_spec(file))
    if file.name in COUNTS:
        nodes, links, oversubscription = COUNTS[file.name]
        facts = describe(network)
        assert facts.nodes_per_tier == nodes
        assert network.n_links == links
        assert max(facts.oversubscription.values()) == oversubscription
    if recognise(file) == "hpcc_topology":
        words = file.read_text().split()
        assert (network.n_nodes, network.n_links) == (int(words[0]), int(words[4]))


@pytest.mark.parametrize("file", MATRICES, ids=name_of)
def test_matrices_run_on_a_fat_tree(file: Path) -> None:
    data, _ = parse_matrix(file)
    flows, waits, total = TOTALS[file.name]
    assert (len(data.source), len(data.waits), int(data.size_bytes.sum())) == (flows, waits, total)
    topology = next(each for each in TOPOLOGIES if each.name == "fat_tree_1024.topo")
    imported = import_files(topology, file)
    until = "20us" if flows > 100 else None
    result = fabric.run(imported.scenario, until=until)
    assert result.status == ("UNTIL" if until else "FINISHED")
    assert sum(result.drops_by_reason.values()) == 0


@pytest.mark.parametrize("file", CONFIGURATIONS, ids=name_of)
def test_runs_of_the_hpcc_simulator(file: Path) -> None:
    scenario = import_files(file).scenario
    if file.parent.name == TOO_SMALL:
        with pytest.raises(SpecError, match=r"switch\.buffer"):
            fabric.run(scenario)
        return
    result = fabric.run(scenario, until="2.00001s" if file.parent.name in LONG else None)
    expected = ("FINISHED", "STALLED") if file.parent.name.startswith(LOSSY) else ("FINISHED", "UNTIL")
    assert result.status in expected
    if result.status == "FINISHED" and file.with_name("fct.txt").is_file():
        mine, theirs = rows_of(fct_text(result)), rows_of(file.with_name("fct.txt").read_text())
        assert mine.keys() == theirs.keys()
        assert {key: row[1] for key, row in mine.items()} == {key: row[1] for key, row in theirs.items()}
        if file.parent.name.startswith("S1_"):
            (own,), (other,) = mine.values(), theirs.values()
            assert own == other


def rows_of(text: str) -> dict[tuple[str, ...], tuple[int, int]]:
    """Completion and standalone times by addresses, ports, bytes and start."""
    rows = [line.split() for line in text.splitlines()]
    return {tuple(row[:6]): (int(row[6]), int(row[7])) for row in rows}
