"""What a profile itself says of each instruction of a compiled program: category, FLOPs, bytes, and the line of the program.

TPUs describe every instruction that they run, so nothing has to be read from the program. Copies that overlap are described
as well: they are on lines of their own, and no work of the core.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import msgspec
import polars as pl

from stepscope.analysis.host.place import Place
from stepscope.trace.schema import Text
from stepscope.trace.trace import Trace

FACTS = {
    "event": pl.UInt32,
    "category": pl.String,
    "op": pl.String,
    "scope": pl.String,
    "flops": pl.Int64,
    "bytes": pl.Int64,
    "shapes": pl.String,
    "source": pl.String,
}
_OVERLAPS = "Async XLA Ops"
_LINE = re.compile(r"^(.+):(\d{1,9})$", re.DOTALL)
_FIGURES = tuple(name for name in FACTS if name != "event")


def instruction_facts(trace: Trace) -> pl.DataFrame:
    """FACTS of the work on the cores of devices that the file describes."""
    # Asked of every profile: what the file says is unpacked only where there are cores.
    stats = trace.cold.get("of_name") if len(_cores(trace)) else None
    if stats is None or stats.is_empty():
        return pl.DataFrame(schema=FACTS)
    rows = stats.select("event", pl.col("json").cast(Text)).filter(
        pl.col("event").is_in(_on_cores(trace, "kernel", "copy").implode())
    )
    texts = rows["json"].unique().drop_nulls()
    described = [_described(text) for text in texts.cast(pl.String)]
    schema: dict[str, Any] = {name: FACTS[name] for name in _FIGURES}
    table = pl.DataFrame(described, schema=schema, orient="row").with_columns(json=texts)
    found = rows.join(table, on="json", maintain_order="left").drop("json")
    return found.drop_nulls("category").select(*FACTS)


def sources(trace: Trace, events: pl.Series) -> list[Place]:
    """The lines of the program that these instructions come from, each once, in order.

    The compiler writes none for the copies that it adds: they are for the next instruction of their core that has one.
    """
    facts = instruction_facts(trace).select("event", "source", "op").sort("event")
    # Events are in the order of their tracks and times.
    place = pl.when(pl.col("source").is_not_null()).then(pl.struct("source", "op"))
    following = place.backward_fill().over(trace.events["track"].gather(facts["event"])).alias("place")
    known = facts.select("event", following).drop_nulls()
    wanted = pl.DataFrame({"event": events.cast(pl.UInt32)}).join(known, on="event", maintain_order="left")
    distinct = wanted["place"].struct.unnest().unique("source", keep="first", maintain_order=True)
    return [
        Place(line[1], int(line[2]), op or "")
        for source, op in distinct.iter_rows()
        if (line := _LINE.match(source))
    ]


def core_copies(trace: Trace) -> pl.Series:
    """Events of TPUs' cores in which they wait for a copy, start one, or are fed."""
    return _on_cores(trace, "copy")


def _on_cores(trace: Trace, *kinds: str) -> pl.Series:
    cores = _cores(trace)
    if cores.is_empty():
        return trace.events["id"].clear()
    wanted = pl.col("kind").is_in(kinds) & pl.col("track").is_in(cores.implode())
    found: pl.Series = trace.events.filter(wanted)["id"]
    return found


def _cores(trace: Trace) -> pl.Series:
    """The tracks on which TPUs compute."""
    found: pl.Series = trace.tracks.filter(
        pl.col("what") == "device",
        pl.col("device_kind") == "tpu",
        ~pl.col("thread").str.starts_with(_OVERLAPS),
    )["id"]
    return found


def _described(text: str) -> tuple[Any, ...]:
    """category, op, scope, flops, bytes, shapes, source of one description; all null where it has no category."""
    try:
        stats = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError):
        return tuple(None for _ in _FIGURES)
    category, path = _text(stats.get("hlo_category")), _text(stats.get("tf_op"))
    scope, _, op = (path or "").rstrip(":").rpartition("/")
    return (
        category,
        op.partition(":")[0] or category,
        scope or None,
        _whole(stats.get("model_flops", stats.get("flops"))),
        _whole(stats.get("bytes_accessed")),
        _shape(_text(stats.get("shape_with_layout"))),
        _text(stats.get("source")),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value <= sys.maxsize else None


def _shape(text: str | None) -> str | None:
    """The sides of the result as JSON, where it is a single array: `bf16[8,128]{1,0:T(8,128)}` is `[[8,128]]`."""
    if text is None or text.startswith("("):
        return None
    sides = text.partition("[")[2].partition("]")[0]
    return f"[[{sides}]]" if sides.replace(",", "").isdigit() or not sides else None
