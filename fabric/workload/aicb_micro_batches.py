"""Micro-batches of an AICB workload: which rows are one, found by what repeats.

AICB writes the layers of a stage once for each of `ga` micro-batches, one after the other, between rows that
stand once (`for _ in range(self.ga_num)` in `workload_generator/SimAI_training_workload_generator.py`). No
row says so. They are found as the `ga` equal runs of names that begin with the first name that stands `ga`
times.
"""

from __future__ import annotations

from collections import Counter

from fabric.formats.aicb import AicbWorkload

__all__ = ["micro_batches"]


def micro_batches(workload: AicbWorkload) -> list[range]:
    """Return the rows of each micro-batch; none if the file does not show them.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from fabric.formats.aicb import read_aicb
    >>> rows = [f"{name} -1 1 NONE 0 1 NONE 0 1 NONE 0 1" for name in "once in out in out end".split()]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "workload.txt")
    ...     characters = file.write_text("\\n".join(["HYBRID_TRANSFORMER ga: 2", "6", *rows]))
    ...     micro_batches(read_aicb(file))
    [range(1, 3), range(3, 5)]
    """
    count, names = workload.header.get("ga", 0), workload.name
    often = Counter(names)
    first = next((row for row, name in enumerate(names) if often[name] == count), None)
    if count < 2 or first is None:
        return []
    length = names.index(names[first], first + 1) - first
    found = [range(first + number * length, first + (number + 1) * length) for number in range(count)]
    whole = names[first : first + length]
    if any(names[one.start : one.stop] != whole for one in found):
        return []
    return found
