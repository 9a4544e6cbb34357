"""One time for all ranks: what to add to a rank's own times, by what was recorded of its clock and by its collectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from stepscope.analysis.collectives.calls import recorded_calls
from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.profiles.profile import Profile
from stepscope.ranks.calls.matching import keyed
from stepscope.ranks.clocks.offsets import Clock
from stepscope.ranks.clocks.shared import machine_of
from stepscope.ranks.compare import clocks_by_calls
from stepscope.trace.trace import Trace
from stepscope.units import duration


@dataclass(frozen=True)
class RankTime:
    """`common` = `own` + shift_ns − drift · (`own` − middle_ns): the clock of the first rank, in ns since 1970 where that is known.

    `how`: collectives, recorded (times of day as they are), or begin (no time of day: all begin together).
    """

    rank: int
    shift_ns: int
    how: str
    drift: float = 0.0
    middle_ns: int = 0
    residual_ns: int | None = None
    anchors: int = 0
    part: int = 0

    def common(self, own: pl.Expr) -> pl.Expr:
        """The common time of a column of own times."""
        if not self.drift:
            return own + self.shift_ns
        bent = ((own - self.middle_ns).cast(pl.Float64) * self.drift).round().cast(pl.Int64)
        return own + self.shift_ns - bent

    def own(self, common: pl.Expr) -> pl.Expr:
        """And back."""
        if not self.drift:
            return common - self.shift_ns
        straight = (common - self.shift_ns - self.middle_ns).cast(pl.Float64) / (1 - self.drift)
        return straight.round().cast(pl.Int64) + self.middle_ns


def rank_times(profile: Profile) -> dict[int, RankTime]:
    """Of all ranks of the profile. One rank alone keeps its time."""
    traces = dict(zip(profile.ranks, profile.traces, strict=True))
    if len(traces) == 1:
        return {rank: _recorded(rank, trace) for rank, trace in traces.items()}
    machines = {rank: machine_of(trace.info.host, trace.info.capture) for rank, trace in traces.items()}
    clocks = clocks_by_calls({rank: _calls(rank, trace) for rank, trace in traces.items()}, machines)
    return _believed({rank: _time(clocks[rank], trace) for rank, trace in traces.items()}, traces)


def _calls(rank: int, trace: Trace) -> pl.DataFrame:
    """The rank's collectives by its recorded clock. Steps are looked for only where collectives carry no number."""
    if not (trace.events["role"] == "collective").any():
        return keyed(recorded_calls(trace).clear(), rank)
    with_steps = RankContext(rank, trace, Options()).trace
    return keyed(recorded_calls(with_steps), rank, _base(trace))


def _base(trace: Trace) -> int:
    return trace.info.base_unix_ns + trace.info.clock_offset_ns


def _recorded(rank: int, trace: Trace) -> RankTime:
    return RankTime(rank, _base(trace), "recorded", part=rank)


def _time(clock: Clock, trace: Trace) -> RankTime:
    if not clock.aligned:
        return RankTime(clock.rank, _base(trace), "recorded", part=clock.part)
    return RankTime(
        rank=clock.rank,
        shift_ns=_base(trace) - clock.offset_ns,
        how="collectives",
        drift=clock.drift,
        middle_ns=clock.middle_ns + clock.offset_ns - _base(trace),
        residual_ns=clock.residual_ns,
        anchors=clock.anchors,
        part=clock.part,
    )


def _believed(found: Mapping[int, RankTime], traces: Mapping[int, Trace]) -> dict[int, RankTime]:
    """Ranks that share no collective are where their clocks put them.

    Clocks that put them apart from the first ones, or do not know the time of day, are not believed: then they begin together.
    """
    spans = {rank: _span(time, traces[rank]) for rank, time in found.items()}
    parts: dict[int, list[int]] = {}
    for rank, time in found.items():
        parts.setdefault(time.part, []).append(rank)
    placed: dict[int, RankTime] = {}
    first: tuple[int, int] | None = None
    for ranks in parts.values():
        span = min(spans[rank][0] for rank in ranks), max(spans[rank][1] for rank in ranks)
        first = first or span
        known = all(traces[rank].info.base_unix_ns for rank in ranks)
        moved = 0 if known and span[0] <= first[1] and span[1] >= first[0] else first[0] - span[0]
        for rank in ranks:
            how = "begin" if moved and found[rank].how == "recorded" else found[rank].how
            placed[rank] = replace(found[rank], shift_ns=found[rank].shift_ns + moved, how=how)
    return placed


def _span(time: RankTime, trace: Trace) -> tuple[int, int]:
    """When the rank's trace begins and ends."""
    if trace.events.is_empty():
        return time.shift_ns, time.shift_ns
    start, end = pl.col("start_ns"), pl.col("start_ns") + pl.col("dur_ns")
    first, last = trace.events.select(time.common(start.min()), time.common(end.max()).alias("end")).row(0)
    return int(first), int(last)


def told(times: Sequence[RankTime]) -> list[dict[str, object]]:
    """For those who read an export: how each rank was placed, and how well."""
    return [
        {
            "rank": time.rank,
            "aligned_by": time.how,
            "shift_ns": time.shift_ns,
            "drift_ppm": round(time.drift * 1e6, 3),
            "residual_ns": time.residual_ns,
            "collectives": time.anchors,
        }
        for time in times
    ]


def placed_words(times: Sequence[RankTime]) -> str:
    """One sentence on how the ranks were put together."""
    by = [time for time in times if time.how == "collectives"]
    rest = len(times) - len(by)
    if not by:
        return f"{len(times)} ranks, placed by their recorded clocks: they share no all-reduce or barrier."
    worst = max(time.residual_ns or 0 for time in by)
    others = f" {rest} others share none, and are where their own clocks put them." if rest else ""
    return f"{len(by)} ranks, aligned by the ends of their collectives, which are then within {duration(worst)} of each other.{others}"
