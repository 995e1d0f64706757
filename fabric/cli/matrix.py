"""`fabric matrix`: who sends how much in a training step."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from fabric.cli.common import DONE, file_name, image_format_of, out_path
from fabric.errors import SpecError

__all__ = ["add"]


def add(commands: Any) -> None:
    parser = commands.add_parser("matrix", help="describe and draw who sends how much in a training step")
    parser.add_argument("job", metavar="FILE", help="training job, or scenario with one (TOML)")
    parser.add_argument(
        "--per",
        type=int,
        metavar="N",
        help="ranks of a row (default: so many that there are at most 128 rows)",
    )
    parser.add_argument(
        "--collectives",
        choices=("ring", "direct"),
        default="ring",
        help="which way their bytes go inside a group (default: ring)",
    )
    parser.add_argument(
        "--out", metavar="FILE", help="image file, .png, .pdf or .svg (default: results/NAME-matrix.png)"
    )
    parser.add_argument("--array", metavar="FILE", help="NumPy file (.npz) with the matrix of each dimension")
    parser.set_defaults(command=_matrix)


ROWS_OF_A_MATRIX = 128


def _matrix(options: argparse.Namespace) -> int:
    import io

    import numpy as np

    from fabric.io.files import write_whole
    from fabric.plot import matrices, to_image
    from fabric.training import communication_matrix, load_job
    from fabric.training.volumes import NAMES

    job = load_job(options.job)
    name = file_name(job.name, options.job)
    target = out_path(options) or Path("results", f"{name}-matrix.png")
    image_format = image_format_of(target)
    array_file = out_path(options, "array")
    if array_file is not None and array_file.suffix != ".npz":
        raise SpecError("--array", options.array, "a file name ending in .npz")
    matrix = communication_matrix(job, collectives=options.collectives)
    per = options.per if options.per is not None else -(-matrix.n_ranks // ROWS_OF_A_MATRIX)
    arrays = _arrays(matrix, per)
    of = "rank" if per == 1 else f"group of {per} ranks"
    model = job.shape.name or "model"
    panels = {f"{each}: {NAMES[each]}": array for each, array in arrays.items()}
    drawn = matrices(panels, of=of, title=f"Bytes sent in a step: {model} on {matrix.n_ranks} ranks")
    write_whole(target, to_image(drawn[0], format=image_format))
    if array_file is not None:
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)
        write_whole(array_file, buffer.getvalue())
    print(name)
    for line in _matrix_lines(job, matrix):
        print(f"  {line}")
    print(f"\n  picture  {target}")
    return DONE


def _arrays(matrix: Any, per: int) -> dict[str, Any]:
    """Return the matrix of each dimension, `per` ranks a row."""
    try:
        return {each: matrix.array(each, per=per) for each in matrix.pairs}
    except SpecError as error:
        raise SpecError(f"--{error.path}", error.value, error.allowed) from None


def _matrix_lines(job: Any, matrix: Any) -> list[str]:
    from fabric.result.text import align, count_text
    from fabric.training.volumes import GROUPS
    from fabric.units import format_size

    total = sum(matrix.total_bytes(each) for each in matrix.pairs)
    rows = [["dimension", "group", "sent a rank", "share"]]
    for each in matrix.pairs:
        tokens, expert = GROUPS[each]
        members = job.parallelism.groups(tokens, expert=expert).shape[1]
        sent = matrix.total_bytes(each)
        rows.append(
            [
                each,
                f"{count_text(members)} ranks",
                format_size(round(sent / matrix.n_ranks)),
                f"{sent / total:.1%}",
            ]
        )
    return align(rows)
