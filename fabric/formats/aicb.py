"""Workloads of AICB and SimAI: layers with their compute and collectives, in one text file for all ranks.

The first line is a policy, then keys with values; the second the number of rows; each row has a name, a
dependency, then for the forward pass, the gradient of inputs and the gradient of weights a time in ns, a
collective and its bytes; at last the time of the update. The group of a collective depends on the column:
without a suffix it is the tensor group in the first two and the data group in the third; `_EP` and
`_DP_EP` say so themselves.

Sizes are those of the global vector, also of an all-gather. Messages of a pipeline are in no row, only
their size in the header (`pp_comm`) and the number of micro-batches (`ga`). Source: github.com/aliyun/aicb,
`workload_generator/`; github.com/aliyun/SimAI, `astra-sim/workload/Workload.cc` (described, not copied).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fabric.errors import Said, SpecError
from fabric.formats.data import Remark
from fabric.formats.words import LONGEST_NUMBER, place, read_text, whole
from fabric.units import LARGEST

__all__ = ["AICB_COLLECTIVES", "AICB_POLICIES", "AicbWorkload", "read_aicb"]

AICB_POLICIES = (
    *("DATA", "MODEL", "HYBRID_TRANSFORMER", "HYBRID_TRANSFORMER_FWD_IN_BCKWD", "HYBRID_DATA_MODEL"),
    *("HYBRID_MODEL_DATA", "HYBRID_DLRM", "HYBRID_DLRM_ENHANCED", "HYBRID_CUSTOMIZED", "MICRO"),
    "DISTRIBUTED_INFERENCE",
)

AICB_COLLECTIVES = {
    "NONE": "",
    "ALLREDUCE": "all_reduce",
    "ALLGATHER": "all_gather",
    "REDUCESCATTER": "reduce_scatter",
    "ALLTOALL": "all_to_all",
    "ALLREDUCEALLTOALL": "all_reduce_all_to_all",
    "BROADCAST": "broadcast",
}
"""Names of the words of rows."""

_SUFFIXES = {"_DP_EP": "dp_ep", "_EP": "ep"}
_COLUMN_GROUPS = ("tp", "tp", "dp")
_KEYS = {
    "model_parallel_NPU_group": "tp",
    "ep": "ep",
    "expert_parallel_npu_group": "ep",
    "pp": "pp",
    "vpp": "vpp",
    "ga": "ga",
    "all_gpus": "all_gpus",
    "pp_comm": "pp_comm",
}
_LISTS = ("checkpoints", "checkpoint_initiates")

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class AicbWorkload:
    """Rows of a file, in its order.

    Attributes
    ----------
    file, policy : str
    header : dict of str to int
        "tp", "ep", "pp", "vpp", "ga", "all_gpus", "pp_comm", where the file has them.
    checkpoints, checkpoint_initiates : tuple of int
        Rows.
    name : tuple of str [rows]
    dependency : ndarray of int64 [rows]
        -1: none.
    compute_ns, size_bytes : ndarray of int64 [rows, 3]
        Forward, gradient of inputs, gradient of weights.
    collective, group : ndarray of str [rows, 3]
        Values of `AICB_COLLECTIVES`, "" for none; "tp", "dp", "ep" or "dp_ep".
    update_ns : ndarray of int64 [rows]
    line : ndarray of int64 [rows]
    row_policy : tuple of str [rows]
        Of HYBRID_CUSTOMIZED; "" otherwise.
    remarks : tuple of Remark
        What the simulator that reads such files would do otherwise.
    """

    file: str
    policy: str
    header: dict[str, int]
    checkpoints: tuple[int, ...]
    checkpoint_initiates: tuple[int, ...]
    name: tuple[str, ...]
    dependency: Int64Array
    compute_ns: Int64Array
    collective: npt.NDArray[np.str_]
    group: npt.NDArray[np.str_]
    size_bytes: Int64Array
    update_ns: Int64Array
    line: Int64Array
    row_policy: tuple[str, ...]
    remarks: tuple[Remark, ...]

    def __len__(self) -> int:
        return len(self.name)


def read_aicb(file: str | Path) -> AicbWorkload:
    """Read a workload.

    Parameters
    ----------
    file : str or Path

    Returns
    -------
    AicbWorkload

    Raises
    ------
    SpecError
        Naming the line and value of what is wrong.
    """
    lines = [(k, line.split()) for k, line in enumerate(read_text(file).splitlines(), 1) if line.strip()]
    if len(lines) < 2:
        what = Said("nothing" if not lines else "the end of the file")
        raise SpecError(place(file, len(lines) + 1), what, "a policy, and a line with the number of rows")
    policy, header, lists = _header(file, *lines[0])
    number, words = lines[1]
    if len(words) != 1:
        raise SpecError(place(file, number), Said(" ".join(words)[:80]), "the number of rows")
    count = whole(words[0], where=place(file, number, "number of rows"))
    rows = lines[2:]
    if len(rows) != count:
        raise SpecError(place(file, number, "number of rows"), count, f"{len(rows)}, the rows that are there")
    width = 13 if policy == "HYBRID_CUSTOMIZED" else 12
    for line, words in rows:
        if len(words) != width:
            raise SpecError(place(file, line), Said(f"{len(words)} words"), f"{width} columns")
    for name, values in lists.items():
        wrong = [row for row in values if row >= count]
        if wrong:
            raise SpecError(place(file, lines[0][0], name), wrong[0], f"rows from 0 to {count - 1}")
    return _workload(file, policy, header, lists, rows)


def _header(
    file: str | Path, line: int, words: list[str]
) -> tuple[str, dict[str, int], dict[str, tuple[int, ...]]]:
    policy, left = words[0], words[1:]
    if policy not in AICB_POLICIES:
        raise SpecError(place(file, line, "policy"), policy, f"one of {', '.join(AICB_POLICIES)}")
    header: dict[str, int] = {}
    lists: dict[str, tuple[int, ...]] = dict.fromkeys(_LISTS, ())
    while left:
        key = left.pop(0).removesuffix(":")
        where = place(file, line, key)
        if key not in _KEYS and key not in _LISTS:
            raise SpecError(where, Said("an unknown key"), f"one of {', '.join([*_KEYS, *_LISTS])}")
        if not left:
            raise SpecError(where, Said("the end of the line"), "a value")
        if key in _KEYS:
            header[_KEYS[key]] = _number(left.pop(0), where=where)
            continue
        count = whole(left.pop(0), where=where)
        if count > len(left):
            raise SpecError(where, count, f"at most the {len(left)} numbers that follow")
        lists[key] = tuple(whole(text, where=where) for text in left[:count])
        left = left[count:]
    return policy, header, lists


def _number(text: str, *, where: str) -> int:
    """A whole number, which may be written as a decimal fraction ("6291456.0")."""
    try:
        value = Decimal(text) if len(text) <= LONGEST_NUMBER else Decimal(-1)
    except InvalidOperation:
        value = Decimal(-1)
    if not value.is_finite() or not 0 <= value <= LARGEST or value != value.to_integral_value():
        raise SpecError(where, text, "a whole number from 0 on")
    return int(value)


def _workload(
    file: str | Path,
    policy: str,
    header: dict[str, int],
    lists: dict[str, tuple[int, ...]],
    rows: list[tuple[int, list[str]]],
) -> AicbWorkload:
    remarks: list[Remark] = []
    compute = np.zeros((len(rows), 3), dtype=np.int64)
    size, update, dependency = compute.copy(), np.zeros(len(rows), dtype=np.int64), []
    kinds: list[list[tuple[str, str]]] = []
    for row, (line, words) in enumerate(rows):
        where = place(file, line)
        dependency.append(_dependency(words[1], where=f"{where} dependency", rows=len(rows)))
        kinds.append([])
        for column in range(3):
            time, word, count = words[2 + 3 * column : 5 + 3 * column]
            compute[row, column] = _number(time, where=f"{where} time")
            size[row, column] = _number(count, where=f"{where} bytes")
            kinds[row].append(_collective(word, column, where=f"{where} collective"))
            if word.startswith(("BROADCAST", "ALLREDUCEALLTOALL")):
                reason = "taken as it is; SimAI's own parser does not see it"
                remarks.append(Remark(file=str(file), line=line, what=word, reason=reason))
        update[row] = _number(words[11], where=f"{where} update")
    both = np.array(kinds, dtype=np.str_).reshape(len(rows), 3, 2)
    return AicbWorkload(
        file=str(file),
        policy=policy,
        header=header,
        checkpoints=lists["checkpoints"],
        checkpoint_initiates=lists["checkpoint_initiates"],
        name=tuple(words[0] for _, words in rows),
        dependency=np.array(dependency, dtype=np.int64),
        compute_ns=compute,
        collective=both[:, :, 0],
        group=both[:, :, 1],
        size_bytes=size,
        update_ns=update,
        line=np.array([line for line, _ in rows], dtype=np.int64),
        row_policy=tuple(words[12] if len(words) > 12 else "" for _, words in rows),
        remarks=tuple(remarks),
    )


def _dependency(text: str, *, where: str, rows: int) -> int:
    return -1 if text == "-1" else whole(text, where=where, high=rows - 1)


def _collective(word: str, column: int, *, where: str) -> tuple[str, str]:
    """Name and group of what a row says."""
    suffix = next((each for each in _SUFFIXES if word.endswith(each)), "")
    bare = word.removesuffix(suffix)
    if bare not in AICB_COLLECTIVES or (suffix and bare == "NONE"):
        raise SpecError(where, word, f"one of {', '.join(AICB_COLLECTIVES)}, possibly with _EP or _DP_EP")
    return AICB_COLLECTIVES[bare], _SUFFIXES.get(suffix, _COLUMN_GROUPS[column])
