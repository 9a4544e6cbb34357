"""What would the step take if …: the recorded steps played again with a change applied.

The host is one line of work: what happened between one launch and the next, on the threads that launch, without the time
it spent waiting for the device. Streams run what they are given, in order, no earlier than a launch delay after it
was launched. A change makes some host time or device time shorter, or drops waits; the rest follows.
The replay of the unchanged steps is compared with what was recorded, so that a promise rests on the difference alone.

Profiling makes the host slower than it is, and a promise for the job as it runs must not count that. Each stretch of host
time is played without the profiler's share: by the lengths of unprofiled steps where the capture kept them, else by a
cost per event (profiler_cost.py). With a light window (light.py) each interval takes what it took there. `as_recorded`
plays it with the profiler's share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from stepscope.analysis.account.host_timeline import Timeline, main_track
from stepscope.analysis.account.unrecorded_waits import unrecorded_waits
from stepscope.analysis.host.causes import host_causes, is_wait, or_null
from stepscope.analysis.parts import PARTS, Part
from stepscope.analysis.replay.light import LightHost
from stepscope.analysis.replay.profiler_cost import ProfilerCost
from stepscope.analysis.steps.find import Steps
from stepscope.native.host import replay as native
from stepscope.native.host.work import FULL, NONE, WAITS, HostWork
from stepscope.registers.calibration.launches import BLOCKED_LAUNCH_NS, FULL_QUEUE_TIMES, LAUNCH_LATENCY_NS
from stepscope.registers.levels import IDLE_LAUNCH_QUANTILE
from stepscope.registers.policy.findings import COST_SCALE_MOST, COST_SCALE_ROUNDS, LEAST_HOST_LEFT
from stepscope.trace.columns import buffer, series
from stepscope.trace.frames import conform, take_largest, take_median
from stepscope.trace.trace import Trace


@dataclass(frozen=True)
class Plan:
    """Items in the order in which the host came to them, and the host's work before each, by cause.

    `items`: item, at, kind, stream, device_ns, delay_ns, last, step, event, added_ns (host time that a change adds). `host`: item, cause, named_by, event, ns,
    recorded_ns, in the order of the items. `until`: how many of its rows come up to each item.
    `counted`: the places of the steps whose lengths count, all if None.
    """

    items: pl.DataFrame
    host: pl.DataFrame
    until: pl.Series
    streams: int
    counted: Sequence[int] | None = None

    def step_ns(self) -> float:
        """The mean length of a step, played as the plan stands."""
        lengths = self._lengths()
        if self.counted is not None:
            lengths = [lengths[place] for place in self.counted if place < len(lengths)]
        return sum(lengths) / len(lengths) if lengths else 0.0

    def _lengths(self) -> list[int]:
        if self.items.is_empty():
            return []
        before = self._host_ns() + self.items["added_ns"]
        ends = native.replay(
            buffer(self.items["kind"]),
            buffer(before),
            buffer(self.items["stream"]),
            buffer(self.items["device_ns"].cast(pl.Int64)),
            buffer(self.items["delay_ns"]),
            buffer(self.items["last"]),
            self.streams,
        )
        return [end - begin for begin, end in zip([0, *ends], ends, strict=False)]

    def _host_ns(self) -> pl.Series:
        """The host's work before each item."""
        return _sums(self.host["ns"], self.until)

    def as_recorded(self) -> Plan:
        """The same with the profiler's share of the host's time."""
        return replace(self, host=self.host.with_columns(ns="recorded_ns"))

    def counting(self, places: Sequence[int]) -> Plan:
        """The same, with the lengths of some steps only."""
        return replace(self, counted=places)

    def with_host(self, matches: pl.Expr, factor: float = 0.0) -> Plan:
        """The host's work of some causes or names takes `factor` of its time."""
        shorter = [
            pl.when(matches).then((pl.col(name) * factor).cast(pl.Int64)).otherwise(name).alias(name)
            for name in ("ns", "recorded_ns")
        ]
        return replace(self, host=self.host.with_columns(shorter))

    def with_device(self, matches: pl.Expr, factor: float | pl.Expr = 0.0) -> Plan:
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


def plan(trace: Trace, steps: Steps, device: int | None, light: LightHost | None = None) -> Plan:
    """The steps of one device as items to play; with the host time of the light window where there is one."""
    points = _points(trace, steps, device)
    main = main_track(trace, steps)
    spans = _spans_before(points, steps)
    host = _host_work(trace, steps, spans, main)
    items = points.select(
        "item",
        "at",
        "kind",
        "stream",
        "device_ns",
        "delay_ns",
        "last",
        "step",
        "event",
        added_ns=pl.lit(0, pl.Int64),
    )
    streams = take_largest(items["stream"]) + 1
    until = host["item"].search_sorted(items["item"], side="right")
    if light is not None:
        return _as_light(Plan(items, host, until, streams), light)
    added = _added_per_item(ProfilerCost(trace), spans, main)
    made = _less(Plan(items, host, until, streams), added, 1.0)
    unprofiled = trace.info.capture.get("unprofiled_step_ns")
    if isinstance(unprofiled, (int, float)) and unprofiled > 0:
        made = _fitted(made, added, float(unprofiled))
    return made


def _host_work(trace: Trace, steps: Steps, spans: pl.DataFrame, main: int) -> pl.DataFrame:
    """item, cause, named_by, event, recorded_ns: what the host worked on before each item, without its waits."""
    timeline, causes = Timeline(trace), host_causes(trace)
    silent = unrecorded_waits(trace, steps)
    full, usual = _full_queue(trace)
    flags = causes["waits"].cast(pl.UInt8) * WAITS + full.cast(pl.UInt8) * FULL
    unknown = PARTS.index("unexplained")
    work = HostWork(main, silent["track"][0] if len(silent) else main, unknown, usual)
    work.spans(*(buffer(spans[name]) for name in ("gap", "track", "start_ns", "end_ns")))
    work.segments(*(buffer(each) for each in (timeline.first, timeline.start, timeline.end, timeline.owner)))
    work.events(
        buffer(causes["cause"].to_physical().cast(pl.UInt8).fill_null(unknown)),
        buffer(causes["named_by"].fill_null(NONE)),
        buffer(flags),
    )
    work.quiet(buffer(silent["start_ns"]), buffer(silent["end_ns"]))
    item, cause, name, event, ns = work.pieces()
    return pl.DataFrame(
        {
            "event": or_null(series("event", event, pl.UInt32)),
            "item": series("item", item, pl.UInt32),
            "cause": pl.Series(PARTS, dtype=Part).gather(series("cause", cause, pl.UInt8)),
            "named_by": or_null(series("named_by", name, pl.UInt32)),
            "recorded_ns": series("recorded_ns", ns, pl.Int64),
        }
    )


def _full_queue(trace: Trace) -> tuple[pl.Series, int]:
    """Launches that took many times the usual, and the usual: they waited for room in the queue, which is the
    device's time, not the host's."""
    calls = trace.links.filter(pl.col("why") == "launch")["from"].unique()
    durations = trace.events["dur_ns"].gather(calls)
    usual = int(take_median(durations))
    full = calls.filter(durations > max(FULL_QUEUE_TIMES * usual, BLOCKED_LAUNCH_NS))
    return pl.repeat(False, len(trace.events), dtype=pl.Boolean, eager=True).scatter(full, True), usual


def _sums(values: pl.Series, until: pl.Series) -> pl.Series:
    """The sums of values that follow one another, up to each of the places."""
    total = pl.concat([pl.Series([0], dtype=pl.Int64), values.cum_sum()])
    summed = total.gather(until)
    found: pl.Series = summed - summed.shift(1, fill_value=0)
    return found


def _added_per_item(cost: ProfilerCost, spans: pl.DataFrame, main: int) -> pl.DataFrame:
    """item, added: what the profiler took of the host's time before each item, on its thread and the main one."""
    added = cost.added_ns(spans["track"], spans["start_ns"], spans["end_ns"])
    on_main = pl.repeat(main, len(spans), dtype=pl.UInt32, eager=True)
    also = cost.added_ns(on_main, spans["start_ns"], spans["end_ns"])
    elsewhere = spans["track"] != main
    return spans.select(item="gap", added=added + also * elsewhere.cast(pl.Int64))


def _less(made: Plan, added: pl.DataFrame, scale: float) -> Plan:
    """The host's time without `scale` times what the profiler added, taken evenly from all before an item."""
    host = made.host
    lost = pl.repeat(0, len(made.items), dtype=pl.Int64, eager=True).scatter(added["item"], added["added"])
    total = _sums(host["recorded_ns"], made.until)
    left = pl.select((1 - scale * lost / total).clip(LEAST_HOST_LEFT, 1.0).fill_nan(1.0)).to_series()
    shorter = (host["recorded_ns"] * left.gather(host["item"])).cast(pl.Int64)
    return replace(made, host=host.with_columns(ns=shorter))


def _as_light(made: Plan, light: LightHost) -> Plan:
    """The host's time as in the light window: the recorded one times the factor of each item."""
    known = made.items.join(light.calls, on="event", how="left", maintain_order="left")
    known = known.join(light.steps, on="step", how="left", maintain_order="left")
    factor = pl.when(pl.col("last") == 1).then("edge_factor").otherwise("factor")
    factors = known.select(factor.fill_null(light.factor)).to_series()
    shorter = (made.host["recorded_ns"] * factors.gather(made.host["item"])).cast(pl.Int64)
    return replace(made, host=made.host.with_columns(ns=shorter))


def _fitted(made: Plan, added: pl.DataFrame, unprofiled: float) -> Plan:
    """The profiler's costs scaled so that the steps play as long as unprofiled ones are."""
    low, high = 0.0, COST_SCALE_MOST
    for _ in range(COST_SCALE_ROUNDS):
        middle = (low + high) / 2
        made = _less(made, added, middle)
        if made.step_ns() > unprofiled:
            low = middle
        else:
            high = middle
    return made


def _spans_before(points: pl.DataFrame, steps: Steps) -> pl.DataFrame:
    """gap, start_ns, end_ns, track: the host's time before each item; time between regions is in none."""
    begin = steps.host["start_ns"].min()
    before = pl.col("at").shift(1, fill_value=begin)
    if steps.region is not None:
        before = pl.max_horizontal(before, "begins")
    spans = points.select(gap="item", start_ns=before, end_ns="at", track="track")
    return spans.filter(pl.col("start_ns") < pl.col("end_ns"))


def _points(trace: Trace, steps: Steps, device: int | None) -> pl.DataFrame:
    """Launches, waits and ends of steps in the order of the host's clock."""
    windows = steps.host.sort("start_ns")
    low, high = windows["start_ns"][0], windows["end_ns"][-1]
    waits = pl.concat([_waits(trace), _silent_waits(unrecorded_waits(trace, steps))])
    found = pl.concat([_launches(trace, device), waits, _ends(windows)])
    inside = found.filter(pl.col("at") >= low, pl.col("at") <= high)
    if steps.region is not None:
        inside = _inside_regions(pl.concat([inside, _begins(windows)]), windows)
    # The end of a step comes after everything that ended with it.
    return inside.sort("at", "last", maintain_order=True).with_row_index("item")


def _silent_waits(waits: pl.DataFrame) -> pl.DataFrame:
    items = waits.select(
        at="end_ns", kind=pl.lit(native.WAIT), track="track", stream=pl.lit(0), device_ns=pl.lit(0), delay_ns=pl.lit(0),
        last=pl.lit(0), step=pl.lit(None), event="named_by",
    )  # fmt: skip
    return conform(items, _SCHEMA)


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
    waited = frame.filter(pl.col("waited") > 0)["waited"].quantile(IDLE_LAUNCH_QUANTILE) or 0
    typical = max(0, min(int(waited), LAUNCH_LATENCY_NS))
    frame = frame.with_columns(
        kind=pl.lit(native.WORK, dtype=pl.UInt8),
        delay_ns=pl.lit(typical, dtype=pl.Int64),
        last=pl.lit(0, dtype=pl.UInt8),
    )
    return conform(frame.sort("at", maintain_order=True), _SCHEMA)


def _waits(trace: Trace) -> pl.DataFrame:
    rows = trace.events.filter(is_wait(trace))
    items = rows.select(
        at=pl.col("start_ns") + pl.col("dur_ns"), kind=pl.lit(native.WAIT), track="track", stream=pl.lit(0),
        device_ns=pl.lit(0), delay_ns=pl.lit(0), last=pl.lit(0), step="step", event="id",
    )  # fmt: skip
    return conform(items, _SCHEMA)


def _inside_regions(points: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """The points inside a pass, with the moment at which it begins."""
    place = windows["start_ns"].search_sorted(points["at"], side="right").cast(pl.Int64) - 1
    at = place.clip(lower_bound=0)
    inside = (place >= 0) & (points["at"] <= windows["end_ns"].gather(at))
    return points.with_columns(begins=windows["start_ns"].gather(at)).filter(inside)


def _begins(windows: pl.DataFrame) -> pl.DataFrame:
    """Before each pass the capture waited for the device."""
    items = windows.select(
        at="start_ns", kind=pl.lit(native.WAIT), track="track", stream=pl.lit(0), device_ns=pl.lit(0), delay_ns=pl.lit(0),
        last=pl.lit(0), step="step", event=pl.lit(None),
    )  # fmt: skip
    return conform(items, _SCHEMA)


def _ends(windows: pl.DataFrame) -> pl.DataFrame:
    items = windows.select(
        at="end_ns", kind=pl.lit(native.WORK), track="track", stream=pl.lit(0), device_ns=pl.lit(0), delay_ns=pl.lit(0),
        last=pl.lit(1), step="step", event=pl.lit(None),
    )  # fmt: skip
    return conform(items, _SCHEMA)
