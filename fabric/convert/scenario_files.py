"""An imported scenario as files of its own: TOML, with the network as JSON and the flows as CSV beside it.

`x.toml` comes with `x-network.json` and `x-flows.csv` (one for each priority group, if there are several), or
with copies of the files of its program (`x-program.goal`, `x-program.xml`, `x-program.0.et`).
They say the same as the other simulator's files and do not need them. All are written or none.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from fabric.convert.imported import Imported
from fabric.errors import SpecError
from fabric.formats import recognise
from fabric.io.files import write_together
from fabric.scenario import dump_scenario
from fabric.spec import Flows, GraphFile, Link, Program, Scenario
from fabric.topology.network_json import network_json
from fabric.workload import build_flows
from fabric.workload.chakra_files import group_file, rank_files
from fabric.workload.flow_csv import flow_csv

__all__ = ["save_scenario"]


def save_scenario(imported: Imported, file: str | Path) -> tuple[Path, ...]:
    """Write an imported scenario and what it needs, whole or not at all.

    Parameters
    ----------
    imported : Imported
    file : str or Path
        Name of the scenario file, ending in ".toml"; older files of these names are replaced.

    Returns
    -------
    tuple of Path
        What was written, the scenario first.

    Raises
    ------
    SpecError
        If the name does not end in ".toml", or the flows do not fit the network.
    FabricError
        If a file cannot be written.
    """
    target = Path(file)
    if target.suffix != ".toml":
        raise SpecError("--out", str(file), "a file name ending in .toml")
    flows = build_flows(imported.scenario, imported.network)
    network_file = target.with_name(f"{target.stem}-network.json")
    contents = {network_file: network_json(imported.network)}
    entries: list[Flows | Program] = []
    for entry in imported.scenario.traffic:
        if isinstance(entry, Program):
            copies = _copies(entry, target.with_name(f"{target.stem}-program"))
            contents |= {copy: source.read_bytes() for copy, source in copies.items()}
            entries.append(entry.replace(file=next(iter(copies)).name, groups=None))
    for pattern, label in enumerate(flows.patterns):
        number = "" if len(flows.patterns) == 1 else label.removeprefix("flows")
        flow_file = target.with_name(f"{target.stem}-flows{number}.csv")
        contents[flow_file] = flow_csv(flows, network=imported.network, pattern=pattern)
        entries.append(
            Flows(
                name=label if number else "",
                file=flow_file.name,
                traffic_class=flows.traffic_class[pattern],
            )
        )
    scenario = msgspec.structs.replace(
        imported.scenario,
        topology=GraphFile(file=network_file.name, link=_default_link(imported.scenario)),
        traffic=tuple(entries),
    )
    contents[target] = (_heading(imported) + dump_scenario(scenario)).encode()
    write_together(contents)
    return target, *(each for each in contents if each != target)


def _copies(entry: Program, base: Path) -> dict[Path, Path]:
    """Names of copies of a program's files, that which the scenario names first, and what is copied."""
    if recognise(entry.file) != "chakra":
        return {base.with_name(base.name + Path(entry.file).suffix): Path(entry.file)}
    copies = {
        base.with_name(f"{base.name}.{rank}.et"): file for rank, file in enumerate(rank_files(entry.file))
    }
    groups = group_file(entry.file) if entry.groups is None else Path(entry.groups)
    if groups is not None:
        copies[base.with_name(f"{base.name}.comm_groups.json")] = groups
    return copies


def _default_link(scenario: Scenario) -> Link:
    assert isinstance(scenario.topology, GraphFile)
    return scenario.topology.link


def _heading(imported: Imported) -> str:
    """Where the scenario comes from and what was left out, as comments."""
    scenario = imported.scenario
    assert isinstance(scenario.topology, GraphFile)
    traffic = (entry.file for entry in scenario.traffic if isinstance(entry, Flows | Program))
    files = [scenario.topology.file, *traffic]
    lines = [f"Converted from {' and '.join(Path(name).name for name in files if name)}."]
    lines += [f"Left out: {_without_folder(str(remark), remark.file)}" for remark in imported.ignored]
    return "".join(f"# {line}\n" for line in lines) + "\n"


def _without_folder(text: str, file: str) -> str:
    return text.replace(file, Path(file).name, 1)
