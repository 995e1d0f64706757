"""Messages split over queue pairs: what the parts are, and what they do to a network."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fabric
from fabric.errors import SpecError
from fabric.spec import (
    Flow,
    Flows,
    LeafSpine,
    NoCongestionControl,
    Permutation,
    Scenario,
    SingleSwitch,
    Transport,
)
from fabric.workload import FlowTable, split_over_queue_pairs


@given(
    sizes=st.lists(st.integers(1, 10**7), min_size=1, max_size=9),
    pairs=st.integers(1, 1024),
    payload=st.integers(1, 9000),
)
def test_parts_are_the_message_in_whole_frames(sizes: list[int], pairs: int, payload: int) -> None:
    flows = FlowTable.from_arrays([0] * len(sizes), 1, size_bytes=sizes)
    split = split_over_queue_pairs(flows, Transport(payload=payload, queue_pairs=pairs))
    whole = np.array([name.split("/")[0] for name in split.names or ()]) if split.names else None
    at = 0
    for number, size in enumerate(sizes):
        frames = -(-size // payload)
        count = min(pairs, frames)
        parts = split.size_bytes[at : at + count]
        at += count
        assert parts.sum() == size
        assert (parts > 0).all()
        assert (parts[:-1] % payload == 0).all()
        part_frames = -(-parts // payload)
        assert part_frames.max() - part_frames.min() <= 1
        if whole is not None:
            assert set(whole[at - count : at]) == {f"flows#{number}"}
    assert at == len(split)


def test_one_pair_changes_nothing() -> None:
    flows = FlowTable.from_arrays([0, 1], 2, size_bytes=10**6)
    assert split_over_queue_pairs(flows, Transport()) is flows


def test_patterns_are_split_as_their_own_transport_says() -> None:
    one = FlowTable.from_arrays(0, 1, size_bytes=8000, label="one", transport=Transport(payload=1000))
    two = FlowTable.from_arrays(0, 1, size_bytes=8000, label="two")
    split = split_over_queue_pairs(FlowTable.concatenate([one, two]), Transport(payload=1000, queue_pairs=2))
    assert split.names == ("one#0", "two#0/0", "two#0/1")
    assert split.size_bytes.tolist() == [8000, 4000, 4000]


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_what_waits_for_a_message_waits_for_all_of_it(engine: str) -> None:
    flows = (
        Flow(source=0, destination=1, size="100KB", name="a"),
        Flow(source=1, destination=2, size="9KB", after=("a",), name="b"),
    )
    result = fabric.run(
        Scenario(
            topology=SingleSwitch(hosts=3),
            traffic=(Flows(flows=flows),),
            transport=Transport(queue_pairs=4),
        ),
        engine=engine,
    )
    assert result.flows["name"].tolist() == ["a/0", "a/1", "a/2", "a/3", "b/0", "b/1", "b/2"]
    received, started = result.flows["delivered_ps"], result.flows["start_ps"]
    assert started[4:].tolist() == [int(received[:4].max())] * 3


def test_parts_take_paths_of_their_own() -> None:
    """One flow uses one of eight equal paths, its sixteen queue pairs nearly all of them."""

    def used(pairs: int) -> int:
        result = fabric.run(
            Scenario(
                topology=LeafSpine(leaves=2, spines=8, hosts_per_leaf=1, oversubscription=1.0),
                traffic=(Flows(flows=(Flow(source=0, destination=1, size="1MB"),)),),
                transport=Transport(queue_pairs=pairs, congestion=NoCongestionControl()),
            )
        )
        return int((result.ports.where(link="leaf0->spine*")["tx_bytes"] > 100_000 / 16).sum())

    assert used(1) == 1
    assert used(16) >= 5


def test_collisions_of_a_permutation_become_fewer() -> None:
    def last_ps(pairs: int) -> int:
        result = fabric.run(
            Scenario(
                topology=LeafSpine(leaves=4, spines=4, hosts_per_leaf=4),
                traffic=(Permutation(size="1MB", cross_leaf=True),),
                transport=Transport(queue_pairs=pairs, congestion=NoCongestionControl()),
            )
        )
        return int(result.flows["fct_ps"].max())

    assert last_ps(8) < 0.8 * last_ps(1)


def test_a_saved_run_of_given_flows_runs_again(tmp_path) -> None:
    scenario = Scenario(
        topology=SingleSwitch(hosts=3),
        traffic=(Flows(file="flows.csv"),),
        transport=Transport(queue_pairs=3),
    )
    flows = FlowTable.from_arrays([0, 1], 2, size_bytes=[50_000, 60_000])
    result = fabric.run(scenario, flows=flows)
    assert len(result.flows) == 6
    result.save(tmp_path / "saved")
    assert fabric.run(tmp_path / "saved" / "scenario.toml").fingerprint == result.fingerprint


@pytest.mark.parametrize("pairs", [0, 1025])
def test_numbers_that_are_refused(pairs: int) -> None:
    with pytest.raises(SpecError, match="queue_pairs"):
        Transport(queue_pairs=pairs)
