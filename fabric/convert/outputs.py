"""`fabric convert`: what is written follows from the name of the output."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fabric.convert.chakra_files import chakra_files
from fabric.convert.exports import export_flows, export_topology
from fabric.convert.hpcc_results import fct_text, pfc_text
from fabric.convert.imported import Imported, StartUnit, import_files, is_scenario
from fabric.convert.scenario_files import save_scenario
from fabric.errors import Said, SpecError
from fabric.formats import Remark
from fabric.io.files import write_together, write_whole
from fabric.result import Result
from fabric.scenario import load_scenario
from fabric.topology import build_network
from fabric.units import Duration
from fabric.workload import build_flows, build_jobs
from fabric.workload.goal import export_goal
from fabric.workload.program import Program

__all__ = ["OUTPUTS", "convert"]

OUTPUTS = {
    "*.toml": "scenario, network and flows",
    "topology*.txt": "network, for HPCC",
    "flow*.txt": "flows, for HPCC",
    "*.cm": "flows, for htsim",
    "*.goal": "what the ranks of a collective or program do, as GOAL",
    "*.et": "the same as Chakra traces, a file for each rank, with a file of groups",
    "fct*.txt": "completion times of a result",
    "pfc*.txt": "pauses of a result",
}
"""What an output of each name holds."""

OF_RESULTS = ("fct*.txt", "pfc*.txt")


def convert(
    sources: Sequence[str],
    out: str,
    *,
    start_unit: StartUnit = "ps",
    first_start: Duration | str | None = None,
) -> tuple[tuple[Path, ...], tuple[Remark, ...]]:
    """Read sources and write what the name of the output asks for, whole or not at all.

    Parameters
    ----------
    sources : sequence of str
        A scenario, files of another simulator, or the directory of a result.
    out : str
        A name as in `OUTPUTS`.
    start_unit, first_start
        As for `import_files`.

    Returns
    -------
    tuple of Path
        What was written.
    tuple of Remark
        What was left out of the sources.

    Raises
    ------
    SpecError, FabricError
        If the sources or the name are not right; nothing is written then.
    """
    target = Path(out)
    kind = next((pattern for pattern in OUTPUTS if target.match(pattern)), None)
    possible = _outputs_of(sources)
    if kind not in possible:
        raise SpecError("--out", out, f"for these sources a name such as {', '.join(possible)}")
    if kind in OF_RESULTS:
        result = Result.load(sources[0])
        text = fct_text(result) if kind == "fct*.txt" else pfc_text(result)
        write_whole(target, text.encode())
        return (target,), ()
    imported = _loaded(sources, start_unit, first_start)
    if kind == "*.toml":
        return save_scenario(imported, target), imported.ignored
    if kind == "topology*.txt":
        text = export_topology(imported.network)
    elif kind == "*.et":
        contents = chakra_files(_program(imported, "Chakra"), target)
        write_together(contents)
        return tuple(contents), imported.ignored
    elif kind == "*.goal":
        text = "".join(export_goal(_program(imported, "GOAL")))
    else:
        flows = build_flows(imported.scenario, imported.network)
        text = export_flows(flows, network=imported.network, form="htsim" if kind == "*.cm" else "hpcc")
    write_whole(target, text.encode())
    return (target,), imported.ignored


def _program(imported: Imported, form: str) -> Program:
    """The one program of a scenario."""
    jobs = build_jobs(imported.scenario, imported.network)
    if len(jobs) != 1:
        raise SpecError("traffic", Said(f"{len(jobs)} collectives and programs"), f"exactly one, for {form}")
    return jobs[0].program


def _outputs_of(sources: Sequence[str]) -> list[str]:
    """Names of what can be made of the sources: a scenario, for one, is not made of a scenario."""
    if len(sources) == 1 and Path(sources[0]).is_dir():
        return list(OF_RESULTS)
    return [
        name for name in OUTPUTS if name not in OF_RESULTS and (name != "*.toml" or not is_scenario(sources))
    ]


def _loaded(sources: Sequence[str], start_unit: StartUnit, first_start: Duration | str | None) -> Imported:
    if is_scenario(sources, start_unit=start_unit, first_start=first_start):
        scenario = load_scenario(sources[0])
        return Imported(scenario=scenario, network=build_network(scenario.topology), ignored=())
    return import_files(*sources, start_unit=start_unit, first_start=first_start)
