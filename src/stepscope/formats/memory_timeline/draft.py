"""A memory timeline as a draft of a trace: each entry is a row of `memory` with its kind, as the profiler judged it."""

from __future__ import annotations

import msgspec
import polars as pl

from stepscope.errors import UnreadableFile
from stepscope.formats.memory_timeline import FORMAT
from stepscope.formats.reader import Progress
from stepscope.formats.source import Source
from stepscope.trace.draft import Draft
from stepscope.trace.problems import problem
from stepscope.trace.schema import DeviceKind, Kind, Text, TrackUse
from stepscope.trace.trace import TraceInfo

_ACTIONS = {1: "preexisting", 2: "create", 3: "change", 4: "destroy"}
# By the order of torch.profiler._memory_profiler's categories.
_KINDS = {
    0: "parameter",
    1: "optimizer state",
    2: "input",
    3: "temporary",
    4: "activation",
    5: "gradient",
    6: "autograd detail",
    7: "unknown",
}
_LATEST = 2**62
_AGAIN = 'Export it again: prof.export_memory_timeline("memory.raw.json.gz", device="cuda:0")'


def read(source: Source, progress: Progress) -> Draft:
    """The one device of the file, which it does not name."""
    rows = _decode(source)
    progress(source.size())
    known = rows.filter(
        pl.col("action").is_in(list(_ACTIONS)),
        pl.col("kind").is_in(list(_KINDS)),
        pl.col("time").is_between(-1, _LATEST),
        pl.col("bytes").is_between(-_LATEST, _LATEST),
    )
    if known.is_empty():
        raise UnreadableFile(f"{source.path} holds no entries of a memory timeline.", fix=_AGAIN)
    draft = _make_draft(known, source.path)
    if len(known) < len(rows):
        draft.problems.add(
            problem(
                "damaged-events",
                "{count} entries are not what PyTorch writes; they were left out.",
                count=len(rows) - len(known),
            )
        )
    for each in source.problems.all():
        draft.problems.add(each)
    return draft


def _decode(source: Source) -> pl.DataFrame:
    try:
        found = msgspec.json.decode(bytes(source.content()), type=list[tuple[int, int, int, int]])
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise UnreadableFile(
            f"{source.path} is a memory timeline that is cut or damaged: {error}.", fix=_AGAIN
        ) from None
    schema = {"time": pl.Int64, "action": pl.Int64, "bytes": pl.Int64, "kind": pl.Int64}
    try:
        return pl.DataFrame(found, schema=schema, orient="row", strict=True)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        raise UnreadableFile(f"{source.path} has numbers that no timeline has.", fix=_AGAIN) from None


def _make_draft(rows: pl.DataFrame, path: str) -> Draft:
    zero = int(rows.select(pl.col("time").filter(pl.col("time") > 0).min()).item() or 0)
    time = (pl.col("time") - zero).clip(lower_bound=0)
    memory = rows.select(
        device=pl.lit(0, dtype=pl.Int32),
        device_kind=pl.lit("gpu", dtype=DeviceKind),
        time_ns=time,
        bytes="bytes",
        total_allocated=pl.col("bytes").cum_sum(),
        action=pl.col("action").replace_strict(_ACTIONS, return_dtype=pl.String).cast(Text),
        kind=pl.col("kind").replace_strict(_KINDS, return_dtype=pl.String).cast(Text),
    )
    end = int(memory["time_ns"].max() or 0)  # type: ignore[arg-type]
    return Draft(
        info=TraceInfo(
            path=path, format=FORMAT.name, framework="pytorch", base_unix_ns=zero, devices=[{"id": 0}]
        ),
        events=pl.DataFrame(
            {"track": [0], "name": ["memory timeline"], "kind": ["span"], "start_ns": [0], "dur_ns": [end]},
            schema={"track": pl.UInt32, "name": Text, "kind": Kind, "start_ns": pl.Int64, "dur_ns": pl.Int64},
        ).with_columns(source_category=pl.lit("memory", dtype=Text)),
        tracks=pl.DataFrame(
            {"id": [0], "process": ["device"], "thread": ["allocator"], "device_kind": ["cpu"], "what": ["host"]},
            schema={"id": pl.UInt32, "process": pl.String, "thread": pl.String, "device_kind": DeviceKind, "what": TrackUse},
        ),
        memory=memory,
    )  # fmt: skip
