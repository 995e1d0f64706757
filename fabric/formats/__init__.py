"""Files of other simulators as plain data: one format a file, each with its parser and its writer.

A parser turns a file into arrays (`NetworkData`, `FlowData`) or settings, and says with `Remark` what
it left out and why. It knows nothing of specs; `fabric.topology` and `fabric.workload` make networks
and flows of the arrays, and `fabric.convert` whole scenarios. Every error is a `SpecError` that names
the file, the line, the value and what would be accepted, and nothing is read past it.

The formats, with their traps, are described in `docs/formats.md`.
"""

from __future__ import annotations

from fabric.formats.data import FailedLink, FlowData, NetworkData, Remark
from fabric.formats.recognise import FORMATS, recognise

__all__ = ["FORMATS", "FailedLink", "FlowData", "NetworkData", "Remark", "recognise"]
