"""An imported scenario as files of its own: TOML, with the network as JSON and the flows as CSV beside it.

`x.toml` comes with `x-network.json` and `x-flows.csv` (one for each priority group, if there are several).
They say the same as the other simulator's files and do not need them. All are written or none.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from fabric.convert.imported import Imported
from fabric.errors import SpecError
from fabric.io.files import write_together
from fabric.scenario import dump_scenario
from fabric.spec import Flows, GraphFile, Link, Scenario
from fabric.topology import Network
from fabric.units import Duration, Quantity, Rate, Size
from fabric.workload import FlowTable, build_flows

__all__ = ["save_scenario"]

COLUMNS = ("source", "destination", "size", "start")


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
    contents = {network_file: _network_json(imported.network)}
    entries = []
    for pattern, label in enumerate(flows.patterns):
        number = "" if len(flows.patterns) == 1 else label.removeprefix("flows")
        flow_file = target.with_name(f"{target.stem}-flows{number}.csv")
        contents[flow_file] = _flow_csv(flows, imported.network, pattern)
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


def _default_link(scenario: Scenario) -> Link:
    assert isinstance(scenario.topology, GraphFile)
    return scenario.topology.link


def _heading(imported: Imported) -> str:
    """Where the scenario comes from and what was left out, as comments."""
    scenario = imported.scenario
    assert isinstance(scenario.topology, GraphFile)
    files = [scenario.topology.file, *(entry.file for entry in scenario.traffic if isinstance(entry, Flows))]
    lines = [f"Converted from {' and '.join(Path(name).name for name in files if name)}."]
    lines += [f"Left out: {_without_folder(str(remark), remark.file)}" for remark in imported.ignored]
    return "".join(f"# {line}\n" for line in lines) + "\n"


def _without_folder(text: str, file: str) -> str:
    return text.replace(file, Path(file).name, 1)


def _network_json(network: Network) -> bytes:
    """Node-link data as networkx writes it, with one node or edge a line."""
    nodes = (
        {
            "id": name,
            "kind": "host" if number < network.n_hosts else "switch",
            "tier": int(network.tier[number]),
        }
        for number, name in enumerate(network.names)
    )
    head = '{"directed": false, "multigraph": true, "graph": {},\n"nodes": [\n'
    return (head + _rows(nodes) + '\n],\n"edges": [\n' + _rows(_edges(network)) + "\n]}\n").encode()


def _rows(records: Iterator[dict[str, Any]]) -> str:
    return ",\n".join(json.dumps(record) for record in records)


def _edges(network: Network) -> Iterator[dict[str, Any]]:
    columns = (
        network.link_a,
        network.link_b,
        network.link_rate_bps,
        network.link_delay_ps,
        network.link_loss,
        network.link_bit_error_rate,
        network.link_gap_bytes,
    )
    for link, (a, b, rate, delay, loss, errors, gap) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        yield {
            "source": network.names[a],
            "target": network.names[b],
            "key": link,
            "link": link,
            "rate": str(Rate(rate)),
            "delay": str(Duration(delay)),
            "loss": loss,
            "bit_error_rate": errors,
            "gap": gap,
        }


def _texts(values: npt.NDArray[np.int64], kind: type[Quantity], *, round_to: int) -> dict[int, str]:
    """Text of every value: with a unit if it is round, else the bare number, which is quick to read."""
    return {
        value: str(kind(value)) if value % round_to == 0 else str(value)
        for value in np.unique(values).tolist()
    }


def _flow_csv(flows: FlowTable, network: Network, pattern: int) -> bytes:
    """Flows of one pattern; `name` and `after` only where some flow has them."""
    rows = np.flatnonzero(flows.pattern == pattern)
    named = flows.names is not None
    before: dict[int, list[str]] = {}
    for flow, predecessor in zip(flows.after_flow.tolist(), flows.after_predecessor.tolist(), strict=True):
        before.setdefault(flow, []).append((flows.names or ())[predecessor])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*COLUMNS, *(["name"] if named else []), *(["after"] if before else [])])
    sizes = _texts(flows.size_bytes, Size, round_to=10**3)
    starts = _texts(flows.start_ps, Duration, round_to=10**6)
    columns = (
        rows,
        flows.source[rows],
        flows.destination[rows],
        flows.size_bytes[rows],
        flows.start_ps[rows],
    )
    for flow, source, destination, size, start in zip(*(column.tolist() for column in columns), strict=True):
        row = [network.names[source], network.names[destination], sizes[size], starts[start]]
        row += [flows.names[flow]] if flows.names is not None else []
        row += [";".join(before.get(flow, ()))] if before else []
        writer.writerow(row)
    return text.getvalue().encode()
