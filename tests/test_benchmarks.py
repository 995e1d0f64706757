"""The benchmarks measure what they say: cases, tables, counts and peers, at reduced size and untimed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import child, instructions, peers
from benchmarks.cases import CASES, COLLECTIVES, Case, case_named
from benchmarks.instructions import Count, CountError, count_instructions, own_instructions, total_of
from benchmarks.measure import Memory, Speed, measure_memory, measure_speed, payload_bytes
from benchmarks.peer_work import WORKS, Work, as_data
from benchmarks.run import Row, collective_table, main, memory_table, speed_table
from benchmarks.tables import table_text
from fabric._core import Engine
from fabric.lower import lower
from fabric.lowered import Lowered
from fabric.spec import Dcqcn
from fabric.units import Size

SMALL = Size("12KB")
FRAMES = 3
HOSTS = {
    "permutation-128": 128,
    "permutation-1024": 1024,
    "permutation-1024-ack16": 1024,
    "ring-1024": 1024,
    "incast-1024": 1024,
    "permutation-8192": 8192,
}
FLOWS = HOSTS | {"incast-1024": 8 * 64}

CALLGRIND = """\
version: 1
events: Ir
fn=(1) run
10 250
calls=1 20
11 900
* 50
fn=(2) advance
+3 900
fn=(1)
12 7
totals: 1207
"""


@pytest.fixture(scope="module")
def lowered() -> dict[str, Lowered]:
    return {case.name: lower(case.scenario(flow_bytes=SMALL)) for case in CASES}


def test_every_goal_has_a_case() -> None:
    goals = {case.name: (case.must, case.aim) for case in CASES if case.must is not None}
    assert goals == {
        "permutation-128": (20e6, 35e6),
        "permutation-1024": (15e6, 25e6),
        "ring-1024": (30e6, 50e6),
        "incast-1024": (12e6, 20e6),
        "permutation-8192": (8e6, 18e6),
    }
    assert {case.name: case.hosts for case in CASES} == HOSTS


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cases_are_the_fabric_that_the_goals_name(case: Case, lowered: dict[str, Lowered]) -> None:
    arrays = lowered[case.name]
    assert arrays.n_hosts == HOSTS[case.name]
    assert arrays.n_flows == FLOWS[case.name]
    assert set(arrays.port_rate_bps.tolist()) == {400_000_000_000}
    assert set(arrays.port_delay_ps.tolist()) == {1_000_000}
    assert set(arrays.flow_frames.tolist()) == {FRAMES}
    assert arrays.transports["payload_bytes"].tolist() == [4096]
    assert isinstance(case.transport.congestion, Dcqcn)
    data_class = arrays.profiles[arrays.port_profile.reshape(arrays.n_ports, -1)[-1, 0]]
    assert data_class["lossless"] == 1
    assert data_class["ecn_mode"] != 0


def test_collectives_are_measured_when_named() -> None:
    """A ring of 128 sends 2 * 127 vectors in all, and its tables count as memory of the scenario."""
    assert {case.name: case.hosts for case in COLLECTIVES} == {
        "all-reduce-128": 128,
        "all-reduce-1024": 1024,
        "all-reduce-1024-shuffled": 1024,
        "all-to-all-v-512": 1024,
        "all-reduce-8192": 8192,
    }
    assert {case.name: case.must for case in COLLECTIVES if case.must} == {"all-reduce-1024": 30e6}
    scenario = case_named("all-reduce-128").scenario(flow_bytes=Size("64KB"))
    speed = measure_speed(scenario, repeat=1)
    assert speed.payload_bytes == 2 * 127 * 64_000
    assert speed.collective_bytes == 64_000
    assert 0 < speed.collective_ps <= speed.simulated_ps
    memory, program = measure_memory(scenario), lower(scenario).program
    assert program is not None
    assert memory.arrays > program.transfer_lane.nbytes + program.transfer_next.nbytes


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cases_run_to_their_end(case: Case, lowered: dict[str, Lowered]) -> None:
    engine = Engine(lowered[case.name])
    assert engine.run() == "FINISHED"
    columns = engine.columns()
    assert columns["drops_by_reason"].sum() == 0
    acks = 1 if "ack16" in case.name else FRAMES
    paths = engine.hops / (FLOWS[case.name] * (FRAMES + acks))
    assert 2 <= paths <= 6, "links of a path, on average"


def test_ring_congests_nowhere_and_incast_pauses() -> None:
    ring = Engine(lower(case_named("ring-1024").scenario(flow_bytes=Size("40KB"))))
    ring.run()
    assert ring.columns()["queue_marks"].sum() == 0
    assert ring.columns()["queue_peak_bytes"].max() < 4 * 4158
    incast = case_named("incast-1024")
    engine = Engine(lower(incast.scenario(flow_bytes=incast.counted_flow_bytes)))
    engine.run()
    assert engine.columns()["pauses_sent"].sum() > 0
    assert engine.columns()["drops_by_reason"].sum() == 0


def test_idle_scenario_sends_one_frame() -> None:
    engine = Engine(lower(case_named("permutation-1024").idle_scenario()))
    engine.run()
    assert engine.hops == 8


def test_payload_is_that_of_the_flows(lowered: dict[str, Lowered]) -> None:
    assert payload_bytes(lowered["permutation-128"]) == 128 * SMALL
    assert payload_bytes(lowered["incast-1024"]) == 8 * 64 * SMALL


def test_measurements_describe_the_run() -> None:
    case = case_named("permutation-128")
    scenario = case.scenario(flow_bytes=SMALL)
    speed = measure_speed(scenario, repeat=2)
    assert len(speed.run_s) == 2
    assert speed.payload_bytes == 128 * SMALL
    assert speed.hops == Speed(**vars(measure_speed(scenario, repeat=1))).hops
    memory = measure_memory(scenario)
    assert memory.arrays == sum(
        array.nbytes for array in vars(lower(scenario)).values() if isinstance(array, np.ndarray)
    )
    if memory.built is not None:
        assert memory.peak is not None
        assert memory.peak >= memory.built > 0


def test_run_prints_tables_and_writes_json(tmp_path: Path) -> None:
    written: list[str] = []
    file = tmp_path / "figures.json"
    arguments = ["--case", "permutation-128", "--repeat", "2", "--flow-bytes", "12KB", "--json", str(file)]
    main(arguments, write=written.append)
    machine, speed, memory = written
    assert "cores" in machine
    header, row = speed.splitlines()
    assert header.split()[:2] == ["case", "hops"]
    assert row.split()[0] == "permutation-128"
    assert memory.splitlines()[-1].split()[:2] == ["permutation-128", "128"]
    (figures,) = json.loads(file.read_text())["cases"]
    assert figures["must_hops_per_s"] == 20e6
    assert len(figures["speed"]["run_s"]) == 2
    assert f"{figures['speed']['hops']:,}" in row


@pytest.mark.parametrize(("seconds", "verdict"), [(1.0, "aim"), (1.5, "must"), (3.0, "no")])
def test_verdict_is_that_of_the_best_repetition(seconds: float, verdict: str) -> None:
    speed = Speed(
        hops=40_000_000,
        payload_bytes=10**9,
        simulated_ps=1,
        run_s=[9.0, seconds, 9.5],
        lower_s=0.0,
        build_s=0.0,
    )
    case = case_named("permutation-128")
    row = Row(case=case, speed=speed, idle=None, loaded=None)
    cells = speed_table([row]).splitlines()[1].split()
    assert cells[2:5] == [f"{seconds:.4f}", "9.0000", "9.5000"]
    assert cells[8] == verdict


@pytest.mark.parametrize(
    ("idle", "loaded", "met"), [(128_000, 2_000_000, "yes"), (128_001, 2_000_000, "no"), (None, None, "-")]
)
def test_memory_is_per_host_and_judged(idle: int | None, loaded: int | None, met: str) -> None:
    speed = Speed(hops=1, payload_bytes=1, simulated_ps=1, run_s=[1.0], lower_s=0.0, build_s=0.0)
    rows = [
        Row(
            case=case_named("permutation-128"),
            speed=speed,
            idle=Memory(hosts=128, arrays=1280, built=idle, peak=idle),
            loaded=Memory(hosts=128, arrays=1280, built=idle, peak=loaded),
        )
    ]
    cells = memory_table(rows).splitlines()[1].split()
    assert cells[2] == "10"
    assert cells[-1] == met


def test_collectives_have_a_table_of_what_they_took() -> None:
    """8 MB in 1 ms are 8 GB/s, and busbw is 2 * 127 / 128 times that."""
    speed = Speed(
        **{"hops": 1, "payload_bytes": 1, "simulated_ps": 1, "run_s": [1.0], "lower_s": 0.0, "build_s": 0.0},
        collective_ps=10**9,
        collective_bytes=8 * 10**6,
    )
    loaded = Memory(hosts=128, arrays=1_000_000, built=0, peak=2_000_000)
    row = Row(case=case_named("all-reduce-128"), speed=speed, idle=loaded, loaded=loaded)
    cells = collective_table([row]).splitlines()[1].split()
    assert cells == ["all-reduce-128", "all_reduce", "ring", "128", "8MB", "1,000.0", "8.00", "15.88", "3.0"]
    unread = Row(case=row.case, speed=speed, idle=None, loaded=None)
    assert collective_table([unread]).splitlines()[1].split()[-1] == "-"


def test_tables_align_and_refuse_ragged_rows() -> None:
    assert table_text(["a", "b"], [["x", "10"], ["yy", "7"]]) == "a    b\nx   10\nyy   7"
    with pytest.raises(ValueError, match="zip"):
        table_text(["a", "b"], [["x"]])


def test_callgrind_files_are_summed() -> None:
    assert total_of(CALLGRIND) == 1207
    assert total_of("events: Ir\n") == 0
    assert own_instructions(CALLGRIND) == {"run": 307, "advance": 900}


def test_missing_valgrind_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(SystemExit) as stop:
        instructions.main(["--case", "permutation-128"])
    assert str(stop.value).startswith("instructions: valgrind is not installed")
    assert "\n" not in str(stop.value)


def test_nothing_counted_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fake_valgrind(command: list[str]) -> str:
        (option,) = [each for each in command if each.startswith("--callgrind-out-file=")]
        Path(option.partition("=")[2]).write_text("events: Ir\ntotals: 0\n")
        return "{}"

    monkeypatch.setattr("shutil.which", lambda name: "/usr/bin/valgrind")
    monkeypatch.setattr(instructions, "run_process", fake_valgrind)
    case = case_named("permutation-128")
    with pytest.raises(CountError, match="counted nothing"):
        count_instructions(case, flow_bytes=SMALL)


def test_counts_are_per_hop() -> None:
    count = Count(
        case=case_named("ring-1024"),
        flow_bytes=SMALL,
        hops=10,
        instructions=2_345,
        functions=own_instructions(CALLGRIND),
    )
    assert instructions.instructions_table([count]).splitlines()[1].split() == [
        "ring-1024", "12KB", "10", "2,345", "234.5",
    ]  # fmt: skip
    assert instructions.functions_table(count, rows=1).splitlines()[1].split() == ["advance", "90.0"]


def test_failing_children_are_reported() -> None:
    with pytest.raises(child.ChildError, match="no such case"):
        child.run_process([sys.executable, "-c", "raise SystemExit('no such case')"])


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.name)
def test_peers_get_connected_paths(work: Work) -> None:
    data = as_data(work.lowered())
    assert sorted(flow["destination"] for flow in data["flows"]) == list(range(16))
    for flow in data["flows"]:
        nodes = [data["port_node"][port] for port in flow["ports"]]
        ends = [data["port_end"][port] for port in flow["ports"]]
        assert nodes[0] == flow["source"]
        assert ends[-1] == flow["destination"]
        assert nodes[1:] == ends[:-1]
    fabric = peers.run_fabric(work, repeat=1)
    assert fabric.delivered == sum(flow["packets"] for flow in data["flows"])
    assert fabric.control_hops >= fabric.hops, "an ACK for every packet, the same way back"


def test_missing_peer_is_one_line(tmp_path: Path) -> None:
    script = tmp_path / "peer.py"
    script.write_text(f"import sys\nsys.exit({peers.NOT_INSTALLED})\n")
    peer = peers.Peer(name="other", package="other-simulator", script=script, option="--other-python")
    with pytest.raises(peers.PeerMissing, match="pip install other-simulator") as missing:
        peers.run_peer(peer, WORKS[0], python=sys.executable, repeat=1)
    assert "\n" not in str(missing.value)
    with pytest.raises(peers.PeerMissing, match="cannot start"):
        peers.run_peer(peer, WORKS[0], python=str(tmp_path / "no-python"), repeat=1)


def test_peer_must_deliver_everything(tmp_path: Path) -> None:
    script = tmp_path / "peer.py"
    script.write_text("""print('{"run_s": 1.0, "hops": 5, "delivered": 4}')""")
    peer = peers.Peer(name="other", package="other", script=script, option="--other-python")
    with pytest.raises(RuntimeError, match="delivered 4 of"):
        peers.run_peer(peer, WORKS[0], python=sys.executable, repeat=1)


def test_peers_are_compared_by_delivered_packet() -> None:
    fabric = peers.Sample(name="fabric", hops=100, control_hops=100, delivered=50, run_s=0.001)
    other = peers.Sample(name="other", hops=100, control_hops=0, delivered=50, run_s=0.2)
    rows = peers.peers_table([fabric, other]).splitlines()
    assert rows[1].split()[-1] == "1"
    assert rows[2].split()[-1] == "200"
