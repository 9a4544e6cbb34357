"""Rows in forms that files and terminals can take: nested and binary values as text."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.errors import StepscopeError

ROWS_PER_PIECE = 1 << 16


def as_texts(frame: pl.DataFrame) -> pl.DataFrame:
    """For eyes: binary values become their size, nested ones JSON."""
    return frame.select(
        pl.format("{} bytes", pl.col(name).bin.size()) if dtype == pl.Binary else _plain(name, dtype)
        for name, dtype in frame.schema.items()
    )


def as_plain(frame: pl.DataFrame) -> pl.DataFrame:
    """For CSV, which has neither nested nor binary values: JSON and base64 instead."""
    return frame.select(_plain(name, dtype) for name, dtype in frame.schema.items())


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
