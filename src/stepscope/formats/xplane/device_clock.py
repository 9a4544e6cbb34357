"""Times of TPUs by their own clock.

The profiler moves events to the time of the host, from samples of both clocks: where those jump, so do the events, and a
recording of equal steps shows some that are a third longer. Each instruction also has its time by the clock of its device,
which is what XProf sums. Here these times count, moved to the host's by one constant for each plane; what has no such time
on the plane (programs, copies that overlap) follows the instructions around it.
"""

from __future__ import annotations

import polars as pl

from stepscope.formats.xplane.decode import Events
from stepscope.formats.xplane.stats import Stats, values_at
from stepscope.formats.xplane.tracks import CORE_OPS
from stepscope.trace.frames import take_median

_OFFSET, _DURATION = "device_offset_ps", "device_duration_ps"
_PS = 1000
_FARTHEST_PS = 1 << 62


def by_device_clock(events: pl.DataFrame, known: Events, stats: Stats) -> pl.DataFrame:
    """The events, where those of planes with device times are by the device's clock."""
    timed = _timed(events, known, stats)
    if timed.is_empty():
        return events
    plane = known.tracks["process"]
    moved = [
        _moved(events, anchors, plane == name)
        for (name,), anchors in timed.with_columns(plane=plane.gather(timed["track"])).group_by("plane")
    ]
    found = pl.concat([each for each in moved if len(each)] or [_NOTHING])
    return events.with_columns(
        start_ns=events["start_ns"].scatter(found["row"], found["start_ns"]),
        dur_ns=events["dur_ns"].scatter(found["row"], found["dur_ns"]),
    )


_NOTHING = pl.DataFrame(schema={"row": pl.UInt32, "start_ns": pl.Int64, "dur_ns": pl.Int64})


def _timed(events: pl.DataFrame, known: Events, stats: Stats) -> pl.DataFrame:
    """row, track, recorded start and end, and device start and end, in ns, of instructions that have both."""
    offsets, durations = stats.numbers(_OFFSET), stats.numbers(_DURATION)
    core = [i for i, line in enumerate(known.line_classes) if line == CORE_OPS]
    if offsets.is_empty() or durations.is_empty() or not core:
        return pl.DataFrame()
    row = offsets["owner"]
    columns = {name: events[name].gather(row) for name in ("track", "start_ns", "dur_ns")}
    rows = pl.DataFrame(
        {"row": row, "offset": offsets["value"], "length": values_at(row, durations), **columns}
    )
    sane = [pl.col(name).is_between(0, _FARTHEST_PS) for name in ("offset", "length")]
    rows = rows.filter(pl.col("track").is_in(core), *sane, pl.col("dur_ns") >= 0)
    begin, end = (_rounded(ps) for ps in (pl.col("offset"), pl.col("offset") + pl.col("length")))
    return rows.select(
        "row", "track", a="start_ns", b=pl.col("start_ns") + pl.col("dur_ns"), begin=begin, end=end
    )


def _rounded(ps: pl.Expr) -> pl.Expr:
    return (ps + _PS // 2) // _PS


def _moved(events: pl.DataFrame, anchors: pl.DataFrame, is_plane: pl.Series) -> pl.DataFrame:
    """row, start_ns, dur_ns of all events of one plane; nothing where the two clocks disagree on the order of events."""
    points = pl.concat([anchors.select(at="a", to="begin"), anchors.select(at="b", to="end")]).sort(
        "at", "to"
    )
    points = points.unique("at", keep="last", maintain_order=True)
    if not points["to"].is_sorted():
        return _NOTHING
    shift = int(take_median(points["at"] - points["to"], 0.0))
    tracks = is_plane.arg_true().cast(pl.UInt32)
    rest = events.select(
        "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"), track="track", row=pl.int_range(pl.len(), dtype=pl.UInt32)
    ).filter(pl.col("track").is_in(tracks.implode()))  # fmt: skip
    rest = rest.join(anchors.select("row"), on="row", how="anti")
    start, end = (_followed(rest[name], points) for name in ("start_ns", "end_ns"))
    others = pl.DataFrame({"row": rest["row"], "start_ns": start, "dur_ns": end - start})
    own = anchors.select("row", start_ns="begin", dur_ns=pl.col("end") - pl.col("begin"))
    return pl.concat([own, others.select(own.columns)]).with_columns(pl.col("start_ns") + shift)


def _followed(times: pl.Series, points: pl.DataFrame) -> pl.Series:
    """The times by the device's clock: between two points in proportion, outside all of them at the same distance."""
    at, to = points["at"], points["to"]
    last = len(at) - 1
    before = (at.search_sorted(times, side="right").cast(pl.Int64) - 1).clip(0, last)
    after = (before + 1).clip(upper_bound=last)
    found = pl.DataFrame(
        {"time": times, "a": at.gather(before), "b": at.gather(after), "begin": to.gather(before), "end": to.gather(after)}
    )  # fmt: skip
    inside = (pl.col("b") > pl.col("a")) & (pl.col("time") > pl.col("a"))
    share = (pl.col("time") - pl.col("a")) / (pl.col("b") - pl.col("a"))
    within = pl.col("begin") + (share * (pl.col("end") - pl.col("begin"))).round().cast(pl.Int64)
    return found.select(
        pl.when(inside).then(within).otherwise(pl.col("begin") + pl.col("time") - pl.col("a"))
    ).to_series()
