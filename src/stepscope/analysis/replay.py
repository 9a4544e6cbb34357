"""What would the step take if …: the recorded steps played again with a change applied.

The host is one line of work: what happened between one launch and the next, on the threads that launch, without the time
it spent waiting for the device. Streams run what they are given, in order, no earlier than a launch delay after it
was launched. A change makes some host time or device time shorter, or drops waits; the rest follows.
The replay of the unchanged steps is compared with what was recorded, so that a promise rests on the difference alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from stepscope.analysis.causes import host_causes, is_wait
from stepscope.analysis.steps import Steps
from stepscope.analysis.timeline import Timeline, main_track
from stepscope.native import replay as native
from stepscope.trace.columns import buffer
from stepscope.trace.trace import Trace


@dataclass(frozen=True)
class Plan:
    """Items in the order in which the host came to them, and the host's work before each, by cause.

    `items`: item, kind, stream, device_ns, delay_ns, last, step, event. `host`: item, cause, named_by, ns.
    """

    items: pl.DataFrame
    host: pl.DataFrame
    streams: int

    def step_ns(self) -> float:
        """The mean length of a step, played as the plan stands."""
        if self.items.is_empty():
            return 0.0
        summed = self.host.group_by("item").agg(pl.col("ns").sum())
        before = pl.zeros(len(self.items), dtype=pl.Int64, eager=True).scatter(summed["item"], summed["ns"])
        ends = native.replay(
            buffer(self.items["kind"]),
            buffer(before),
            buffer(self.items["stream"]),
            buffer(self.items["device_ns"].cast(pl.Int64)),
            buffer(self.items["delay_ns"]),
            buffer(self.items["last"]),
            self.streams,
        )
        return ends[-1] / len(ends) if ends else 0.0

    def with_host(self, matches: pl.Expr, factor: float) -> Plan:
        """The host's work of some causes or names takes `factor` of its time."""
        changed = pl.when(matches).then((pl.col("ns") * factor).cast(pl.Int64)).otherwise(pl.col("ns"))
        return replace(self, host=self.host.with_columns(ns=changed))

    def with_device(self, matches: pl.Expr, factor: float) -> Plan:
        """Some device work takes `factor` of its time."""
        changed = (
            pl.when(matches)
            .then((pl.col("device_ns") * factor).cast(pl.Int64))
            .otherwise(pl.col("device_ns"))
        )
        return replace(self, items=self.items.with_columns(device_ns=changed))

    def without_waits(self, matches: pl.Expr | None = None) -> Plan:
        """The host does not wait for the device."""
        chosen = pl.lit(True) if matches is None else matches
        kind = pl.when((pl.col("kind") == native.WAIT) & chosen).then(native.WORK).otherwise(pl.col("kind"))
        return replace(self, items=self.items.with_columns(kind=kind.cast(pl.UInt8)))

    def on_own_stream(self, matches: pl.Expr) -> Plan:
        """Some device work runs beside the rest."""
        stream = pl.when(matches).then(pl.lit(self.streams, dtype=pl.UInt32)).otherwise(pl.col("stream"))
        return replace(self, items=self.items.with_columns(stream=stream), streams=self.streams + 1)


def plan(trace: Trace, steps: Steps, device: int | None) -> Plan:
    """The steps of one device as items to play."""
    points = _points(trace, steps, device)
    main = main_track(trace, steps)
    begin = steps.host["start_ns"].min()
    spans = points.select(
        gap="item", start_ns=pl.col("at").shift(1, fill_value=begin), end_ns="at", track="track"
    ).filter(pl.col("start_ns") < pl.col("end_ns"))
    timeline = Timeline(trace)
    pieces = timeline.cut_or_main(spans, main)
    waiting = is_wait(trace).gather(pieces["event"]).fill_null(False)
    causes = host_causes(trace)
    host = pieces.with_columns(
        cause=causes["cause"].gather(pieces["event"]).fill_null("unexplained"),
        named_by=causes["named_by"].gather(pieces["event"]),
        ns=pl.col("end_ns") - pl.col("start_ns"),
    ).filter(~waiting)
    items = points.select("item", "kind", "stream", "device_ns", "delay_ns", "last", "step", "event")
    streams = int(items["stream"].max() or 0) + 1  # type: ignore[arg-type]
    return Plan(items, host.select("cause", "named_by", "ns", item="gap"), streams)


def _points(trace: Trace, steps: Steps, device: int | None) -> pl.DataFrame:
    """Launches, waits and ends of steps in the order of the host's clock."""
    windows = steps.host.sort("start_ns")
    low, high = windows["start_ns"][0], windows["end_ns"][-1]
    found = pl.concat([_launches(trace, device), _waits(trace), _ends(windows)])
    inside = found.filter(pl.col("at") >= low, pl.col("at") <= high)
    # The end of a step comes after everything that ended with it.
    return inside.sort("at", "last", maintain_order=True).with_row_index("item")


_SCHEMA = {
    "at": pl.Int64,
    "kind": pl.UInt8,
    "track": pl.UInt32,
    "stream": pl.UInt32,
    "device_ns": pl.Int64,
    "delay_ns": pl.Int64,
    "last": pl.UInt8,
    "step": pl.Int32,
    "event": pl.UInt32,
}


def _launches(trace: Trace, device: int | None) -> pl.DataFrame:
    events = trace.events
    streams = trace.tracks.filter((pl.col("what") == "device") & pl.col("device").eq_missing(device))["id"]
    numbers = {track: number for number, track in enumerate(streams.to_list())}
    links = trace.links.filter(pl.col("why") == "launch")
    rows = links.select("from", event="to").with_columns(
        kind_of=events["kind"].gather(links["to"]), stream_track=events["track"].gather(links["to"])
    )
    rows = rows.filter(
        pl.col("kind_of").is_in(["kernel", "copy", "memset"]), pl.col("stream_track").is_in(streams.implode())
    )
    call = rows["from"]
    at = (events["start_ns"] + events["dur_ns"]).gather(call)
    start = events["start_ns"].gather(rows["event"])
    stream = rows["stream_track"].replace_strict(
        list(numbers), list(numbers.values()), return_dtype=pl.UInt32, default=0
    )
    frame = rows.select("event").with_columns(
        at=at, track=events["track"].gather(call), stream=stream, device_ns=events["dur_ns"].gather(rows["event"]),
        waited=(start - at), step=events["step"].gather(rows["event"]),
    )  # fmt: skip
    # What a launch takes on an idle device; longer waits come from the queue and are played, not assumed.
    typical = max(0, int(frame.filter(pl.col("waited") > 0)["waited"].quantile(0.1) or 0))
    frame = frame.with_columns(
        kind=pl.lit(native.WORK, dtype=pl.UInt8),
        delay_ns=pl.lit(typical, dtype=pl.Int64),
        last=pl.lit(0, dtype=pl.UInt8),
    )
    return frame.sort("at", maintain_order=True).select(
        pl.col(name).cast(dtype) for name, dtype in _SCHEMA.items()
    )


def _waits(trace: Trace) -> pl.DataFrame:
    rows = trace.events.filter(is_wait(trace))
    return rows.select(
        at=pl.col("start_ns") + pl.col("dur_ns"), kind=pl.lit(native.WAIT), track="track", stream=pl.lit(0),
        device_ns=pl.lit(0), delay_ns=pl.lit(0), last=pl.lit(0), step="step", event="id",
    ).cast(_SCHEMA)  # type: ignore[arg-type]  # fmt: skip


def _ends(windows: pl.DataFrame) -> pl.DataFrame:
    return windows.select(
        at="end_ns", kind=pl.lit(native.WORK), track="track", stream=pl.lit(0), device_ns=pl.lit(0), delay_ns=pl.lit(0),
        last=pl.lit(1), step="step", event=pl.lit(None),
    ).cast(_SCHEMA)  # type: ignore[arg-type]  # fmt: skip
