"""Rows that no file has: the steps, what the program calls their phases, the account of each device, the critical path and the findings.

They are worked out when they are first asked for; the trace is on the screen before that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import polars as pl

from stepscope.analysis.account.places import BEFORE, places
from stepscope.analysis.context import RankContext
from stepscope.analysis.critical_path import PATH as PATH_SCHEMA
from stepscope.analysis.options import Options
from stepscope.analysis.parts import PARTS
from stepscope.analysis.phases import phase_spans
from stepscope.analysis.steps.find import Steps
from stepscope.reports.wording.parts import part
from stepscope.server.runs.owned import kept_owned_time, owned_time
from stepscope.server.timeline import styles
from stepscope.server.timeline.details import thread_name
from stepscope.server.timeline.pivot import steps_of
from stepscope.server.timeline.store import Store, store_of_spans
from stepscope.server.timeline.view import View, lean
from stepscope.trace.trace import Trace

PATH = "path"
LAYERS = ("steps", "phases", "account", PATH, "findings")
_SOURCES = {
    "marker": "marked by", "annotation": "the annotation", "program": "the program", "inferred": "found by repetition",
    "whole": "no steps, the whole recording",
}  # fmt: skip


class LayerRow(msgspec.Struct):
    """A row and its heading."""

    row: int
    title: str
    detail: str


@dataclass(frozen=True)
class Layer:
    """`spans` has a row for each slice, in the order of its number: row, start_ns, dur_ns, name, style and more."""

    rows: list[LayerRow]
    store: Store
    spans: pl.DataFrame = field(repr=False)


def layer_of(view: View, name: str) -> Layer:
    """The layer; NotYet while it is worked out."""
    return view.run.later(f"timeline {name} {view.name}", lambda: lean(_make(view, name)), _STAGES[name])


_STAGES = {
    "steps": "finding steps",
    "phases": "finding phases",
    "account": "working out the account",
    "findings": "looking for the findings",
    PATH: "finding the critical path",
}


def _make(view: View, name: str) -> Layer:
    if name == "account":
        return _account(view.trace, view.rank)
    if name == "findings":
        return _findings(view)
    if name == PATH:
        return _path(view.trace, view.rank)
    steps = steps_of(view)
    return _steps(view.trace, steps) if name == "steps" else _phases(view.trace, steps)


def _layer(rows: list[LayerRow], spans: pl.DataFrame, names: list[str]) -> Layer:
    ordered = spans.sort("row", "start_ns", maintain_order=True)
    return Layer(rows, store_of_spans(ordered, names), ordered)


def _steps(trace: Trace, steps: Steps) -> Layer:
    """A row as the host marks them, and one for each device, on which they end later."""
    told = " ".join(word for word in (_SOURCES.get(steps.source, ""), steps.name) if word)
    host = steps.host.select(
        "step",
        "start_ns",
        "end_ns",
        row=pl.lit(0),
        device=pl.lit(None, dtype=pl.Int32),
        partial=pl.lit(False),
    )
    rows = [LayerRow(0, "Steps", f"as the host marks them: {told}")] if len(host) else []
    frames = [host]
    devices = [device for device in steps.windows["device"].unique(maintain_order=True) if device is not None]
    for device in devices:
        rows.append(
            LayerRow(len(frames), f"Steps on {_device(trace, device)}", "until the device is done with each")
        )
        windows = steps.windows.filter(pl.col("device") == device)
        frames.append(
            windows.select("step", "start_ns", "end_ns", "device", "partial", row=pl.lit(len(frames)))
        )
    spans = pl.concat(frames, how="diagonal_relaxed").with_columns(
        dur_ns=pl.col("end_ns") - pl.col("start_ns"),
        style=styles.STEP + pl.col("step") % 2,
        label=pl.format("step {}", "step")
        + pl.when("partial").then(pl.lit(" (recorded in part)")).otherwise(pl.lit("")),
    )
    return _named(rows, spans)


def _phases(trace: Trace, steps: Steps) -> Layer:
    """The outermost annotations inside the steps."""
    found = phase_spans(trace, steps)
    looks = {name: styles.of_name(name) for name in found["name"].unique()}
    spans = found.with_columns(
        row=pl.lit(0),
        dur_ns=pl.col("end_ns") - pl.col("start_ns"),
        style=pl.col("name").replace_strict(looks, return_dtype=pl.UInt32, default=0),
        label="name",
    )
    rows = [LayerRow(0, "Phases", "the program's own outermost annotations")] if len(found) else []
    return _named(rows, spans.drop("name"))


def _named(rows: list[LayerRow], spans: pl.DataFrame) -> Layer:
    """Spans with a label, as the names of a store and their numbers."""
    names = spans["label"].unique().sort().to_list()
    number = {name: at for at, name in enumerate(names)}
    name = pl.col("label").replace_strict(number, return_dtype=pl.UInt32, default=0)
    return _layer(rows, spans.with_columns(name=name), names)


def _account(trace: Trace, rank: int) -> Layer:
    """Which part of the account each moment of a device belongs to."""
    slices = RankContext(rank, trace, Options()).account.slices
    devices = slices["device"].unique(maintain_order=True).to_list()
    rows = [
        LayerRow(at, f"Account{_of(trace, device)}", "where each moment of the steps went")
        for at, device in enumerate(devices)
    ]
    place = pl.Series(devices, dtype=pl.Int32)
    row = pl.repeat(0, len(slices), dtype=pl.UInt32, eager=True)
    for at, device in enumerate(place):
        row = row.set(slices["device"].eq_missing(device), at)
    spans = slices.with_columns(
        row=row,
        dur_ns=pl.col("end_ns") - pl.col("start_ns"),
        name=pl.col("part").to_physical().cast(pl.UInt32),
        style=pl.col("part").to_physical().cast(pl.UInt32) + styles.BY_NAME,
    )
    return _layer(rows, spans, [part(name).title for name in PARTS])


def _findings(view: View) -> Layer:
    """A row for each finding: the time that it owns, in the colour of the part that it is of."""
    context = RankContext(view.rank, view.trace, Options())
    is_alone = view.is_in_its_time and len(view.run.profile.ranks) == 1  # several ranks agree on their steps
    owned = kept_owned_time(view.run, context) if is_alone else owned_time(context)
    found = owned.select("code", "title").unique(maintain_order=True)
    rows = [
        LayerRow(at, title, f"finding {code}: the time that it owns")
        for at, (code, title) in enumerate(found.iter_rows())
    ]
    place = found.select("code", row=pl.int_range(pl.len(), dtype=pl.Int32))
    spans = owned.join(place, on="code", how="left", maintain_order="left").with_columns(
        dur_ns=pl.col("end_ns") - pl.col("start_ns"),
        name=pl.col("row").cast(pl.UInt32),
        style=pl.col("part").to_physical().cast(pl.UInt32) + styles.BY_NAME,
    )
    return _layer(rows, spans.drop("title", "ns"), found["title"].to_list())


def _path(trace: Trace, rank: int) -> Layer:
    """What decides how long each step is, moment by moment."""
    context = RankContext(rank, trace, Options())
    empty = context.windows.windows.is_empty()
    found = None if empty else context.critical_path
    rows = [] if found is None else [LayerRow(0, "Critical path", _PATH_SOURCES[found.source])]
    spans = (pl.DataFrame(schema=PATH_SCHEMA) if found is None else found.rows).with_columns(
        row=pl.lit(0),
        dur_ns=pl.col("end_ns") - pl.col("start_ns"),
        style=pl.col("kind").cast(pl.String).replace_strict(_PATH_STYLES, return_dtype=pl.UInt32, default=0),
        meaning=pl.col("kind")
        .cast(pl.String)
        .replace_strict(_PATH_KINDS, return_dtype=pl.String, default=""),
        label=pl.when("before").then(pl.format("before {}", "name")).otherwise("name"),
        named_by="event",
    )
    return _named(rows, spans.drop("name"))


_PATH_SOURCES = {
    "replay": "what decides how long each step is",
    "account": "the account in the order of time: these steps cannot be replayed",
}
_PATH_KINDS = {
    "host": "The host works, and the step waits for it.",
    "launch": "From a launch to the start of its work.",
    "device": "The device works, and the step waits for it.",
    "wait": "A wait for the device, or for other work of it.",
    "gap": "Nothing that is replayed runs; charged as in the account.",
}
_PATH_STYLES = {
    "host": styles.PART["python"],
    "launch": styles.PART["dispatch"],
    "device": styles.PART["compute"],
    "wait": styles.PART["sync"],
    "gap": styles.PART["device_gap"],
}


def path_at(view: View, at: int) -> int | None:
    """The slice of the critical path at a moment, or the first one after it."""
    spans = layer_of(view, PATH).spans
    place = int((spans["start_ns"] + spans["dur_ns"]).search_sorted(at, side="right"))
    return place if place < len(spans) else None


def _of(trace: Trace, device: int | None) -> str:
    return f" of {_device(trace, device)}" if device is not None else ""


def _device(trace: Trace, device: int) -> str:
    kinds = trace.tracks.filter(pl.col("device") == device)["device_kind"].drop_nulls()
    return f"{str(kinds[0]).upper() if len(kinds) else 'device'} {device}"


def span_details(view: View, name: str, number: int) -> dict[str, Any] | None:
    """What is known of one slice of a layer; None if there is no such slice."""
    layer = layer_of(view, name)
    if not 0 <= number < len(layer.spans):
        return None
    span = layer.spans.row(number, named=True)
    row = layer.store.row_of(number, span["row"], 0, span["start_ns"])
    events = view.trace.events
    named = {
        key: {"id": span[key], "name": str(events["name"][span[key]] or "")}
        for key in ("named_by", "detail")
        if span.get(key) is not None
    }
    return {
        "id": number,
        "name": layer.store.names[span["name"]],
        "start_ns": span["start_ns"],
        "after_ns": span["start_ns"] - view.extent.start_ns,
        "dur_ns": span["dur_ns"],
        "row": row or 0,
        "part": span.get("part"),
        "finding": span.get("code"),
        "meaning": span.get("meaning"),
        "step": span.get("step"),
        "device": _device(view.trace, span["device"]) if span.get("device") is not None else None,
        "thread": thread_name(view.trace, span["thread"]) if span.get("thread") is not None else None,
        "came_next": _came_next(view.trace, layer.spans[number]),
        **named,
    }


def _came_next(trace: Trace, span: pl.DataFrame) -> bool:
    """Whether what names the span did not spend its time, but came next."""
    if "before" in span.columns:
        return bool(span["before"][0])
    if "named_by" not in span.columns or "part" not in span.columns:
        return False
    return bool(
        (places(trace, span.with_columns(end_ns=pl.col("start_ns") + pl.col("dur_ns"))) == BEFORE).any()
    )


def part_totals(view: View, start: int, end: int) -> list[dict[str, Any]]:
    """The account of a range, over all devices."""
    inside = (
        layer_of(view, "account")
        .spans.filter((pl.col("start_ns") < end) & (pl.col("end_ns") > start))
        .select(
            "part",
            ns=pl.min_horizontal("end_ns", pl.lit(end)) - pl.max_horizontal("start_ns", pl.lit(start)),
        )
    )
    sums = inside.group_by("part").agg(pl.col("ns").sum()).sort("ns", descending=True)
    total = max(1, int(sums["ns"].sum()))
    return [{"part": str(name), "ns": ns, "share": ns / total} for name, ns in sums.iter_rows()]
