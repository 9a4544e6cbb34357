"""Where the bytes went: allocated and reserved over time, the peak and what was live then, growth from step to step.

The peak is the largest total that the allocator reported; without totals it is the largest running sum of what was
recorded. An allocation is live at the peak if it came before it and was not yet freed. Memory that was taken
before the recording shows up only in the totals: it is the row of kind `unknown`, and `known_share` says how much of the
peak the recording explains. Growth is the median change of the total from the end of one step to the end of the next.
What grows only because the capture keeps tensors until its window closes, as its sidecar says, is left out of it.
Inside a compiled program no allocator is asked: a row of source `hlo` tells what the program takes (`program_memory`).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, cast

import polars as pl

from stepscope.analysis.ops.forward_backward import forward_ops, scopes_of
from stepscope.analysis.steps.find import Steps
from stepscope.analysis.xla.hlo_module import read_module
from stepscope.analysis.xla.memory import ProgramMemory, program_memory
from stepscope.analysis.xla.ops import programs_that_ran
from stepscope.lazy import dataclass
from stepscope.registers.levels import FEWEST_STEPS
from stepscope.registers.policy.device_findings import PEAK_KNOWN, STEADY_GROWTH
from stepscope.registers.policy.tables import MEMORY_POINTS
from stepscope.trace.frames import take_largest, take_median, take_smallest
from stepscope.trace.schema import DeviceKind
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

_HOLD_QUEUED = ("jax", "tensorflow")
_ROLES = ["input", "optimizer", "backward", "forward"]


@dataclass(frozen=True)
class DeviceMemory:
    """One device's memory, named as in the report."""

    device: int | None
    device_kind: str
    source: str
    peak_bytes: int | None
    peak_at_ns: int | None
    reserved_peak: int | None
    capacity_bytes: int | None
    timeline: pl.DataFrame  # time_ns, allocated, reserved
    at_peak: pl.DataFrame  # kind, op, scope, bytes
    growth_bytes_per_step: int | None
    never_freed_bytes: int | None
    fragmentation: float | None
    known_share: float | None
    note: str


def memory_use(trace: Trace, steps: Steps) -> list[DeviceMemory]:
    """A row per device whose allocations were recorded, and one for the largest compiled program on each."""
    return [*_allocators(trace, steps), *_programs(trace)]


def _programs(trace: Trace) -> list[DeviceMemory]:
    """What the largest program of each device takes while it runs."""
    largest: dict[int | None, tuple[ProgramMemory, str]] = {}
    for name, device, hlo in programs_that_ran(trace):
        found = program_memory(read_module(hlo))
        if found is not None and (device not in largest or found.peak_bytes > largest[device][0].peak_bytes):
            largest[device] = found, name
    return [
        _of_program(trace, device, *largest[device]) for device in sorted(largest, key=lambda one: one or 0)
    ]


def _of_program(trace: Trace, device: int | None, found: ProgramMemory, name: str) -> DeviceMemory:
    kinds = {one.get("id"): str(one.get("kind") or "gpu") for one in trace.info.devices}
    kind = "cpu" if device is None else kinds.get(device, "gpu")
    unknown = int(found.at_peak.filter(pl.col("kind") == "unknown")["bytes"].sum())
    return DeviceMemory(
        device=device,
        device_kind=kind,
        source="hlo",
        peak_bytes=found.peak_bytes,
        peak_at_ns=None,
        reserved_peak=None,
        capacity_bytes=_capacity(trace, kind, device),
        timeline=pl.DataFrame(schema={"time_ns": pl.Int64, "allocated": pl.Int64, "reserved": pl.Int64}),
        at_peak=found.at_peak,
        growth_bytes_per_step=None,
        never_freed_bytes=None,
        fragmentation=None,
        known_share=round(1 - unknown / found.peak_bytes, 4),
        note=f"The program {name} while it runs, by XLA's buffer assignment; memory that no program uses is not in it.",
    )


@dataclass(frozen=True)
class Recorded:
    """What one allocator recorded: `rows` in time order with `allocated` and `reserved`, `spans` from allocation to release."""

    device_kind: str
    device: int | None
    rows: pl.DataFrame
    spans: pl.DataFrame
    places: _Places

    @property
    def lives(self) -> pl.DataFrame:
        """The spans, each with what it is and where it was allocated."""
        return self.places.describe(self.spans)

    def total_at(self, time_ns: int) -> int | None:
        """Bytes in use at a moment; None before the first record."""
        place = int(self.rows["time_ns"].search_sorted(time_ns, side="right"))
        return cast("int | None", self.rows["allocated"][place - 1]) if place else None

    def live_at(self, time_ns: int, total: int | None) -> pl.DataFrame:
        """What was live then: kind, op, scope, bytes; together they are the total."""
        if self.has_kinds:
            return self._by_recorded_kind(time_ns)
        if not self.has_addresses:
            return _nothing_live(total)
        return _by_kind(self.places.describe(self._live(time_ns)), total)

    def known_at(self, time_ns: int) -> int:
        """Bytes of what was live then and whose allocation was recorded."""
        if self.has_kinds:
            return int(self._by_recorded_kind(time_ns).filter(pl.col("kind") != "unknown")["bytes"].sum())
        return int(self._live(time_ns)["bytes"].sum())

    @property
    def has_kinds(self) -> bool:
        """Whether the recorder itself says what each allocation is."""
        return self.rows["kind"].count() > 0

    def _by_recorded_kind(self, time_ns: int) -> pl.DataFrame:
        """What was live then, by the kinds of a recorder that follows every change."""
        before = self.rows.filter(pl.col("time_ns") <= time_ns).with_columns(pl.col("kind").cast(pl.String))
        summed = before.group_by("kind").agg(pl.col("bytes").sum()).filter(pl.col("bytes") > 0)
        nothing = pl.lit(None, dtype=pl.String)
        return summed.select("kind", op=nothing, scope=nothing, bytes="bytes").sort(
            "bytes", "kind", descending=[True, False]
        )

    @property
    def has_addresses(self) -> bool:
        """Without them nobody can tell when an allocation was released."""
        return self.spans["address"].count() > 0

    def _live(self, time_ns: int) -> pl.DataFrame:
        is_there = pl.col("freed_ns").is_null() | (pl.col("freed_ns") > time_ns)
        return self.spans.filter(pl.col("time_ns") <= time_ns, is_there)


def recorded(trace: Trace) -> list[Recorded]:
    """For each device and the host, what its allocator recorded."""
    rows = trace.memory
    if rows.is_empty():
        return []
    # The host is one, whatever number a writer gave it.
    rows = rows.with_columns(device=pl.when(pl.col("device_kind") != "cpu").then(pl.col("device")))
    spans, places = _spans(trace), _Places(trace)
    found = []
    for (kind, device), frame in rows.group_by("device_kind", "device", maintain_order=True):
        of_kind = pl.col("device_kind").eq_missing(pl.lit(kind, dtype=DeviceKind))
        mine = spans.filter(of_kind, pl.lit(kind == "cpu") | pl.col("device").eq_missing(device))
        found.append(Recorded(str(kind), cast("int | None", device), _with_totals(frame), mine, places))
    return sorted(found, key=lambda one: (one.device_kind == "cpu", one.device or 0))


def _allocators(trace: Trace, steps: Steps) -> list[DeviceMemory]:
    return [_of_device(trace, steps, found) for found in recorded(trace)]


def _with_totals(rows: pl.DataFrame) -> pl.DataFrame:
    """In time order, with the running sum where the allocator gave no total."""
    ordered = rows.sort("time_ns", maintain_order=True)
    running = pl.col("bytes").cum_sum()
    recorded = running - running.min().clip(upper_bound=0)
    # On the host several allocators write totals of their own, or none: what was recorded is there in any case.
    total = pl.when(pl.col("device_kind") == "cpu").then(pl.max_horizontal("total_allocated", recorded))
    return ordered.with_columns(
        allocated=pl.coalesce(total.otherwise("total_allocated"), recorded),
        reserved="total_reserved",
    )


def _of_device(trace: Trace, steps: Steps, found: Recorded) -> DeviceMemory:
    kind, device, rows = found.device_kind, found.device, found.rows
    peak_row = rows.row(int(rows["allocated"].arg_max() or 0), named=True)
    peak, at = peak_row["allocated"], peak_row["time_ns"]
    known = found.known_at(at)
    has_addresses = found.has_addresses or found.has_kinds
    reserved = peak_row["reserved"]
    return DeviceMemory(
        device=device,
        device_kind=kind,
        source="allocator",
        peak_bytes=peak,
        peak_at_ns=at,
        reserved_peak=cast("int | None", rows["reserved"].max()),  # a column of whole numbers
        capacity_bytes=_capacity(trace, kind, device),
        timeline=timeline(rows),
        at_peak=found.live_at(at, peak),
        growth_bytes_per_step=_without_kept(
            trace, device, steps, _growth(rows, steps, _queued(trace, steps, device))
        ),
        never_freed_bytes=_never_freed(trace, found.spans, steps) if found.has_addresses else None,
        fragmentation=round(1 - peak / reserved, 4)
        if reserved and peak is not None and reserved >= peak
        else None,
        known_share=round(min(1.0, known / peak), 4) if peak and has_addresses else None,
        note=_note(known, peak, has_addresses, rows["total_allocated"].count() > 0),
    )


def _note(known: int, peak: int | None, has_addresses: bool, has_totals: bool) -> str:
    if not has_totals:
        return "The profiler wrote no totals: figures count from the beginning of the recording, and what was live at the peak is unknown."
    if not has_addresses:
        return "The profiler wrote no addresses, so what was live at the peak is unknown."
    if peak and known < PEAK_KNOWN * peak:
        return f"{100 - 100 * known / peak:.0f} % of the peak was allocated before the recording began: parameters, optimizer state and the like."
    return ""


def _capacity(trace: Trace, kind: str, device: int | None) -> int | None:
    if kind == "cpu":
        return None
    for one in trace.info.devices:
        if device in (one.get("id"), None):
            size: Any = one.get("totalGlobalMem") or one.get("memory_size")
            return size if isinstance(size, int) else None
    return None


def timeline(rows: pl.DataFrame, points: int = MEMORY_POINTS) -> pl.DataFrame:
    """At most so many points: each bin keeps its highest total, so no peak is lost, and its last, which holds until the next."""
    columns = ("time_ns", "allocated", "reserved")
    if len(rows) <= points:
        return rows.select(columns)
    low, high = rows["time_ns"][0], rows["time_ns"][-1]
    width = max(1, (high - low) // max(1, points // 2) + 1)
    binned = rows.select("allocated", bin=(pl.col("time_ns") - low) // width).with_row_index("place")
    kept = binned.group_by("bin", maintain_order=True).agg(
        top=pl.col("place").get(pl.col("allocated").arg_max()), last=pl.col("place").last()
    )
    places = pl.concat([kept["top"], kept["last"]]).drop_nulls().unique().sort()
    kept_rows: pl.DataFrame = rows.select(columns)[places]
    return kept_rows


class _Places:
    """Where allocations were made and released: asked for those that are shown, which are few of all."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    @cached_property
    def _contexts(self) -> pl.DataFrame:
        """For every event the op and the role it lies in."""
        events = self._trace.events
        is_op = events["kind"] == "op"
        has_role = events["role"].is_in(_ROLES).fill_null(False)
        by_role = ancestors(events, has_role)
        return pl.DataFrame(
            {"op": ancestors(events, is_op), "role": events["role"].gather(by_role), "step": events["step"]}
        )

    def describe(self, spans: pl.DataFrame) -> pl.DataFrame:
        """With step, kind, op and scope of each, and what they follow from."""
        trace, contexts = self._trace, self._contexts
        event, freer = spans["event"], spans["freed_by"]
        return spans.with_columns(
            op_event=contexts["op"].gather(event),
            role=contexts["role"].gather(event).cast(pl.String),
            step=contexts["step"].gather(event),
            freed_role=contexts["role"].gather(freer).cast(pl.String),
            freed_op=contexts["op"].gather(freer),
        ).with_columns(
            kind=_KIND,
            op=_op_names(trace, contexts["op"].gather(event)),
            scope=_scopes(trace, contexts["op"].gather(event)),
        )


def _spans(trace: Trace) -> pl.DataFrame:
    """Every allocation with the time and place of its release, matched by address."""
    # The table is in time order, and a stable sort by one column is far quicker than one by five.
    devices = trace.memory.partition_by("device_kind", "device", maintain_order=True) or [trace.memory]
    return pl.concat([_with_release(rows.sort("address", maintain_order=True)) for rows in devices])


def _with_release(rows: pl.DataFrame) -> pl.DataFrame:
    """The allocations among the rows of one device, which come by address and time."""
    same = pl.col("address") == pl.col("address").shift(-1)
    freed = same & (pl.col("bytes").shift(-1) < 0)
    return rows.with_columns(
        freed_ns=pl.when(freed).then(pl.col("time_ns").shift(-1)),
        freed_by=pl.when(freed).then(pl.col("event").shift(-1)),
    ).filter(pl.col("bytes") > 0)


# What an allocation is, told from where it was made and where it was released.
_KIND = (
    pl.when(pl.col("role") == "input").then(pl.lit("input"))
    .when((pl.col("role") == "optimizer") & pl.col("freed_ns").is_null()).then(pl.lit("optimizer state"))
    .when(pl.col("role") == "optimizer").then(pl.lit("temporary"))
    .when((pl.col("role") == "backward") & (pl.col("freed_op") == pl.col("op_event"))).then(pl.lit("temporary"))
    .when(pl.col("role") == "backward").then(pl.lit("gradient"))
    .when(pl.col("freed_role") == "backward").then(pl.lit("activation"))
    .when(pl.col("freed_ns").is_not_null()).then(pl.lit("temporary"))
    .otherwise(pl.lit("unknown"))
)  # fmt: skip


def _op_names(trace: Trace, op: pl.Series) -> pl.Series:
    names: pl.Series = trace.events["name"].gather(op).cast(pl.String)
    return names


def _scopes(trace: Trace, op: pl.Series) -> pl.Series:
    found: pl.Series = scopes_of(trace, op, forward_ops(trace)).cast(pl.String)
    return found


def _by_kind(live: pl.DataFrame, total: int | None) -> pl.DataFrame:
    grouped = live.group_by("kind", "op", "scope").agg(pl.col("bytes").sum())
    missing = (total or 0) - int(live["bytes"].sum())
    if missing > 0:
        both = pl.concat([grouped, _nothing_live(missing)])
        grouped = both.group_by("kind", "op", "scope").agg(pl.col("bytes").sum())
    return grouped.sort("bytes", "op", "scope", "kind", descending=[True, False, False, False])


def _nothing_live(size: int | None) -> pl.DataFrame:
    schema = {"kind": pl.String, "op": pl.String, "scope": pl.String, "bytes": pl.Int64}
    return pl.DataFrame(
        [{"kind": "unknown", "op": None, "scope": None, "bytes": size}] if size else [], schema=schema
    )


def _growth(rows: pl.DataFrame, steps: Steps, queued: pl.Series | None) -> int | None:
    """Bytes that a step adds; where steps in the queue hold memory, between two with equally many before them."""
    if len(steps.host) < FEWEST_STEPS:
        return None
    place = rows["time_ns"].search_sorted(steps.host["end_ns"], side="right").cast(pl.Int64) - 1
    levels = rows["allocated"].gather(place.clip(lower_bound=0).cast(pl.UInt32))
    change = levels.diff().filter(place.shift(1) >= 0)
    if change.is_empty():
        return None
    if queued is not None:
        change = change.filter((queued.diff() == 0).filter(place.shift(1) >= 0))
        if len(change) < FEWEST_STEPS - 1:
            return 0
    low, high = take_smallest(change), take_largest(change)
    # What is kept by accident is kept in every step; a level that only drifts is no growth.
    return int(take_median(change)) if high < 0 or low >= STEADY_GROWTH * high else 0


def _without_kept(trace: Trace, device: int | None, steps: Steps, growth: int | None) -> int | None:
    """Without what the capture keeps: it takes equally much of each step, until it has enough."""
    noted = trace.info.capture.get("kept")
    kept = sum(
        each["bytes"]
        for each in (noted if isinstance(noted, list) else [])
        if isinstance(each, dict) and each.get("device") == device and isinstance(each.get("bytes"), int)
    )
    return max(0, growth - kept // len(steps.host)) if growth and growth > 0 and kept > 0 else growth


def _queued(trace: Trace, steps: Steps, device: int | None) -> pl.Series | None:
    """For each step how many the device had not done when the host had given it; None where these hold no memory.

    The host runs ahead of the device. A caching allocator of PyTorch takes back at once what the host lets go.
    """
    if trace.info.framework not in _HOLD_QUEUED:
        return None
    done = steps.windows.filter(pl.col("device").eq_missing(device))["end_ns"].sort()
    if done.is_empty():
        return None
    given = pl.int_range(1, len(steps.host) + 1, eager=True)
    waiting: pl.Series = given - done.search_sorted(steps.host["end_ns"], side="right").cast(pl.Int64)
    return waiting


def _never_freed(trace: Trace, spans: pl.DataFrame, steps: Steps) -> int:
    """Bytes allocated in all steps but the last that were still there at the end of the recording."""
    left = spans.filter(pl.col("freed_ns").is_null())
    if steps.host.is_empty():
        return int(left["bytes"].sum())
    step = trace.events["step"].gather(left["event"])
    return int(left["bytes"].filter(step != steps.host["step"][-1]).sum())
