"""Rows of a small CSV file, each with its line number, so that an error can name file and line.

Accepted as in practice (RFC 4180 with liberties): comma separated, one header line, quotes where
needed, blank lines and lines that begin with `#` skipped, a byte-order mark ignored, spaces around
values dropped. What the columns mean is the caller's.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from fabric.errors import SpecError

__all__ = ["read_rows"]


def read_rows(
    file: str | Path, *, required: Sequence[str], optional: Sequence[str] = (), path: str
) -> Iterator[tuple[int, dict[str, str]]]:
    """Read a CSV file row by row.

    Parameters
    ----------
    file : str or Path
        The file.
    required, optional : sequence of str
        Columns that the header must and may name, in any order.
    path : str
        Where the file is named in the scenario, for errors about the file itself.

    Yields
    ------
    (int, dict)
        Line number from 1, and text by column; optional columns that are absent read as "".

    Raises
    ------
    SpecError
        If the file cannot be read, its header is wrong, or a row has another number of values.
    """
    numbered = _content_lines(file, path)
    header_line, header = next(numbered, (1, []))
    _check_header(header, where=f"{file}:{header_line}", required=required, optional=optional)
    absent = dict.fromkeys(optional, "")
    for line, values in numbered:
        if len(values) != len(header):
            raise SpecError(f"{file}:{line}", ",".join(values), f"{len(header)} values: {','.join(header)}")
        yield line, absent | dict(zip(header, values, strict=True))


def _content_lines(file: str | Path, path: str) -> Iterator[tuple[int, list[str]]]:
    try:
        with open(file, encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, skipinitialspace=True)
            for row in reader:
                values = [value.strip() for value in row]
                if any(values) and not values[0].startswith("#"):
                    yield reader.line_num, values
    except OSError as error:
        raise SpecError(path, str(file), f"a CSV file that can be read ({error.strerror})") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise SpecError(path, str(file), f"a CSV file in UTF-8 ({error})") from None


def _check_header(
    header: Sequence[str], *, where: str, required: Sequence[str], optional: Sequence[str]
) -> None:
    allowed = f"the header {','.join(required)}"
    if optional:
        allowed += f", optionally with {','.join(optional)}"
    known = set(required) | set(optional)
    if not set(required) <= set(header) <= known or len(set(header)) != len(header):
        raise SpecError(where, ",".join(header), allowed)
