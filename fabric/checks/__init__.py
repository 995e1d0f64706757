"""What `fabric check` says of a scenario before anything runs: deadlock, failures, lints, failure domains.

Nothing is simulated. The scenario is lowered, so that what is judged is what an engine would run.
"""

from __future__ import annotations

from fabric.checks.deadlocks import ClassCheck, SingleFailures, check_classes
from fabric.checks.lints import Lint, lints
from fabric.checks.report import Report, State, check_scenario

__all__ = [
    "ClassCheck",
    "Lint",
    "Report",
    "SingleFailures",
    "State",
    "check_classes",
    "check_scenario",
    "lints",
]
