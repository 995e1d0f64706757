"""Results on disk: saved whole or not at all, loaded as they were."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support_results import INCAST

from fabric.errors import FabricError
from fabric.io import directory as directory_io
from fabric.result import Result
from fabric.scenario import load_scenario


class TestSaving:
    def test_a_loaded_result_is_the_saved_one(self, incast: Result, tmp_path: Path) -> None:
        incast.save(tmp_path / "deep" / "run")
        loaded = Result.load(tmp_path / "deep" / "run")
        assert str(loaded) == str(incast)
        assert loaded.provenance == incast.provenance
        assert loaded.fingerprint == incast.fingerprint
        assert loaded.recorded == incast.recorded
        for name, table in incast.tables.items():
            other = loaded.tables[name]
            assert (other.columns, other.optional, other.name) == (table.columns, table.optional, table.name)
            for column in table.columns:
                np.testing.assert_array_equal(other[column], table[column], err_msg=f"{name}.{column}")
                assert other[column].dtype == table[column].dtype

    def test_the_scenario_is_saved_whole(self, incast: Result, tmp_path: Path) -> None:
        incast.save(tmp_path / "run")
        assert load_scenario(tmp_path / "run" / "scenario.toml") == INCAST

    def test_files_are_readable_without_fabric(self, incast: Result, tmp_path: Path) -> None:
        incast.save(tmp_path / "run", pictures={"queues.png": b"image"})
        assert sorted(os.listdir(tmp_path / "run")) == [
            "queues.png",
            "scenario.toml",
            "summary.json",
            "tables.npz",
        ]
        meta = json.loads((tmp_path / "run" / "summary.json").read_text())
        assert meta["summary"]["fct_ps"]["max"] == int(incast.flows["fct_ps"].max())
        arrays = np.load(tmp_path / "run" / "tables.npz", allow_pickle=False)
        assert arrays["flows/size_bytes"].tolist() == [100_000] * 4
        assert "flows/fct_ps?" in arrays.files

    @pytest.mark.parametrize("in_one_step", [True, False])
    def test_an_older_result_is_replaced(
        self, incast: Result, tmp_path: Path, in_one_step: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not in_one_step:
            monkeypatch.setattr(directory_io, "_exchange", lambda one, other: False)
        incast.save(tmp_path / "run", pictures={"mine.png": b"old"})
        dataclasses.replace(incast, status="UNTIL").save(tmp_path / "run")
        assert Result.load(tmp_path / "run").status == "UNTIL"
        assert os.listdir(tmp_path) == ["run"]
        assert not (tmp_path / "run" / "mine.png").exists()

    def test_an_empty_directory_is_used(self, incast: Result, tmp_path: Path) -> None:
        (tmp_path / "run").mkdir()
        incast.save(tmp_path / "run")
        assert Result.load(tmp_path / "run").status == "FINISHED"

    @pytest.mark.parametrize("name", ["notes.txt", "photo.png"])
    def test_what_is_not_a_result_is_kept(self, incast: Result, tmp_path: Path, name: str) -> None:
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / name).write_text("mine")
        with pytest.raises(FabricError, match="not a fabric result"):
            incast.save(tmp_path / "other")
        incast.save(tmp_path / "run")
        (tmp_path / "run" / name).write_text("mine")
        with pytest.raises(FabricError, match=name):
            incast.save(tmp_path / "run")
        assert (tmp_path / "run" / name).read_text() == "mine"
        (tmp_path / "file").write_text("mine")
        with pytest.raises(FabricError, match="not a directory"):
            incast.save(tmp_path / "file")

    @pytest.mark.parametrize("call", ["fsync", "rename"])
    def test_a_failure_leaves_the_old_result_whole(
        self, incast: Result, tmp_path: Path, call: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        incast.save(tmp_path / "run")
        before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
        monkeypatch.setattr(directory_io, "_exchange", lambda one, other: False)
        original, calls = getattr(os, call), []

        def second_call_fails(*arguments: Any) -> Any:
            calls.append(arguments)
            if len(calls) == 2:
                raise OSError(28, "No space left on device")
            return original(*arguments)

        monkeypatch.setattr(os, call, second_call_fails)
        with pytest.raises(FabricError, match="No space left on device"):
            dataclasses.replace(incast, status="UNTIL").save(tmp_path / "run")
        assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before
        assert os.listdir(tmp_path) == ["run"]

    def test_pictures_are_files_of_the_directory(self, incast: Result, tmp_path: Path) -> None:
        with pytest.raises(FabricError, match="cannot save a picture"):
            incast.save(tmp_path / "run", pictures={"../escape.png": b""})
        assert os.listdir(tmp_path) == []

    def test_damage_is_an_error_that_names_the_directory(self, incast: Result, tmp_path: Path) -> None:
        with pytest.raises(FabricError, match="not a fabric result"):
            Result.load(tmp_path / "nowhere")
        incast.save(tmp_path / "run")
        tables = tmp_path / "run" / "tables.npz"
        content = tables.read_bytes()
        for broken in (content[: len(content) // 2], b"", content.replace(b"flows/", b"FLOWS/")):
            tables.write_bytes(broken)
            with pytest.raises(FabricError, match="run: damaged result"):
                Result.load(tmp_path / "run")
        tables.unlink()
        with pytest.raises(FabricError, match="damaged result"):
            Result.load(tmp_path / "run")

    def test_another_format_is_refused(self, incast: Result, tmp_path: Path) -> None:
        incast.save(tmp_path / "run")
        summary = tmp_path / "run" / "summary.json"
        summary.write_text(summary.read_text().replace("fabric-result-1", "fabric-result-9"))
        with pytest.raises(FabricError, match="'fabric-result-9', expected 'fabric-result-1'"):
            Result.load(tmp_path / "run")
