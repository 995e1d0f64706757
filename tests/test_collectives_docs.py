"""What the page about collectives says holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support_templates import ALGORITHMS

from fabric.workload.collectives import algorithm_options

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "collectives.md").read_text()
NAMES = {"send/recv": "send_recv"}


def rows() -> dict[str, str]:
    table = PAGE[PAGE.index("| collective | algorithms") :].split("\n\n")[0]
    cells = [line.split("|")[1:3] for line in table.splitlines()[2:]]
    return {
        NAMES.get(name.strip(), name.strip().replace("-", "_")): algorithms
        for names, algorithms in cells
        for name in names.split(",")
    }


def test_every_algorithm_is_listed_with_its_options() -> None:
    listed = rows()
    assert set(listed) == {collective for collective, _ in ALGORITHMS}
    for collective, name in ALGORITHMS:
        assert f"`{name}`" in listed[collective]
        for option in algorithm_options(collective, name):
            assert f"`{option}`" in listed[collective]
    words = {word for text in listed.values() for word in re.findall(r"`(\w+)`", text)}
    options = {option for which in ALGORITHMS for option in algorithm_options(*which)}
    assert words <= {name for _, name in ALGORITHMS} | options


@pytest.mark.parametrize("number", range(2))
def test_examples_run(number: int) -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(examples) == 2
    exec(examples[number].replace('"star"', '"test_page_star"'), {})
