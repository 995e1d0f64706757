"""What may stand under `sweep`: values of a scenario that differ from run to run.

A key is an axis. If it is a path as `--set` takes it ("switch.ecn.kmin", "traffic[0].size"), its value is
a list of what stands there in one run after the other, or a table of such with names. Any other key is a
name for cases that differ in more than one place: a table of names, each with a table of values by path.
Several axes make every combination. Whether a value fits is seen when its scenario is made
(`fabric.sweep`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fabric.spec.base import Problem

__all__ = ["LARGEST_SWEEP", "PATH", "is_path", "sweep_problems"]

PATH = re.compile(r"[A-Za-z_]\w*(\.\w+|\[\d+\])*")
"""A path into a scenario."""

PARTS = (
    *("topology", "traffic", "switch", "nic", "transport", "run", "record", "routing"),
    *("failures", "recovery"),
)
"""Parts of a scenario, with which paths of swept values begin."""

LARGEST_SWEEP = 10_000
"""Runs of a sweep; more are a mistake."""

_A_PATH = 'the path of a value, such as "switch.ecn.kmin" or "traffic[0].size"'


def is_path(axis: str) -> bool:
    """Whether an axis is the path of one value, and not a name for cases.

    Examples
    --------
    >>> is_path("traffic[0].size"), is_path("control")
    (True, False)
    """
    return PATH.fullmatch(axis) is not None and re.split(r"[.\[]", axis)[0] in PARTS


def sweep_problems(sweep: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with the form of a sweep."""
    runs = 1
    for axis, values in sweep.items():
        at = f"sweep.{axis}"
        if is_path(axis):
            if not isinstance(values, list | tuple | dict) or not values:
                yield at, values, "a list of values, or a table of values with names"
                continue
        elif not isinstance(values, dict) or not values:
            yield at, values, f"a table of cases, each with values by path; or instead of {axis!r} {_A_PATH}"
            continue
        else:
            yield from _case_problems(at, values)
        runs *= len(values)
    if runs > LARGEST_SWEEP:
        yield "sweep", f"{runs} runs", f"at most {LARGEST_SWEEP}"


def _case_problems(at: str, cases: Mapping[str, Any]) -> Iterator[Problem]:
    for name, settings in cases.items():
        if not isinstance(settings, dict):
            yield f"{at}.{name}", settings, "a table of values by path"
            continue
        for path in settings:
            if not is_path(path):
                yield f"{at}.{name}", path, _A_PATH
