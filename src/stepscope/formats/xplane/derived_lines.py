"""Lines that an XSpace leaves to its reader: what a GPU's work was for, as steps, modules, ops and name scopes.

Neighbouring pieces of work with the same value become one span. A new run of a program and a new step end a span too, so
that two executions of one module do not melt together over the pause between them.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.formats.xplane.decode import Events
from stepscope.formats.xplane.stats import values_at
from stepscope.formats.xplane.tracks import STREAM
from stepscope.lazy import dataclass
from stepscope.trace.schema import Kind, Text

STEPS_LINE = ("Steps",)
MODULES_LINE = ("XLA Modules",)
OPS_LINE = ("XLA Ops",)
FRAMEWORK_LINE = ("Framework Ops", "TensorFlow Ops")
SCOPES_LINE = ("Framework Name Scope", "TensorFlow Name Scope")

_EXECUTION = r"ExecuteThunks|:XLA GPU module$|XlaLocalLaunch|LocalExecutable::Execute$"
_DEEPEST_SCOPE = 16
_VALUES = {"module": "hlo_module", "op": "hlo_op", "scope": "tf_op"}
# What XLA writes where it knows no op of the framework.
_NO_VALUE = ("", "XlaModule:")


@dataclass
class Derived:
    """Events and tracks to add to those of the file."""

    events: pl.DataFrame
    tracks: pl.DataFrame


def derive(events: pl.DataFrame, known: Events, launches: pl.DataFrame) -> Derived | None:
    """The derived lines of all GPUs that the file has none of, or None where there is nothing to derive from."""
    work = _work(events, known)
    if work.is_empty():
        return None
    work = _with_steps(_with_runs(_with_launch(work, events, launches), events), events)
    lines = [
        line
        for plane in work["plane"].unique().sort()
        for line in _lines(work.filter(pl.col("plane") == plane), known)
    ]
    if not lines:
        return None
    first = len(known.tracks)
    tracks = [line.track(known.tracks, first + i) for i, line in enumerate(lines)]
    found = [
        line.spans.with_columns(track=pl.lit(first + i, dtype=pl.UInt32)) for i, line in enumerate(lines)
    ]
    return Derived(pl.concat(found), pl.concat(tracks))


@dataclass
class _Line:
    name: str
    beside: int
    spans: pl.DataFrame

    def track(self, tracks: pl.DataFrame, number: int) -> pl.DataFrame:
        like = tracks[self.beside]
        return like.with_columns(
            id=pl.lit(number, dtype=like["id"].dtype),
            thread=pl.lit(self.name),
            stream=pl.lit(None, dtype=like["stream"].dtype),
            what=pl.lit("derived", dtype=like["what"].dtype),
            tid=pl.lit(self.name),
        )


def _work(events: pl.DataFrame, known: Events) -> pl.DataFrame:
    """Kernels, copies and fills on streams of GPUs, in order of start."""
    is_gpu = known.tracks["device_kind"] == "gpu"
    stream = [i for i, line_class in enumerate(known.line_classes) if line_class == STREAM and is_gpu[i]]
    wanted = events["track"].is_in(pl.Series(stream, dtype=pl.UInt32).implode())
    wanted &= events["kind"].is_in(["kernel", "copy", "memset"])
    if not stream or not wanted.any():
        return pl.DataFrame()
    rows = events.select(
        pl.int_range(pl.len(), dtype=pl.UInt32).alias("event"),
        "track",
        start="start_ns",
        end=pl.col("start_ns") + pl.col("dur_ns"),
    ).filter(wanted)
    names = {column: _named(known, rows["event"], key) for column, key in _VALUES.items()}
    rows = rows.with_columns(plane=known.tracks["process"].cast(Text).gather(rows["track"]), **names)
    return rows.sort("start", maintain_order=True)


def _named(known: Events, rows: pl.Series, key: str) -> pl.Series:
    """The values of a stat that name something."""
    found = values_at(rows, known.texts(key).rename({"event": "owner"}))
    empty = [value for value in found.unique().drop_nulls().cast(pl.String) if value in _NO_VALUE]
    if not empty:
        return found
    is_empty = found.is_in(pl.Series(empty, dtype=Text).implode())
    return pl.select(pl.when(~is_empty).then(found)).to_series()


def _with_launch(work: pl.DataFrame, events: pl.DataFrame, launches: pl.DataFrame) -> pl.DataFrame:
    """The work with the thread and time of the call that launched it."""
    calls = launches.select(owner="to", value="from")
    if not calls["owner"].is_unique().all():
        calls = calls.unique("owner", keep="first")
    call = values_at(work["event"], calls)
    return work.with_columns(call_track=events["track"].gather(call), call_ns=events["start_ns"].gather(call))


def _with_runs(work: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """The work with a number for the execution of a program that launched it, 0 where none is known."""
    names = events["name"].unique()
    chosen = names.filter(names.cast(pl.String).str.contains(_EXECUTION).fill_null(False))
    runs = events.select(call_track="track", call_ns="start_ns").filter(
        events["name"].is_in(chosen.implode())
    )
    if runs.is_empty():
        return work.with_columns(run=pl.lit(0, dtype=pl.UInt32))
    runs = runs.sort("call_ns").with_row_index("run", offset=1)
    calls = work.select("event", "call_track", "call_ns").drop_nulls().sort("call_ns")
    found = calls.join_asof(runs, on="call_ns", by="call_track", check_sortedness=False)
    run = values_at(work["event"], found.select(owner="event", value="run"))
    return work.with_columns(run=run.fill_null(0))


def _with_steps(work: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """The work with the step whose marker contains its launch."""
    none = pl.lit(None, dtype=pl.Int32).alias("step")
    if "role" not in events.columns:
        return work.with_columns(none)
    markers = events.filter(pl.col("role") == "step").sort("start_ns")
    if markers.is_empty():
        return work.with_columns(none)
    at = markers["start_ns"].search_sorted(work["call_ns"].fill_null(-1), side="right").cast(pl.Int64) - 1
    place = at.clip(lower_bound=0)
    end = (markers["start_ns"] + markers["dur_ns"]).gather(place)
    inside = work["call_ns"].is_not_null() & (at >= 0) & (work["call_ns"] < end)
    return work.with_columns(step=pl.select(pl.when(inside).then(markers["step"].gather(place))).to_series())


def _lines(work: pl.DataFrame, known: Events) -> Iterator[_Line]:
    """The derived lines of one GPU."""
    beside = int(work["track"][0])
    plane = known.tracks["process"][beside]
    present = set(known.tracks.filter(pl.col("process") == plane)["thread"])
    if not present & set(STEPS_LINE):
        yield from _some(STEPS_LINE[0], beside, _steps(work))
    if not present & set(MODULES_LINE):
        yield from _some(MODULES_LINE[0], beside, _merged(work, "module", ["module"], "module"))
    if not present & set(OPS_LINE):
        yield from _some(OPS_LINE[0], beside, _merged(work, "op", ["module", "op"], "scope"))
    if not present & set(FRAMEWORK_LINE):
        yield from _some(FRAMEWORK_LINE[0], beside, _merged(work, "scope", ["module", "scope"], "scope"))
    if not present & set(SCOPES_LINE):
        yield from _some(SCOPES_LINE[0], beside, _name_scopes(work))


def _some(name: str, beside: int, spans: pl.DataFrame) -> Iterator[_Line]:
    if len(spans):
        yield _Line(name, beside, spans)


def _steps(work: pl.DataFrame) -> pl.DataFrame:
    steps = (
        work.filter(pl.col("step").is_not_null())
        .group_by("step")
        .agg(pl.col("start").min(), pl.col("end").max())
    )
    steps = steps.sort("start")
    return _spans(steps.with_columns(value=pl.col("step").cast(pl.String)), "scope")


def _merged(work: pl.DataFrame, value: str, keys: list[str], kind: str) -> pl.DataFrame:
    """Runs of neighbours with equal keys, as spans named by the value; neighbours without a value end a run."""
    if not work[value].count():
        return pl.DataFrame()
    changed = pl.any_horizontal(
        pl.col(key).ne_missing(pl.col(key).shift(1)) for key in [*keys, "run", "step"]
    )
    groups = work.with_columns(group=changed.cum_sum()).group_by("group", maintain_order=True)
    merged = groups.agg(pl.col("start").min(), pl.col("end").max(), pl.col(value).first().alias("value"))
    return _spans(merged, kind)


def _spans(groups: pl.DataFrame, kind: str) -> pl.DataFrame:
    """Spans that end where the next one starts at the latest: work on other streams may overlap."""
    end = pl.min_horizontal("end", pl.col("start").shift(-1))
    return groups.with_columns(end=end).filter(pl.col("value").is_not_null()).select(
        name=pl.col("value").cast(Text),
        kind=pl.lit(kind, dtype=Kind),
        start_ns="start",
        dur_ns=pl.col("end") - pl.col("start"),
    )  # fmt: skip


def _name_scopes(work: pl.DataFrame) -> pl.DataFrame:
    """One span per level of the scope's path and run of neighbours below it."""
    if not work["scope"].count():
        return pl.DataFrame()
    levels = _levels(work["scope"].unique().drop_nulls())
    placed = work.join(levels, on="scope", how="left", maintain_order="left")
    found = []
    for level in range(len(levels.columns) // 2):
        merged = _merged(placed.with_columns(value_at=f"name{level}"), "value_at", [f"path{level}"], "scope")
        if len(merged):
            found.append(merged)
    return pl.concat(found) if found else pl.DataFrame()


def _levels(scopes: pl.Series) -> pl.DataFrame:
    """By scope, for each level of its path: a number of the path so far, and the name there."""
    numbers: dict[tuple[str, ...], int] = {}
    paths = [
        tuple(text.rpartition(":")[0].split("/")[:-1][:_DEEPEST_SCOPE]) for text in scopes.cast(pl.String)
    ]
    columns: dict[str, pl.Series] = {"scope": scopes}
    for level in range(max(map(len, paths), default=0)):
        prefixes = [path[: level + 1] if len(path) > level else None for path in paths]
        codes = [None if prefix is None else numbers.setdefault(prefix, len(numbers)) for prefix in prefixes]
        columns[f"path{level}"] = pl.Series(codes, dtype=pl.UInt32)
        columns[f"name{level}"] = pl.Series([prefix and prefix[-1] for prefix in prefixes], dtype=Text)
    return pl.DataFrame(columns)
