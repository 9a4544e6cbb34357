"""The filter over a table: words that must occur, and comparisons such as `dur_ns>2ms` or `name:gemm`."""

from __future__ import annotations

import re
from functools import reduce
from math import isfinite, nan

import polars as pl

from stepscope.server.http.request import BadRequest

MOST_WORDS = 20
_COMPARISON = re.compile(r"(?P<column>\w+)(?P<sign>>=|<=|!=|>|<|=|:)(?P<value>.*)", re.DOTALL)
_WORDS = re.compile(r'(?:[^\s"]|"[^"]*")+')
_NUMBER = re.compile(
    r"(?P<figure>[+-]?[0-9.]{1,30}(?:e[+-]?[0-9]{1,3})?)\s*(?P<unit>[a-zµ%]*)", re.IGNORECASE
)
_UNITS = {
    "": 1, "ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "%": 0.01,
    "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2**10, "mib": 2**20, "gib": 2**30, "k": 1e3, "m": 1e6, "g": 1e9,
}  # fmt: skip


def keeps(frame: pl.DataFrame, text: str) -> pl.Series | None:
    """Which rows the filter lets through; None for all. All its words must hold, in quotes they may have spaces."""
    words = _WORDS.findall(text)
    if len(words) > MOST_WORDS:
        raise BadRequest(f"The filter has more than {MOST_WORDS} words.", where="filter")
    masks = [_mask(frame, word) for word in words]
    return reduce(lambda one, other: one & other, masks) if masks else None


def _mask(frame: pl.DataFrame, word: str) -> pl.Series:
    found = _COMPARISON.fullmatch(word)
    if found is not None and found["column"] in frame.columns:
        return _compared(frame[found["column"]], found["sign"], found["value"].replace('"', ""))
    sought = word.replace('"', "")
    masks = [_contains(frame[name], sought) for name, dtype in frame.schema.items() if _is_text(dtype)]
    nothing = pl.repeat(False, len(frame), dtype=pl.Boolean, eager=True)
    return reduce(lambda one, other: one | other, masks, nothing)


def _compared(column: pl.Series, sign: str, value: str) -> pl.Series:
    if _is_text(column.dtype):
        if sign in (":", "="):
            return _contains(column, value) if sign == ":" else _equals(column, value)
        if sign == "!=":
            return ~_equals(column, value)
        raise BadRequest(f"{column.name} is text: use : or = with it.", where="filter")
    if column.dtype == pl.Boolean:
        return (column == (value.lower() in ("true", "yes", "1"))).fill_null(sign == "!=")
    if not column.dtype.is_numeric():
        raise BadRequest(f"{column.name} cannot be compared.", where="filter")
    return _by_number(column, sign, _number(value)).fill_null(False)


def _by_number(column: pl.Series, sign: str, value: float) -> pl.Series:
    whole = int(value) if value.is_integer() and abs(value) < 2**63 else None
    # A whole number stays one: ids and addresses are larger than what a float holds exactly.
    if whole is not None and column.dtype.is_integer():
        other: pl.Expr = pl.lit(whole)
    else:
        other = pl.lit(value)
    left = pl.col(column.name)
    ways = {
        ">": left > other,
        "<": left < other,
        ">=": left >= other,
        "<=": left <= other,
        "!=": left != other,
    }
    return column.to_frame().select(ways.get(sign, left == other)).to_series()


def _number(text: str) -> float:
    found = _NUMBER.fullmatch(text.strip())
    try:
        value = float(found["figure"]) * _UNITS[found["unit"].lower()] if found is not None else nan
    except (ValueError, KeyError):
        value = nan
    if not isfinite(value):
        raise BadRequest(f"{text[:40]!r} is not a number.", where="filter")
    return value


def _is_text(dtype: pl.DataType) -> bool:
    return isinstance(dtype, pl.String | pl.Categorical | pl.Enum)


def _contains(column: pl.Series, sought: str) -> pl.Series:
    """Without regard to case. Names repeat: each is looked at once."""
    if isinstance(column.dtype, pl.String):
        return column.str.to_lowercase().str.contains(sought.lower(), literal=True).fill_null(False)
    known = column.unique().drop_nulls()
    fitting = known.filter(_contains(known.cast(pl.String), sought))
    return column.is_in(fitting.implode()).fill_null(False)


def _equals(column: pl.Series, value: str) -> pl.Series:
    if isinstance(column.dtype, pl.String):
        return (column == value).fill_null(False)
    known = column.unique().drop_nulls()
    return column.is_in(known.filter(known.cast(pl.String) == value).implode()).fill_null(False)
