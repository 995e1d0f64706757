"""Results: what tables hold and how they convert, what a result computes, how it is saved, and runs."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabric.errors import FabricError, SimulationError, SpecError
from fabric.interrupt import InterruptRequest
from fabric.io import directory as directory_io
from fabric.io.optional import MissingDependencyError
from fabric.lower import lower
from fabric.lowered import ROW, Lowered
from fabric.outcome import Built, build_result, ideal_times
from fabric.result import Category, Provenance, Result, Table
from fabric.result.text import by_unit, count_text, percent_text, time_text
from fabric.scenario import load_scenario
from fabric.simulate import ENGINES, EngineName, Simulation, run
from fabric.spec import (
    Flow,
    Flows,
    Incast,
    LeafSpine,
    NoCongestionControl,
    Permutation,
    Pfc,
    QueueRecord,
    Record,
    Run,
    Scenario,
    SingleSwitch,
    Switch,
    ThroughputRecord,
    Transport,
)
from fabric.topology import build_network
from fabric.workload import build_flows

INCAST = Scenario(
    name="incast",
    question="Does it fill?",
    topology=LeafSpine(leaves=2, spines=2, hosts_per_leaf=3),
    traffic=(Incast(receivers=("host0",), senders=4, size="100KB"),),
    switch=Switch(buffer="1MB", pfc=Pfc(xoff="20KB")),
    record=Record(
        queues=QueueRecord(delta=1),
        throughput=ThroughputRecord(interval="10us"),
        rates=("incast",),
        pauses=True,
        marks=True,
        drops=True,
    ),
)


@pytest.fixture(scope="module")
def incast() -> Result:
    return run(INCAST, engine="reference", progress=False)


def flow_table() -> Table:
    return Table(
        {
            "flow": np.arange(3),
            "source": Category(np.array([0, 1, 0]), np.array(["host0", "host1"])),
            "fct_ps": np.array([2_000_000, -1, 1_000_000]),
            "slowdown": [2.0, np.nan, 1.0],
            "name": np.array(["a", "b<i>", "c"]),
        },
        name="flows",
        optional=("fct_ps",),
    )


class TestTable:
    def test_columns_are_arrays_in_order_and_read_only(self) -> None:
        table = flow_table()
        assert len(table) == 3
        assert table.columns == ("flow", "source", "fct_ps", "slowdown", "name")
        assert table["source"].tolist() == ["host0", "host1", "host0"]
        with pytest.raises(ValueError, match="read-only"):
            table["fct_ps"][0] = 5

    def test_an_unknown_column_lists_those_that_there_are(self) -> None:
        with pytest.raises(KeyError, match="'fct'; it has flow, source, fct_ps"):
            flow_table()["fct"]

    def test_columns_must_have_one_length(self) -> None:
        with pytest.raises(ValueError, match="differ in length"):
            Table({"a": [1, 2], "b": [1]})

    def test_rows_are_chosen_by_mask_slice_and_condition(self) -> None:
        table = flow_table()
        assert table[table["fct_ps"] > 0]["flow"].tolist() == [0, 2]
        assert table[1:]["name"].tolist() == ["b<i>", "c"]
        assert table.where(source="host0")["flow"].tolist() == [0, 2]
        assert table.where(source="host*", flow=1)["flow"].tolist() == [1]
        assert table.where(name="[ab]*")["flow"].tolist() == [0, 1]
        assert table[1:].optional == table.optional

    def test_sorting_is_stable_and_puts_nan_last(self) -> None:
        assert flow_table().sort("slowdown")["flow"].tolist() == [2, 0, 1]
        assert flow_table().sort("slowdown", descending=True)["flow"].tolist() == [0, 2, 1]
        assert flow_table().sort("name", descending=True)["name"].tolist() == ["c", "b<i>", "a"]
        ties = Table({"a": [1, 1, 0], "b": [7, 8, 9]})
        assert ties.sort("a")["b"].tolist() == [9, 7, 8]
        assert ties.sort("a", descending=True)["b"].tolist() == [7, 8, 9]
        large = Table({"a": np.array([2**62, 2**62 + 1])})
        assert large.sort("a", descending=True)["a"].tolist() == [2**62 + 1, 2**62]

    def test_a_number_chooses_a_row(self) -> None:
        table = flow_table()
        assert table[0] == next(iter(table))
        assert table[-1]["name"] == table[np.int64(2)]["name"] == "c"
        assert table[[2, 0]]["name"].tolist() == ["c", "a"]
        with pytest.raises(IndexError, match="'flows' has no row 3; it has 3 rows"):
            table[3]
        with pytest.raises(TypeError, match=r"cannot be indexed by 1\.5; expected a column's name, a row"):
            table[1.5]  # type: ignore[call-overload]

    def test_rows_as_dictionaries(self) -> None:
        assert next(iter(flow_table())) == {
            "flow": 0,
            "source": "host0",
            "fct_ps": 2_000_000,
            "slowdown": 2.0,
            "name": "a",
        }

    def test_prints_names_and_quantities(self) -> None:
        lines = repr(flow_table()).split("\n")
        assert lines[0] == "flows: 3 rows"
        assert lines[1].split() == ["flow", "source", "fct_ps", "slowdown", "name"]
        assert lines[2].split() == ["0", "host0", "2us", "2", "a"]
        assert lines[3].split() == ["1", "host1", "-", "-", "b<i>"]

    def test_prints_the_ends_of_long_tables(self) -> None:
        lines = repr(Table({"n": np.arange(1000)})).split("\n")
        assert [line.strip() for line in lines[2:]] == [*"01234", "...", *map(str, range(995, 1000))]

    def test_an_empty_table_prints(self) -> None:
        assert repr(Table({})) == "table: 0 rows"
        assert repr(Table({"a": np.array([], np.int64)})) == "table: 0 rows\na"

    def test_html_is_escaped(self) -> None:
        html = flow_table()._repr_html_()
        assert "<td" in html
        assert "b&lt;i&gt;" in html
        assert "<i>" not in html


class TestConversion:
    def test_pandas_has_missing_values_and_categories(self) -> None:
        pandas = pytest.importorskip("pandas")
        frame = flow_table().to_pandas()
        assert list(frame.columns) == list(flow_table().columns)
        assert frame["fct_ps"].dtype == "Int64"
        assert frame["fct_ps"].isna().tolist() == [False, True, False]
        assert frame["fct_ps"].mean() == 1_500_000
        assert isinstance(frame["source"].dtype, pandas.CategoricalDtype)
        assert frame["source"].tolist() == ["host0", "host1", "host0"]

    def test_pandas_takes_labels_that_are_equal(self) -> None:
        pytest.importorskip("pandas")
        table = Table({"port": Category(np.array([0, 1, 2]), np.array(["a", "b", "a"]))})
        assert table.to_pandas()["port"].tolist() == ["a", "b", "a"]

    def test_arrow_has_nulls_and_dictionaries(self) -> None:
        arrow = pytest.importorskip("pyarrow")
        table = flow_table().to_arrow()
        assert table["fct_ps"].to_pylist() == [2_000_000, None, 1_000_000]
        assert table["source"].to_pylist() == ["host0", "host1", "host0"]
        assert arrow.types.is_dictionary(table["source"].type)
        assert table["name"].to_pylist() == ["a", "b<i>", "c"]

    def test_arrow_readers_take_the_table_itself(self) -> None:
        arrow = pytest.importorskip("pyarrow")
        stream = arrow.RecordBatchReader.from_stream(flow_table())
        assert stream.read_all()["flow"].to_pylist() == [0, 1, 2]

    @pytest.mark.parametrize(
        ("module", "method", "extra"), [("pandas", "to_pandas", "pandas"), ("pyarrow", "to_arrow", "arrow")]
    )
    def test_a_missing_package_names_the_extra(
        self, module: str, method: str, extra: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(MissingDependencyError) as caught:
            getattr(flow_table(), method)()
        assert f"pip install 'fabric-emulator[{extra}]'" in str(caught.value)
        assert isinstance(caught.value, ImportError)


class TestText:
    def test_quantities_are_short(self) -> None:
        assert time_text(83_123_456) == "83.12us"
        assert time_text(-1) == "-"
        assert count_text(999_999) == "999,999"
        assert count_text(12_300_000) == "12.3 million"
        assert count_text(2_500_000_000) == "2.5 billion"
        assert percent_text(0.3141) == "31.4 %"

    def test_the_unit_comes_from_the_name_of_the_column(self) -> None:
        assert by_unit("size_bytes", 1_500) == "1.5KB"
        assert by_unit("rate_bps", 400e9) == "400Gbps"
        assert by_unit("utilisation", 0.5) == "50 %"
        assert by_unit("lossless", True) == "yes"
        assert by_unit("sequence", 2**63) == str(2**63)


class CountedEngine:
    """Stands for an engine: hands out given columns and rows."""

    def __init__(self, lowered: Lowered, *, now_ps: int, rows: Mapping[str, Any] | None = None) -> None:
        shape = (lowered.n_ports, lowered.n_classes)
        flows = lowered.n_flows
        self.now_ps = now_ps
        self._rows = rows or {}
        per_flow = ("sent", "retransmitted", "timeouts", "cnps", "nacks", "marked")
        per_class = ("queue_bytes", "queue_peak_bytes", "queue_marks", "queue_drops", "ingress_bytes")
        per_class += ("headroom_bytes", "headroom_peak_bytes", "pauses_sent", "paused_ps")
        self.values: dict[str, Any] = {
            **{f"flow_{name}_ps": np.full(flows, -1) for name in ("started", "delivered", "completed")},
            **{f"flow_{name}": np.zeros(flows, np.uint64) for name in per_flow},
            **{name: np.zeros(shape, np.int64) for name in per_class},
            "queue_wait_integral": np.zeros(shape),
            "port_tx_bytes": np.zeros(lowered.n_ports, np.int64),
            "drops_by_reason": np.zeros(8, np.uint64),
            "shared_used": np.zeros(lowered.n_nodes, np.int64),
            "counters": {"hops": 10, "end_ps": 900, "fingerprint": 0xABC},
        }

    def run(self, until_ps: int | None = None, max_hops: int | None = None) -> str:
        return "FINISHED"

    def columns(self) -> dict[str, Any]:
        return self.values

    def rows(self, stream: str) -> Any:
        return np.array(self._rows.get(stream, []), dtype=ROW)


def built(scenario: Scenario) -> Built:
    network = build_network(scenario.topology)
    flows = build_flows(scenario, network)
    lowered = lower(scenario, network=network, flows=flows)
    return Built(scenario=scenario, network=network, flows=flows, lowered=lowered)


def result_of(engine: CountedEngine, *, of: Built, status: str = "FINISHED") -> Result:
    provenance = Provenance.here(scenario="", name="", question="", expect="", seed=1, engine="reference")
    return build_result(engine, built=of, status=status, wall_s=2.0, provenance=provenance)


TWO_FLOWS = Scenario(
    topology=SingleSwitch(hosts=3),
    traffic=(
        Flows(
            flows=(
                Flow(source="host0", destination="host2", size="100KB", name="first"),
                Flow(source="host1", destination="host2", size="1KB"),
            )
        ),
    ),
)


class TestDefinitions:
    def test_flow_columns(self) -> None:
        parts = built(TWO_FLOWS)
        engine = CountedEngine(parts.lowered, now_ps=900)
        engine.values["flow_started_ps"] = np.array([1_000_000, 0])
        engine.values["flow_delivered_ps"] = np.array([9_000_000, -1])
        flows = result_of(engine, of=parts).flows
        assert flows["name"].tolist() == ["first", "flows#1"]
        assert flows["source"].tolist() == ["host0", "host1"]
        assert flows["size_bytes"].tolist() == [100_000, 1_000]
        assert flows["fct_ps"].tolist() == [8_000_000, -1]
        ideal = int(flows["ideal_ps"][0])
        assert flows["slowdown"][0] == 8_000_000 / ideal
        assert np.isnan(flows["slowdown"][1])
        assert flows["goodput_bps"][0] == 100_000 * 8 / 8e-6
        assert np.isnan(flows["goodput_bps"][1])

    def test_port_columns(self) -> None:
        parts = built(TWO_FLOWS)
        engine = CountedEngine(parts.lowered, now_ps=0)
        engine.values["counters"]["end_ps"] = 2_000_000
        port = 3
        engine.values["port_tx_bytes"][port] = 50_000
        engine.values["queue_wait_integral"][port] = [4e9, 2e9]
        engine.values["queue_peak_bytes"][port] = [7_000, 9_000]
        engine.values["queue_marks"][port] = [3, 0]
        engine.values["paused_ps"][port] = [500, 700]
        ports = result_of(engine, of=parts).ports
        assert ports["link"].tolist()[port] == "switch0->host0"
        assert ports["tier"][port] == "leaf->host"
        assert ports["utilisation"][port] == pytest.approx(50_000 * 8 / (400e9 * 2e-6), rel=1e-15)
        assert ports["queue_mean_bytes"][port] == 6e9 / 2e6
        assert ports["queue_peak_bytes"][port] == 9_000
        assert ports["marks"][port] == 3
        assert ports["paused_ps"][port] == 700

    def test_thresholds_are_those_of_switch_ports(self) -> None:
        parts = built(TWO_FLOWS)
        classes = result_of(CountedEngine(parts.lowered, now_ps=0), of=parts).classes
        ecn = parts.scenario.switch.ecn
        assert ecn is not None
        data = classes.where(link="switch0->host2", traffic_class="data")
        assert data["ecn_kmin_bytes"].tolist() == [int(ecn.kmin)]
        assert data["ecn_kmax_bytes"].tolist() == [int(ecn.kmax)]
        control = classes.where(link="switch0->host2", traffic_class="control")
        assert control["ecn_kmin_bytes"].tolist() == [-1]
        assert classes.where(link="host0->switch0")["ecn_kmin_bytes"].tolist() == [-1, -1]

    def test_the_duration_is_the_last_arrival_or_the_time_of_the_stop(self) -> None:
        parts = built(TWO_FLOWS)
        engine = CountedEngine(parts.lowered, now_ps=1_234)
        assert result_of(engine, of=parts, status="FINISHED").duration_ps == 900
        assert result_of(engine, of=parts, status="UNTIL").duration_ps == 1_234
        assert result_of(engine, of=parts, status="INTERRUPTED").duration_ps == 1_234

    def test_series_have_names_and_units(self) -> None:
        parts = built(TWO_FLOWS)
        common = {"aux": 0.0, "flow": 0, "sequence": 5, "kind": 0, "class": 0, "mark": 1, "pad": 0}

        def row(**values: Any) -> tuple[Any, ...]:
            full = {"time_ps": 7, "value": 2, "port": 5, **common, **values}
            return tuple(full[name] for name in ROW.names or ())

        rows = {
            "pause": [row(value=-1)],
            "rate": [row(aux=5e9, value=16)],
            "drop": [row(value=4, kind=4, flow=0xFFFFFFFF)],
            "packet": [row(value=4158, kind=1)],
        }
        result = result_of(CountedEngine(parts.lowered, now_ps=0, rows=rows), of=parts)
        assert list(result.pauses) == [
            {"begin_ps": 7, "end_ps": -1, "link": "switch0->host2", "traffic_class": "data"}
        ]
        assert next(iter(result.rates))["rate_bps"] == 5e9
        assert next(iter(result.rates))["name"] == "first"
        drop = next(iter(result.drops))
        assert (drop["reason"], drop["kind"], drop["name"]) == ("pool full", "PFC", "")
        packet = next(iter(result.packets))
        assert (packet["kind"], packet["size_bytes"], packet["marked"]) == ("ACK", 4158, True)
        assert len(result.queue) == len(result.marks) == 0

    def test_unrecorded_tables_are_empty_and_said_to_be(self, incast: Result) -> None:
        expected = {"queue", "throughput", "rates", "pauses", "marks", "drops"}
        assert incast.recorded == expected
        assert len(incast.packets) == 0


class TestBoundedRuns:
    @pytest.mark.parametrize("engine", ENGINES)
    def test_no_link_is_busy_for_longer_than_the_run(self, engine: EngineName) -> None:
        scenario = Scenario(topology=SingleSwitch(hosts=3), traffic=(Incast(senders=2, size="100KB"),))
        result = run(scenario, engine=engine, until="100ns")
        sends = result.ports["tx_bytes"] > 0
        assert result.ports["tx_bytes"].max() * 8 * 10 / 4 > result.duration_ps, "more than fits"
        assert result.ports["utilisation"][sends].tolist() == [1.0] * 2


class TestIdealTimes:
    @pytest.mark.parametrize("cut_through", [False, True])
    @pytest.mark.parametrize(
        ("destination", "size"), [("host1", "1B"), ("host1", "100KB"), ("host5", "123457B")]
    )
    def test_a_lone_flow_takes_exactly_the_ideal_time(
        self, destination: str, size: str, cut_through: bool
    ) -> None:
        scenario = Scenario(
            topology=LeafSpine(leaves=2, spines=2, hosts_per_leaf=3),
            switch=Switch(cut_through=cut_through),
            transport=Transport(congestion=NoCongestionControl()),
            traffic=(Flows(flows=(Flow(source="host0", destination=destination, size=size, start="3us"),)),),
        )
        flows = run(scenario, engine="reference", progress=False).flows
        assert flows["start_ps"].tolist() == [3_000_000]
        assert flows["fct_ps"].tolist() == flows["ideal_ps"].tolist()
        assert flows["slowdown"].tolist() == [1.0]

    def test_no_flow_beats_it(self, incast: Result) -> None:
        assert (incast.flows["slowdown"] >= 1).all()
        assert incast.flows["slowdown"].max() > 2

    def test_a_flow_without_a_path_has_none(self) -> None:
        lowered = built(TWO_FLOWS).lowered
        cut = dataclasses.replace(lowered, route_entry=np.zeros_like(lowered.route_entry))
        assert ideal_times(cut).tolist() == [-1, -1]


class TestSummary:
    def test_headline_numbers(self, incast: Result) -> None:
        summary = incast.summary
        fct = np.sort(incast.flows["fct_ps"])
        assert (summary["hosts"], summary["switches"], summary["cables"]) == (6, 4, 10)
        assert (summary["flows"], summary["flow_bytes"]) == (4, 400_000)
        assert summary["fct_ps"] == {
            "count": 4,
            "mean": float(fct.mean()),
            "p50": fct[1],
            "p99": fct[3],
            "max": fct[3],
        }
        assert summary["marks"] == len(incast.marks)
        assert summary["drops"]["pool full"] == 0
        lengths = incast.pauses["end_ps"] - incast.pauses["begin_ps"]
        assert summary["pauses"]["paused_ps"] == int(lengths.sum())
        assert sum(summary["pauses"]["paused_by_tier"].values()) == summary["pauses"]["paused_ports"]
        assert json.loads(json.dumps(summary.to_dict(), allow_nan=False)) == summary.to_dict()

    def test_the_slowest_come_first_and_the_undelivered_before_them(self) -> None:
        parts = built(TWO_FLOWS)
        engine = CountedEngine(parts.lowered, now_ps=900)
        engine.values["flow_started_ps"] = np.array([0, 0])
        engine.values["flow_delivered_ps"] = np.array([9_000_000, -1])
        result = result_of(engine, of=parts, status="STALLED")
        assert [flow["name"] for flow in result.summary["slowest_flows"]] == ["flows#1", "first"]
        assert result.summary["slowest_flows"][0]["slowdown"] is None
        assert result.stopped == "nothing is left to happen, 1 of 2 flows not delivered"

    def test_every_pattern_has_completion_times(self) -> None:
        scenario = Scenario(
            topology=SingleSwitch(hosts=6),
            traffic=(Incast(senders=2, size="4KB", victims=1), Permutation(size="64KB")),
        )
        result = run(scenario, engine="reference", progress=False)
        patterns = result.summary["patterns"]
        assert {name: part["flows"] for name, part in patterns.items()} == {
            "incast": 2,
            "incast-victims": 1,
            "permutation": 6,
        }
        for name, part in patterns.items():
            own = result.flows.where(pattern=name)
            assert part["fct_ps"]["max"] == own["fct_ps"].max()
            assert any(line.split()[:2] == [name, str(len(own))] for line in str(result).split("\n"))

    def test_long_texts_are_broken_into_lines(self, incast: Result) -> None:
        words = "a question of many words " * 20
        origin = dataclasses.replace(incast.provenance, question=words, expect=words)
        text = str(dataclasses.replace(incast, provenance=origin))
        assert max(map(len, text.split("\n"))) <= 120
        assert " ".join(text.split()).count(words.strip()) == 2

    def test_prints_a_table_that_names_things(self, incast: Result) -> None:
        text = str(incast)
        assert text.startswith("incast: Does it fill?\n")
        for part in ("6 hosts, 4 switches, 10 cables, 4 flows, 400KB", "-> host0", "every flow is complete"):
            assert part in text
        assert max(map(len, text.split("\n"))) <= 120

    def test_a_run_without_deliveries_has_a_summary(self) -> None:
        parts = built(TWO_FLOWS)
        result = result_of(CountedEngine(parts.lowered, now_ps=5), of=parts, status="UNTIL")
        assert "no flow was delivered" in str(result)
        assert result.summary["fct_ps"]["p99"] is None

    def test_html_holds_the_same_lines(self, incast: Result) -> None:
        html = incast._repr_html_()
        assert "incast: Does it fill?" in html
        assert "host0" in html


class TestSaving:
    def test_a_loaded_result_is_the_saved_one(self, incast: Result, tmp_path: Path) -> None:
        incast.save(tmp_path / "deep" / "run")
        loaded = Result.load(tmp_path / "deep" / "run")
        assert str(loaded) == str(incast)
        assert loaded.provenance == incast.provenance
        assert loaded.fingerprint == incast.fingerprint
        assert loaded.recorded == incast.recorded
        for name, table in incast.tables.items():
            other = loaded.tables[name]
            assert (other.columns, other.optional, other.name) == (table.columns, table.optional, table.name)
            for column in table.columns:
                np.testing.assert_array_equal(other[column], table[column], err_msg=f"{name}.{column}")
                assert other[column].dtype == table[column].dtype

    def test_the_scenario_is_saved_whole(self, incast: Result, tmp_path: Path) -> None:
        incast.save(tmp_path / "run")
        assert load_scenario(tmp_path / "run" / "scenario.toml") == INCAST

    def test_files_are_readable_without_fabric(self, incast: Result, tmp_path: Path) -> None:
        incast.save(tmp_path / "run", pictures={"queues.png": b"image"})
        assert sorted(os.listdir(tmp_path / "run")) == [
            "queues.png",
            "scenario.toml",
            "summary.json",
            "tables.npz",
        ]
        meta = json.loads((tmp_path / "run" / "summary.json").read_text())
        assert meta["summary"]["fct_ps"]["max"] == int(incast.flows["fct_ps"].max())
        arrays = np.load(tmp_path / "run" / "tables.npz", allow_pickle=False)
        assert arrays["flows/size_bytes"].tolist() == [100_000] * 4
        assert "flows/fct_ps?" in arrays.files

    @pytest.mark.parametrize("in_one_step", [True, False])
    def test_an_older_result_is_replaced(
        self, incast: Result, tmp_path: Path, in_one_step: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not in_one_step:
            monkeypatch.setattr(directory_io, "_exchange", lambda one, other: False)
        incast.save(tmp_path / "run", pictures={"mine.png": b"old"})
        dataclasses.replace(incast, status="UNTIL").save(tmp_path / "run")
        assert Result.load(tmp_path / "run").status == "UNTIL"
        assert os.listdir(tmp_path) == ["run"]
        assert not (tmp_path / "run" / "mine.png").exists()

    def test_an_empty_directory_is_used(self, incast: Result, tmp_path: Path) -> None:
        (tmp_path / "run").mkdir()
        incast.save(tmp_path / "run")
        assert Result.load(tmp_path / "run").status == "FINISHED"

    @pytest.mark.parametrize("name", ["notes.txt", "photo.png"])
    def test_what_is_not_a_result_is_kept(self, incast: Result, tmp_path: Path, name: str) -> None:
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / name).write_text("mine")
        with pytest.raises(FabricError, match="not a fabric result"):
            incast.save(tmp_path / "other")
        incast.save(tmp_path / "run")
        (tmp_path / "run" / name).write_text("mine")
        with pytest.raises(FabricError, match=name):
            incast.save(tmp_path / "run")
        assert (tmp_path / "run" / name).read_text() == "mine"
        (tmp_path / "file").write_text("mine")
        with pytest.raises(FabricError, match="not a directory"):
            incast.save(tmp_path / "file")

    @pytest.mark.parametrize("call", ["fsync", "rename"])
    def test_a_failure_leaves_the_old_result_whole(
        self, incast: Result, tmp_path: Path, call: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        incast.save(tmp_path / "run")
        before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
        monkeypatch.setattr(directory_io, "_exchange", lambda one, other: False)
        original, calls = getattr(os, call), []

        def second_call_fails(*arguments: Any) -> Any:
            calls.append(arguments)
            if len(calls) == 2:
                raise OSError(28, "No space left on device")
            return original(*arguments)

        monkeypatch.setattr(os, call, second_call_fails)
        with pytest.raises(FabricError, match="No space left on device"):
            dataclasses.replace(incast, status="UNTIL").save(tmp_path / "run")
        assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before
        assert os.listdir(tmp_path) == ["run"]

    def test_pictures_are_files_of_the_directory(self, incast: Result, tmp_path: Path) -> None:
        with pytest.raises(FabricError, match="cannot save a picture"):
            incast.save(tmp_path / "run", pictures={"../escape.png": b""})
        assert os.listdir(tmp_path) == []

    def test_damage_is_an_error_that_names_the_directory(self, incast: Result, tmp_path: Path) -> None:
        with pytest.raises(FabricError, match="not a fabric result"):
            Result.load(tmp_path / "nowhere")
        incast.save(tmp_path / "run")
        tables = tmp_path / "run" / "tables.npz"
        content = tables.read_bytes()
        for broken in (content[: len(content) // 2], b"", content.replace(b"flows/", b"FLOWS/")):
            tables.write_bytes(broken)
            with pytest.raises(FabricError, match="run: damaged result"):
                Result.load(tmp_path / "run")
        tables.unlink()
        with pytest.raises(FabricError, match="damaged result"):
            Result.load(tmp_path / "run")

    def test_another_format_is_refused(self, incast: Result, tmp_path: Path) -> None:
        incast.save(tmp_path / "run")
        summary = tmp_path / "run" / "summary.json"
        summary.write_text(summary.read_text().replace("fabric-result-1", "fabric-result-9"))
        with pytest.raises(FabricError, match="'fabric-result-9', expected 'fabric-result-1'"):
            Result.load(tmp_path / "run")


class TestSimulation:
    def test_cutting_a_run_into_pieces_changes_nothing(self, incast: Result) -> None:
        simulation = Simulation(INCAST, engine="reference")
        assert simulation.step(hops=7) == "BUDGET"
        assert simulation.run(until="5us") == "UNTIL"
        assert simulation.now == 5_000_000
        assert simulation.result().duration_ps == 5_000_000
        while simulation.step(hops=50) == "BUDGET":
            pass
        result = simulation.result()
        assert result.status == "FINISHED"
        assert result.fingerprint == incast.fingerprint
        for name, table in incast.tables.items():
            for column in table.columns:
                np.testing.assert_array_equal(result.tables[name][column], table[column])

    def test_overrides_are_part_of_the_provenance(self) -> None:
        result = run(INCAST, engine="reference", until="8us", seed=7, progress=False)
        scenario = load_scenario(result.provenance.scenario)
        assert (result.status, result.duration_ps) == ("UNTIL", 8_000_000)
        assert scenario.run == Run(seed=7, until="8us")
        assert result.provenance.seed == 7
        again = run(scenario, engine="reference", progress=False)
        assert again.fingerprint == result.fingerprint

    def test_another_seed_is_another_run(self, incast: Result) -> None:
        assert run(INCAST, engine="reference", seed=2, progress=False).fingerprint != incast.fingerprint

    def test_what_cannot_be_run_is_said(self) -> None:
        with pytest.raises(SpecError, match="until: '5xs' is not allowed"):
            run(INCAST, engine="reference", until="5xs")
        with pytest.raises(SpecError, match='expected "native" or "reference"'):
            Simulation(INCAST, engine="fast")  # type: ignore[arg-type]
        with pytest.raises(SpecError, match="hops: 0"):
            Simulation(INCAST, engine="reference").step(hops=0)

    def test_ctrl_c_keeps_what_was_recorded_and_the_run_can_go_on(
        self, incast: Result, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        simulation = Simulation(INCAST, engine="reference")
        simulation._chunk_hops = 100
        engine_run, chunks = simulation._engine.run, []

        def interrupted(**bounds: Any) -> str:
            chunks.append(bounds)
            if len(chunks) == 2:
                signal.raise_signal(signal.SIGINT)
            return engine_run(**bounds)

        monkeypatch.setattr(simulation._engine, "run", interrupted)
        handler = signal.getsignal(signal.SIGINT)
        assert simulation.run() == "INTERRUPTED"
        assert signal.getsignal(signal.SIGINT) is handler
        assert [bounds["until_ps"] for bounds in chunks[2:]] == [simulation.now], "its window is finished"
        partial = simulation.result()
        assert partial.status == "INTERRUPTED"
        assert 0 < partial.counters["hops"] < incast.counters["hops"]
        assert len(partial.queue) > 0
        assert "interrupted at" in str(partial)
        assert simulation.run() == "FINISHED"
        assert simulation.result().fingerprint == incast.fingerprint

    def test_chunks_follow_the_speed_of_the_engine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        simulation = Simulation(INCAST, engine="reference")
        clock = iter(range(10**6))
        monkeypatch.setattr("fabric.simulate.time.perf_counter", lambda: next(clock) * 0.1)
        simulation._chunk_hops = 10_000
        simulation._run_chunk(until_ps=1)
        assert simulation._chunk_hops == pytest.approx(2_000, abs=1)

    def test_a_file_is_loaded(self, incast: Result, tmp_path: Path) -> None:
        incast.save(tmp_path / "run")
        file = tmp_path / "run" / "scenario.toml"
        for name in (file, str(file)):
            assert run(name, engine="reference").fingerprint == incast.fingerprint

    @pytest.mark.parametrize("scenario", [None, 3, {"topology": {}}])
    def test_what_is_no_scenario_is_said(self, scenario: Any) -> None:
        with pytest.raises(SpecError, match=r"scenario: .* expected a Scenario, or the name of a"):
            run(scenario)

    def test_a_simulation_shows_where_it_stands(self) -> None:
        simulation = Simulation(INCAST, engine="reference")
        simulation.run(until="5us")
        assert repr(simulation) == "<Simulation incast: 6 hosts, 4 flows, reference engine, UNTIL at 5us>"

    def test_totals_survive_that_memory_runs_out(
        self, incast: Result, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        simulation = Simulation(INCAST, engine="reference")
        simulation.step(hops=300)

        def fail(*arguments: Any, **options: Any) -> Any:
            raise SimulationError("memory has run out")

        for name in ("run", "rows"):
            monkeypatch.setattr(simulation._engine, name, fail)
        with pytest.raises(SimulationError, match="memory has run out"):
            simulation.run()
        with pytest.warns(UserWarning, match="memory has run out: what was recorded of drops, .* is lost"):
            result = simulation.result()
        assert result.counters["hops"] == 300
        assert result.flows["sent"].sum() > 0
        assert len(result.queue) == 0
        assert result.recorded == frozenset()
        assert "the run was left at" in str(result)

    def test_progress_is_shown_when_asked_for(self, capfd: pytest.CaptureFixture[str]) -> None:
        simulation = Simulation(INCAST, engine="reference")
        simulation.run(progress=True)
        shown = capfd.readouterr().err
        assert "of 4 flows delivered" in shown
        assert "hops/s" in shown
        run(INCAST, engine="reference")
        assert capfd.readouterr().err == ""


class TestInterruptRequest:
    def test_the_second_signal_is_a_keyboard_interrupt(self) -> None:
        with InterruptRequest() as request:
            signal.raise_signal(signal.SIGINT)
            assert request.requested
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)

    def test_other_threads_leave_signals_alone(self) -> None:
        handler, seen = signal.getsignal(signal.SIGINT), []

        def use() -> None:
            with InterruptRequest() as request:
                seen.append((request.requested, signal.getsignal(signal.SIGINT) is handler))

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        assert seen == [(False, True)]
