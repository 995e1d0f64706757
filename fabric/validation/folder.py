"""A folder of reference runs: its `index.csv`, and the runs that it names.

`index.csv` has a row a run. `scenario` names the run's folder, which holds `config.txt`, `topology.txt`,
`flow.txt` and outputs (`peer_files`); `purpose` and `cc` describe it. What is known of it beside its
files: `link_transmissions`, `max_queue_bytes`, `max_shared_bytes`, `pauses` (PAUSE frames), `drops`.

How close a repetition must be: `tol_reference_order` ("exact" in the peer's order of events, or "stat": marks
are drawn, so only statistics over seeds agree), `exact_under_local_rule` ("yes": exact too where ties go by
the start of transmissions), and `tol_own_order_mean`, `_max`, `_pauses`, `_queue`, `_makespan`, `_victim` for
any other fair order. Columns that are not there compare nothing, except that a run without
`tol_reference_order` must be exact.
"""

from __future__ import annotations

import csv
import fnmatch
from dataclasses import dataclass
from pathlib import Path

from fabric.errors import MISSING, FabricError, Said, SpecError
from fabric.validation.tolerance import RULES, Tolerance, parse_tolerance

__all__ = ["INDEX", "Case", "read_folder"]

INDEX = "index.csv"
ORDERS = ("exact", "stat")
OWN = "tol_own_order_"
QUANTITIES = ("mean", "max", "pauses", "queue", "makespan", "victim")
WHOLE = ("link_transmissions", "max_queue_bytes", "max_shared_bytes", "pauses", "drops")
NEEDED = ("config.txt", "topology.txt", "flow.txt")
COMPLETIONS = ("rx.txt", "fct.txt")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One reference run, as the index has it.

    Attributes
    ----------
    name : str
    folder : Path
        With its files.
    purpose, congestion : str
        What it is about, which congestion control it has.
    is_drawn : bool
        Whether marks are drawn and matter, so that statistics over seeds are compared.
    local_rule_is_exact : bool
        Whether ties by the start of transmissions give the same.
    tolerances : dict of str to Tolerance
        In any other order of simultaneous events, by quantity.
    known : dict of str to int
        Totals of the run.
    """

    name: str
    folder: Path
    purpose: str
    congestion: str
    is_drawn: bool
    local_rule_is_exact: bool
    tolerances: dict[str, Tolerance]
    known: dict[str, int]


def read_folder(folder: str | Path, *, only: str = "*") -> list[Case]:
    """Return the runs of a folder of reference runs.

    Parameters
    ----------
    folder : path
    only : str
        Pattern of names.

    Raises
    ------
    FabricError
        If it is no such folder, naming the file, the line, the value and what belongs there; or if no run
        matches.
    """
    index = Path(folder) / INDEX
    if not Path(folder).is_dir():
        raise SpecError(str(folder), Said("(no directory)"), f"a directory with {INDEX} and a folder a run")
    try:
        with open(index, encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if "scenario" not in (rows.fieldnames or ()):
                found = ", ".join(rows.fieldnames or ()) or "(empty)"
                raise SpecError(f"{index}:1", Said(found), "a header with a column scenario")
            cases = [_case(row, index, rows.line_num) for row in rows]
    except FileNotFoundError:
        raise SpecError(str(index), MISSING, "a table of the runs, one row each") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise SpecError(str(index), str(error), "a table in CSV, in UTF-8") from None
    names = [case.name for case in cases]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(str(index), name, "every run once")
    chosen = [case for case in cases if fnmatch.fnmatchcase(case.name, only)]
    if not chosen:
        known = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "") or "none at all"
        raise FabricError(f"{index}: no run matches {only!r} (there are: {known})")
    return chosen


def _case(row: dict[str, str | None], index: Path, line: int) -> Case:
    def cell(name: str, default: str = "") -> str:
        return (row.get(name) or default).strip()

    def wrong(name: str, allowed: str) -> SpecError:
        return SpecError(f"{index}:{line} {name}", cell(name), allowed)

    name = cell("scenario")
    if not name or Path(name).name != name:
        raise wrong("scenario", f"the name of a folder beside {INDEX}")
    place = index.parent / name
    for file in NEEDED:
        if not (place / file).is_file():
            raise SpecError(str(place / file), MISSING, f"a file of the run {name}")
    if not any((place / file).is_file() for file in COMPLETIONS):
        raise SpecError(str(place), Said("(no completion times)"), " or ".join(COMPLETIONS))
    order = cell("tol_reference_order", "exact")
    if order not in ORDERS:
        raise wrong("tol_reference_order", " or ".join(ORDERS))
    tolerances = {}
    for quantity in QUANTITIES:
        try:
            tolerance = parse_tolerance(cell(OWN + quantity))
        except ValueError:
            rules = ", ".join(RULES)
            raise wrong(
                OWN + quantity, f"exact, a share (0.5%), an amount (54 or 12576 B), {rules}"
            ) from None
        if tolerance is not None:
            tolerances[quantity] = tolerance
    known = {}
    for name_of in WHOLE:
        if cell(name_of):
            if not cell(name_of).isdigit():
                raise wrong(name_of, "a whole number")
            known[name_of] = int(cell(name_of))
    if cell("exact_under_local_rule", "no") not in ("yes", "no"):
        raise wrong("exact_under_local_rule", "yes or no")
    return Case(
        name=name,
        folder=place,
        purpose=cell("purpose"),
        congestion=cell("cc"),
        is_drawn=order == "stat",
        local_rule_is_exact=cell("exact_under_local_rule") == "yes",
        tolerances=tolerances,
        known=known,
    )
