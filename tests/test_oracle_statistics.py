"""Oracles of random traffic: waiting times, Little's law, hashing onto links, oversubscription.

    M/D/1   mean wait rho / (2 (1 - rho)) in frame times; mean number rho + rho^2 / (2 (1 - rho))
    M/M/1   mean wait rho / (1 - rho) in mean frame times (exponential sizes)
    Little  the mean queue is the arrival rate times the mean wait, on every port and sample path
    ECMP    n flows on m links: the share 1 - (1 - 1/m)^n of the links is in use
    X : 1   an oversubscribed leaf gives each host 1/X of its rate

(Kleinrock, "Queueing Systems", volume 1, 1975; Little, Operations Research 9, 1961.) Frames of one size from
K hosts over one switch to one port, all links equal: host wait plus switch wait is the wait of one queue
that all arrivals feed, on every sample path, so a line of arithmetic gives every departure exactly
(Lindley, "The theory of queues with a single server", 1952).

Sources are explicit flows of one frame each, with Poisson starts. Longer runs of the same tests are in
`validation/test_queueing_statistics.py` and `validation/test_hashing_statistics.py`.
"""

from __future__ import annotations

import numpy as np
import pytest
from support_oracles import GBPS, US, Outcome, link, lossless_switch, run, transport
from support_random_traffic import (
    FRAME_PS,
    FullestLinks,
    md1_run,
    mm1_run,
    one_switch,
    permutation_over_uplinks,
    queue_integral,
    waits_ps,
    within_standard_errors,
)

from fabric.routing import trace_path
from fabric.spec import Clos3, LeafSpine, Permutation, Poisson, Record, Scenario, Uniform
from fabric.topology.network import TIER_LEAF, TIER_SPINE
from fabric.workload import FlowTable


class TestOneQueue:
    @pytest.mark.parametrize("sources", [1, 4, 16, 64])
    @pytest.mark.parametrize("load", [0.5, 0.9])
    def test_every_departure_is_that_of_the_recursion(self, load: float, sources: int) -> None:
        run_ = md1_run(load, frames=20_000, sources=sources, seed=sources)
        delivered_ps = np.sort(run_.outcome.columns["flow_delivered_ps"])
        assert (delivered_ps == run_.expected_delivery_ps).all()

    def test_mean_wait_and_number(self) -> None:
        """Load 0.5: .5 and .75."""
        run_ = md1_run(0.5, frames=300_000, sources=16, seed=1)
        wait = waits_ps(run_).mean() / FRAME_PS
        duration_ps = run_.outcome.columns["counters"]["end_ps"]
        number = (waits_ps(run_) + FRAME_PS).sum() / duration_ps
        assert wait == pytest.approx(0.5, rel=0.02)
        assert number == pytest.approx(0.75, rel=0.02)

    def test_exponential_sizes(self) -> None:
        run_ = mm1_run(0.5, frames=20_000, seed=1)
        assert (run_.outcome.columns["flow_delivered_ps"] == run_.expected_delivery_ps).all()

    @pytest.mark.parametrize("sources", [2, 5, 16])
    @pytest.mark.parametrize("step", ["none", "frame", "random"])
    def test_periodic_sources(self, sources: int, step: str) -> None:
        """Period n frame times: at most n - 1 frames wait, and none if phases are whole frames apart."""
        rng = np.random.default_rng(sources)
        phases = {
            "none": np.zeros(sources, dtype=np.int64),
            "frame": np.arange(sources) * FRAME_PS,
            "random": rng.integers(0, sources * FRAME_PS, sources),
        }[step]
        rounds = np.arange(50)[:, None] * (sources * FRAME_PS)
        start_ps = (rounds + phases).ravel()
        flows = FlowTable.from_arrays(
            np.tile(np.arange(1, sources + 1), 50), 0, size_bytes=1_000, start_ps=start_ps
        )
        outcome = run(one_switch(sources), flows=flows)
        waiting = outcome.columns["queue_peak_bytes"].max() // 1_000
        assert outcome.status == "FINISHED"
        assert waiting <= sources - 1
        if step == "none":
            assert waiting == sources - 1
        if step == "frame":
            assert waiting == 0


class TestLittle:
    def test_every_port_from_idle_to_idle(self) -> None:
        """The integral of the recorded queue equals the waits that frames have had, byte for byte."""
        fast = link("100Gbps", "1us", gap=20)
        scenario = Scenario(
            topology=LeafSpine(leaves=4, spines=2, hosts_per_leaf=4, host_link=fast, fabric_link=fast),
            switch=lossless_switch(),
            transport=transport(1_500, header=62, acks=True),
            traffic=(Poisson(load=0.6, distribution="fb_hadoop", flows=800),),
            record=Record(queues={"ports": ["leaf*", "spine*"], "delta": 1}),
        )
        outcome = run(scenario)
        assert outcome.status == "FINISHED"
        integral = queue_integral(outcome)
        assert np.count_nonzero(integral[:, 0]) >= 16
        assert integral == pytest.approx(outcome.columns["queue_wait_integral"], rel=1e-12, abs=0)


class TestHashing:
    """Flows at line rate from every host of a leaf over m spines, chosen by hash; 2 leaves, 100 seeds."""

    @pytest.mark.parametrize(
        ("links", "share", "fullest"),
        [(2, 0.75, 1.5), (4, 0.6836, 2.125), (8, 0.6564, 2.5972)],
    )
    def test_permutation(self, links: int, share: float, fullest: float) -> None:
        found = permutation_over_uplinks(links, links=links, seeds=range(100))
        assert within_standard_errors(found.throughput_share, share)
        assert within_standard_errors(found.fullest, fullest)

    def test_throughput_is_that_of_the_links_in_use(self) -> None:
        found: FullestLinks = permutation_over_uplinks(8, links=8, seeds=range(20))
        assert found.throughput_share == pytest.approx(found.used_share, abs=0.005)

    def test_no_two_switches_hash_alike(self) -> None:
        scenario = Scenario(
            topology=Clos3(pods=4, leaves_per_pod=4, spines_per_pod=4, cores=16, hosts_per_leaf=4),
            traffic=(Permutation(size="4KB"),),
        )
        lowered = run(scenario).lowered
        salts = lowered.node_salt[lowered.n_hosts :]
        assert len(np.unique(salts)) == len(salts)

    def test_uniform_destinations_cross_leaves(self) -> None:
        """128 hosts, 8 to a leaf: a share 120/127 = .94488 of the flows, within 3 standard errors."""
        scenario = Scenario(
            topology=LeafSpine(leaves=16, spines=4, hosts_per_leaf=8),
            transport=transport(1_000),
            traffic=(Uniform(flows=40, size=1_000),),
        )
        outcome = run(scenario)
        paths = trace_path(
            outcome.lowered,
            first_port=outcome.lowered.flow_port,
            destination=outcome.lowered.flow_destination,
            path_hash=outcome.lowered.flow_hash,
        )
        flows = len(paths)
        crosses = (paths >= 0).sum(axis=1) == 4
        assert abs(crosses.mean() - 0.94488) <= 3 * np.sqrt(0.94488 * 0.05512 / flows)
        data_and_ack_bytes = (1_000 + 20) + (64 + 20)
        up_bytes = outcome.columns["port_tx_bytes"][ports_up(outcome)].sum()
        assert up_bytes == crosses.sum() * data_and_ack_bytes


def ports_up(outcome: Outcome) -> np.ndarray:
    """Ports of leaves that face a spine."""
    tier = outcome.network.tier
    owner, peer = outcome.network.port_node, outcome.network.port_node[outcome.network.port_peer]
    return np.flatnonzero((tier[owner] == TIER_LEAF) & (tier[peer] == TIER_SPINE))


@pytest.mark.parametrize("leaves", [2, 4])
@pytest.mark.parametrize(("ratio", "share"), [(1, 1.0), (2, 0.5), (4, 0.25)])
@pytest.mark.parametrize("arbiter", ["fifo", "round_robin"])
def test_oversubscription(arbiter: str, ratio: float, share: float, leaves: int) -> None:
    """Every host sends to another leaf; one spine, so that no hash is in the way."""
    duration_us = (500, 2_500)
    scenario = Scenario(
        topology=LeafSpine(
            leaves=leaves,
            spines=1,
            hosts_per_leaf=8,
            host_link=link("100Gbps", "1us"),
            fabric_link=link("400Gbps", "1us").replace(rate=8 * 100 * GBPS // ratio),
        ),
        switch=lossless_switch("200KB", arbiter=arbiter),
        transport=transport(1_000),
        traffic=(Permutation(size="10GB", cross_leaf=True),),
    )
    early = run(scenario, until_ps=duration_us[0] * US)
    late = early.until(duration_us[1] * US)
    sent_bytes = (late.columns["port_tx_bytes"] - early.columns["port_tx_bytes"])[late.lowered.flow_port]
    rate_bps = sent_bytes * 8e6 / (duration_us[1] - duration_us[0])
    assert late.columns["drops_by_reason"].sum() == 0
    assert rate_bps / (100 * GBPS) == pytest.approx(np.full(8 * leaves, share), rel=0.02)
