"""Memory of a rank's devices: the curve of any interval, and what is live at a moment."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.analysis.memory import Recorded, recorded, timeline
from stepscope.analysis.memory_lives import Lives, lives_of_allocator, lives_of_program
from stepscope.server.api.context import rank_context
from stepscope.server.api.routes import Answer, Ask, Json, RunRoute
from stepscope.server.http.request import LARGEST_INTEGER, BadRequest, Query

MOST_POINTS = 4_000
POINTS = 1_000
LIVE_ROWS = 200


def memory(ask: Ask) -> Answer:
    """The curve between `start` and `end`, and with `at` what was live then."""
    context = rank_context(ask.run, ask.query)
    devices = ask.run.later(f"memory {context.rank}", lambda: recorded(context.whole_trace))
    points = ask.query.integer("points", 2, MOST_POINTS, POINTS)
    if not devices:
        return Json({"devices": [], "device": None, "timeline": [], "at": None})
    chosen = _chosen(devices, ask.query.text("device", 40, ""))
    start, end = _range(ask.query)
    return Json(
        {
            "devices": [_name(each) for each in devices],
            "device": _name(chosen),
            "timeline": _between(chosen.rows, start, end, points),
            "at": _at(chosen, ask.query),
        }
    )


def lives(ask: Ask) -> Answer:
    """The buffers that are live at the peak, from when to when: of a compiled program with `program`, else of the allocator."""
    context = rank_context(ask.run, ask.query)
    device = ask.query.text("device", 40, "")
    is_program = ask.query.has("program")

    def make() -> dict[str, Any]:
        if is_program:
            number = device.rpartition(":")[2]
            return _lives_written(
                lives_of_program(context.whole_trace, int(number) if number.isdecimal() else None)
            )
        devices = recorded(context.whole_trace)
        return _lives_written(lives_of_allocator(_chosen(devices, device)) if devices else None)

    return Json(ask.run.later(f"lives {context.rank} {device} {is_program}", make))


def _lives_written(found: Lives | None) -> dict[str, Any]:
    if found is None:
        return {"unit": "ns", "rows": [], "curve": [], "peak_at": None, "left_out": 0, "left_bytes": 0}
    rows = found.at_peak.head(LIVE_ROWS)
    rest = found.at_peak.slice(LIVE_ROWS)
    return {
        "unit": found.unit,
        "rows": rows.rows(named=True),
        "curve": found.curve.rows(),
        "peak_at": found.peak_at,
        "left_out": len(rest),
        "left_bytes": int(rest["bytes"].sum()),
    }


def _name(found: Recorded) -> str:
    if found.device_kind == "cpu":
        return "cpu"
    return f"{found.device_kind}:{'' if found.device is None else found.device}"


def _chosen(devices: list[Recorded], name: str) -> Recorded:
    if not name:
        return devices[0]
    found = next((each for each in devices if _name(each) == name), None)
    if found is None:
        known = ", ".join(map(_name, devices))
        raise BadRequest(f"No memory of this device was recorded. There are: {known}.", where="device")
    return found


def _range(query: Query) -> tuple[int, int]:
    start = query.integer("start", -LARGEST_INTEGER, LARGEST_INTEGER, -LARGEST_INTEGER)
    end = query.integer("end", -LARGEST_INTEGER, LARGEST_INTEGER, LARGEST_INTEGER)
    if end < start:
        raise BadRequest("end is before start.", where="end")
    return start, end


def _between(rows: pl.DataFrame, start: int, end: int, points: int) -> list[tuple[Any, ...]]:
    """time_ns, allocated and reserved; with the level at the start of the interval."""
    times = rows["time_ns"]
    first = max(0, int(times.search_sorted(start, side="left")) - 1)
    last = int(times.search_sorted(end, side="right"))
    return timeline(rows.slice(first, last - first), points).rows()


def _at(found: Recorded, query: Query) -> dict[str, Any] | None:
    time_ns = query.maybe_integer("at", -LARGEST_INTEGER, LARGEST_INTEGER)
    if time_ns is None:
        return None
    total = found.total_at(time_ns)
    live = found.live_at(time_ns, total)
    kinds = live.group_by("kind").agg(pl.col("bytes").sum()).sort("bytes", "kind", descending=[True, False])
    return {
        "time_ns": time_ns,
        "bytes": total,
        "kinds": kinds.rows(),
        "rows": live.head(LIVE_ROWS).rows(named=True),
        "total": len(live),
    }


ROUTES = (RunRoute("memory", memory), RunRoute("memory/lives", lives))
