"""`Provenance`: everything that a result depends on, so that it can be had again.

A run is a pure function of its scenario and seed; the versions say which code evaluated it.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
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
        Files that it names are absolute, or in `files`.
    name, question, expect : str
        The scenario's name, the question that it asks and the answer that it expects.
    seed : int
        Seed of the run.
    engine : str
        "native" or "reference"; their results are the same.
    fabric, numpy, python, platform : str
        Versions of what ran, and on what.
    files : mapping of str to bytes
        Networks and flows that a script gave to the run, as files by the names that the scenario has
        for them; a saved result has them beside its scenario.
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
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    @classmethod
    def here(
        cls,
        *,
        scenario: str,
        name: str,
        question: str,
        expect: str,
        seed: int,
        engine: str,
        files: Mapping[str, bytes] | None = None,
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
            files=files or {},
        )
