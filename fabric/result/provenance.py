"""`Provenance`: everything that a result depends on, so that it can be had again.

A run is a pure function of its scenario and seed; the versions say which code evaluated it.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass, field

import numpy as np

from fabric.version import version

__all__ = ["Provenance"]


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where a result comes from.

    Attributes
    ----------
    scenario : str
        The whole scenario as TOML text, overrides included; what equals its default is left out.
    name, question, expect : str
        The scenario's name, the question that it asks and the answer that it expects.
    seed : int
        Seed of the run.
    engine : str
        "native" or "reference"; their results are the same.
    fabric, numpy, python, platform : str
        Versions of what ran, and on what.
    """

    scenario: str = field(repr=False)
    name: str
    question: str
    expect: str
    seed: int
    engine: str
    fabric: str
    numpy: str
    python: str
    platform: str

    @classmethod
    def here(
        cls, *, scenario: str, name: str, question: str, expect: str, seed: int, engine: str
    ) -> Provenance:
        """Return the provenance of a run by this interpreter on this machine."""
        return cls(
            scenario=scenario,
            name=name,
            question=question,
            expect=expect,
            seed=seed,
            engine=engine,
            fabric=version(),
            numpy=np.__version__,
            python=platform.python_version(),
            platform=platform.platform(),
        )
