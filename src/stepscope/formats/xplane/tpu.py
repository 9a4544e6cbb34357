"""What TPUs run: which instructions compute, which move data, and which wait; between which memories copies go.

`XLA Ops` is the line of the core itself: a `copy-done` there is a wait for a copy that `Async XLA Ops` shows as a whole.
XLA gives each instruction a category, and writes memories into layouts: `S(5)` is the host's.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.formats.xplane.decode import Events
from stepscope.formats.xplane.index import Index
from stepscope.formats.xplane.stats import Stats, values_at
from stepscope.formats.xplane.tracks import ASYNC_OPS, CORE_OPS, device_of
from stepscope.trace.schema import Kind, Role, Text

# Classes of instructions, after those of `kinds`, which are of names that any device may have.
TRANSFER, COLLECTIVE, CONTAINER = 13, 14, 15

_ENDS = r"(-(start|done|update))"
_TRANSFER = rf"^(async-)?(copy|slice|dynamic-slice|dynamic-update-slice){_ENDS}|^async-(copy|slice)|^(infeed|outfeed)\b|^host (send|recv)"
_COLLECTIVE = r"^(ragged-)?(all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute|collective-broadcast|async-collective)\b|^(send|recv)\b"
_CONTAINER = r"^(while|conditional|call)$"
# Categories that leave open what an instruction does: its name says more.
_OPEN_CATEGORY = r"^(async-(start|done|update)|custom-call)$"
_NUMBER = r"([._]\d+|\.clone|\.remat\d*)+$"
_HOST_TRANSFER = "is_host_transfer=true"
_HOST_MEMORY = "S(5)"
_STARTS = r"-start\("
_OPCODE = r"(?:[a-z]+-)*(?:start|done|update)"
_PLACES = (
    {"HtoD": "host", "DtoH": "device", "DtoD": "device"},
    {"HtoD": "device", "DtoH": "host", "DtoD": "device"},
)


def instruction_classes(space: Index, shown: pl.DataFrame, name_stats: Stats) -> pl.DataFrame:
    """row, class of the event names on TPUs that are not plain computation."""
    planes = [i for i, plane in enumerate(space.planes) if device_of(plane.name).kind == "tpu"]
    names = shown.with_row_index("row").filter(pl.col("plane").is_in(planes))
    category = values_at(names["row"], name_stats.texts_of("hlo_category")).cast(pl.String)
    known = pl.when(~pl.col("category").str.contains(_OPEN_CATEGORY)).then("category")
    what = pl.coalesce(known, pl.col("name").str.replace(_NUMBER, ""))
    over_bus = pl.col("what").str.contains(_TRANSFER) | pl.col("raw").str.contains(
        _HOST_TRANSFER, literal=True
    )
    judged: Any = (
        pl.when(over_bus).then(TRANSFER)
        .when(pl.col("what").str.contains(_COLLECTIVE)).then(COLLECTIVE)
        .when(pl.col("what").str.contains(_CONTAINER)).then(CONTAINER)
    )  # fmt: skip
    rows = names.with_columns(category=category).with_columns(what=what)
    return rows.select("row", judged.cast(pl.UInt8).alias("class")).drop_nulls()


def with_classes(name_class: bytes, found: pl.DataFrame) -> bytes:
    """The classes of all names, where those of instructions replace what the name alone says."""
    classes = bytearray(name_class)
    for row, instruction_class in found.iter_rows():
        classes[row] = instruction_class
    return bytes(classes)


def with_roles(events: pl.DataFrame, known: Events, name_class: bytes) -> pl.DataFrame:
    """The events, where communication of devices has its role, and loops that show their content are only its scope."""
    if not {COLLECTIVE, CONTAINER} & set(name_class):
        return events
    of_event = _by_name(known, name_class).gather(known.name_rows)
    on_core = events["track"].is_in(lines_of(known, CORE_OPS, ASYNC_OPS).implode())
    talks = (on_core & (of_event == COLLECTIVE)).arg_true()
    none = pl.repeat(None, len(events), dtype=Role, eager=True)
    role = events["role"] if "role" in events.columns else none
    role = role.scatter(talks, pl.repeat("collective", len(talks), dtype=Role, eager=True))
    loops = _enclosing(events.filter(on_core), on_core.arg_true(), of_event.filter(on_core) == CONTAINER)
    kind = events["kind"].scatter(loops, pl.repeat("scope", len(loops), dtype=Kind, eager=True))
    return events.with_columns(role=role, kind=kind)


def _by_name(known: Events, name_class: bytes) -> pl.Series:
    """The class of each name; ids without a name, which come last, have none."""
    return pl.Series([*name_class, *bytes(len(known.names) - len(name_class))], dtype=pl.UInt8)


def lines_of(known: Events, *wanted: int) -> pl.Series:
    """The tracks of lines of these classes."""
    return pl.Series([i for i, line in enumerate(known.line_classes) if line in wanted], dtype=pl.UInt32)


def _enclosing(work: pl.DataFrame, rows: pl.Series, is_container: pl.Series) -> pl.Series:
    """The rows of those containers inside which other work of their line begins."""
    ordered = work.select("track", "start_ns", "dur_ns", row=rows, container=is_container).sort(
        "track", "start_ns", "dur_ns", descending=[False, False, True]
    )
    next_start = pl.col("start_ns").shift(-1).over("track")
    encloses = (next_start < pl.col("start_ns") + pl.col("dur_ns")).fill_null(False)
    found: pl.Series = ordered.filter(pl.col("container") & encloses)["row"]
    return found


def moves(events: pl.DataFrame, known: Events, name_class: bytes) -> pl.DataFrame:
    """The `copies` of TPUs: between which memories, and how many bytes.

    The wait for a copy moves nothing where the copy itself is an event of the asynchronous line.
    """
    names = known.names.filter(_by_name(known, name_class) == TRANSFER)
    if names.is_empty():
        return pl.DataFrame()
    size = known.name_stats.numbers("bytes_accessed").rename({"owner": "row", "value": "bytes"})
    described = names.select(
        "row", direction=_direction(pl.col("raw")), starts=pl.col("raw").str.contains(_STARTS)
    ).join(size, on="row", how="left")
    rows = pl.DataFrame({"row": known.name_rows, "track": events["track"]}).with_row_index("event")
    shown = rows.filter(pl.col("track").is_in(lines_of(known, ASYNC_OPS).implode()))["track"].unique()
    rows = rows.filter((events["kind"] == "copy") & pl.col("row").is_in(names["row"].implode()))
    plane = known.tracks["process"]
    has_both = plane.gather(rows["track"]).is_in(plane.gather(shown).implode())
    counts = pl.col("track").is_in(shown.implode()) | (~has_both & ~pl.col("starts"))
    ends = (
        pl.col("direction").replace_strict(_PLACES[end], return_dtype=pl.String).cast(Text) for end in (0, 1)
    )
    return rows.join(described, on="row", how="left", maintain_order="left").select(
        "event",
        pl.when(counts).then("bytes").cast(pl.Int64).alias("bytes"),
        pl.col("direction").cast(Text),
        next(ends).alias("source"),
        next(ends).alias("target"),
    )


def _direction(raw: pl.Expr) -> pl.Expr:
    """By the memories in the layouts of what an instruction gives and what it takes."""
    given, taken = raw.str.extract(rf"^(.*?) {_OPCODE}\("), raw.str.extract(rf" {_OPCODE}\((.*)$", 1)
    on_host = raw.str.contains(_HOST_MEMORY, literal=True)
    starts = raw.str.contains(_STARTS)
    # A start gives both of its ends and takes the source; a done takes both and gives the target.
    up = (
        pl.when(starts)
        .then(taken.str.contains(_HOST_MEMORY, literal=True))
        .otherwise(~given.str.contains(_HOST_MEMORY, literal=True))
    )
    enters, leaves = raw.str.contains(r"\b(infeed|recv)"), raw.str.contains(r"\b(outfeed|send)")
    return (
        pl.when(enters | (on_host & up)).then(pl.lit("HtoD"))
        .when(leaves | on_host).then(pl.lit("DtoH"))
        .otherwise(pl.lit("DtoD"))
    )  # fmt: skip
