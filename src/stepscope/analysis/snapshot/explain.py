"""A memory snapshot explained: what was live when the allocator gave up (or when the snapshot was taken), by kind and by line."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.analysis.host.place import Place
from stepscope.analysis.snapshot.change import Change
from stepscope.analysis.snapshot.changes import list_changes
from stepscope.analysis.snapshot.fragments import Fragments, find_fragments
from stepscope.analysis.snapshot.frozen import find_frozen
from stepscope.analysis.snapshot.growth import INNER, SITE, Growing, find_growing
from stepscope.analysis.snapshot.history import follow
from stepscope.analysis.snapshot.kept import Kept, find_kept
from stepscope.analysis.snapshot.kinds import with_kinds
from stepscope.analysis.snapshot.lives import list_allocations, list_live, live_at, until
from stepscope.analysis.snapshot.moment import blocks_at
from stepscope.analysis.snapshot.stacks import describe_stacks
from stepscope.analysis.snapshot.step import find_step
from stepscope.analysis.snapshot.unseen import fill_stacks
from stepscope.lazy import dataclass
from stepscope.registers.policy.snapshot import UNWOUND
from stepscope.trace.snapshot import ROUNDED_TO, is_snapshot
from stepscope.trace.trace import Trace


@dataclass(frozen=True)
class Explained:
    """One device. `by_kind`: kind, bytes, blocks. `by_line`: kind, site_*, inner_*, bytes, blocks; both the largest first.

    `held`: kind, site_*, bytes, and the share `current` that the current step made, of what no list or graph keeps. It has the
    bytes as the owner of a tensor counts them: what was asked for, in multiples of 512. Blocks can
    be larger, where the allocator did not split the rest off. `frozen` are the lines of weights that nothing trains.
    `at_peak`: kind, site_*, bytes, blocks of what was live at the highest total, `peak_before_ns` before the history ends.
    """

    device: int
    failed: bool
    asked: int | None
    failed_at: Place | None
    allocated: int
    at_peak: pl.DataFrame
    peak_bytes: int
    peak_before_ns: int
    by_kind: pl.DataFrame
    by_line: pl.DataFrame
    held: pl.DataFrame
    frozen: frozenset[tuple[str, int]]
    makes_state: bool  # the request that failed was for the optimizer's state
    kept: list[Kept]
    growing: list[Growing]
    fragments: Fragments
    changes: list[Change]
    known_share: float


def explain(trace: Trace) -> list[Explained]:
    """Each device of the snapshot; none where the trace is none."""
    if not is_snapshot(trace) or trace.memory["kind"].count():  # a timeline has kinds, and no addresses
        return []
    trace = fill_stacks(trace)
    stacks = describe_stacks(trace)
    failures = trace.info.capture_options.get("out_of_memory")
    return [
        _explain_device(trace, int(device), stacks, _last_failure(failures, int(device)))
        for device in pl.concat([trace.blocks["device"], trace.memory["device"]]).unique().sort()
    ]


def _last_failure(failures: Any, device: int) -> dict[str, Any] | None:
    rows = failures if isinstance(failures, list) else []
    mine = [row for row in rows if isinstance(row, dict) and row.get("device") == device]
    return mine[-1] if mine else None


def _explain_device(
    trace: Trace, device: int, stacks: pl.DataFrame, failure: dict[str, Any] | None
) -> Explained:
    allocations = list_allocations(trace, device)
    history = trace.memory.filter(pl.col("device") == device)
    at_end = list_live(trace, device, allocations)
    live = at_end.select("stack", "bytes", "place", "requested")
    place = len(history) - 1
    if failure is not None:
        place = int(history["time_ns"].search_sorted(failure["time_ns"], side="right")) - 1
        live = live if place == len(history) - 1 else live_at(at_end, allocations, place)
    known = until(allocations, place)
    named = with_kinds(live, known, stacks).with_columns(_SIZE).with_row_index("row")
    kept, rows = find_kept(named, known, stacks, place)
    growing = [each for each in find_growing(named, known, stacks) if not _is_named(each, kept)]
    blocks = trace.blocks.filter(pl.col("device") == device)
    fragments = find_fragments(blocks, with_kinds(at_end, allocations, stacks))
    allocated = int(named["bytes"].sum())
    if -int(history["bytes"][place + 1 :].clip(upper_bound=0).sum()) > UNWOUND * allocated:
        fragments = find_fragments(*blocks_at(follow(trace, device), place))
    asked = int(failure["asked"]) if failure is not None else None
    expandable = bool((blocks["segment_kind"].cast(pl.String) == "expandable").any())
    at_peak, peak, before = _peak(history, at_end, allocations, stacks, named, allocated)
    return Explained(
        device=device,
        failed=failure is not None,
        asked=asked,
        failed_at=_place_of(stacks, failure),
        allocated=allocated,
        at_peak=at_peak,
        peak_bytes=peak,
        peak_before_ns=before,
        by_kind=_summed(named, ["kind"]),
        by_line=_summed(named, ["kind", *SITE, *INNER]),
        held=_hold(named.filter(~pl.col("row").is_in(rows.implode())), find_step(known, stacks, place)),
        frozen=find_frozen(named),
        makes_state=_makes_state(stacks, failure),
        kept=kept,
        growing=growing,
        fragments=fragments,
        changes=list_changes(named, kept, growing, fragments, asked or 0, expandable),
        known_share=int(named.filter(pl.col("site_file").is_not_null())["bytes"].sum()) / max(1, allocated),
    )


_ASKED = -(-pl.col("requested") // ROUNDED_TO) * ROUNDED_TO
_SIZE = (
    pl.when(pl.col("requested") > 0).then(pl.min_horizontal(_ASKED, "bytes")).otherwise("bytes").alias("size")
)


def _is_named(each: Growing, kept: list[Kept]) -> bool:
    """A line that keeps what it allocates need not be named again because that becomes larger."""
    return all(any(line[:2] == (one.file, one.line) for one in kept) for line in each.lines)


def _peak(
    history: pl.DataFrame,
    at_end: pl.DataFrame,
    allocations: pl.DataFrame,
    stacks: pl.DataFrame,
    named: pl.DataFrame,
    allocated: int,
) -> tuple[pl.DataFrame, int, int]:
    """kind, site_*, bytes of what was live at the highest total, that total, and how long before the end of the history it was."""
    place = history["total_allocated"].arg_max()
    top = int(history["total_allocated"][place]) if place is not None else 0
    if place is None or top <= allocated:
        return _summed(named, ["kind", *SITE]), allocated, 0
    rows = with_kinds(live_at(at_end, allocations, place), allocations, stacks)
    return _summed(rows, ["kind", *SITE]), top, int(history["time_ns"][-1]) - int(history["time_ns"][place])


def _place_of(stacks: pl.DataFrame, failure: dict[str, Any] | None) -> Place | None:
    if failure is None or failure.get("stack") is None:
        return None
    found = stacks.filter(pl.col("stack") == failure["stack"])
    if found.is_empty() or found["site_file"][0] is None:
        return None
    return Place(found["site_file"][0], int(found["site_line"][0] or 0), found["site_function"][0] or "")


def _makes_state(stacks: pl.DataFrame, failure: dict[str, Any] | None) -> bool:
    if failure is None or failure.get("stack") is None:
        return False
    found = stacks.filter(pl.col("stack") == failure["stack"])
    return bool(found.select((pl.col("optimizer") & pl.col("makes_state")).any()).item())


def _hold(rows: pl.DataFrame, since: int) -> pl.DataFrame:
    size, is_current = pl.col("size"), (pl.col("place") >= since).fill_null(False)
    summed = rows.group_by("kind", *SITE).agg(
        bytes=size.sum(), current=size.filter(is_current).sum() / pl.max_horizontal(size.sum(), 1)
    )
    return summed.sort("bytes", "kind", *SITE, descending=[True, False, False, False, False], nulls_last=True)


def _summed(rows: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    summed = rows.group_by(by).agg(pl.col("bytes").sum(), blocks=pl.len())
    return summed.sort("bytes", *by, descending=[True, *(False for _ in by)], nulls_last=True)
