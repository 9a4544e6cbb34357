"""JSON text as Polars expressions, so that millions of events are written without a Python object for each."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

_ESCAPES = {"\\": "\\\\", '"': '\\"', **{chr(code): f"\\u{code:04x}" for code in (*range(32), 127)}}
_SEARCHED, _WRITTEN = list(_ESCAPES), list(_ESCAPES.values())


def quoted(value: pl.Expr) -> pl.Expr:
    """The text as a JSON string."""
    escaped = value.cast(pl.String).str.replace_many(_SEARCHED, _WRITTEN)
    return pl.concat_str(pl.lit('"'), escaped, pl.lit('"'))


def microseconds(ns: pl.Expr) -> pl.Expr:
    """Nanoseconds as µs with all three decimals, exact at any size."""
    sign = pl.when(ns < 0).then(pl.lit("-")).otherwise(pl.lit(""))
    whole, rest = (ns.abs() // 1000).cast(pl.String), (ns.abs() % 1000).cast(pl.String).str.zfill(3)
    return pl.concat_str(sign, whole, pl.lit("."), rest)


def value_of(column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """The column's values as JSON; null stays null."""
    if dtype.is_integer() or dtype == pl.Boolean:
        return column.cast(pl.String)
    if dtype.is_float():
        text = column.cast(pl.String)
        # JSON has no infinities, and parsers disagree on what to do with them.
        return pl.when(column.is_finite()).then(text).otherwise(pl.concat_str(pl.lit('"'), text, pl.lit('"')))
    if dtype == pl.Binary:
        return quoted(column.bin.encode("base64"))
    if isinstance(dtype, pl.Array):
        return value_of(column.arr.to_list(), pl.List(dtype.inner))
    if isinstance(dtype, pl.List | pl.Struct):
        wrapped = pl.struct(column.alias("v")).struct.json_encode()
        return pl.when(column.is_not_null()).then(wrapped.str.strip_prefix('{"v":').str.head(-1))
    return quoted(column)


def members(columns: Mapping[str, pl.DataType]) -> pl.Expr:
    """`,"name":value` for every column that is not null, one after another."""
    pieces = [
        pl.concat_str(pl.lit(f",{_key(name)}:"), value_of(pl.col(name), dtype))
        for name, dtype in columns.items()
    ]
    return pl.concat_str(pieces, ignore_nulls=True) if pieces else pl.lit("")


def row_object(columns: Mapping[str, pl.DataType]) -> pl.Expr:
    """The row as a JSON object without its nulls."""
    return pl.concat_str(pl.lit("{"), members(columns).str.strip_prefix(","), pl.lit("}"))


def _key(name: str) -> str:
    return str(pl.select(quoted(pl.lit(name))).item())
