"""What a reader hands over: tables in the order of the file, before events are sorted, nested and numbered."""

from __future__ import annotations

from dataclasses import field

import polars as pl

from stepscope.lazy import dataclass
from stepscope.trace.problems import Problems
from stepscope.trace.schema import EVENT_REFERENCES
from stepscope.trace.trace import TraceInfo


def _no_rows() -> pl.DataFrame:
    return pl.DataFrame()


@dataclass
class Draft:
    """A trace in the making. Columns that name an event hold its row number in `events`.

    `events` has the columns track, name, kind, source_category, start_ns, dur_ns, and optionally role and step; `finish`
    sorts it, fills id, parent, depth, role and step, and translates every row number. Other tables may leave
    out columns of their schema. `flows` are links whose ends are known by track and time alone: from_track, from_ns,
    to_track, to_ns, why; each end becomes the innermost event there, or the next one where `to_next` is set. `cold` frames have an `event` column and any others, or a `json` column.
    """

    info: TraceInfo
    events: pl.DataFrame
    tracks: pl.DataFrame
    links: pl.DataFrame = field(default_factory=_no_rows)
    flows: pl.DataFrame = field(default_factory=_no_rows)
    ops: pl.DataFrame = field(default_factory=_no_rows)
    kernels: pl.DataFrame = field(default_factory=_no_rows)
    copies: pl.DataFrame = field(default_factory=_no_rows)
    memory: pl.DataFrame = field(default_factory=_no_rows)
    blocks: pl.DataFrame = field(default_factory=_no_rows)
    frames: pl.DataFrame = field(default_factory=_no_rows)
    collectives: pl.DataFrame = field(default_factory=_no_rows)
    counters: pl.DataFrame = field(default_factory=_no_rows)
    modules: pl.DataFrame = field(default_factory=_no_rows)
    cold: dict[str, pl.DataFrame] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)

    def referring(self) -> dict[str, pl.DataFrame]:
        """The tables that name events."""
        return {name: getattr(self, name) for name in EVENT_REFERENCES}
