"""Steps of compiled programs: what repeats in the sequence of XLA modules that each device ran."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.analysis.steps.candidate import NO_STEPS, Candidate
from stepscope.analysis.steps.repetition import repetition
from stepscope.analysis.steps.work import launches_of
from stepscope.trace.frames import take_median
from stepscope.trace.trace import Trace

_PROGRAM_ID = r"\(\d+\)$"


def programs(trace: Trace) -> Iterator[Candidate]:
    """Steps by the programs of the devices, if all devices that run any show equally many."""
    runs = _runs(trace)
    found = [
        _of_device(int(device), rows) for (device,), rows in runs.group_by("device", maintain_order=True)
    ]
    if not found or any(each.is_empty() for each in found) or len({len(each) for each in found}) > 1:
        return
    windows = pl.concat(found)
    name = runs.group_by("name").agg(pl.col("ns").sum()).sort("ns", "name")["name"][-1]
    spans = found[0].select(
        "step",
        pl.lit(main_track_of(trace), dtype=pl.UInt32).alias("track"),
        "start_ns",
        "end_ns",
    )
    yield Candidate(
        "program", str(name), "medium", spans, _on_host(trace, spans, int(windows["device"][0])), windows, on_device=True
    )  # fmt: skip


def _runs(trace: Trace) -> pl.DataFrame:
    """device, name, start_ns, end_ns, ns of each run of a program, in time order."""
    tracks = trace.tracks.filter((pl.col("what") == "derived") & pl.col("device").is_not_null())
    found = trace.events.filter((pl.col("kind") == "module") & (pl.col("dur_ns") > 0)).join(
        tracks.select("device", track="id"), on="track"
    )
    return found.select(
        "device",
        "start_ns",
        name=pl.col("name").cast(pl.String).str.replace(_PROGRAM_ID, ""),
        end_ns=pl.col("start_ns") + pl.col("dur_ns"),
        ns="dur_ns",
    ).sort("device", "start_ns")


def _of_device(device: int, runs: pl.DataFrame) -> pl.DataFrame:
    """device, step, start_ns, end_ns, partial: from the first program of each period to the end of its last."""
    runs = _between_strays(runs)
    found = repetition(runs["name"]) if len(runs) > 1 else None
    if found is None:
        return NO_STEPS
    anchors = found.anchors.cast(pl.Int64)
    # Programs before the first period, such as the making of weights, are not shifted into it.
    ahead = int(anchors[0]) % max(1, int(take_median(anchors.diff().drop_nulls(), 1.0)))
    first = anchors - ahead
    last = pl.concat([first[1:] - 1, pl.Series([len(runs) - 1], dtype=pl.Int64)])
    ends = runs["end_ns"].cum_max().gather(last)
    starts = pl.concat([runs["start_ns"].gather(first)[:1], ends[:-1]])
    return pl.DataFrame({"start_ns": starts, "end_ns": ends}).select(
        pl.lit(device, dtype=pl.Int32).alias("device"),
        pl.int_range(pl.len(), dtype=pl.Int32).alias("step"),
        "start_ns",
        "end_ns",
        pl.lit(False).alias("partial"),
    )


def _between_strays(runs: pl.DataFrame) -> pl.DataFrame:
    """The runs without those at either end whose program comes only once: they prepare and finish."""
    places = runs.select(pl.len().over("name") > 1).to_series().arg_true()
    return runs[int(places[0]) : int(places[-1]) + 1] if len(places) else runs.clear()


def _on_host(trace: Trace, spans: pl.DataFrame, device: int) -> pl.DataFrame | None:
    """The spans as the host launched them; None where launches are unknown or out of order."""
    streams = trace.tracks.filter((pl.col("what") == "device") & (pl.col("device") == device))["id"]
    work = trace.events.filter(pl.col("track").is_in(streams.implode())).select(
        "id", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")
    )
    launched = work.join(launches_of(trace).rename({"to": "id"}), on="id").sort("start_ns")
    if launched.is_empty():
        return None
    at = trace.events["start_ns"].gather(launched["from"])
    place = launched["start_ns"].search_sorted(spans["start_ns"], side="left")
    if int(place[-1]) >= len(launched):
        return None
    begun = at.gather(place)
    if not begun.is_sorted() or begun.n_unique() < len(begun):
        return None
    ends = pl.concat([begun[1:], pl.Series([max(int(at[-1]), int(begun[-1]) + 1)], dtype=pl.Int64)])
    return spans.with_columns(start_ns=begun, end_ns=ends)


def main_track_of(trace: Trace) -> int:
    """The host thread with most events, or track 0."""
    host = trace.tracks.filter(pl.col("what") == "host")["id"]
    busy = trace.events.filter(pl.col("track").is_in(host.implode()))["track"].value_counts()
    return int(busy.sort("count", "track")["track"][-1]) if len(busy) else 0
