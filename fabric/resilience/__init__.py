"""What failures cost, and what remedies are worth: runs compared with each other.

`lost_time` takes the time that a failure costs apart; `run_recovering` lets a job fail or form anew after a
time-out; `compare_redundancy` runs the same failures on fabrics that are built with different reserves;
`link_rates` says what links carry before and after a failure.
"""

from __future__ import annotations

from fabric.resilience.cost import LostTime, lost_time
from fabric.resilience.rates import LinkRates, link_rates
from fabric.resilience.redundancy import Redundancy, compare_redundancy
from fabric.resilience.reform import Phase, RecoveredRun, run_recovering

__all__ = [
    "LinkRates",
    "LostTime",
    "Phase",
    "RecoveredRun",
    "Redundancy",
    "compare_redundancy",
    "link_rates",
    "lost_time",
    "run_recovering",
]
