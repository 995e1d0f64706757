"""A job that fails after a time-out, or forms anew without the hosts that are dead.

What a communicator does when its watchdog ends it takes far longer than any frame lives, so what is left of a
job is a run of its own: it begins when the job has formed anew, on the same fabric, with the same failures.
"""

from __future__ import annotations

from dataclasses import dataclass

from fabric.errors import SpecError
from fabric.failures import find_occurrences
from fabric.failures.timeline import dead_hosts
from fabric.result import Result
from fabric.simulate import EngineName, run
from fabric.spec import Collective, Scenario
from fabric.topology import build_network
from fabric.units import Duration

__all__ = ["Phase", "RecoveredRun", "run_recovering"]


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A job from where it forms to where it ends.

    Attributes
    ----------
    outcome : {"finished", "failed", "unfinished"}
        "failed": by the time-out; "unfinished": the run ended first, or nothing could happen any more.
    began_ps, ended_ps : int
    ranks : int
    operations : int
        Done in this phase.
    without : tuple of str
        Hosts that were given up at its end.
    result : Result
        The run; what happened after `ended_ps` in it did not matter.
    """

    outcome: str
    began_ps: int
    ended_ps: int
    ranks: int
    operations: int
    without: tuple[str, ...]
    result: Result


@dataclass(frozen=True)
class RecoveredRun:
    """The phases of a job, one after the other."""

    phases: tuple[Phase, ...]

    @property
    def is_finished(self) -> bool:
        """All operations were done."""
        return self.phases[-1].outcome == "finished"

    @property
    def ended_ps(self) -> int:
        """When the job was done, or given up."""
        return self.phases[-1].ended_ps


def run_recovering(scenario: Scenario, *, engine: EngineName = "native") -> RecoveredRun:
    """Run a job with what `recovery.on_timeout` says.

    Parameters
    ----------
    scenario : Scenario
        Whose traffic is one collective, perhaps repeated.
    engine : {"native", "reference"}

    Returns
    -------
    RecoveredRun

    Raises
    ------
    fabric.errors.SpecError
        The traffic is something else, or no two ranks are left.

    Examples
    --------
    >>> from fabric.spec import HostHang, Run, SingleSwitch
    >>> scenario = Scenario(
    ...     topology=SingleSwitch(hosts=4),
    ...     traffic=[Collective(algorithm="ring", size="1MB", repeat=3)],
    ...     failures=[HostHang(host="host2", at="60us")],
    ...     run=Run(until="200ms"),
    ... ).replace(recovery={"on_timeout": "reform"})
    >>> for phase in run_recovering(scenario).phases:
    ...     print(phase.outcome, phase.ranks, "ranks", phase.operations, "operations", *phase.without)
    failed 4 ranks 1 operations host2
    finished 3 ranks 2 operations
    """
    if len(scenario.traffic) != 1 or not isinstance(scenario.traffic[0], Collective):
        kinds = ", ".join(str(each.__struct_config__.tag) for each in scenario.traffic)
        raise SpecError("traffic", kinds, "one collective, which forms anew")
    network, recovery = build_network(scenario.topology), scenario.recovery
    occurrences = find_occurrences(scenario, network)
    entry = scenario.traffic[0]
    phases: list[Phase] = []
    while True:
        result = run(scenario.replace(traffic=(entry,)), engine=engine, progress=False)
        done, failed_ps = _progress(result, scenario)
        is_done = done == entry.repeat
        fails = not is_done and failed_ps is not None and recovery.on_timeout != "wait"
        ended_ps = int(result.operations["left_ps"].max()) if is_done else int(result.counters["end_ps"])
        dead: tuple[str, ...] = ()
        if fails and failed_ps is not None:
            ended_ps = failed_ps
            dead = tuple(dead_hosts(occurrences, recovery, network, at_ps=failed_ps))
        phases.append(
            Phase(
                outcome="finished" if is_done else "failed" if fails else "unfinished",
                began_ps=int(entry.start),
                ended_ps=ended_ps,
                ranks=int(result.operations["ranks"][0]),
                operations=done,
                without=dead,
                result=result,
            )
        )
        start_ps = ended_ps + int(recovery.reform)
        is_over = scenario.run.until is not None and start_ps >= scenario.run.until
        if not fails or recovery.on_timeout == "fail" or is_over:
            return RecoveredRun(tuple(phases))
        entry = entry.replace(
            without=(*entry.without, *dead), repeat=entry.repeat - done, start=Duration(start_ps)
        )


def _progress(result: Result, scenario: Scenario) -> tuple[int, int | None]:
    """Operations done before the first that takes too long, and when that one fails, if it does."""
    until_ps = scenario.run.until
    for number, row in enumerate(result.operations):
        entered_ps, left_ps = int(row["entered_ps"]), int(row["left_ps"])
        deadline_ps = entered_ps + int(scenario.recovery.collective_timeout)
        if left_ps < 0 or left_ps > deadline_ps:
            is_beyond = until_ps is not None and deadline_ps >= until_ps
            return number, None if entered_ps < 0 or is_beyond else deadline_ps
    return len(result.operations), None
