"""What each host thread was doing at each moment."""

from __future__ import annotations

from threading import RLock
from weakref import WeakKeyDictionary

import polars as pl

from stepscope.analysis.host.causes import same_host
from stepscope.analysis.host.tracks import by_track
from stepscope.analysis.steps.find import Steps
from stepscope.native.spans import segments as native
from stepscope.trace.columns import buffer, repeated, rows_or_null, series
from stepscope.trace.frames import filled, take, take_largest
from stepscope.trace.trace import Trace

NONE = native.NONE
_FAR = 2**60


def main_track(trace: Trace, steps: Steps) -> int:
    """The thread that marks the steps, if it does anything else; else the one that does most."""
    host = trace.tracks.filter(pl.col("what") == "host")["id"]
    does_something = (
        pl.col("track").is_in(host.implode())
        & (pl.col("dur_ns") > 0)
        & pl.col("role").ne_missing("step")
        & ~pl.col("kind").is_in(["memory", "overhead"])
    )
    busy = trace.events.lazy().filter(does_something).select("track").collect()["track"]
    marking = int(steps.host["track"][0]) if len(steps.host) else None
    if busy.is_empty() or (marking is not None and (busy == marking).any()):
        return marking or 0
    return int(busy.value_counts().sort("count", "track")["track"][-1])


class Timeline:
    """What each host thread was doing at each moment: the innermost of its events, or of those `among` them."""

    def __init__(self, trace: Trace, among: pl.Series | None = None) -> None:
        events = trace.events
        on_host = take(filled(by_track(trace, pl.col("what") == "host")), events["track"])
        wanted = on_host if among is None else on_host & among
        start, end, row = native.segments(
            buffer(events["track"]), buffer(events["start_ns"]), buffer(events["dur_ns"]),
            buffer(filled(wanted).cast(pl.UInt8)),
        )  # fmt: skip
        self.start = series("start_ns", start, pl.Int64)
        self.end = series("end_ns", end, pl.Int64)
        self.owner = series("id", row, pl.UInt32)
        track = take(events["track"], self.owner)
        self.tracks = track.unique()
        self.count = take_largest(trace.tracks["id"]) + 1
        self.first = track.search_sorted(
            pl.int_range(self.count + 1, dtype=pl.UInt32, eager=True), side="left"
        ).cast(pl.UInt32)

    def cut(self, spans: pl.DataFrame, longer_than: int = 0) -> pl.DataFrame:
        """The spans (gap, start_ns, end_ns, track) cut by what their threads did; `event` is null for nothing.

        `place` is the segment at that moment, or the next one; `silences` wants it. Shorter pieces than `longer_than` ns, or as short, are left out.
        """
        span, start, end, row, place = native.cut(
            buffer(spans["track"]), buffer(spans["start_ns"]), buffer(spans["end_ns"]),
            buffer(self.first), buffer(self.start), buffer(self.end), buffer(self.owner), longer_than,
        )  # fmt: skip
        index = series("span", span, pl.UInt32)
        return pl.DataFrame(
            {
                "gap": take(spans["gap"], index),
                "track": take(spans["track"], index),
                "start_ns": series("start_ns", start, pl.Int64),
                "end_ns": series("end_ns", end, pl.Int64),
                "event": rows_or_null("event", row),
                "place": series("place", place, pl.UInt32),
            }
        )

    def busiest(self, tracks: pl.Series, most: int) -> pl.Series:
        """Those of the tracks that did most, in the order given; all where there are no more than `most`."""
        if len(tracks) <= most:
            return tracks
        done = pl.concat([pl.Series([0], dtype=pl.Int64), (self.end - self.start).cum_sum()])
        time = (done.gather(self.first[1:]) - done.gather(self.first[:-1])).gather(tracks)
        ranked = pl.DataFrame({"track": tracks, "time": time}).sort(
            "time", descending=True, maintain_order=True
        )
        kept: pl.Series = tracks.filter(tracks.is_in(ranked["track"].head(most).implode()))
        return kept

    def quiet(self, pieces: pl.DataFrame) -> pl.DataFrame:
        """The stretch that each piece of `cut` lies in: since when, until when, and with which event it ended.

        Where a thread did nothing, that is the time between two events; else one segment. Columns: since_ns,
        until_ns, next; a time far away, and no event, where nothing came before or after.
        """
        first, last = take(self.first, pieces["track"]), take(self.first, pieces["track"] + 1)
        frame = pieces.select("place", first=first, last=last, owned=pl.col("event").is_not_null())
        place, owned = pl.col("place"), pl.col("owned")
        index = frame.select(
            since=pl.when(~owned & (place > pl.col("first"))).then(place - 1),
            until=pl.when(~owned & (place < pl.col("last"))).then(place),
            own=pl.when(owned).then(place),
            next=pl.when(place + owned < pl.col("last")).then(place + owned),
        )
        return pl.DataFrame(
            {
                "since_ns": _first_known(
                    take(self.end, index["since"]), take(self.start, index["own"]), -_FAR
                ),
                "until_ns": _first_known(
                    take(self.start, index["until"]), take(self.end, index["own"]), _FAR
                ),
                "next": take(self.owner, index["next"]),
            }
        )


_known: WeakKeyDictionary[Trace, Timeline] = WeakKeyDictionary()
_at_once = RLock()  # the replay and the critical path ask side by side


def host_timeline(trace: Trace) -> Timeline:
    """The timeline of all host events, made once for all traces that share them."""
    with _at_once:
        source = same_host(trace)
        found = _known.get(source)
        if found is None:
            found = _known[source] = Timeline(source)
    return found


def cut_by(spans: pl.DataFrame, owners: pl.DataFrame) -> pl.DataFrame:
    """The spans (start_ns, end_ns) cut by owners (start_ns, end_ns, id) that follow one another: row, start_ns, end_ns, owner.

    `row` is the number of the span; `owner` is null where none lies.
    """
    row, start, end, owner, _ = native.cut(
        buffer(repeated(0, len(spans), pl.UInt32)), buffer(spans["start_ns"]), buffer(spans["end_ns"]),
        buffer(pl.Series([0, len(owners)], dtype=pl.UInt32)), buffer(owners["start_ns"]), buffer(owners["end_ns"]),
        buffer(owners["id"]),
    )  # fmt: skip
    return pl.DataFrame(
        {
            "row": series("row", row, pl.UInt32),
            "start_ns": series("start_ns", start, pl.Int64),
            "end_ns": series("end_ns", end, pl.Int64),
            "owner": rows_or_null("owner", owner),
        }
    )


def within(values: pl.Series, first: pl.Series, last: pl.Series) -> pl.Series:
    """Which values lie in any of the ranges, both ends included. The ranges come in the order of their first values."""
    if first.is_empty():
        return pl.repeat(False, len(values), dtype=pl.Boolean, eager=True)
    place = first.search_sorted(values, side="right").cast(pl.Int64) - 1
    found: pl.Series = (place >= 0) & (last.cum_max().gather(place.clip(lower_bound=0)) >= values)
    return found


def _first_known(one: pl.Series, other: pl.Series, default: int) -> pl.Series:
    return pl.select(pl.coalesce(one, other, pl.lit(default))).to_series()
