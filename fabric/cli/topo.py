"""`fabric topo`: describe and draw the network of a scenario."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fabric.cli.common import DONE, add_overrides, file_name, image_format_of, load, out_path
from fabric.errors import FabricError

__all__ = ["add"]


def add(commands: Any) -> None:
    parser = commands.add_parser("topo", help="describe and draw the network of a scenario")
    parser.add_argument("scenario", metavar="FILE", help="scenario file (TOML), topology.txt or .topo")
    add_overrides(parser)
    parser.add_argument(
        "--out", metavar="FILE", help="image file, .png, .pdf or .svg (default: results/NAME-topology.png)"
    )
    parser.set_defaults(command=_topo)


def _topo(options: argparse.Namespace) -> int:
    from fabric.io.files import write_whole
    from fabric.plot import to_image, topology
    from fabric.topology import build_network

    name, spec = _topology_of(options.scenario, options.set)
    target = out_path(options) or Path("results", f"{name}-topology.png")
    image_format = image_format_of(target)
    network = build_network(spec)
    write_whole(target, to_image(topology(network), format=image_format))
    print(name)
    for line in _network_lines(network):
        print(f"  {line}")
    print(f"\n  picture  {target}")
    return DONE


def _topology_of(path: str, overrides: Sequence[str]) -> tuple[str, Any]:
    """Return the name and topology of a scenario, or of another simulator's topology file."""
    from fabric.formats import recognise

    if recognise(path) is None:
        scenario = load(path, overrides)
        return file_name(scenario.name, path), scenario.topology
    from fabric.convert import network_spec

    if overrides:
        raise FabricError("--set changes scenarios; convert the topology to one first")
    return Path(path).stem, network_spec(path)


def _network_lines(network: Any) -> list[str]:
    from fabric.result.text import align, count_text, counted, rate_text
    from fabric.topology import describe

    facts = describe(network)
    ratios = sorted({round(ratio, 3) for ratio in facts.oversubscription.values()})
    rows = [[tier, count_text(count)] for tier, count in facts.nodes_per_tier.items()]
    rows += [[f"cables {tiers}", count_text(count)] for tiers, count in facts.links_per_tier.items()]
    if ratios:
        low, high = f"{ratios[0]:g}:1", f"{ratios[-1]:g}:1"
        rows.append(["oversubscription", low if low == high else f"{low} to {high}"])
    rows.append(["diameter", counted(facts.diameter_links, "link")])
    if facts.bisection_bps is not None:
        rows.append(["bisection bandwidth", rate_text(facts.bisection_bps)])
    return align(rows)
