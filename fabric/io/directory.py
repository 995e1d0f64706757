"""A result as a directory of files that other programs can read.

* `scenario.toml`: the whole scenario; running it again gives the same result.
* `summary.json`: status, headline numbers, provenance and counters.
* `tables.npz`: every column of every table, by the name "table/column". Names that repeat are two
  arrays, "table/column#codes" and "table/column#labels"; a column in which -1 means "did not happen"
  has a "?" at its end.
* networks and flows that a script gave to the run, by the names that the scenario has for them.
* pictures, by the names under which they were given.

A directory is written whole or not at all: everything goes into a new directory beside the target, is
flushed to the disk, and takes the target's place in one step. What is not a result is never replaced.
"""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import shutil
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from fabric.errors import FabricError
from fabric.result import Category, Provenance, Result, Table
from fabric.result.result import STATUSES
from fabric.result.series import STREAM_OF

from .files import flush_directory, write_flushed
from .names import DRAWN, PICTURES, SCENARIO, SUMMARY, TABLES

__all__ = ["FORMAT", "check_target", "is_result", "load", "save"]

FORMAT = "fabric-result-1"
"""Name and version of the layout, in `summary.json`."""

COMPRESSED_BYTES = 64_000_000
"""Tables up to this size are compressed; larger ones are not worth the wait."""


def save(result: Result, *, directory: str | os.PathLike[str], pictures: Mapping[str, bytes]) -> None:
    """Write `result` into `directory`; see :meth:`fabric.result.Result.save`."""
    target = Path(os.path.abspath(directory))
    check_target(target)
    for name in pictures:
        if Path(name).name != name or not name.endswith(PICTURES):
            endings = ", ".join(PICTURES)
            raise FabricError(f"cannot save a picture as {name!r}: a file name ending in {endings}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
        draft.mkdir()
    except OSError as error:
        raise FabricError(f"cannot write to {target.parent}: {error.strerror}") from error
    try:
        _write_files(result, draft, pictures)
        _put_in_place(draft, target)
    except OSError as error:
        raise FabricError(f"cannot write {target}: {error.strerror}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def load(directory: str | os.PathLike[str]) -> Result:
    """Read a result from `directory`; see :meth:`fabric.result.Result.load`."""
    source = Path(directory)
    if not is_result(source):
        raise FabricError(f"{source}: not a fabric result (no {SUMMARY} that says so)")
    try:
        meta = json.loads((source / SUMMARY).read_text(encoding="utf-8"))
        scenario = (source / SCENARIO).read_text(encoding="utf-8")
        if meta["format"] != FORMAT:
            raise FabricError(f"{source}: written in the format {meta['format']!r}, expected {FORMAT!r}")
        if meta["summary"]["status"] not in STATUSES:
            raise ValueError(f"unknown status {meta['summary']['status']!r}")
        return Result(
            status=meta["summary"]["status"],
            tables=_read_tables(source / TABLES),
            recorded=frozenset(meta["recorded"]),
            counters=meta["counters"],
            drops_by_reason=meta["summary"]["drops"],
            duration_ps=meta["summary"]["duration_ps"],
            wall_s=meta["summary"]["wall_s"],
            provenance=Provenance(scenario=scenario, files=_read_files(source, meta), **meta["provenance"]),
        )
    except (OSError, KeyError, TypeError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise FabricError(f"{source}: damaged result: {error}") from error


def is_result(directory: Path) -> bool:
    """Return whether `directory` holds a result of any version."""
    try:
        meta = json.loads((directory / SUMMARY).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(meta, dict) and str(meta.get("format", "")).startswith("fabric-result-")


def check_target(target: Path) -> None:
    """Refuse a target that a result must not replace, before anything is computed or written.

    Raises
    ------
    FabricError
        If there is something at `target` that is neither a result nor an empty directory, or nothing can
        be put there.
    """
    _check_above(target)
    if not os.path.lexists(target):
        return
    if target.is_symlink() or not target.is_dir():
        raise FabricError(f"{target}: exists and is not a directory")
    present = sorted(entry.name for entry in target.iterdir())
    if not present:
        return
    if not is_result(target):
        raise FabricError(f"{target}: exists and is not a fabric result; choose another directory")
    own = {SCENARIO, SUMMARY, TABLES, *_named_by(target)}
    own |= {name + ending for name in DRAWN for ending in PICTURES}
    foreign = [name for name in present if name not in own]
    if foreign:
        others = f"holds files that are not part of a result: {', '.join(foreign)}"
        raise FabricError(f"{target}: {others}; choose another directory")


def _check_above(target: Path) -> None:
    """Refuse a target below a file, or below a directory that must not be written to."""
    above = Path(os.path.abspath(target)).parent
    while not os.path.lexists(above):
        above = above.parent
    if not above.is_dir():
        raise FabricError(f"{above}: exists and is not a directory")
    if not os.access(above, os.W_OK | os.X_OK):
        raise FabricError(f"cannot write to {above}: permission denied")


def _named_by(directory: Path) -> list[str]:
    """Return the names of the pictures and given files that were saved with a result."""
    meta = json.loads((directory / SUMMARY).read_text(encoding="utf-8"))
    return [str(name) for key in ("pictures", "files") for name in meta.get(key, [])]


def _read_files(directory: Path, meta: Mapping[str, Any]) -> dict[str, bytes]:
    """Return what a script gave to the run, by the names of its files."""
    return {name: (directory / Path(name).name).read_bytes() for name in meta.get("files", [])}


def _write_files(result: Result, draft: Path, pictures: Mapping[str, bytes]) -> None:
    provenance = asdict(result.provenance)
    scenario, files = provenance.pop("scenario"), provenance.pop("files")
    meta = {
        "format": FORMAT,
        "summary": result.summary.to_dict(),
        "provenance": provenance,
        "recorded": sorted(result.recorded),
        "counters": dict(result.counters),
        "pictures": sorted(pictures),
        "files": sorted(files),
    }
    write_flushed(draft / SCENARIO, scenario.encode())
    write_flushed(draft / SUMMARY, (json.dumps(meta, indent=2, allow_nan=False) + "\n").encode())
    arrays = _arrays(result.tables)
    small = sum(array.nbytes for array in arrays.values()) <= COMPRESSED_BYTES
    with open(draft / TABLES, "wb") as file:
        (np.savez_compressed if small else np.savez)(file, **arrays)  # type: ignore[arg-type]
        file.flush()
        os.fsync(file.fileno())
    for name, content in (*files.items(), *pictures.items()):
        write_flushed(draft / name, content)
    flush_directory(draft)


def _put_in_place(draft: Path, target: Path) -> None:
    """Make `draft` the new `target`; what was there ends up at `draft`."""
    if target.exists() and any(target.iterdir()):
        if not _exchange(draft, target):
            _replace_in_two_steps(draft, target)
    else:
        os.rename(draft, target)
    flush_directory(target.parent)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two directories in one step, where the system can (Linux `renameat2`)."""
    current_directory, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE of <linux/fs.h>
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    done = renameat2(current_directory, os.fsencode(one), current_directory, os.fsencode(other), exchange)
    return bool(done == 0)


def _replace_in_two_steps(draft: Path, target: Path) -> None:
    """Put `draft` at `target` by two renames; if the second fails, the first is undone."""
    aside = draft.with_name(draft.name + ".old")
    os.rename(target, aside)
    try:
        os.rename(draft, target)
    except OSError:
        os.rename(aside, target)
        raise
    os.rename(aside, draft)


def _arrays(tables: Mapping[str, Table]) -> dict[str, np.ndarray[Any, Any]]:
    arrays = {}
    for table_name, table in tables.items():
        for name in table.columns:
            key, column = f"{table_name}/{name}", table.raw(name)
            if isinstance(column, Category):
                arrays[f"{key}#codes"], arrays[f"{key}#labels"] = column.codes, column.labels
            else:
                arrays[f"{key}?" if name in table.optional else key] = column
    return arrays


def _read_tables(path: Path) -> dict[str, Table]:
    columns: dict[str, dict[str, Any]] = {}
    optional: dict[str, list[str]] = {}
    with np.load(path, allow_pickle=False) as arrays:
        for key in arrays.files:
            table_name, _, name = key.partition("/")
            table = columns.setdefault(table_name, {})
            if name.endswith("#codes"):
                name = name.removesuffix("#codes")
                table[name] = Category(arrays[key], arrays[f"{table_name}/{name}#labels"])
            elif name.endswith("?"):
                table[name.removesuffix("?")] = arrays[key]
                optional.setdefault(table_name, []).append(name.removesuffix("?"))
            elif not name.endswith("#labels"):
                table[name] = arrays[key]
    missing = {"flows", "ports", "classes", "nodes", *STREAM_OF} - set(columns)
    if missing:
        raise ValueError(f"{path.name} has no table {', '.join(sorted(missing))}")
    return {name: Table(table, name=name, optional=optional.get(name, ())) for name, table in columns.items()}
