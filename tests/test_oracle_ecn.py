"""Oracles of congestion marks: RED on a queue that stands still.

    p(q) = 0                                  q <= Kmin
           Pmax (q - Kmin) / (Kmax - Kmin)    Kmin < q <= Kmax
           1                                  q > Kmax

strict at both ends, as in the switch model of github.com/alibaba-edu/High-Precision-Congestion-Control. Of n
frames that meet the same q, a share p is marked, to within 3 sqrt(p (1 - p) / n).

The queue stands still when a burst is followed by a sender at exactly the rate of the port: every frame
that leaves is replaced at once. Thresholds are those of the DCQCN deployment (5 KB, 200 KB, 1 %), of the
HPCC simulator at 100 Gbit/s (400 KB, 1600 KB, 20 %) and of SONiC (1 MiB, 2 MiB, 5 %;
github.com/sonic-net/sonic-buildimage, `files/build_templates/qos_config.j2`).
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from support_oracles import Outcome, link, lossless_switch, message, messages, run, transport

from fabric.spec import Ecn, Record, Scenario, SingleSwitch, TrafficClass
from fabric.spec.switch import Pfc

DEPLOYMENT = (5_000, 200_000, 0.01)
HPCC_100G = (400_000, 1_600_000, 0.2)
SONIC = (1_048_576, 2_097_152, 0.05)

ROWS = [
    # Kmin, Kmax, Pmax, frame bytes, queue in frames, probability
    (*DEPLOYMENT, 1_000, 5, 0.0),
    (*DEPLOYMENT, 2_500, 41, 0.005),
    (*DEPLOYMENT, 1_000, 200, 0.01),
    (*DEPLOYMENT, 1_227, 163, 1.0),
    (*HPCC_100G, 5_000, 200, 0.1),
    (*HPCC_100G, 5_000, 320, 0.2),
    (*SONIC, 4_096, 320, 0.0125),
    (*SONIC, 4_096, 384, 0.025),
]
FRAMES = 40_000


def standing_queue(
    mode: str, *, kmin: int, kmax: int, pmax: float, frame_bytes: int, burst: int, frames: int, seed: int = 1
) -> Outcome:
    """A burst from host 1 and a long message from host 2, both at the rate of the port to host 0."""
    ecn = Ecn(kmin=kmin, kmax=kmax, pmax=pmax, mark=mode)
    data = TrafficClass(name="data", pfc=Pfc(xoff="1GB", headroom="1GB"), ecn=ecn)
    control = TrafficClass(name="control", priority=7, ecn=False, pfc=False)
    scenario = Scenario(
        topology=SingleSwitch(hosts=3, link=link("100Gbps", "1us")),
        switch=lossless_switch().replace(classes=(data, control)),
        transport=transport(frame_bytes),
        traffic=messages(
            message(burst * frame_bytes, 1, 0, name="burst"),
            message(frames * frame_bytes, 2, 0, name="long"),
        ),
        run={"seed": seed},
        record=Record(marks=True, packets={"ports": ["switch0->host0"]}),
    )
    outcome = run(scenario)
    assert outcome.status == "FINISHED"
    return outcome


@pytest.mark.parametrize("mode", ["enqueue", "dequeue"])
@pytest.mark.parametrize(("kmin", "kmax", "pmax", "frame_bytes", "queue", "expected"), ROWS)
def test_share_of_marked_frames(
    mode: str, kmin: int, kmax: int, pmax: float, frame_bytes: int, queue: int, expected: float
) -> None:
    """`queue` counts the frame itself when it is marked on arrival, and not when it leaves.

    So a burst is one frame longer where marks are made on leaving.
    """
    burst = queue + (mode == "dequeue")
    outcome = standing_queue(
        mode,
        kmin=kmin,
        kmax=kmax,
        pmax=pmax,
        frame_bytes=frame_bytes,
        burst=burst,
        frames=queue + FRAMES,
    )
    service_ps = frame_bytes * 80
    steady_from_ps = (queue + 3) * service_ps + 1_000_000
    steady_to_ps = (queue + FRAMES - 3) * service_ps + 1_000_000
    marks, sent = outcome.rows("mark"), outcome.rows("packet")

    def steady(rows: np.ndarray) -> np.ndarray:
        return rows[(rows["time_ps"] >= steady_from_ps) & (rows["time_ps"] < steady_to_ps)]

    n = len(steady(sent))
    marked = steady(marks)
    assert n == FRAMES - 6
    assert outcome.columns["queue_peak_bytes"].max() == burst * frame_bytes
    assert (marked["value"] == queue * frame_bytes).all()
    assert abs(len(marked) / n - expected) <= 3 * math.sqrt(expected * (1 - expected) / n)


@pytest.mark.parametrize("mode", ["enqueue", "dequeue"])
def test_receiver_and_switch_count_the_same_marks(mode: str) -> None:
    kmin, kmax, pmax = HPCC_100G
    outcome = standing_queue(
        mode, kmin=kmin, kmax=kmax, pmax=pmax, frame_bytes=5_000, burst=200, frames=5_000
    )
    marks = outcome.rows("mark")
    assert len(marks) == outcome.columns["queue_marks"].sum() > 0
    assert np.bincount(marks["flow"], minlength=2).tolist() == outcome.columns["flow_marked"].tolist()


def test_marks_of_one_seed_say_nothing_about_those_of_another() -> None:
    """Draws are independent between seeds: the number of common marks is n p^2, within 3 standard errors."""
    kmin, kmax, pmax = HPCC_100G
    marked = []
    for seed in (1, 2):
        rows = standing_queue(
            "dequeue",
            kmin=kmin,
            kmax=kmax,
            pmax=pmax,
            frame_bytes=5_000,
            burst=321,
            frames=FRAMES,
            seed=seed,
        ).rows("mark")
        marked.append(set(rows["sequence"][(rows["flow"] == 1) & (rows["value"] == 1_600_000)].tolist()))
    n = FRAMES - 321
    assert abs(len(marked[0] & marked[1]) / n - 0.04) <= 3 * math.sqrt(0.04 * 0.96 / n)
