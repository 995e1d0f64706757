"""Runs of the HPCC group's ns-3 simulator, repeated and graded as `fabric validate` does with any folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from support_reference_runs import RUNS, write_folder

from fabric.cli import main
from fabric.validation import validate

LONG = {
    "S4_two_dctcp": pytest.mark.exhaustive,
    **dict.fromkeys(("S7_ring8_1sw_none", "S8_a2a16_ls_none", "S6_victim_none_buf2"), pytest.mark.slow),
}
"""More than 5 s, or half a minute."""

MARKED = [pytest.param(name, marks=LONG.get(name, ())) for name in RUNS]


@pytest.mark.parametrize("name", MARKED)
def test_a_run_is_repeated_within_its_grade(name: str, tmp_path: Path) -> None:
    report = validate(write_folder(tmp_path, name))
    run, grades = RUNS[name], {row.grade for row in report.rows}
    if "seeds" in run:
        assert grades == {"stat", "-"}
    else:
        assert grades == {"exact", "-"} | (set() if run["exact_under_local_rule"] else {"own order"})
    assert not report.missed, report.text(missed_only=True)


FOREIGN = Path(os.environ.get("FABRIC_FOREIGN_FILES", Path(__file__).resolve().parents[3] / "shared"))
ALL = FOREIGN / "reference" / "ns3"


@pytest.mark.slow
@pytest.mark.skipif(not ALL.is_dir(), reason="the folder of all runs is not here")
def test_all_runs_are_repeated_by_the_native_engine_within_their_grades() -> None:
    """The readable engine takes 30 s for a million frames; with it they are a command: `fabric validate`."""
    report = validate(ALL, readable=False)
    assert not report.missed, report.text(missed_only=True)


CHANGES: dict[str, tuple[str, dict[str, Any], str]] = {
    "a completion 1 ns later": (
        "S2_incast2_none_buf4",
        {"sender_ns": [170_009, 170_091]},
        "flows that are the same",
    ),
    "a frame more": ("S1_1sw_none_1000", {"totals": {"link_transmissions": 5}}, "frames on links"),
    "another size of pool": ("S2_incast2_none_buf4", {"buffer_mib": 3}, "pauses"),
    "a PAUSE elsewhere": (
        "T3_trace_incast2_none_buf1_400KB",
        {
            "pfc": [
                [time, node - 1, kind, port, on]
                for time, node, kind, port, on in RUNS["T3_trace_incast2_none_buf1_400KB"]["pfc"]
            ]
        },
        "PFC frames that are the same",
    ),
    "another peak of headroom": (
        "T3_trace_incast2_none_buf1_400KB",
        {"ports": [[3, 1, 60, 13_624], [3, 2, 60, 14_672], [3, 3, 220_080, 0]]},
        "switch ports with the same peaks",
    ),
    "a mark more": (
        "S9_step_incast2_dcqcn_buf32",
        {"marked": [RUNS["S9_step_incast2_dcqcn_buf32"]["marked"][0] + 1, -1]},
        "flows that are the same",
    ),
    "another congestion control": ("S3_incast2_timely_buf4", {"set": "dctcp"}, "max"),
    "other drawn marks": ("S2_incast8_dcqcn_buf4", {"set": "dcqcn_paper"}, "mean"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_is_not_the_same_is_found(what: str, tmp_path: Path) -> None:
    name, changes, quantity = CHANGES[what]
    report = validate(write_folder(tmp_path, name, changes=changes))
    assert quantity in {row.quantity for row in report.missed}


class TestCommand:
    def test_prints_and_writes_a_table(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        folder = write_folder(tmp_path / "runs", "S1_1sw_none_1000", "T1_trace_1sw_dcqcn_5pkt")
        assert main(["validate", str(folder), "--markdown", str(tmp_path / "table.md")]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].split() == [
            *("scenario", "way", "quantity", "ours", "theirs", "difference", "tolerance", "grade", "met")
        ]
        assert "all quantities, 1 flows one by one" in lines[1]
        assert "native engine" in lines[2]
        assert lines[-1].startswith("2 runs; exact: ")
        text = (tmp_path / "table.md").read_text()
        assert (
            "| S1_1sw_none_1000 | mean | 4.174 us | own semantics | 4.186 us | +0.012 (+0.29 %) |  |  |"
            in text
        )
        assert text.count("| yes |") == 4

    def test_tables_go_between_the_marks_of_a_page(self, tmp_path: Path) -> None:
        folder = write_folder(tmp_path / "runs", "S1_1sw_none_1000")
        page = tmp_path / "page.md"
        begin, end = (f"<!-- fabric validate: {word} -->" for word in ("begin", "end"))
        page.write_text(f"# Head `{begin}` and `{end}`\n{begin}\nold\n{end}\nTail\n")
        for _ in range(2):
            assert main(["validate", str(folder), "--native-only", "--markdown", str(page)]) == 0
        text = page.read_text()
        assert text.startswith(f"# Head `{begin}` and `{end}`\n{begin}\n\n1 runs; exact: ")
        assert text.endswith(f"{end}\nTail\n")
        assert "old" not in text
        assert text.count("### S1") == 1

    def test_a_file_of_its_own_is_written_again(self, tmp_path: Path) -> None:
        folder = write_folder(tmp_path / "runs", "S1_1sw_none_1000")
        page = tmp_path / "new.md"
        for _ in range(2):
            assert main(["validate", str(folder), "--native-only", "--markdown", str(page)]) == 0
            assert page.read_text().count("### S1") == 1

    def test_a_page_without_the_marks_is_kept(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = write_folder(tmp_path / "runs", "S1_1sw_none_1000")
        page = tmp_path / "page.md"
        begin, end = (f"<!-- fabric validate: {word} -->" for word in ("begin", "end"))
        for text in ("# Mine\n", f"# Mine\n{begin}\nand no end\n", f"{end}\n{begin}\n"):
            page.write_text(text)
            assert main(["validate", str(folder), "--markdown", str(page)]) == 2
            assert page.read_text() == text
            printed = capsys.readouterr()
            assert printed.err.startswith(
                f"fabric: error: {page}: has text and not the lines {begin} and {end}"
            )
            assert (printed.err.count("\n"), printed.out) == (1, "")

    def test_the_exit_code_says_that_something_is_outside_its_grade(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = write_folder(tmp_path, "S1_1sw_none_1000", changes={"sender_ns": [4000]})
        assert main(["validate", str(folder), "--quiet"]) == 1
        assert " NO\n" in capsys.readouterr().out

    def test_only_some_runs(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        folder = write_folder(tmp_path, "S1_1sw_none_1000", "T1_trace_1sw_dcqcn_5pkt")
        assert main(["validate", str(folder), "--only", "T*", "--native-only"]) == 0
        printed = capsys.readouterr().out
        assert "1 runs" in printed
        assert "S1_" not in printed

    def test_pictures(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MPLBACKEND", "Agg")
        folder = write_folder(tmp_path / "runs", "S3_incast2_hpcc_buf32", "S2_incast2_none_buf4")
        rates = "2000000000 0 2 10000 100000000000 0\n2000100000 0 2 10000 50000000000 0\n"
        queue = "2000010000 3 3 60000 0\n2000011000 3 3 50000 0\n"
        (folder / "S2_incast2_none_buf4" / "rate.txt").write_text(rates)
        (folder / "S2_incast2_none_buf4" / "qts.txt").write_text(queue)
        assert main(["validate", str(folder), "--pictures", str(tmp_path / "out")]) == 0
        assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
            "S2_incast2_none_buf4-queues.png",
            "S2_incast2_none_buf4-rates.png",
            "S3_incast2_hpcc_buf32-rates.png",
        ]


def test_the_simulators_own_files_are_enough(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, "S2_incast2_none_buf4")
    place = folder / "S2_incast2_none_buf4"
    (place / "rx.txt").unlink()
    (place / "fct.txt").write_text(
        "0b000001 0b000201 10000 100 1000000 2000000000 170008 88000\n"
        "0b000101 0b000201 10000 100 1000000 2000000000 170091 88000\n"
    )
    (folder / "index.csv").write_text("scenario\nS2_incast2_none_buf4\n")
    report = validate(folder)
    assert not report.missed
    assert {row.quantity for row in report.rows if row.grade == "exact"} == {
        *("flows that are the same", "mean", "max")
    }


BAD: dict[str, tuple[str, str | None, str]] = {
    "no index": ("index.csv", None, "index.csv: (missing)"),
    "no header": ("index.csv", "", "index.csv:1: (empty)"),
    "another header": ("index.csv", "name\nx\n", "index.csv:1: name"),
    "no run": ("index.csv", "scenario\n", "no run matches '*' (there are: none at all)"),
    "a run twice": ("index.csv", "scenario\nA\nA\n", "index.csv: 'A'"),
    "a run that is not there": ("index.csv", "scenario\nB\n", "B/config.txt: (missing)"),
    "a run elsewhere": ("index.csv", "scenario\n../A\n", "index.csv:2 scenario: '../A'"),
    "no tolerance": (
        "index.csv",
        "scenario,tol_own_order_mean\nA,much\n",
        "index.csv:2 tol_own_order_mean: 'much'",
    ),
    "no order": (
        "index.csv",
        "scenario,tol_reference_order\nA,5%\n",
        "index.csv:2 tol_reference_order: '5%'",
    ),
    "no number": ("index.csv", "scenario,drops\nA,few\n", "index.csv:2 drops: 'few'"),
    "drawn without seeds": (
        "index.csv",
        "scenario,tol_reference_order\nA,stat\n",
        "A/seeds.txt: (missing)",
    ),
    "no completion times": ("A/rx.txt", None, "A: (no completion times)"),
    "too few words": ("A/rx.txt", "0 0 1 10000\n", "A/rx.txt:1: 0 0 1 10000 is"),
    "flows in disorder": ("A/rx.txt", "# x\n1 0 1 10000 1000 2000000000 1 1 1 1 0\n", "A/rx.txt:2: 1 is"),
    "too many flows": ("A/rx.txt", 2 * "0 0 1 10000 1000 2000000000 1 1 1 1 0\n", "A/rx.txt:2: 0 is"),
    "other flows": ("A/rx.txt", "", "A/rx.txt: 0 flows is not allowed; expected the 1 of flow.txt"),
    "no PFC frame": ("A/pfc.txt", "2000000000 0 0 1 x\n", "A/pfc.txt:1: 2000000000 0 0 1 x is"),
    "no summary": ("A/summary.json", "[]", "A/summary.json"),
    "no goodput": ("A/goodput.txt", "1 2 fast\n", "A/goodput.txt:1: 1 2 fast is"),
    "no seed": ("A/seeds.txt", "1 2 3\n", "A/seeds.txt:1: 3 numbers is"),
    "no configuration": ("A/config.txt", "CC_MODE 99\n", "A/config.txt"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_folder_that_is_none_gives_one_error(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_folder(tmp_path, "S1_1sw_none_1000")
    (tmp_path / "S1_1sw_none_1000").rename(tmp_path / "A")
    (tmp_path / "index.csv").write_text("scenario\nA\n")
    name, content, message = BAD[what]
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(content)
    assert main(["validate", str(tmp_path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert message in printed.err


def test_a_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(tmp_path / "none")]) == 2
    assert "none: (no directory) is not allowed" in capsys.readouterr().err
