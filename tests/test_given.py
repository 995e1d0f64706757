"""Networks and flows that a script made itself: they run, and a saved result runs again from its files."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest

from fabric.cli import main
from fabric.convert.hpcc_results import fct_text
from fabric.errors import SpecError
from fabric.result import Result
from fabric.simulate import Simulation, run
from fabric.spec import (
    Flows,
    GraphFile,
    Incast,
    LeafSpine,
    Link,
    Permutation,
    Scenario,
    SingleSwitch,
    Transport,
)
from fabric.topology import build_network, from_networkx, to_networkx
from fabric.workload import FlowTable, build_flows

MINE = Scenario(
    topology=GraphFile(file="mine.json", link=Link(rate="100Gbps", delay="2us")),
    traffic=(Flows(file="mine.csv"),),
)
LEAVES = LeafSpine(leaves=2, spines=2, hosts_per_leaf=3)


def ring() -> Any:
    graph = networkx.cycle_graph(["leaf0", "leaf1", "leaf2"])
    graph.add_edges_from((f"leaf{n}", f"host{n}", {"rate": "50Gbps"}) for n in range(3))
    return graph


def assert_equal(one: Result, other: Result) -> None:
    assert one.fingerprint == other.fingerprint
    for name, table in one.tables.items():
        for column in table.columns:
            np.testing.assert_array_equal(table[column], other.tables[name][column], err_msg=column)


class TestNetworks:
    def test_a_graph_runs_like_its_network(self) -> None:
        scenario = MINE.replace(traffic=(Permutation(size="40KB"),))
        of_graph = run(scenario, engine="reference", network=ring())
        link = scenario.topology.link  # type: ignore[union-attr]
        of_network = run(scenario, engine="reference", network=from_networkx(ring(), link=link))
        assert of_graph.nodes["name"].tolist() == ["host0", "host1", "host2", "leaf0", "leaf1", "leaf2"]
        assert sorted(set(of_graph.ports["rate_bps"].tolist())) == [50 * 10**9, 100 * 10**9]
        assert of_graph.status == "FINISHED"
        assert_equal(of_graph, of_network)

    def test_the_network_of_a_topology_gives_what_the_topology_gives(self) -> None:
        scenario = Scenario(topology=LEAVES, traffic=(Incast(senders=4, size="20KB"),))
        expected = run(scenario, engine="reference")
        assert_equal(run(scenario, engine="reference", network=build_network(LEAVES)), expected)
        assert_equal(run(scenario, engine="reference", network=to_networkx(build_network(LEAVES))), expected)

    def test_what_is_no_network_is_refused(self) -> None:
        with pytest.raises(SpecError, match="network: 'ring' is not allowed; expected a Network or a netw"):
            Simulation(MINE, network="ring")
        with pytest.raises(SpecError, match="undirected"):
            Simulation(MINE, network=networkx.DiGraph(ring()))


class TestFlows:
    def test_flows_of_a_scenario_give_what_the_scenario_gives(self) -> None:
        scenario = Scenario(
            topology=LEAVES,
            traffic=(Incast(senders=3, size="20KB", victims=1), Permutation(size="9KB", jitter="3us")),
        )
        flows = build_flows(scenario, build_network(LEAVES))
        other = scenario.replace(traffic=(Flows(file="mine.csv"),))
        assert_equal(run(other, engine="reference", flows=flows), run(scenario, engine="reference"))

    @pytest.mark.parametrize(
        ("flows", "part"),
        [
            ([(0, 1, 10)], "expected a FlowTable"),
            (FlowTable.from_arrays([], [], size_bytes=[]), "at least one flow"),
            (FlowTable.from_arrays([0, 6], 1, size_bytes=10), r"flows\[1\].source: 6 .* from 0 to 5"),
            (FlowTable.from_arrays(0, 1, size_bytes=10, traffic_class="dtaa"), 'did you mean "data"'),
        ],
    )
    def test_what_cannot_run_is_refused(self, flows: Any, part: str) -> None:
        with pytest.raises(SpecError, match=part):
            Simulation(MINE, network=build_network(LEAVES), flows=flows)


class TestProvenance:
    def given(self) -> FlowTable:
        first = FlowTable.from_arrays([0, 1, 2], [1, 2, 0], size_bytes=[12345, 8000, 1], names=["", "b", ""])
        second = FlowTable.from_arrays(
            [2, 1], [1, 0], size_bytes=7000, start_ps=[0, 1234567], transport=Transport(payload=1024)
        )
        return FlowTable.concatenate([first, second]).with_waits([(2, 0), (3, 1), (3, 0)])

    @pytest.mark.parametrize("in_a_loaded_result", [False, True])
    def test_a_saved_result_runs_again(self, tmp_path: Path, in_a_loaded_result: bool) -> None:
        result = run(MINE, engine="reference", network=ring(), flows=self.given())
        assert result.status == "FINISHED"
        assert result.flows["name"].tolist() == ["flows#0", "b", "flows#2", "flows-2#0", "flows-2#1"]
        result.save(tmp_path / "one")
        assert {"network.json", "flows.csv", "flows-2.csv"} < set(os.listdir(tmp_path / "one"))
        loaded = Result.load(tmp_path / "one")
        assert loaded.provenance == result.provenance
        if in_a_loaded_result:
            loaded.save(tmp_path / "one")
        scenario = str(tmp_path / "one" / "scenario.toml")
        options = ["--quiet", "--no-plot", "--engine", "reference"]
        assert main(["run", scenario, "--out", str(tmp_path / "two"), *options]) == 0
        assert_equal(Result.load(tmp_path / "two"), result)

    def test_its_completion_times_are_written_without_the_file(self) -> None:
        scenario = Scenario(topology=LEAVES, traffic=(Permutation(size="9KB"),))
        result = run(scenario, engine="reference", network=build_network(LEAVES))
        assert result.provenance.files
        assert fct_text(result) == fct_text(run(scenario, engine="reference"))

    def test_a_scenario_of_its_own_has_no_files(self) -> None:
        scenario = Scenario(topology=SingleSwitch(hosts=2), traffic=(Permutation(size="1KB"),))
        assert run(scenario, engine="reference").provenance.files == {}

    def test_the_result_can_be_replaced(self, tmp_path: Path) -> None:
        result = run(MINE, engine="reference", network=ring(), flows=self.given())
        result.save(tmp_path / "one")
        result.save(tmp_path / "one")
        assert Result.load(tmp_path / "one").fingerprint == result.fingerprint


class TestReadme:
    def test_its_python_examples_run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("MPLBACKEND", "Agg")
        text = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
        names: dict[str, Any] = {}
        examples = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
        assert len(examples) == 3
        for example in examples:
            exec(example, names)
        assert Result.load("results/ring").status == "FINISHED"
        assert Result.load("results/flows").flows["size_bytes"].tolist() == [10**6, 10**6, 4096]
        assert Path("queues.png").exists()
