"""Who sends how much to whom in a step: matrices against volumes, `fabric matrix`."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support_volumes import gpt3

from fabric.errors import SpecError
from fabric.training import (
    Model,
    Parallelism,
    TrainingJob,
    communication_matrix,
    load_job,
    place_ranks,
    volumes,
    wire_bytes,
)
from fabric.training.volumes import GROUPS, NAMES
from fabric.workload.collectives import Collective

# Matrices.

LAYOUTS = st.fixed_dictionaries(
    {
        "tp": st.sampled_from([1, 2, 4]),
        "cp": st.sampled_from([1, 2]),
        "dp": st.sampled_from([1, 2, 4]),
        "pp": st.sampled_from([1, 2, 4]),
        "vpp": st.sampled_from([1, 2]),
        "zero": st.integers(0, 3),
    }
)
CASES = st.tuples(
    LAYOUTS,
    st.booleans(),
    st.sampled_from(["ring", "direct"]),
    st.sampled_from(["ring", "all_gather", "all_to_all"]),
)


@settings(max_examples=60, deadline=None)
@given(CASES)
def test_a_matrix_holds_what_its_ranks_send_and_receive(case: tuple[dict[str, int], bool, Any, Any]) -> None:
    layout, moe, way, context = case
    experts = {"count": 8, "top_k": 2, "ffn": 32, "shared": 1, "dense_layers": 3}
    model = Model(
        layers=9,
        hidden=64,
        ffn=128,
        heads=8,
        vocabulary=1000,
        tied=not moe,
        experts=experts if moe else None,  # type: ignore[arg-type]
    )
    world = layout["tp"] * layout["cp"] * layout["dp"]
    parallelism = Parallelism(**layout, sp=layout["tp"] > 1, etp=1, ep=min(world, 8) if moe else 1)
    job = TrainingJob(model=model, sequence=64, global_batch=8, parallelism=parallelism, context=context)
    matrix = communication_matrix(job, collectives=way)
    expected: dict[str, list[Fraction]] = {}
    stage_of = parallelism.coordinates(np.arange(parallelism.world))["pp"].tolist()
    by_stage = [volumes(job, stage=stage) for stage in range(parallelism.pp)]
    for rank, stage in enumerate(stage_of):
        for row in by_stage[stage]:
            sent = expected.setdefault(row.dimension, [Fraction(0)] * parallelism.world)
            sent[rank] += row.wire_bytes
    assert set(expected) == set(matrix.pairs)
    for dimension, sent in expected.items():
        array = matrix.array(dimension)
        np.testing.assert_allclose(array.sum(axis=1), np.array(sent, dtype=np.float64), rtol=1e-12)
        if dimension != "pp":
            np.testing.assert_allclose(array.sum(axis=0), array.sum(axis=1), rtol=1e-12)
        assert not np.diag(array).any()
        tokens, expert = GROUPS[dimension]
        inside = np.zeros_like(array, dtype=bool)
        for group in parallelism.groups(tokens, expert=expert):
            inside[np.ix_(group, group)] = True
        assert not array[~inside].any()
    if matrix.pairs:
        np.testing.assert_allclose(
            matrix.array(), sum(matrix.array(each) for each in matrix.pairs), rtol=1e-12
        )


def test_the_wire_is_what_templates_send() -> None:
    for kind, algorithm in (
        ("all_reduce", "ring"),
        ("all_gather", "ring"),
        ("reduce_scatter", "ring"),
        ("all_to_all", "direct"),
    ):
        collective = Collective(kind=kind, n_ranks=8, size_bytes=8192, algorithm=algorithm)
        template = collective.template()
        sent = np.bincount(template.source, weights=template.transfer_bytes(8192), minlength=8)
        assert set(sent.tolist()) == {float(wire_bytes(kind, 8192, n_ranks=8))}, kind


def test_rows_of_servers_and_places() -> None:
    job = gpt3(batch=16)
    matrix = communication_matrix(job)
    assert matrix.n_ranks == 1024
    servers = matrix.array("tp", per=8)
    assert servers.shape == (128, 128)
    assert np.count_nonzero(servers) == 128
    assert servers.sum() == pytest.approx(matrix.total_bytes("tp"))
    torn = matrix.array("tp", per=8, place=place_ranks(job.parallelism, servers=128, how="rail"))
    assert not np.diag(torn).any()
    assert torn.sum() == pytest.approx(servers.sum())
    for wrong in ({"dimension": "ep"}, {"per": 0}, {"place": [0]}):
        with pytest.raises(SpecError):
            matrix.array(**wrong)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="per"):
        matrix.array(place=np.arange(1024) * 100)
    with pytest.raises(SpecError, match="collectives"):
        communication_matrix(job, collectives="tree")  # type: ignore[arg-type]


def test_every_dimension_has_a_name() -> None:
    assert set(NAMES) == set(GROUPS)


def test_a_picture_loses_no_entry() -> None:
    from fabric.plot import matrices, matrix

    sent = np.zeros((1000, 1000))
    sent[0, 999], sent[501, 3] = 10.0, 1000.0
    axes = matrix(sent, of="server", name="far")
    (image,) = axes.get_images()
    drawn = np.ma.asarray(image.get_array())
    assert sorted(drawn.compressed().tolist()) == [10.0, 1000.0]
    assert drawn[0, -1] == 10.0
    assert tuple(image.get_extent()) == (-0.5, 999.5, 999.5, -0.5)
    assert axes.get_xlabel() == "Receiving server"
    both = matrices({"a": sent, "b": sent / 1000, "c": sent, "d": sent * 0}, title="t", note="n")
    assert [each.get_title(loc="left") for each in both] == ["a", "b", "c", "d"]
    norms = {each.get_images()[0].norm.vmin for each in both}
    assert norms == {0.01}
    for wrong in ({}, {"a": np.ones((2, 3))}, {"a": -np.ones((2, 2))}):
        with pytest.raises(SpecError, match="matrix"):
            matrices(wrong)


# Files.

JOB = """
name = "small"
sequence = 1024
global_batch = 8
model = {layers = 4, hidden = 64, ffn = 128, heads = 4, vocabulary = 100}
parallelism = {tp = 2, dp = 2, pp = 2}
"""


def test_a_job_is_read_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from fabric.cli import main

    file = tmp_path / "job.toml"
    file.write_text(JOB)
    assert load_job(file).shape.layers == 4
    picture, array = tmp_path / "m.png", tmp_path / "m.npz"
    assert main(["matrix", str(file), "--out", str(picture), "--array", str(array)]) == 0
    printed = capsys.readouterr().out
    for word in ("small", "tp", "dp", "pp", "2 ranks", str(picture)):
        assert word in printed
    assert picture.read_bytes().startswith(b"\x89PNG")
    with np.load(array) as saved:
        matrix = communication_matrix(load_job(file))
        assert sorted(saved.files) == sorted(matrix.pairs)
        np.testing.assert_array_equal(saved["dp"], matrix.array("dp"))


@pytest.mark.parametrize("per", ["0", "-4"])
def test_rows_of_no_ranks_are_refused_by_the_flag(
    per: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fabric.cli import main

    file = tmp_path / "job.toml"
    file.write_text(JOB)
    assert main(["matrix", str(file), "--per", per, "--out", str(tmp_path / "m.png")]) == 2
    assert capsys.readouterr().err == f"fabric: error: --per: {per} is not allowed; expected at least 1\n"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "model"),
        ("model", "TOML"),
        (JOB.replace("tp = 2", "tp = 3"), "heads"),
        (JOB + "colour = 1", "colour"),
        (JOB.replace("heads = 4", "heads = 0"), "heads"),
        (None, "read"),
    ],
)
def test_jobs_that_cannot_be_read(
    tmp_path: Path, text: str | None, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from fabric.cli import main

    file = tmp_path / "job.toml"
    if text is not None:
        file.write_text(text)
    assert main(["matrix", str(file), "--out", str(tmp_path / "m.png")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(file) in line
    assert word in line
    assert not (tmp_path / "m.png").exists()
