"""The steps of a recording on one device: how long they are, which are slow, and in which a loader starts its workers."""

from __future__ import annotations

from functools import cached_property
from typing import cast

import polars as pl

from stepscope.analysis.account.account import Account
from stepscope.analysis.steps.batch_times import are_mostly_batches, batch_times, share_of_batches
from stepscope.analysis.steps.find import Steps
from stepscope.analysis.steps.loader_starts import LoaderStarts, find_loader_starts
from stepscope.analysis.steps.noted_starts import find_noted_starts
from stepscope.analysis.steps.rhythm import Rhythm, find_rhythm
from stepscope.analysis.steps.usual import outliers, outliers_of_few, usual
from stepscope.lazy import dataclass
from stepscope.trace.frames import take_mean
from stepscope.trace.trace import Trace


@dataclass
class StepTimes:
    """The account of steps on one device, each slice with its length and name; which of the steps are slow."""

    trace: Trace
    steps: Steps
    account: Account
    device: int | None

    @cached_property
    def slices(self) -> pl.DataFrame:
        """The account of the device, with the length of each slice and the name that it is charged to."""
        return self._named(self.account.of_device(self.device))

    def slices_in(self, steps: pl.Series) -> pl.DataFrame:
        """Those of some steps."""
        mine = self.account.of_device(self.device)
        return self._named(mine.filter(pl.col("step").is_in(steps.implode())))

    def _named(self, mine: pl.DataFrame) -> pl.DataFrame:
        names = self.trace.events["name"].gather(mine["named_by"])
        return mine.with_columns(ns=pl.col("end_ns") - pl.col("start_ns"), name=names).with_row_index("slice")

    @cached_property
    def lengths(self) -> pl.DataFrame:
        """step, ns of all steps, in order."""
        mine = self.account.parts.filter(pl.col("device").eq_missing(self.device))
        return mine.group_by("step").agg(pl.col("ns").sum()).sort("step")

    @cached_property
    def outliers(self) -> pl.DataFrame:
        """Slow steps (stepscope.statistics.slow_steps); none where there are too few steps, but those in which workers start."""
        found = outliers(self.lengths)
        if len(found) and self._are_longer_batches(found["step"]):
            return found.clear()
        if len(found) or self.loader_starts is None:
            return found
        return outliers_of_few(self.lengths).filter(pl.col("step").is_in(self.loader_starts.steps))

    def _are_longer_batches(self, slow: pl.Series) -> bool:
        """Whether these steps, which come back, are usual ones that make a batch for longer: one cause, and one finding."""
        if self.rhythm is None or not are_mostly_batches(usual(self.batch_times, slow.to_frame())):
            return False
        return self.loader_starts is None and share_of_batches(self.batch_times, slow) > 0

    @cached_property
    def batch_times(self) -> pl.DataFrame:
        """What of each step is making its batch, or waiting for it."""
        return batch_times(self.lengths, self.slices)

    @cached_property
    def rhythm(self) -> Rhythm | None:
        """Slow steps that come back without the profiler."""
        return find_rhythm(self.trace) if self.steps.source == "marker" else None

    @cached_property
    def loader_starts(self) -> LoaderStarts | None:
        """Steps in which a loader starts its workers again."""
        return find_loader_starts(self.trace)

    @cached_property
    def restarts(self) -> pl.DataFrame:
        """Those of the slow steps."""
        steps = self.loader_starts.steps if self.loader_starts is not None else ()
        return self.outliers.filter(pl.col("step").is_in(steps))

    @cached_property
    def noted_starts(self) -> LoaderStarts | None:
        """The same around the window, where no step inside it is slow: that makes those slow that come back."""
        return find_noted_starts(self.trace, self.rhythm) if self.outliers.is_empty() else None

    @property
    def has_restarts(self) -> bool:
        """Whether workers that start again make steps slow, inside the window or around it."""
        return not self.restarts.is_empty() or self.noted_starts is not None

    @property
    def usual_share(self) -> float:
        """What a change of usual steps acts on: their number over all, or where workers start again and again, their time."""
        if not self.has_restarts:
            return self.usual_count / max(1, len(self.lengths))
        if self.rhythm is not None:
            return self.rhythm.usual_share * (1 - 1 / self.rhythm.period)
        return 1 - int(self.outliers["ns"].sum()) / max(1, int(self.lengths["ns"].sum()))

    @property
    def usual_ns(self) -> float:
        """The mean length of those that are not slow."""
        return take_mean(usual(self.lengths, self.outliers)["ns"])

    @property
    def usual_count(self) -> int:
        """Steps that are not slow."""
        return max(1, len(self.lengths) - len(self.outliers))

    @cached_property
    def mean_ns(self) -> float | None:
        """Of all whole steps, as recorded."""
        mine = pl.col("device").eq_missing(self.device) & ~pl.col("partial")
        whole = self.steps.windows.filter(mine).select(pl.col("end_ns") - pl.col("start_ns")).to_series()
        return cast("float | None", whole.mean())
