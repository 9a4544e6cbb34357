"""Counter events: each series of each counter is a track of its own."""

from __future__ import annotations

import polars as pl

from stepscope.formats.chrome.scan.columns import JsonEvents
from stepscope.formats.chrome.tracks import TrackTable
from stepscope.lazy import dataclass
from stepscope.trace.json_text import repaired_json
from stepscope.trace.schema import TABLES


@dataclass
class Counters:
    """The samples, and the events' tracks with those of counters moved to theirs."""

    frame: pl.DataFrame
    track: pl.Series


def counters(found: JsonEvents, table: TrackTable, events: pl.DataFrame) -> Counters:
    """Take the samples of phase C out of their arguments."""
    is_counter = found.events["ph"] == ord("C")
    if not is_counter.any():
        return Counters(pl.DataFrame(schema=TABLES["counters"]), events["track"])
    rows = found.events.select("name", "track", "start").with_row_index("event").filter(is_counter)
    arguments = rows.join(found.rest, on="event", how="left", maintain_order="left")
    series: dict[tuple[int, str, str], int] = {}
    samples: list[tuple[int, int, float]] = []
    first_track: list[int] = []
    for _, name, track, start, json in arguments.iter_rows():
        values = repaired_json(json) if json is not None else None
        numbers = _numbers(values)
        place = None
        for label, value in numbers:
            key = (track, name or "", label)
            if key not in series:
                series[key] = table.add(track, what="counter", thread=f"{name} {label}".strip())
            place = series[key] if place is None else place
            samples.append((series[key], start, value))
        if place is None:
            key = (track, name or "", "")
            if key not in series:
                series[key] = table.add(track, what="counter", thread=name)
            place = series[key]
        first_track.append(place)
    moved_track = events["track"].scatter(rows["event"], pl.Series(first_track, dtype=pl.UInt32))
    return Counters(pl.DataFrame(samples, schema=TABLES["counters"], orient="row"), moved_track)


def _numbers(values: object) -> list[tuple[str, float]]:
    if not isinstance(values, dict):
        return []
    found = []
    for label, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            continue
        try:
            found.append((str(label), float(value)))
        except (ValueError, OverflowError):
            continue
    return found
