"""How much memory this process holds, as the operating system counts it.

Anonymous resident memory (`RssAnon`): pages that the process has written to. Zeroed arrays that nothing
touched do not count, and neither do the code and data of libraries. Before a first reading the allocator
is asked to give back what it has only kept, so that growth from there on is new memory. Linux only;
elsewhere there is no reading, and tables show "-".
"""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path

__all__ = ["resident_bytes", "settle"]

STATUS = Path("/proc/self/status")


def resident_bytes() -> int | None:
    """Return the anonymous resident memory of this process; None if the system does not tell."""
    try:
        lines = STATUS.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return None


def settle() -> None:
    """Collect garbage and, with glibc, give free memory back to the system."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
