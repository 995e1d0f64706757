"""Run a benchmark: one size after the other, each alone on an idle fabric.

`time_ps` runs from the first rank that enters to the last that leaves, as nccl-tests times between barriers;
of several iterations it is the mean. `algbw_bps` is the size over that, `busbw_bps` that times the factor of
nccl-tests. `rank_*_ps` say how long ranks took from entering to leaving, `skew_ps` how much the last one left
after the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fabric.analysis import stats
from fabric.bench.plan import ELEMENT_BYTES, OPTIONS, Bench
from fabric.errors import FabricError, SpecError
from fabric.result import Result, Table
from fabric.result.slowest import slowest_link
from fabric.simulate import EngineName, run
from fabric.spec import Collective, Scenario
from fabric.topology import Network, build_network
from fabric.workload import Job, build_jobs
from fabric.workload.collectives import COLLECTIVES, busbw_factor
from fabric.workload.placement import host_rates_bps

__all__ = ["run_bench"]

OPTIONAL = ("time_ps", "rank_least_ps", "rank_median_ps", "rank_most_ps", "skew_ps")


def run_bench(
    bench: Bench, *, engine: EngineName = "native", watch: Callable[[str], None] | None = None
) -> Table:
    """Run all that a benchmark asks for.

    Parameters
    ----------
    bench : Bench
    engine : "native" or "reference"
    watch : callable, optional
        Told before each run which it is.

    Returns
    -------
    Table
        A row a run of `bench.runs()`, or of those that had ended when Ctrl-C was pressed: `algorithm` (and
        what "auto" has `chosen`), `collective`, `ranks`, `size_bytes`, `count` (elements), `type`, `redop`,
        `time_ps`, `algbw_bps`, `busbw_bps`, `line_rate_bps` (of the slowest rank's host, all its ports
        together), `rank_least_ps`, `rank_median_ps`, `rank_most_ps`, `skew_ps`, `slowest_link`, its `cause`,
        for how long it sent (`busy_ps`) and what it lost (see `Slowest`), `hops`, `fingerprint`.

    Raises
    ------
    SpecError
        If the collective does not fit the fabric; before anything has run.
    FabricError
        If a collective does not end.
    KeyboardInterrupt
        If Ctrl-C was pressed before anything was measured.

    Examples
    --------
    >>> from fabric.spec import Collective, Scenario, SingleSwitch
    >>> ring = Collective(collective="all_reduce", algorithm="ring")
    >>> scenario = Scenario(topology=SingleSwitch(hosts=4), traffic=[ring])
    >>> table = run_bench(Bench(scenario=scenario, sizes=[10**6]))
    >>> table["ranks"].tolist(), table["count"].tolist(), table["cause"].tolist()
    ([4], [250000], ['line rate'])
    """
    scenarios = bench.runs()
    network = build_network(scenarios[0].topology)
    for scenario in scenarios[:: max(len(scenarios) // len(bench.named), 1)]:
        _job(scenario, network)
    rows: list[dict[str, Any]] = []
    try:
        rows.extend(_rows(bench, scenarios, network, engine=engine, watch=watch))
    except KeyboardInterrupt:
        if not rows:
            raise
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return Table(columns, name="bench", optional=OPTIONAL)


def _job(scenario: Scenario, network: Network) -> Job:
    """Return the collective as a job; what does not fit is said of the option that asked for it."""
    try:
        [job] = build_jobs(scenario, network)
    except SpecError as error:
        asked = OPTIONS.get(error.path.removeprefix("traffic[0]."), error.path)
        raise SpecError(asked, error.value, error.allowed) from None
    return job


def _rows(
    bench: Bench,
    scenarios: Sequence[Scenario],
    network: Network,
    *,
    engine: EngineName,
    watch: Callable[[str], None] | None,
) -> Iterator[dict[str, Any]]:
    """Run one scenario after the other and give the row of each."""
    rate = host_rates_bps(network)
    for scenario in scenarios:
        job = _job(scenario, network)
        [entry] = scenario.traffic
        assert isinstance(entry, Collective)
        if watch is not None:
            watch(f"{bench.kind} {entry.algorithm} {entry.size}")
        result = run(scenario, engine=engine, progress=False)
        if result.status == "INTERRUPTED":
            raise KeyboardInterrupt
        if result.status != "FINISHED":
            raise FabricError(f"{bench.kind}, {entry.algorithm}: {result.stopped}")
        yield {
            "algorithm": entry.algorithm,
            **_measured(bench, result),
            "line_rate_bps": int(rate[job.host_of].min()),
            "hops": result.counters["hops"],
            "fingerprint": result.fingerprint,
        }


def _measured(bench: Bench, result: Result) -> dict[str, Any]:
    operations, ranks = result.operations, result.ranks
    size, n_ranks = int(operations["size_bytes"][0]), int(operations["ranks"][0])
    kind = COLLECTIVES[bench.kind]
    whole_ps = int(operations["left_ps"].max() - operations["entered_ps"].min())
    time_ps = whole_ps / bench.iterations
    algbw = float(stats.goodput_bps(np.array([size]), duration_ps=np.array([time_ps]))[0])
    slowest = slowest_link(result, duration_ps=whole_ps, chain=int(operations["chain"].sum()))
    taken = ranks["duration_ps"][ranks["rank"] < n_ranks]
    return {
        "collective": bench.kind,
        "chosen": str(operations["algorithm"][0]),
        "ranks": n_ranks,
        "size_bytes": size,
        "count": size // ELEMENT_BYTES[bench.element] // (n_ranks if kind.per_rank_count else 1),
        "type": bench.element,
        "redop": "sum" if kind.reduces and bench.kind != "barrier" else "none",
        "time_ps": round(time_ps),
        "algbw_bps": algbw,
        "busbw_bps": algbw * busbw_factor(bench.kind, n_ranks=n_ranks),
        "rank_least_ps": int(taken.min()),
        "rank_median_ps": int(np.percentile(taken, 50, method="inverted_cdf")),
        "rank_most_ps": int(taken.max()),
        "skew_ps": int(operations["skew_ps"].max()),
        "slowest_link": slowest.link,
        "cause": slowest.cause,
        "busy_ps": slowest.busy_ps,
        **{f"{name}_ps": lost for name, lost in slowest.lost_ps.items()},
    }
