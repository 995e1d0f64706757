"""Scenario files with one mistake each: how they are put together, and what their error must be."""

from __future__ import annotations

import pytest

from fabric.errors import SpecError
from fabric.scenario import load_scenario, scenario_errors

__all__ = [
    "GOOD",
    "TOPOLOGY",
    "TRAFFIC",
    "check_listed",
    "check_one_error",
    "flow",
    "flows",
    "plus",
    "topology",
    "traffic",
]

TOPOLOGY = """
[topology]
kind = "leaf_spine"
leaves = 2
spines = 2
hosts_per_leaf = 4
"""
TRAFFIC = """
[[traffic]]
kind = "incast"
senders = 3
size = "1MB"
"""
GOOD = TOPOLOGY + TRAFFIC


def topology(text):
    return f"[topology]\n{text}\n{TRAFFIC}"


def traffic(*entries):
    return TOPOLOGY + "".join(f"\n[[traffic]]\n{entry}\n" for entry in entries)


def flow(**changes):
    fields = {"source": 0, "destination": 1, "size": '"1MB"'} | changes
    return "{" + ", ".join(f"{name} = {value}" for name, value in fields.items()) + "}"


def flows(*elements):
    return traffic(f'kind = "flows"\nflows = [{", ".join(elements)}]')


def plus(text):
    return GOOD + text


def check_one_error(tmp_path, text, path, value, remedy):
    """The error names the path, the value and the remedy, in one line."""
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(SpecError) as caught:
        load_scenario(file)
    message = str(caught.value)
    assert caught.value.path == path
    assert message.startswith(f"{path}: ")
    assert value in message.partition(" is not allowed; expected ")[0]
    assert remedy in message.partition(" is not allowed; expected ")[2]
    assert "\n" not in message
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def check_listed(text):
    """It is among all errors of the scenario."""
    with pytest.raises(SpecError) as caught:
        load_scenario(text)
    assert str(caught.value) in [str(error) for error in scenario_errors(text)]
