"""The shape of the project: what may import what, and what the engine must not contain.

`from fabric.engine.x cimport y` is tracked by the build; `cimport x` and `cimport *` are not and lead to
stale builds. The engine never needs the interpreter: every function in it is `noexcept nogil`.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ENGINE = sorted((ROOT / "fabric" / "engine").glob("*.pxd"))
CYTHON = [*ENGINE, *sorted((ROOT / "fabric" / "door").glob("*.pxi")), ROOT / "fabric" / "_core.pyx"]

LAYERS: dict[str, set[str]] = {
    "units": set(),
    "errors": set(),
    "version": set(),
    "keyed_hash": set(),
    "lowered": set(),
    "interrupt": set(),
    "reliability": set(),
    "analysis": {"spec", "topology"},
    "spec": {"errors", "units"},
    "formats": {"errors", "units"},
    "topology": {"errors", "formats", "spec", "units"},
    "routing": {"errors", "keyed_hash", "lowered", "topology"},
    "reroute": {"errors", "lowered", "routing", "topology"},
    "failures": {"errors", "keyed_hash", "spec", "topology", "units"},
    "workload": {"errors", "formats", "keyed_hash", "spec", "topology", "units"},
    "scenario": {"errors", "formats", "spec"},
    "jobs": {"spec", "topology", "training", "workload"},
    "loads": {"lowered", "routing", "workload"},
    "lower": {"errors", "jobs", "lowered", "lowering", "routing", "spec", "topology", "units", "workload"},
    "lowering": {
        *("errors", "failures", "keyed_hash", "lowered", "reroute", "routing", "spec", "topology", "units"),
        "workload",
    },
    "_core": {"door", "engine", "errors", "lowered"},
    "door": {"engine"},
    "engine": set(),
    "reference": {"lowered"},
    "result": {"analysis", "io", "lowered", "units", "version"},
    "io": {"errors", "result", "version"},
    "outcome": {
        *("analysis", "errors", "loads", "lowered", "result", "routing", "spec", "topology", "workload"),
    },
    "progress": {"lowered", "outcome", "result"},
    "given": {"errors", "spec", "topology", "workload"},
    "simulate": {
        *(
            "_core",
            "errors",
            "given",
            "interrupt",
            "jobs",
            "lower",
            "outcome",
            "progress",
            "reference",
            "result",
        ),
        *("scenario", "spec", "topology", "units", "workload"),
    },
    "sweep": {"errors", "io", "result", "scenario", "simulate", "spec"},
    "training": {"errors", "formats", "keyed_hash", "scenario", "spec", "topology", "units", "workload"},
    "step": {
        *("_core", "errors", "lower", "outcome", "result", "scenario", "simulate", "spec", "sweep"),
        *("topology", "workload"),
    },
    "checks": {
        *("analysis", "errors", "lower", "lowered", "lowering", "result", "spec", "topology", "units"),
        "workload",
    },
    "bench": {"analysis", "errors", "result", "simulate", "spec", "topology", "units", "workload"},
    "resilience": {"errors", "failures", "result", "simulate", "spec", "topology", "units"},
    "plot": {"analysis", "errors", "failures", "resilience", "result", "topology"},
    "convert": {
        *("errors", "formats", "io", "result", "scenario"),
        *("spec", "topology", "units", "workload"),
    },
    "validation": {
        *("_core", "convert", "errors", "formats", "lower", "lowered", "plot", "reference", "result"),
        *("spec", "topology"),
    },
    "cli": {
        *("bench", "checks", "convert", "errors", "failures", "formats", "interrupt", "io", "plot"),
        *("resilience", "result", "scenario"),
        *("simulate", "spec", "step", "sweep", "topology", "training", "units", "validation", "version"),
    },
    "__main__": {"cli", "interrupt"},
}
"""What each layer may import of the project (docs/design.md section 1), besides itself."""


def statements(path: Path) -> list[str]:
    """Lines of code, without comments."""
    return [line.split("#", 1)[0].rstrip() for line in path.read_text().splitlines()]


@pytest.mark.parametrize("path", CYTHON, ids=lambda path: path.name)
def test_only_tracked_cimports(path: Path) -> None:
    for line in statements(path):
        if re.match(r"\s*cimport\s", line):
            pytest.fail(f"{path.name}: {line.strip()!r}; write `from ... cimport ...`")
        assert not re.search(r"cimport\s*\(?\s*\*", line), f"{path.name}: {line.strip()}"


@pytest.mark.parametrize("path", ENGINE, ids=lambda path: path.name)
def test_the_engine_does_not_need_the_interpreter(path: Path) -> None:
    text = "\n".join(statements(path))
    definitions = re.findall(
        r"^cdef inline [^\n]*?\((?:[^()]|\([^()]*\))*\)([^\n]*)$", text, flags=re.MULTILINE
    )
    assert all("noexcept nogil:" in tail for tail in definitions), path.name
    assert len(definitions) == len(re.findall(r"^cdef inline ", text, flags=re.MULTILINE)), path.name
    for word in ("with gil", "object ", "cpdef ", "raise ", "try:", "print("):
        assert not re.search(rf"(?<![\w.]){re.escape(word)}", text), f"{path.name} contains {word!r}"
    assert not re.search(r"^\s*(import|from \S+ import)\s", text, flags=re.MULTILINE), path.name


@pytest.mark.parametrize("path", ENGINE, ids=lambda path: path.name)
def test_the_engine_depends_on_itself_and_libc_alone(path: Path) -> None:
    for module in re.findall(r"from (\S+) cimport", path.read_text()):
        assert module.startswith(("fabric.engine.", "libc.")), f"{path.name} cimports {module}"


@pytest.mark.parametrize("path", CYTHON, ids=lambda path: path.name)
def test_every_cimported_name_is_used(path: Path) -> None:
    text = path.read_text()
    cimport = r"from \S+ cimport (\([^)]*\)|[^\n]*)"
    body = re.sub(cimport, "", text)
    names = ",".join(match.strip("()") for match in re.findall(cimport, text)).replace("\n", " ")
    unused = [
        name for name in map(str.strip, names.split(",")) if name and not re.search(rf"\b{name}\b", body)
    ]
    assert not unused, f"{path.name} does not use {unused}"


def test_files_are_concepts() -> None:
    sizes = {path.name: len(path.read_text().splitlines()) for path in ENGINE}
    assert len(sizes) >= 20
    assert max(sizes.values()) <= 350, sizes
    for path in ENGINE:
        assert path.read_text().startswith("# ") or path.name == "__init__.pxd", (
            f"{path.name} opens with prose"
        )


CIMPORT = re.compile(r"^ *(?:from +([\w.]+) +c?import +\(?([\w, ]*)|c?import +([\w.]+))", re.MULTILINE)


def project_imports(path: Path) -> set[str]:
    """First-level modules of `fabric` that a file imports, also inside functions and relative to itself."""
    if path.suffix != ".py":
        text = path.read_text()
        imported = [one for found in CIMPORT.finditer(text) for one in cython_names(found)]
        imported += [f"fabric.{place}" for place in re.findall(r'^include "(\w+)/', text, re.MULTILINE)]
    else:
        package = path.relative_to(ROOT).parent.parts
        imported = [
            name for node in ast.walk(ast.parse(path.read_text())) for name in python_names(node, package)
        ]
    return {name.split(".")[1] for name in imported if name.startswith("fabric.")}


def cython_names(found: re.Match[str]) -> list[str]:
    if found[1] != "fabric":
        return [found[1] or found[3]]
    return [f"fabric.{name.split()[0]}" for name in found[2].split(",")]


def python_names(node: ast.AST, package: tuple[str, ...]) -> list[str]:
    """Absolute names of the modules that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    above = package[: len(package) + 1 - node.level] if node.level else ()
    module = ".".join([*above, *([node.module] if node.module else [])])
    return [f"fabric.{alias.name}" for alias in node.names] if module == "fabric" else [module]


@pytest.mark.parametrize(
    ("text", "modules"),
    [
        ("from . import plot", {"plot"}),
        ("from .result import Table", {"result"}),
        ("def f():\n    from fabric import analysis, io", {"analysis", "io"}),
        ("import fabric.units, numpy", {"units"}),
    ],
)
def test_every_form_of_import_is_seen(text: str, modules: set[str]) -> None:
    found = {name for node in ast.walk(ast.parse(text)) for name in python_names(node, ("fabric",))}
    assert {name.split(".")[1] for name in found if name.startswith("fabric.")} == modules
    inside = python_names(ast.parse("from ..units import Rate").body[0], ("fabric", "spec"))
    assert inside == ["fabric.units"]


def test_every_module_is_in_a_layer() -> None:
    places = [*(ROOT / "fabric").iterdir()]
    names = {path.stem for path in places if path.is_dir() or path.suffix in (".py", ".pyx")}
    assert names - {"__init__", "__pycache__"} == set(LAYERS)


@pytest.mark.parametrize("layer", sorted(LAYERS))
def test_layers_look_one_way(layer: str) -> None:
    place = ROOT / "fabric" / layer
    files = [path for path in place.rglob("*.p*") if path.suffix in (".py", ".pyx", ".pxi", ".pxd")]
    files += [path for path in (place.with_suffix(ending) for ending in (".py", ".pyx")) if path.is_file()]
    assert files
    seen = set()
    for path in files:
        seen |= project_imports(path) - {layer}
        extra = project_imports(path) - LAYERS[layer] - {layer}
        assert not extra, f"{path.relative_to(ROOT)} imports {sorted(extra)}"
    assert seen == LAYERS[layer], f"{layer} does not import {sorted(LAYERS[layer] - seen)}"


def test_the_table_of_the_design_names_every_layer() -> None:
    text = (ROOT / "docs" / "design.md").read_text()
    table = text[text.index("| place |") : text.index("`tests/test_structure.py` holds")]
    places = " ".join(line.split("|")[1] for line in table.splitlines()[2:] if "|" in line)
    named = {re.sub(r"^fabric/|/$|\.pyx?$", "", place) for place in re.findall(r"`([^`]+)`", places)}
    assert named == set(LAYERS) - {"__main__"}


def test_import_is_light() -> None:
    heavy = ("matplotlib", "networkx", "pandas", "pyarrow", "tqdm")
    code = f"import sys, fabric; print([name for name in {heavy!r} if name in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert result.stdout.strip() == "[]"
