"""Every run of a folder repeated and graded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from fabric.errors import MISSING, SpecError
from fabric.spec import Scenario
from fabric.validation.folder import Case, read_folder
from fabric.validation.grades import Row, beside, exact_rows, own_order_rows, statistical_rows
from fabric.validation.peer_files import PeerRun, read_peer_run
from fabric.validation.repeat import own_semantics, repeat, scenario_of
from fabric.validation.report import Report

__all__ = ["FEWEST_SEEDS", "validate"]

FEWEST_SEEDS = 20
READABLE, NATIVE, OWN = "readable engine, peer's order", "native engine", "own semantics"


def validate(
    folder: str | Path,
    *,
    only: str = "*",
    seeds: int = FEWEST_SEEDS,
    readable: bool = True,
    watch: Callable[[str], None] = lambda name: None,
) -> Report:
    """Repeat the runs of a folder and compare them with what the peer put out.

    Parameters
    ----------
    folder : path
        With an `index.csv` and a folder a run (`docs/validation.md`).
    only : str
        Pattern of names of runs.
    seeds : int
        Seeds of runs whose marks are drawn, at least 2.
    readable : bool
        Whether the readable engine repeats runs too, in the peer's order of events; it takes some 30 s per
        million frames.
    watch : callable
        Is told the name of each run before it begins.

    Returns
    -------
    Report

    Raises
    ------
    FabricError
        If the folder is no such folder, or one of its runs cannot be read; before anything is run.
    """
    if seeds < 2:
        raise SpecError("seeds", seeds, "an integer, 2 or more")
    cases = read_folder(folder, only=only)
    read = [(case, scenario_of(case.folder), _peer_of(case)) for case in cases]
    rows: list[Row] = []
    for case, scenario, peer in read:
        watch(case.name)
        rows += _rows(case, scenario, peer, seeds=seeds, readable=readable)
    return Report(folder=Path(folder), cases=tuple(cases), rows=tuple(rows))


def _peer_of(case: Case) -> PeerRun:
    peer = read_peer_run(case.folder)
    if case.is_drawn and not peer.seeds:
        raise SpecError(
            str(case.folder / "seeds.txt"), MISSING, "runs by seed, as tol_reference_order is stat"
        )
    return peer


def _rows(case: Case, scenario: Scenario, peer: PeerRun, *, seeds: int, readable: bool) -> Iterator[Row]:
    own = own_semantics(scenario)
    if case.is_drawn:
        for described, way in ((scenario, NATIVE), (own, OWN)):
            runs = [repeat(described, peer, way="native", seed=seed) for seed in range(1, seeds + 1)]
            said = f"{way}, {seeds} seeds"
            yield from statistical_rows(case, runs, peer, way=said, graded=way == NATIVE)
        return
    if readable:
        yield from exact_rows(case, repeat(scenario, peer, way="peer order"), peer, way=READABLE)
    compare = exact_rows if case.local_rule_is_exact else own_order_rows
    yield from compare(case, repeat(scenario, peer, way="native"), peer, way=NATIVE)
    yield from beside(case, repeat(own, peer, way="native"), peer, way=OWN)
