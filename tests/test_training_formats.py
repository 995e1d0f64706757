"""Chakra traces and AICB workloads: small ones written here, damaged ones, and files of their tools."""

from __future__ import annotations

import contextlib
import gzip
import os
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support_chakra import METADATA, attribute, node, put, record, saved, varint

from fabric.errors import SpecError
from fabric.formats.aicb import read_aicb
from fabric.formats.chakra import (
    COLLECTIVE,
    COMM_TYPES,
    COMPUTE,
    RECEIVE,
    SEND,
    read_chakra,
    read_chakra_groups,
)

SHARED = Path(os.environ.get("FABRIC_FOREIGN_FILES", Path(__file__).resolve().parents[2] / "shared"))
SAMPLES = SHARED / "samples"
real = pytest.mark.skipif(not SAMPLES.exists(), reason="real files are beside the repository")


TINY = bytes.fromhex(
    "070a05302e302e34"
    "3512026167180752"
    "0e0a0969735f6370755f6f70d80100"
    "520d0a09636f6d6d5f747970654802"
    "520e0a09636f6d6d5f73697a65488020"
)
"""An all-gather of 4096 bytes a rank, by hand: metadata, then a node without a number."""


def test_the_smallest_trace(tmp_path: Path) -> None:
    assert len(TINY) == 62
    trace = read_chakra(saved(tmp_path, TINY))
    assert (trace.version, len(trace), trace.name, trace.group) == ("0.0.4", 1, ("ag",), ("",))
    assert (trace.number.tolist(), trace.kind.tolist()) == ([0], [COLLECTIVE])
    assert (COMM_TYPES[trace.comm_type[0]], trace.comm_size.tolist()) == ("all_gather", [4096])
    assert not trace.on_cpu[0]
    assert trace.comm_tag.tolist() == [-1]


def test_a_zipped_trace_whatever_its_name(tmp_path: Path) -> None:
    assert read_chakra(saved(tmp_path, gzip.compress(TINY))).comm_size.tolist() == [4096]


@pytest.mark.parametrize("arm", [7, 9, 11, 13])
def test_integers_of_any_width(tmp_path: Path, arm: int) -> None:
    data = METADATA + node(3, COLLECTIVE, attribute("comm_size", 300, arm=arm))
    assert read_chakra(saved(tmp_path, data)).comm_size.tolist() == [300]


@pytest.mark.parametrize(
    ("arm", "content"),
    [
        (15, varint(15 << 3) + varint(600)),
        (17, varint(17 << 3) + varint(600)),
        (19, varint(19 << 3 | 5) + struct.pack("<I", 300)),
        (21, varint(21 << 3 | 1) + struct.pack("<Q", 300)),
        (23, varint(23 << 3 | 5) + struct.pack("<i", 300)),
        (25, varint(25 << 3 | 1) + struct.pack("<q", 300)),
    ],
)
def test_integers_of_other_kinds(tmp_path: Path, arm: int, content: bytes) -> None:
    data = METADATA + node(1, SEND, put(10, put(1, "comm_size") + content))
    assert read_chakra(saved(tmp_path, data)).comm_size.tolist() == [300]


def test_nodes_in_any_order_wait_by_number(tmp_path: Path) -> None:
    packed = put(5, varint(2**63) + varint(7))
    data = (
        METADATA
        + node(5, COMPUTE, packed, put(7, 12))
        + node(2**63, COMPUTE, put(4, 7), put(4, 7), put(99, "unknown"), put(8, b""))
        + node(7, RECEIVE, attribute("comm_type", 6), put(10, put(1, "empty")), attribute("pg_name", "3"))
    )
    trace = read_chakra(saved(tmp_path, data))
    assert sorted(zip(trace.wait_node.tolist(), trace.wait_for.tolist(), strict=True)) == [
        (0, 1),
        (0, 2),
        (1, 2),
    ]
    assert trace.duration_us.tolist() == [12, 0, 0]
    assert trace.number.tolist() == [5, 2**63, 7]
    assert trace.comm_type.tolist() == [-1, -1, -1]
    assert trace.group == ("", "", "3")


def test_all_reduce_is_a_written_zero(tmp_path: Path) -> None:
    data = METADATA + node(0, COLLECTIVE) + node(1, COLLECTIVE, attribute("comm_type", 0))
    assert read_chakra(saved(tmp_path, data)).comm_type.tolist() == [-1, 0]


def test_an_empty_record_ends_the_trace(tmp_path: Path) -> None:
    assert len(read_chakra(saved(tmp_path, b"\0" + node(0, COMPUTE) + b"\0rubbish"))) == 1


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "nothing"),
        (METADATA + b"\x80", "byte 8.*middle of a number"),
        (METADATA + b"\x40\x08", "byte 8.*a record of 64 bytes.*1 that are left"),
        (METADATA + record(b"\x12\x09ab"), "a field that ends"),
        (METADATA + record(b"\x0b"), "wire type 3"),
        (METADATA + record(b"\x00\x00"), "field 0"),
        (METADATA + record(b"\x08" + b"\xff" * 10), "64 bits"),
        (METADATA + record(b"\x08" + b"\xff" * 9 + b"\x7f"), "64 bits"),
        (METADATA + record(b"\x12\x01\xff"), "no UTF-8"),
        (METADATA + record(put(3, "seven")), "wire type 2"),
        (METADATA + record(put(10, 3)), "wire type 0"),
        (METADATA + node(0, 11), "node type 11"),
        (METADATA + node(1, COMPUTE) * 2, "byte 17.*a second node 1"),
        (METADATA + node(1, COMPUTE, put(5, 2)), "node 1 after 2"),
        (METADATA + node(1, COMPUTE, put(5, 1)), "node 1 after 1"),
        (METADATA + node(1, COMPUTE, put(7, 2**63)), "duration"),
        (METADATA + node(1, COLLECTIVE, attribute("comm_type", 10)), "comm_type 10"),
        (METADATA + node(1, SEND, attribute("comm_size", -1)), "comm_size -1"),
        (METADATA + node(1, SEND, attribute("comm_size", "1MB")), "comm_size '1MB'"),
        (METADATA + node(1, SEND, attribute("comm_size", 1.5)), "comm_size 1.5"),
        (b"\x1f\x8b", "gzip"),
        (gzip.compress(TINY)[:-9], "gzip"),
        (gzip.compress(TINY)[:12] + b"\0" * 20, "gzip"),
    ],
)
def test_damaged_traces(tmp_path: Path, data: bytes, words: str) -> None:
    file = saved(tmp_path, data)
    with pytest.raises(SpecError, match=words) as error:
        read_chakra(file)
    assert str(error.value).startswith(str(file))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_every_damage_is_one_error_or_none(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    whole = bytearray(TINY + node(4, COMPUTE, put(5, 0), put(7, 9)))
    cut = data.draw(st.integers(0, len(whole)))
    for _ in range(data.draw(st.integers(0, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    file = saved(tmp_path_factory.mktemp("et"), bytes(whole[:cut]))
    with contextlib.suppress(SpecError):
        read_chakra(file)


def test_a_trace_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="read"):
        read_chakra(tmp_path / "w.0.et")


def test_groups(tmp_path: Path) -> None:
    file = tmp_path / "groups.json"
    file.write_text('{"1": [0, 1], "2": [5]}')
    assert read_chakra_groups(file) == {"1": (0, 1), "2": (5,)}
    for wrong in ("", "[1]", '{"1": []}', '{"1": [0, 0]}', '{"1": [-1]}', '{"1": [true]}', '{"1": 3}'):
        file.write_text(wrong)
        with pytest.raises(SpecError) as error:
            read_chakra_groups(file)
        assert str(file) in str(error.value)


# AICB.

WORKLOAD = """\
HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 ep: 1 pp: 1 vpp: 1 ga: 2 \
all_gpus: 8 checkpoints: 1 0 checkpoint_initiates: 0 pp_comm: 6291456.0
3
attn -1 20000 ALLREDUCE 8388608 20000 ALLREDUCE 8388608 0 NONE 0 100
moe -1\t300 ALLTOALL_EP 4096 300 ALLTOALL_EP 4096 0  REDUCESCATTER_DP_EP 12 100
grad -1 1 NONE 0 1 NONE 0 1 REDUCESCATTER 33554432 100"""


def text(tmp_path: Path, content: str) -> Path:
    file = tmp_path / "workload.txt"
    file.write_text(content)
    return file


def test_a_workload(tmp_path: Path) -> None:
    found = read_aicb(text(tmp_path, WORKLOAD))
    assert found.header == {"tp": 4, "ep": 1, "pp": 1, "vpp": 1, "ga": 2, "all_gpus": 8, "pp_comm": 6291456}
    assert (found.name, found.checkpoints, found.checkpoint_initiates) == (("attn", "moe", "grad"), (0,), ())
    assert found.collective.tolist() == [
        ["all_reduce", "all_reduce", ""],
        ["all_to_all", "all_to_all", "reduce_scatter"],
        ["", "", "reduce_scatter"],
    ]
    assert found.group.tolist() == [["tp", "tp", "dp"], ["ep", "ep", "dp_ep"], ["tp", "tp", "dp"]]
    assert found.size_bytes.tolist() == [[8388608, 8388608, 0], [4096, 4096, 12], [0, 0, 33554432]]
    assert found.compute_ns.tolist() == [[20000, 20000, 0], [300, 300, 0], [1, 1, 1]]
    assert (found.update_ns.tolist(), found.line.tolist()) == ([100] * 3, [3, 4, 5])
    assert found.dependency.tolist() == [-1] * 3
    assert not found.remarks


def test_old_headers_and_other_policies(tmp_path: Path) -> None:
    old = WORKLOAD.replace("ep: 1 pp: 1", "expert_parallel_npu_group: 2 pp 1").replace("pp_comm:", "pp_comm")
    assert read_aicb(text(tmp_path, old)).header["ep"] == 2
    micro = "MICRO\n1\nmicro_test -1 1 NONE 0 1 NONE 0 1 ALLGATHER 4096 1\n"
    assert read_aicb(text(tmp_path, micro)).header == {}
    custom = "HYBRID_CUSTOMIZED\n1\nx -1 1 NONE 0 1 NONE 0 1 BROADCAST 64 1 DATA\n"
    found = read_aicb(text(tmp_path, custom))
    assert found.row_policy == ("DATA",)
    assert [(remark.line, remark.what) for remark in found.remarks] == [(3, "BROADCAST")]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (WORKLOAD, "", ":1"),
        (WORKLOAD, "MICRO", ":2"),
        ("HYBRID_TRANSFORMER_FWD_IN_BCKWD", "HYBRID_TRANSFORM", ":1 policy"),
        ("ga: 2", "gas: 2", ":1 gas"),
        ("ga: 2", "ga: two", ":1 ga"),
        ("ga: 2", "ga: 2.5", ":1 ga"),
        ("pp_comm: 6291456.0", "pp_comm:", ":1 pp_comm.*end of the line"),
        ("checkpoints: 1 0", "checkpoints: 99 0", ":1 checkpoints"),
        ("checkpoints: 1 0", "checkpoints: 1 3", ":1 checkpoints.*rows from 0 to 2"),
        ("\n3\n", "\n3 4\n", ":2.*number of rows"),
        ("\n3\n", "\n4\n", ":2 number of rows: 4.*3"),
        ("\n3\n", "\nx\n", ":2"),
        (" 100\nmoe", "\nmoe", ":3.*11 words.*12 columns"),
        ("ALLTOALL_EP 4096 300", "ALLTOALLV_EP 4096 300", ":4 collective.*ALLTOALLV_EP"),
        ("NONE 0 100", "NONE_EP 0 100", ":3 collective"),
        ("moe -1", "moe 3", ":4 dependency"),
        ("33554432", "-5", ":5 bytes"),
        ("attn -1 20000", "attn -1 1e999", ":3 time"),
        ("12 100", "12 soon", ":4 update"),
    ],
)
def test_damaged_workloads(tmp_path: Path, before: str, after: str, words: str) -> None:
    assert before in WORKLOAD
    file = text(tmp_path, WORKLOAD.replace(before, after, 1))
    with pytest.raises(SpecError, match=words) as error:
        read_aicb(file)
    assert str(error.value).startswith(str(file))


# Files of the tools themselves.


@real
@pytest.mark.parametrize("kind", ["all_gather", "all_reduce", "reduce_scatter", "all_to_all"])
def test_microbenchmarks_of_astra_sim(kind: str) -> None:
    folder = SAMPLES / "astra-sim" / "microbenchmarks" / kind / "8npus_1MB"
    for rank in range(8):
        trace = read_chakra(folder / f"{kind}.{rank}.et")
        assert (trace.version, trace.number.tolist(), trace.kind.tolist()) == ("0.0.4", [rank], [COLLECTIVE])
        assert COMM_TYPES[trace.comm_type[0]] == kind
        assert (trace.comm_size.tolist(), trace.group, len(trace.wait_node)) == ([2**20], ("",), 0)


@real
def test_the_custom_ring_of_astra_sim() -> None:
    folder = SAMPLES / "astra-sim" / "custom_ring_allreduce_8npus_1MB"
    traces = [read_chakra(folder / f"custom_allreduce.{rank}.et") for rank in range(8)]
    assert (sum(map(len, traces)), sum(len(trace.wait_node) for trace in traces)) == (280, 272)
    for rank, trace in enumerate(traces):
        assert Counter(trace.kind.tolist()) == {SEND: 14, RECEIVE: 14, COMPUTE: 7}
        assert set(trace.duration_us[trace.kind == COMPUTE].tolist()) == {7}
        sends = trace.kind == SEND
        assert set(trace.comm_dst[sends].tolist()) == {(rank + 1) % 8}
        assert set(trace.comm_size[trace.kind != COMPUTE].tolist()) == {131072}
    sent = sum(int(trace.comm_size[trace.kind == SEND].sum()) for trace in traces)
    assert sent == 14_680_064 == sum(int(trace.comm_size[trace.kind == RECEIVE].sum()) for trace in traces)


@real
def test_traces_of_stage() -> None:
    folder = SAMPLES / "stage" / "gpt4l_dp2_tp2_pp2"
    traces = [read_chakra(folder / f"w.{rank}.et") for rank in range(8)]
    kinds = sum((Counter(trace.kind.tolist()) for trace in traces), Counter())
    assert kinds == {COMPUTE: 2032, COLLECTIVE: 720, SEND: 32, RECEIVE: 32}
    assert sum(len(trace.wait_node) for trace in traces) == 3816
    sizes: Counter[tuple[str, int]] = Counter()
    for trace in traces:
        mine = trace.kind == COLLECTIVE
        pairs = zip(trace.comm_type[mine].tolist(), trace.comm_size[mine].tolist(), strict=True)
        sizes.update((COMM_TYPES[kind], size) for kind, size in pairs)
        assert set(trace.comm_size[np.isin(trace.kind, (SEND, RECEIVE))].tolist()) <= {262144}
    assert sizes == {
        ("all_gather", 262144): 384,
        ("reduce_scatter", 524288): 256,
        ("all_reduce", 6291456): 64,
        ("all_reduce", 32768000): 16,
    }
    groups = read_chakra_groups(folder / "comm_groups.json")
    first = Counter(
        name for name, kind in zip(traces[0].group, traces[0].kind, strict=True) if kind == COLLECTIVE
    )
    assert first == {"5": 81, "1": 9}
    assert (groups["5"], groups["1"]) == ((0, 2), (0, 1))


@real
@pytest.mark.parametrize(
    ("name", "rows", "size"),
    [
        ("simai/microAllReduce.txt", 2, 80 * 2**20),
        ("simai/workload_analytical.txt", 1789, 349_722_230_800),
        ("aicb/micro_all_gather.txt", 19, 2_147_479_552),
        ("aicb/G13B-M1-C01_GPT13B_megatron_tp8_pp1_mbs1_A100.txt", 92, 16_719_585_296),
        ("aicb/G175B-M1-C03_GPT175B_megatron_tp8_pp1_mbs1_A100.txt", 33, 19_059_388_417),
        ("aicb/L7B-D1-C02_Llama7B_deepspeed_zero3_A100.txt", 12, 3_496_004 + 1_889_785_610),
    ],
)
def test_workloads_of_aicb(name: str, rows: int, size: int) -> None:
    found = read_aicb(SAMPLES / name)
    assert (len(found), int(found.size_bytes.sum())) == (rows, size)
    assert bool(found.remarks) is ("G13B" in name)


@real
def test_the_large_workload_of_simai() -> None:
    found = read_aicb(SAMPLES / "simai" / "workload_analytical.txt")
    assert found.compute_ns.sum(axis=0).tolist() == [2_235_901_806, 1_914_495_229, 392_398_442]
    count: Counter[tuple[int, str, str]] = Counter()
    total: Counter[tuple[int, str, str]] = Counter()
    for column in range(3):
        cells = zip(
            found.collective[:, column], found.group[:, column], found.size_bytes[:, column], strict=True
        )
        for kind, group, size in cells:
            count[column, str(kind), str(group)] += 1
            total[column, str(kind), str(group)] += int(size)
    expected = {
        (0, "all_gather", "tp"): (600, 49_828_331_520),
        (0, "all_reduce", "tp"): (31, 1_208_008_720),
        (0, "reduce_scatter", "tp"): (384, 48_318_382_080),
        (0, "all_to_all", "tp"): (384, 9_663_676_416),
        (0, "all_to_all", "ep"): (384, 38_654_705_664),
        (1, "all_gather", "tp"): (576, 48_620_371_968),
        (1, "reduce_scatter", "tp"): (408, 38_654_705_664),
        (1, "all_reduce", "tp"): (1, 50_331_648),
        (1, "all_to_all", "tp"): (384, 9_663_676_416),
        (1, "all_to_all", "ep"): (384, 38_654_705_664),
        (2, "all_gather", "dp"): (1, 2_807_758_848),
        (2, "reduce_scatter", "dp"): (1, 5_615_517_696),
        (2, "all_gather", "dp_ep"): (1, 19_327_352_832),
        (2, "reduce_scatter", "dp_ep"): (1, 38_654_705_664),
    }
    assert {key: (count[key], total[key]) for key in count if key[1]} == expected


@real
def test_the_rows_of_the_small_workloads() -> None:
    llama = read_aicb(SAMPLES / "aicb" / "L7B-D1-C02_Llama7B_deepspeed_zero3_A100.txt")
    assert llama.header["tp"] == 1
    assert llama.collective[:, 1].tolist() == ["all_gather"] * 12
    assert int(llama.size_bytes[:, 1].sum()) == 3_496_004
    assert [each for each in llama.collective[:, 2].tolist() if each] == ["reduce_scatter"]
    assert int(llama.size_bytes[:, 2].sum()) == 1_889_785_610
    (gpt,) = (SAMPLES / "aicb").glob("G13B*.txt")
    thirteen = read_aicb(gpt)
    assert thirteen.header == {"tp": 8}
    assert thirteen.size_bytes[thirteen.collective == "broadcast"].tolist() == [16384]
    (gpt,) = (SAMPLES / "aicb").glob("G175B*.txt")
    large = read_aicb(gpt)
    assert large.size_bytes[(large.collective == "all_gather") & (large.size_bytes == 1)].tolist() == [1]
    micro = read_aicb(SAMPLES / "aicb" / "micro_all_gather.txt")
    assert micro.policy == "MICRO"
    assert micro.size_bytes[:, 2].tolist() == [4096 * 2**k for k in range(19)]
    first = read_aicb(SAMPLES / "simai" / "microAllReduce.txt")
    assert (first.header["tp"], first.size_bytes[:, 0].tolist()) == (8, [16 * 2**20, 64 * 2**20])
