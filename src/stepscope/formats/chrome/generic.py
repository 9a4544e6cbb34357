"""Chrome trace JSON from anyone: JAX's and TensorFlow's twins of XPlane files, VizTracer, TensorFlow timelines, …"""

from __future__ import annotations

import polars as pl

from stepscope.formats.chrome.begin_end import Spans, whole_spans
from stepscope.formats.chrome.counters import counters
from stepscope.formats.chrome.scan.columns import JsonEvents
from stepscope.formats.chrome.tracks import DeviceTracks, TrackTable, mark_devices
from stepscope.trace.draft import Draft
from stepscope.trace.flows import note_loose_flows
from stepscope.trace.json_text import repaired_json
from stepscope.trace.problems import problem
from stepscope.trace.schema import Kind, LinkReason, Role
from stepscope.trace.trace import TraceInfo

_CATEGORY_KINDS = {"Op": "op", "FEE": "python", "fee": "python", "cpu_op": "op", "python_function": "python"}
_RUNS_ON_PLUGIN = r"^PjRt(CApi|StreamExecutor)\w*Executable::Execute"
_INSTANTS = [ord(phase) for phase in "iIRnTpPNODvVc"]
_KNOWN_PHASES = [*_INSTANTS, *(ord(phase) for phase in "XBECbeSF")]


def chrome_draft(found: JsonEvents, path: str) -> Draft:
    """The tables of the trace."""
    table = TrackTable(found)
    devices = mark_devices(table)
    spans = whole_spans(found, table)
    values = counters(found, table, found.events)
    is_counter = spans.events["ph"] == ord("C")
    track = pl.when(is_counter).then(values.track.gather(spans.events["row"])).otherwise(pl.col("track"))
    events = spans.events.select(
        "name",
        source_category="category",
        start_ns="start",
        dur_ns="dur",
        kind=_kinds(spans.events, devices),
        track=track.cast(pl.UInt32),
    )
    rest = spans.placed(found.rest)
    _note_unknown_phases(found)
    _note_missing_device(found, events)
    return Draft(
        info=_info(found, path),
        events=_with_steps(events, rest),
        tracks=table.frame(),
        flows=_flows(found),
        counters=values.frame,
        cold={name: frame for name, frame in _cold(found, spans, rest).items() if len(frame)},
        problems=found.problems,
    )


def _cold(found: JsonEvents, spans: Spans, rest: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """All arguments: those that Kineto's vocabulary knows came in columns."""
    known = {name: frame for name, frame in found.layouts.items() if len(frame) and frame.width > 1}
    return {name: spans.placed(frame) for name, frame in known.items()} | {"rest": rest}


def _info(found: JsonEvents, path: str) -> TraceInfo:
    viztracer = found.header.get("viztracer_metadata")
    viztracer = viztracer if isinstance(viztracer, dict) else {}
    base = found.header.get("baseTimeNanoseconds", viztracer.get("baseTimeNanoseconds"))
    if viztracer.get("overflow"):
        found.problems.add(
            problem("buffer-overflow", "VizTracer reports that its buffer overflowed.", case="viztracer")
        )
    return TraceInfo(
        path=path,
        format="chrome",
        framework=_framework(found),
        base_unix_ns=base if isinstance(base, int) and abs(base) < 2**62 else 0,
        versions={"viztracer": viztracer["version"]} if "version" in viztracer else {},
    )


def _kinds(events: pl.DataFrame, devices: DeviceTracks) -> pl.Series:
    category, name = pl.col("category").cast(pl.String), pl.col("name").cast(pl.String)
    by_category = category.replace_strict(
        list(_CATEGORY_KINDS), list(_CATEGORY_KINDS.values()), default=None, return_dtype=pl.String
    )
    on_device = pl.col("track").is_in(devices.work)
    kind = (
        pl.when(pl.col("ph") == ord("C")).then(pl.lit("counter"))
        .when(pl.col("ph").is_in(_INSTANTS)).then(pl.lit("instant"))
        .when(on_device & name.str.contains("(?i)^memcpy")).then(pl.lit("copy"))
        .when(on_device & name.str.contains("(?i)^memset")).then(pl.lit("memset"))
        .when(on_device).then(pl.lit("kernel"))
        .when(pl.col("track").is_in(devices.laid_over)).then(pl.lit("scope"))
        .when(by_category.is_not_null()).then(by_category)
        .when(name.str.starts_with("$")).then(pl.lit("python"))
        .otherwise(pl.lit("span"))
    )  # fmt: skip
    return events.select(kind.cast(Kind).alias("kind")).to_series()


def _with_steps(events: pl.DataFrame, rest: pl.DataFrame) -> pl.DataFrame:
    """Spans whose arguments have a step_num are step markers."""
    marked = rest.filter(pl.col("json").bin.contains(b'"step_num"'))
    found = [(event, _step_number(json)) for event, json in marked.iter_rows()]
    numbers = {event: number for event, number in found if number is not None}
    if not numbers:
        return events
    rows = pl.Series(list(numbers), dtype=pl.UInt32)
    step = pl.repeat(None, len(events), dtype=pl.Int32, eager=True).scatter(rows, list(numbers.values()))
    is_marker = step.is_not_null()
    return events.with_columns(
        step=step,
        role=pl.when(is_marker).then(pl.lit("step")).otherwise(None).cast(Role),
        kind=pl.when(is_marker).then(pl.lit("annotation", dtype=Kind)).otherwise(pl.col("kind")),
    )


def _step_number(json: bytes) -> int | None:
    args = repaired_json(json)
    value = args.get("step_num") if isinstance(args, dict) else None
    text = str(value)
    return int(text) if text.isdecimal() and len(text) < 10 else None


def _flows(found: JsonEvents) -> pl.DataFrame:
    """Each flow as links from one of its points to the next. Without `bp` an end belongs to the next event."""
    points = found.flows.filter(pl.col("id").is_not_null()).sort("start", maintain_order=True)
    key = ["category", "name", "id"]
    points = points.with_columns(
        is_last=pl.col("ph") == ord("f"),
        to_track=pl.col("track").shift(-1).over(key),
        to_ns=pl.col("start").shift(-1).over(key),
        to_phase=pl.col("ph").shift(-1).over(key),
        to_enclosing=pl.col("bind_enclosing").shift(-1).over(key),
    )
    leads_on = pl.col("to_track").is_not_null() & ~pl.col("is_last") & (pl.col("to_phase") != ord("s"))
    links = points.filter(leads_on)
    reached = leads_on.shift(1, fill_value=False).over(key)
    alone = points.filter(~leads_on & ~reached)
    note_loose_flows(found.problems, len(alone) + len(found.flows) - len(points))
    return links.select(
        "to_track",
        "to_ns",
        from_track="track",
        from_ns="start",
        to_next=(pl.col("to_phase") == ord("f")) & ~pl.col("to_enclosing"),
        why=pl.lit("flow", dtype=LinkReason),
    )


def _note_missing_device(found: JsonEvents, events: pl.DataFrame) -> None:
    """Programs that JAX hands to a plug-in for accelerators, and no work on any: the profiler of the device has failed.

    Its own client for CPUs leaves other names.
    """
    names = events["name"].unique().cast(pl.String)
    is_work = events["kind"].is_in(["kernel", "copy", "memset"])
    if is_work.any() or not names.str.contains(_RUNS_ON_PLUGIN).any():
        return
    detail = "The host executed programs on an accelerator, but the profile has no event of a device."
    found.problems.add(problem("no-device-events", detail))


def _framework(found: JsonEvents) -> str | None:
    names = found.events["name"].unique().cast(pl.String).drop_nulls()
    if names.str.contains(r"PjitFunction|^PjRt|jax/|^jit_").any():
        return "jax"
    processes = " ".join(
        str(args.get("name")) for name, _, _, args in found.metadata if name == "process_name"
    )
    if "/job:" in processes or names.str.contains(r"^(EagerExecute|Iterator::|FunctionRun)").any():
        return "tensorflow"
    return "python" if "viztracer_metadata" in found.header else None


def _note_unknown_phases(found: JsonEvents) -> None:
    unknown = int((~found.events["ph"].is_in(_KNOWN_PHASES)).sum())
    if unknown:
        found.problems.add(
            problem(
                "unknown-phase",
                "{count} events have an unknown phase; they are kept as spans.",
                count=unknown,
            )
        )
