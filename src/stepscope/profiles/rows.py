"""Rows in forms that files and terminals can take: nested and binary values as text."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

import polars as pl

from stepscope.errors import StepscopeError
from stepscope.safe import FORMULA_STARTS, safe_cell

ROWS_PER_PIECE = 1 << 16
_FORMULA = f"^[{re.escape(FORMULA_STARTS)}]"
_TEXT = (pl.String, pl.Categorical, pl.Enum)


def as_texts(frame: pl.DataFrame) -> pl.DataFrame:
    """For eyes: binary values become their size, nested ones JSON."""
    return frame.select(
        pl.format("{} bytes", pl.col(name).bin.size()) if dtype == pl.Binary else _plain(name, dtype)
        for name, dtype in frame.schema.items()
    )


def as_plain(frame: pl.DataFrame) -> pl.DataFrame:
    """For CSV, which has neither nested nor binary values: JSON and base64 instead."""
    return frame.select(_plain(name, dtype) for name, dtype in frame.schema.items())


def csv_header(frame: pl.DataFrame, *, raw: bool = False) -> str:
    """The first line of a CSV file: names of columns may come out of a query."""
    target = io.StringIO()
    csv.writer(target, lineterminator="\n").writerow(
        name if raw else safe_cell(name) for name in frame.columns
    )
    return target.getvalue()


def csv_rows(frame: pl.DataFrame, *, raw: bool = False) -> str:
    """The rows of a CSV file. Text that a spreadsheet would run is made harmless unless `raw`; figures are what they are."""
    plain = as_plain(frame)
    if not raw:
        texts = [name for name, dtype in frame.schema.items() if isinstance(dtype, _TEXT)]
        plain = plain.with_columns(_without_formulas(name) for name in texts)
    return plain.write_csv(include_header=False)


def _without_formulas(name: str) -> pl.Expr:
    """As `safe_cell` has it, for a whole column."""
    text = pl.col(name).cast(pl.String)
    return (
        pl.when(text.str.contains(_FORMULA))
        .then(pl.concat_str(pl.lit("'"), text))
        .otherwise(text)
        .alias(name)
    )


def _plain(name: str, dtype: pl.DataType) -> pl.Expr:
    column = pl.col(name)
    if dtype == pl.Binary:
        return column.bin.encode("base64")
    if dtype == pl.Duration:
        return column.dt.to_string("iso")
    if isinstance(dtype, pl.List | pl.Array | pl.Struct):
        _refuse_hidden_bytes(name, dtype)
        wrapped = pl.struct(column.alias("v")).struct.json_encode()
        return pl.when(column.is_not_null()).then(wrapped.str.strip_prefix('{"v":').str.head(-1)).alias(name)
    return column


def _refuse_hidden_bytes(name: str, dtype: pl.DataType) -> None:
    if "Binary" in repr(dtype):
        raise StepscopeError(
            f"Column {name} has binary values inside lists, which only Parquet can hold.",
            fix="Add --format parquet -o FILE, or unnest the column.",
        )


def json_lines(frame: pl.DataFrame) -> Iterator[str]:
    """A JSON array of objects, one row a line. Undefined numbers become null."""
    for name, dtype in frame.schema.items():
        if dtype != pl.Binary:
            _refuse_hidden_bytes(name, dtype)
    encodable = frame.select(
        pl.col(name).bin.encode("base64") if dtype == pl.Binary else pl.col(name)
        for name, dtype in frame.schema.items()
    )
    yield "["
    for number, piece in enumerate(encodable.iter_slices(ROWS_PER_PIECE) if len(frame) else ()):
        lines = piece.select(pl.struct(pl.all()).struct.json_encode()).to_series()
        yield ("," if number else "") + "\n" + str(lines.str.join(",\n").item())
    yield "\n]\n"
