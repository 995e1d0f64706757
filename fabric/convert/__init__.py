"""Scenarios from files of other simulators, and their result files from results.

`import_files` makes a `Scenario` of a topology, a list of flows and (HPCC) a configuration, and says
what it left out. `save_scenario` writes it as a scenario file of its own. `fct_text` and `pfc_text` give
the HPCC simulator's `fct.txt` and `pfc.txt` of a result; `export_topology` and `export_flows` write
networks and flows for the other simulators. The formats are described in `docs/formats.md`.
"""

from __future__ import annotations

from fabric.convert.exports import export_flows, export_topology
from fabric.convert.hpcc_results import fct_text, pfc_text
from fabric.convert.imported import Imported, import_files, is_scenario, network_spec
from fabric.convert.scenario_files import save_scenario

__all__ = [
    "Imported",
    "export_flows",
    "export_topology",
    "fct_text",
    "import_files",
    "is_scenario",
    "network_spec",
    "pfc_text",
    "save_scenario",
]
