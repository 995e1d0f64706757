"""Single files, written whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from fabric.errors import FabricError

__all__ = ["flush_directory", "write_flushed", "write_whole"]


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that it has either its old content or all of the new.

    Parameters
    ----------
    path : path
        Directories above it are made.
    content : bytes
        What it shall hold.

    Raises
    ------
    FabricError
        If it cannot be written.
    """
    target = Path(path)
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
        raise FabricError(f"cannot write {target}: {error.strerror}") from error


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
