"""Behaviours that users of other simulators have reported, or that were seen there, and must not be here.

Sources: runs of the HPCC group's ns-3 tree and of csg-htsim and uet-htsim; threads at alibaba-edu/
High-Precision-Congestion-Control (#15 lossless overflow, #43 parallel links), Broadcom/csg-htsim (#9),
aliyun/SimAI (#119, #286), openfabric-systems/simllm (#196, #210). Others of their kind have tests elsewhere:
any rate and number of hops with HPCC (`test_oracle_congestion`), messages beyond 4 GiB (`test_oracle_large`),
a lost tail (`test_oracle_loss`), symmetric senders (`test_oracle_buffers`), parallel links
(`test_oracle_load_balancing`), headroom to the byte (`test_oracle_pfc`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fabric
from fabric.convert import import_files
from fabric.errors import SpecError
from fabric.spec import (
    AllToAll,
    Congestion,
    Dcqcn,
    Dctcp,
    Ecn,
    FixedWindow,
    Flow,
    Flows,
    GoBackN,
    Hpcc,
    Incast,
    LeafSpine,
    Link,
    NoCongestionControl,
    PacketRecord,
    Permutation,
    Pfc,
    Record,
    Routing,
    Run,
    Scenario,
    SelectiveRepeat,
    SingleSwitch,
    Switch,
    Timely,
    TrafficClass,
    Transport,
)
from fabric.units import Duration, Rate, Size

SAMPLES = Path(__file__).parent / "formats"
CONTROLS: dict[str, Congestion] = {
    "none": NoCongestionControl(),
    "window": FixedWindow(window=Size("100KB")),
    "dcqcn": Dcqcn(),
    "dcqcn of 2015": Dcqcn(preset="paper_2015"),
    "dctcp": Dctcp(),
    "timely": Timely(),
    "hpcc": Hpcc(),
}
CHOICES = ("ecmp", "spray_random", "spray_round_robin", "adaptive", "flowlet")


def small(**fields: Any) -> Scenario:
    """Sixteen hosts under four leaves."""
    defaults: dict[str, Any] = {
        "topology": LeafSpine(leaves=4, spines=2, hosts_per_leaf=4),
        "traffic": (Permutation(size=Size("100KB")),),
    }
    return Scenario(**(defaults | fields))


def frames_of(result: fabric.Result, kind: str) -> int:
    return int((result.packets["kind"] == kind).sum())


class TestAcknowledgements:
    @pytest.mark.parametrize(
        ("every", "acks"), [(1, 1000), (4, 250), (16, 63), (999, 2), (1000, 1), (5000, 1)]
    )
    def test_one_for_each_interval_and_one_for_the_end(self, every: int, acks: int) -> None:
        result = fabric.run(
            Scenario(
                topology=SingleSwitch(hosts=2),
                traffic=(Flows(flows=(Flow(source=0, destination=1, size=Size("1MB")),)),),
                transport=Transport(payload=Size(1000), ack_every=every, congestion=NoCongestionControl()),
                record=Record(packets=PacketRecord(ports=("host*",))),
            )
        )
        assert frames_of(result, "DATA") == 1000
        assert frames_of(result, "ACK") == acks
        assert result.status == "FINISHED"

    @pytest.mark.parametrize(("control_class", "queued"), [("control", 128), ("data", 0)])
    def test_their_class_is_chosen_and_seen_in_queues(self, control_class: str, queued: int) -> None:
        """In a class that goes first, ACKs to a host that receives itself wait for one frame: two do."""
        flows = (
            Flow(source=0, destination=1, size=Size("100KB")),
            Flow(source=1, destination=0, size=Size("100KB")),
        )
        result = fabric.run(
            Scenario(
                topology=SingleSwitch(hosts=2),
                traffic=(Flows(flows=flows),),
                transport=Transport(control_class=control_class, congestion=NoCongestionControl()),
            )
        )
        queues = result.classes.where(link="switch0->host*")
        peaks = queues["queue_peak_bytes"][queues["traffic_class"] == "control"]
        assert peaks.max() == queued

    def test_a_message_has_the_frames_that_it_needs(self) -> None:
        for size, frames in ((40_960, 10), (40_961, 11)):
            flows = (Flow(source=0, destination=1, size=Size(size)),)
            result = fabric.run(Scenario(topology=SingleSwitch(hosts=2), traffic=(Flows(flows=flows),)))
            assert result.flows["sent"].tolist() == [frames]


class TestHeadroom:
    """16:1 of 1 MB into 2 MiB over cables of 10 ns to 5 us at 100 Gbit/s."""

    def incast(self, delay: str, headroom: str | int, buffer: str = "2MiB") -> Scenario:
        return Scenario(
            topology=SingleSwitch(
                hosts=17, link=Link(rate=Rate("100Gbps"), delay=Duration(delay), gap=Size(0))
            ),
            traffic=(Incast(senders=16, size=Size("1MB")),),
            switch=Switch(
                buffer=Size(buffer),
                latency=Duration(0),
                pfc=Pfc(headroom=headroom if headroom == "auto" else Size(headroom)),
            ),
            transport=Transport(payload=Size(1000), congestion=NoCongestionControl()),
            record=Record(drops=True),
        )

    @pytest.mark.parametrize("delay", ["10ns", "100ns", "300ns", "1us"])
    def test_what_it_takes_loses_nothing_at_any_length(self, delay: str) -> None:
        result = fabric.run(self.incast(delay, "auto"))
        assert result.status == "FINISHED"
        assert sum(result.drops_by_reason.values()) == 0
        assert result.summary["retransmitted"] == 0

    @pytest.mark.parametrize("delay", ["10ns", "100ns"])
    def test_three_delays_alone_are_too_little_on_short_cables_and_that_is_said(self, delay: str) -> None:
        bytes_of_delay = 100 * int(Duration(delay)) // 8000
        result = fabric.run(self.incast(delay, 3 * bytes_of_delay))
        lost = result.drops_by_reason["headroom full"]
        assert lost > 0
        assert len(result.drops) == lost
        assert set(result.drops["reason"].tolist()) == {"headroom full"}
        assert "headroom" in str(result.summary)
        assert result.status == "FINISHED", "the time-out sends again what was lost"

    def test_more_of_it_than_there_is_memory_is_refused_with_both_numbers(self) -> None:
        with pytest.raises(SpecError, match=r"switch\.buffer: 2MiB .* 17 ports .* 3\.1875MB of headroom"):
            fabric.run(self.incast("5us", 187_500))


class TestEnds:
    @pytest.mark.parametrize("control", CONTROLS)
    def test_finished_flows_cost_nothing(self, control: str) -> None:
        """Neither timers nor probes go on: the run ends with the last ACK, however late its end is set."""
        runs = [
            fabric.run(
                small(transport=Transport(congestion=CONTROLS[control]), run=Run(until=Duration(until)))
            )
            for until in ("10ms", "100s")
        ]
        assert [one.status for one in runs] == ["FINISHED", "FINISHED"]
        assert runs[0].counters == runs[1].counters
        assert runs[0].duration_ps == int(runs[0].flows["completed_ps"].max())

    @pytest.mark.parametrize("control", ["dcqcn", "dcqcn of 2015"])
    def test_the_work_grows_as_the_message_does(self, control: str) -> None:
        hops = []
        for size in ("1MB", "2MB", "4MB"):
            flows = (Flow(source=0, destination=15, size=Size(size)),)
            described = small(
                traffic=(Flows(flows=flows),), transport=Transport(congestion=CONTROLS[control])
            )
            hops.append(fabric.run(described).counters["hops"])
        assert hops[2] - hops[1] == pytest.approx(2 * (hops[1] - hops[0]), abs=8)

    @pytest.mark.parametrize("seed", range(1, 31))
    def test_a_lossy_cable_never_hangs_a_message(self, seed: int) -> None:
        """One in eight of such runs never ends where there is no time-out."""
        result = fabric.run(
            Scenario(
                topology=SingleSwitch(hosts=2, link=Link(rate=Rate("100Gbps"), loss=1e-3)),
                traffic=(Flows(flows=(Flow(source=0, destination=1, size=Size("1MB")),)),),
                transport=Transport(payload=Size(1000)),
                run=Run(seed=seed),
            )
        )
        assert result.status == "FINISHED"

    def test_a_flow_that_waits_for_ever_is_named(self) -> None:
        """Without a time-out, a lost tail stalls the run, which says so, with the flow that is left."""
        lossy = Scenario(
            topology=SingleSwitch(hosts=2, link=Link(loss=0.5)),
            traffic=(Flows(flows=(Flow(source=0, destination=1, size=Size("40KB"), name="left"),)),),
            transport=Transport(reliability=GoBackN(rto=None)),
            run=Run(seed=3),
        )
        result = fabric.run(lossy)
        assert result.status == "STALLED"
        assert "1 of 1 flows not delivered" in str(result.summary)
        assert "left" in str(result.summary)


@pytest.mark.parametrize("control", CONTROLS)
def test_the_same_seed_gives_the_same_bits(control: str) -> None:
    described = small(
        topology=LeafSpine(leaves=4, spines=2, hosts_per_leaf=4, fabric_link=Link(loss=1e-3)),
        transport=Transport(congestion=CONTROLS[control]),
        switch=Switch(ecn=Ecn(kmin=Size("10KB"), kmax=Size("100KB"), pmax=0.5)),
    )
    runs = [fabric.run(described, seed=seed) for seed in (1, 1, 1, 2)]
    assert len({one.fingerprint for one in runs[:3]}) == 1
    assert runs[3].fingerprint != runs[0].fingerprint


TRANSPORTS = [
    (control, selective)
    for control in CONTROLS
    for selective in (False, True)
    if not (selective and control in ("hpcc", "timely"))
]
"""Congestion control, and whether repeat is selective: HPCC and TIMELY have go-back-N alone."""


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize(("control", "selective"), TRANSPORTS)
def test_every_choice_of_paths_goes_with_every_transport(choice: str, control: str, selective: bool) -> None:
    """And all of them honour a start."""
    result = fabric.run(
        small(
            traffic=(Permutation(size=Size("100KB"), start=Duration("50us")),),
            routing=Routing(choice=choice),
            transport=Transport(
                reliability=SelectiveRepeat() if selective else GoBackN(),
                congestion=CONTROLS[control],
            ),
        )
    )
    assert result.status == "FINISHED"
    assert int(result.flows["start_ps"].min()) == 50_000_000
    assert float(result.flows["slowdown"].min()) >= 1


class TestNic:
    def test_a_pair_that_its_window_holds_does_not_wake_its_neighbour_late(self) -> None:
        """A paced queue pair keeps its gap, but for the one frame of the other that it may meet."""
        payload = 1000
        described = Scenario(
            topology=SingleSwitch(hosts=3, link=Link(rate=Rate("100Gbps"), delay=Duration("1us"))),
            switch=Switch(ecn=Ecn(kmin=Size(1), kmax=Size(1), pmax=1.0, mark="enqueue")),
            traffic=(
                Flows(
                    name="held",
                    flows=(Flow(source=0, destination=1, size=Size("200KB")),),
                    transport=Transport(payload=Size(payload), congestion=FixedWindow(window=Size(payload))),
                ),
                Flows(
                    name="paced",
                    flows=(Flow(source=0, destination=2, size=Size("400KB")),),
                    transport=Transport(
                        payload=Size(payload), congestion=Dcqcn(min_rate=Rate("5Gbps"), clamp_target=True)
                    ),
                ),
            ),
            record=Record(packets=PacketRecord(flows=("paced*",)), rates=("paced*",)),
        )
        result = fabric.run(described)
        sent = result.packets.where(link="host0->*", kind="DATA").sort("time_ps")["time_ps"]
        slow_from = int(result.rates["time_ps"][result.rates["rate_bps"] <= 5e9].min())
        risen = result.rates["time_ps"][
            (result.rates["time_ps"] > slow_from) & (result.rates["rate_bps"] > 5e9)
        ]
        until = int(risen.min()) if len(risen) else int(sent.max()) + 1
        gaps = np.diff(sent[(sent > slow_from) & (sent < until)])
        wire = payload + 62 + 20
        paced_ps, frame_ps = wire * 8 * 200, wire * 80
        assert len(gaps) > 50
        assert gaps.max() <= paced_ps + frame_ps
        assert gaps.min() >= paced_ps - frame_ps


class TestClasses:
    @pytest.mark.parametrize("place", range(8))
    def test_any_of_eight_classes_carries_one_queue_pair_on_a_lossy_link(self, place: int) -> None:
        names = [f"class{number}" for number in range(8)]
        result = fabric.run(
            Scenario(
                topology=SingleSwitch(hosts=2, link=Link(loss=1e-4)),
                switch=Switch(classes=tuple(TrafficClass(name=name) for name in names)),
                transport=Transport(data_class=names[place], control_class=names[7 - place]),
                traffic=(Flows(flows=(Flow(source=0, destination=1, size=Size("10MB")),)),),
            )
        )
        assert result.status == "FINISHED"

    def test_control_survives_a_wide_all_to_all_on_small_buffers(self) -> None:
        result = fabric.run(
            small(
                topology=LeafSpine(leaves=4, spines=2, hosts_per_leaf=8),
                traffic=(AllToAll(size=Size("100KB")),),
                switch=Switch(buffer=Size("4MiB"), pfc=Pfc(headroom=Size("150KB"))),
                transport=Transport(congestion=NoCongestionControl()),
            )
        )
        assert result.status == "FINISHED"
        assert sum(result.drops_by_reason.values()) == 0


class TestConnectionMatrices:
    """Failures and triggers of htsim's `.cm` do what they say."""

    def matrix(self, folder: Path, *failures: tuple[str, int, int]) -> Path:
        lines = [
            f"failure switch_type {kind} switch_id {switch} link_id {link}" for kind, switch, link in failures
        ]
        file = folder / "x.cm"
        flows = "0->15 id 1 start 0 size 100000\n9->3 id 2 start 0 size 100000\n"
        file.write_text(
            f"Nodes 16\nConnections 2\nFailures {len(lines)}\n{flows}"
            + "".join(f"{line}\n" for line in lines)
        )
        return file

    @pytest.mark.parametrize("switch", range(4))
    @pytest.mark.parametrize("link", range(4))
    def test_any_link_above_an_aggregation_switch_is_gone_around(
        self, tmp_path: Path, switch: int, link: int
    ) -> None:
        whole = import_files(SAMPLES / "three_tiers.topo", self.matrix(tmp_path))
        failed = import_files(SAMPLES / "three_tiers.topo", self.matrix(tmp_path, ("AGG", switch, link)))
        ends = failed.scenario.topology.overrides[0].match
        assert ends.startswith(f"spine{switch}-core")
        assert failed.network.n_links == whole.network.n_links - 1
        gone = int(whole.network.find_links(ends)[0])
        kept = [row for row in range(whole.network.n_links) if row != gone]
        assert failed.network.link_b.tolist() == whole.network.link_b[kept].tolist()
        result = fabric.run(failed.scenario)
        assert result.status == "FINISHED"
        assert not failed.ignored or all(remark.what != "failure" for remark in failed.ignored)

    def test_its_traffic_takes_the_links_that_are_left(self, tmp_path: Path) -> None:
        failures = [("AGG", 0, link) for link in range(4)]
        imported = import_files(SAMPLES / "three_tiers.topo", self.matrix(tmp_path, *failures))
        assert "spine0-core" not in " ".join(
            f"{imported.network.names[a]}-{imported.network.names[b]}"
            for a, b in zip(imported.network.link_a, imported.network.link_b, strict=True)
        )
        result = fabric.run(imported.scenario)
        assert result.status == "FINISHED"
        assert result.ports.where(link="spine1->core*")["tx_bytes"].sum() > 0

    def test_hosts_that_a_failure_cuts_off_are_named(self, tmp_path: Path) -> None:
        failures = [("TOR", 0, link) for link in range(4)]
        with pytest.raises(SpecError, match=r"topology\.overrides: 'host0 and host4'"):
            import_files(SAMPLES / "three_tiers.topo", self.matrix(tmp_path, *failures))

    @pytest.mark.parametrize(
        ("failure", "message"),
        [
            (("AGG", 4, 0), "x.cm:6: aggregation switch 4 is not allowed; expected one of the 4 "),
            (("AGG", 0, 9), "x.cm:6: link 9 is not allowed; expected one of the 4 links up from spine0"),
            (("CORE", 0, 99), "links down from core0"),
        ],
    )
    def test_a_link_that_is_not_there(
        self, tmp_path: Path, failure: tuple[str, int, int], message: str
    ) -> None:
        with pytest.raises(SpecError) as error:
            import_files(SAMPLES / "three_tiers.topo", self.matrix(tmp_path, failure))
        assert message in str(error.value)

    def test_a_converted_scenario_has_the_failure_too(self, tmp_path: Path) -> None:
        from fabric.convert import save_scenario

        imported = import_files(SAMPLES / "three_tiers.topo", self.matrix(tmp_path, ("AGG", 1, 2)))
        save_scenario(imported, tmp_path / "y.toml")
        assert fabric.run(tmp_path / "y.toml").fingerprint == fabric.run(imported.scenario).fingerprint

    @pytest.mark.parametrize("key", ["send_done_trigger", "recv_done_trigger"])
    def test_a_chain_of_triggers_runs_to_its_end(self, tmp_path: Path, key: str) -> None:
        lines = [f"0->1 id 1 start 0 size 8192 {key} 1"]
        lines += [f"{n}->{n + 1} id {n + 1} trigger {n} size 8192 {key} {n + 1}" for n in range(1, 14)]
        lines += ["14->15 id 15 trigger 14 size 8192"]
        triggers = [f"trigger id {n} oneshot" for n in range(1, 15)]
        head = f"Nodes 16\nConnections {len(lines)}\nTriggers {len(triggers)}\n"
        (tmp_path / "x.cm").write_text(head + "\n".join([*lines, *triggers, ""]))
        result = fabric.run(import_files(SAMPLES / "three_tiers.topo", tmp_path / "x.cm").scenario)
        assert result.status == "FINISHED"
        ends = result.flows["delivered_ps"]
        starts = result.flows["start_ps"]
        assert (starts[1:] >= ends[:-1]).all()
        assert (starts[1:] - ends[:-1]).max() < 10_000_000

    def test_a_barrier_waits_for_all_and_a_one_shot_for_its_flow(self, tmp_path: Path) -> None:
        text = (
            "Nodes 16\nConnections 4\nTriggers 2\n"
            "0->1 id 1 start 0 size 8192 send_done_trigger 1\n"
            "2->1 id 2 start 5000000 size 8192 send_done_trigger 1\n"
            "0->1 id 3 trigger 1 size 8192 send_done_trigger 2\n"
            "0->1 id 4 trigger 2 size 8192\n"
            "trigger id 1 barrier count 2\ntrigger id 2 oneshot\n"
        )
        (tmp_path / "x.cm").write_text(text)
        flows = fabric.run(import_files(SAMPLES / "three_tiers.topo", tmp_path / "x.cm").scenario).flows
        received, started = flows["delivered_ps"].tolist(), flows["start_ps"].tolist()
        assert started[1] == 5_000_000
        assert started[2] >= max(received[:2])
        assert started[3] == flows["completed_ps"].tolist()[2], "its own sender knows when it is complete"
