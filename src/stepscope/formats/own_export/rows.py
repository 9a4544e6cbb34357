"""Rows of tables that are JSON in our own Chrome export: from text back to typed columns."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from stepscope.trace.schema import TABLES

_rows = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Rows:
    """The rows of one table, gathered piece by piece, each with the event that it belongs to."""

    def __init__(self, table: str) -> None:
        self.columns = {name: dtype for name, dtype in TABLES[table].items() if name != "event"}
        self.bad = 0
        self._pieces: list[pl.DataFrame] = []

    def add(self, events: list[int | None], texts: list[bytes]) -> None:
        """The value under the table's name in the arguments of each of these events: a row, or an array of them."""
        flat_events: list[int | None] = []
        flat_texts: list[str] = []
        for event, text in zip(events, texts, strict=True):
            for row in self._split(text):
                flat_events.append(event)
                flat_texts.append(bytes(row).decode(errors="replace"))
        if flat_texts:
            self._pieces.append(self._decoded(pl.Series(flat_events, dtype=pl.UInt32), pl.Series(flat_texts)))

    def _split(self, text: bytes) -> Sequence[bytes | msgspec.Raw]:
        if text[:1] != b"[":
            return (text,)
        try:
            return _rows(text)
        except msgspec.MsgspecError:
            self.bad += 1
            return ()

    def frame(self) -> pl.DataFrame:
        """All rows: event, and the table's other columns."""
        if not self._pieces:
            return pl.DataFrame(schema={"event": pl.UInt32, **self.columns})
        return pl.concat(self._pieces)

    def _decoded(self, events: pl.Series, texts: pl.Series) -> pl.DataFrame:
        written = pl.Struct({name: _written_type(dtype) for name, dtype in self.columns.items()})
        try:
            values = texts.str.json_decode(written)
        except pl.exceptions.PolarsError:
            good = [_fits(text, written) for text in texts]
            self.bad += good.count(False)
            events, texts = events.filter(pl.Series(good)), texts.filter(pl.Series(good))
            values = texts.str.json_decode(written)
        columns = values.struct.unnest().select(
            _read_back(name, dtype) for name, dtype in self.columns.items()
        )
        return columns.select(events.alias("event"), pl.all())


def _fits(text: str, written: pl.Struct) -> bool:
    try:
        pl.Series([text]).str.json_decode(written)
    except pl.exceptions.PolarsError:
        return False
    return True


def _written_type(dtype: pl.DataType | type[pl.DataType]) -> pl.DataType:
    """How the export writes such a column. Numbers may be texts there: JSON has no infinities."""
    kind = dtype() if isinstance(dtype, type) else dtype
    if isinstance(kind, pl.Array):
        return pl.List(kind.inner)
    return kind if kind.is_integer() else pl.String()


def _read_back(name: str, dtype: pl.DataType | type[pl.DataType]) -> pl.Expr:
    column = pl.col(name)
    if isinstance(dtype, pl.Array):
        size = dtype.size
        return pl.when(column.list.len() == size).then(column).list.to_array(size).alias(name)
    if dtype == pl.Binary:
        return column.str.decode("base64", strict=False)
    return column.cast(dtype, strict=False)
