"""Runs of random traffic that the statistical oracles share, short in the suite and long in `validation`.

Nothing here asserts; every function states a scenario, runs it on the native engine and hands back what
the closed forms speak of.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from support_oracles import (
    SECOND,
    US,
    Outcome,
    chain,
    link,
    lossless_switch,
    message,
    messages,
    run,
    transport,
)

from fabric.spec import LeafSpine, Permutation, Run, Scenario, SingleSwitch
from fabric.topology import Network
from fabric.workload import FlowTable

FRAME_BYTES = 1_000
FRAME_PS = 80_000
"""At 100 Gbit/s."""
RATE = "100Gbps"


@dataclass(frozen=True, eq=False)
class QueueRun:
    """Frames that arrived at given times, and when each should have been delivered."""

    outcome: Outcome
    start_ps: np.ndarray
    path_ps: int | np.ndarray
    expected_delivery_ps: np.ndarray


def lindley(start_ps: np.ndarray, service_ps: np.ndarray | int) -> np.ndarray:
    """Wait of every frame in one FIFO queue: W[k] = max(0, W[k-1] + S[k-1] - (A[k] - A[k-1]))."""
    service = np.broadcast_to(service_ps, start_ps.shape)
    before = np.cumsum(service) - service
    return before + np.maximum.accumulate(start_ps - before) - start_ps


def one_switch(sources: int) -> Scenario:
    """Hosts on one switch; its flows are given to `run`."""
    return Scenario(
        topology=SingleSwitch(hosts=sources + 1, link=link(RATE, "1us")),
        switch=lossless_switch(),
        transport=transport(FRAME_BYTES),
        traffic=messages(message(FRAME_BYTES, 1, 0)),
        run=Run(fingerprint=False),
    )


def md1_run(load: float, *, frames: int, sources: int, seed: int) -> QueueRun:
    """Poisson arrivals of equal frames at `sources` hosts, all to one host over one switch."""
    rng = np.random.default_rng(seed)
    start_ps = np.cumsum(rng.exponential(FRAME_PS / load, frames)).astype(np.int64)
    flows = FlowTable.from_arrays(
        rng.integers(1, sources + 1, frames), 0, size_bytes=FRAME_BYTES, start_ps=start_ps
    )
    outcome = run(one_switch(sources), flows=flows)
    path_ps = 2 * (FRAME_PS + US)
    return QueueRun(outcome, start_ps, path_ps, start_ps + lindley(start_ps, FRAME_PS) + path_ps)


def mm1_run(load: float, *, frames: int, seed: int) -> QueueRun:
    """Poisson arrivals of frames with exponential sizes at one host, over one cable.

    Sizes are whole bytes, at least Ethernet's 64; with a mean of 4,000 B that changes the mean by 0.01 %.
    """
    rng = np.random.default_rng(seed)
    size_bytes = np.clip(np.rint(rng.exponential(4_000, frames)), 64, 65_000).astype(np.int64)
    service_ps = size_bytes * (FRAME_PS // FRAME_BYTES)
    start_ps = np.cumsum(rng.exponential(service_ps.mean() / load, frames)).astype(np.int64)
    topology, network = chain(1, link(RATE, "1us"))
    scenario = Scenario(
        topology=topology,
        transport=transport(65_000),
        traffic=messages(message(1)),
        run=Run(fingerprint=False),
    )
    flows = FlowTable.from_arrays(0, 1, size_bytes=size_bytes, start_ps=start_ps)
    outcome = run(scenario, network=network, flows=flows)
    path_ps = service_ps + US
    return QueueRun(outcome, start_ps, path_ps, start_ps + lindley(start_ps, service_ps) + path_ps)


def waits_ps(queue_run: QueueRun) -> np.ndarray:
    """What every frame has waited, at its host and in the switch together."""
    return queue_run.outcome.columns["flow_delivered_ps"] - queue_run.start_ps - queue_run.path_ps


def queue_integral(outcome: Outcome) -> np.ndarray:
    """Integral over time of every recorded queue, in byte picoseconds: float64 [ports, classes].

    Without PFC the last depth of an instant is the largest of that instant (a port starts before frames
    arrive), which is the order of the rows.
    """
    rows = outcome.rows("queue")
    integral = np.zeros((outcome.lowered.n_ports, outcome.lowered.n_classes))
    same_queue = (np.diff(rows["port"].astype(np.int64)) == 0) & (np.diff(rows["class"].astype(int)) == 0)
    lasts_ps = np.where(same_queue, np.diff(rows["time_ps"]), 0)
    held = rows["value"][:-1].astype(np.float64) * lasts_ps
    np.add.at(integral, (rows["port"][:-1], rows["class"][:-1]), held)
    return integral


@dataclass(frozen=True, eq=False)
class FullestLinks:
    """By seed and leaf: links in use, throughput while all send, flows on the fullest link."""

    used_share: np.ndarray
    throughput_share: np.ndarray
    fullest: np.ndarray


def permutation_over_uplinks(flows: int, *, links: int, seeds: Iterable[int]) -> FullestLinks:
    """Two leaves with `flows` hosts each, `links` spines, every host to one of the other leaf at line rate.

    A leaf's uplinks carry what their flows offer, up to the link's rate. The last flow to finish shared the
    fullest link; its time tells how many were on it (acknowledgements of the other leaf's messages cost it a
    fraction of a frame).
    """
    frames = 20
    used, throughput, fullest = [], [], []
    for seed in seeds:
        cable = link(RATE, "1us")
        scenario = Scenario(
            topology=LeafSpine(
                leaves=2, spines=links, hosts_per_leaf=flows, host_link=cable, fabric_link=cable
            ),
            switch=lossless_switch(),
            transport=transport(FRAME_BYTES),
            traffic=(Permutation(size=frames * FRAME_BYTES, cross_leaf=True),),
            run=Run(seed=seed, fingerprint=False),
        )
        first_ps = US + FRAME_PS
        early = run(scenario, until_ps=first_ps + 1)
        late = early.until(first_ps + 1 + (frames - 1) * FRAME_PS)
        done = late.until(SECOND)
        assert done.status == "FINISHED"
        for leaf in range(2):
            up = up_ports(done.network, f"leaf{leaf}")
            sent = late.columns["port_tx_bytes"][up] - early.columns["port_tx_bytes"][up]
            used.append(np.count_nonzero(late.columns["port_tx_bytes"][up]) / links)
            throughput.append(sent.sum() / (links * (frames - 1) * FRAME_BYTES))
            mine = done.lowered.flow_source // flows == leaf
            last_ps = int(done.columns["flow_delivered_ps"][mine].max())
            fullest.append(round((last_ps - 3 * FRAME_PS - 4 * US) / (frames * FRAME_PS)))
    return FullestLinks(np.array(used), np.array(throughput), np.array(fullest))


def up_ports(network: Network, leaf: str) -> np.ndarray:
    return network.find_ports([f"{leaf}->spine*"])


def within_standard_errors(samples: np.ndarray, expected: float, *, errors: float = 3) -> bool:
    """Whether the mean of independent samples is as expected."""
    return abs(samples.mean() - expected) <= errors * samples.std(ddof=1) / np.sqrt(len(samples))
