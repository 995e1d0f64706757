"""Failures of a network as they come about: what, where, from when to when.

`find_occurrences` turns the entries of a scenario into single occurrences (`occurrences.py`), drawn ones
(`draw.py`) and those of a log (`log.py`) included. `failure_table` lists them with what follows from them and
when (`table.py`). `intervals.py` says from when to when each cable is out of order, and is known to be.
"""

from __future__ import annotations

from fabric.failures.draw import network_failures
from fabric.failures.log import read_log
from fabric.failures.occurrences import Occurrence, find_occurrences

__all__ = ["Occurrence", "find_occurrences", "network_failures", "read_log"]
