"""One scenario from the files of another simulator, in whatever order they are named.

What each file is follows from its name and content (`fabric.formats.recognise`). A scenario needs a
topology and flows (or, in their place, a program: GOAL, MSCCL, Chakra, AICB); an HPCC configuration may join
them, and may name them itself. The scenario refers to the files, which are read again when it runs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from fabric.convert.failed_links import failed_links
from fabric.convert.hpcc_config import hpcc_link, hpcc_specs
from fabric.errors import Said, SpecError
from fabric.formats import FORMATS, FlowData, Remark, recognise
from fabric.formats.hpcc_config import Settings, parse_config
from fabric.formats.hpcc_flows import parse_flows
from fabric.formats.hpcc_topology import parse_topology
from fabric.formats.htsim_matrix import parse_matrix
from fabric.formats.htsim_topology import parse_fat_tree
from fabric.spec import Flows, GraphFile, Link, Program, Run, Scenario, Switch, TrafficClass, Transport
from fabric.topology import Network, build_network
from fabric.units import Duration, QuantityError
from fabric.workload import group_class
from fabric.workload.chakra_files import rank_files
from fabric.workload.program_files import PROGRAM_FORMATS, program_remarks

__all__ = ["Imported", "StartUnit", "import_files", "is_scenario", "network_spec"]

StartUnit = Literal["ps", "ns", "us"]

ROLES = {
    "hpcc_topology": "topology",
    "htsim_topology": "topology",
    "hpcc_flows": "flows",
    "htsim_matrix": "flows",
    "goal": "flows",
    "msccl": "flows",
    "chakra": "flows",
    "aicb": "flows",
    "chakra_groups": "groups",
    "hpcc_config": "configuration",
}
EXAMPLES = "flow.txt, .cm, GOAL, MSCCL, Chakra or AICB"
NAMED_BY_CONFIGURATION = {"topology": "TOPOLOGY_FILE", "flows": "FLOW_FILE"}


@dataclass(frozen=True, kw_only=True)
class Imported:
    """A scenario made from files of another simulator.

    Attributes
    ----------
    scenario : Scenario
        It names the files.
    network : Network
        Of its topology.
    ignored : tuple of Remark
        What was not taken over, or not as it stands, with the reason.
    """

    scenario: Scenario
    network: Network
    ignored: tuple[Remark, ...]


def import_files(
    *sources: str | Path, start_unit: StartUnit = "ps", first_start: Duration | str | None = None
) -> Imported:
    """Make a scenario of a topology, flows and possibly a configuration.

    Parameters
    ----------
    *sources : str or Path
        `topology.txt` or `.topo`; `flow.txt`, `.cm`, GOAL, MSCCL, AICB or the Chakra traces of one or
        more ranks, with their groups; `config.txt`. A configuration alone is enough if it names the other
        two (beside it, as they stand, or by their last part beside it).
    start_unit : {"ps", "ns", "us"}
        What `start` counts in a `.cm`.
    first_start : Duration or str, optional
        When the first flow starts; the others, and the end of the run, move with it. HPCC's files begin
        at 2 s, which an average over the run would count. None (default): as the files say.

    Returns
    -------
    Imported

    Raises
    ------
    SpecError
        A file that is none of these, two of one kind, one too few, or something wrong in one, naming
        file and line.
    """
    files = _by_role(sources)
    settings = parse_config(files["configuration"]) if "configuration" in files else None
    for role, key in NAMED_BY_CONFIGURATION.items():
        if role not in files and settings is not None and settings.has(key):
            files[role] = _named(settings, key)
    for role, example in (("topology", "topology.txt or .topo"), ("flows", EXAMPLES)):
        if role not in files:
            given = ", ".join(str(source) for source in sources)
            raise SpecError("sources", Said(given), f"also a file of {role}: {example}")
    topology = network_spec(files["topology"], link=hpcc_link(settings) if settings else None)
    remarks = list(_topology_remarks(files["topology"]))
    network = build_network(topology)
    flows, more = _flows(files["flows"], start_unit, files.get("groups"))
    remarks += more
    if flows.failures:
        topology = topology.replace(overrides=failed_links(flows.failures, network=network))
        network = build_network(topology)
    traffic = _traffic(
        files["flows"],
        settings,
        start_unit=start_unit,
        first_start=_duration(first_start),
        groups=files.get("groups"),
    )
    name = "-".join(Path(files[role]).stem for role in ("topology", "flows"))
    scenario = Scenario(name=name, topology=topology, traffic=(traffic,), switch=Switch(latency=Duration(0)))
    groups = np.unique(flows.group).tolist()
    classes = ("data",) if len(groups) <= 1 else tuple(group_class(group) for group in groups)
    if settings is not None:
        specs = hpcc_specs(settings, network=network, classes=classes)
        remarks += specs.remarks
        scenario = scenario.replace(
            switch=specs.switch,
            nic=specs.nic,
            transport=specs.transport,
            routing=specs.routing
            if flows.udp_port is None
            else specs.routing.replace(udp_port=flows.udp_port),
            run=specs.run,
            record=specs.record,
        )
        if isinstance(traffic, Flows) and traffic.first_start is not None and specs.run.until is not None:
            scenario = scenario.replace(run=_moved_end(specs.run, flows, traffic.first_start))
    elif flows.udp_port is not None:
        reason = 'paths are hashed from it with routing.hash = "murmur3" and routing.udp_port only'
        what = f"destination port ({flows.udp_port})"
        remarks.append(Remark(file=files["flows"], line=0, what=what, reason=reason))
    if settings is None and len(groups) > 1:
        scenario = _with_classes(scenario, classes)
    return Imported(scenario=scenario, network=network, ignored=tuple(remarks))


def _traffic(
    file: str,
    settings: Settings | None,
    *,
    start_unit: StartUnit,
    first_start: Duration | None,
    groups: str | None,
) -> Flows | Program:
    if recognise(file) in PROGRAM_FORMATS:
        if first_start is not None:
            raise SpecError("first_start", first_start, "no first_start for a program, which begins at 0")
        return Program(file=file, groups=groups)
    return Flows(
        file=file,
        start_unit=start_unit if _is_matrix(file) else "ps",
        first_start=first_start,
        wait_file=_named(settings, "DEP_FILE") if settings is not None and settings.has("DEP_FILE") else None,
    )


def _duration(time: Duration | str | None) -> Duration | None:
    try:
        return None if time is None else Duration(time)
    except QuantityError as error:
        raise SpecError("first_start", error.value, error.allowed) from None


def is_scenario(
    sources: Sequence[str | Path], *, start_unit: StartUnit = "ps", first_start: Duration | str | None = None
) -> bool:
    """Return whether sources are one scenario, and not files of other simulators.

    Raises
    ------
    SpecError
        If they are one, and `start_unit` or `first_start` say how to read other files; or a file cannot be
        read.
    """
    if len(sources) != 1 or recognise(sources[0]) is not None:
        return False
    for name, given, default in (("start_unit", start_unit, "ps"), ("first_start", first_start, None)):
        if given != default:
            raise SpecError(name, given, f"no {name} with a scenario: it is for files of other simulators")
    return True


def network_spec(file: str | Path, *, link: Link | None = None) -> GraphFile:
    """Return the topology spec of a `topology.txt` or `.topo`.

    Raises
    ------
    SpecError
        If the file is neither.
    """
    kind = recognise(file)
    if kind is None or ROLES[kind] != "topology":
        raise SpecError(str(file), FORMATS.get(kind or "", "an unknown format"), "topology.txt or .topo")
    return GraphFile(file=str(file), link=link or Link())


def _by_role(sources: tuple[str | Path, ...]) -> dict[str, str]:
    files: dict[str, str] = {}
    for source in sources:
        kind = recognise(source)
        if kind is None:
            known = "; ".join(FORMATS.values())
            raise SpecError(str(source), _beginning(source), f"the beginning of one of: {known}")
        role = ROLES[kind]
        if kind == "chakra" and role in files and Path(source) in rank_files(files[role]):
            continue
        if role in files:
            raise SpecError(str(source), FORMATS[kind], f"one file of {role} (besides {files[role]})")
        files[role] = str(source)
    return files


def _beginning(source: str | Path) -> str:
    with open(source, "rb") as file:
        return file.readline(60).decode("utf-8", errors="replace").strip()


def _named(settings: Settings, key: str) -> str:
    """The file that a configuration names."""
    folder = Path(settings.file).parent
    named = settings.text(key)
    for candidate in (folder / named, Path(named), folder / Path(named).name):
        if candidate.is_file():
            return os.path.normpath(candidate)
    raise SpecError(settings.where(key), named, "an existing file, here or beside the configuration")


def _is_matrix(file: str) -> bool:
    return recognise(file) == "htsim_matrix"


def _topology_remarks(file: str) -> list[Remark]:
    parse = parse_topology if recognise(file) == "hpcc_topology" else parse_fat_tree
    return parse(file)[1]


def _flows(file: str, start_unit: StartUnit, groups: str | None) -> tuple[FlowData, list[Remark]]:
    if _is_matrix(file):
        return parse_matrix(file, start_unit=start_unit)
    if start_unit != "ps":
        raise SpecError(
            "start_unit", start_unit, "no unit for flow.txt, whose starts are seconds, nor for programs"
        )
    if recognise(file) in PROGRAM_FORMATS:
        remarks = program_remarks(Program(file=file, groups=groups))
        none = np.zeros(0, dtype=np.int64)
        return FlowData(
            source=none, destination=none, size_bytes=none, start_ps=none, group=none, line=none
        ), remarks
    return parse_flows(file)


def _moved_end(run: Run, flows: FlowData, first_start: Duration) -> Run:
    """The end of the run, moved as the starts of flows are."""
    assert run.until is not None
    first_ps = int(flows.start_ps.min())
    return run.replace(until=Duration(max(run.until - first_ps + first_start, 1)))


def _with_classes(scenario: Scenario, names: tuple[str, ...]) -> Scenario:
    """A class for each priority group besides that of control frames."""
    control = scenario.switch.classes[-1]
    classes = (*(TrafficClass(name=name) for name in names), control)
    return msgspec.structs.replace(
        scenario,
        switch=scenario.switch.replace(classes=classes),
        transport=Transport(data_class=names[0]),
    )
