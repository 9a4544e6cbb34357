"""Whether both runs are one recording, possibly modified: then every difference between them is real.

Two recordings of a job hardly ever agree to the nanosecond. A copy does wherever it was not modified, or is longer by the same factor
everywhere. So the time of each op in each step is compared with the other run. In real pairs, of three frameworks on H200s and
CPUs, at most a twentieth of the long times agree; in a copy with one modification, most do. Times in whole microseconds coincide
more often, so short ones do not count; nor do those that are the same in all steps, as simulated or rounded ones are. A
single step does not show that: there, recordings that say that they began at other times are not one.
"""

from __future__ import annotations

import polars as pl

from stepscope.diffs.data.samples import CELL, Samples, Side
from stepscope.registers.calibration.runs import ROUNDED_NS, ROUNDED_SHARE
from stepscope.registers.levels import FEWEST_SAME_TIMES
from stepscope.registers.policy.diffs import SAME_TIMES_NS, SAME_TIMES_SHARE
from stepscope.reports.model.report import Report


def is_same_recording(a: Side, b: Side) -> bool:
    """Whether both sides are one recording."""
    has_one_step = max(len(a.samples.cells), len(b.samples.cells)) < 2
    if has_one_step and _began_apart(a.report, b.report):
        return False
    return is_one_recording(a.samples, b.samples)


def _began_apart(a: Report, b: Report) -> bool:
    """Whether both say when they were recorded, and that is not the same moment."""
    times = a.profile.recorded_unix_ns, b.profile.recorded_unix_ns
    return None not in times and times[0] != times[1]


def is_one_recording(a: Samples, b: Samples) -> bool:
    """Whether most times of the host's ops, or of the device's, are the same to the nanosecond."""
    if any(side.cells["recording"].n_unique() > 1 for side in (a, b)):
        return False
    return any(_do_times_agree(a, b, clock) for clock in ("host_ns", "device_ns"))


def _do_times_agree(a: Samples, b: Samples, clock: str) -> bool:
    key = [*CELL, "name", "scope", "shapes"]
    sums = [side.ops.group_by(key).agg(pl.col(clock, "calls").sum()) for side in (a, b)]
    both = sums[0].join(sums[1], on=key, nulls_equal=True, suffix="_b").filter(
        pl.min_horizontal(clock, f"{clock}_b") >= SAME_TIMES_NS, pl.col("calls") == pl.col("calls_b")
    )  # fmt: skip
    if max(len(a.cells), len(b.cells)) > 1:
        both = both.filter(pl.col(clock).n_unique().over("rank", "name", "scope", "shapes") > 1)
    if len(both) < FEWEST_SAME_TIMES:
        return False
    ours, theirs = pl.col(clock), pl.col(f"{clock}_b")
    factor = (theirs / ours).median()
    alike = (theirs - factor * ours).abs() <= ROUNDED_NS * pl.col("calls") + ROUNDED_SHARE * ours
    return bool(both.select(alike.mean() >= SAME_TIMES_SHARE).item())
