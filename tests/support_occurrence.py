"""Random cases show all that they are meant to show, whatever Hypothesis happens to draw.

The cases of a derandomised test change with the version of Hypothesis and with the modules that are loaded,
so counts of what occurred in a fixed number of them do too. Here cases are drawn until everything has
occurred, and what shows it first is checked as every case is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

__all__ = ["check_all_occur"]

Case = TypeVar("Case")
MOST_CASES = 10_000
TIMES = 3
SEARCH = settings(
    max_examples=MOST_CASES,
    phases=(Phase.generate,),
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def check_all_occur(
    cases: st.SearchStrategy[Case],
    *,
    wanted: Iterable[str],
    happened: Callable[[Case], Iterable[str]],
    check: Callable[[Case], object],
) -> None:
    """Draw cases until each thing that is wanted has occurred three times; check these cases.

    Parameters
    ----------
    cases : strategy
    wanted : iterable of str
    happened : callable
        Names of what occurs in a case; as cheap as can be.
    check : callable
        Fails if something is wrong with a case.

    Raises
    ------
    AssertionError
        That of `check`; or something does not occur in 10,000 cases.
    """
    missing = Counter(dict.fromkeys(wanted, TIMES))

    def are_all_shown(case: Case) -> bool:
        shown = missing.keys() & set(happened(case))
        if shown:
            check(case)
            missing.subtract(shown)
            for name in [name for name in shown if missing[name] == 0]:
                del missing[name]
        return not missing

    try:
        find(cases, are_all_shown, settings=SEARCH)
    except NoSuchExample:
        raise AssertionError(f"hardly ever occurs in {MOST_CASES} cases: {sorted(missing)}") from None
