"""What ROCm says of a kernel or a copy not on the device event, but in the call that launched it."""

from __future__ import annotations

import polars as pl

from stepscope.formats.chrome.scan.problems import note_counted
from stepscope.trace.draft import Draft
from stepscope.trace.safe_texts import as_text
from stepscope.trace.schema import Extent

_GRID = r'"grid":\s*\[\s*([0-9]{1,9}),\s*([0-9]{1,9}),\s*([0-9]{1,9})\s*\]'
_BLOCK = _GRID.replace("grid", "block")
_SHARED = r'"shared memory":\s*"?([0-9]{1,9})\b'
_SIZE = r'"(?:size|bytes|sizeBytes)":\s*"?([0-9]{1,18})\b'
# These calls are given threads where others are given blocks.
_COUNTS_THREADS = "ExtModuleLaunchKernel"


def fill_from_launches(draft: Draft, rest: pl.DataFrame) -> None:
    """Complete kernels that have no extent and copies that have no size from the arguments of their launches."""
    kernels, copies = draft.kernels, draft.copies
    bare_kernels = len(kernels) > 0 and kernels["grid"].null_count() == len(kernels)
    bare_copies = len(copies) > 0 and copies["bytes"].null_count() == len(copies)
    if rest.is_empty() or draft.links.is_empty() or not (bare_kernels or bare_copies):
        return
    said = _said_at_launch(draft, rest)
    if bare_kernels:
        draft.kernels = _filled(kernels, said.select("event", "grid", "block", "shared_bytes"))
    if bare_copies:
        draft.copies = _filled(copies, said.select("event", "bytes"))


def _said_at_launch(draft: Draft, rest: pl.DataFrame) -> pl.DataFrame:
    """For each launched event the figures in the arguments of its launch."""
    launches = draft.links.filter(pl.col("why") == "launch").select(event="to", call="from")
    texts, broken = as_text(rest["json"])
    note_counted(draft.problems, {"broken_texts": broken})
    calls = pl.DataFrame({"call": rest["event"], "text": texts})
    found = launches.join(calls, on="call").unique("event", keep="first", maintain_order=True)
    names = draft.events["name"].gather(found["call"]).cast(pl.String)
    block = _sizes(_BLOCK)
    in_threads = names.str.contains(_COUNTS_THREADS, literal=True).fill_null(False)
    grid = [
        pl.when(in_threads).then((size + width - 1) // width.clip(lower_bound=1)).otherwise(size)
        for size, width in zip(_sizes(_GRID), block, strict=True)
    ]
    return found.select(
        "event",
        grid=_extent(grid),
        block=_extent(block),
        shared_bytes=pl.col("text").str.extract(_SHARED).cast(pl.UInt32, strict=False),
        bytes=pl.col("text").str.extract(_SIZE).cast(pl.Int64, strict=False),
    )


def _sizes(pattern: str) -> list[pl.Expr]:
    groups = pl.col("text").str.extract_groups(pattern)
    return [groups.struct.field(str(axis)).cast(pl.UInt32, strict=False) for axis in (1, 2, 3)]


def _extent(sizes: list[pl.Expr]) -> pl.Expr:
    is_whole = pl.all_horizontal(size.is_not_null() for size in sizes)
    return pl.when(is_whole).then(pl.concat_arr(sizes)).cast(Extent)


def _filled(table: pl.DataFrame, said: pl.DataFrame) -> pl.DataFrame:
    """The table with nulls replaced by what was said of the same event."""
    joined = table.join(said, on="event", how="left", maintain_order="left", suffix="_said")
    names = said.columns[1:]
    filled = joined.with_columns(
        pl.coalesce(pl.col(name), pl.col(f"{name}_said")).alias(name) for name in names
    )
    return filled.select(table.columns)
