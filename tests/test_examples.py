"""Examples in docstrings do what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import fabric

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def modules() -> Iterator[str]:
    """Names of all modules of the package that are written in Python."""
    for module in pkgutil.walk_packages(fabric.__path__, prefix="fabric."):
        if module.name not in ("fabric._core", "fabric.__main__"):
            yield module.name


def examples() -> Iterator[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    for name in modules():
        yield from (each for each in finder.find(importlib.import_module(name), name) if each.examples)


EXAMPLES = {example.name: example for example in examples()}


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 100


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(name: str) -> None:
    printed: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(EXAMPLES[name], out=printed.append)
    assert not printed, "".join(printed)
