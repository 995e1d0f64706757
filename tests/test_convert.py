"""Scenarios from files of other simulators, and files of theirs from results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fabric
from fabric.cli import main
from fabric.convert import fct_text, import_files, network_spec, pfc_text, save_scenario
from fabric.convert.hpcc_results import host_address
from fabric.convert.path_times import PathTimes
from fabric.errors import FabricError, SpecError
from fabric.lower import lower
from fabric.spec import Dcqcn, Dctcp, FixedWindow, Hpcc, NoCongestionControl, Timely
from fabric.spec.ns3_hpcc import ns3_hpcc
from fabric.topology import build_network
from fabric.workload import build_flows

SAMPLES = Path(__file__).parent / "formats"
CONFIG = (SAMPLES / "config.txt").read_text()
ONE_SWITCH = "3 1 2\n2\n0 2 100Gbps 1000ns 0\n1 2 100Gbps 1000ns 0\n"


def write_case(
    folder: Path, *, topology: str = ONE_SWITCH, flows: str | None = None, config: str = CONFIG
) -> list[Path]:
    """Write the three files of a run and return their names."""
    texts = {
        "topology.txt": topology,
        "flow.txt": flows or "1\n0 1 3 100 1000 2.000000000\n",
        "config.txt": config,
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return [folder / name for name in texts]


def with_setting(key: str, value: str) -> str:
    """The sample configuration with another value of a key; without the key if the value is empty."""
    lines = [line for line in CONFIG.splitlines() if line.split()[0] != key]
    return "\n".join([*lines, f"{key} {value}"] if value else lines) + "\n"


def test_configuration_becomes_specs() -> None:
    imported = import_files(SAMPLES / "topology.txt", SAMPLES / "flow_small.txt", SAMPLES / "config.txt")
    scenario = imported.scenario
    assert scenario.switch.buffer == 32 * 2**20
    assert scenario.switch.latency == 0
    assert scenario.switch.ecn == fabric.Ecn(kmin="100KB", kmax="400KB", pmax=0.2, scale_from="25Gbps")
    assert scenario.switch.pfc.alpha == 0.125
    assert scenario.switch.pfc.xon_offset == 3072
    assert [each.reserved for each in scenario.switch.classes] == [4096]
    assert scenario.transport.frame == 1048
    assert scenario.transport.control_frame == 60
    assert scenario.transport.control_class == scenario.transport.data_class == "data"
    assert scenario.run.until == fabric.Duration("4.01s")
    assert scenario.record.pauses
    congestion = scenario.transport.congestion
    assert isinstance(congestion, Dcqcn)
    assert (congestion.form, congestion.feedback) == ("vendor", "echo")
    assert (congestion.alpha_period, congestion.cut_period) == (10**6, 4 * 10**6)
    assert congestion.increase_period == 300 * 10**6
    assert (congestion.g, congestion.fast_recovery, congestion.clamp_target) == (1 / 256, 1, False)
    assert [str(rate) for rate in (congestion.ai, congestion.hai, congestion.min_rate)] == [
        "50Mbps",
        "100Mbps",
        "100Mbps",
    ]
    assert build_network(scenario.topology).link_gap_bytes.max() == 0


def test_everything_that_is_left_out_is_listed_once() -> None:
    imported = import_files(SAMPLES / "topology.txt", SAMPLES / "flow_small.txt", SAMPLES / "config.txt")
    listed = [
        key for each in imported.ignored if each.file.endswith("config.txt") for key in each.what.split(", ")
    ]
    mapped = {
        "ENABLE_QCN",
        "PACKET_PAYLOAD_SIZE",
        "SIMULATOR_STOP_TIME",
        "CC_MODE",
        "ALPHA_RESUME_INTERVAL",
        "RATE_DECREASE_INTERVAL",
        "CLAMP_TARGET_RATE",
        "RP_TIMER",
        "EWMA_GAIN",
        "FAST_RECOVERY_TIMES",
        "RATE_AI",
        "RATE_HAI",
        "MIN_RATE",
        "ERROR_RATE_PER_LINK",
        "L2_ACK_INTERVAL",
        "L2_BACK_TO_ZERO",
        "HAS_WIN",
        "GLOBAL_T",
        "RATE_BOUND",
        "LINK_DOWN",
        "KMAX_MAP",
        "KMIN_MAP",
        "PMAX_MAP",
        "ACK_HIGH_PRIO",
        "VAR_WIN",
        "BUFFER_SIZE",
    }
    keys = {line.split()[0] for line in CONFIG.splitlines()}
    assert keys - set(listed) == mapped
    assert set(listed) <= keys
    assert len(listed) == len(set(listed))
    assert all(each.reason for each in imported.ignored)


def test_a_configuration_alone_finds_the_files_that_it_names() -> None:
    alone = import_files(SAMPLES / "config.txt").scenario
    assert (
        alone
        == import_files(
            *(SAMPLES / name for name in ("flow_small.txt", "config.txt", "topology.txt"))
        ).scenario
    )


def test_window_is_the_largest_bandwidth_delay_product(tmp_path: Path) -> None:
    """Oracle: 4160 ns and 52 000 B for two links of 100 Gbit/s and 1 us (HPCC simulator)."""
    network = build_network(network_spec(write_case(tmp_path)[0]))
    times = PathTimes(network, payload_bytes=1000)
    assert times.from_host(0).round_trip_ns.tolist()[1] == 4160
    assert times.longest_window_bytes() == 52_000
    files = write_case(tmp_path, config=with_setting("CC_MODE", "0"))
    assert import_files(*files).scenario.transport.congestion == FixedWindow(window=52_000)
    files = write_case(tmp_path, config=with_setting("CC_MODE", "0").replace("HAS_WIN 1", "HAS_WIN 0"))
    assert import_files(*files).scenario.transport.congestion == NoCongestionControl()


@pytest.mark.parametrize(
    ("key", "value", "path", "expected"),
    [
        ("ENABLE_QCN", "0", "switch.ecn", None),
        ("PMAX_MAP", "1 100000000000 0", "switch.ecn.kmin", 1_600_000),
        ("ERROR_RATE_PER_LINK", "0.001", "topology.link.loss", 0.001),
        ("L2_ACK_INTERVAL", "16000", "transport.ack_every", 16),
        ("L2_ACK_INTERVAL", "0", "transport.ack_every", 4),
        ("BUFFER_SIZE", "4", "switch.buffer", 4 * 2**20),
        ("SIMULATOR_STOP_TIME", "", "run.until", None),
        ("PFC_OUTPUT_FILE", "", "record.pauses", False),
    ],
)
def test_single_settings(tmp_path: Path, key: str, value: str, path: str, expected: object) -> None:
    found: object = import_files(*write_case(tmp_path, config=with_setting(key, value))).scenario
    for name in path.split("."):
        found = getattr(found, name)
    assert found == expected


def test_buffers_of_unlike_ports_are_theirs(tmp_path: Path) -> None:
    """Oracle: 37 500 B and 1/8 at 100 Gbit/s and 1 us, 150 000 B and 1/2 at 400 Gbit/s (HPCC simulator)."""
    topology = "4 2 3\n2 3\n0 2 100Gbps 1000ns 0\n1 3 100Gbps 1000ns 0\n2 3 400Gbps 1us 0\n"
    imported = import_files(*write_case(tmp_path, topology=topology))
    lowered = lower(imported.scenario, network=imported.network)
    at_switch = lowered.profiles[lowered.port_profile[lowered.node_port_base[2] :]]
    assert at_switch["headroom_bytes"].tolist() == [37_500, 150_000] * 2
    assert (at_switch["alpha_q16"] / 2**16).tolist() == [0.125, 0.5] * 2


@pytest.mark.parametrize(
    ("mode", "congestion", "frame", "ack"),
    [
        ("0", FixedWindow(window=52_000), 1048, 60),
        (
            "3",
            Hpcc(
                base_rtt="4160ns",
                eta=0.95,
                max_stage=0,
                fast_reaction=True,
                ai="50Mbps",
                scale_from=None,
                min_rate="100Mbps",
                telemetry_header=42,
                telemetry_unit=1,
            ),
            1090,
            88,
        ),
        (
            "7",
            Timely(
                ai="50Mbps",
                hai="100Mbps",
                scale_from=None,
                min_rate="100Mbps",
                window=52_000,
                variable_window=True,
                telemetry_header=8,
            ),
            1056,
            60,
        ),
        ("8", Dctcp(g=1 / 256, ai="1Gbps", min_rate="100Mbps", window=52_000), 1048, 60),
    ],
)
def test_congestion_controls(
    tmp_path: Path, mode: str, congestion: fabric.Congestion, frame: int, ack: int
) -> None:
    """Oracle: sizes on the link as the HPCC simulator counts them; its parameters one by one."""
    config = with_setting("CC_MODE", mode) + "MI_THRESH 0\nFAST_REACT 1\n"
    transport = import_files(*write_case(tmp_path, config=config)).scenario.transport
    assert transport.congestion == congestion
    assert (transport.frame, transport.control_frame) == (frame, ack)


def test_what_is_not_in_the_configuration_is_the_preset(tmp_path: Path) -> None:
    scenario = import_files(*write_case(tmp_path, config=with_setting("CC_MODE", "0"))).scenario
    preset = ns3_hpcc(nic_rate="100Gbps")
    assert scenario.switch.pfc == preset["switch"].pfc
    assert scenario.switch.classes == preset["switch"].classes
    assert scenario.transport.reliability == preset["transport"].reliability
    assert scenario.run.timing == "ns3"
    assert not scenario.nic.control_ignores_pause
    files = write_case(tmp_path, config=with_setting("ACK_HIGH_PRIO", "1"))
    assert import_files(*files).scenario.nic.control_ignores_pause


BAD_SETTINGS = {
    "a mode that is not modelled": ("CC_MODE", "11", "0 (none), 1 (DCQCN), 3 (HPCC), 7 (TIMELY), 8 (DCTCP)"),
    "HPCC-PINT by its name": ("CC_MODE", "10", "10 (HPCC-PINT)"),
    "no mode": ("CC_MODE", "", "this key"),
    "no payload": ("PACKET_PAYLOAD_SIZE", "0", "from 1"),
    "a huge payload": ("PACKET_PAYLOAD_SIZE", "70000", "at most 65535"),
    "no buffer": ("BUFFER_SIZE", "", "this key"),
    "a rate without thresholds": ("KMIN_MAP", "1 25000000000 100", "no value for 100Gbps"),
    "a map that is short": ("KMAX_MAP", "9 25000000000 100", "18 values"),
    "thresholds the wrong way round": ("KMIN_MAP", "1 100000000000 9999", "kmax"),
    "a probability above 1": ("PMAX_MAP", "1 100000000000 1.5", "from 0 to 1"),
    "no gain": ("EWMA_GAIN", "", "this key"),
    "a gain of 0": ("EWMA_GAIN", "0", "above 0"),
    "a rate that is none": ("RATE_AI", "50Mb", "a rate such as"),
    "a flag that is none": ("HAS_WIN", "2", "0 to 1"),
    "certain loss": ("ERROR_RATE_PER_LINK", "1", "below 1"),
    "a stop before it starts": ("SIMULATOR_STOP_TIME", "-1", "seconds"),
    "a timer of 0": ("RP_TIMER", "0", "at least 1ns"),
    "ACKs rarer than the window": ("L2_ACK_INTERVAL", "1000000", "frames of a window"),
}


@pytest.mark.parametrize("case", BAD_SETTINGS)
def test_a_bad_setting_is_one_error_with_file_line_and_key(tmp_path: Path, case: str) -> None:
    key, value, cause = BAD_SETTINGS[case]
    text = with_setting(key, value)
    with pytest.raises(SpecError) as caught:
        import_files(*write_case(tmp_path, config=text))
    message = str(caught.value)
    line = len(text.splitlines())
    assert message.startswith(f"{tmp_path / 'config.txt'}:{line} {key}: "), message
    assert cause in message, message


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (CONFIG + "CC_MODE 1\n", "every key once"),
        (CONFIG + "HAS_WIN\n", "every key once"),
        (CONFIG.replace("CC_MODE 1\n", "CC_MODE\n"), "a value"),
        (CONFIG.replace("CC_MODE 1\n", "CC_MODE 1 7\n"), "has all its values"),
        (CONFIG + "lower=case\n", "a key in capitals"),
    ],
)
def test_a_configuration_that_is_no_table_is_refused(tmp_path: Path, text: str, cause: str) -> None:
    with pytest.raises(SpecError, match=cause):
        import_files(*write_case(tmp_path, config=text))


def test_files_that_do_not_make_a_scenario_are_refused(tmp_path: Path) -> None:
    topology, flows, config = SAMPLES / "topology.txt", SAMPLES / "flow_small.txt", SAMPLES / "config.txt"
    with pytest.raises(SpecError, match="also a file of flows"):
        import_files(topology)
    with pytest.raises(SpecError, match="also a file of topology"):
        import_files(flows)
    with pytest.raises(SpecError, match="one file of flows"):
        import_files(topology, flows, flows, config)
    with pytest.raises(SpecError, match="seconds"):
        import_files(topology, flows, start_unit="us")
    prose = tmp_path / "prose.txt"
    prose.write_text("Once upon a time\n")
    with pytest.raises(SpecError, match="Once upon a time"):
        import_files(topology, prose)
    (tmp_path / "config.txt").write_text(CONFIG)
    with pytest.raises(SpecError, match=r"config\.txt:4 TOPOLOGY_FILE.*an existing file"):
        import_files(tmp_path / "config.txt")


@pytest.mark.parametrize(
    "names",
    [
        ("topology.txt", "flow_small.txt", "config.txt"),
        ("topology.txt", "flow_groups.txt"),
        ("three_tiers.topo", "chain.cm"),
        ("leaf_spine.topo", "barrier.cm"),
        ("simai_topology.txt", "flow_groups.txt"),
    ],
)
def test_a_saved_scenario_says_the_same_as_its_sources(tmp_path: Path, names: tuple[str, ...]) -> None:
    imported = import_files(*(SAMPLES / name for name in names))
    written = save_scenario(imported, tmp_path / "saved.toml")
    assert sorted(path.name for path in written) == sorted(path.name for path in tmp_path.iterdir())
    saved = fabric.load_scenario(tmp_path / "saved.toml")
    network = build_network(saved.topology)
    lowered = lower(saved, network=network, flows=build_flows(saved, network))
    direct = lower(
        imported.scenario,
        network=imported.network,
        flows=build_flows(imported.scenario, imported.network),
    )
    for name in direct.__dataclass_fields__:
        assert np.array_equal(getattr(lowered, name), getattr(direct, name)), name
    text = (tmp_path / "saved.toml").read_text()
    assert all(remark.reason in text for remark in imported.ignored)
    assert str(SAMPLES) not in text


def test_a_scenario_is_saved_whole_or_not_at_all(tmp_path: Path) -> None:
    imported = import_files(SAMPLES / "config.txt")
    (tmp_path / "saved-flows.csv").mkdir()
    with pytest.raises(FabricError, match="cannot write"):
        save_scenario(imported, tmp_path / "saved.toml")
    assert [path.name for path in tmp_path.iterdir()] == ["saved-flows.csv"]
    with pytest.raises(SpecError, match=r"\.toml"):
        save_scenario(imported, tmp_path / "saved.json")


def test_completion_times_in_the_columns_of_the_hpcc_simulator(tmp_path: Path) -> None:
    """Oracle: one frame of 1000 B over two links, standalone 4243 ns."""
    result = fabric.run(import_files(*write_case(tmp_path)).scenario)
    assert fct_text(result) == "0b000001 0b000101 10000 100 1000 2000000000 4174 4243\n"


def test_flows_are_listed_as_they_complete_with_ports_by_pair() -> None:
    result = fabric.run(import_files(SAMPLES / "config.txt").scenario)
    rows = [line.split() for line in fct_text(result, destination_port=7).splitlines()]
    done = [int(row[5]) + int(row[6]) for row in rows]
    assert done == sorted(done)
    assert sorted((row[0], row[1], row[2], row[4]) for row in rows) == [
        ("0b000001", "0b000201", "10000", "100000"),
        ("0b000001", "0b000201", "10001", "1000"),
        ("0b000101", "0b000301", "10000", "50000"),
    ]
    assert {row[3] for row in rows} == {"7"}


def test_addresses() -> None:
    assert f"{host_address(0):08x}" == "0b000001"
    assert f"{host_address(257):08x}" == "0b010101"


def test_pauses_in_the_columns_of_the_hpcc_simulator(tmp_path: Path) -> None:
    """Two senders into 1 MiB; the first PAUSE of the HPCC simulator arrives at 2 000 017 275 ns.

    Which of two simultaneous frames comes first may be another one here.
    """
    topology = "4 1 3\n3\n0 3 100Gbps 1000ns 0\n1 3 100Gbps 1000ns 0\n2 3 100Gbps 1000ns 0\n"
    flows = "2\n0 2 3 100 400000 2.0\n1 2 3 100 400000 2.0\n"
    config = (
        with_setting("CC_MODE", "0")
        .replace("HAS_WIN 1", "HAS_WIN 0")
        .replace("BUFFER_SIZE 32", "BUFFER_SIZE 1")
    )
    result = fabric.run(
        import_files(*write_case(tmp_path, topology=topology, flows=flows, config=config)).scenario
    )
    rows = [tuple(map(int, line.split())) for line in pfc_text(result).splitlines()]
    assert len(rows) >= 8
    assert rows == sorted(rows)
    assert {row[1:4] for row in rows} == {(0, 0, 1), (1, 0, 1)}
    for host in (0, 1):
        kinds = [row[4] for row in rows if row[1] == host]
        assert kinds == [1, 0] * (len(kinds) // 2)
    assert rows[0][0] == pytest.approx(2_000_017_275, abs=83)


def test_pauses_must_have_been_recorded() -> None:
    topology, flows = SAMPLES / "topology.txt", SAMPLES / "flow_groups.txt"
    with pytest.raises(FabricError, match=r"record\.pauses"):
        pfc_text(fabric.run(import_files(topology, flows).scenario))


def test_flows_can_be_moved_to_the_beginning() -> None:
    sources = [SAMPLES / name for name in ("topology.txt", "flow_small.txt", "config.txt")]
    scenario = import_files(*sources, first_start="1us").scenario
    assert scenario.run.until == fabric.Duration("2.010001s")
    flows = fabric.run(scenario).flows
    assert flows["start_ps"].tolist() == [999_000, 10_999_000, 20_999_000]  # as ns-3 cuts 1, 11 and 21 us
    matrix = import_files(SAMPLES / "three_tiers.topo", SAMPLES / "chain.cm", first_start="0s")
    table = build_flows(matrix.scenario, matrix.network)
    assert table.start_ps.tolist() == [1_500_000, 0, 0, 0, 0]


def run_cli(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def test_run_takes_files_of_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topology, matrix = SAMPLES / "leaf_spine.topo", SAMPLES / "barrier.cm"
    target = tmp_path / "result"
    assert run_cli("run", topology, matrix, "--no-plot", "--out", target, "--start-unit", "us") == 0
    shown = capsys.readouterr().out
    assert "every flow is complete" in shown
    assert "left out" in shown
    assert "16 hosts, 6 switches, 23 cables" in shown, "one of 24 has failed"
    flows = fabric.Result.load(target).flows
    assert flows["start_ps"][1] == 5 * 10**6
    assert (
        run_cli("run", SAMPLES / "config.txt", "--set", "run.seed=3", "--no-plot", "--quiet", "--out", target)
        == 0
    )
    assert fabric.Result.load(target).provenance.seed == 3
    assert run_cli("convert", target, "--out", tmp_path / "fct.txt") == 0
    assert run_cli("convert", target, "--out", tmp_path / "pfc.txt") == 0
    assert len((tmp_path / "fct.txt").read_text().splitlines()) == 3


def test_convert_makes_a_scenario_that_runs_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources = [SAMPLES / name for name in ("topology.txt", "flow_small.txt", "config.txt")]
    assert run_cli("convert", *sources, "--out", tmp_path / "x.toml") == 0
    assert "left out" in capsys.readouterr().out
    for name, files in (("direct", sources), ("saved", [tmp_path / "x.toml"])):
        assert run_cli("run", *files, "--no-plot", "--quiet", "--out", tmp_path / name) == 0
    direct, saved = (fabric.Result.load(tmp_path / name) for name in ("direct", "saved"))
    assert direct.fingerprint == saved.fingerprint


def test_convert_writes_topologies_and_flows(tmp_path: Path) -> None:
    sources = [SAMPLES / "three_tiers.topo", SAMPLES / "flow_groups.txt"]
    for name in ("topology_x.txt", "flow_x.txt", "x.cm"):
        assert run_cli("convert", *sources, "--out", tmp_path / name) == 0
    again = import_files(tmp_path / "topology_x.txt", tmp_path / "x.cm")
    assert again.network.n_links == 48
    assert len(build_flows(again.scenario, again.network)) == 3


def test_errors_of_convert_are_one_line_and_write_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = [SAMPLES / "topology.txt", SAMPLES / "flow_small.txt"]
    assert run_cli("convert", *sources, "--out", tmp_path / "x.yaml") == 2
    assert run_cli("convert", *sources, "--out", tmp_path / "fct.txt") == 2
    assert run_cli("convert", tmp_path, "--out", tmp_path / "fct.txt") == 2
    assert run_cli("run", SAMPLES / "topology.txt") == 2
    broken = tmp_path / "flow.txt"
    broken.write_text("2\n0 1 3 100 10 0\n")
    before = sorted(tmp_path.iterdir())
    assert run_cli("convert", SAMPLES / "topology.txt", broken, "--out", tmp_path / "y.toml") == 2
    assert sorted(tmp_path.iterdir()) == before
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 5
    assert errors[-1].startswith(f"fabric: error: {broken}:2: ")


def test_topo_draws_files_of_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli("topo", SAMPLES / "leaf_spine.topo", "--out", tmp_path / "x.png") == 0
    assert "oversubscription" in capsys.readouterr().out
    assert (tmp_path / "x.png").stat().st_size > 0
    assert run_cli("topo", SAMPLES / "flow.txt", "--out", tmp_path / "y.png") == 2


def test_many_flows_are_read_as_arrays(tmp_path: Path) -> None:
    count = 20_000
    lines = [f"{flow % 2} {2 + flow % 2} 3 100 {1 + flow} {2 + flow * 1e-9:.9f}" for flow in range(count)]
    file = tmp_path / "flow.txt"
    file.write_text("\n".join([str(count), *lines]) + "\n")
    imported = import_files(SAMPLES / "topology.txt", file)
    table = build_flows(imported.scenario, imported.network)
    assert table.size_bytes.tolist() == list(range(1, count + 1))
    assert table.start_ps[-1] == 2 * 10**12 + (count - 1) * 1000
