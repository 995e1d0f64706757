"""The runs of `data/ns3_runs.toml` as folders of the files that `fabric validate` reads."""

from __future__ import annotations

import csv
import json
import tomllib
from pathlib import Path
from typing import Any

DATA = tomllib.loads((Path(__file__).parent / "data" / "ns3_runs.toml").read_text(encoding="utf-8"))
RUNS: dict[str, dict[str, Any]] = {run["name"]: run for run in DATA["run"]}
"""By name."""

LINK, TRUNK = "100Gbps 1000ns 0", "400Gbps 1000ns 0"
PORT_FIELDS = ("sw", "port", "max_egress_B", "max_headroom_B")
Flow = tuple[int, int, int, str]


def write_folder(folder: Path, *names: str, changes: dict[str, Any] | None = None) -> Path:
    """Write runs, perhaps with something changed in all of them, and their index; return the folder."""
    rows = []
    for name in names:
        run = RUNS[name] | (changes or {})
        place = folder / name
        place.mkdir(parents=True)
        flows = _flows(run)
        (place / "topology.txt").write_text(_topology(run["network"]))
        (place / "flow.txt").write_text("".join([f"{len(flows)}\n", *map(_flow_line, flows)]))
        (place / "config.txt").write_text(_config(run))
        (place / "rx.txt").write_text(_rx(run, flows))
        if "ring" in run:
            (place / "deps.txt").write_text(_ring_waits(run["ring"]["ranks"]))
        if "pfc" in run:
            (place / "pfc.txt").write_text(_table(run["pfc"]))
        if "ports" in run:
            ports = [dict(zip(PORT_FIELDS, port, strict=True)) for port in run["ports"]]
            (place / "summary.json").write_text(json.dumps({"switch_ports": ports}))
        if "goodput" in run:
            (place / "goodput.txt").write_text(_table(run["goodput"]))
        if "seeds" in run:
            lines = [[k, 0, mean, 0, most, *rest, 0] for k, (mean, most, *rest) in enumerate(run["seeds"])]
            (place / "seeds.txt").write_text(_table(lines))
        rows.append(_index_row(run))
    with open(folder / "index.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)), restval="")
        writer.writeheader()
        writer.writerows(rows)
    return folder


def _topology(network: dict[str, Any]) -> str:
    if network["kind"] == "star":
        hosts, switches = network["hosts"], 1
        links = [f"{host} {hosts} {LINK}" for host in range(hosts)]
    elif network["kind"] == "trunk":
        hosts, switches = 11, 2
        left, right = (0, 1, 2, 3, 9), (4, 5, 6, 7, 8, 10)
        links = [f"{host} {switch} {LINK}" for switch, ends in ((11, left), (12, right)) for host in ends]
        links.append(f"11 12 {TRUNK}")
    else:
        leaves, spines, each = (network[key] for key in ("leaves", "spines", "hosts_per_leaf"))
        hosts, switches = leaves * each, leaves + spines
        links = [f"{host} {hosts + host // each} {LINK}" for host in range(hosts)]
        links += [
            f"{hosts + leaf} {hosts + leaves + spine} {LINK}"
            for leaf in range(leaves)
            for spine in range(spines)
        ]
    ids = " ".join(str(hosts + k) for k in range(switches))
    return "\n".join([f"{hosts + switches} {switches} {len(links)}", ids, *links, ""])


def _flows(run: dict[str, Any]) -> list[Flow]:
    if "ring" in run:
        ranks, size = run["ring"]["ranks"], run["ring"]["bytes"]
        return [(k % ranks, (k + 1) % ranks, size, "2") for k in range(2 * (ranks - 1) * ranks)]
    if "all_to_all" in run:
        network = run["network"]
        hosts, size = network["leaves"] * network["hosts_per_leaf"], run["all_to_all"]["bytes"]
        return [(k, (k + shift) % hosts, size, "2") for shift in range(1, hosts) for k in range(hosts)]
    return [(source, destination, size, start) for source, destination, size, start in run["flows"]]


def _ring_waits(ranks: int) -> str:
    """Step k of a rank waits for step k - 1 of the rank before it."""
    flows = range(ranks, 2 * (ranks - 1) * ranks)
    return "".join(f"{flow} {flow - ranks - 1 if flow % ranks else flow - 1}\n" for flow in flows)


def _flow_line(flow: Flow) -> str:
    source, destination, size, start = flow
    return f"{source} {destination} 3 100 {size} {start}\n"


def _config(run: dict[str, Any]) -> str:
    keys = DATA["common"] | DATA["sets"][run["set"]]
    keys |= {"BUFFER_SIZE": run["buffer_mib"], "SIMULATOR_STOP_TIME": run["stop_s"]}
    if "ring" in run:
        keys["DEP_FILE"] = "deps.txt"
    return "".join(f"{key} {value}\n" for key, value in keys.items())


def _rx(run: dict[str, Any], flows: list[Flow]) -> str:
    """Times of the flows; where they are not known (drawn marks) or did not happen, -1."""
    lines = []
    payload = int(DATA["common"]["PACKET_PAYLOAD_SIZE"])
    for k, (source, destination, size, start) in enumerate(flows):
        sender, receiver = (
            -1 if times is None else times[k if len(times) > 1 else 0]
            for times in (run.get("sender_ns"), run.get("receiver_ns"))
        )
        packets = run["packets"][k] if "packets" in run else -(-size // payload)
        start_ns = run["start_ns"][k] if "start_ns" in run else _start_ns(start)
        if "ring" in run:
            start_ns += k // run["ring"]["ranks"] * run["sender_ns"][0]
        marked = run["marked"][k] if "marked" in run else -1
        lines.append([k, source, destination, 10_000, size, start_ns, sender, receiver, packets, -1, marked])
    return _table(lines)


def _start_ns(start_s: str) -> int:
    """As that simulator reads it."""
    return int(float(start_s) * 2.0**64) * 10**9 >> 64


def _table(rows: list[list[Any]]) -> str:
    return "".join(" ".join(map(str, row)) + "\n" for row in rows)


def _index_row(run: dict[str, Any]) -> dict[str, Any]:
    drawn = "seeds" in run
    return {
        "scenario": run["name"],
        "cc": run["set"],
        **run.get("totals", {}),
        "tol_reference_order": "stat" if drawn else "exact",
        "exact_under_local_rule": "yes" if run.get("exact_under_local_rule") else "no",
        **{f"tol_own_order_{key}": value for key, value in run.get("tolerances", {}).items()},
    }
