"""The host's own time before each launch and each wait, inside the steps of a recording.

Time in waits does not count, nor does a launch into a full queue: both are the device's. It needs launches alone, so that
it can be had from a light window as from a full one.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.analysis.account.unrecorded_waits import unrecorded_waits
from stepscope.analysis.host.causes import is_wait
from stepscope.analysis.replay.blocked import blocked
from stepscope.analysis.steps.find import Steps
from stepscope.lazy import dataclass
from stepscope.registers.policy.capture import LIGHT_THREAD_SHARE, LIGHT_UNSEEN_SHARE
from stepscope.statistics.slow_steps import slow_limit
from stepscope.trace.trace import Trace

_WORK = ("kernel", "copy", "memset")


@dataclass(frozen=True)
class Side:
    """One recording. `calls`, its launches: place (of the step), track, pos (among those of step and track), call, name, gap, is_first.

    `edges`: place, end (head: before the first launch, or tail: after the last one), ns. `waits`: call, and next_call, the
    launch that follows it in its step (null after the last one), place.
    """

    windows: pl.DataFrame
    calls: pl.DataFrame
    edges: pl.DataFrame
    waits: pl.DataFrame

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
    """The launches inside the windows (place, start_ns, end_ns), and the host's time before each.

    Threads that launch much take turns, as the main thread and that of autograd do: the time counts from the last launch of
    any of them. Other threads are left out. `unseen`: waits that are not among the calls.
    """
    waiting = is_wait(trace) & (trace.events["kind"] == "runtime")
    launches = _inside(_launches(trace, waiting), windows)
    counts = launches["track"].value_counts()
    in_turn = counts.filter(pl.col("count") >= LIGHT_THREAD_SHARE * len(launches))["track"]
    taking_turns = pl.col("track").is_in(in_turn.implode())
    waits = _inside(_waits(trace, waiting), windows).filter(taking_turns)
    gaps = _gaps(launches.filter(taking_turns), windows, waits, unseen)
    calls = launches.join(
        gaps.select("call", "gap", "is_first"), on="call", how="left", maintain_order="left"
    )
    calls = calls.with_columns(pos=pl.int_range(pl.len(), dtype=pl.UInt32).over("place", "track"))
    return Side(windows, calls, _edges(gaps, windows, waits, unseen), _before_launches(waits, gaps))


def _launches(trace: Trace, waiting: pl.Series) -> pl.DataFrame:
    """call, name (of what it launched first), track, start_ns, end_ns, own_ns, in the order of their start."""
    events = trace.events
    links = trace.links.filter(pl.col("why") == "launch").select(call="from", work="to")
    links = links.filter(events["kind"].gather(links["work"]).is_in(_WORK))
    rows = links.unique("call", keep="first", maintain_order=True)
    at = rows["call"]
    rows = rows.select(
        "call", name=events["name"].gather(rows["work"]).cast(pl.String), track=events["track"].gather(at),
        start_ns=events["start_ns"].gather(at), dur_ns=events["dur_ns"].gather(at).cast(pl.Int64), waits=waiting.gather(at),
        begun=events["start_ns"].gather(rows["work"]),
    )  # fmt: skip
    launching = rows.filter(~pl.col("waits"))
    full, usual = blocked(launching)
    is_full = pl.col("call").is_in(launching["call"].filter(full).implode())
    own = pl.when("waits").then(0).when(is_full).then(usual).otherwise("dur_ns")
    rows = rows.with_columns(own_ns=own, end_ns=pl.col("start_ns") + pl.col("dur_ns"))
    return rows.drop("begun").sort("start_ns", "call")


def _waits(trace: Trace, waiting: pl.Series) -> pl.DataFrame:
    """call, track, start_ns, end_ns of waits that launch nothing, in the order of their start."""
    launching = trace.links.filter(pl.col("why") == "launch")["from"]
    rows = trace.events.filter(waiting).select(
        "track", "start_ns", call="id", end_ns=pl.col("start_ns") + pl.col("dur_ns")
    )
    return rows.filter(~pl.col("call").is_in(launching.implode())).sort("start_ns", "call")


def _gaps(
    launches: pl.DataFrame, windows: pl.DataFrame, waits: pl.DataFrame, unseen: pl.DataFrame | None
) -> pl.DataFrame:
    """The launches with `gap`, the host's own time from the launch before to the end of each."""
    begins = windows.select("place", begin="start_ns")
    rows = launches.join(begins, on="place", how="left", maintain_order="left")
    before = pl.col("end_ns").cum_max().shift(1).over("place")
    rows = rows.with_columns(is_first=before.is_null(), before=before.fill_null(pl.col("begin")))
    rows = rows.with_columns(waited=_time_in(waits, rows["before"], rows["start_ns"]))
    idle = (pl.col("start_ns") - pl.col("before") - pl.col("waited")).clip(0)
    rows = rows.with_columns(gap=idle + pl.col("own_ns"))
    return rows.with_columns(gap=_unless_waited(rows, "before", "start_ns", "gap", unseen))


def _time_in(waits: pl.DataFrame, begin: pl.Series, end: pl.Series) -> pl.Series:
    """How long those of these waits took that began between `begin` and `end`."""
    lengths = pl.concat([pl.Series([0], dtype=pl.Int64), (waits["end_ns"] - waits["start_ns"]).cum_sum()])
    until, since = (lengths.gather(waits["start_ns"].search_sorted(at, side="left")) for at in (end, begin))
    found: pl.Series = until - since
    return found


def _before_launches(waits: pl.DataFrame, launches: pl.DataFrame) -> pl.DataFrame:
    """call, place, next_call: the waits, each with the launch after it."""
    following = launches.select("start_ns", after="place", next_call="call").sort("start_ns")
    found = waits.join_asof(following, on="start_ns", strategy="forward")
    return found.select(
        "call", "place", next_call=pl.when(pl.col("after") == pl.col("place")).then("next_call")
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


def _unless_waited(
    rows: pl.DataFrame, begin: str, end: str, ns: str, waits: pl.DataFrame | None
) -> pl.Series:
    """The time `ns`, or null if such waits take much of the time between `begin` and `end`."""
    if waits is None:
        return rows[ns]
    waited = _time_in(waits, rows[begin], rows[end])
    return rows.select(pl.when(waited <= LIGHT_UNSEEN_SHARE * pl.col(ns)).then(ns)).to_series()


def _edges(
    gaps: pl.DataFrame, windows: pl.DataFrame, waits: pl.DataFrame, unseen: pl.DataFrame | None
) -> pl.DataFrame:
    """place, end, ns: from the start of a step to its first launch, and from its last one to its end."""
    ends = gaps.group_by("place", maintain_order=True).agg(
        head=pl.col("gap").filter("is_first").first(), last=pl.col("end_ns").max()
    )
    ends = ends.join(windows.select("place", "end_ns"), on="place", how="left", maintain_order="left")
    ends = ends.with_columns(waited=_time_in(waits, ends["last"], ends["end_ns"]))
    ends = ends.with_columns(tail=(pl.col("end_ns") - pl.col("last") - pl.col("waited")).clip(0))
    ends = ends.with_columns(tail=_unless_waited(ends, "last", "end_ns", "tail", unseen))
    return ends.unpivot(["head", "tail"], index="place", variable_name="end", value_name="ns")
