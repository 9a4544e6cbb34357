"""Stats of events, of names or of planes: key and value by owner, one table for each type of value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from stepscope.trace.schema import Text


@dataclass
class Stats:
    """`names` has the stat names by key. Integers above the signed range are in `words`."""

    names: list[str]
    ints: pl.DataFrame
    words: pl.DataFrame
    reals: pl.DataFrame
    texts: pl.DataFrame
    blobs: pl.DataFrame

    def __post_init__(self) -> None:
        self._keys: dict[str, list[int]] = {}
        for key, name in enumerate(self.names):
            self._keys.setdefault(name.lower(), []).append(key)

    def has(self, *names: str) -> bool:
        """Whether the file knows any of these stats."""
        return any(name in self._keys for name in names)

    def numbers(self, *names: str) -> pl.DataFrame:
        """Owner and value of the stats with one of these names (in lower case), as int64; the last of an owner counts."""
        return _last(pl.concat([self._of(self.ints, names), self._of(self.words, names).cast({"value": pl.Int64})]))

    def words_of(self, *names: str) -> pl.DataFrame:
        """The same as bits of uint64: for addresses and ids."""
        unsigned = [self._of(self.ints, names).select("owner", pl.col("value").reinterpret(signed=False))]
        return _last(pl.concat([*unsigned, self._of(self.words, names)]))

    def reals_of(self, *names: str) -> pl.DataFrame:
        """The same as doubles, whole numbers included."""
        found = [self._of(self.reals, names), self._of(self.ints, names).cast({"value": pl.Float64})]
        return _last(pl.concat(found))

    def texts_of(self, *names: str) -> pl.DataFrame:
        """The same as text."""
        return _last(self._of(self.texts, names))

    def by_owner(self) -> dict[int, dict[str, Any]]:
        """Everything, as dictionaries: for the few stats of planes and names."""
        found: dict[int, dict[str, Any]] = {}
        for frame in (self.ints, self.words, self.reals, self.texts, self.blobs):
            for owner, key, value in frame.iter_rows():
                found.setdefault(owner, {})[self.names[key]] = value
        return found

    def cold(self) -> dict[str, pl.DataFrame]:
        """The tables with keys as text, for whoever asks for all that is known of an event."""
        text = pl.Series(self.names, dtype=Text)
        tables = {"int": self.ints, "uint": self.words, "real": self.reals, "text": self.texts, "bytes": self.blobs}
        return {
            f"stats_{name}": frame.select(
                pl.col("owner").alias("event"), text.gather(frame["key"]).alias("key"), "value"
            )
            for name, frame in tables.items()
            if len(frame)
        }

    def with_rows(self, rows: list[tuple[int, str, Any]]) -> Stats:
        """The same stats and these: owner, name, and a whole number or text."""
        names = [*self.names, *dict.fromkeys(name for _, name, _ in rows if name not in set(self.names))]
        key_of = {name: key for key, name in enumerate(names)}
        ints = [(owner, key_of[name], value) for owner, name, value in rows if isinstance(value, int)]
        texts = [(owner, key_of[name], value) for owner, name, value in rows if isinstance(value, str)]
        return replace(
            self,
            names=names,
            ints=pl.concat([self.ints, pl.DataFrame(ints, schema=self.ints.schema, orient="row")]),
            texts=pl.concat([self.texts, pl.DataFrame(texts, schema=self.texts.schema, orient="row")]),
        )

    def _of(self, frame: pl.DataFrame, names: tuple[str, ...]) -> pl.DataFrame:
        keys = [key for name in names for key in self._keys.get(name, ())]
        if not keys or not len(frame):
            return frame.clear().select("owner", "value")
        wanted = frame["key"] == keys[0]
        for key in keys[1:]:
            wanted = wanted | (frame["key"] == key)
        return frame.filter(wanted).select("owner", "value")


def _last(found: pl.DataFrame) -> pl.DataFrame:
    if found["owner"].n_unique() == len(found):
        return found
    return found.unique("owner", keep="last", maintain_order=True)
