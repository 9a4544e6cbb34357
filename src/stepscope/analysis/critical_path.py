"""The critical path of each step: the chain of host work, launches, device work and waits that decides its length.

The replay knows what every launch, kernel and wait waited for last; walked back from the end of a step, that is its path. The path is
then laid over the recorded time of the step: what it names has its recorded time, and time that it leaves open is
charged as in the account. So it fills the step, and what it shows as host or device work decides the replayed step too.
Where there is nothing to replay, or the replay is not as long as the recording, the account alone is laid over the step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import polars as pl

from stepscope.analysis.account.host_timeline import cut_by, host_timeline, main_track, within
from stepscope.analysis.account.places import BEFORE, END, places
from stepscope.analysis.account.unrecorded_waits import unrecorded_waits
from stepscope.analysis.host.causes import host_causes
from stepscope.analysis.parts import BUSY_PARTS, PARTS, spoken
from stepscope.analysis.replay.blocked import full_queue
from stepscope.analysis.replay.plan import Plan
from stepscope.analysis.steps.find import Steps
from stepscope.lazy import dataclass
from stepscope.native import order
from stepscope.native.host import replay as native
from stepscope.registers.calibration.launches import LAUNCH_LATENCY_NS
from stepscope.registers.policy.findings import REPLAY_FITS
from stepscope.trace.columns import buffer, series
from stepscope.trace.frames import Schema, conform, take_largest
from stepscope.trace.trace import Trace

KINDS = ("host", "launch", "device", "wait", "gap")
Kind = pl.Enum(KINDS)
PATH: Schema = {
    "step": pl.Int32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "event": pl.UInt32,
    "kind": Kind,
    "name": pl.String,
    "before": pl.Boolean,
}
# What a row without an event of its own is called.
LATENCY, QUEUED = "launch latency", "queued on the device"
UNRECORDED, SILENT_WAIT = "host, nothing recorded", "wait for the device"
_TITLES = {part: spoken(part) for part in PARTS}
_Label = pl.Enum([LATENCY, QUEUED, UNRECORDED, SILENT_WAIT, *_TITLES.values()])
_ROWS: Schema = {
    "step": pl.Int32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "kind": Kind,
    "event": pl.UInt32,
    "label": _Label,
    "before": pl.Boolean,
}
_NODES: Schema = {**_ROWS, "track": pl.UInt32, "low": pl.Int64, "high": pl.Int64}


@dataclass(frozen=True)
class CriticalPath:
    """`pieces`: step, start_ns, end_ns, kind, event, label, before; they fill each step in time order. `names`: of the events.

    `before`: the event did not spend the time, it came next.

    `source`: replay, or account where there was nothing to replay or the replay did not fit.
    """

    pieces: pl.DataFrame
    names: pl.Series
    source: str

    @cached_property
    def rows(self) -> pl.DataFrame:
        """step, start_ns, end_ns, event, kind, name, before."""
        return conform(self._named(self.pieces), PATH)

    def by_name(self) -> pl.DataFrame:
        """kind, name, before, ns, count, event and step of the longest one, for what has the same kind and name."""
        rows = self.pieces.select(self._numbered().alias("key"), ns=pl.col("end_ns") - pl.col("start_ns"))
        summed = rows.group_by("key").agg(pl.col("ns").sum(), count=pl.len())
        longest = order.largest_of_each(
            buffer(rows["key"]), buffer(rows["ns"]), take_largest(rows["key"], -1) + 1
        )
        first = self.pieces[series("row", longest, pl.UInt32).gather(summed["key"])]
        found = first.select("kind", "label", "before", "event", "step").hstack(summed.select("ns", "count"))
        return self._named(found).select("kind", "name", "before", "ns", "count", "event", "step")

    def _numbered(self) -> pl.Series:
        """A number for each kind and name. Of names only their own numbers count: there are as many pieces as events."""
        pieces = self.pieces
        label, name = pieces["label"].to_physical(), self.names.to_physical().gather(pieces["event"])
        labels = len(_Label.categories)
        what = pl.coalesce(
            label.cast(pl.UInt32), name.cast(pl.UInt32) + labels + 1, pl.lit(labels, pl.UInt32)
        )
        kind = pl.when(pieces["before"]).then(len(KINDS)).otherwise(pieces["kind"].to_physical())
        return pl.select(what * (len(KINDS) + 1) + kind.cast(pl.UInt32)).to_series()

    def _named(self, rows: pl.DataFrame) -> pl.DataFrame:
        name = self.names.gather(rows["event"]).cast(pl.String)
        return rows.with_columns(name=pl.coalesce(pl.col("label").cast(pl.String), name, pl.lit("")))


def critical_path(
    trace: Trace, steps: Steps, device: int | None, plan: Callable[[], Plan], slices: pl.DataFrame
) -> CriticalPath:
    """The path of each step on the device; `slices` are those of its account."""
    windows = steps.windows.filter(pl.col("device").eq_missing(device)).sort("start_ns")
    windows = windows.select("step", low="start_ns", high="end_ns").unique("step", maintain_order=True)
    mine = slices.filter(pl.col("device").eq_missing(device)).sort("start_ns")
    made = plan().as_recorded() if device is not None and len(windows) else None
    if made is None or not _fits(made, windows):
        return CriticalPath(_by_account(_placed(trace, mine)), trace.events["name"], "account")
    reached = _reached(_nodes(trace, made, windows))
    pieces = _pieces(reached)
    is_host = pl.col("kind") == "host"
    rows = [
        conform(pieces.filter(~is_host), _ROWS),
        _host_rows(trace, steps, pieces.filter(is_host)),
        _open_time(_holes(reached, windows), _placed(trace, mine)),
    ]
    return CriticalPath(pl.concat(rows).sort("start_ns"), trace.events["name"], "replay")


def _fits(plan: Plan, windows: pl.DataFrame) -> bool:
    """Whether work was launched on the device, and the replayed steps are about as long as the recorded ones."""
    if not (plan.items["device_ns"] > 0).any():
        return False
    played, recorded = sum(plan.lengths()), int((windows["high"] - windows["low"]).sum())
    return abs(played / recorded - 1) <= REPLAY_FITS


def _nodes(trace: Trace, plan: Plan, windows: pl.DataFrame) -> pl.DataFrame:
    """What the replay's path names, in its order and with the time at which it was recorded."""
    items, found = plan.items, plan.critical_path()
    ends = items.filter(pl.col("last") == 1)["step"]
    known = items.select(
        "at", "event", "track", "device_ns", before=pl.col("at").shift(1, fill_value=windows["low"].min())
    ).with_columns(begin=trace.events["start_ns"].gather(items["event"]))
    rows = pl.concat([found, known[found["item"]]], how="horizontal")
    rows = rows.with_columns(step=ends.gather(rows["place"]))
    rows = rows.join(windows, on="step", how="inner", maintain_order="left").with_row_index("order")
    what = pl.col("what")
    parts = [
        _at(rows.filter(what == native.HOST), "host", "before", "at"),
        _at(rows.filter(what == native.DEVICE), "device", "begin", pl.col("begin") + pl.col("device_ns")),
        *_launches(rows.filter(what == native.LAUNCH)),
    ]
    return conform(pl.concat(parts).sort("order", maintain_order=True), _NODES)


def _launches(rows: pl.DataFrame) -> list[pl.DataFrame]:
    """From each launch to its work; what is longer than launches take, the work was queued."""
    ready = pl.min_horizontal(pl.col("at") + LAUNCH_LATENCY_NS, "begin")
    return [_at(rows, "launch", "at", ready, LATENCY), _at(rows, "wait", ready, "begin", QUEUED)]


def _at(
    rows: pl.DataFrame, kind: str, start: str | pl.Expr, end: str | pl.Expr, label: str | None = None
) -> pl.DataFrame:
    start, end = (pl.col(each) if isinstance(each, str) else each for each in (start, end))
    known = {"kind": _kind(kind), "label": pl.lit(label, _Label), "before": pl.lit(False)}
    return rows.with_columns(start_ns=start, end_ns=end, **known)


def _kind(name: str) -> pl.Expr:
    return pl.lit(name, dtype=Kind)


def _reached(nodes: pl.DataFrame) -> pl.DataFrame:
    """The nodes with `reach`: how far those before them in the step have come."""
    before = pl.min_horizontal("end_ns", "high").cum_max().shift(1).over("step")
    return nodes.with_columns(reach=pl.max_horizontal(before, "low"))


def _pieces(reached: pl.DataFrame) -> pl.DataFrame:
    """What each node adds to the time that is reached."""
    found = reached.with_columns(
        start_ns=pl.max_horizontal("start_ns", "reach"), end_ns=pl.min_horizontal("end_ns", "high")
    )
    return found.filter(pl.col("start_ns") < pl.col("end_ns"))


def _holes(reached: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """step, start_ns, end_ns of the time that no node covers: between them, and at the end of each step."""
    between = reached.select("step", start_ns="reach", end_ns=pl.min_horizontal("start_ns", "high"))
    come = reached.group_by("step").agg(reach=pl.min_horizontal("end_ns", "high").max())
    tails = windows.join(come, on="step", how="left").select(
        "step", start_ns=pl.max_horizontal("low", "reach"), end_ns="high"
    )
    return pl.concat([between, tails]).filter(pl.col("start_ns") < pl.col("end_ns")).sort("start_ns")


def _host_rows(trace: Trace, steps: Steps, spans: pl.DataFrame) -> pl.DataFrame:
    """What the thread of each span did; while it did nothing it waited for the main one, and what that did counts."""
    timeline, main = host_timeline(trace), main_track(trace, steps)
    spans = spans.with_columns(gap="step")
    cut = timeline.cut(spans)
    is_open = pl.col("event").is_null() & (pl.col("track") != main)
    inside = timeline.cut(cut.filter(is_open).with_columns(track=pl.lit(main, pl.UInt32)))
    rows = pl.concat([cut.filter(~is_open), inside]).rename({"gap": "step"})
    return _with_waits(trace, steps, rows)


def _with_waits(trace: Trace, steps: Steps, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with their kind; the marker of a step says nothing about what ran in it."""
    waiting = host_causes(trace)["waits"] | full_queue(trace)[0]
    waits = waiting.gather(rows["event"]).fill_null(False)
    is_marker = (trace.events["role"] == "step").fill_null(False).gather(rows["event"]).fill_null(False)
    silent = unrecorded_waits(trace, steps)
    quiet = within(rows["start_ns"], silent["start_ns"], silent["end_ns"] - 1)
    quiet = quiet & (rows["event"].is_null() | is_marker)
    event = pl.when(~is_marker).then("event")
    unknown = pl.when(event.is_null()).then(pl.lit(UNRECORDED, dtype=_Label))
    rows = rows.with_columns(
        kind=pl.when(waits | quiet).then(_kind("wait")).otherwise(_kind("host")),
        event=event,
        label=pl.when(quiet).then(pl.lit(SILENT_WAIT, dtype=_Label)).otherwise(unknown),
        before=pl.lit(False),
    )
    return conform(rows, _ROWS)


def _open_time(holes: pl.DataFrame, slices: pl.DataFrame) -> pl.DataFrame:
    """Time that the replay leaves open, by the account: a wait for other work of the device, or a gap."""
    cut = cut_by(holes, slices.select("start_ns", "end_ns").with_row_index("id"))
    rows = cut.with_columns(
        step=holes["step"].gather(cut["row"]),
        part=slices["part"].gather(cut["owner"]),
        event=slices["named_by"].gather(cut["owner"]),
        before=slices["before"].gather(cut["owner"]).fill_null(False),
    )
    is_busy = pl.col("part").cast(pl.String).is_in(BUSY_PARTS).fill_null(False)
    rows = rows.with_columns(kind=pl.when(is_busy).then(_kind("wait")).otherwise(_kind("gap")))
    return _labelled(rows)


def _placed(trace: Trace, slices: pl.DataFrame) -> pl.DataFrame:
    """The slices with `before`: whether what names one came next. At the end of a step nothing did: then no event is named."""
    place = places(trace, slices)
    named = pl.when((place != END).fill_null(True)).then("named_by")
    return slices.with_columns(before=(place == BEFORE).fill_null(False), named_by=named)


def _by_account(slices: pl.DataFrame) -> pl.DataFrame:
    """The account as a path: work of the device, waits for it, gaps without an event, and else the host."""
    part = pl.col("part").cast(pl.String)
    kind = (
        pl.when(part.is_in(BUSY_PARTS))
        .then(_kind("device"))
        .when(part == "sync")
        .then(_kind("wait"))
        .when(pl.col("named_by").is_null() | pl.col("before") | (part == "device_gap"))
        .then(_kind("gap"))
        .otherwise(_kind("host"))
    )
    return _labelled(slices.with_columns(event="named_by", kind=kind))


def _labelled(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows without an event are called by their part of the account."""
    part = pl.col("part").fill_null("unexplained").cast(pl.String)
    title = part.replace_strict(_TITLES, return_dtype=_Label)
    return conform(rows.with_columns(label=pl.when(pl.col("event").is_null()).then(title)), _ROWS)
