"""Instructions per hop, counted by callgrind inside the engine's `run` and nowhere else.

Instruction counts do not depend on what else the machine does, and so show changes of one per cent that
time hides. They say nothing about cache misses, which dominate at thousands of hosts: read them beside the
times. Collection is toggled on entering and leaving `Engine.run`, of which Python's own share is a few
hundred instructions; start, lowering and building are not counted. As callgrind is some fifty times slower
than the machine, messages are smaller than in the timed cases (`--full`: as large), so growing rings and
starting flows weigh more, and queues are shorter.

Needs valgrind, and an engine whose symbols were not stripped.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cases import ALL_CASES, CASES, SEARCHES, Case, case_named
from benchmarks.child import ChildError, measure_command, run_process
from benchmarks.measure import Speed
from benchmarks.tables import table_text
from fabric.units import Size

__all__ = ["Count", "count_instructions", "instructions_table", "main", "own_instructions", "total_of"]

RUN_SYMBOL = "__pyx_pw_*Engine_*run"
"""The entry of `Engine.run`: Python's method table refers to it, so no compiler inlines it away."""

HEADER = ("case", "message", "hops", "instructions", "per hop")
BESIDE = "times those beside"


class CountError(RuntimeError):
    """Instructions could not be counted."""


@dataclass(frozen=True, kw_only=True)
class Count:
    """Instructions of one run of a case, those of each function by itself, and the hops of that run."""

    case: Case
    flow_bytes: Size
    hops: int
    instructions: int
    functions: Counter[str]


def count_instructions(case: Case, *, flow_bytes: Size, keep: Path | None = None) -> Count:
    """Count the instructions of a case under callgrind.

    Parameters
    ----------
    case : Case
    flow_bytes : Size
        Message size.
    keep : path, optional
        Directory in which callgrind's file is left, for `callgrind_annotate`.

    Raises
    ------
    CountError
        If valgrind is missing or fails, or nothing was counted.
    """
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise CountError("valgrind is not installed (on Debian: apt-get install valgrind)")
    with tempfile.TemporaryDirectory() as scratch:
        written = (keep or Path(scratch)) / f"callgrind.{case.name}"
        command = [
            valgrind,
            "--quiet",
            "--tool=callgrind",
            "--collect-atstart=no",
            f"--toggle-collect={RUN_SYMBOL}",
            f"--callgrind-out-file={written}",
            *measure_command("speed", case=case.name, flow_bytes=flow_bytes),
        ]
        try:
            printed = run_process(command)
        except ChildError as error:
            raise CountError(f"{case.name}: {error}") from None
        profile = written.read_text()
    instructions = total_of(profile)
    if instructions == 0:
        raise CountError(
            f"{case.name}: callgrind counted nothing inside {RUN_SYMBOL}: "
            "the engine has no such symbol (is it stripped?)"
        )
    return Count(
        case=case,
        flow_bytes=flow_bytes,
        hops=Speed(**json.loads(printed)).hops,
        instructions=instructions,
        functions=own_instructions(profile),
    )


def total_of(callgrind_file: str) -> int:
    """Return the instructions that a callgrind file sums up to; 0 if it has no total.

    Examples
    --------
    >>> total_of("events: Ir\\nfn=(1) run\\n10 250\\ntotals: 250\\n")
    250
    """
    found = re.search(r"^(?:totals|summary):\s*(\d+)", callgrind_file, flags=re.MULTILINE)
    return int(found.group(1)) if found else 0


def instructions_table(counts: Sequence[Count], *, markdown: bool = False) -> str:
    """Return the table of counts; with a column for cases whose neighbour was counted too, if any was."""
    per_hop = {count.case.name: count.instructions / count.hops for count in counts}
    times = {
        name: f"{per_hop[name] / per_hop[beside]:.4f}"
        for name, beside in ((count.case.name, count.case.beside) for count in counts)
        if beside in per_hop
    }
    rows = [
        [
            count.case.name,
            str(count.flow_bytes),
            f"{count.hops:,}",
            f"{count.instructions:,}",
            f"{per_hop[count.case.name]:.1f}",
            *([times.get(count.case.name, "")] if times else []),
        ]
        for count in counts
    ]
    return table_text((*HEADER, BESIDE) if times else HEADER, rows, markdown=markdown)


def own_instructions(callgrind_file: str) -> Counter[str]:
    """Return the instructions of each function without those that it calls.

    The format is described in the Valgrind manual, "Callgrind Format Specification": a function's cost
    lines follow its `fn=` line; the one line after `calls=` is the cost of the call, not the function's.

    Examples
    --------
    >>> own_instructions("fn=(1) run\\n10 5\\ncalls=1 3\\n11 40\\n+1 2\\nfn=(2) f\\n3 40\\n").most_common()
    [('f', 40), ('run', 7)]
    """
    names: dict[str, str] = {}
    costs: Counter[str] = Counter()
    function = ""
    skip = False
    for line in callgrind_file.splitlines():
        if match := re.match(r"(c?fn)=(\(\d+\))(?: (.*))?", line):
            kind, key, name = match.groups()
            if name is not None:
                names[key] = name
            function = function if kind == "cfn" else names[key]
        elif line.startswith("calls="):
            skip = True
        elif re.match(r"[+\-*\d]", line):
            if not skip:
                costs[function] += sum(map(int, line.split()[1:2]))
            skip = False
    return costs


def functions_table(count: Count, *, rows: int = 12, markdown: bool = False) -> str:
    """Return the functions of a case that take most, in instructions per hop of the case."""
    cells = [
        [re.sub(r"^__pyx_f_\d+fabric_\d+engine_\d+", "", name), f"{own / count.hops:.1f}"]
        for name, own in count.functions.most_common(rows)
    ]
    return table_text([count.case.name, "per hop"], cells, markdown=markdown)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__)
    names = [case.name for case in ALL_CASES]
    parser.add_argument("--case", action="append", choices=names, help="count this case (may be repeated)")
    parser.add_argument("--searches", action="store_true", help="count what the search for deadlock costs")
    parser.add_argument("--full", action="store_true", help="messages as large as in the timed cases")
    parser.add_argument("--functions", action="store_true", help="also print what each function takes")
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="leave callgrind's files there")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None, *, write: Callable[[str], object] = print) -> None:
    """Count the chosen cases (default: all) and print the table."""
    chosen = _arguments(argv)
    named = [case_named(name) for name in chosen.case or ()]
    cases = [*named, *(SEARCHES if chosen.searches else ())] or list(CASES)
    if chosen.keep is not None:
        chosen.keep.mkdir(parents=True, exist_ok=True)
    try:
        counts = [
            count_instructions(
                case,
                flow_bytes=case.flow_bytes if chosen.full else case.counted_flow_bytes,
                keep=chosen.keep,
            )
            for case in cases
        ]
    except CountError as error:
        sys.exit(f"instructions: {error}")
    write(instructions_table(counts, markdown=chosen.markdown))
    if chosen.functions:
        for count in counts:
            write("\n" + functions_table(count, markdown=chosen.markdown))


if __name__ == "__main__":
    main()
