"""Runs of the HPCC group's ns-3 simulator repeated, and graded against what it put out.

A folder of reference runs has an `index.csv` and a folder a run with its inputs and outputs (`folder`,
`peer_files`). Each run is repeated by both engines, and with `fabric`'s own semantics for comparison
(`repeat`); what came of it is compared by one of three grades (`grades`); `validate` does all of it and
gives a `Report`, which prints and writes itself. `pictures` draws time series of both.
"""

from __future__ import annotations

from fabric.validation.folder import Case, read_folder
from fabric.validation.grades import Row
from fabric.validation.pictures import pictures
from fabric.validation.report import Report, check_page
from fabric.validation.validate import validate

__all__ = ["Case", "Report", "Row", "check_page", "pictures", "read_folder", "validate"]
