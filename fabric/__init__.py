"""Packet-level network fabric emulator for AI training clusters.

Describe a fabric and its traffic, run it, and look at what happened::

    import fabric

    scenario = fabric.Scenario(
        topology=fabric.LeafSpine(leaves=4, spines=2, hosts_per_leaf=8),
        traffic=(fabric.Incast(receivers=("host0",), senders=16, size="1MB"),),
    )
    result = fabric.run(scenario)
    print(result)

Public names are imported when they are first used, so that ``import fabric`` is quick.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
"""As of `typing`, whose import would take longer than all that is done here."""

if TYPE_CHECKING:
    from typing import Any

    from fabric import (
        analysis,
        bench,
        checks,
        convert,
        plot,
        reliability,
        spec,
        step,
        topology,
        training,
        units,
        workload,
    )
    from fabric.errors import (
        FabricError,
        SimulationError,
        SpecError,
    )
    from fabric.result import (
        Result,
        Table,
    )
    from fabric.scenario import (
        dump_scenario,
        json_schema,
        load_scenario,
    )
    from fabric.simulate import (
        Simulation,
        run,
    )
    from fabric.spec import (
        DCQCN_PRESETS,
        DISTRIBUTIONS,
        AllToAll,
        Batches,
        Checkpoint,
        Clos3,
        Collective,
        Congestion,
        Corruption,
        Dcqcn,
        Dctcp,
        DegradedLink,
        DrawnFailures,
        Ecn,
        Experts,
        Failure,
        FailureLog,
        FailureRates,
        FatTree,
        FixedWindow,
        FlopTimes,
        Flow,
        Flows,
        GivenTimes,
        GoBackN,
        GraphFile,
        HostHang,
        Hpcc,
        Incast,
        LatentAttention,
        LeafSpine,
        Link,
        LinkDown,
        LinkDrain,
        LinkFlap,
        LinkOverride,
        Lossy,
        MeasuredTimes,
        Model,
        Nic,
        NoCongestionControl,
        PacketRecord,
        Parallelism,
        Paths,
        Permutation,
        Pfc,
        PfcStorm,
        Pin,
        Poisson,
        Program,
        Quantised,
        QueueRecord,
        RailOptimized,
        Record,
        Recovery,
        Router,
        Routing,
        Run,
        Scenario,
        SelectiveRepeat,
        SequencePacking,
        SingleSwitch,
        Slowness,
        SlowNic,
        Spec,
        Switch,
        SwitchDown,
        ThroughputRecord,
        Timely,
        TopK,
        Topology,
        Traffic,
        TrafficClass,
        Training,
        TrainingJob,
        Transport,
        Uniform,
        Watchdog,
        host_count,
    )
    from fabric.step import (
        StepReport,
        run_step,
    )
    from fabric.sweep import (
        run_sweep,
    )
    from fabric.units import (
        Duration,
        Rate,
        Size,
    )

    __version__: str

__all__ = [
    "DCQCN_PRESETS",
    "DISTRIBUTIONS",
    "AllToAll",
    "Batches",
    "Checkpoint",
    "Clos3",
    "Collective",
    "Congestion",
    "Corruption",
    "Dcqcn",
    "Dctcp",
    "DegradedLink",
    "DrawnFailures",
    "Duration",
    "Ecn",
    "Experts",
    "FabricError",
    "Failure",
    "FailureLog",
    "FailureRates",
    "FatTree",
    "FixedWindow",
    "FlopTimes",
    "Flow",
    "Flows",
    "GivenTimes",
    "GoBackN",
    "GraphFile",
    "HostHang",
    "Hpcc",
    "Incast",
    "LatentAttention",
    "LeafSpine",
    "Link",
    "LinkDown",
    "LinkDrain",
    "LinkFlap",
    "LinkOverride",
    "Lossy",
    "MeasuredTimes",
    "Model",
    "Nic",
    "NoCongestionControl",
    "PacketRecord",
    "Parallelism",
    "Paths",
    "Permutation",
    "Pfc",
    "PfcStorm",
    "Pin",
    "Poisson",
    "Program",
    "Quantised",
    "QueueRecord",
    "RailOptimized",
    "Rate",
    "Record",
    "Recovery",
    "Result",
    "Router",
    "Routing",
    "Run",
    "Scenario",
    "SelectiveRepeat",
    "SequencePacking",
    "Simulation",
    "SimulationError",
    "SingleSwitch",
    "Size",
    "SlowNic",
    "Slowness",
    "Spec",
    "SpecError",
    "StepReport",
    "Switch",
    "SwitchDown",
    "Table",
    "ThroughputRecord",
    "Timely",
    "TopK",
    "Topology",
    "Traffic",
    "TrafficClass",
    "Training",
    "TrainingJob",
    "Transport",
    "Uniform",
    "Watchdog",
    "__version__",
    "analysis",
    "bench",
    "checks",
    "convert",
    "dump_scenario",
    "host_count",
    "json_schema",
    "load_scenario",
    "plot",
    "reliability",
    "run",
    "run_step",
    "run_sweep",
    "spec",
    "step",
    "topology",
    "training",
    "units",
    "workload",
]

_MODULES = (
    *("analysis", "bench", "checks", "convert", "plot", "reliability"),
    *("spec", "step", "topology", "training", "units", "workload"),
)

_NAMES = {
    "Duration": "fabric.units",
    "FabricError": "fabric.errors",
    "Rate": "fabric.units",
    "Result": "fabric.result",
    "Simulation": "fabric.simulate",
    "SimulationError": "fabric.errors",
    "Size": "fabric.units",
    "SpecError": "fabric.errors",
    "Table": "fabric.result",
    "dump_scenario": "fabric.scenario",
    "json_schema": "fabric.scenario",
    "load_scenario": "fabric.scenario",
    "StepReport": "fabric.step",
    "run": "fabric.simulate",
    "run_step": "fabric.step",
    "run_sweep": "fabric.sweep",
}
"""Where each public name is; the specs, which `fabric.spec` lists itself, are added to it."""


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from fabric.version import version

        value: Any = version()
    elif name in _MODULES:
        value = importlib.import_module(f"fabric.{name}")
    elif name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
    else:
        value = _spec(name)
    globals()[name] = value
    return value


def _spec(name: str) -> Any:
    specs = importlib.import_module("fabric.spec")
    if name.startswith("_") or name not in specs.__all__:
        raise AttributeError(f"module 'fabric' has no attribute {name!r}")
    return getattr(specs, name)


def __dir__() -> list[str]:
    return __all__
