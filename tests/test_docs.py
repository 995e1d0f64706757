"""The pages for users: their links lead somewhere, what they name exists, their commands are understood."""

from __future__ import annotations

import importlib
import re
import shlex
from pathlib import Path

import pytest

from fabric.cli.main import parser

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "benchmarks" / "README.md"]
PAGES += sorted((ROOT / "docs").glob("*.md"))


def ids(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """What a page's headings are called in links, as GitHub makes it."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_files_and_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name in set(re.findall(r"`((?:fabric|tests|docs|scenarios|benchmarks)/[\w/.*]+)`", text)):
        assert list(ROOT.glob(name.rstrip("/"))), name
    for name in set(re.findall(r"`(fabric(?:\.[A-Za-z_]+)+)[`(]", text)):
        assert name.endswith(".toml") or is_there(name), name


def is_there(dotted: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    module, _, rest = dotted.rpartition(".")
    try:
        importlib.import_module(dotted)
    except ModuleNotFoundError:
        return bool(module) and is_there(module) and hasattr(importlib.import_module(module), rest)
    return True


def commands() -> list[tuple[str, str]]:
    """Commands in blocks that a reader would copy, without those of a table that names options."""
    found = []
    for page in PAGES:
        blocks = re.findall(r"^```(?:console|sh)?\n(.*?)^```", page.read_text("utf-8"), flags=re.M | re.S)
        lines = (line.removeprefix("$ ") for block in blocks for line in block.splitlines())
        found += [(ids(page), line) for line in lines if line.startswith("fabric ")]
    return found


def test_there_are_commands() -> None:
    assert len(commands()) > 10


@pytest.mark.parametrize(("page", "command"), commands())
def test_commands_are_understood(page: str, command: str) -> None:
    words = shlex.split(command, comments=True)
    options = parser().parse_args(words[1:])
    assert callable(options.command), page
