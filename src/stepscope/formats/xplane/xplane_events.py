"""All that is known of the decoded events while their tables are made."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import polars as pl

from stepscope.formats.xplane.stats import Stats
from stepscope.trace.schema import Text


@dataclass
class Events:
    """`name_rows` has the row of each event's name in `names` (row, name, raw); the class of each line is by track."""

    names: pl.DataFrame
    name_rows: pl.Series
    tracks: pl.DataFrame
    line_classes: list[int]
    stats: Stats
    name_stats: Stats

    def texts(self, *keys: str) -> pl.DataFrame:
        """Event and value of a stat, be it the event's own or one of its name."""
        return self._both(self.stats.texts_of(*keys), self.name_stats.texts_of(*keys))

    def numbers(self, *keys: str) -> pl.DataFrame:
        """The same for whole numbers."""
        return self._both(self.stats.numbers(*keys), self.name_stats.numbers(*keys))

    def inherited_json(self) -> pl.DataFrame | None:
        """For the events whose names have stats, those stats: event and json."""
        texts: list[str | None] = [None] * len(self.names)
        for row, stats in self.name_stats.by_owner().items():
            plain = {name: value for name, value in stats.items() if not isinstance(value, bytes)}
            texts[row] = msgspec.json.encode(plain).decode() if plain else None
        if not any(texts):
            return None
        found = pl.DataFrame({"json": pl.Series(texts, dtype=Text).gather(self.name_rows)}).with_row_index(
            "event"
        )
        found = found.drop_nulls()
        return found if len(found) else None

    def _both(self, own: pl.DataFrame, of_names: pl.DataFrame) -> pl.DataFrame:
        own = own.rename({"owner": "event"})
        if of_names.is_empty():
            return own
        by_name = pl.Series([None], dtype=of_names["value"].dtype).extend_constant(None, len(self.names) - 1)
        by_name = by_name.scatter(of_names["owner"], of_names["value"])
        inherited = pl.DataFrame({"value": by_name.gather(self.name_rows)}).with_row_index("event")
        inherited = inherited.filter(
            pl.col("value").is_not_null() & ~pl.col("event").is_in(own["event"].implode())
        )
        return pl.concat([own, inherited.select(own.columns)])
