"""Links between events: launches of device work, and producers with their consumers."""

from __future__ import annotations

import secrets

import polars as pl

from stepscope.formats.xplane.decode import Decoded
from stepscope.formats.xplane.stats import values_at
from stepscope.native.links import link
from stepscope.trace.columns import buffer, series
from stepscope.trace.schema import LinkReason

_ANY_DEVICE = 0xFFFFFFFF


def links(decoded: Decoded, tracks: pl.DataFrame) -> pl.DataFrame:
    """All links, as row numbers of events."""
    start = decoded.events["start_ns"]
    found = [_link(decoded.producers, decoded.consumers, start, "producer-consumer", early=False)]
    if decoded.stats.has("correlation_id"):
        found.append(_launches(decoded, tracks, start))
    return pl.concat(found)


def _launches(decoded: Decoded, tracks: pl.DataFrame, start: pl.Series) -> pl.DataFrame:
    """Calls on the host with the work of the same correlation id on the same device.

    Calls that do not name the device they are for are tried for work that no other call launched; so are those that
    name a device which is not in the file: ROCm gives the driver's number there, not the ordinal of the plane.
    """
    rows = decoded.stats.numbers("correlation_id")
    track = decoded.events["track"].gather(rows["owner"])
    what = tracks["what"].gather(track)
    asked = values_at(rows["owner"], decoded.stats.numbers("device_id")).cast(pl.UInt32, strict=False)
    place = tracks["device"].gather(track).cast(pl.UInt32, strict=False)
    known = pl.select(pl.when(asked.is_in(place.unique().implode())).then(asked)).to_series()
    calls = rows.with_columns(key=known.fill_null(_ANY_DEVICE)).filter(what == "host")
    work = rows.with_columns(key=place.fill_null(_ANY_DEVICE)).filter(what == "device")
    found = _link(calls, work, start, "launch", early=True)
    loose = calls.filter(pl.col("key") == _ANY_DEVICE)
    if loose.is_empty():
        return found
    rest = work.filter(~pl.col("owner").is_in(found["to"].implode()))
    rest = rest.with_columns(key=pl.lit(_ANY_DEVICE, dtype=pl.UInt32))
    return pl.concat([found, _link(loose, rest, start, "launch", early=True)])


def _link(
    producers: pl.DataFrame, consumers: pl.DataFrame, start: pl.Series, why: str, early: bool
) -> pl.DataFrame:
    begin, end = link(_columns(producers), _columns(consumers), buffer(start), early, secrets.randbits(64))
    found = pl.DataFrame([series("from", begin, pl.UInt32), series("to", end, pl.UInt32)])
    return found.with_columns(why=pl.lit(why, dtype=LinkReason))


def _columns(rows: pl.DataFrame) -> list[memoryview]:
    return [buffer(rows[name]) for name in ("owner", "key", "value")]
