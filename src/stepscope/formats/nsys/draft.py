"""An export of Nsight Systems as a draft of a trace: all processes and GPUs of the file."""

from __future__ import annotations

import polars as pl

from stepscope.errors import UnreadableFile
from stepscope.formats.nsys import events as tables
from stepscope.formats.nsys.database import AGAIN, Database, opened
from stepscope.formats.nsys.info import make_info
from stepscope.formats.nsys.tracks import (
    KEY,
    LOOSE,
    PROFILER,
    STREAM,
    THREAD,
    WAITING,
    make_tracks,
    real_devices,
)
from stepscope.formats.reader import Progress
from stepscope.formats.source import Source
from stepscope.native.checks import ROW_LIMIT
from stepscope.native.spans.lanes import lanes
from stepscope.safe import safe
from stepscope.trace.columns import buffer, series
from stepscope.trace.draft import Draft
from stepscope.trace.problems import Problems, problem
from stepscope.trace.schema import TABLES, Kind, LinkReason, Text

_ON_DEVICE = (STREAM, WAITING)
_WARNING, _ERROR = 2, 3  # severities of nsys
_LONGEST_MESSAGE = 200


def read(source: Source, progress: Progress) -> Draft:
    """All events of the file."""
    with opened(source, progress) as database:
        _refuse_others(database, source)
        rows = _collect(database)
        if rows.is_empty() and database.damaged:
            what = next(iter(database.damaged.values()))
            raise UnreadableFile(f"{source.path} is cut or damaged: {what}.", fix=AGAIN)
        if rows.is_empty():
            raise UnreadableFile(
                f"{source.path} holds no events.",
                fix="Record with --trace cuda,nvtx,osrt, and export without --times.",
            )
        if len(rows) >= ROW_LIMIT:
            raise UnreadableFile(f"{source.path} holds {len(rows):,} events, more than can be numbered.")
        draft = _make_draft(rows, database, source.path)
    for each in source.problems.all():
        draft.problems.add(each)
    return draft


def _refuse_others(database: Database, source: Source) -> None:
    if not any(database.has(table, "start") for table in tables.RECORDED):
        known = ", ".join(sorted(database.columns)[:4]) or "none"
        raise UnreadableFile(
            f"{source.path} is an SQLite database without the tables of Nsight Systems; it has {known}.",
            fix="Export the report with: nsys export --type sqlite REPORT.nsys-rep",
        )


def _collect(database: Database) -> pl.DataFrame:
    """The rows of all tables below each other, in a fixed order."""
    strings = tables.read_strings(database)
    device = [
        tables.read_kernels(database, strings).with_columns(use=pl.lit(STREAM), category=pl.lit("kernel")),
        tables.read_copies(database).with_columns(use=pl.lit(STREAM), category=pl.lit("memory")),
        tables.read_waits(database).with_columns(use=pl.lit(WAITING), category=pl.lit("synchronization")),
    ]
    host = [
        tables.read_calls(database, strings).with_columns(use=pl.lit(THREAD), category=pl.lit("cuda")),
        tables.read_system_calls(database, strings).with_columns(use=pl.lit(THREAD), category=pl.lit("osrt")),
        tables.read_overheads(database, strings).with_columns(
            use=pl.lit(PROFILER), category=pl.lit("overhead")
        ),
    ]
    last = max((frame["end"].max() or 0 for frame in (*device, *host)), default=0)
    ranges = tables.read_ranges(database, strings, int(str(last)))
    is_loose = pl.col("eventType") == tables.START_END
    ranges = ranges.with_columns(
        use=pl.when(is_loose.fill_null(False)).then(pl.lit(LOOSE)).otherwise(pl.lit(THREAD)),
        category=_name_domains(database, strings),
    )
    return _with_lanes(_renumber(pl.concat([*device, *host, ranges], how="diagonal"), database))


def _name_domains(database: Database, strings: pl.DataFrame) -> pl.Expr:
    """`nvtx`, or `nvtx NCCL` for a domain with a name."""
    known = {number: f"nvtx {name}" for number, name in tables.read_domains(database, strings).items()}
    return pl.col("domainId").replace_strict(known, default="nvtx", return_dtype=pl.String)


def _renumber(rows: pl.DataFrame, database: Database) -> pl.DataFrame:
    """GPUs by their own number where the file says which one a process means."""
    real = real_devices(database)
    if real.is_empty():
        return rows
    joined = rows.with_columns(pid_=tables.number_of_process(pl.col("globalPid"))).join(
        real, left_on=["pid_", "deviceId"], right_on=["pid", "cudaId"], how="left", maintain_order="left"
    )
    return joined.with_columns(deviceId=pl.coalesce("gpuId", "deviceId")).drop("pid_", "gpuId")


def _with_lanes(rows: pl.DataFrame) -> pl.DataFrame:
    """Ranges that begin and end anywhere, and waits, may overlap: each lane has those that do not."""
    rows = rows.with_row_index("row").with_columns(lane=pl.lit(0, dtype=pl.UInt32))
    spread = rows.filter(pl.col("use").is_in([LOOSE, PROFILER, WAITING]))
    if spread.is_empty():
        return rows
    key = [name for name in KEY if name != "lane"]
    pieces = []
    for _, group in spread.sort("start").group_by(key, maintain_order=True):
        found = lanes(buffer(group["start"]), buffer(group["end"]))
        pieces.append(group.select("row", found=series("found", found, pl.UInt32)))
    placed = pl.concat(pieces)
    lane = rows["lane"].scatter(placed["row"], placed["found"])
    return rows.with_columns(lane=lane)


def _make_draft(rows: pl.DataFrame, database: Database, path: str) -> Draft:
    tracks = make_tracks(rows, database)
    rows = rows.join(tracks.select("id", *KEY), on=KEY, how="left", nulls_equal=True, maintain_order="left")
    zero = int(str(rows["start"].min()))
    is_op = rows["kind"] == "op"
    draft = Draft(
        info=make_info(database, path, zero, _has_torch(rows)),
        events=rows.select(
            track=pl.col("id").cast(pl.UInt32),
            name=pl.col("name").cast(Text),
            kind=pl.col("kind").cast(Kind),
            source_category=pl.col("category").cast(Text),
            start_ns=pl.col("start") - zero,
            dur_ns=pl.col("end") - pl.col("start"),
        ),
        tracks=tracks.select(name for name in TABLES["tracks"] if name in tracks.columns),
        links=_link_launches(rows),
        ops=rows.filter(is_op).select(event="row", shapes=pl.col("shapes").cast(Text), sequence="sequence"),
        kernels=_list_kernels(rows),
        copies=_list_copies(rows),
    )
    _note_losses(draft.problems, database, rows)
    _note_messages(draft.problems, database)
    return draft


def _has_torch(rows: pl.DataFrame) -> bool:
    return bool(
        rows.select(((pl.col("kind") == "op") & pl.col("name").str.starts_with("aten::")).any()).item()
    )


def _link_launches(rows: pl.DataFrame) -> pl.DataFrame:
    """From the call to what it started: the same correlation id in the same process."""
    wanted = rows.filter(pl.col("correlationId") > 0)
    calls = wanted.filter(pl.col("kind") == "runtime").select(
        "correlationId", globalPid=tables.process_of(pl.col("globalTid")), origin="row"
    )
    calls = calls.unique(["correlationId", "globalPid"], keep="last", maintain_order=True)
    device = wanted.filter(pl.col("use").is_in(_ON_DEVICE)).select("correlationId", "globalPid", to="row")
    pairs = device.join(calls, on=["correlationId", "globalPid"], maintain_order="left")
    return pairs.select(pl.col("origin").alias("from"), "to", why=pl.lit("launch", dtype=LinkReason))


def _list_kernels(rows: pl.DataFrame) -> pl.DataFrame:
    small = pl.col("staticSharedMemory").fill_null(0) + pl.col("dynamicSharedMemory").fill_null(0)
    return rows.filter(pl.col("kind") == "kernel").select(
        event="row",
        grid=_extent("grid"),
        block=_extent("block"),
        registers=pl.col("registersPerThread").cast(pl.UInt32, strict=False),
        shared_bytes=small.cast(pl.UInt32, strict=False),
        graph_node=pl.when(pl.col("graphNodeId") > 0).then("graphNodeId").cast(pl.UInt64, strict=False),
    )


def _extent(name: str) -> pl.Expr:
    parts = [pl.col(name + axis).cast(pl.UInt32, strict=False) for axis in "XYZ"]
    is_whole = pl.all_horizontal(part.is_not_null() for part in parts)
    return pl.when(is_whole).then(pl.concat_arr(parts))


def _list_copies(rows: pl.DataFrame) -> pl.DataFrame:
    found = rows.filter(pl.col("kind").is_in(["copy", "memset"]))
    return found.select(
        pl.col("row").alias("event"),
        "bytes",
        *(pl.col(name).cast(Text) for name in ("direction", "source", "target")),
    )


def _note_messages(problems: Problems, database: Database) -> None:
    """What nsys itself reported while it recorded, and what it was not asked to record."""
    found = database.rows("DIAGNOSTIC_EVENT", ["severity"], ["text"]).drop_nulls().unique(maintain_order=True)
    count, first = _messages(found, _ERROR)
    if count:
        problems.add(problem("capture-error", f"Nsight Systems: {first}.", count=count, message=first))
    count, first = _messages(found, _WARNING)
    if count:
        problems.add(problem("capture-warning", f"Nsight Systems: {first}.", count=count, message=first))
    graphs = len(database.timed(tables.GRAPHS, []))
    if graphs:
        detail = "{count} CUDA graphs were recorded as a whole; --cuda-graph-trace=node of nsys records their kernels."
        problems.add(problem("graphs-hide-ops", detail, count=graphs))


def _messages(found: pl.DataFrame, severity: int) -> tuple[int, str]:
    """How many there are, and the first line of the first."""
    texts = found.filter(pl.col("severity") == severity)["text"].to_list()
    return len(texts), safe(texts[0].strip().split("\n")[0])[:_LONGEST_MESSAGE].rstrip(".") if texts else ""


def _note_losses(problems: Problems, database: Database, rows: pl.DataFrame) -> None:
    skipped = sum(database.skipped.values())
    if skipped:
        names = ", ".join(sorted(database.skipped))
        problems.add(
            problem(
                "time-out-of-range",
                f"{{count}} rows of {names} have missing or impossible times; they were left out.",
                count=skipped,
            )
        )
    if database.damaged:
        names = ", ".join(sorted(database.damaged))
        problems.add(
            problem(
                "damaged",
                f"{names} can be read only in part. SQLite says: {next(iter(database.damaged.values()))}.",
            )
        )
    unfinished = int(rows["is_open"].fill_null(False).sum())
    if unfinished:
        problems.add(
            problem(
                "unfinished-events",
                "{count} NVTX ranges never ended; they last to the end of the recording.",
                count=unfinished,
            )
        )
