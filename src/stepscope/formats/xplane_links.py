"""Links between events: launches of device work, and producers with their consumers."""

from __future__ import annotations

import secrets

import polars as pl

from stepscope.native import flows, xspace
from stepscope.formats.xplane_decode import Decoded
from stepscope.trace.columns import buffer, series
from stepscope.trace.schema import LinkReason


def links(decoded: Decoded, tracks: pl.DataFrame) -> pl.DataFrame:
    """All links, as row numbers of events."""
    start = decoded.events["start_ns"]
    found = [_link(decoded.producers, decoded.consumers, start, "producer-consumer", early=False)]
    if len(decoded.launches):
        found.append(_launches(decoded, tracks, start))
    return pl.concat(found)


def _launches(decoded: Decoded, tracks: pl.DataFrame, start: pl.Series) -> pl.DataFrame:
    """Calls on the host with the work of the same correlation id on the same device.

    Calls that do not say which device they are for are tried for work that no other call launched.
    """
    rows = decoded.launches
    track = decoded.events["track"].gather(rows["owner"])
    what = tracks["what"].gather(track)
    ordinal = tracks["device"].gather(track).cast(pl.UInt32, strict=False).fill_null(xspace.NO_DEVICE)
    calls = rows.filter(what == "host")
    work = rows.with_columns(key=ordinal).filter(what == "device")
    found = _link(calls, work, start, "launch", early=True)
    loose = calls.filter(pl.col("key") == xspace.NO_DEVICE)
    if loose.is_empty():
        return found
    rest = work.filter(~pl.col("owner").is_in(found["to"].implode())).with_columns(
        key=pl.lit(xspace.NO_DEVICE, dtype=pl.UInt32)
    )
    return pl.concat([found, _link(loose, rest, start, "launch", early=True)])


def _link(producers: pl.DataFrame, consumers: pl.DataFrame, start: pl.Series, why: str, early: bool) -> pl.DataFrame:
    sides = [tuple(buffer(frame[name]) for name in ("owner", "key", "value")) for frame in (producers, consumers)]
    begin, end = flows.link(sides[0], sides[1], buffer(start), early, secrets.randbits(64))
    found = pl.DataFrame([series("from", begin, pl.UInt32), series("to", end, pl.UInt32)])
    return found.with_columns(why=pl.lit(why, dtype=LinkReason))
