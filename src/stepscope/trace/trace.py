"""One rank's profile as columnar tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import msgspec
import polars as pl

from stepscope.lazy import dataclass
from stepscope.safe import readable
from stepscope.trace.json_text import plain, repaired_json
from stepscope.trace.schema import TABLES, conform

_JSON_COLUMNS = ("devices", "versions", "capture_options", "capture")


@dataclass
class TraceInfo:
    """What is known of a trace as a whole. Unknown stays None: nothing here is required."""

    path: str = ""
    format: str = ""
    framework: str | None = None
    rank: int | None = None
    world_size: int | None = None
    host: str | None = None
    base_unix_ns: int = 0
    clock_offset_ns: int = 0
    clock_drift: float = 0.0
    devices: list[dict[str, Any]] = field(default_factory=list)
    versions: dict[str, Any] = field(default_factory=dict)
    capture_options: dict[str, Any] = field(default_factory=dict)
    # What stepscope's own capture noted beside the file, see docs/capture/sidecar.md; empty for other recorders.
    capture: dict[str, Any] = field(default_factory=dict)

    def frame(self) -> pl.DataFrame:
        """The `traces` table: one row."""
        row = {name: getattr(self, name) for name in TABLES["traces"]}
        row["path"] = readable(self.path)
        for name in _JSON_COLUMNS:
            row[name] = _as_json(row[name])
        return pl.DataFrame([row], schema=TABLES["traces"])

    @classmethod
    def from_frame(cls, frame: pl.DataFrame) -> TraceInfo:
        """The inverse of frame()."""
        row = frame.row(0, named=True)
        for name in _JSON_COLUMNS:
            row[name] = msgspec.json.decode(row[name])
        return cls(**row)


def _as_json(value: Any) -> str:
    """Headers hold anything: what has no JSON of its own is brought into a form that has."""
    try:
        return msgspec.json.encode(value).decode()
    except (OverflowError, RecursionError, TypeError, ValueError):
        return msgspec.json.encode(plain(value)).decode()


class Trace:
    """The tables of one trace, by name and as attributes; see `stepscope.trace.schema` for their columns."""

    def __init__(
        self, tables: Mapping[str, pl.DataFrame], cold: Mapping[str, pl.DataFrame] | None = None
    ) -> None:
        self.tables: Mapping[str, pl.DataFrame] = {
            name: conform(name, tables[name]) if name in tables else conform(name, pl.DataFrame())
            for name in TABLES
        }
        # Arguments that are not columns, by event; each frame has an `event` column and any others.
        self.cold: Mapping[str, pl.DataFrame] = dict(cold or {})

    @classmethod
    def over(cls, tables: Mapping[str, pl.DataFrame], cold: Mapping[str, pl.DataFrame]) -> Trace:
        """A trace over tables that already have their schemas and may be read only when they are asked for."""
        trace = cls.__new__(cls)
        trace.tables = tables
        trace.cold = cold
        return trace

    def __getattr__(self, name: str) -> pl.DataFrame:
        if name in TABLES:
            return self.tables[name]
        raise AttributeError(name)

    @property
    def info(self) -> TraceInfo:
        """What is known of the trace as a whole."""
        return TraceInfo.from_frame(self.tables["traces"])

    def arguments(self, event: int) -> dict[str, Any]:
        """Everything the file said of one event beyond the columns of the tables."""
        found: dict[str, Any] = {}
        for frame in self.cold.values():
            for row in frame.filter(pl.col("event") == event).iter_rows(named=True):
                text = row.pop("json", None)
                if "key" in row:  # one argument a row, instead of one column for each
                    row = {row["key"]: row["value"]}
                found.update(
                    {name: value for name, value in row.items() if name != "event" and value is not None}
                )
                found.update(_members(text) if text is not None else {})
        return found


def _members(text: bytes | str) -> dict[str, Any]:
    """The members of a JSON object; what is none is kept as a whole, as text where it cannot be read."""
    raw = text.encode() if isinstance(text, str) else text
    values = repaired_json(raw)
    if isinstance(values, dict):
        return values
    return {"args": raw.decode(errors="replace") if values is None else values}
