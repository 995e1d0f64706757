"""`StepReport`: what a person decides on, from the tables of a result with training jobs.

Everything is in the result's tables, so a report of a saved result says the same.
"""

from __future__ import annotations

import os
from textwrap import wrap
from typing import Any

import numpy as np

from fabric.errors import FabricError
from fabric.result import Result, Table
from fabric.result.steps import efficiency
from fabric.result.text import align, count_text, percent_text, size_text, time_text
from fabric.scenario import load_scenario
from fabric.spec import Scenario, Training

__all__ = ["StepReport"]

PS_PER_S, BITS_PER_BYTE = 10**12, 8
LINE_LETTERS = 100
LISTED = 4
"""Ranks and links of a critical path, and steps, that are named."""

RULE = 0.7
"""Long-run use of a link up to which congestion control keeps well."""

NAMES = {
    "tp": "TP",
    "cp": "CP",
    "ep": "EP",
    "etp": "expert TP",
    "pp": "PP",
    "dp": "DP",
    "edp": "expert DP",
    "embedding": "embedding",
    "storage": "storage",
}
"""What dimensions are called, in this order."""


class StepReport:
    """The steps of training jobs, explained.

    Parameters
    ----------
    result : Result
        Of `fabric.run_step`, or saved and loaded.

    Raises
    ------
    FabricError
        If the result has no training jobs.
    """

    def __init__(self, result: Result) -> None:
        if "steps" not in result.tables:
            raise FabricError('the result has no training job (an entry of kind "training")')
        self.result = result

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> StepReport:
        """Read the report of a saved result."""
        return cls(Result.load(directory))

    @property
    def steps(self) -> Table:
        """One row a job and step: its time and where it went, as means over ranks."""
        return self.result.tables["steps"]

    @property
    def communication(self) -> Table:
        """One row a job, step and dimension: under way, exposed, overlapped, waiting for ranks."""
        return self.result.tables["communication"]

    @property
    def critical(self) -> Table:
        """The critical path of every step, stretch by stretch."""
        return self.result.tables["critical"]

    @property
    def tasks(self) -> Table:
        """What every rank did when."""
        return self.result.tables["tasks"]

    @property
    def loads(self) -> Table:
        """What each dimension puts on each link."""
        return self.result.tables["loads"]

    @property
    def ideal(self) -> Table:
        """The steps on an infinitely fast network; empty for a result of `fabric.run`."""
        return self.result.tables.get("ideal", self.steps[np.zeros(0, dtype=np.int64)])

    @property
    def scenario(self) -> Scenario:
        """What was run."""
        return load_scenario(self.result.provenance.scenario)

    def efficiency(self, job: str | None = None) -> float:
        """Time of all steps on an infinitely fast network over their time; NaN if not known."""
        return efficiency(self._of(self.steps, job), self._of(self.ideal, job))

    def long_run_use(self) -> Table:
        """Use of every link over all steps: the wire time of what it sent, over the time of the run."""
        ports = self.result.ports
        end = float(self.steps["end_ps"].max(initial=0))
        busy = ports["tx_bytes"] * float(BITS_PER_BYTE * PS_PER_S) / ports["rate_bps"]
        use = busy / end if end else np.zeros(len(ports))
        return Table({"link": ports.raw("link"), "tier": ports.raw("tier"), "use_share": use}, name="use")

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__

    def lines(self) -> list[str]:
        """Return the report line by line."""
        provenance = self.result.provenance
        title = ": ".join(part for part in (provenance.name, provenance.question) if part) or "step"
        rows = wrap(title, LINE_LETTERS)
        blocks = [("expected", wrap(provenance.expect, LINE_LETTERS))]
        entries = [one for one in self.scenario.traffic if isinstance(one, Training)]
        jobs = list(dict.fromkeys(self.tasks["job"].tolist()))
        for job, entry in zip(jobs, entries, strict=False):
            several = f" {job}" if len(jobs) > 1 else ""
            blocks += [(f"job{several}", _job_lines(entry)), ("steps", self._step_lines(job))]
            blocks += [
                ("time", self._share_lines(job)),
                ("communication", self._communication_lines(job, entry)),
                ("critical path", self._critical_lines(job)),
            ]
        blocks += [("links", self._link_lines()), ("congestion", self._congestion_lines())]
        blocks += [("ran", [self._ran_line()])]
        width = max(len(label) for label, lines in blocks if lines)
        for label, lines in blocks:
            for number, line in enumerate(lines):
                rows.append(f"  {(label if number == 0 else '').ljust(width)}  {line}".rstrip())
        return rows

    def _of(self, table: Table, job: str | None) -> Table:
        return table if job is None or not len(table) else table[table["job"] == job]

    def _step_lines(self, job: str) -> list[str]:
        steps, ideal = self._of(self.steps, job), self._of(self.ideal, job)
        if not len(steps):
            return [f"none was done: {self.result.stopped}"]
        knows_mfu = not np.isnan(steps["mfu"]).all()
        header = ["step", "time", "ideal", "efficiency", *(["MFU"] if knows_mfu else [])]
        rows = []
        for number, row in enumerate(steps):
            best = int(ideal["duration_ps"][number]) if number < len(ideal) else 0
            rows.append(
                [
                    str(row["step"]),
                    time_text(row["duration_ps"]),
                    time_text(best) if best else "-",
                    percent_text(best / row["duration_ps"]) if best else "-",
                    *([percent_text(row["mfu"])] if knows_mfu else []),
                ]
            )
        if len(rows) > 2 * LISTED:
            rows = [*rows[:LISTED], ["..."] + [""] * (len(header) - 1), *rows[-LISTED:]]
        if len(steps) > 1:
            rows.append(["mean", time_text(_mean(steps["duration_ps"]))] + [""] * (len(header) - 2))
        return align([header, *rows], right=range(1, len(header)))

    def _share_lines(self, job: str) -> list[str]:
        steps = self._of(self.steps, job)
        if not len(steps):
            return []
        total = _mean(steps["duration_ps"])
        parts = [
            ("compute", "compute_ps", f"most on rank {_most(steps['busiest_rank'])}"),
            ("paused", "paused_ps", "stood still, as the scenario says"),
            ("exposed communication", "exposed_ps", "the network, with nothing to compute meanwhile"),
            ("pipeline bubble", "bubble_ps", "waited for a stage, or was done"),
            ("waiting for ranks", "waiting_ps", self._culprit(job)),
        ]
        rows = [
            [name, time_text(_mean(steps[key])), percent_text(_mean(steps[key]) / total), said]
            for name, key, said in parts
            if _mean(steps[key]) > 0
        ]
        return align(rows, right=(1, 2))

    def _culprit(self, job: str) -> str:
        """For whom ranks waited in collectives."""
        tasks = self._of(self.tasks, job)
        chosen = (tasks["dimension"] != "compute") & (tasks["dimension"] != "pp") & (tasks["entered_ps"] >= 0)
        own = tasks[chosen]
        if not len(own):
            return "was done before others"
        order = np.lexsort((own["rank"], -own["entered_ps"], own["operation"]))
        first = np.flatnonzero(np.diff(own["operation"][order], prepend=-1))
        last_rank = own["rank"][order[first]]
        waited = np.clip(np.minimum(own["ready_ps"], own["left_ps"]) - own["entered_ps"], 0, None)
        of = np.searchsorted(own["operation"][order[first]], own["operation"])
        total = np.bincount(last_rank[of], weights=waited)
        if not total.sum():
            return "was done before others"
        worst = int(np.argmax(total))
        host = str(own["host"][np.argmax(own["rank"] == worst)])
        share = percent_text(float(total[worst] / total.sum()))
        return f"in collectives that a rank had not entered: rank {worst} on {host} for {share} of it"

    def _communication_lines(self, job: str, entry: Training) -> list[str]:
        own = self._of(self.communication, job)
        if not len(own):
            return ["none"]
        steps = len(self._of(self.steps, job))
        header = ["", "operations", "under way", "exposed", "overlapped", "waiting", "sent"]
        rows = []
        for name, shown in NAMES.items():
            part = own[own["dimension"] == name]
            if not len(part):
                continue
            label = "TP, SP" if name == "tp" and entry.job.parallelism.sp else shown
            keys = ("active_ps", "exposed_ps", "overlapped_ps", "waiting_ps")
            times = [time_text(float(part[key].sum()) / steps) for key in keys]
            count = count_text(round(float(part["operations"].sum()) / steps))
            rows.append([label, count, *times, size_text(self._sent_bytes(job, name) / steps)])
        return align([header, *rows], right=range(1, len(header)))

    def _sent_bytes(self, job: str, dimension: str) -> int:
        operations = self.result.operations
        numbers = self.tasks["operation"][(self.tasks["job"] == job) & (self.tasks["dimension"] == dimension)]
        return int(operations["sent_bytes"][np.isin(operations["operation"], numbers)].sum())

    def _critical_lines(self, job: str) -> list[str]:
        path = self._of(self.critical, job)
        steps = self._of(self.steps, job)
        if not len(steps):
            return []
        slowest = int(steps["step"][np.argmax(steps["duration_ps"])])
        own = path[path["step"] == slowest]
        if not len(own):
            return []
        total = float(own["duration_ps"].sum())
        kind = np.where(own["what"] == "pause", "pause", own["dimension"])
        shares = _summed(kind, own["duration_ps"])
        text = ", ".join(
            f"{NAMES.get(name, name)} {time_text(time)} ({percent_text(time / total)})"
            for name, time in shares
        )
        lines = [f"step {slowest}: {text}"]
        works = own[own["dimension"] == "compute"]
        if len(works):
            named = [
                f"rank {rank} on {host}" for rank, host in zip(works["rank"], works["host"], strict=True)
            ]
            lines.append("ranks: " + _listed(np.array(named), works["duration_ps"]))
        moves = own[(own["dimension"] != "compute") & (own["link"] != "")]
        if len(moves):
            lines.append("links: " + _listed(moves["link"], moves["duration_ps"]))
        return lines

    def _link_lines(self) -> list[str]:
        loads, use = self.loads, self.long_run_use()
        if not len(loads):
            return ["nothing crossed a link"]
        names = [name for name in NAMES if f"{name}_bytes" in loads.columns]
        shown = use["use_share"][loads["port"]]
        header = ["tier", "busiest link", "used", *(NAMES[name] for name in names)]
        rows = []
        for tier in dict.fromkeys(loads["tier"].tolist()):
            chosen = np.flatnonzero(loads["tier"] == tier)
            top = int(chosen[np.argmax(shown[chosen])])
            sizes = [int(loads[f"{name}_bytes"][top]) for name in names]
            rows.append(
                [
                    tier,
                    str(loads["link"][top]),
                    percent_text(float(shown[top])),
                    *(size_text(size) if size else "-" for size in sizes),
                ]
            )
        above = int((use["use_share"] > RULE).sum())
        fullest = float(use["use_share"].max(initial=0))
        verdict = f"no link is used for more than {percent_text(RULE)} in the long run"
        if above:
            verdict = (
                f"{count_text(above)} links are used for more than {percent_text(RULE)} in the long run, at "
                f"most {percent_text(fullest)}: congestion control has little room"
            )
        return [*align([header, *rows], right=range(2, len(header))), verdict]

    def _congestion_lines(self) -> list[str]:
        ports = self.result.ports
        top = int(np.argmax(ports["queue_peak_bytes"]))
        if not ports["queue_peak_bytes"][top]:
            return ["no switch held a frame"]
        text = f"fullest queue {size_text(int(ports['queue_peak_bytes'][top]))} at {ports['link'][top]}"
        paused = int(ports["paused_ps"].sum())
        stopped = f"ports paused for {time_text(paused)} in all" if paused else "no pause"
        return [f"{text}; {stopped}; {count_text(int(ports['drops'].sum()))} frames dropped"]

    def _ran_line(self) -> str:
        result = self.result
        hops = int(result.counters.get("hops", 0))
        return (
            f"{time_text(result.duration_ps)} simulated in {result.wall_s:.3g} s, {count_text(hops)} hops; "
            f"{result.stopped}; fingerprint {result.fingerprint}"
        )


def _job_lines(entry: Training) -> list[str]:
    job, layout = entry.job, entry.job.parallelism
    model = job.shape
    sizes = [
        f"{name} {getattr(layout, name)}"
        for name in ("tp", "cp", "pp", "dp", "ep")
        if getattr(layout, name) > 1
    ]
    sizes += [f"zero {layout.zero}"] * bool(layout.zero) + [f"vpp {layout.vpp}"] * (layout.vpp > 1)
    sizes += ["sp"] * layout.sp
    name = model.name or "model"
    layers = f"{count_text(model.layers)} layers"
    schedule = entry.schedule or ("interleaved" if layout.vpp > 1 else "1f1b")
    return [
        f"{name}, {layers}, {count_text(model.parameters)} parameters, on {count_text(layout.world)} ranks"
        f"{': ' if sizes else ''}{', '.join(sizes)}",
        f"{count_text(job.micro_batches)} micro-batches of "
        f"{count_text(job.micro_batch * job.sequence)} tokens, schedule {schedule}",
    ]


def _mean(values: Any) -> float:
    array = np.asarray(values, dtype=np.float64)
    return float(array.mean()) if len(array) else float("nan")


def _most(values: Any) -> int:
    found, count = np.unique(values, return_counts=True)
    return int(found[np.argmax(count)])


def _summed(names: Any, times: Any) -> list[tuple[str, float]]:
    """Total time by name, the longest first."""
    found, of = np.unique(names, return_inverse=True)
    total = np.bincount(of, weights=times)
    return [(str(found[one]), float(total[one])) for one in np.argsort(-total, kind="stable")]


def _listed(names: Any, times: Any) -> str:
    """The names with the longest times."""
    summed = _summed(names, times)
    text = ", ".join(f"{name} {time_text(time)}" for name, time in summed[:LISTED])
    more = len(summed) - LISTED
    return f"{text}, and {count_text(more)} more" if more > 0 else text
