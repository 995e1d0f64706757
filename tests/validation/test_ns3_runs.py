"""Every published run of the HPCC group's ns-3 simulator meets its grade: see `ns3_runs.py`.

The runs are looked for as other foreign files are (FABRIC_FOREIGN_FILES, or `shared` beside the
repository); without them these tests are skipped. Some of their numbers are part of the project:
`tests/test_oracle_ns3*.py`. The readable engine takes a minute for many of them, so that here it does
a few of each kind; all with FABRIC_ALL_RUNS=1.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ns3_runs import grade, read_index

ROOT = Path(os.environ.get("FABRIC_FOREIGN_FILES", Path(__file__).resolve().parents[3] / "shared"))
RUNS = ROOT / "reference" / "ns3"
ROWS = read_index(RUNS) if RUNS.is_dir() else []
QUICK = (
    "S1_ls_hpcc_10000",
    "S2_incast8_none_buf4",
    "S3_incast2_hpcc_buf4",
    "S3_incast8_hpcc_buf4",
    "S3_incast8_timely_buf4",
    "S6_victim_none_buf4",
    "S8_a2a16_ls_hpcc",
    "S9_step_incast8_dcqcn_paper_buf4",
    "T3_trace_incast2_none_buf1_400KB",
)

pytestmark = pytest.mark.skipif(not ROWS, reason="no runs of the simulator here")


def name_of(row: dict[str, str]) -> str:
    return row["scenario"]


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_native(row: dict[str, str]) -> None:
    assert not grade(RUNS, row, engine="native").wrong


@pytest.mark.parametrize("row", [row for row in ROWS if row["tol_reference_order"] == "exact"], ids=name_of)
def test_readable_in_the_order_of_ns3(row: dict[str, str]) -> None:
    if row["scenario"] not in QUICK and not os.environ.get("FABRIC_ALL_RUNS"):
        pytest.skip("one of many; FABRIC_ALL_RUNS=1 runs all")
    assert not grade(RUNS, row, engine="reference").wrong
