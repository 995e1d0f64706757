"""Flows: the table, explicit ones and what they wait for, placement on hosts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support_traffic import HOSTS, US, flows_of, rows

from fabric.errors import SpecError
from fabric.spec import (
    AllToAll,
    Flow,
    Flows,
    Incast,
    LeafSpine,
    Permutation,
    Poisson,
    RailOptimized,
    Transport,
    Uniform,
)
from fabric.topology import build_network
from fabric.workload import FlowTable
from fabric.workload.draws import EntryDraws
from fabric.workload.placement import host_leaves, host_rates_bps, spread_over_leaves
from fabric.workload.waits import find_cycle


class TestFlowTable:
    def test_columns_have_the_types_of_the_contract(self):
        table = FlowTable.from_arrays([0, 1], [1, 0], size_bytes=5_000_000_000, start_ps=[0, 7])
        assert (table.source.dtype, table.destination.dtype, table.pattern.dtype) == (np.uint32,) * 3
        assert (table.size_bytes.dtype, table.start_ps.dtype) == (np.int64, np.int64)
        assert table.size_bytes.tolist() == [5_000_000_000] * 2
        assert table.n_flows == len(table) == 2
        assert table.names is None
        assert table.after_flow.dtype == table.after_predecessor.dtype == np.uint32

    def test_an_empty_table(self):
        table = FlowTable.from_arrays([], [], size_bytes=[])
        assert len(table) == 0
        assert len(FlowTable.concatenate([])) == 0
        assert len(FlowTable.concatenate([table, table])) == 0

    @pytest.mark.parametrize(
        ("arguments", "path"),
        [
            ({"source": [0, 9]}, "flows[1].source"),
            ({"destination": [1, -1]}, "flows[1].destination"),
            ({"destination": [1, 1]}, "flows[1].destination"),
            ({"size_bytes": [1, 0]}, "flows[1].size"),
            ({"size_bytes": [2**63, 1]}, "flows.size"),
            ({"start_ps": [-1, 0]}, "flows[0].start"),
            ({"start_ps": [2**62 + 1, 0]}, "flows[0].start"),
            ({"size_bytes": [1.5, 2]}, "flows.size"),
            ({"size_bytes": [1, 2, 3]}, "flows"),
            ({"names": ["a"]}, "flows.names"),
            ({"names": ["a", "a"]}, "flows[1].name"),
            ({"after": [(0, 2)]}, "flows.after[0]"),
            ({"after": [0, 1]}, "flows.after"),
            ({"after": [(0, 1), (1, 0)]}, "flows[0].after"),
            ({"after": [(1, 1)]}, "flows[1].after"),
        ],
    )
    def test_wrong_values_are_named_with_their_flow(self, arguments, path):
        given = {"source": [0, 1], "destination": [1, 2], "size_bytes": [1, 1]} | arguments
        with pytest.raises(SpecError) as caught:
            FlowTable.from_arrays(**given, n_hosts=3)
        assert caught.value.path == path

    def test_concatenation_renumbers(self):
        a = FlowTable.from_arrays([0, 1], 2, size_bytes=1, names=["x", ""], after=[(1, 0)], label="a")
        b = FlowTable.from_arrays([3, 4], 5, size_bytes=2, after=[(0, 1)], label="b", traffic_class="c")
        table = FlowTable.concatenate([a, b])
        assert table.names == ("x", "", "", "")
        assert list(zip(table.after_flow, table.after_predecessor, strict=True)) == [(1, 0), (2, 3)]
        assert table.pattern.tolist() == [0, 0, 1, 1]
        assert table.traffic_class == (None, "c")
        with pytest.raises(SpecError, match="x"):
            FlowTable.concatenate([a, a])

    def test_waits_are_sorted_and_unique(self):
        table = FlowTable.from_arrays([0, 1, 2], 3, size_bytes=1, after=[(2, 1), (1, 0), (2, 1)])
        assert table.after_flow.tolist() == [1, 2]
        assert table.with_waits([]).after_flow.size == 0

    @given(st.integers(2, 12), st.data())
    def test_cycles_are_found_exactly(self, flows, data):
        edge = st.tuples(st.integers(0, flows - 1), st.integers(0, flows - 1))
        edges = sorted(data.draw(st.sets(edge, min_size=1, max_size=20)))
        waits = np.array(edges, dtype=np.int64)
        cycle = find_cycle(waits[:, 0], predecessor=waits[:, 1], n_flows=flows)
        reach = np.zeros((flows, flows), dtype=bool)
        reach[waits[:, 0], waits[:, 1]] = True
        for middle in range(flows):
            reach |= np.outer(reach[:, middle], reach[middle])
        assert bool(cycle) == bool(np.diag(reach).any())
        assert all((one, other) in edges for one, other in zip(cycle, cycle[1:] + cycle[:1], strict=True))


class TestBuild:
    def test_entries_in_order_with_their_labels_classes_and_transports(self):
        transport = Transport(payload=1024)
        table = flows_of(
            Permutation(size="1KB", transport=transport),
            Permutation(size="2KB", name="second"),
            Permutation(size="3KB", traffic_class="control"),
            Flows(flows=[{"source": 0, "destination": "host5", "size": "1MB"}]),
        )
        assert table.patterns == ("permutation", "second", "permutation-2", "flows")
        assert table.pattern.tolist() == [0] * HOSTS + [1] * HOSTS + [2] * HOSTS + [3]
        assert table.transport == (transport, None, None, None)
        assert table.traffic_class == (None, None, "control", None)
        assert rows(table, "flows") == [(0, 5, 1_000_000, 0)]

    def test_a_name_that_equals_a_kind_keeps_it(self):
        table = flows_of(Permutation(size=1), Uniform(size=1, flows=1, name="permutation"))
        assert table.patterns == ("permutation-2", "permutation")

    def test_start_and_jitter(self):
        table = flows_of(Permutation(size=1, start="5us", jitter="2us", count=50))
        offset = table.start_ps - 5 * US
        assert offset.min() >= 0
        assert offset.max() < 2 * US
        n = len(table)
        assert offset.mean() == pytest.approx(US, abs=3 * 2 * US / math.sqrt(12 * n))
        assert len(np.unique(offset)) > 0.99 * n

    @pytest.mark.parametrize(
        "entry",
        [
            Flows(flows=[Flow(source=0, destination=1, size=1, start=2**60)], start="1us"),
            Permutation(size=1, start=2**60, jitter=2**60),
            Poisson(load=0.5, distribution="websearch", flows=9, start=2**60),
        ],
    )
    def test_no_flow_starts_after_the_clock(self, entry):
        with pytest.raises(SpecError, match="about 13 days") as caught:
            flows_of(Incast(senders=1, size=1), entry)
        assert caught.value.path == "traffic[1].start"

    def test_starts_of_a_file_have_the_same_bound(self, tmp_path):
        file = tmp_path / "flows.csv"
        file.write_text(f"source,destination,size,start\n0,1,1,{2**62}\n")
        with pytest.raises(SpecError, match="about 13 days") as caught:
            flows_of(Flows(file=str(file), start="1s"))
        assert caught.value.path == "traffic[0].start"

    def test_patterns_know_their_entry(self):
        table = flows_of(Permutation(size=1), Incast(senders=2, size=1, victims=1))
        assert [table.pattern_path(pattern) for pattern in range(3)] == [
            "traffic[0]",
            "traffic[1]",
            "traffic[1]",
        ]
        assert table.flow_path(len(table) - 1) == "traffic[1]"
        assert FlowTable.from_arrays(0, 1, size_bytes=1, label="x").flow_path(0) == 'traffic "x"'

    def test_the_seed_decides(self):
        entry = Poisson(load=0.5, distribution="fb_hadoop", flows=200)
        assert rows(flows_of(entry)) == rows(flows_of(entry))
        assert rows(flows_of(entry)) != rows(flows_of(entry, seed=2))

    def test_another_entry_changes_no_draw(self):
        kinds = [
            Permutation(size=7, jitter="1us"),
            Uniform(size=8, flows=3, jitter="1us"),
            Incast(size=9, senders=5, victims=2, jitter="1us"),
            Poisson(load=0.3, distribution="websearch", duration="200us"),
            AllToAll(size=3, jitter="1us"),
        ]
        together = flows_of(*kinds, Permutation(size=70), Incast(size=90, senders=3))
        for entry in kinds:
            alone = flows_of(entry)
            for label in alone.patterns:
                assert rows(together, label) == rows(alone, label)

    def test_two_entries_of_a_kind_differ(self):
        table = flows_of(Permutation(size=1, name="a"), Permutation(size=1, name="b"))
        assert rows(table, "a") != rows(table, "b")


class TestExplicit:
    def write(self, tmp_path, text):
        file = tmp_path / "flows.csv"
        file.write_text(text, encoding="utf-8")
        return str(file)

    def test_scenario_and_file(self, tmp_path):
        file = self.write(
            tmp_path,
            "# a comment\nsource,destination,size,start,name,after\n"
            "host1,2,4MB,1.5us,first,\n3,host4,100,,second,first; inline\n",
        )
        table = flows_of(
            Flows(
                flows=[Flow(source="host9", destination=0, size=10, start="2us", name="inline")],
                file=file,
                start="1us",
            )
        )
        assert rows(table) == [
            (9, 0, 10, 3 * US),
            (1, 2, 4_000_000, 2_500_000),
            (3, 4, 100, US),
        ]
        assert table.names == ("inline", "first", "second")
        assert list(zip(table.after_flow, table.after_predecessor, strict=True)) == [(2, 0), (2, 1)]

    def test_waits_across_entries(self):
        first = Flow(source=0, destination=1, size=1, name="a", after=["b"])
        table = flows_of(
            Permutation(size=1),
            Flows(flows=[first]),
            Flows(flows=[Flow(source=1, destination=2, size=1, name="b")]),
        )
        assert table.after_flow.tolist() == [HOSTS]
        assert table.after_predecessor.tolist() == [HOSTS + 1]
        assert table.names is not None
        assert table.names[HOSTS:] == ("a", "b")

    @pytest.mark.parametrize(
        ("line", "place", "about"),
        [
            ("host99,1,1,0,,", "source", "host0"),
            ("leaf0,1,1,0,,", "source", "host0"),
            ("16,1,1,0,,", "source", "0 to 15"),
            ("1,host01,1,0,,", "destination", "did you mean"),
            ("1,1,1,0,,", "destination", "other than the source"),
            ("1,2,0,0,,", "size", "above 0"),
            ("1,2,12Mb,0,,", "size", "MB"),
            ("1,2,,0,,", "size", "a size"),
            ("1,2,1,-3,,", "start", "not negative"),
            ("1,2,1,0,,nobody", "after", "nobody"),
            ("1,2,1,0", "", "6 values"),
        ],
    )
    def test_errors_name_file_and_line(self, tmp_path, line, place, about):
        file = self.write(tmp_path, f"source,destination,size,start,name,after\n0,1,1,0,x,\n{line}\n")
        with pytest.raises(SpecError, match=about) as caught:
            flows_of(Flows(file=file))
        assert caught.value.path == f"{file}:3 {place}".strip()

    def test_a_missing_file_and_a_wrong_header(self, tmp_path):
        with pytest.raises(SpecError) as caught:
            flows_of(Flows(file=str(tmp_path / "none.csv")))
        assert caught.value.path == "traffic[0].file"
        file = self.write(tmp_path, "src,dst,size,start\n0,1,1,0\n")
        with pytest.raises(SpecError, match="header source,destination,size,start"):
            flows_of(Flows(file=file))

    def test_a_cycle_through_a_file(self, tmp_path):
        file = self.write(tmp_path, "source,destination,size,start,name,after\n0,1,1,0,a,b\n1,2,1,0,b,a\n")
        with pytest.raises(SpecError, match="wait for themselves") as caught:
            flows_of(Flows(file=file))
        assert caught.value.path == f"{file}:2 after"
        assert caught.value.value == '"a" after "b" after "a"'

    def test_a_file_with_only_its_header(self, tmp_path):
        file = self.write(tmp_path, "source,destination,size,start\n")
        for flows in ([], [Flow(source=0, destination=1, size=1)]):
            with pytest.raises(SpecError, match="at least one flow") as caught:
                flows_of(Flows(file=file, flows=flows))
            assert caught.value.path == "traffic[0].file"

    def test_one_name_twice_across_entries(self, tmp_path):
        file = self.write(tmp_path, "source,destination,size,start,name\n0,1,1,0,a\n")
        with pytest.raises(SpecError, match=f"a name that {file}:2 does not have") as caught:
            flows_of(Flows(file=file), Flows(flows=[Flow(source=0, destination=1, size=1, name="a")]))
        assert caught.value.path == "traffic[1].flows[0].name"

    def test_one_name_twice_in_a_file(self, tmp_path):
        file = self.write(tmp_path, "source,destination,size,start,name\n0,1,1,0,a\n\n0,1,1,0,a\n")
        with pytest.raises(SpecError, match=f"a name that {file}:2 does not have") as caught:
            flows_of(Flows(file=file))
        assert caught.value.path == f"{file}:4 name"


class TestPlacement:
    def test_accelerators_belong_to_their_rail(self):
        topology = RailOptimized(servers=3, accelerators_per_server=4, spines=2)
        network = build_network(topology)
        leaves = [network.names[leaf] for leaf in host_leaves(network)]
        assert leaves == [f"leaf{host % 4}" for host in range(12)]
        nic = int(topology.host_link.rate)
        assert host_rates_bps(network).tolist() == [nic] * 12

    def test_a_host_with_two_ports_belongs_to_the_first_leaf(self):
        network = build_network(LeafSpine(leaves=4, spines=1, hosts_per_leaf=2, ports_per_host=2))
        assert [network.names[leaf] for leaf in host_leaves(network)] == ["leaf0"] * 2 + ["leaf2"] * 2

    def test_spreading_takes_leaves_in_turn(self):
        draws = EntryDraws.of_entry(9, kind="incast", occurrence=0)
        leaf = np.array([0, 0, 0, 1, 1, 2])
        order = spread_over_leaves(np.arange(6), leaf=leaf, draws=draws, turn=0)
        assert sorted(order.tolist()) == list(range(6))
        assert sorted(leaf[order[:3]].tolist()) == [0, 1, 2]
        assert sorted(leaf[order[3:5]].tolist()) == [0, 1]
        assert leaf[order[5]] == 0
