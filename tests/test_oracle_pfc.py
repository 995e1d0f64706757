"""Oracles of priority flow control: overshoot and headroom, shares, pause times, who suffers.

Setting (that of an independent event simulation): frames of L bytes with nothing around them, static
XOFF and XON = XOFF - 2 L, no acknowledgements, PAUSE in 64 bytes, unlimited memory. PAUSE is caused when
the bytes of an ingress reach XOFF and acts after it has crossed the link; the frame that is being sent
then finishes (IEEE 802.1Qbb; IEEE 802.3 annex 31B). With rate C, one-way delay d, t_p = 64 B / C:

    bound, no loss for any fan-in   H >= C (2 d + t_p) + 2 L
    peak of an unserved ingress     L (ceil(XOFF / L) + floor(C (2 d + t_p) / L) + 1)

Common texts have the bound with one L (for instance the DCQCN paper, Zhu et al., SIGCOMM 2015, section 4),
which two of the rows exceed. PFC is fair per port, not per flow: a parking lot halves shares at every
switch, and a flow to an idle host suffers with the flows that it shares a port with.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from support_oracles import (
    GBPS,
    MS,
    SECOND,
    US,
    Outcome,
    graph,
    link,
    lossless_switch,
    message,
    messages,
    run,
    transport,
)

from fabric.lowered import DropReason
from fabric.spec import Incast, Record, Scenario, SingleSwitch

PAUSE_BYTES = 64


def overload(
    senders: int,
    *,
    rate: str,
    delay: str,
    frame_bytes: int,
    xoff: int,
    headroom: int | str = "1GB",
    size: int | None = None,
    record: Record | None = None,
) -> Outcome:
    """Senders at line rate to one host, by default for many pauses and resumes of each."""
    scenario = Scenario(
        topology=SingleSwitch(hosts=senders + 1, link=link(rate, delay)),
        switch=lossless_switch(xoff, xon=xoff - 2 * frame_bytes, headroom=headroom),
        transport=transport(frame_bytes),
        traffic=(Incast(receivers=("host0",), senders=senders, size=size or 20 * xoff),),
        record=record or Record(),
    )
    return run(scenario)


def peak_ingress_bytes(outcome: Outcome, frame_bytes: int) -> int:
    """Largest number of bytes that any ingress ever held, counted from the frames on the wires.

    A frame is charged when its last bit has arrived, and released when it starts to leave. At one instant
    the switch starts frames first.
    """
    rows = outcome.rows("packet")
    lowered = outcome.lowered
    host_port = int(lowered.port_peer[outcome.port("switch0->host0")])
    from_sender = lowered.port_node[rows["port"]] < lowered.n_hosts
    service_ps = frame_bytes * 8 * SECOND // int(lowered.port_rate_bps[0])
    data = (rows["kind"] == 0) & (rows["port"] != host_port)
    peak = 0
    for flow in np.unique(rows["flow"][data]):
        mine = rows[data & (rows["flow"] == flow)]
        arrives = from_sender[data & (rows["flow"] == flow)]
        travel_ps = np.where(arrives, service_ps + lowered.port_delay_ps[mine["port"]], 0)
        order = np.lexsort((arrives, mine["time_ps"] + travel_ps))
        peak = max(peak, int(np.cumsum(np.where(arrives, 1, -1)[order]).max()))
    return peak * frame_bytes


ROWS = [
    # C, d, L, XOFF, peak bytes of an ingress, bound H
    ("40Gbps", "1us", 1000, 40_000, 51_000, 12_064),
    ("400Gbps", "1500ns", 4096, 200_000, 352_256, 158_256),
    ("400Gbps", "1500ns", 4096, 333_000, 487_424, 158_256),
    ("100Gbps", "1us", 4096, 100_000, 131_072, 33_256),
    ("100Gbps", "1us", 1500, 200_000, 226_500, 28_064),
]


class TestOvershoot:
    """No service in the window: sixteen or more equal senders into one port, all from t = 0."""

    ALL_PACKETS = Record(packets={"ports": ["*"]})

    @pytest.mark.parametrize(("rate", "delay", "frame", "xoff", "peak", "bound"), ROWS)
    def test_exact_peak(self, rate: str, delay: str, frame: int, xoff: int, peak: int, bound: int) -> None:
        outcome = overload(16, rate=rate, delay=delay, frame_bytes=frame, xoff=xoff, record=self.ALL_PACKETS)
        assert peak_ingress_bytes(outcome, frame) == peak
        assert outcome.columns["headroom_peak_bytes"].max() <= bound

    @pytest.mark.parametrize("senders", [8, 16, 32, 64])
    def test_peak_does_not_depend_on_the_fan_in(self, senders: int) -> None:
        outcome = overload(
            senders,
            rate="40Gbps",
            delay="1us",
            frame_bytes=1000,
            xoff=40_000,
            record=self.ALL_PACKETS,
        )
        assert peak_ingress_bytes(outcome, 1000) == 51_000
        assert outcome.columns["headroom_peak_bytes"].max() == 11_000

    def test_two_senders_keep_draining(self) -> None:
        """The first PAUSE, when both ingresses are served: half of what arrives leaves again."""
        outcome = overload(
            2,
            rate="40Gbps",
            delay="1us",
            frame_bytes=1000,
            xoff=40_000,
            size=2 * 45_000,
            record=self.ALL_PACKETS,
        )
        assert outcome.columns["pauses_sent"].max() == 1
        assert peak_ingress_bytes(outcome, 1000) == 45_000


class TestHeadroom:
    """The pool takes whole frames up to XOFF, so headroom holds the rest of the peak."""

    @pytest.mark.parametrize(("rate", "delay", "frame", "xoff", "peak", "bound"), ROWS)
    @pytest.mark.parametrize("senders", [16, 40])
    def test_exact_headroom_loses_nothing_and_one_frame_less_does(
        self, senders: int, rate: str, delay: str, frame: int, xoff: int, peak: int, bound: int
    ) -> None:
        needed = peak - xoff // frame * frame

        def drops(headroom: int) -> int:
            outcome = overload(
                senders, rate=rate, delay=delay, frame_bytes=frame, xoff=xoff, headroom=headroom
            )
            assert (
                outcome.columns["drops_by_reason"].sum()
                == (outcome.columns["drops_by_reason"][DropReason.HEADROOM])
            )
            return int(outcome.columns["drops_by_reason"].sum())

        assert drops(needed) == 0
        assert drops(needed - frame) >= 1

    @pytest.mark.parametrize(("rate", "delay", "frame", "xoff", "peak", "bound"), ROWS)
    @pytest.mark.parametrize("senders", [2, 3, 5, 8, 16, 64])
    def test_the_bound_loses_nothing_for_any_fan_in(
        self, senders: int, rate: str, delay: str, frame: int, xoff: int, peak: int, bound: int
    ) -> None:
        outcome = overload(senders, rate=rate, delay=delay, frame_bytes=frame, xoff=xoff, headroom=bound)
        assert outcome.status == "FINISHED"
        assert outcome.columns["drops_by_reason"].sum() == 0
        assert (outcome.columns["flow_delivered_ps"] > 0).all()

    @pytest.mark.parametrize(("rate", "delay", "frame", "xoff", "peak", "bound"), ROWS)
    def test_automatic_headroom_loses_nothing(
        self, rate: str, delay: str, frame: int, xoff: int, peak: int, bound: int
    ) -> None:
        """It allows for a frame on the reverse direction besides the bound."""
        outcome = overload(24, rate=rate, delay=delay, frame_bytes=frame, xoff=xoff, headroom="auto")
        assert outcome.status == "FINISHED"
        assert outcome.lowered.profiles["headroom_bytes"].max() == bound + frame
        assert outcome.columns["drops_by_reason"].sum() == 0

    def test_one_frame_in_the_common_form_is_too_small(self) -> None:
        """400 Gbit/s, 1.5 us, XOFF 333,000 B: overshoot 154,424 B above C (2 d + t_p) + L = 154,160 B."""
        rate, delay, frame, xoff, peak, bound = ROWS[2]
        one_frame_form = bound - frame
        assert peak - xoff == 154_424
        assert peak - xoff > one_frame_form == 154_160
        outcome = overload(16, rate=rate, delay=delay, frame_bytes=frame, xoff=xoff, headroom=one_frame_form)
        assert outcome.columns["drops_by_reason"][DropReason.HEADROOM] >= 1


@pytest.mark.parametrize("arbiter", ["fifo", "round_robin"])
class TestSteadyState:
    """40 Gbit/s, 1 us, frames of 1000 B, XOFF 40,000 B, XON 38,000 B, 50 ms, starts spread over 5 us."""

    DURATION_PS = 50 * MS
    RATE_BPS = 40 * GBPS

    def shares(self, outcome: Outcome) -> np.ndarray:
        """Rate of every sender in Gbit/s."""
        assert outcome.status == "UNTIL"
        assert outcome.columns["drops_by_reason"].sum() == 0
        sent_bytes = outcome.columns["port_tx_bytes"][outcome.lowered.flow_port]
        return sent_bytes * 8.0 * SECOND / self.DURATION_PS / GBPS

    @pytest.mark.parametrize(("senders", "paused"), [(2, 0.519), (4, 0.764), (8, 0.882)])
    @pytest.mark.parametrize("seed", [1, 2])
    def test_equal_shares_and_pause_times(self, seed: int, senders: int, paused: float, arbiter: str) -> None:
        """Paused for 1 - 1/n of the time, and for what the frame takes that finishes after PAUSE."""
        scenario = Scenario(
            topology=SingleSwitch(hosts=senders + 1, link=link("40Gbps", "1us")),
            switch=lossless_switch(40_000, xon=38_000, arbiter=arbiter),
            transport=transport(1000),
            traffic=(Incast(receivers=("host0",), senders=senders, size="1GB", jitter="5us"),),
            run={"seed": seed},
        )
        outcome = run(scenario, until_ps=self.DURATION_PS)
        share = outcome.columns["paused_ps"][outcome.lowered.flow_port, 0] / self.DURATION_PS
        assert self.shares(outcome) == pytest.approx(np.full(senders, 40 / senders), rel=0.01)
        assert share == pytest.approx(np.full(senders, paused), abs=0.01)

    @pytest.mark.parametrize("switches", [2, 3, 4])
    def test_parking_lot(self, switches: int, arbiter: str) -> None:
        """Switches in a row, a sender at each, all to a sink behind the last: 1/2, 1/4, .. away from it."""
        names = [f"s{number}" for number in range(switches)]
        topology, network = graph(
            *((f"h{number}", name) for number, name in enumerate(names)),
            *pairwise(names),
            (names[-1], "hsink"),
            default=link("40Gbps", "1us"),
        )
        scenario = Scenario(
            topology=topology,
            switch=lossless_switch(40_000, xon=38_000, arbiter=arbiter),
            transport=transport(1000),
            traffic=messages(
                *(message(10**9, f"h{number}", "hsink") for number in range(switches)), jitter="5us"
            ),
        )
        outcome = run(scenario, network=network, until_ps=self.DURATION_PS)
        halves = [40 / 2**k for k in range(1, switches)]
        expected = np.array([*halves, halves[-1]][::-1])
        assert self.shares(outcome) == pytest.approx(expected, rel=0.01)

    def test_victim(self, arbiter: str) -> None:
        """h1 -> d1 and h2 -> d2 share the link A - B; three more senders at B congest d1, not d2."""
        others = ["h3", "h4", "h5"]
        topology, network = graph(
            ("h1", "sA"),
            ("h2", "sA"),
            ("sA", "sB"),
            *((other, "sB") for other in others),
            ("sB", "hd1"),
            ("sB", "hd2"),
            default=link("40Gbps", "1us"),
        )
        scenario = Scenario(
            topology=topology,
            switch=lossless_switch(40_000, xon=38_000, arbiter=arbiter),
            transport=transport(1000),
            traffic=messages(
                message(10**9, "h1", "hd1"),
                message(10**9, "h2", "hd2"),
                *(message(10**9, other, "hd1") for other in others),
                jitter="5us",
            ),
        )
        shares = self.shares(run(scenario, network=network, until_ps=self.DURATION_PS))
        assert shares[[0, 2, 3, 4]].sum() == pytest.approx(40, rel=0.01)
        assert shares[1] == pytest.approx(shares[0], rel=0.02)
        if arbiter == "round_robin":
            assert shares == pytest.approx(np.full(5, 10.0), rel=0.02)
        else:
            assert shares[2:] == pytest.approx(np.full(3, 10.4), rel=0.05)
            assert (shares[:2] < shares[2:].min()).all()


def test_a_pause_frame_waits_for_the_frame_being_sent() -> None:
    """PAUSE does not pre-empt: data of the receiver in the other direction delays it by up to a frame.

    The paused host hears of it at most L/C later, so the ingress peak grows by at most one more frame
    and stays within the automatic headroom.
    """
    senders, frame = 16, 4096
    scenario = Scenario(
        topology=SingleSwitch(hosts=2 * senders + 1, link=link("100Gbps", "1us")),
        switch=lossless_switch(100_000, xon=100_000 - 2 * frame, headroom="auto"),
        transport=transport(frame),
        traffic=(
            *messages(*(message(10**6, sender, 0) for sender in range(1, senders + 1))),
            *messages(
                *(message(10**6, senders + sender, sender) for sender in range(1, senders + 1)), name="back"
            ),
        ),
    )
    outcome = run(scenario)
    unhindered = overload(16, rate="100Gbps", delay="1us", frame_bytes=frame, xoff=100_000)
    peak = int(outcome.columns["headroom_peak_bytes"].max())
    quiet = int(unhindered.columns["headroom_peak_bytes"].max())
    assert outcome.status == "FINISHED"
    assert outcome.columns["drops_by_reason"].sum() == 0
    assert quiet <= peak <= quiet + frame
    assert PAUSE_BYTES * 8 * SECOND // (100 * GBPS) < frame * 8 * SECOND // (100 * GBPS) < US
