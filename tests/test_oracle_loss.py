"""Oracles of loss and recovery: go-back-N under independent loss, a lost tail, bit errors.

With probability p that a frame is lost, a round trip of RTT and frames of time s, a lost frame costs
D = RTT/s + 1/(1-p) frames: the next one that arrives reveals the gap, and everything that was sent until
the report comes back is sent again. The goodput share is (1-p) / (1-p + p D) (Bertsekas and Gallager, "Data
Networks", 2nd edition, section 2.4):

    p = 10^-3, RTT = 100 frames    .908
    p = 10^-2, RTT = 50 frames     .660       tolerance 3 % with at least 1000 losses

If the last frame of a message is lost, nothing follows that would reveal it, and only the time-out helps:
completion takes the idle time and the time-out. A bit error rate b loses a frame of n bits with
1 - (1-b)^n.

Hosts here have two ports. Data leave by the first, and seeds are such that acknowledgements come back by
the second: loss on the first cable then hits data alone. More losses:
`validation/test_goodput_statistics.py`.
"""

from __future__ import annotations

import numpy as np
import pytest
from support_loss import (
    ACK_PS,
    FRAME_BYTES,
    SERVICE_PS,
    goodput_run,
    lossy_cable,
    seed_with_losses,
    seeds_with_another_way_back,
)
from support_oracles import (
    MS,
    NS,
    US,
    Outcome,
    chain,
    link,
    lossless_switch,
    message,
    messages,
    open_loop,
    run,
    transport,
)

from fabric.lowered import DropReason
from fabric.spec import GoBackN, LeafSpine, Link, Permutation, Record, Run, Scenario

DATA, ACK = 0, 1
"""Kinds of frames."""


@pytest.mark.parametrize("turn", [0, 1, 2])
@pytest.mark.parametrize(
    ("loss", "round_trip_frames", "frames", "share"),
    [(1e-3, 100, 1_400_000, 0.908), (1e-2, 50, 200_000, 0.660)],
)
def test_goodput_of_go_back_n(
    loss: float, round_trip_frames: int, frames: int, share: float, turn: int
) -> None:
    seed = seeds_with_another_way_back(3)[turn]
    outcome = goodput_run(loss, round_trip_frames=round_trip_frames, frames=frames, seed=seed)
    columns = outcome.columns
    assert columns["drops_by_reason"][DropReason.LINK_LOSS] >= 1_000
    assert frames * SERVICE_PS / columns["flow_delivered_ps"][0] == pytest.approx(share, rel=0.03)
    assert frames / columns["flow_sent"][0] == pytest.approx(share, rel=0.03)


class TestLostTail:
    RTO = "100us"
    RTO_PS = 100 * US

    def over_a_short_cable(self, frames: int, *, seed: int) -> Outcome:
        topology, network = chain(1, link("100Gbps", "1ns", loss=0.1))
        scenario = Scenario(
            topology=topology,
            transport=transport(FRAME_BYTES, acks=True, reliability=GoBackN(rto=self.RTO)),
            traffic=messages(message(frames * FRAME_BYTES)),
            run=Run(seed=seed),
            record=Record(drops=True),
        )
        return run(scenario, network=network)

    @pytest.mark.parametrize("frames", [1, 2, 10])
    def test_only_the_time_out_recovers(self, frames: int) -> None:
        """Over a cable shorter than a frame: idle time and time-out, to within one frame time."""
        outcome = seed_with_losses(
            lambda seed: self.over_a_short_cable(frames, seed=seed), expected=[(DATA, frames - 1)]
        )
        idle_ps = frames * SERVICE_PS + NS
        (delivered_ps,) = outcome.columns["flow_delivered_ps"].tolist()
        assert outcome.status == "FINISHED"
        assert outcome.columns["flow_timeouts"].tolist() == [1]
        assert outcome.columns["flow_nacks"].tolist() == [0]
        assert outcome.columns["flow_retransmitted"].tolist() == [1]
        assert idle_ps + self.RTO_PS <= delivered_ps <= idle_ps + self.RTO_PS + SERVICE_PS

    def test_a_message_of_one_frame(self) -> None:
        """The time-out runs from its start: idle time and time-out exactly, over any path."""
        outcome = seed_with_losses(
            lambda seed: run(lossy_cable(1, loss=0.3, delay="5us", rto=self.RTO, seed=seed)),
            expected=[(DATA, 0)],
        )
        idle_ps = 2 * (SERVICE_PS + 5 * US)
        assert outcome.columns["flow_delivered_ps"].tolist() == [idle_ps + self.RTO_PS]

    def test_the_time_out_runs_from_the_last_progress(self) -> None:
        """Ten frames over two links of 5 us: it starts again with the acknowledgement of the ninth."""
        frames, delay_ps = 10, 5 * US
        outcome = seed_with_losses(
            lambda seed: run(lossy_cable(frames, loss=0.1, delay="5us", rto=self.RTO, seed=seed)),
            expected=[(DATA, frames - 1)],
        )
        one_way_ps = 2 * (SERVICE_PS + delay_ps)
        ninth_acknowledged_ps = (frames - 2) * SERVICE_PS + one_way_ps + 2 * (ACK_PS + delay_ps)
        expected_ps = ninth_acknowledged_ps + self.RTO_PS + one_way_ps
        assert outcome.columns["flow_delivered_ps"].tolist() == [expected_ps]

    def test_a_lost_acknowledgement_of_the_last_frame(self) -> None:
        """The message is delivered in the idle time; its sender learns of it after a time-out."""
        frames = 4
        outcome = seed_with_losses(
            lambda seed: self.over_a_short_cable(frames, seed=seed), expected=[(ACK, frames)]
        )
        idle_ps = frames * SERVICE_PS + NS
        (completed_ps,) = outcome.columns["flow_completed_ps"].tolist()
        assert outcome.columns["flow_delivered_ps"].tolist() == [idle_ps]
        assert 0 <= completed_ps - (idle_ps + self.RTO_PS) <= 2 * SERVICE_PS

    def test_without_a_time_out_the_message_never_completes(self) -> None:
        outcome = seed_with_losses(
            lambda seed: run(lossy_cable(5, loss=0.1, delay="1us", rto=None, seed=seed)),
            expected=[(DATA, 4)],
        )
        assert outcome.status == "STALLED"
        assert outcome.columns["flow_delivered_ps"].tolist() == [-1]

    @pytest.mark.parametrize("nack_on_rewind", [True, False])
    @pytest.mark.parametrize("loss", [1e-3, 0.03])
    def test_everything_arrives_in_the_end(self, loss: float, nack_on_rewind: bool) -> None:
        """Loss of data, acknowledgements and reports on every cable."""
        cable = Link(rate="100Gbps", delay="1us", loss=loss)
        scenario = Scenario(
            topology=LeafSpine(leaves=4, spines=2, hosts_per_leaf=4, host_link=cable, fabric_link=cable),
            switch=lossless_switch(),
            transport=transport(
                FRAME_BYTES, acks=True, reliability=GoBackN(rto="100us", nack_on_rewind=nack_on_rewind)
            ),
            traffic=(Permutation(size="200KB"),),
        )
        outcome = run(scenario)
        assert outcome.status == "FINISHED"
        assert (outcome.columns["flow_completed_ps"] > 0).all()
        assert outcome.columns["drops_by_reason"][DropReason.LINK_LOSS] > 0


class TestRandomLoss:
    """Frames that are sent once, over one lossy cable: how many do not arrive."""

    @pytest.mark.parametrize(
        ("loss", "bit_error_rate", "frames"),
        [(0.01, 0, 200_000), (0, 1e-6, 200_000), (0, 1e-8, 2_000_000), (0.02, 1e-6, 200_000)],
    )
    def test_share_lost(self, loss: float, bit_error_rate: float, frames: int) -> None:
        """Frames of 33,280 bits with the gap: 1 - (1 - 10^-6)^33280 = .0327."""
        wire_bits = 33_280
        topology, network = chain(1, link("400Gbps", "1us", gap=20, loss=loss, bit_error_rate=bit_error_rate))
        scenario = Scenario(
            topology=topology,
            transport=open_loop(4_096, header=44),
            traffic=messages(message(frames * 4_096)),
            run=Run(fingerprint=False),
        )
        outcome = run(scenario, network=network)
        expected = 1 - (1 - loss) * (1 - bit_error_rate) ** wire_bits
        lost = int(outcome.columns["queue_drops"][outcome.port("h0->h1"), 0])
        assert outcome.columns["flow_sent"].tolist() == [frames]
        assert abs(lost / frames - expected) <= 3 * np.sqrt(expected * (1 - expected) / frames)

    def test_losses_are_independent(self) -> None:
        """Runs of two: n p^2 pairs of neighbours that are both lost."""
        loss, frames = 0.1, 100_000
        topology, network = chain(1, link("400Gbps", "1us", loss=loss))
        scenario = Scenario(
            topology=topology,
            transport=open_loop(FRAME_BYTES),
            traffic=messages(message(frames * FRAME_BYTES)),
            record=Record(drops=True),
        )
        lost = run(scenario, network=network).rows("drop")["sequence"].astype(np.int64)
        pairs = np.count_nonzero(np.diff(lost) == 1)
        spread = np.sqrt(frames * loss**2 * (1 + 2 * loss - 3 * loss**2))
        assert abs(pairs - frames * loss**2) <= 3 * spread

    def test_nothing_is_lost_where_nothing_can_be(self) -> None:
        topology, network = chain(3, link("400Gbps", "1us"))
        scenario = Scenario(
            topology=topology,
            switch=lossless_switch(),
            transport=transport(FRAME_BYTES, acks=True, reliability=GoBackN(rto="1ms")),
            traffic=messages(message(10**7)),
        )
        outcome = run(scenario, network=network)
        assert outcome.columns["drops_by_reason"].sum() == 0
        assert outcome.columns["flow_retransmitted"].sum() == 0
        assert outcome.columns["flow_completed_ps"][0] < 1 * MS
