"""What would the step take if …: the recorded steps played again with a change applied.

The host is one line of work: what happened between one launch and the next, on the threads that launch, without the time
it spent waiting for the device. Streams run what they are given, in order, no earlier than a launch delay after it
was launched. A change makes some host time or device time shorter, or drops waits; the rest follows.
The replay of the unchanged steps is compared with what was recorded, so that a promise rests on the difference alone.

Profiling makes the host slower than it is, and a promise for the job as it runs must not count that. What a stretch of host
time takes without the profiler is known within bounds (unprofiled_host.py): the plan holds it for a fast, the usual and
a slow host, and `at` chooses one. `as_recorded` plays the host's time with the profiler's share.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from stepscope.analysis.account.charge import Charger
from stepscope.analysis.account.host_timeline import host_timeline, main_track
from stepscope.analysis.account.unrecorded_waits import unrecorded_waits
from stepscope.analysis.host.causes import host_causes, is_wait, or_null
from stepscope.analysis.host.names import COPYING_THREAD
from stepscope.analysis.host.tracks import by_track
from stepscope.analysis.part_column import Part
from stepscope.analysis.parts import PARTS
from stepscope.analysis.replay.awaited import awaited
from stepscope.analysis.replay.blocked import full_queue
from stepscope.analysis.replay.copies_in_turn import streams_in_turn
from stepscope.analysis.replay.hidden_waits import hidden_waits
from stepscope.analysis.replay.late_waits import with_late_waits
from stepscope.analysis.replay.queue_gaps import queue_gaps
from stepscope.analysis.steps.find import Steps
from stepscope.analysis.steps.host_runs import host_runs
from stepscope.lazy import dataclass
from stepscope.native.host import replay as native
from stepscope.native.host.work import FULL, NONE, WAITS, HostWork
from stepscope.registers.calibration.launches import LAUNCH_LATENCY_NS
from stepscope.registers.levels import IDLE_LAUNCH_QUANTILE
from stepscope.trace.columns import buffer, series
from stepscope.trace.frames import conform, take_largest
from stepscope.trace.trace import Trace

# The host's time without the profiler: at best, as expected, at worst.
FAST, USUAL, SLOW = SPEEDS = ("fast_ns", "ns", "slow_ns")
# How long work keeps its stream; none that a change took away.
_OCCUPIED = (
    pl.when(pl.col("device_ns") > 0).then(pl.col("device_ns") + pl.col("gap_ns")).otherwise(0).cast(pl.Int64)
)
_Columns = tuple[memoryview, memoryview, memoryview, memoryview, memoryview, memoryview, memoryview, int]


@dataclass(frozen=True)
class Plan:
    """Items in the order in which the host came to them, and the host's work before each, by cause.

    `items`: item, at, track, kind, stream, device_ns, delay_ns, gap_ns (see `queue_gaps`), back (see `awaited`), last, step, event, added_ns (host time that a change adds). `host`: item, cause, named_by, event,
    recorded_ns, and without the profiler ns, fast_ns and slow_ns, in the order of the items. `until`: how many of its rows come up to each item.
    `counted`: the places of the steps whose lengths count, all if None. `from_empty`: the first step finds an empty queue,
    as that of a recording does, and not what a job that goes on leaves behind.
    """

    items: pl.DataFrame
    host: pl.DataFrame
    until: pl.Series
    streams: int
    counted: Sequence[int] | None = None
    from_empty: bool = False

    def step_ns(self) -> float:
        """The mean length of a step, played as the plan stands."""
        lengths = self.lengths() if self.from_empty else self._lengths_later()
        if self.counted is not None:
            lengths = [lengths[place] for place in self.counted if place < len(lengths)]
        return sum(lengths) / len(lengths) if lengths else 0.0

    def lengths(self) -> list[int]:
        """The length of each step, replayed."""
        if self.items.is_empty():
            return []
        ends = native.replay(*self._columns())
        return [end - begin for begin, end in zip([0, *ends], ends, strict=False)]

    def _lengths_later(self) -> list[int]:
        """The length of each step when all come once more, behind themselves: a recording begins with an empty queue, a job does not."""
        if self.items.is_empty():
            return []
        kind, host, stream, device, delay, back, last, streams = self._columns()
        played = (_twice(column) for column in (kind, host, stream, device, delay, back, last))
        kind, host, stream, device, delay, back, last = played
        ends = native.replay(kind, host, stream, device, delay, back, last, streams)
        first = len(ends) // 2
        return [end - begin for begin, end in zip(ends[first - 1 :], ends[first:], strict=False)]

    def busiest_ns(self) -> int:
        """What the busiest stream has to do; work that begins before the end of other work overlaps with it."""
        busy = pl.when(pl.col("device_ns") > 0).then(pl.col("device_ns") + pl.min_horizontal("gap_ns", 0))
        by_stream = self.items.group_by("stream").agg(device_ns=busy.sum())["device_ns"]
        return int(take_largest(by_stream))

    def critical_path(self) -> pl.DataFrame:
        """place (of the step), item, what (`native.HOST`, `LAUNCH` or `DEVICE`), in time order.

        What decided when each step was over: each waited for the one before it, and for nothing that took longer.
        """
        if self.items.is_empty():
            return pl.DataFrame(schema={"place": pl.UInt32, "item": pl.UInt32, "what": pl.UInt8})
        place, item, what, _ = native.critical_path(*self._columns())
        found = pl.DataFrame(
            {
                "place": series("place", place, pl.UInt32),
                "item": series("item", item, pl.UInt32),
                "what": series("what", what, pl.UInt8),
            }
        )
        return found.reverse()

    def _columns(self) -> _Columns:
        """What the native loops take."""
        before = self._host_ns() + self.items["added_ns"]
        return (
            buffer(self.items["kind"]),
            buffer(before),
            buffer(self.items["stream"]),
            buffer(self.items.select(_OCCUPIED).to_series()),
            buffer(self.items["delay_ns"]),
            buffer(self.items["back"]),
            buffer(self.items["last"]),
            self.streams,
        )

    def _host_ns(self) -> pl.Series:
        """The host's work before each item."""
        return sums(self.host["ns"], self.until)

    def as_recorded(self) -> Plan:
        """The recording itself: with the profiler's share of the host's time, and an empty queue before it."""
        return replace(self.at("recorded_ns"), from_empty=True)

    def at(self, speed: str) -> Plan:
        """The same on a host of that speed: one of `SPEEDS`."""
        return self if speed == USUAL else replace(self, host=self.host.with_columns(ns=speed))

    def counting(self, places: Sequence[int]) -> Plan:
        """The same, with the lengths of some steps only."""
        return replace(self, counted=places)

    def with_host(self, matches: pl.Expr, factor: float | pl.Expr = 0.0) -> Plan:
        """The host's work of some causes or names takes `factor` of its time."""
        shorter = [
            pl.when("matches").then(_part_of(name, factor)).otherwise(name).alias(name)
            for name in (*SPEEDS, "recorded_ns")
        ]
        matched = self.host.with_columns(matches=matches)  # once for all of them
        return replace(self, host=matched.with_columns(shorter).drop("matches"))

    def with_device(self, matches: pl.Expr, factor: float | pl.Expr = 0.0) -> Plan:
        """Some device work takes `factor` of its time, with the gap before it."""
        changed = [
            pl.when(matches).then((pl.col(name) * factor).cast(pl.Int64)).otherwise(pl.col(name)).alias(name)
            for name in ("device_ns", "gap_ns")
        ]
        return replace(self, items=self.items.with_columns(changed))

    def without_waits(self, matches: pl.Expr | None = None) -> Plan:
        """The host does not wait for the device, nor for what a runtime does behind it."""
        chosen = (pl.col("kind") == native.WAIT) & (pl.lit(True) if matches is None else matches)
        gone = self.items.select(chosen.fill_null(False)).to_series()
        kind = pl.when(pl.lit(gone)).then(native.WORK).otherwise(pl.col("kind"))
        plan = replace(self, items=self.items.with_columns(kind=kind.cast(pl.UInt8)))
        late = pl.lit(gone.gather(self.host["item"])) & (pl.col("cause") == "sync")
        return plan.with_host(late)

    def combined(self, other: Plan) -> Plan:
        """The changes of both plans, which come from one: what either makes shorter is shorter, what either drops is dropped."""
        lower = [pl.min_horizontal(name, other.host[name]).alias(name) for name in (*SPEEDS, "recorded_ns")]
        theirs = other.items
        items = self.items.with_columns(
            device_ns=pl.min_horizontal("device_ns", theirs["device_ns"]),
            gap_ns=pl.min_horizontal("gap_ns", theirs["gap_ns"]),
            added_ns=pl.max_horizontal("added_ns", theirs["added_ns"]),
            kind=pl.min_horizontal("kind", theirs["kind"]),
            stream=pl.max_horizontal("stream", theirs["stream"]),
        )
        streams = max(self.streams, other.streams)
        return replace(self, items=items, host=self.host.with_columns(lower), streams=streams)

    def on_own_stream(self, matches: pl.Expr) -> Plan:
        """Some device work runs beside the rest."""
        stream = pl.when(matches).then(pl.lit(self.streams, dtype=pl.UInt32)).otherwise(pl.col("stream"))
        return replace(self, items=self.items.with_columns(stream=stream), streams=self.streams + 1)


def _twice(column: memoryview) -> memoryview:
    """A column followed by itself."""
    doubled, content = array(column.format), column.cast("B")
    doubled.frombytes(content)
    doubled.frombytes(content)
    return memoryview(doubled)


def _part_of(name: str, factor: float | pl.Expr) -> pl.Expr:
    if isinstance(factor, float | int) and not factor:
        return pl.lit(0, pl.Int64)
    return (pl.col(name) * factor).cast(pl.Int64)


def recorded_plan(trace: Trace, steps: Steps, device: int | None) -> tuple[Plan, pl.DataFrame]:
    """The steps of one device as items to play, all as recorded; and gap, start_ns, end_ns, track, main of the host's time before each."""
    if device is None and len(host_runs(trace)):
        steps = steps.as_run()
    points = _points(trace, steps, device)
    main = main_track(trace, steps)
    spans = _spans_before(points, steps)
    if device is None and not (points["device_ns"] > 0).any():
        host = _charged_work(trace, steps, spans)
    else:
        host = with_late_waits(trace, steps, points, _host_work(trace, steps, spans, main))
    items = points.select(
        "item",
        "at",
        "track",
        "kind",
        "stream",
        "device_ns",
        "delay_ns",
        "gap_ns",
        "last",
        "step",
        "event",
        back=awaited(trace, points),
        added_ns=pl.lit(0, pl.Int64),
    )
    streams = take_largest(items["stream"]) + 1
    until = host["item"].search_sorted(items["item"], side="right")
    same = [pl.col("recorded_ns").alias(name) for name in SPEEDS]
    return Plan(items, host.with_columns(same), until, streams), spans.with_columns(
        main=pl.lit(main, pl.UInt32)
    )


def _charged_work(trace: Trace, steps: Steps, spans: pl.DataFrame) -> pl.DataFrame:
    """The same where the host itself computes, as the account has it: a thread that waits for others of the host waits for their work.

    That work is on no stream: without it, the step would end too early.
    """
    pieces = Charger(trace, steps, host_only=True).charge(spans).sort("gap", "start_ns", maintain_order=True)
    return pieces.select(
        event="named_by",
        item="gap",
        cause="part",
        named_by="named_by",
        recorded_ns=pl.col("end_ns") - pl.col("start_ns"),
    )


def _host_work(trace: Trace, steps: Steps, spans: pl.DataFrame, main: int) -> pl.DataFrame:
    """item, cause, named_by, event, recorded_ns: what the host worked on before each item, without its waits."""
    timeline, causes = host_timeline(trace), host_causes(trace)
    silent = _unseen_waits(trace, steps)
    full, usual = full_queue(trace)
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


def sums(values: pl.Series, until: pl.Series) -> pl.Series:
    """The sums of values that follow one another, up to each of the places."""
    return series("", native.sums_between(buffer(values), buffer(until)), pl.Int64)


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
    unseen = _unseen_waits(trace, steps)
    waits = pl.concat([_waits(trace), _silent_waits(unseen), _starts_of_waits(hidden_waits(trace, steps))])
    found = pl.concat([_launches(trace, device), waits, _ends(windows)])
    inside = found.filter(pl.col("at") >= low, pl.col("at") <= high)
    if steps.region is not None:
        inside = _inside_regions(pl.concat([inside, _begins(windows)]), windows)
    # The end of a step comes after everything that ended with it.
    return inside.sort("at", "last", maintain_order=True).with_row_index("item")


def _unseen_waits(trace: Trace, steps: Steps) -> pl.DataFrame:
    """Waits without an event: of JAX and TensorFlow, and inside ops of PyTorch."""
    return pl.concat([unrecorded_waits(trace, steps), hidden_waits(trace, steps)])


def _starts_of_waits(waits: pl.DataFrame) -> pl.DataFrame:
    """Items without work: they separate the host's work in an op from the wait after it."""
    items = _silent_waits(waits.with_columns(end_ns="start_ns"))
    return items.with_columns(kind=pl.lit(native.WORK, dtype=pl.UInt8), event=pl.lit(None, pl.UInt32))


def _silent_waits(waits: pl.DataFrame) -> pl.DataFrame:
    items = waits.select(
        at="end_ns", kind=pl.lit(native.WAIT), track="track", stream=pl.lit(0), device_ns=pl.lit(0), delay_ns=pl.lit(0), gap_ns=pl.lit(0),
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
    "gap_ns": pl.Int64,
    "last": pl.UInt8,
    "step": pl.Int32,
    "event": pl.UInt32,
}


def _launches(trace: Trace, device: int | None) -> pl.DataFrame:
    events = trace.events
    streams = trace.tracks.filter((pl.col("what") == "device") & pl.col("device").eq_missing(device))["id"]
    numbers = {track: number for number, track in enumerate(streams.to_list())}
    numbers |= {track: numbers[main] for track, main in streams_in_turn(trace, streams).items()}
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
        waited=(start - at), start=start, step=events["step"].gather(rows["event"]),
    )  # fmt: skip
    # What a launch takes on an idle device; longer waits come from the queue and are played, not assumed.
    waited = frame.filter(pl.col("waited") > 0)["waited"].quantile(IDLE_LAUNCH_QUANTILE) or 0
    typical = max(0, min(int(waited), LAUNCH_LATENCY_NS))
    frame = frame.with_columns(
        kind=pl.lit(native.WORK, dtype=pl.UInt8),
        delay_ns=pl.lit(typical, dtype=pl.Int64),
        gap_ns=queue_gaps(frame),
        last=pl.lit(0, dtype=pl.UInt8),
    )
    return conform(frame.sort("at", maintain_order=True), _SCHEMA)


def _waits(trace: Trace) -> pl.DataFrame:
    """Waits of the threads that launch; those of threads of the runtime delay no other."""
    aside = by_track(trace, pl.col("thread").str.contains(COPYING_THREAD)).gather(trace.events["track"])
    rows = trace.events.filter(is_wait(trace) & ~aside.fill_null(False))
    items = rows.select(
        at=pl.col("start_ns") + pl.col("dur_ns"), kind=pl.lit(native.WAIT), track="track", stream=pl.lit(0),
        device_ns=pl.lit(0), delay_ns=pl.lit(0), gap_ns=pl.lit(0), last=pl.lit(0), step="step", event="id",
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
        at="start_ns", kind=pl.lit(native.WAIT), track="track", stream=pl.lit(0), device_ns=pl.lit(0), delay_ns=pl.lit(0), gap_ns=pl.lit(0),
        last=pl.lit(0), step="step", event=pl.lit(None),
    )  # fmt: skip
    return conform(items, _SCHEMA)


def _ends(windows: pl.DataFrame) -> pl.DataFrame:
    items = windows.select(
        at="end_ns", kind=pl.lit(native.WORK), track="track", stream=pl.lit(0), device_ns=pl.lit(0), delay_ns=pl.lit(0), gap_ns=pl.lit(0),
        last=pl.lit(1), step="step", event=pl.lit(None),
    )  # fmt: skip
    return conform(items, _SCHEMA)
