"""Run every scenario, print what changed against `expected.json`, and write it anew.

::

    python scenarios/update_expected.py [NAME ...] [--check]

A case is a scenario file, perhaps with values set, or one run of its sweep. What is kept of a run are the
fingerprint (a hash of every arrival of every frame), the number of hops, and headline numbers, all of them
integers, so that any change of behaviour is a change of that file which whoever made it can see and
explain. With names, only those cases are run; with `--check` nothing is written, and the exit code is 1 if
anything differs.
`tests/test_scenarios.py` compares the same numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fabric
from fabric.sweep import sweep_runs

FOLDER = Path(__file__).resolve().parent
EXPECTED = FOLDER / "expected.json"


@dataclass(frozen=True)
class Case:
    """A scenario file with values set; if it has a sweep, the run of that with a number."""

    file: str
    overrides: tuple[str, ...] = ()
    sweep_run: int | None = None

    def load(self, *more: str) -> fabric.Scenario:
        """Return its scenario, with further values set."""
        scenario = fabric.load_scenario(FOLDER / self.file, overrides=(*self.overrides, *more))
        return scenario if self.sweep_run is None else sweep_runs(scenario)[self.sweep_run].scenario


def swept(file: str) -> dict[str, Case]:
    """Return a case for each run of a file's sweep, by the name of the run."""
    runs = sweep_runs(fabric.load_scenario(FOLDER / file))
    return {run.scenario.name: Case(file, sweep_run=number) for number, run in enumerate(runs)}


WATCHDOG = tuple(f"switch.watchdog.{name}=200us" for name in ("poll", "detection", "restoration"))
DCQCN, NO_CONTROL = "transport.congestion.kind=dcqcn", "transport.congestion.kind=none"

CASES: dict[str, Case] = {
    "incast": Case("incast.toml"),
    "incast_pfc_only": Case("incast_pfc_only.toml"),
    "incast_lossy": Case("incast_lossy.toml"),
    "permutation_1024": Case("permutation_1024.toml"),
    "permutation_1024 with DCQCN": Case("permutation_1024.toml", (DCQCN,)),
    "load_balancing": Case("load_balancing.toml"),
    "load_balancing in turn": Case("load_balancing.toml", ("routing.choice=spray_round_robin",)),
    "load_balancing adaptive": Case("load_balancing.toml", ("routing.choice=adaptive",)),
    "load_balancing by flowlets": Case("load_balancing.toml", ("routing.choice=flowlet",)),
    "load_balancing over 8 queue pairs": Case(
        "load_balancing.toml",
        ("routing.choice=ecmp", "transport.paths.spread=round_robin", "transport.paths.count=8"),
    ),
    "oversubscription 1:1": Case("oversubscription.toml"),
    "oversubscription 1.2:1": Case("oversubscription.toml", ("topology.oversubscription=1.2",)),
    "oversubscription 1.5:1": Case("oversubscription.toml", ("topology.oversubscription=1.5",)),
    "oversubscription 1.5:1 with DCQCN": Case(
        "oversubscription.toml", ("topology.oversubscription=1.5", DCQCN)
    ),
    **swept("cc_shootout.toml"),
    **swept("ns3_incast.toml"),
    "websearch": Case("websearch.toml"),
    "websearch without DCQCN": Case("websearch.toml", (NO_CONTROL,)),
    "victim": Case("victim.toml"),
    "victim with round robin": Case("victim.toml", ("switch.arbiter=round_robin",)),
    "victim with DCQCN": Case("victim.toml", (DCQCN,)),
    "allreduce_ring_64": Case("allreduce_ring_64.toml"),
    "allreduce_ring_64 in a drawn order": Case("allreduce_ring_64.toml", ("traffic[0].order=shuffled",)),
    "allreduce_incast": Case("allreduce_incast.toml"),
    "allreduce_incast, direct": Case("allreduce_incast.toml", ("traffic[0].algorithm=direct",)),
    "allreduce_incast, ring": Case("allreduce_incast.toml", ("traffic[0].algorithm=ring",)),
    "allreduce_in_network": Case("allreduce_in_network.toml"),
    "allreduce_in_network, whole": Case("allreduce_in_network.toml", ("traffic[0].chunk=16MB",)),
    "allreduce_in_network, ring": Case(
        "allreduce_in_network.toml", ("traffic[0].algorithm=ring", "traffic[0].chunk=16MB")
    ),
    "allreduce_shuffled": Case("allreduce_shuffled.toml"),
    "allreduce_shuffled in order": Case("allreduce_shuffled.toml", ("traffic[0].order=as_named",)),
    "allreduce_shuffled by flowlets": Case("allreduce_shuffled.toml", ("routing.choice=flowlet",)),
    "alltoall_64": Case("alltoall_64.toml"),
    "alltoall_64 pair by pair": Case("alltoall_64.toml", ("traffic[0].algorithm=pairwise",)),
    "alltoall_64 by Bruck": Case("alltoall_64.toml", ("traffic[0].algorithm=bruck",)),
    "alltoallv_skewed": Case("alltoallv_skewed.toml"),
    "alltoallv_skewed, all alike": Case("alltoallv_skewed.toml", ("traffic[0].skew=0.0",)),
    "two_jobs": Case("two_jobs.toml"),
    "two_jobs, one after the other": Case("two_jobs.toml", ("traffic[1].start=20ms",)),
    "pfc_storm": Case("pfc_storm.toml"),
    "pfc_storm, healthy": Case("pfc_storm.toml", ("failures=[]",)),
    "spine_down_allreduce": Case("spine_down_allreduce.toml"),
    "spine_down_allreduce, healthy": Case("spine_down_allreduce.toml", ("failures=[]",)),
    "spine_down_allreduce, resilient": Case("spine_down_allreduce.toml", ("recovery.reroute=resilient",)),
    "spine_down_allreduce, end hosts": Case("spine_down_allreduce.toml", ("recovery.reroute=end_host",)),
    "link_flap": Case("link_flap.toml"),
    "link_flap, held down": Case("link_flap.toml", ("recovery.restore=20ms",)),
    "link_flap, no rerouting": Case("link_flap.toml", ("recovery.reroute=none",)),
    "corrupting_optic": Case("corrupting_optic.toml"),
    "corrupting_optic, taken out": Case("corrupting_optic.toml", ("failures[0].isolate=100us",)),
    "corrupting_optic, selective repeat": Case(
        "corrupting_optic.toml", ("transport.reliability.kind=selective_repeat",)
    ),
    **swept("isolation.toml"),
    "dual_plane": Case("dual_plane.toml"),
    "dual_plane, healthy": Case("dual_plane.toml", ("failures=[]",)),
    "dual_plane_1024": Case("dual_plane_1024.toml"),
    "dual_plane_1024, healthy": Case("dual_plane_1024.toml", ("failures=[]",)),
    "link_failure_1024": Case("link_failure_1024.toml"),
    "deadlock_ring": Case("deadlock_ring.toml"),
    "deadlock_ring with round robin": Case("deadlock_ring.toml", ("switch.arbiter=round_robin",)),
    "deadlock_ring with 4 MB": Case("deadlock_ring.toml", ("switch.pfc.xoff=4MB",)),
    "deadlock_clos_bounce": Case("deadlock_clos_bounce.toml"),
    "deadlock_clos_bounce with round robin": Case(
        "deadlock_clos_bounce.toml", ("switch.arbiter=round_robin",)
    ),
    "deadlock_clos_bounce with DCQCN": Case("deadlock_clos_bounce.toml", (DCQCN, "switch.ecn=true")),
    "deadlock_clos_bounce with a watchdog": Case(
        "deadlock_clos_bounce.toml", ("run.deadlock=report", "run.until=3ms", *WATCHDOG)
    ),
    "deadlock_avoided": Case("deadlock_avoided.toml"),
    "pipeline_1f1b": Case("pipeline_1f1b.toml"),
    "pipeline_1f1b as GPipe": Case("pipeline_1f1b.toml", ("traffic[0].schedule=gpipe",)),
    "pipeline_1f1b as ZB1P": Case("pipeline_1f1b.toml", ("traffic[0].schedule=zb1p",)),
    "pipeline_1f1b as DualPipe": Case("pipeline_1f1b.toml", ("traffic[0].schedule=dualpipe",)),
    "straggler": Case("straggler.toml"),
    "straggler without": Case("straggler.toml", ("traffic[0].slowness=[]",)),
    **swept("moe_uniform.toml"),
    **swept("moe_hot_expert.toml"),
    **swept("moe_node_limited.toml"),
    **swept("moe_low_latency.toml"),
    **swept("topk_compression.toml"),
    **swept("sequence_packing.toml"),
    **swept("checkpoint_burst.toml"),
    **swept("oversubscribed_step.toml"),
    "llama3_405b_step": Case("llama3_405b_step.toml"),
}
"""Every case by its name."""


def measure(result: fabric.Result) -> dict[str, Any]:
    """Return what is kept of a run, as plain data."""
    summary = result.summary
    steps = result.tables.get("steps", ())
    collectives = {row["job"]: int(row["max_ps"]) for row in summary["collectives"]}
    return {
        "status": result.status,
        "fingerprint": result.fingerprint,
        "hops": summary["hops"],
        "fct_ps": {
            name: {key: int(part["fct_ps"][key]) for key in ("p50", "p99", "max")}
            for name, part in summary["patterns"].items()
            if part["fct_ps"]["count"]
        },
        **({"collective_ps": collectives} if collectives else {}),
        **({"deadlocks": _deadlocks(result)} if result.deadlocks else {}),
        **({"steps": [step_entry(row) for row in steps]} if len(steps) else {}),
        "queue_peak_bytes": int(result.ports["queue_peak_bytes"].max()),
        "marks": summary["marks"],
        "paused_ps": summary["pauses"]["paused_ps"],
        "drops": sum(summary["drops"].values()),
        "retransmitted": summary["retransmitted"],
        "timeouts": summary["timeouts"],
    }


def _deadlocks(result: fabric.Result) -> list[dict[str, Any]]:
    return [
        {
            "formed_ps": one.formed_ps,
            "broken_ps": one.broken_ps,
            "frames": len(one.frames),
            "cycle": list(one.cycle),
        }
        for one in result.deadlocks
    ]


def step_entry(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of a step of a training job: its time and where it went, in whole picoseconds."""
    parts = ("duration_ps", "compute_ps", "exposed_ps", "bubble_ps", "waiting_ps")
    return {"job": str(row["job"]), **{name: round(float(row[name])) for name in parts}}


def expected_of(case: Case, result: fabric.Result) -> dict[str, Any]:
    """Return the entry of a case in `expected.json`."""
    return {"file": case.file, "set": list(case.overrides), **measure(result)}


def differences(old: Mapping[str, Any], new: Mapping[str, Any], *, path: str = "") -> Iterator[str]:
    """Yield a line for every value that is not the same."""
    for key in dict.fromkeys([*old, *new]):
        one, other = old.get(key), new.get(key)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            yield from differences(one, other, path=f"{path}{key}.")
        elif one != other:
            change = f" ({other - one:+})" if isinstance(one, int) and isinstance(other, int) else ""
            yield f"{path}{key}: {one} -> {other}{change}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run cases, print differences, write the file."""
    parser = argparse.ArgumentParser(description="Run every scenario and bring expected.json up to date.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="cases to run (default: all)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if anything differs")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in CASES]
    if unknown:
        parser.error(f"no case {unknown[0]!r}; there are: {', '.join(CASES)}")
    known = json.loads(EXPECTED.read_text(encoding="utf-8")) if EXPECTED.exists() else {}
    entries = {name: known[name] for name in CASES if name in known}
    changed = list(known) != list(entries)
    for name in options.names or CASES:
        began_s = time.perf_counter()
        case = CASES[name]
        entries[name] = expected_of(case, fabric.run(case.load(), progress=False))
        lines = list(differences(known.get(name, {}), entries[name]))
        changed |= bool(lines)
        print(f"{name}: {'changed' if lines else 'the same'} ({time.perf_counter() - began_s:.1f} s)")
        print("".join(f"    {line}\n" for line in lines), end="", flush=True)
    if changed and not options.check:
        _write({name: entries[name] for name in CASES if name in entries})
        print(f"wrote {EXPECTED}")
    return int(changed and options.check)


def _write(entries: Mapping[str, Any]) -> None:
    """Write the file whole or not at all."""
    draft = EXPECTED.with_suffix(".tmp")
    draft.write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")
    os.replace(draft, EXPECTED)


if __name__ == "__main__":
    sys.exit(main())
