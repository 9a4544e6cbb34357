"""Stats of events, of names or of planes: key and value by owner, one table for each type of value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl

from stepscope.lazy import dataclass
from stepscope.trace.frames import take_largest
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
        self._by_owner: dict[int, dict[str, Any]] | None = None
        self._found: dict[tuple[str, tuple[str, ...]], pl.DataFrame] = {}

    def has(self, *names: str) -> bool:
        """Whether the file knows any of these stats."""
        return any(name in self._keys for name in names)

    def numbers(self, *names: str) -> pl.DataFrame:
        """Owner and value of the stats with one of these names (in lower case), as int64."""
        return self._once("numbers", names, self._numbers)

    def words_of(self, *names: str) -> pl.DataFrame:
        """The same as bits of uint64: for addresses and ids."""
        return self._once("words", names, self._words)

    def reals_of(self, *names: str) -> pl.DataFrame:
        """The same as doubles, whole numbers included."""
        return self._once("reals", names, self._reals)

    def texts_of(self, *names: str) -> pl.DataFrame:
        """The same as text."""
        return self._once("texts", names, lambda names: self._of(self.texts, names))

    def by_owner(self) -> dict[int, dict[str, Any]]:
        """Everything, as dictionaries: for the few stats of planes and names."""
        if self._by_owner is not None:
            return self._by_owner
        found: dict[int, dict[str, Any]] = {}
        for frame in (self.ints, self.words, self.reals, self.texts, self.blobs):
            for owner, key, value in frame.iter_rows():
                found.setdefault(owner, {})[self.names[key]] = value
        self._by_owner = found
        return found

    def cold(self) -> dict[str, pl.DataFrame]:
        """The tables with keys as text, for requests for all that is known of an event."""
        text = pl.Series(self.names, dtype=Text)
        tables = {
            "int": self.ints,
            "uint": self.words,
            "real": self.reals,
            "text": self.texts,
            "bytes": self.blobs,
        }
        return {
            f"stats_{name}": pl.DataFrame(
                {"event": frame["owner"], "key": text.gather(frame["key"]), "value": frame["value"]}
            )
            for name, frame in tables.items()
            if len(frame)
        }

    def with_rows(self, rows: list[tuple[int, str, Any]]) -> Stats:
        """The same stats and these: owner, name, and a whole number or text."""
        if not rows:
            return self
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

    def _once(
        self, what: str, names: tuple[str, ...], find: Callable[[tuple[str, ...]], pl.DataFrame]
    ) -> pl.DataFrame:
        """What `find` finds, looked for once; where an owner has a stat twice, the last one counts."""
        if (what, names) not in self._found:
            found = find(names)
            owner = found["owner"]
            if not owner.is_empty() and not (owner.diff().drop_nulls() > 0).all():
                found = found.unique("owner", keep="last", maintain_order=True)
            self._found[what, names] = found
        return self._found[what, names]

    def _numbers(self, names: tuple[str, ...]) -> pl.DataFrame:
        words = self._of(self.words, names).select("owner", pl.col("value").reinterpret(signed=True))
        return _joined([self._of(self.ints, names), words])

    def _words(self, names: tuple[str, ...]) -> pl.DataFrame:
        ints = self._of(self.ints, names).select("owner", pl.col("value").reinterpret(signed=False))
        return _joined([ints, self._of(self.words, names)])

    def _reals(self, names: tuple[str, ...]) -> pl.DataFrame:
        return _joined([self._of(self.reals, names), self._of(self.ints, names).cast({"value": pl.Float64})])

    def _of(self, frame: pl.DataFrame, names: tuple[str, ...]) -> pl.DataFrame:
        keys = [key for name in names for key in self._keys.get(name, ())]
        if not keys or not len(frame):
            return frame.clear().select("owner", "value")
        wanted = frame["key"] == keys[0]
        for key in keys[1:]:
            wanted = wanted | (frame["key"] == key)
        return frame.select("owner", "value").filter(wanted)


def values_at(rows: pl.Series, found: pl.DataFrame) -> pl.Series:
    """The value that was found for each of the rows, null where there is none. Owners are distinct."""
    owner, value = found["owner"], found["value"]
    if len(rows) == len(owner) and not rows.null_count() and (rows == owner).all():
        return value
    if owner.is_empty() or rows.is_empty():
        return pl.repeat(None, len(rows), dtype=value.dtype, eager=True)
    size = max(take_largest(owner), take_largest(rows)) + 1
    place = pl.repeat(None, size, dtype=pl.UInt32, eager=True)
    place = place.scatter(owner, pl.int_range(len(owner), dtype=pl.UInt32, eager=True))
    return value.gather(place.gather(rows))


def _joined(frames: list[pl.DataFrame]) -> pl.DataFrame:
    filled = [frame for frame in frames if len(frame)]
    return filled[0] if len(filled) == 1 else pl.concat(frames)
