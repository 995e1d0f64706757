"""Real Chakra traces and AICB workloads on a fabric, where they are at hand.

Where they are looked for: see `test_foreign_files`. What they hold is counted in `test_training_formats`;
here all of it is sent: every byte that the files say, by the count of each collective's least traffic.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_foreign_files import SAMPLES

import fabric
from fabric.formats.aicb import read_aicb
from fabric.workload.aicb_groups import aicb_groups

MIB = 2**20

pytestmark = pytest.mark.skipif(not (SAMPLES / "aicb").is_dir(), reason="no files of other simulators here")


def run(name: str, *, hosts: int, until: str | None = None, **options: Any) -> fabric.Result:
    """On a leaf and spine, in frames of 64 KB, so that gigabytes take seconds."""
    scenario = fabric.Scenario(
        topology=fabric.LeafSpine(leaves=2, spines=2, hosts_per_leaf=hosts // 2),
        traffic=[fabric.Program(file=str(SAMPLES / name), **options)],
        transport=fabric.Transport(payload="64KB"),
        switch=fabric.Switch(buffer="256MB"),
    )
    return fabric.run(scenario, until=until)


@pytest.mark.parametrize(
    ("kind", "sent"),
    [
        ("all_reduce", 14 * MIB),
        ("all_gather", 56 * MIB),
        ("reduce_scatter", 7 * MIB),
        ("all_to_all", 7 * MIB),
    ],
)
def test_microbenchmarks(kind: str, sent: int) -> None:
    """One collective of eight ranks: 2(n-1) S of all-reduce; the all-gather's S is 8 MiB."""
    result = run(f"astra-sim/microbenchmarks/{kind}/8npus_1MB/{kind}.0.et", hosts=8)
    assert result.status == "FINISHED"
    assert result.operations["collective"].tolist() == [kind]
    assert result.operations["sent_bytes"].tolist() == [sent]


def test_the_custom_ring() -> None:
    result = run("astra-sim/custom_ring_allreduce_8npus_1MB/custom_allreduce.0.et", hosts=8)
    assert result.status == "FINISHED"
    assert len(result.operations) == 112
    assert int(result.operations["sent_bytes"].sum()) == 14_680_064
    assert int(result.ranks["left_ps"].max()) > 7 * 7 * 10**6


def test_the_traces_of_stage() -> None:
    """2 bytes an element: 192 all-gathers of 2 parts, 128 reduce-scatters, 40 all-reduces, 32 messages."""
    result = run("stage/gpt4l_dp2_tp2_pp2/w.3.et", hosts=8, element="2B", flops=1e14)
    assert result.status == "FINISHED"
    kinds, counts = np.unique(result.operations["collective"], return_counts=True)
    found = dict(zip(kinds.tolist(), counts.tolist(), strict=True))
    assert found == {"all_gather": 192, "all_reduce": 40, "broadcast": 32, "reduce_scatter": 128}
    elements = 192 * 2 * 262144 + 128 * 524288 + 2 * (32 * 6291456 + 8 * 32768000) + 32 * 262144
    assert int(result.operations["sent_bytes"].sum()) == 2 * elements


FACTOR = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1, "broadcast": 1}
"""Times n - 1 times the size: what n ranks send in all."""


@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        ("simai/microAllReduce.txt", 8),
        ("aicb/micro_all_gather.txt", 8),
        ("aicb/G13B-M1-C01_GPT13B_megatron_tp8_pp1_mbs1_A100.txt", 16),
        ("aicb/G175B-M1-C03_GPT175B_megatron_tp8_pp1_mbs1_A100.txt", 16),
        ("aicb/L7B-D1-C02_Llama7B_deepspeed_zero3_A100.txt", 8),
    ],
)
def test_workloads_are_sent(name: str, ranks: int) -> None:
    file = read_aicb(SAMPLES / name)
    groups = aicb_groups(file, n_ranks=ranks).groups
    expected = 0
    for kind, group, size in zip(
        file.collective.ravel(), file.group.ravel(), file.size_bytes.ravel(), strict=True
    ):
        if kind:
            count, members = groups[str(group)].shape
            expected += FACTOR[str(kind)] * (members - 1) * count * int(size)
    result = run(name, hosts=ranks)
    assert result.status == "FINISHED"
    assert int(result.operations["sent_bytes"].sum()) == expected > 0


@pytest.mark.exhaustive
def test_the_large_workload_goes_through_its_stages() -> None:
    """All twelve stages, 32 ranks each: the first micro-batch is sent on when the first stage is through."""
    result = run("simai/workload_analytical.txt", hosts=384, ranks=384, until="200ms")
    operations = result.operations
    sent = operations[(operations["collective"] == "broadcast") & (operations["size_bytes"] == 50331648)]
    assert len(sent) == 2 * 11 * 24 * 32
    assert sent["left_ps"][sent["left_ps"] >= 0].tolist() != []
    assert (sent["left_ps"] >= 0).sum() == 32


def test_the_large_workload_begins() -> None:
    """One stage of twelve, one expert group: 32 of its 9216 ranks, the first 20 ms of a step."""
    result = run("simai/workload_analytical.txt", hosts=32, ranks=32, until="20ms")
    assert result.status == "UNTIL"
    assert set(result.operations["collective"].tolist()) == {
        *("all_reduce", "all_gather", "reduce_scatter", "all_to_all"),
    }
    done = result.operations["left_ps"] >= 0
    assert 0 < done.sum() < len(result.operations)
