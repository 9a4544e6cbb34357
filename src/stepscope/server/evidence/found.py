"""The events that a handle means on one rank, the worst first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.analysis.context import RankContext
from stepscope.analysis.parts import IDLE_PARTS
from stepscope.analysis.problem_events import EVENTS
from stepscope.server.evidence import calls, flames
from stepscope.server.evidence.handle import Handle
from stepscope.server.http.request import BadRequest
from stepscope.server.runs.owned import owned_time

Frames = Callable[[str, Callable[[RankContext], pl.DataFrame]], pl.DataFrame]
FURTHEST_NS = 2**62
_CHARGED = "the time charged to it"


@dataclass(frozen=True)
class Found:
    """`rows`: event, weight, start_ns, end_ns, the worst first; `event` is null for time that no event explains.

    `by` is what the weight is, in words; `span` is the interval that was asked for, where it is more than that of the events.
    """

    rows: pl.DataFrame
    by: str = "duration"
    unit: str = "ns"
    span: tuple[int, int] | None = None


def find_events(handle: Handle, frames: Frames) -> Found:
    """What the handle means; `frames` gives the frame of a name, made once."""
    if handle.kind in _TABLES:
        make, columns, by = _TABLES[handle.kind]
        frame = frames(make.__name__, make)
        return Found(_worst_first(_chosen(frame, handle, columns)), by)
    if handle.kind not in _WAYS:
        known = ", ".join(sorted({*_TABLES, *_WAYS}))
        raise BadRequest("There is no such kind of handle.", where="of", fix=f"The kinds are {known}.")
    return _WAYS[handle.kind](handle, frames)


# By kind the frame, its columns that name and facts may ask for (the name is the first), and what its weight is.
_TABLES: dict[str, tuple[Callable[[RankContext], pl.DataFrame], tuple[str, ...], str]] = {
    "kernel": (calls.kernel_events, ("name", "op", *calls.LAUNCH), "duration"),
    "phase": (calls.phase_events, ("name",), "duration"),
    "collective": (
        calls.collective_events,
        ("name", "group", "group_size", "dtype", "step", "bytes"),
        "duration",
    ),
    "copy": (calls.copy_events, ("direction", "source", "target"), "duration"),
    "stage": (calls.stage_calls, ("name",), "self time"),
    "compute": (calls.compute_events, ("title",), "time of this kind"),
    "roofline": (calls.roofline_events, ("class", "op"), "time"),
}


def _of_event(handle: Handle, frames: Frames) -> Found:
    rows = pl.DataFrame({"event": [handle.number()], "weight": [0]}, schema_overrides={"event": pl.Int64})
    return Found(_worst_first(rows))


def _of_op(handle: Handle, frames: Frames) -> Found:
    make = calls.stacked_op_events if "stack" in handle.facts else calls.op_events
    frame = frames(make.__name__, make)
    by = "device self time" if frame["on_device"].any() else "host self time"
    return Found(_worst_first(_chosen(frame, handle, ("name", "scope", "shapes", "placement", "stack"))), by)


def _of_account(handle: Handle, frames: Frames) -> Found:
    """Time of a part, or of all idle parts, by the account that the report shows."""
    slices = frames("account_slices", calls.account_slices).filter("critical")
    if not handle.name:
        slices = slices.filter(pl.col("part").is_in(IDLE_PARTS))
    return Found(_by_event(_chosen(slices, handle, ("part", "name", "thread", "step"))), _CHARGED)


def _of_step(handle: Handle, frames: Frames) -> Found:
    """What a step does, beginning with what takes longer in it than in the others."""
    slices = frames("account_slices", calls.account_slices)
    wanted = {"step": handle.number()} | handle.facts
    slices = slices.filter("critical") if "device" not in wanted else slices
    chosen = _matching(slices, wanted, ("step", "device", "part"))
    if chosen.is_empty():
        return Found(_by_event(chosen))
    extra = _beyond_others(slices, handle.number())
    joined = chosen.join(extra, on=["part", "name"], how="left", nulls_equal=True, maintain_order="left")
    return Found(
        _by_event(joined),
        "what it takes beyond the other steps",
        span=_extent(slices.filter(pl.col("step") == handle.number())),
    )


def _beyond_others(slices: pl.DataFrame, step: int) -> pl.DataFrame:
    """part, name, first: what each takes in this step beyond its mean in the others."""
    others = max(1, slices["step"].n_unique() - 1)
    mine = pl.col("weight").filter(pl.col("step") == step).sum()
    rest = (pl.col("weight").sum() - mine) / others
    return slices.group_by("part", "name").agg((mine - rest).cast(pl.Int64).alias("first"))


def _of_idle(handle: Handle, frames: Frames) -> Found:
    """Why a device was idle in an interval."""
    low, high = (_moment(handle.facts, name) for name in ("start", "end"))
    slices = frames("account_slices", calls.account_slices)
    device = pl.lit(handle.number() if handle.name else None, dtype=pl.Int32)
    inside = slices.filter(
        pl.col("device").eq_missing(device),
        pl.col("part").is_in(IDLE_PARTS),
        pl.col("start_ns") < high,
        pl.col("end_ns") > low,
    )
    return Found(_by_event(inside), _CHARGED, span=(low, high))


def _of_memory(handle: Handle, frames: Frames) -> Found:
    """Allocations that were live at a moment, or at the peak, the largest first."""
    facts = dict(handle.facts)
    lives = frames("allocations", calls.allocations)
    if facts.get("at") is None:
        live = lives.filter("at_peak")
    else:
        at, freed = _moment(facts, "at"), pl.col("freed_ns")
        live = lives.filter(pl.col("time_ns") <= at, freed.is_null() | (freed > at))
    facts.pop("at", None)
    wanted = Handle(handle.kind, handle.name, facts)
    return Found(_worst_first(_chosen(live, wanted, ("kind", "op", "scope", "device"))), "size", "bytes")


def _of_finding(handle: Handle, frames: Frames) -> Found:
    """The slices that the finding owns; for one about memory, what is kept or live at the peak."""
    owned = frames("owned_time", owned_time).filter(pl.col("code") == handle.name)
    rows = owned.rename({"named_by": "event", "ns": "weight"})
    if len(rows):
        return Found(_by_event(rows), _CHARGED)
    if not handle.name.startswith("memory-"):
        return Found(_worst_first(_chosen(rows, Handle("finding", "", {}), ())))
    lives = frames("allocations", calls.allocations).filter(pl.col("device") != "cpu")
    kept = pl.col("freed_ns").is_null() & pl.col("step").is_not_null()
    chosen = lives.filter(kept if handle.name == "memory-growth" else "at_peak")
    return Found(_worst_first(chosen), "size", "bytes")


def _of_frame(handle: Handle, frames: Frames) -> Found:
    """Calls in a box of a flame graph by call stack."""
    rows = frames(f"frame {handle.key}", lambda context: flames.frame_events(context, handle))
    return Found(_worst_first(rows), *flames.words_of(handle.facts))


def _of_scope(handle: Handle, frames: Frames) -> Found:
    """Calls of ops in a box of a flame graph by module or name scope."""
    rows = frames(f"scope {handle.key}", lambda context: flames.scope_events(context, handle))
    return Found(_worst_first(rows), *flames.words_of(handle.facts))


def _of_problem(handle: Handle, frames: Frames) -> Found:
    """Of a problem of the doctor; one that is not about recorded events has none."""
    make = EVENTS.get(handle.name)
    if make is None:
        raise BadRequest("This problem is not about events.", where="of")
    by = "how much too early it starts" if handle.name == "clock-inversion" else "duration"
    return Found(_worst_first(frames(f"problem {handle.name}", make)), by)


_WAYS: dict[str, Callable[[Handle, Frames], Found]] = {
    "event": _of_event,
    "op": _of_op,
    "account": _of_account,
    "step": _of_step,
    "idle": _of_idle,
    "memory": _of_memory,
    "finding": _of_finding,
    "frame": _of_frame,
    "scope": _of_scope,
    "problem": _of_problem,
}


def _chosen(frame: pl.DataFrame, handle: Handle, columns: tuple[str, ...]) -> pl.DataFrame:
    """The rows that the handle means; a handle without a name means all."""
    named = {columns[0]: handle.name} if handle.name and columns else {}
    return _matching(frame, named | handle.facts, columns)


def _matching(frame: pl.DataFrame, wanted: dict[str, Any], columns: tuple[str, ...]) -> pl.DataFrame:
    unknown = sorted(wanted.keys() - set(columns))
    if unknown:
        fix = f"There are {', '.join(columns)}."
        raise BadRequest(f"There is no fact {unknown[0][:60]!r} here.", where="with", fix=fix)
    return frame.filter(*(_is(frame, name, value) for name, value in wanted.items()))


def _is(frame: pl.DataFrame, name: str, value: object) -> pl.Expr:
    """Whether a column has the value of a fact; whatever does not fit the column is nowhere in it."""
    dtype = frame.schema[name]
    if value is None:
        return pl.col(name).is_null()
    if isinstance(dtype, pl.Array):
        return _is_extent(name, value, dtype.size)
    if isinstance(value, bool) or dtype == pl.Boolean:
        return pl.col(name) == value if dtype == pl.Boolean and isinstance(value, bool) else pl.lit(False)
    if isinstance(value, str) and not dtype.is_numeric():
        return pl.col(name).cast(pl.String) == value
    if isinstance(value, int) and dtype.is_numeric() and abs(value) < FURTHEST_NS:
        return pl.col(name).cast(pl.Int64) == value
    return pl.lit(False)


def _is_extent(name: str, value: object, size: int) -> pl.Expr:
    if not isinstance(value, list) or len(value) != size or not all(type(each) is int for each in value):
        return pl.lit(False)
    return pl.all_horizontal(pl.col(name).arr.get(at).cast(pl.Int64) == each for at, each in enumerate(value))


def _moment(facts: dict[str, Any], name: str) -> int:
    value = facts.get(name)
    if isinstance(value, str) and value.lstrip("-").isdigit() and value.isascii() and len(value) <= 19:
        value = int(value)
    if type(value) is not int or abs(value) > FURTHEST_NS:
        raise BadRequest(f"{name} must be a whole number.", where="with")
    return value


def _extent(slices: pl.DataFrame) -> tuple[int, int] | None:
    if slices.is_empty():
        return None
    low, high = slices.select(pl.col("start_ns").min(), pl.col("end_ns").max()).row(0)
    return int(low), int(high)


def _by_event(slices: pl.DataFrame) -> pl.DataFrame:
    """Each event once, at the longest of its slices; slices without an event stay as they are."""
    first = pl.col("first") if "first" in slices.columns else pl.lit(0, dtype=pl.Int64)
    rows = slices.select("event", "start_ns", "end_ns", "weight", first=first)
    longest = pl.col("weight").arg_max()
    named = rows.drop_nulls("event").group_by("event", maintain_order=True).agg(
        pl.col("start_ns", "end_ns").get(longest), pl.col("weight").sum(), pl.col("first").max()
    )  # fmt: skip
    both = pl.concat([named, rows.filter(pl.col("event").is_null())], how="diagonal_relaxed")
    order = ["first", "weight", "event"]
    return both.sort(order, descending=[True, True, False]).drop("first")


def _worst_first(rows: pl.DataFrame) -> pl.DataFrame:
    """event and weight, in order; the time is that of the event."""
    ordered = rows.drop_nulls("event").sort(["weight", "event"], descending=[True, False])
    none = pl.lit(None, dtype=pl.Int64)
    return ordered.select(
        pl.col("event").cast(pl.UInt32, strict=False),
        pl.col("weight").cast(pl.Int64),
        start_ns=none,
        end_ns=none,
    )
