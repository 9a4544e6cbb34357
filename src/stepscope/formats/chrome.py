"""Chrome trace JSON from anyone: JAX's and TensorFlow's twins of XPlane files, VizTracer, TensorFlow timelines, …"""

from __future__ import annotations

import re

import polars as pl

from stepscope.formats.chrome_spans import whole_spans
from stepscope.formats.json_counters import counters
from stepscope.formats.json_events import JsonEvents
from stepscope.formats.json_tracks import TrackTable
from stepscope.trace.draft import Draft
from stepscope.trace.json_text import repaired_json
from stepscope.trace.problems import Problem
from stepscope.trace.schema import Kind, LinkReason, Role
from stepscope.trace.trace import TraceInfo

_DEVICE = re.compile(r"/device:(GPU|TPU|CUSTOM|XPU)[:_](\d+)", re.IGNORECASE)
_DEVICE_KINDS = {"gpu": "gpu", "tpu": "tpu", "xpu": "xpu"}
_WORK_THREAD = re.compile(r"Stream #|stream|XLA Ops$|Compute$|/memcpy", re.IGNORECASE)
_STREAM_NUMBER = re.compile(r"[Ss]tream ?#?:?(\d+)")
_CATEGORY_KINDS = {"Op": "op", "FEE": "python", "cpu_op": "op", "python_function": "python"}
_INSTANTS = [ord(phase) for phase in "iIRnTpP"]
_KNOWN_PHASES = [ord(phase) for phase in "XBEiIRPCbnestfSTpFM"]


def chrome_draft(found: JsonEvents, path: str) -> Draft:
    """The tables of the trace."""
    table = TrackTable(found)
    work, scopes = _mark_devices(table)
    spans = whole_spans(found, table)
    values = counters(found, table, found.events)
    track = values.track.gather(spans.events["row"])
    is_counter = spans.events["ph"] == ord("C")
    track = (
        pl.select(pl.when(is_counter).then(track).otherwise(spans.events["track"]))
        .to_series()
        .cast(pl.UInt32)
    )
    events = spans.events.select(
        "name", source_category="category", start_ns="start", dur_ns="dur"
    ).with_columns(kind=_kinds(spans.events, work, scopes), track=track)
    place = pl.DataFrame(
        {"event": spans.events["row"], "place": pl.int_range(len(events), dtype=pl.UInt32, eager=True)}
    )
    rest = spans.rest.join(place, on="event", how="inner", maintain_order="left").select(
        event="place", json="json"
    )
    _note_unknown_phases(found)
    return Draft(
        info=TraceInfo(path=path, format="chrome", framework=_framework(found)),
        events=_with_steps(events, rest),
        tracks=table.frame(),
        flows=_flows(found.flows),
        counters=values.frame,
        cold={"rest": rest} if len(rest) else {},
        problems=found.problems,
    )


def _mark_devices(table: TrackTable) -> tuple[list[int], list[int]]:
    """Tracks of devices, told by the names of their processes: those with the work itself, and views laid over it."""
    work: list[int] = []
    scopes: list[int] = []
    for number, (pid, tid) in enumerate(table.scanned):
        process = table.names.processes.get(pid) or ""
        found = _DEVICE.search(process)
        if not found or found[1].upper() == "CPU":
            continue
        thread = table.names.threads.get((pid, tid)) or process
        is_work = bool(_WORK_THREAD.search(thread))
        (work if is_work else scopes).append(number)
        stream = _STREAM_NUMBER.search(thread)
        table.set(
            number,
            what="device" if is_work else "derived",
            device=int(found[2]) if len(found[2]) < 9 else None,
            device_kind=_DEVICE_KINDS.get(found[1].lower(), "other"),
            stream=int(stream[1]) if stream and len(stream[1]) < 18 else None,
        )
    return work, scopes


def _kinds(events: pl.DataFrame, work: list[int], scopes: list[int]) -> pl.Series:
    category, name = pl.col("category").cast(pl.String), pl.col("name").cast(pl.String)
    by_category = category.replace_strict(
        list(_CATEGORY_KINDS), list(_CATEGORY_KINDS.values()), default=None, return_dtype=pl.String
    )
    on_device = pl.col("track").is_in(work)
    kind = (
        pl.when(pl.col("ph") == ord("C")).then(pl.lit("counter"))
        .when(pl.col("ph").is_in(_INSTANTS)).then(pl.lit("instant"))
        .when(on_device & name.str.contains("(?i)^memcpy")).then(pl.lit("copy"))
        .when(on_device & name.str.contains("(?i)^memset")).then(pl.lit("memset"))
        .when(on_device).then(pl.lit("kernel"))
        .when(pl.col("track").is_in(scopes)).then(pl.lit("scope"))
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
    return int(text) if text.isdigit() and len(text) < 10 else None


def _flows(flows: pl.DataFrame) -> pl.DataFrame:
    """Each flow as links from one of its points to the next."""
    points = flows.filter(pl.col("id").is_not_null()).sort("start", maintain_order=True)
    key = ["category", "name", "id"]
    links = points.with_columns(
        to_track=pl.col("track").shift(-1).over(key), to_ns=pl.col("start").shift(-1).over(key)
    ).filter(pl.col("to_track").is_not_null(), pl.col("ph") != ord("f"))
    return links.select(
        "to_track", "to_ns", from_track="track", from_ns="start", why=pl.lit("flow", dtype=LinkReason)
    )


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
            Problem(
                "unknown-phase",
                "Events of an unknown phase",
                "{count} events have a phase that is not known here; they are kept as spans.",
                "",
                "info",
                unknown,
            )
        )
