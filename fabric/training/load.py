"""Files of training jobs.

TOML: the fields of a `TrainingJob`, `model` as the name of a preset or a table of its shape; or a scenario,
of which the first training job counts.
"""

from __future__ import annotations

from pathlib import Path

from fabric.errors import Said, SpecError
from fabric.formats.words import read_text
from fabric.scenario import parse_toml
from fabric.spec.decode import convert
from fabric.spec.scenario import Scenario
from fabric.spec.training.entry import Training
from fabric.spec.training.job import TrainingJob
from fabric.training.work import packed_job

__all__ = ["load_job"]


def load_job(file: str | Path) -> TrainingJob:
    """Read the file of a job.

    Raises
    ------
    SpecError
        If it cannot be read, is not TOML, or is not a job.
    """
    document = parse_toml(read_text(file, what="training job"), name=str(file))
    if "traffic" in document:
        return _of_scenario(convert(document, Scenario, path=str(file)), path=str(file))
    job = convert(document, TrainingJob, path=str(file))
    assert isinstance(job, TrainingJob)
    return job


def _of_scenario(scenario: Scenario, *, path: str) -> TrainingJob:
    for entry in scenario.traffic:
        if isinstance(entry, Training):
            name = entry.job.name or scenario.name
            job = entry.job.replace(name=name)
            if entry.packing is not None:
                job, _ = packed_job(job, entry.packing, seed=scenario.run.seed)
            return job
    raise SpecError(f"{path}: traffic", Said("no training job"), 'an entry of kind "training"')
