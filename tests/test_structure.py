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
CYTHON = [*ENGINE, ROOT / "fabric" / "_core.pyx"]

LAYERS: dict[str, set[str]] = {
    "errors": set(),
    "units": {"errors"},
    "lowered": set(),
    "keyed_hash": set(),
    "formats": {"errors", "units"},
    "spec": {"errors", "units"},
    "topology": {"errors", "formats", "spec", "units"},
    "routing": {"errors", "keyed_hash", "lowered", "topology"},
    "workload": {"errors", "formats", "keyed_hash", "spec", "topology", "units"},
    "scenario": {"errors", "spec", "units"},
    "reference": {"errors", "lowered"},
    "plot": {"analysis", "errors", "result", "topology", "units"},
    "io": {"errors", "result", "version"},
    "convert": {
        *("errors", "formats", "io", "result", "scenario"),
        *("spec", "topology", "units", "workload"),
    },
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


def test_files_are_concepts() -> None:
    sizes = {path.name: len(path.read_text().splitlines()) for path in ENGINE}
    assert len(sizes) >= 20
    assert max(sizes.values()) <= 350, sizes
    for path in ENGINE:
        assert path.read_text().startswith("# ") or path.name == "__init__.pxd", (
            f"{path.name} opens with prose"
        )


def project_imports(path: Path) -> set[str]:
    """First-level modules of `fabric` that a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module] if node.module != "fabric" else [f"fabric.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("fabric.")}
    return found


@pytest.mark.parametrize("layer", sorted(LAYERS))
def test_layers_look_one_way(layer: str) -> None:
    place = ROOT / "fabric" / layer
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    assert files
    for path in files:
        extra = project_imports(path) - LAYERS[layer] - {layer}
        assert not extra, f"{path.relative_to(ROOT)} imports {sorted(extra)}"


def test_import_is_light() -> None:
    heavy = ("matplotlib", "networkx", "pandas", "pyarrow", "tqdm")
    code = f"import sys, fabric; print([name for name in {heavy!r} if name in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert result.stdout.strip() == "[]"
