"""Matrices of an all-to-all-v: who sends how many bytes to whom.

Drawn by Zipf's law, as tokens are shared out over experts of which some are popular (every rank prefers the
same ones), or read from a file. What a rank has for itself is not sent.
"""

from __future__ import annotations

import csv

import numpy as np

from fabric.errors import Said, SpecError
from fabric.formats.words import place, read_text, whole
from fabric.workload.collectives.arrays import Int64Array

__all__ = ["read_matrix", "zipf_matrix"]

DIGITS = 12
"""Popularities are rounded to so many, since powers differ in the last bit between machines."""


def zipf_matrix(popularity: Int64Array, *, size_bytes: int, skew: float) -> Int64Array:
    """Share the same size out over the other ranks, at every rank.

    Parameters
    ----------
    popularity : ndarray of int64 [ranks]
        Place of each rank in the order of popularity, from 0.
    size_bytes : int
        What each rank sends, rounded down for each receiver.
    skew : float
        Zipf's exponent: the k-th of them gets in proportion to 1 / k^skew.

    Returns
    -------
    ndarray of int64 [ranks, ranks]

    Examples
    --------
    >>> zipf_matrix(np.array([1, 0, 2]), size_bytes=900, skew=1.0).tolist()
    [[0, 675, 225], [540, 0, 360], [300, 600, 0]]
    """
    weight = np.round((popularity + 1.0) ** -skew, DIGITS)
    shares = np.tile(weight, (len(weight), 1))
    np.fill_diagonal(shares, 0.0)
    total = shares.sum(axis=1, keepdims=True)
    exact = size_bytes * shares / np.where(total > 0, total, 1.0)
    return np.floor(exact + 10.0**-6).astype(np.int64)


def read_matrix(file: str, *, n_ranks: int) -> Int64Array:
    """Read a matrix: a line a sender, with the bytes for each receiver between commas.

    Parameters
    ----------
    file : str
    n_ranks : int
        Lines, and numbers in each.

    Returns
    -------
    ndarray of int64 [ranks, ranks]

    Raises
    ------
    SpecError
        If the file cannot be read or holds anything else, naming file and line.
    """
    lines = read_text(file).splitlines()
    rows: list[list[int]] = []
    for line, words in enumerate(csv.reader(lines, skipinitialspace=True), start=1):
        if not words or words[0].startswith("#"):
            continue
        if len(words) != n_ranks:
            raise SpecError(place(file, line), len(words), f"{n_ranks} numbers, one for each rank")
        where = place(file, line)
        rows.append([whole(word.strip(), where=where, low=0) for word in words])
    if len(rows) != n_ranks:
        raise SpecError(file, Said(f"{len(rows)} lines"), f"{n_ranks} lines, one for each rank")
    return np.array(rows, dtype=np.int64)
