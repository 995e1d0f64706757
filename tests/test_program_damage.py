"""Damaged Chakra traces and AICB workloads: one error that names the file, or a program; never anything else.

Bytes are changed, cut off and put in, in small files written here and, where they are at hand, in real ones.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from support_chakra import collective, node, put, receive, send, traces
from support_chakra_programs import random_program, written
from test_foreign_files import SAMPLES

from fabric.errors import SpecError
from fabric.workload.aicb import import_aicb
from fabric.workload.chakra import import_chakra
from fabric.workload.program import Program

WORKLOAD = """\
HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 2 vpp: 1 ga: 2 all_gpus: 8 \
checkpoints: 1 0 checkpoint_initiates: 1 2 pp_comm: 6291456.0
4
attn -1 20000 ALLREDUCE 8388608 20000 ALLREDUCE 8388608 0 NONE 0 100
moe -1\t300 ALLTOALL_EP 4096 300 ALLTOALL_EP 4096 0  REDUCESCATTER_DP_EP 12 100
tail -1 300 BROADCAST 4096 300 ALLGATHER 4096 0  NONE 0 100
grad -1 1 NONE 0 1 NONE 0 1 REDUCESCATTER 33554432 100
"""


def damaged(content: bytes, draw: Random) -> bytes:
    """With one to four bytes changed, left out or put in, and sometimes cut off."""
    out = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        place = draw.randrange(len(out) + 1)
        what = draw.random()
        if what < 0.6 and place < len(out):
            out[place] = draw.choice([out[place] ^ 1 << draw.randrange(8), draw.randrange(256)])
        elif what < 0.8:
            del out[place : place + draw.choice([1, 1, 7])]
        else:
            out[place:place] = draw.randbytes(draw.choice([1, 1, 5]))
    return bytes(out[: draw.randrange(len(out) + 1)] if draw.random() < 0.2 else out)


def attempt(read: Callable[[], tuple[Program, object]], folder: Path) -> bool:
    """Whether it is still a program; if not, the error is one, of a file of the folder."""
    try:
        program, _ = read()
    except SpecError as error:
        said = str(error)
        assert said.startswith((str(folder), "ranks: ")), said
        assert " is not allowed; expected " in said
        return False
    program.verify()
    return True


def outcomes(
    files: list[Path], read: Callable[[], tuple[Program, object]], *, seed: int, times: int
) -> set[bool]:
    """Of so many damages, each to one of the files, which are whole again afterwards."""
    draw, found = Random(seed), set()
    for _ in range(times):
        file = draw.choice(files)
        content = file.read_bytes()
        file.write_bytes(damaged(content, draw))
        try:
            found.add(attempt(read, file.parent))
        finally:
            file.write_bytes(content)
    return found


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("collectives", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_chakra(tmp_path: Path, seed: int, collectives: bool, zipped: bool) -> None:
    file = written(random_program(seed, chained=True), tmp_path, collectives=collectives)
    files = sorted(tmp_path.iterdir())
    if zipped:
        for each in tmp_path.glob("*.et"):
            each.write_bytes(gzip.compress(each.read_bytes(), mtime=0))
    assert attempt(lambda: import_chakra(file), tmp_path)
    assert outcomes(files, lambda: import_chakra(file), seed=seed, times=100) >= {False}


def test_aicb(tmp_path: Path) -> None:
    file = tmp_path / "workload.txt"
    file.write_text(WORKLOAD)
    assert attempt(lambda: import_aicb(file), tmp_path)
    assert outcomes([file], lambda: import_aicb(file), seed=1, times=400) == {False, True}


@pytest.mark.parametrize(
    "groups", ["", "[]", "{", '{"1": [1e400]}', '{"1": 1}', '{"a": [0, "b"]}', "[" * 10**5]
)
def test_groups(tmp_path: Path, groups: str) -> None:
    file = written(random_program(2, chained=True), tmp_path, collectives=True)
    (tmp_path / "comm_groups.json").write_text(groups)
    with pytest.raises(SpecError, match=r"comm_groups\.json"):
        import_chakra(file)


@pytest.mark.parametrize("zipped", [False, True])
def test_every_truncation_is_found(tmp_path: Path, zipped: bool) -> None:
    """Wherever rank 0's trace ends early, it lacks a node that rank 1 meets, or ends inside one."""
    file = traces(
        tmp_path,
        collective(1, 0, 64) + node(7, 4, put(7, 3)) + send(2, 1, 500, put(5, 7)),
        collective(1, 0, 64) + receive(9, 0, 500),
    )
    whole = gzip.compress(file.read_bytes(), mtime=0) if zipped else file.read_bytes()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        assert not attempt(lambda: import_chakra(file), tmp_path), length
    file.write_bytes(whole)
    assert attempt(lambda: import_chakra(file), tmp_path)


def test_every_truncation_of_a_workload_is_found(tmp_path: Path) -> None:
    """But that of the last number, which then is a smaller one."""
    file = tmp_path / "workload.txt"
    for length in range(len(WORKLOAD) - len("100\n")):
        file.write_text(WORKLOAD[:length])
        assert not attempt(lambda: import_aicb(file), tmp_path), length


# Real files.

real = pytest.mark.skipif(not (SAMPLES / "aicb").is_dir(), reason="no files of other simulators here")


@real
@pytest.mark.slow
@pytest.mark.parametrize(
    "folder",
    [
        "astra-sim/custom_ring_allreduce_8npus_1MB",
        "astra-sim/microbenchmarks/all_gather/8npus_1MB",
        "stage/gpt4l_dp2_tp2_pp2",
    ],
)
def test_real_traces(tmp_path: Path, folder: str) -> None:
    files = [each for each in (SAMPLES / folder).iterdir() if each.suffix in (".et", ".json")]
    for each in files:
        shutil.copy(each, tmp_path)
    copies = sorted(tmp_path.iterdir())
    first = next(each for each in copies if each.name.endswith(".0.et"))
    outcomes(copies, lambda: import_chakra(first), seed=0, times=30 if "stage" in folder else 100)


@real
@pytest.mark.parametrize(
    "name", ["aicb/micro_all_gather.txt", "aicb/G175B-M1-C03_GPT175B_megatron_tp8_pp1_mbs1_A100.txt"]
)
def test_real_workloads(tmp_path: Path, name: str) -> None:
    file = Path(shutil.copy(SAMPLES / name, tmp_path))
    outcomes([file], lambda: import_aicb(file, n_ranks=8), seed=0, times=100)
