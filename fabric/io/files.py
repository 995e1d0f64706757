"""Files, written whole or not at all, alone or several together."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from fabric.errors import FabricError

__all__ = ["flush_directory", "write_flushed", "write_together", "write_whole"]


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that it has either its old content or all of the new.

    Parameters
    ----------
    path : path
        Directories above it are made. A link stays: what it leads to is written. A device or pipe (such as
        /dev/stdout) is sent the content as it is.
    content : bytes
        What it shall hold.

    Raises
    ------
    FabricError
        If it cannot be written.
    """
    if _takes_bytes(path):
        _send(path, content)
        return
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            write_flushed(draft, content)
            os.replace(draft, target)
            flush_directory(target.parent)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise FabricError(f"cannot write {path}: {error.strerror}") from error


def _takes_bytes(path: str | os.PathLike[str]) -> bool:
    """Whether there is a device, pipe or socket, which must not be replaced by a file."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _send(path: str | os.PathLike[str], content: bytes) -> None:
    try:
        with open(path, "wb") as stream:
            stream.write(content)
    except OSError as error:
        raise FabricError(f"cannot write {path}: {error.strerror}") from error


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Write several files of one directory so that either all are new or none is.

    Parameters
    ----------
    contents : mapping of Path to bytes
        What each shall hold; the directory is made. All are written before any takes its place, and
        what was there before comes back if one cannot.

    Raises
    ------
    FabricError
        If one cannot be written.
    """
    token = secrets.token_hex(4)
    drafts = {target: target.with_name(f".{target.name}.{token}.tmp") for target in contents}
    backups = {target: target.with_name(f".{target.name}.{token}.old") for target in contents}
    placed: list[Path] = []
    try:
        for target, content in contents.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            write_flushed(drafts[target], content)
        for target in contents:
            if target.is_file():
                os.link(target, backups[target])
            os.replace(drafts[target], target)
            placed.append(target)
        flush_directory(next(iter(contents)).parent)
    except OSError as error:
        for target in placed:
            if backups[target].is_file():
                os.replace(backups[target], target)
            else:
                target.unlink(missing_ok=True)
        raise FabricError(f"cannot write {error.filename2 or error.filename}: {error.strerror}") from error
    finally:
        for file in (*drafts.values(), *backups.values()):
            file.unlink(missing_ok=True)


def write_flushed(path: Path, content: bytes) -> None:
    """Write a file and wait until the disk has it."""
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def flush_directory(path: Path) -> None:
    """Wait until the disk has the names in a directory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
