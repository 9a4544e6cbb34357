"""Which events have an argument: a column of their tables, or anything else that the file said of them."""

from __future__ import annotations

import re

import polars as pl

from stepscope.server.timeline.query import Argument
from stepscope.trace.trace import Trace

TABLES = ("ops", "kernels", "copies", "collectives", "memory")


def events_with(trace: Trace, argument: Argument) -> pl.Series:
    """Their numbers, ascending, each once."""
    frames = [*(trace.tables[name] for name in TABLES), *trace.cold.values()]
    parts = [_in_frame(frame, argument) for frame in frames if len(frame)]
    found: pl.Series = pl.concat([pl.Series("event", [], dtype=pl.UInt32), *parts]).unique().sort()
    return found


def _in_frame(frame: pl.DataFrame, argument: Argument) -> pl.Series:
    if {"key", "value"} <= set(frame.columns):
        hit = _is_in(frame, "value", argument.value)
        if argument.key is not None:
            hit &= _same(argument.key, pl.col("key").cast(pl.String))
    else:
        hits = [_is_in(frame, name, argument.value) for name in _columns(frame, argument.key)]
        if "json" in frame.columns:
            hits.append(_is_in_json(argument))
        hit = pl.any_horizontal(hits) if hits else pl.lit(False)
    return frame.lazy().filter(hit).select(pl.col("event").cast(pl.UInt32)).collect()["event"].drop_nulls()


def _columns(frame: pl.DataFrame, key: str | None) -> list[str]:
    known = [name for name in frame.columns if name not in ("event", "json")]
    return known if key is None else [name for name in known if name == _plain(key)]


def _plain(key: str) -> str:
    return key.lower().replace(" ", "_")


def _same(key: str, column: pl.Expr) -> pl.Expr:
    return column.str.to_lowercase().str.replace_all(" ", "_", literal=True) == _plain(key)


def _is_in(frame: pl.DataFrame, name: str, value: str) -> pl.Expr:
    """Whether the column's text holds the value; a number must be the same."""
    dtype = frame.schema[name]
    if dtype.is_numeric():
        return (pl.col(name).cast(pl.String) == value).fill_null(False)
    if isinstance(dtype, pl.Array | pl.List):
        text = pl.col(name).cast(pl.List(pl.String)).list.join(" × ")
    else:
        text = pl.col(name).cast(pl.String, strict=False)
    return text.str.contains(f"(?i){re.escape(value)}").fill_null(False)


def _is_in_json(argument: Argument) -> pl.Expr:
    value = re.escape(argument.value)
    if argument.key is not None:
        key = re.escape(argument.key).replace(r"\ ", "[ _]").replace("_", "[ _]")
        simple = rf'"(?:[^"\\]|\\.)*?{value}|[^,"\[{{}}]*?{value}'
        value = rf'"{key}"\s*:\s*(?:{simple}|\[[^{{}}"]*?{value}|\[[^\]{{}}]*?{value})'
    return pl.col("json").cast(pl.String, strict=False).str.contains(f"(?i){value}").fill_null(False)
