"""The version of `fabric`, from its one source: the project's metadata.

An installed package answers from its metadata. A source tree that was never installed has none, so
its `pyproject.toml` answers, which is where the metadata comes from.
"""

from __future__ import annotations

import importlib.metadata
import tomllib
from functools import cache
from pathlib import Path

__all__ = ["DISTRIBUTION", "version"]

DISTRIBUTION = "fabric-emulator"
"""Name of the distribution on the package index."""


@cache
def version() -> str:
    """Return the version of the code that is running, for example "0.1.0".

    Examples
    --------
    >>> version().count(".") >= 1
    True
    """
    source = Path(__file__).resolve().parent.parent / "pyproject.toml"
    if source.is_file():
        project = tomllib.loads(source.read_text(encoding="utf-8")).get("project", {})
        if project.get("name") == DISTRIBUTION:
            return str(project["version"])
    try:
        return importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
