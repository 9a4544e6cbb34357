"""A trace of many million events: the tables of a real one over and over, and on twice the tracks, in the cache.

Writing and reading it as a file would say nothing about the viewer and take minutes, so the tables are repeated as they
are, and kept under the name of a copy of the file: whoever opens that copy finds them in the cache.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import polars as pl

from stepscope import load
from stepscope.formats.source import Source
from stepscope.profiles.cache.cache import Cache, identify
from stepscope.trace.frames import take_largest, take_smallest
from stepscope.trace.schema import EVENT_REFERENCES
from stepscope.trace.trace import Trace

WIDE = 2  # copies side by side, so that there are rows enough to fill a screen


class Copies:
    """Where the events of one trace go when it is repeated: by track copy, track, time copy."""

    def __init__(self, trace: Trace, times: int) -> None:
        self.events = trace.events
        self.times = times
        counts = trace.events["track"].value_counts().sort("track")
        self.tracks = counts["track"].to_list()
        self.sizes = counts["count"].to_list()
        self.first = [sum(self.sizes[:at]) for at in range(len(self.sizes))]
        end = (trace.events["start_ns"] + trace.events["dur_ns"]).max()
        self.stride = int(end) - take_smallest(trace.events["start_ns"]) + 1_000
        self.track_stride = max(self.tracks) + 1
        self.steps = take_largest(trace.events["step"]) + 1

    def moved(self, wide: int, time: int) -> pl.Series:
        """The new number of each event in one copy."""
        before = wide * len(self.events) * self.times
        begins = [
            before + first * self.times + time * size
            for size, first in zip(self.sizes, self.first, strict=True)
        ]
        ranges = [
            pl.int_range(begin, begin + size, dtype=pl.UInt32, eager=True)
            for begin, size in zip(begins, self.sizes, strict=True)
        ]
        return pl.concat(ranges)

    def table(self) -> pl.DataFrame:
        """The events of all copies, by track and start."""
        found = []
        for wide in range(WIDE):
            moved = [self.moved(wide, time) for time in range(self.times)]
            for size, first in zip(self.sizes, self.first, strict=True):
                part = self.events.slice(first, size)
                found += [self._copy(part, wide, time, moved[time]) for time in range(self.times)]
        return pl.concat(found).with_columns(id=pl.int_range(pl.len(), dtype=pl.UInt32)).rechunk()

    def _copy(self, part: pl.DataFrame, wide: int, time: int, moved: pl.Series) -> pl.DataFrame:
        return part.with_columns(
            track=(pl.col("track") + wide * self.track_stride).cast(pl.UInt32),
            start_ns=pl.col("start_ns") + time * self.stride,
            parent=moved.gather(part["parent"]),
            step=(pl.col("step") + time * self.steps).cast(pl.Int32),
        )

    def referring(self, name: str, frame: pl.DataFrame) -> pl.DataFrame:
        """A table that refers to events, for all copies."""
        found = []
        for wide in range(WIDE):
            for time in range(self.times):
                moved = self.moved(wide, time)
                columns = [
                    moved.gather(frame[column]).alias(column)
                    for column in EVENT_REFERENCES[name]
                    if column in frame.columns
                ]
                copy = frame.with_columns(columns)
                if "time_ns" in copy.columns:
                    copy = copy.with_columns(pl.col("time_ns") + time * self.stride)
                found.append(copy)
        joined = pl.concat(found)
        return joined.sort("from", "to") if name == "links" else joined

    def tracks_table(self, tracks: pl.DataFrame) -> pl.DataFrame:
        """The tracks, once for each copy."""
        return pl.concat(
            tracks.with_columns(id=(pl.col("id") + wide * self.track_stride).cast(pl.UInt32))
            if wide == 0
            else tracks.with_columns(
                id=(pl.col("id") + wide * self.track_stride).cast(pl.UInt32),
                device=pl.col("device") + wide,
                pid=pl.col("pid") + f" copy {wide}",
            )
            for wide in range(WIDE)
        )


def repeated(trace: Trace, at_least: int) -> Trace:
    """The trace as often as needed to hold so many events."""
    times = -(-at_least // (len(trace.events) * WIDE))
    copies = Copies(trace, times)
    tables = {name: frame for name, frame in trace.tables.items() if name not in EVENT_REFERENCES}
    tables |= {"events": copies.table(), "tracks": copies.tracks_table(trace.tracks)}
    tables |= {
        name: copies.referring(name, trace.tables[name])
        for name in EVENT_REFERENCES
        if len(trace.tables[name])
    }
    return Trace(tables)


def main(source: str, target: str, at_least: str) -> None:
    """Make the copy of the file, and put the repeated trace into the cache under its name."""
    place = Path(target)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, place)
    trace = repeated(load(source, cache=False).traces[0], int(at_least))
    identity = identify(Source(str(place)))
    if identity is None or Cache().store(identity, trace) is not None:
        raise SystemExit("The repeated trace could not be put into the cache.")
    print(len(trace.events))


if __name__ == "__main__":
    main(*sys.argv[1:])
