"""An execution trace in the folder of a Kineto trace: it has the shapes and process groups that the profiler left out.

Both number the calls of the process in the same way (`rf_id`, "Record function id"), if both observed at the same time.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from stepscope.errors import StepscopeError
from stepscope.formats.execution_trace.nodes import ExecutionTrace, read_nodes
from stepscope.formats.source import Source
from stepscope.profiles.cache.stored import LazyFrames
from stepscope.profiles.find.execution_files import execution_files
from stepscope.profiles.find.runs import Entry
from stepscope.trace.schema import TABLES, conform
from stepscope.trace.trace import Trace

_RECORD = "record_function_id"
_SAME = 0.9  # of the joined calls must have the same name: else the ids are those of another run


def with_execution_trace(trace: Trace, entry: Entry) -> Trace:
    """The trace with the shapes, types and process groups of its execution trace, if there is one."""
    files = execution_files(entry)
    processes = set(trace.tracks["pid"].drop_nulls()) if files else set()
    mine = [file for process, file in files if process in processes]
    # Arguments are unpacked to find the calls: only where there is something to join.
    if not mine or not _lacks(trace) or (calls := _recorded_calls(trace)).is_empty():
        return trace
    for file in mine:
        try:
            found = read_nodes(Source(str(file)))
        except (StepscopeError, OSError):
            continue
        if found is not None and (joined := _joined(trace, calls, found)) is not None:
            return _completed(trace, joined, found, file.name)
    return trace


def _recorded_calls(trace: Trace) -> pl.DataFrame:
    """event, record of all calls that the profiler numbered."""
    found = [
        frame.select("event", record=pl.col(_RECORD).cast(pl.Int64))
        for frame in trace.cold.values()
        if _RECORD in frame.columns
    ]
    rows = pl.concat(found) if found else pl.DataFrame(schema={"event": pl.UInt32, "record": pl.Int64})
    return rows.filter(pl.col("record") > 0).unique("record", keep="first").sort("event")


def _lacks(trace: Trace) -> bool:
    """Whether shapes are missing, or communication whose size is not known."""
    talks = (trace.events["role"] == "collective").any()
    return trace.ops["shapes"].null_count() == len(trace.ops) or (talks and trace.collectives.is_empty())


def _joined(trace: Trace, calls: pl.DataFrame, found: ExecutionTrace) -> pl.DataFrame | None:
    """The calls with what the nodes say of them; None where the names show that they are others."""
    joined = calls.join(found.nodes, on="record", maintain_order="left")
    names = trace.events["name"].gather(joined["event"]).cast(pl.String)
    same = (names == joined["name"]).fill_null(False)
    if joined.is_empty() or int(same.sum()) < _SAME * len(joined):
        return None
    return joined.filter(same)


def _completed(trace: Trace, joined: pl.DataFrame, found: ExecutionTrace, name: str) -> Trace:
    info = replace(
        trace.info,
        capture_options={**trace.info.capture_options, "record_shapes": True, "execution_trace": name},
    )
    changed = {
        "ops": _with_shapes(trace.ops, joined),
        "collectives": _with_groups(trace, joined, found),
        "traces": info.frame(),
    }
    own = trace.tables
    tables = LazyFrames(tuple(TABLES), lambda table: changed[table] if table in changed else own[table], own)
    return Trace.over(tables, trace.cold)


def _with_shapes(ops: pl.DataFrame, joined: pl.DataFrame) -> pl.DataFrame:
    """What the profiler recorded itself stays."""
    given = joined.select("event", given_shapes="shapes", given_dtypes="dtypes")
    rows = ops.join(given, on="event", how="left", maintain_order="left")
    filled = (
        pl.coalesce(name, pl.col(f"given_{name}").cast(ops.schema[name])).alias(name)
        for name in ("shapes", "dtypes")
    )
    return rows.with_columns(*filled).select(ops.columns)


def _with_groups(trace: Trace, joined: pl.DataFrame, found: ExecutionTrace) -> pl.DataFrame:
    """Collectives by their nodes; those of a process with a single group are in that one."""
    talks = joined.filter(
        pl.col("collective").is_not_null(),
        ~pl.col("event").is_in(trace.collectives["event"].implode()),
    )
    if talks.is_empty():
        return trace.collectives
    only = next(iter(found.groups)) if len(found.groups) == 1 else None
    group = pl.coalesce("group", pl.lit(only, dtype=pl.String))
    size = group.replace_strict(found.groups, default=None, return_dtype=pl.Int64)
    ranks = group.replace_strict(found.ranks, default=None, return_dtype=pl.String)
    added = talks.select(
        "event",
        "dtype",
        "elements",
        "elements_out",
        name="collective",
        group=group,
        group_size=pl.coalesce("group_size", size).cast(pl.Int32, strict=False),
        group_ranks=ranks,
        bytes=pl.max_horizontal("elements", "elements_out") * pl.col("item_bytes"),
    )
    return pl.concat([trace.collectives, conform("collectives", added)]).sort("event")
