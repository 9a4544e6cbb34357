"""How late each rank was in each step, by what it did and by what the others waited.

Work of a rank in a step = the step − its waits: the time in exposed collectives during which it does not work on. Late = the
smaller of (its work − the median work of the others) and (the median wait of the others − its own, in this step and the next):
more to do, and waited for, at once or after what it did at the end of the step. That needs no clocks, counts no delay twice
however many collectives it passes through, and does not blame a rank for its own waits. Where collectives run on the host (gloo,
MPI), a device's account does not show when the host arrived, and one or two steps do not show which rank began them late;
there a rank is late by what it came after the second last, in each step the sum over collectives that the others waited in one
after the other, and the most of those that they waited in at the same time; never by more than the step took.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.registers.levels import FEWEST_STEPS
from stepscope.statistics.noise import sigma_of
from stepscope.trace.frames import conform

LATE = {
    "rank": pl.Int32,
    "step": pl.Int32,
    "dur_ns": pl.Int64,
    "work_ns": pl.Int64,
    "ahead_ns": pl.Int64,  # its work − that of the others
    "late_ns": pl.Int64,
}
_COMPARED = {**{name: dtype for name, dtype in LATE.items() if name != "late_ns"}, "waited_for": pl.Int64}
COLLECTIVE = ("collective", "host_collective")


def lateness(steps: pl.DataFrame, parts: pl.DataFrame, margins: pl.DataFrame | None = None) -> pl.DataFrame:
    """A row for each rank and step that others have too; late_ns is negative for a rank that waits. See `pace` for the tables.

    `margins` (rank, step, margin_ns) is by how much a rank came after all others.
    """
    waiting = parts.filter(pl.col("part").is_in(COLLECTIVE))
    waiting = waiting.group_by("rank", "step").agg(waits=pl.col("ns").sum())
    rows = steps.join(waiting, on=["rank", "step"], how="left").with_columns(pl.col("waits").fill_null(0))
    rows = rows.with_columns(work_ns=pl.col("dur_ns") - pl.col("waits")).sort("step", "rank")
    frames = [_of_step(group) for group in rows.partition_by("step", maintain_order=True) if len(group) > 1]
    found = _waited_for_later(pl.concat([pl.DataFrame(schema=_COMPARED), *frames]))
    by_arrivals = on_host(parts) or _behind_the_host(parts) or found["step"].n_unique() < FEWEST_STEPS
    return _by_margins(found, margins) if margins is not None and by_arrivals else found


def _waited_for_later(rows: pl.DataFrame) -> pl.DataFrame:
    """What a rank does after its last collective is waited for in the next step."""
    here = pl.col("waited_for")
    later = here.shift(-1, fill_value=0).over("rank", order_by="step")
    both = pl.max_horizontal(here, here.clip(0) + later.clip(0))
    return conform(rows.with_columns(late_ns=pl.min_horizontal("ahead_ns", both)), LATE)


def on_host(parts: pl.DataFrame) -> bool:
    """Whether most waiting for others is done by hosts."""
    time = {name: int(parts.filter(pl.col("part") == name)["ns"].sum()) for name in COLLECTIVE}
    return time["host_collective"] > time["collective"]


def _behind_the_host(parts: pl.DataFrame) -> bool:
    """Programs on CPUs that run after the steps that asked for them: their waits are in no step's account."""
    return not {"compute", *COLLECTIVE} & set(parts["part"].unique())


def _by_margins(found: pl.DataFrame, margins: pl.DataFrame) -> pl.DataFrame:
    rows = found.join(margins, on=["rank", "step"], how="left", maintain_order="left")
    most = pl.col("dur_ns").median().over("step").cast(pl.Int64)
    rows = rows.with_columns(late_ns=pl.min_horizontal(pl.col("margin_ns").fill_null(0), most))
    if rows["step"].n_unique() >= FEWEST_STEPS:
        rows = rows.with_columns(late_ns=_begun_together())
    return conform(rows, LATE)


def _begun_together() -> pl.Expr:
    """A rank that is late to the first step, by more than it loses in it and than usual, was late before: recorders begin one by one."""
    late, is_first = pl.col("late_ns"), pl.col("step") == pl.col("step").min()
    usual = pl.when(~is_first).then(late).median().over("rank")
    most = pl.max_horizontal(pl.lit(0), "ahead_ns", usual)
    return pl.when(is_first).then(pl.min_horizontal(late, most)).otherwise(late)


def _of_step(rows: pl.DataFrame) -> pl.DataFrame:
    work, waits = rows["work_ns"].to_list(), rows["waits"].to_list()
    more = [mine - typical for mine, typical in zip(work, others_median(work), strict=True)]
    waited_for = [typical - mine for mine, typical in zip(waits, others_median(waits), strict=True)]
    added = {"ahead_ns": more, "waited_for": waited_for}
    found = rows.with_columns(
        pl.Series(name, values, dtype=pl.Float64).round() for name, values in added.items()
    )
    return conform(found, _COMPARED)


def others_median(values: Sequence[float]) -> list[float]:
    """For each value the median of all others."""
    order = sorted(range(len(values)), key=lambda at: values[at])
    ranked = [values[at] for at in order]
    places = {at: place for place, at in enumerate(order)}
    count = len(values) - 1
    if count < 1:
        return list(values)

    def without(place: int, number: int) -> float:
        return ranked[number if number < place else number + 1]

    middle = count // 2
    if count % 2:
        return [without(places[at], middle) for at in range(len(values))]
    return [(without(places[at], middle - 1) + without(places[at], middle)) / 2 for at in range(len(values))]


def spread_ns(late: pl.DataFrame) -> float:
    """By how much the work of a rank varies from step to step, against the others, in the usual case."""
    ahead = pl.col("ahead_ns")
    around = late.select((ahead - ahead.median().over("rank")).abs().alias("off"))["off"].to_list()
    return sigma_of(around)
