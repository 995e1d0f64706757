"""Imports of optional dependencies, with an error that says what to install."""

from __future__ import annotations

import importlib
from types import ModuleType

from fabric.errors import FabricError
from fabric.version import DISTRIBUTION

__all__ = ["MissingDependencyError", "require"]


class MissingDependencyError(FabricError, ImportError):
    """A feature needs a package that is not installed; the message says how to install it."""


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import and return an optional module.

    Parameters
    ----------
    module : str
        Name to import ("pandas").
    extra : str
        The extra of this distribution that brings it.
    purpose : str
        What it is needed for, as the subject of a sentence.

    Raises
    ------
    MissingDependencyError
        If the module cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"{purpose} needs {module}; install it with: pip install '{DISTRIBUTION}[{extra}]'"
        ) from error
