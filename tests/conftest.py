"""What several files of tests share and take long to make."""

from __future__ import annotations

import pytest
from support_results import INCAST

from fabric.result import Result
from fabric.simulate import run


@pytest.fixture(scope="session")
def incast() -> Result:
    """The small incast of `support_results`, run in the readable engine."""
    return run(INCAST, engine="reference", progress=False)
