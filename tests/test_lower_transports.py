"""From specs to arrays: transports, their windows and steps, patterns with their own."""

from __future__ import annotations

import pytest
from support_lowering import flow_table, scenario

from fabric.errors import SpecError
from fabric.lower import lower
from fabric.spec.congestion import Dctcp, Hpcc, Timely
from fabric.spec.link import LinkOverride
from fabric.spec.switch import Switch, TrafficClass
from fabric.spec.topology import SingleSwitch
from fabric.spec.transport import Dcqcn, FixedWindow, GoBackN, NoCongestionControl, Transport
from fabric.workload import FlowTable

# Transports


def test_transport_row() -> None:
    reliability = GoBackN(rto="1ms", nack_on_rewind=False, nack_interval="20us")
    congestion = Dcqcn(preset="paper_2015", window="10KB")
    transport = Transport(
        payload=1000, header=48, ack_every=4, reliability=reliability, congestion=congestion
    )
    row = lower(scenario(transport=transport)).transports[0]
    assert (row["payload_bytes"], row["frame_bytes"], row["control_bytes"]) == (1000, 1048, 64)
    assert (row["ack_every"], row["rto_ps"], row["nack_interval_ps"]) == (4, 10**9, 2 * 10**7)
    assert (row["nack_enabled"], row["nack_on_rewind"]) == (1, 0)
    assert (row["congestion"], row["feedback"], row["window_frames"]) == (1, 1, 10)
    assert (row["fast_recovery"], row["byte_counter"], row["g"]) == (5, 10**7, 1 / 256)
    assert (row["ai_bps"], row["hai_bps"], row["min_rate_bps"]) == (40e6, 200e6, 1e6)
    assert (row["cnp_interval_ps"], row["alpha_period_ps"], row["increase_period_ps"]) == (
        50 * 10**6,
        55 * 10**6,
        55 * 10**6,
    )


def test_other_congestion_controls_and_no_timeout() -> None:
    none = Transport(congestion=NoCongestionControl(), reliability=GoBackN(rto=None, nack=False))
    row = lower(scenario(transport=none)).transports[0]
    assert (row["congestion"], row["feedback"], row["window_frames"], row["rto_ps"]) == (0, 0, 0, 0)
    assert row["nack_enabled"] == 0
    window = Transport(payload=1000, congestion=FixedWindow(window=2001))
    row = lower(scenario(transport=window)).transports[0]
    assert (row["congestion"], row["window_frames"]) == (0, 3)
    vendor = Transport(congestion=Dcqcn(preset="hpcc_paper"))
    row = lower(scenario(transport=vendor)).transports[0]
    assert (row["congestion"], row["feedback"]) == (2, 2)


def test_windows_that_follow_the_rate() -> None:
    """HPCC's holds a base round trip at the line rate of each flow, DCTCP's and DCQCN's what they say."""
    override = LinkOverride(match="host1-switch0", rate="100Gbps")
    topology = SingleSwitch(hosts=4, overrides=(override,))
    flows = flow_table([0, 1, 2], [3, 3, 3])
    transport = Transport(congestion=Hpcc(base_rtt="10us", scale_from=None))
    lowered = lower(scenario(topology, transport=transport), flows=flows)
    rows = lowered.transports[lowered.flow_transport]
    assert rows["window_bytes"].tolist() == [500_000, 125_000, 500_000]
    assert (rows["congestion"] == 3).all()
    assert (rows["telemetry"] == 2).all()
    for congestion in (Dctcp(window=2001), Dcqcn(window=2001, variable_window=True)):
        row = lower(scenario(transport=Transport(payload=1000, congestion=congestion))).transports[0]
        assert (row["variable_window"], row["window_bytes"], row["window_frames"]) == (1, 2001, 3)
    assert lower(scenario(transport=Transport(congestion=Dctcp()))).transports[0]["variable_window"] == 0


def test_telemetry_makes_frames_larger_when_asked_to() -> None:
    lowered = lower(scenario(transport=Transport(payload=1000, congestion=Timely(telemetry_header=8))))
    row = lowered.transports[0]
    assert (row["congestion"], row["telemetry"], row["frame_bytes"]) == (5, 1, 1070)
    assert (row["feedback"], row["rtt_low_ps"], row["rtt_high_ps"]) == (0, 50_000_000, 500_000_000)


def test_steps_scale_with_the_line_rate_of_each_flow() -> None:
    override = LinkOverride(match="host1-switch0", rate="100Gbps")
    topology = SingleSwitch(hosts=4, overrides=(override,))
    transport = Transport(congestion=Dcqcn(preset="hpcc"))
    flows = flow_table([0, 1, 2], [3, 3, 3])
    lowered = lower(scenario(topology, transport=transport), flows=flows)
    rows = lowered.transports[lowered.flow_transport]
    assert rows["ai_bps"].tolist() == [80e6, 20e6, 80e6]
    assert rows["hai_bps"].tolist() == [800e6, 200e6, 800e6]
    assert len(lowered.transports) == 2


def test_patterns_bring_transports_and_classes_of_their_own() -> None:
    large = Transport(payload=8192)
    classes = (TrafficClass(name="data"), TrafficClass(name="bulk"), TrafficClass(name="control", pfc=False))
    table = FlowTable.concatenate(
        [
            flow_table([0, 1], 2, label="a"),
            flow_table([1], 2, label="b", transport=large, traffic_class="bulk"),
            flow_table([0], 3, label="c", transport=Transport()),
        ]
    )
    lowered = lower(scenario(switch=Switch(classes=classes)), flows=table)
    rows = lowered.transports[lowered.flow_transport]
    assert rows["frame_bytes"].tolist() == [4158, 4158, 8254, 4158]
    assert len(lowered.transports) == 2
    assert lowered.flow_class.tolist() == [0, 0, 1, 0]
    assert lowered.schedulers["quantum"][0, 0] == 8254


def test_unknown_classes_and_oversized_frames_are_refused() -> None:
    table = flow_table([0], 1, label="bulk", traffic_class="dta")
    with pytest.raises(SpecError, match=r'traffic "bulk"\.traffic_class.*did you mean "data"'):
        lower(scenario(), flows=table)
    table = flow_table([0], 1, transport=Transport(payload=65_470))
    with pytest.raises(SpecError, match=r"transport\.payload.*65515"):
        lower(scenario(), flows=table)
