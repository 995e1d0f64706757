"""Results: what their columns mean, ideal times, summaries."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
from support_results import TWO_FLOWS, CountedEngine, built, result_of

from fabric.lowered import ROW
from fabric.outcome import ideal_times
from fabric.result import Result
from fabric.simulate import ENGINES, EngineName, run
from fabric.spec import (
    Flow,
    Flows,
    Incast,
    LeafSpine,
    NoCongestionControl,
    Permutation,
    Scenario,
    SingleSwitch,
    Switch,
    Transport,
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
