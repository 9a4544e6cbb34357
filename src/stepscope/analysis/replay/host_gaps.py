"""The host's own time before each launch and each wait, inside the steps of a recording.

Time in waits does not count, nor does a launch into a full queue: both are the device's. It needs launches alone, so that
it can be had from a light window as from a full one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from stepscope.analysis.account.unrecorded_waits import unrecorded_waits
from stepscope.analysis.host.causes import is_wait
from stepscope.analysis.steps.find import Steps
from stepscope.registers.calibration.launches import BLOCKED_LAUNCH_NS, FULL_QUEUE_TIMES
from stepscope.registers.policy.capture import LIGHT_THREAD_SHARE, LIGHT_UNSEEN_SHARE
from stepscope.statistics.slow_steps import slow_limit
from stepscope.trace.frames import take_median
from stepscope.trace.trace import Trace

_WORK = ("kernel", "copy", "memset")


@dataclass(frozen=True)
class Side:
    """One of the two windows. `calls`: place (of the step), track, pos, call, name, waits, gap, is_first.

    `edges`: place, end (head: before the first launch, or tail: after the last one), ns.
    """

    windows: pl.DataFrame
    calls: pl.DataFrame
    edges: pl.DataFrame

    def slow_places(self) -> set[int]:
        """Steps that are slow among those of the window."""
        lengths = self.windows["end_ns"] - self.windows["start_ns"]
        limit = slow_limit(lengths.to_list())
        return set(self.windows["place"].filter(lengths > limit).to_list())


def windows_of(steps: Steps) -> pl.DataFrame:
    """place, step, start_ns, end_ns: the time between a step and the next belongs to the next, as in the replay."""
    host = steps.host.sort("start_ns").select("step", "start_ns", "end_ns")
    follows = pl.col("step") == pl.col("step").shift(1) + 1
    before = pl.min_horizontal("start_ns", pl.col("end_ns").shift(1))
    return host.with_columns(start_ns=pl.when(follows).then(before).otherwise("start_ns")).with_row_index(
        "place"
    )


def windows_between(moments: Sequence[int]) -> pl.DataFrame:
    """place, start_ns, end_ns of the steps between these moments."""
    starts, ends = (
        pl.Series(name, part, pl.Int64)
        for name, part in (("start_ns", moments[:-1]), ("end_ns", moments[1:]))
    )
    return pl.DataFrame([starts, ends]).with_row_index("place")


def side_of(trace: Trace, windows: pl.DataFrame, unseen: pl.DataFrame | None = None) -> Side:
    """The launches and waits inside the windows (place, start_ns, end_ns), and the host's time before each.

    Threads that launch much take turns, as the main thread and that of autograd do: the time counts from the last call of
    any of them. Other threads are left out. `unseen`: waits that are not among the calls.
    """
    calls = _inside(_calls(trace), windows)
    counts = calls.filter(~pl.col("waits"))["track"].value_counts()
    taking_turns = counts.filter(pl.col("count") >= LIGHT_THREAD_SHARE * len(calls))["track"]
    in_turn = calls.filter(pl.col("track").is_in(taking_turns.implode()))
    begins = windows.select("place", "start_ns").rename({"start_ns": "begin"})
    in_turn = in_turn.join(begins, on="place", how="left", maintain_order="left")
    before = pl.col("end_ns").cum_max().shift(1).over("place")
    in_turn = in_turn.with_columns(is_first=before.is_null(), before=before.fill_null(pl.col("begin")))
    gaps = in_turn.with_columns(gap=(pl.col("start_ns") - pl.col("before")).clip(0) + pl.col("own_ns"))
    if unseen is not None:
        gaps = gaps.with_columns(gap=_unless_waited(gaps, "before", "start_ns", "gap", unseen))
    calls = calls.join(gaps.select("call", "gap", "is_first"), on="call", how="left", maintain_order="left")
    calls = calls.with_columns(pos=pl.int_range(pl.len(), dtype=pl.UInt32).over("place", "track"))
    return Side(windows, calls, _edges(gaps, windows, unseen))


def _calls(trace: Trace) -> pl.DataFrame:
    """call, name, track, start_ns, end_ns, own_ns, waits: launches and waits in the order of their start."""
    events = trace.events
    links = trace.links.filter(pl.col("why") == "launch").select(call="from", work="to")
    links = links.filter(events["kind"].gather(links["work"]).is_in(_WORK))
    launches = links.unique("call", keep="first", maintain_order=True)
    waiting = is_wait(trace) & (events["kind"] == "runtime")
    waits = events.filter(waiting).select(call="id", work="id").join(launches, on="call", how="anti")
    rows = pl.concat([launches, waits])
    at = rows["call"]
    rows = rows.with_columns(
        name=events["name"].gather(rows["work"]).cast(pl.String), track=events["track"].gather(at), start_ns=events["start_ns"].gather(at),
        dur_ns=events["dur_ns"].gather(at).cast(pl.Int64), waits=waiting.gather(at),
    )  # fmt: skip
    usual = int(take_median(rows.filter(~pl.col("waits"))["dur_ns"]))
    is_full = pl.col("dur_ns") > max(FULL_QUEUE_TIMES * usual, BLOCKED_LAUNCH_NS)
    own = pl.when("waits").then(0).when(is_full).then(usual).otherwise("dur_ns")
    return rows.with_columns(own_ns=own, end_ns=pl.col("start_ns") + pl.col("dur_ns")).sort(
        "start_ns", "call"
    )


def _inside(calls: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """The calls that begin in a step, with its place."""
    place = windows["start_ns"].search_sorted(calls["start_ns"], side="right").cast(pl.Int64) - 1
    at = place.clip(lower_bound=0)
    inside = (place >= 0) & (calls["start_ns"] < windows["end_ns"].gather(at))
    return calls.with_columns(place=windows["place"].gather(at)).filter(inside)


def unseen_waits(trace: Trace, steps: Steps) -> pl.DataFrame:
    """start_ns, end_ns of waits other than calls of the driver: the light window cannot show them."""
    events = trace.events
    waits = events.filter(is_wait(trace) & (events["kind"] != "runtime"))
    named = waits.select("start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
    return pl.concat([named, unrecorded_waits(trace, steps).select("start_ns", "end_ns")]).sort("start_ns")


def _unless_waited(rows: pl.DataFrame, begin: str, end: str, ns: str, waits: pl.DataFrame) -> pl.Series:
    """The time `ns`, or null if such waits take much of the time between `begin` and `end`."""
    lengths = pl.concat([pl.Series([0], dtype=pl.Int64), (waits["end_ns"] - waits["start_ns"]).cum_sum()])
    until, since = (
        lengths.gather(waits["start_ns"].search_sorted(rows[at], side="left")) for at in (end, begin)
    )
    waited = rows.select(pl.when(until - since <= LIGHT_UNSEEN_SHARE * pl.col(ns)).then(ns))
    return waited.to_series()


def _edges(gaps: pl.DataFrame, windows: pl.DataFrame, unseen: pl.DataFrame | None) -> pl.DataFrame:
    """place, end, ns: from the start of a step to its first launch, and from its last one to its end."""
    ends = gaps.group_by("place", maintain_order=True).agg(
        head=pl.col("gap").filter("is_first").first(), last=pl.col("end_ns").max()
    )
    ends = ends.join(windows.select("place", "end_ns"), on="place", how="left", maintain_order="left")
    ends = ends.with_columns(tail=(pl.col("end_ns") - pl.col("last")).clip(0))
    if unseen is not None:
        ends = ends.with_columns(tail=_unless_waited(ends, "last", "end_ns", "tail", unseen))
    return ends.unpivot(["head", "tail"], index="place", variable_name="end", value_name="ns")
