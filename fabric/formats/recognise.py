"""What kind of file this is: by its name where that decides, else by how it begins."""

from __future__ import annotations

import re
from pathlib import Path

from fabric.formats.aicb import AICB_POLICIES
from fabric.formats.words import read_text

__all__ = ["FORMATS", "recognise"]

FORMATS = {
    "hpcc_topology": "topology of HPCC, SimAI or ASTRA-sim's ns-3 backend (topology.txt)",
    "hpcc_flows": "flows of the HPCC simulator (flow.txt)",
    "hpcc_config": "configuration of the HPCC simulator (config.txt)",
    "htsim_topology": "fat tree of htsim (.topo)",
    "htsim_matrix": "connection matrix of htsim (.cm)",
    "goal": "GOAL schedule (.goal)",
    "msccl": "MSCCL program (.xml)",
    "chakra": "Chakra execution trace (.et)",
    "chakra_groups": "groups of ranks of Chakra traces (.json)",
    "aicb": "workload of AICB or SimAI (.txt)",
}
"""What each format is, by its name."""

_BY_SUFFIX = {".topo": "htsim_topology", ".cm": "htsim_matrix", ".et": "chakra"}
_OTHERS = frozenset({".toml", ".csv"})
_GOAL = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*num_ranks\b", re.DOTALL)
_MSCCL = re.compile(r"\s*(?:<[?!][^>]*>\s*)*<algo\b")
_GROUPS = re.compile(r'\s*\{\s*"\d+"\s*:\s*\[')
_SETTING = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+$")


def recognise(file: str | Path) -> str | None:
    """Return the format of a file, a key of `FORMATS`; None if it is none of them.

    Raises
    ------
    SpecError
        If the file cannot be read.
    """
    suffix = Path(file).suffix.lower()
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    if suffix in _OTHERS:
        return None
    if suffix == ".json":
        return "chakra_groups" if _GROUPS.match(read_text(file)) else None
    return _by_content(read_text(file))


def _by_content(text: str) -> str | None:
    if _GOAL.match(text):
        return "goal"
    if _MSCCL.match(text):
        return "msccl"
    lines = (line.split("#", 1)[0].split() for line in text.splitlines())
    words = next((words for words in lines if words), [])
    numbers = sum(word.isdigit() for word in words)
    if not words:
        return None
    if numbers == len(words) == 1:
        return "hpcc_flows"
    if (numbers == len(words) == 3) or (len(words) == 6 and numbers >= 5):
        return "hpcc_topology"
    if words[0].lower() in ("nodes", "tiers", "podsize"):
        return "htsim_matrix" if re.search(r"(?im)^\s*connections\b", text) else "htsim_topology"
    if words[0] in AICB_POLICIES:
        return "aicb"
    return "hpcc_config" if _SETTING.match(words[0]) else None
