"""What a range is made of: by name, by category or by module."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.context import RankContext
from stepscope.analysis.ops.calls import launched_work
from stepscope.analysis.options import Options
from stepscope.analysis.steps.find import Steps, find_steps
from stepscope.server.timeline.view import View
from stepscope.trace.columns import repeated
from stepscope.trace.lookup import rows_by_event
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

GROUPS = ("name", "category", "module")
NO_MODULE = "(outside of modules)"


def pivot(view: View, events: pl.DataFrame, by: str) -> pl.DataFrame:
    """name, kind, count, total_ns, self_ns, mean_ns, max_ns of cut events, those with the most time of their own first.

    Of a category or a module `total_ns` is the time in which any of its events ran on a track, since they are nested.
    """
    inner = events.group_by("parent").agg(inner=pl.col("ns").sum()).drop_nulls()
    joined = events.join(inner, left_on="id", right_on="parent", how="left", maintain_order="left")
    keyed = _keyed(view, joined, by).with_columns(own=(pl.col("ns") - pl.col("inner").fill_null(0)).clip(0))
    if by != "name":
        keyed = _with_new_time(keyed)
    return (
        keyed.group_by("name", "kind")
        .agg(
            count=pl.len(),
            total_ns=pl.col("ns" if by == "name" else "new").sum(),
            self_ns=pl.col("own").sum(),
            mean_ns=pl.col("ns").mean().round(0).cast(pl.Int64),
            max_ns=pl.col("ns").max(),
        )
        .with_columns(pl.col("name").fill_null(""))
        .sort("self_ns", "total_ns", "name", descending=[True, True, False])
    )


def _keyed(view: View, events: pl.DataFrame, by: str) -> pl.DataFrame:
    """The events with `name` and `kind` as what they are added up by."""
    if by == "name":
        return events
    if by == "category":
        category = view.trace.events["source_category"].gather(events["id"]).cast(pl.String)
        return events.with_columns(name=category.fill_null(events["kind"]), kind=pl.lit(""))
    modules = modules_of(view).gather(events["id"]).cast(pl.String)
    return events.with_columns(name=modules.fill_null(NO_MODULE), kind=pl.lit(""))


def _with_new_time(events: pl.DataFrame) -> pl.DataFrame:
    """`new`: what an event adds to the time that its group covers on its track."""
    end = pl.col("start_ns") + pl.col("ns")
    before = end.cum_max().shift(1).over("track", "name")
    new = (end - pl.max_horizontal("start_ns", before)).clip(0)
    return events.sort("track", "start_ns").with_columns(new=new)


def modules_of(view: View) -> pl.Series:
    """For each event the path of the module or scope that it ran in; null where there is none. NotYet while it is worked out."""
    return view.run.later(
        f"timeline modules {view.name}", lambda: _modules(view.trace, view.rank), "finding modules"
    )


def _modules(trace: Trace, rank: int) -> pl.Series:
    """That of the op around it, and for work of a device that of the op that launched it."""
    events = trace.events
    calls = RankContext(rank, trace, Options()).op_calls.select("event", "scope").drop_nulls()
    row = rows_by_event(calls["event"], len(events))
    has_scope = row.is_not_null()
    around = pl.select(
        pl.when(has_scope).then(events["id"]).otherwise(ancestors(events, has_scope))
    ).to_series()
    work = launched_work(trace)
    launcher = repeated(None, len(events), pl.UInt32, "op")
    launcher = launcher.scatter(work["event"], work["op"]) if len(work) else launcher
    op = pl.select(pl.coalesce(around, around.gather(launcher))).to_series()
    scopes: pl.Series = calls["scope"].gather(row.gather(op))
    return scopes


def steps_of(view: View) -> Steps:
    """The steps of the rank, found once."""
    return view.run.kept(f"timeline found steps {view.name}", lambda: find_steps(view.trace))


def steps_between(view: View, start: int, end: int) -> float | None:
    """How many steps are in the range, parts of steps as parts; None without steps."""
    steps = steps_of(view)
    if steps.is_whole or steps.host.is_empty():
        return None
    inside = pl.min_horizontal("end_ns", pl.lit(end)) - pl.max_horizontal("start_ns", pl.lit(start))
    long = (pl.col("end_ns") - pl.col("start_ns")).clip(1)
    return float(steps.host.select((inside.clip(0) / long).sum()).item()) or None
