"""A memory snapshot for the page: how it went, the segments and stacks of a moment, and the frames of a stack."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.analysis.context import RankContext
from stepscope.analysis.snapshot.course import take_course
from stepscope.analysis.snapshot.flame import flame_of_bytes
from stepscope.analysis.snapshot.growth import SITE
from stepscope.analysis.snapshot.history import History, follow
from stepscope.analysis.snapshot.moment import look_at, merge_small
from stepscope.registers.policy.tables import DEEPEST_STACK
from stepscope.server.api.context import rank_context
from stepscope.server.api.routes import Answer, Ask, Json, RunRoute
from stepscope.server.http.request import LARGEST_INTEGER, BadRequest, Query

BINS = 400
MOST_BINS = 2_000
MOST_SEGMENTS = 1_000
MOST_PIECES = 3_000
LIVE_ROWS = 200
_ADDRESS = 20  # characters
_LINE = pl.format("{}:{}", pl.col("site_file").str.extract(r"([^/\\]+)$"), "site_line")


def course(ask: Ask) -> Answer:
    """Allocated by kind and reserved over time, and when requests failed."""
    context, device = _wanted(ask)
    start = ask.query.maybe_integer("start", -LARGEST_INTEGER, LARGEST_INTEGER)
    end = ask.query.maybe_integer("end", -LARGEST_INTEGER, LARGEST_INTEGER)
    bins = ask.query.integer("points", 2, MOST_BINS, BINS)

    def make() -> dict[str, Any]:
        history = _history(ask, context, device)
        if history.last < 0:
            return {"time_ns": [], "reserved": [], "kinds": {}, "failures": []}
        first, last = (int(history.rows["time_ns"][place]) for place in (0, history.last))
        found = take_course(history, first if start is None else start, last if end is None else end, bins)
        return {
            "time_ns": found.time_ns,
            "reserved": found.reserved,
            "kinds": found.kinds,
            "failures": _failures(context, device),
        }

    return Json(ask.run.later(f"snapshot course {context.rank} {device} {start} {end} {bins}", make))


def moment(ask: Ask) -> Answer:
    """The segments with their blocks, and what is in use by kind and line, at `at` or at the end; `block` is an address that is looked at."""
    context, device = _wanted(ask)
    at = ask.query.maybe_integer("at", -LARGEST_INTEGER, LARGEST_INTEGER)
    block = _address(ask.query)

    def make() -> dict[str, Any]:
        history = _history(ask, context, device)
        place = None if at is None else history.place_at(at)
        found = look_at(history, place)
        segments = found.segments.sort("bytes", descending=True).head(MOST_SEGMENTS).sort("segment")
        shown = found.pieces.join(segments.select("segment"), on="segment", how="semi", maintain_order="left")
        return {
            "at": at,
            "bytes": int(found.live["bytes"].sum()),
            "blocks": len(found.live),
            "segments": _write_segments(segments),
            "segments_left_out": len(found.segments) - len(segments),
            "pieces": _write_pieces(merge_small(shown, MOST_PIECES, block)),
            **_write_live(found.live, history),
        }

    return Json(ask.run.later(f"snapshot moment {context.rank} {device} {at} {block}", make))


def flame(ask: Ask) -> Answer:
    """The stacks that allocated what is in use, as a flame graph of bytes."""
    context, device = _wanted(ask)
    at = ask.query.maybe_integer("at", -LARGEST_INTEGER, LARGEST_INTEGER)

    def make() -> dict[str, Any]:
        history = _history(ask, context, device)
        live = history.live_at(history.last if at is None else history.place_at(at))
        found = flame_of_bytes(context.whole_trace, live)
        columns = found.nodes.columns
        return {
            "names": found.names,
            "columns": columns,
            "nodes": found.nodes.rows(),
            "left_out": found.left_out,
        }

    return Json(ask.run.later(f"snapshot flame {context.rank} {device} {at}", make))


def stack(ask: Ask) -> Answer:
    """The frames of a stack, the innermost first, and the place among them that counts as its line."""
    context = rank_context(ask.run, ask.query)
    number = ask.query.integer("number", 0, 0xFFFFFFFF)
    frames = context.whole_trace.frames.filter(pl.col("stack") == number).sort("depth")
    if frames.is_empty():
        raise BadRequest("The snapshot has no such stack.", where="number")
    text = pl.col("function", "file").cast(pl.String)
    rows = frames.head(DEEPEST_STACK).select(text, "line")
    return Json({"stack": number, "frames": rows.rows(named=True), "total": len(frames)})


def _wanted(ask: Ask) -> tuple[RankContext, int]:
    """The rank, and the device of its snapshot."""
    context = rank_context(ask.run, ask.query)
    known = sorted(
        {
            *context.whole_trace.blocks["device"].unique(),
            *context.whole_trace.memory["device"].drop_nulls().unique(),
        }
    )
    device = ask.query.integer("device", 0, LARGEST_INTEGER, int(known[0]) if known else 0)
    if not context.snapshots or device not in known:
        raise BadRequest("There is no memory snapshot of this device.", where="device")
    return context, device


def _history(ask: Ask, context: RankContext, device: int) -> History:
    return ask.run.kept(f"snapshot {context.rank} {device}", lambda: follow(context.whole_trace, device))


def _address(query: Query) -> int | None:
    words = query.text("block", _ADDRESS, "")
    try:
        return int(words, 16) if words else None
    except ValueError:
        raise BadRequest("block is not an address in hexadecimal digits.", where="block") from None


def _failures(context: RankContext, device: int) -> list[dict[str, Any]]:
    found = context.whole_trace.info.capture_options.get("out_of_memory")
    rows = found if isinstance(found, list) else []
    return [
        {"time_ns": row["time_ns"], "asked": row["asked"]}
        for row in rows
        if isinstance(row, dict) and row.get("device") == device
    ]


def _write_segments(segments: pl.DataFrame) -> list[dict[str, Any]]:
    return [{**row, "segment": f"{row['segment']:x}"} for row in segments.iter_rows(named=True)]


def _write_pieces(pieces: pl.DataFrame) -> dict[str, Any]:
    """Addresses as text: a number of JavaScript cannot hold them all."""
    rows = pieces.select(
        "segment", "address", offset=(pl.col("address") - pl.col("segment")).cast(pl.Int64),
        bytes="bytes", kind="kind", requested="requested", stack="stack", time_ns="time_ns", count="count", line=_LINE,
    )  # fmt: skip
    return {
        "columns": rows.columns,
        "rows": [(f"{segment:x}", f"{address:x}", *rest) for segment, address, *rest in rows.iter_rows()],
    }


def _write_live(live: pl.DataFrame, history: History) -> dict[str, Any]:
    """As for any other recorded memory: kind, op (the line), scope (its function), bytes."""
    named = live.join(history.stacks.select("stack", *SITE), on="stack", how="left")
    rows = (
        named.group_by("kind", op=_LINE, scope=pl.col("site_function"))
        .agg(pl.col("bytes").sum(), blocks=pl.len())
        .sort("bytes", "kind", "op", descending=[True, False, False], nulls_last=True)
    )
    return {"rows": rows.head(LIVE_ROWS).rows(named=True), "total": len(rows)}


ROUTES = (
    RunRoute("memory/snapshot/course", course),
    RunRoute("memory/snapshot/moment", moment),
    RunRoute("memory/snapshot/flame", flame),
    RunRoute("memory/snapshot/stack", stack),
)
