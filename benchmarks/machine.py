"""On what a measurement was made, in words and as data."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numpy as np

__all__ = ["describe_machine", "machine_line"]

CPU_INFO = Path("/proc/cpuinfo")


def describe_machine() -> dict[str, str | int | float]:
    """Return processor, cores, load and versions."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "load": round(os.getloadavg()[0], 2),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def machine_line() -> str:
    """Return the description as one line."""
    seen = describe_machine()
    return (
        f"{seen['processor']}, {seen['cores']} cores (load {seen['load']:.2f}), "
        f"{seen['system']}, Python {seen['python']}, NumPy {seen['numpy']}"
    )


def _processor() -> str:
    """The processor's name and family: names alone are often cut down on virtual machines."""
    try:
        lines = CPU_INFO.read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    name = fields.get("model name", platform.machine())
    family, model = fields.get("cpu family"), fields.get("model")
    return f"{name} (family {family}, model {model})" if family and model else name
