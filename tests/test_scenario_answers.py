"""What the headers of the shipped scenarios say, held to what these give."""

from __future__ import annotations

import numpy as np
import pytest
from support_scenarios import EXPECTED, longest_ms, operation_ms, result_of, script, slowdown

TRUNKS = ("leaf->spine", "spine->leaf")


class TestAnswers:
    """What the headers say about the runs, as far as it is more than a number of `expected.json`."""

    def test_an_incast_takes_its_floor_plus_the_idle_time_of_its_port(self) -> None:
        floor_ms, way_ms = 64 * (488 * 83.56 + 24.68) / 1e6, 0.004
        assert longest_ms("incast_pfc_only", "incast") == pytest.approx(floor_ms + way_ms, abs=5e-4)
        result = result_of("incast")
        (port,) = result.ports.where(link="leaf0->host0")
        idle_ms = (1 - port["utilisation"]) * result.duration_ps / 1e9
        assert longest_ms("incast", "incast") == pytest.approx(floor_ms + idle_ms, abs=0.005)
        assert longest_ms("incast", "incast") == pytest.approx(2.800, abs=5e-4)

    @pytest.mark.parametrize(
        ("name", "least", "most"),
        [("incast", 12.6, 45.8), ("incast_pfc_only", 23.0, 51.2), ("incast_lossy", 9.2, 17.3)],
    )
    def test_victims_of_an_incast(self, name: str, least: float, most: float) -> None:
        victims = result_of(name).flows.where(pattern="incast-victims")["slowdown"]
        assert [victims.min(), victims.max()] == pytest.approx([least, most], abs=0.05)

    def test_a_clock_of_nanoseconds_and_short_headers_hide_four_per_cent(self) -> None:
        ns3, clock, frames, own = (
            longest_ms(f"ns3_incast ({name})")
            for name in ("ns-3", "exact clock", "and Ethernet frames", "all as in fabric")
        )
        assert ns3 == pytest.approx(0.668_091 - 2 * 0.001_004, abs=1e-9)
        assert clock / ns3 == pytest.approx(83.84 / 83, abs=2e-4)
        assert frames / clock == pytest.approx((1000 + 62 + 20) / 1048, abs=2e-4)
        assert own == frames

    def test_windows_keep_queues_short_without_costing_time(self) -> None:
        for pattern, size in (("incast", 0.66), ("permutation", 0.1)):
            free, held = (f"cc_shootout ({pattern}, {control})" for control in ("none", "window"))
            assert longest_ms(held) == longest_ms(free)
            assert EXPECTED[held]["queue_peak_bytes"] < size * EXPECTED[free]["queue_peak_bytes"]
            assert EXPECTED[held]["paused_ps"] == 0

    def test_a_loss_costs_a_synchronous_step_a_time_out(self) -> None:
        flows = result_of("incast_lossy").flows
        waited = flows[flows["timeouts"] > 0]
        assert len(waited) == 7
        assert waited["fct_ps"].min() > flows[flows["timeouts"] == 0]["fct_ps"].max()
        assert longest_ms("incast_lossy") / longest_ms("incast") == pytest.approx(2.12, abs=0.01)

    def test_lossless_classes_lose_nothing(self) -> None:
        """Unless something fails."""
        whole = [name for name, case in script.CASES.items() if not case.load().failures]
        assert [name for name in whole if EXPECTED[name]["drops"]] == ["incast_lossy"]

    @pytest.mark.parametrize(
        ("name", "median", "slow", "last"),
        [("permutation_1024", 1.98, 4.83, 5.78), ("permutation_1024 with DCQCN", 5.45, 9.68, 12.53)],
    )
    def test_collisions_of_a_permutation(self, name: str, median: float, slow: float, last: float) -> None:
        found = [slowdown(name, percentile) for percentile in (50, 99, 100)]
        assert found == pytest.approx([median, slow, last], abs=0.006)

    @pytest.mark.parametrize(
        ("name", "median", "slow", "last"),
        [
            ("load_balancing", 1.08, 1.12, 1.13),
            ("load_balancing in turn", 1.20, 1.39, 1.46),
            ("load_balancing adaptive", 1.07, 1.12, 1.12),
            ("load_balancing by flowlets", 1.96, 3.91, 5.80),
            ("load_balancing over 8 queue pairs", 1.65, 2.09, 2.10),
        ],
    )
    def test_paths_of_a_permutation(self, name: str, median: float, slow: float, last: float) -> None:
        found = [slowdown(name, percentile) for percentile in (50, 99, 100)]
        assert found == pytest.approx([median, slow, last], abs=0.006)
        assert EXPECTED[name]["retransmitted"] == 0

    def test_the_share_of_empty_uplinks_is_that_of_independent_hashing(self) -> None:
        ports = result_of("permutation_1024").ports.where(tier="leaf->spine")
        data = ports["tx_bytes"] > 10**6
        assert 1 - data.mean() == pytest.approx((1 - 1 / 32) ** 32, abs=3 * np.sqrt(0.36 * 0.64 / len(ports)))

    def test_oversubscription_costs_its_full_proportion(self) -> None:
        floor_ms = longest_ms("oversubscription 1:1")
        assert floor_ms == pytest.approx(0.704, abs=5e-4)
        assert longest_ms("oversubscription 1.2:1") / floor_ms == pytest.approx(1.2, rel=0.01)
        assert longest_ms("oversubscription 1.5:1") / floor_ms == pytest.approx(1.5, rel=0.01)
        uplinks = result_of("oversubscription 1:1").ports.where(tier="leaf->spine")["utilisation"]
        assert uplinks.max() / uplinks.mean() == pytest.approx(1.17, abs=0.01)

    def test_websearch_offers_its_load_and_is_slowed_down(self) -> None:
        flows = result_of("websearch").flows
        offered = flows["size_bytes"].sum() * 8 / (128 * 400e9 * 5e-3)
        assert offered == pytest.approx(0.6, rel=0.03)
        found = [slowdown("websearch", percentile) for percentile in (50, 99)]
        assert found == pytest.approx([2.07, 23.1], rel=0.005)
        short = flows["slowdown"][flows["size_bytes"] <= 10_000]
        assert np.median(short) == pytest.approx(1.10, abs=0.01)

    @pytest.mark.parametrize(
        ("name", "victim_gbps", "h1_gbps", "other_gbps"),
        [("victim", 96.7, 96.6, 99.8), ("victim with round robin", 99.0, 98.0, 98.0)],
    )
    def test_a_victim_falls_to_the_rate_of_its_neighbour(
        self, name: str, victim_gbps: float, h1_gbps: float, other_gbps: float
    ) -> None:
        flows = result_of(name).flows
        goodput = dict(zip(flows["name"].tolist(), (flows["goodput_bps"] / 1e9).tolist(), strict=True))
        assert goodput.pop("victim") == pytest.approx(victim_gbps, abs=0.1)
        assert goodput.pop("h1") == pytest.approx(h1_gbps, abs=0.1)
        assert list(goodput.values()) == pytest.approx([other_gbps] * 3, abs=0.1)

    def test_a_ring_takes_its_steps_and_the_latency_of_its_ways(self) -> None:
        """Serialisation, with ACKs of the other direction; then the way, most often below the leaf."""
        (ring,) = result_of("allreduce_ring_64").operations
        port_us = (61 * 4178 + 226 + 62 * 84) * 8 / 400e3
        leaf_us, spine_us = 2 * 0.5 + 0.5 + 0.08356, 4 * 0.5 + 3 * 0.5 + 0.1
        assert ring["duration_ps"] / 1e6 == pytest.approx(
            126 * port_us + 118 * leaf_us + 8 * spine_us, rel=5e-3
        )
        shuffled = result_of("allreduce_ring_64 in a drawn order").operations[0]
        assert shuffled["duration_ps"] / ring["duration_ps"] == pytest.approx(1.486, abs=0.005)

    def test_a_sum_in_switches_takes_a_port_once(self) -> None:
        """The vector once each way, not 2 (n-1)/n times: more than any algorithm between hosts can do."""
        vector_us = -(-16 * 10**6 // 4096) * 4178 * 8 / 400e3
        in_network, ring, whole = (
            1e3 * operation_ms(f"allreduce_in_network{how}") for how in ("", ", ring", ", whole")
        )
        assert (in_network, whole) == pytest.approx((343.2, 1129.7), abs=0.1)
        assert vector_us < in_network < 1.06 * vector_us
        assert in_network < 2 * 63 / 64 * vector_us < ring

    def test_a_parameter_server_takes_what_its_port_takes(self) -> None:
        """63 vectors in, 63 out: without congestion control hardly more, and an eighth more with it."""
        frames, last_bytes = divmod(10**6, 4096)
        vector_us = (frames * 4178 + last_bytes + 82) * 8 / 400e3
        assert operation_ms("allreduce_incast") == pytest.approx(2.902, abs=5e-4)
        assert operation_ms("allreduce_incast") / (2 * 63 * vector_us / 1e3) == pytest.approx(1.127, abs=2e-3)
        assert operation_ms("allreduce_incast, direct") == pytest.approx(0.0518, abs=5e-5)
        ports = result_of("allreduce_incast").ports
        assert ports.where(link="leaf0->host0")["queue_peak_bytes"][0] == 42_343_444
        paused = ports["paused_ps"] > 0
        assert set(ports["tier"][paused]) == {"spine->leaf"}
        assert paused.sum() == 8

    @pytest.mark.parametrize(
        ("name", "flows"), [("allreduce_shuffled", 3), ("allreduce_shuffled in order", 1), ("two_jobs", 3)]
    )
    def test_flows_that_share_an_uplink(self, name: str, flows: int) -> None:
        """All flows of a ring carry the same, so the fullest uplink says how many it has."""
        result = result_of(name)
        trunks = np.concatenate([result.ports.where(tier=tier)["tx_bytes"] for tier in TRUNKS])
        one = result.ports.where(tier="host->leaf")["tx_bytes"]
        assert trunks.max() / np.median(one) == pytest.approx(flows, rel=0.05)

    def test_a_ring_goes_at_the_pace_of_its_most_crowded_link(self) -> None:
        in_order, shuffled = (operation_ms(f"allreduce_shuffled{way}") for way in (" in order", ""))
        assert shuffled / in_order == pytest.approx(2.918, abs=5e-3)

    def test_an_all_to_all_uses_its_links_best_at_once(self) -> None:
        names = ("alltoall_64", "alltoall_64 pair by pair", "alltoall_64 by Bruck")
        assert [operation_ms(name) for name in names] == pytest.approx([0.3666, 0.9259, 2.8194], abs=1e-4)
        ports = result_of("alltoall_64").ports
        fullest = max(ports.where(tier=tier)["tx_bytes"].max() for tier in TRUNKS)
        assert fullest / ports.where(tier="spine->leaf")["tx_bytes"].mean() == pytest.approx(1.45, abs=0.01)

    def test_popular_ranks_hold_up_the_others(self) -> None:
        result = result_of("alltoallv_skewed")
        done_ms = np.sort(result.ranks["left_ps"] / 1e9)
        assert done_ms[31] == pytest.approx(0.155, abs=5e-4)
        assert np.percentile(done_ms, 90) == pytest.approx(1.32, abs=5e-3)
        assert done_ms[-1] == pytest.approx(5.110, abs=5e-4)
        assert operation_ms("alltoallv_skewed, all alike") == pytest.approx(0.372, abs=5e-4)
        received = result.connections
        hot = received["size_bytes"][received["destination"] == "host7"].sum()
        assert hot == pytest.approx(215.2e6, rel=1e-3)
        paused = result.ports["paused_ps"] > 0
        assert (paused.sum(), (result.ports["tier"][paused] == "host->leaf").sum()) == (55, 20)

    def test_two_rings_lose_three_tenths(self) -> None:
        together, apart = (
            result_of("two_jobs").operations,
            result_of("two_jobs, one after the other").operations,
        )
        assert together["job"].tolist() == apart["job"].tolist() == ["even", "odd"]
        assert (together["busbw_bps"] / 1e9).tolist() == pytest.approx([104.1, 109.1], abs=0.1)
        assert (apart["busbw_bps"] / 1e9).tolist() == pytest.approx([155.2, 157.1], abs=0.1)

    @pytest.mark.parametrize(
        ("name", "ms"),
        [
            ("spine_down_allreduce", 8.462),
            ("spine_down_allreduce, healthy", 7.066),
            ("spine_down_allreduce, resilient", 7.638),
            ("spine_down_allreduce, end hosts", 10.619),
            ("link_flap", 21.191),
            ("link_flap, held down", 8.496),
            ("link_flap, no rerouting", 16.051),
            ("corrupting_optic", 7.339),
            ("corrupting_optic, taken out", 8.411),
            ("corrupting_optic, selective repeat", 7.408),
        ],
    )
    def test_a_ring_through_failures(self, name: str, ms: float) -> None:
        assert operation_ms(name) == pytest.approx(ms, abs=5e-4)

    def test_a_storm_stops_one_flow_in_eight(self) -> None:
        others = result_of("pfc_storm").flows.where(pattern="*")
        times_ms = others["fct_ps"][others["destination"] != "host0"] / 1e9
        assert (len(times_ms), (times_ms > 5).sum()) == (63, 8)
        assert times_ms.max() == pytest.approx(6.083, abs=5e-4)
        assert times_ms[times_ms < 5].max() <= 1.47
        healthy = result_of("pfc_storm, healthy").flows["fct_ps"] / 1e9
        assert healthy.max() <= 1.47

    def test_a_class_or_a_domain_contains_a_storm(self) -> None:
        training = [
            result_of(f"isolation ({how})").operations.where(job="training")["duration_ps"][0] / 1e9
            for how in ("shared", "own class", "own domain")
        ]
        assert training == pytest.approx([11.687, 1.404, 1.396], abs=5e-4)

    @pytest.mark.parametrize(
        ("name", "healthy_ms", "failed_ms"),
        [
            ("dual_plane", 5.247, 10.492),
            pytest.param("dual_plane_1024", 10.460, 20.919, marks=pytest.mark.exhaustive),
        ],
    )
    def test_dual_planes_survive_at_half(self, name: str, healthy_ms: float, failed_ms: float) -> None:
        """What is left over from exactly half is the way of the first frame, which is as long as before."""
        first, second = result_of(name).operations["left_ps"] / 1e9
        healthy = result_of(f"{name}, healthy").operations["left_ps"] / 1e9
        assert second - first == pytest.approx(failed_ms, abs=5e-4)
        assert healthy[1] - healthy[0] == pytest.approx(healthy_ms, abs=5e-4)
        assert 0 < 2 * (healthy[1] - healthy[0]) - (second - first) < 0.004
