"""Lossy paths that the short and the long oracle tests of recovery share.

Loss belongs to a cable, in both directions. To lose data and spare what comes back, hosts have two ports
on the switch: data leave by the first port of host 0, and the switch hashes what returns onto either.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from support_oracles import SECOND, Outcome, link, lossless_switch, message, messages, run, transport

from fabric.spec import GoBackN, LinkOverride, Record, Run, Scenario, SingleSwitch

FRAME_BYTES = 1_000
SERVICE_PS = 80_000
"""At 100 Gbit/s."""
ACK_PS = 64 * 8 * SECOND // (100 * 10**9)
MOST_SEEDS = 500


def lossy_cable(
    frames: int,
    *,
    loss: float,
    delay: str | int,
    rto: str | None,
    seed: int,
    drops: bool = True,
) -> Scenario:
    """A message from host 0 to host 1, whose first cable loses frames."""
    return Scenario(
        topology=SingleSwitch(
            hosts=2,
            ports_per_host=2,
            link=link("100Gbps", delay),
            overrides=(LinkOverride(match="host0-switch0#0", loss=loss),),
        ),
        switch=lossless_switch(),
        transport=transport(FRAME_BYTES, acks=True, reliability=GoBackN(rto=rto)),
        traffic=messages(message(frames * FRAME_BYTES, 0, 1)),
        run=Run(seed=seed, fingerprint=False),
        record=Record(drops=drops),
    )


@lru_cache(maxsize=1)
def seeds_with_another_way_back(count: int) -> tuple[int, ...]:
    """The first seeds with which acknowledgements come back by the second cable of host 0."""
    found: list[int] = []
    seed = 0
    while len(found) < count:
        seed += 1
        outcome = run(lossy_cable(1, loss=0, delay="1us", rto=None, seed=seed))
        if outcome.columns["port_tx_bytes"][outcome.port("switch0->host0#0")] == 0:
            found.append(seed)
    return tuple(found)


def goodput_run(loss: float, *, round_trip_frames: int, frames: int, seed: int) -> Outcome:
    """A long message under loss of data alone.

    A report comes back half a frame before the frame that would have been sent next has been, so that a
    round trip of n frames costs n whole frames.
    """
    round_trip_ps = round_trip_frames * SERVICE_PS - SERVICE_PS // 2
    delay_ps = (round_trip_ps - 2 * SERVICE_PS - 2 * ACK_PS) // 4
    outcome = run(lossy_cable(frames, loss=loss, delay=delay_ps, rto=None, seed=seed, drops=False))
    assert outcome.status == "FINISHED"
    assert outcome.columns["port_tx_bytes"][outcome.port("switch0->host0#0")] == 0
    return outcome


def seed_with_losses(attempt: Callable[[int], Outcome], *, expected: list[tuple[int, int]]) -> Outcome:
    """The first run in which just these frames, as (kind, sequence), are lost."""
    for seed in range(1, MOST_SEEDS):
        outcome = attempt(seed)
        rows = outcome.rows("drop")
        if list(zip(rows["kind"].tolist(), rows["sequence"].tolist(), strict=True)) == expected:
            return outcome
    raise AssertionError(f"no seed below {MOST_SEEDS} loses just {expected}")
