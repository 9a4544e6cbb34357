"""The tracks of an export: threads by process, streams by device, and what is laid over them."""

from __future__ import annotations

import polars as pl

from stepscope.formats.nsys.database import Database
from stepscope.formats.nsys.events import number_of_process, number_of_thread, process_of, read_strings

# What a track is for: calls and ranges of a thread, ranges that begin and end anywhere, the profiler, a stream, its waits.
THREAD, LOOSE, PROFILER, STREAM, WAITING = range(5)
KEY = ("use", "globalTid", "globalPid", "deviceId", "streamId", "lane")
_LABELS = {THREAD: "", LOOSE: " (start/end ranges)", PROFILER: " (profiler)", STREAM: "", WAITING: " (waits)"}
_WHAT = {THREAD: "host", LOOSE: "derived", PROFILER: "derived", STREAM: "device", WAITING: "derived"}
_LARGEST_DEVICE = 2**31 - 1


def make_tracks(events: pl.DataFrame, database: Database) -> pl.DataFrame:
    """One track for each distinct key, hosts first; the key's columns are kept for the join."""
    keys = events.select(KEY).unique().sort("use", "globalPid", "globalTid", "deviceId", "streamId", "lane")
    strings = read_strings(database)
    process = pl.coalesce("globalPid", process_of(pl.col("globalTid")))
    named = (
        keys.with_columns(process_id=process)
        .join(_process_names(database), on="process_id", how="left", maintain_order="left")
        .join(_thread_names(database, strings), on="globalTid", how="left", maintain_order="left")
        .with_row_index("id")
    )
    return named.with_columns(*_describe())


def _describe() -> list[pl.Expr]:
    on_device = pl.col("use").is_in([STREAM, WAITING])
    pid = number_of_process(pl.col("process_id")).cast(pl.String)
    tid = number_of_thread(pl.col("globalTid")).cast(pl.String)
    stream = pl.format("stream {}", pl.col("streamId").fill_null(0))
    host = pl.coalesce(pl.format("{} {}", "thread_name", tid), pl.format("thread {}", tid), pl.lit("thread"))
    device = pl.when(pl.col("deviceId").is_between(0, _LARGEST_DEVICE)).then("deviceId").cast(pl.Int32)
    label = pl.col("use").replace_strict(_LABELS, return_dtype=pl.String)
    lane = pl.when(pl.col("lane") > 0).then(pl.format(" (lane {})", pl.col("lane") + 1)).otherwise(pl.lit(""))
    return [
        pl.when(on_device)
        .then(pl.format("GPU {}", pl.col("deviceId").fill_null(0)))
        .otherwise(pl.coalesce(pl.format("{} ({})", "process_name", pid), pid))
        .alias("process"),
        (pl.when(on_device).then(stream).otherwise(host) + label + lane).alias("thread"),
        pl.when(on_device).then("streamId").alias("stream"),
        pl.when(on_device).then(device).alias("device"),
        pl.when(on_device).then(pl.lit("gpu")).otherwise(pl.lit("cpu")).alias("device_kind"),
        pl.col("use").replace_strict(_WHAT, return_dtype=pl.String).alias("what"),
        pid.alias("pid"),
        pl.when(on_device).then(pl.col("streamId").cast(pl.String)).otherwise(tid).alias("tid"),
    ]


def _process_names(database: Database) -> pl.DataFrame:
    found = database.rows("PROCESSES", ["globalPid"], ["name"]).drop_nulls("globalPid")
    return found.unique("globalPid", keep="first").select(process_id="globalPid", process_name="name")


def _thread_names(database: Database, strings: pl.DataFrame) -> pl.DataFrame:
    found = database.rows("ThreadNames", ["globalTid", "nameId"]).drop_nulls()
    found = found.join(strings, left_on="nameId", right_on="id").unique("globalTid", keep="first")
    return found.select("globalTid", thread_name="value")


def real_devices(database: Database) -> pl.DataFrame:
    """The GPU behind a process's device number: CUDA_VISIBLE_DEVICES lets each process count from 0."""
    found = database.rows("TARGET_INFO_CUDA_DEVICE", ["gpuId", "cudaId", "pid"]).drop_nulls()
    return found.unique(["pid", "cudaId"], keep="first")
