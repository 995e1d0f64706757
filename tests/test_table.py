"""Tables of results: what they hold, how they convert, how their numbers are written."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from fabric.io.optional import MissingDependencyError
from fabric.result import Category, Table
from fabric.result.text import by_unit, count_text, percent_text, time_text


def flow_table() -> Table:
    return Table(
        {
            "flow": np.arange(3),
            "source": Category(np.array([0, 1, 0]), np.array(["host0", "host1"])),
            "fct_ps": np.array([2_000_000, -1, 1_000_000]),
            "slowdown": [2.0, np.nan, 1.0],
            "name": np.array(["a", "b<i>", "c"]),
        },
        name="flows",
        optional=("fct_ps",),
    )


class TestTable:
    def test_columns_are_arrays_in_order_and_read_only(self) -> None:
        table = flow_table()
        assert len(table) == 3
        assert table.columns == ("flow", "source", "fct_ps", "slowdown", "name")
        assert table["source"].tolist() == ["host0", "host1", "host0"]
        with pytest.raises(ValueError, match="read-only"):
            table["fct_ps"][0] = 5

    def test_an_unknown_column_lists_those_that_there_are(self) -> None:
        with pytest.raises(KeyError, match="'fct'; it has flow, source, fct_ps"):
            flow_table()["fct"]

    def test_columns_must_have_one_length(self) -> None:
        with pytest.raises(ValueError, match="differ in length"):
            Table({"a": [1, 2], "b": [1]})

    def test_rows_are_chosen_by_mask_slice_and_condition(self) -> None:
        table = flow_table()
        assert table[table["fct_ps"] > 0]["flow"].tolist() == [0, 2]
        assert table[1:]["name"].tolist() == ["b<i>", "c"]
        assert table.where(source="host0")["flow"].tolist() == [0, 2]
        assert table.where(source="host*", flow=1)["flow"].tolist() == [1]
        assert table.where(name="[ab]*")["flow"].tolist() == [0, 1]
        assert table[1:].optional == table.optional

    def test_sorting_is_stable_and_puts_nan_last(self) -> None:
        assert flow_table().sort("slowdown")["flow"].tolist() == [2, 0, 1]
        assert flow_table().sort("slowdown", descending=True)["flow"].tolist() == [0, 2, 1]
        assert flow_table().sort("name", descending=True)["name"].tolist() == ["c", "b<i>", "a"]
        ties = Table({"a": [1, 1, 0], "b": [7, 8, 9]})
        assert ties.sort("a")["b"].tolist() == [9, 7, 8]
        assert ties.sort("a", descending=True)["b"].tolist() == [7, 8, 9]
        large = Table({"a": np.array([2**62, 2**62 + 1])})
        assert large.sort("a", descending=True)["a"].tolist() == [2**62 + 1, 2**62]

    def test_a_number_chooses_a_row(self) -> None:
        table = flow_table()
        assert table[0] == next(iter(table))
        assert table[-1]["name"] == table[np.int64(2)]["name"] == "c"
        assert table[[2, 0]]["name"].tolist() == ["c", "a"]
        with pytest.raises(IndexError, match="'flows' has no row 3; it has 3 rows"):
            table[3]
        with pytest.raises(TypeError, match=r"cannot be indexed by 1\.5; expected a column's name, a row"):
            table[1.5]  # type: ignore[call-overload]

    def test_rows_as_dictionaries(self) -> None:
        assert next(iter(flow_table())) == {
            "flow": 0,
            "source": "host0",
            "fct_ps": 2_000_000,
            "slowdown": 2.0,
            "name": "a",
        }

    def test_prints_names_and_quantities(self) -> None:
        lines = repr(flow_table()).split("\n")
        assert lines[0] == "flows: 3 rows"
        assert lines[1].split() == ["flow", "source", "fct_ps", "slowdown", "name"]
        assert lines[2].split() == ["0", "host0", "2us", "2", "a"]
        assert lines[3].split() == ["1", "host1", "-", "-", "b<i>"]

    def test_prints_the_ends_of_long_tables(self) -> None:
        lines = repr(Table({"n": np.arange(1000)})).split("\n")
        assert [line.strip() for line in lines[2:]] == [*"01234", "...", *map(str, range(995, 1000))]

    def test_an_empty_table_prints(self) -> None:
        assert repr(Table({})) == "table: 0 rows"
        assert repr(Table({"a": np.array([], np.int64)})) == "table: 0 rows\na"

    def test_html_is_escaped(self) -> None:
        html = flow_table()._repr_html_()
        assert "<td" in html
        assert "b&lt;i&gt;" in html
        assert "<i>" not in html


class TestConversion:
    def test_pandas_has_missing_values_and_categories(self) -> None:
        pandas = pytest.importorskip("pandas")
        frame = flow_table().to_pandas()
        assert list(frame.columns) == list(flow_table().columns)
        assert frame["fct_ps"].dtype == "Int64"
        assert frame["fct_ps"].isna().tolist() == [False, True, False]
        assert frame["fct_ps"].mean() == 1_500_000
        assert isinstance(frame["source"].dtype, pandas.CategoricalDtype)
        assert frame["source"].tolist() == ["host0", "host1", "host0"]

    def test_pandas_takes_labels_that_are_equal(self) -> None:
        pytest.importorskip("pandas")
        table = Table({"port": Category(np.array([0, 1, 2]), np.array(["a", "b", "a"]))})
        assert table.to_pandas()["port"].tolist() == ["a", "b", "a"]

    def test_arrow_has_nulls_and_dictionaries(self) -> None:
        arrow = pytest.importorskip("pyarrow")
        table = flow_table().to_arrow()
        assert table["fct_ps"].to_pylist() == [2_000_000, None, 1_000_000]
        assert table["source"].to_pylist() == ["host0", "host1", "host0"]
        assert arrow.types.is_dictionary(table["source"].type)
        assert table["name"].to_pylist() == ["a", "b<i>", "c"]

    def test_arrow_readers_take_the_table_itself(self) -> None:
        arrow = pytest.importorskip("pyarrow")
        stream = arrow.RecordBatchReader.from_stream(flow_table())
        assert stream.read_all()["flow"].to_pylist() == [0, 1, 2]

    @pytest.mark.parametrize(
        ("module", "method", "extra"), [("pandas", "to_pandas", "pandas"), ("pyarrow", "to_arrow", "arrow")]
    )
    def test_a_missing_package_names_the_extra(
        self, module: str, method: str, extra: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(MissingDependencyError) as caught:
            getattr(flow_table(), method)()
        assert f"pip install 'fabric-emulator[{extra}]'" in str(caught.value)
        assert isinstance(caught.value, ImportError)


class TestText:
    def test_quantities_are_short(self) -> None:
        assert time_text(83_123_456) == "83.12us"
        assert time_text(-1) == "-"
        assert count_text(999_999) == "999,999"
        assert count_text(12_300_000) == "12.3 million"
        assert count_text(2_500_000_000) == "2.5 billion"
        assert percent_text(0.3141) == "31.4 %"

    def test_the_unit_comes_from_the_name_of_the_column(self) -> None:
        assert by_unit("size_bytes", 1_500) == "1.5KB"
        assert by_unit("rate_bps", 400e9) == "400Gbps"
        assert by_unit("utilisation", 0.5) == "50 %"
        assert by_unit("lossless", True) == "yes"
        assert by_unit("sequence", 2**63) == str(2**63)
