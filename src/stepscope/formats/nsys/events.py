"""The rows of each table of an export as events: name, kind, where they ran, and what else is known of them."""

from __future__ import annotations

import polars as pl

from stepscope.formats.nsys.database import Database

KERNELS, GRAPHS = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
COPIES, FILLS = "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"
CALLS, WAITS = "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
RANGES, SYSTEM_CALLS = "NVTX_EVENTS", "OSRT_API"
OVERHEADS = ("CUPTI_ACTIVITY_KIND_OVERHEAD", "PROFILER_OVERHEAD")
# Tables that hold what was recorded: without any of them there is no profile.
RECORDED = (KERNELS, GRAPHS, COPIES, FILLS, CALLS, WAITS, RANGES, SYSTEM_CALLS)

# NVTX: a push and its pop, a start and its end on any thread, a moment.
PUSH_POP, START_END, MARK, NAME_DOMAIN = 59, 60, 34, 75
_THREAD = 0xFFFFFF  # the low bits of a global thread id; above them is the process
_DEVICE = ["deviceId", "contextId", "streamId", "correlationId", "globalPid"]
_COPY_KINDS = (
    "", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP", "HtoD", "DtoH", "DtoD",
)  # fmt: skip
_MEMORY_KINDS = (
    "Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static", "Unknown",
)  # fmt: skip
_SYNC_KINDS = ("Sync", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync")
# torch.autograd.profiler.emit_nvtx: `aten::mm, seq = 5, op_id = 7, sizes = [[2, 3]]`
_OP = r"^(.+?)((?:, (?:seq|op_id|sizes|input_op_ids) = .*)?)$"
_SIZES = r", sizes = (\[.*?\])(?:, input_op_ids|$)"
_FRAMEWORK_OP = (
    r"^(aten|prims|c10d|c10|flash_attn|_c10d_functional|torchvision|quantized|xformers)::|, op_id = \d+"
)


def read_strings(database: Database) -> pl.DataFrame:
    """The texts that all tables name by number."""
    found = database.rows("StringIds", ["id"], ["value"])
    return found.drop_nulls().unique("id", keep="first")


def read_kernels(database: Database, strings: pl.DataFrame) -> pl.DataFrame:
    """Kernels under their full names, and CUDA graphs that were recorded as a whole."""
    found = database.timed(
        KERNELS,
        [
            *_DEVICE, "demangledName", "shortName", "mangledName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
            "registersPerThread", "staticSharedMemory", "dynamicSharedMemory", "graphNodeId",
        ],
    )  # fmt: skip
    name = pl.coalesce("demangledName", "shortName", "mangledName")
    found = _named(found.with_columns(nameId=name), strings, "(kernel without a name)")
    graphs = database.timed(GRAPHS, [*_DEVICE, "graphId"])
    graphs = graphs.with_columns(name=pl.format("CUDA graph {}", pl.col("graphId").fill_null(0)))
    return pl.concat([found, graphs], how="diagonal").with_columns(kind=pl.lit("kernel"))


def read_copies(database: Database) -> pl.DataFrame:
    """Copies and fills, named as CUPTI's other users name them: Memcpy HtoD (Pinned -> Device)."""
    copies = database.timed(COPIES, [*_DEVICE, "bytes", "copyKind", "srcKind", "dstKind"])
    way, source, target = (
        _word(column, words)
        for column, words in (
            ("copyKind", _COPY_KINDS),
            ("srcKind", _MEMORY_KINDS),
            ("dstKind", _MEMORY_KINDS),
        )
    )
    copies = copies.with_columns(direction=way, source=source, target=target, kind=pl.lit("copy"))
    copies = copies.with_columns(name=pl.format("Memcpy {} ({} -> {})", "direction", "source", "target"))
    fills = database.timed(FILLS, [*_DEVICE, "bytes", "memKind"])
    fills = fills.with_columns(target=_word("memKind", _MEMORY_KINDS), kind=pl.lit("memset"))
    fills = fills.with_columns(name=pl.format("Memset ({})", "target"))
    return pl.concat([copies, fills], how="diagonal")


def read_waits(database: Database) -> pl.DataFrame:
    """What a stream, the host or a context waited for, as the device saw it."""
    found = database.timed(WAITS, [*_DEVICE, "syncType"])
    return found.with_columns(name=_word("syncType", _SYNC_KINDS), kind=pl.lit("sync"))


def read_calls(database: Database, strings: pl.DataFrame) -> pl.DataFrame:
    """Calls into the CUDA runtime and driver; `cudaLaunchKernel_v7000` is `cudaLaunchKernel`."""
    found = _named(
        database.timed(CALLS, ["globalTid", "correlationId", "nameId"]), strings, "(CUDA call without a name)"
    )
    return found.with_columns(name=pl.col("name").str.replace(r"_v\d+$", ""), kind=pl.lit("runtime"))


def read_system_calls(database: Database, strings: pl.DataFrame) -> pl.DataFrame:
    """Calls into the operating system that took long enough to be recorded."""
    found = _named(database.timed(SYSTEM_CALLS, ["globalTid", "nameId"]), strings, "(OS call without a name)")
    return found.with_columns(kind=pl.lit("span"))


def read_overheads(database: Database, strings: pl.DataFrame) -> pl.DataFrame:
    """The profiler's own cost."""
    found = pl.concat(database.timed(table, ["globalTid", "nameId"]) for table in OVERHEADS)
    return _named(found, strings, "profiler").with_columns(kind=pl.lit("overhead"))


def read_ranges(database: Database, strings: pl.DataFrame, last: int) -> pl.DataFrame:
    """NVTX: ranges and marks. A range that never ended lasts to the end of the recording."""
    found = database.rows(RANGES, ["start", "end", "eventType", "globalTid", "textId", "domainId"], ["text"])
    usable = pl.col("start").is_between(0, 2**62)
    is_range = pl.col("eventType").is_in([PUSH_POP, START_END]) | pl.col("eventType").is_null()
    is_mark = pl.col("eventType") == MARK
    wanted = found.filter(is_range | is_mark)
    kept = wanted.filter(usable)
    if len(kept) < len(wanted):
        database.skipped[RANGES] = len(wanted) - len(kept)
    ends = pl.when(is_mark).then("start").otherwise(pl.col("end").fill_null(last))
    kept = kept.with_columns(
        is_open=is_range & pl.col("end").is_null(), end=pl.max_horizontal("start", ends), nameId="textId"
    )
    kept = _named(kept, strings, "(range without a name)", pl.col("text"))
    return _split_ops(kept).with_columns(
        kind=pl.when(is_mark)
        .then(pl.lit("instant"))
        .when(pl.col("text").str.contains(_FRAMEWORK_OP))
        .then(pl.lit("op"))
        .otherwise(pl.lit("annotation"))
    )


def read_domains(database: Database, strings: pl.DataFrame) -> dict[int, str]:
    """The names of NVTX domains, such as NCCL."""
    found = database.rows(RANGES, ["domainId", "textId"], ["text"], where=("eventType", NAME_DOMAIN))
    found = found.with_columns(nameId="textId")
    found = _named(found, strings, "", pl.col("text")).filter(pl.col("name") != "")
    return dict(found.select("domainId", "name").drop_nulls().iter_rows())


def process_of(thread: pl.Expr) -> pl.Expr:
    """The global process id within a global thread id."""
    return thread - (thread & _THREAD)


def number_of_thread(thread: pl.Expr) -> pl.Expr:
    """The thread id that the system uses."""
    return thread & _THREAD


def number_of_process(process: pl.Expr) -> pl.Expr:
    """The process id that the system uses."""
    return (process // (_THREAD + 1)) & _THREAD


def _named(
    rows: pl.DataFrame, strings: pl.DataFrame, otherwise: str, own: pl.Expr | None = None
) -> pl.DataFrame:
    """With the text that `nameId` names, or `own` where the row has its text itself."""
    joined = rows.join(
        strings.rename({"id": "nameId", "value": "string"}), on="nameId", how="left", maintain_order="left"
    )
    texts = [pl.col("string")] if own is None else [own, pl.col("string")]
    name = pl.coalesce([pl.when(text != "").then(text) for text in texts]).fill_null(otherwise)
    return joined.with_columns(name=name, text=name).drop("string")


def _split_ops(rows: pl.DataFrame) -> pl.DataFrame:
    """Names without the numbers that PyTorch appends, which are new for each call; shapes apart."""
    text = pl.col("text")
    return rows.with_columns(
        name=text.str.extract(_OP, 1).fill_null(text),
        shapes=text.str.extract(_SIZES, 1),
        sequence=text.str.extract(r", seq = (\d{1,18})\b", 1).cast(pl.Int64, strict=False),
    )


def _word(column: str, words: tuple[str, ...]) -> pl.Expr:
    return pl.col(column).replace_strict(dict(enumerate(words)), default="Unknown", return_dtype=pl.String)
