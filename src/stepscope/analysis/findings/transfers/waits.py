"""What the host waits for when it waits: copies by their direction, and exchanges that other ranks end."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.transfers.copy_items import copy_items
from stepscope.native.host import replay as native
from stepscope.registers.policy.findings import MAJORITY
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors, at_or_inside

TO_DEVICE, TO_HOST = "HtoD", "DtoH"
_READS_A_NUMBER = r"^aten::(item|_local_scalar_dense)$"


def mostly_waits_for(case: Case, waits: pl.DataFrame) -> str | None:
    """The direction of the copies that most of the time of these slices waits for, if there is one."""
    directions = _direction_by_name(case, waits["named_by"].drop_nulls().unique())
    rows = waits.join(directions, on="named_by").group_by("direction").agg(pl.col("ns").sum())
    most = rows.filter(pl.col("ns") > MAJORITY * int(waits["ns"].sum()))
    return str(most["direction"][0]) if len(most) else None


def acts_on_values(case: Case) -> bool:
    """Whether most steps read a number and then wait to send something, as a loop does that acts on what a model says."""
    rows, events = _copies_waited_for(case), case.trace.events
    numbers = at_or_inside(events, is_named(events, _READS_A_NUMBER))
    rows = rows.with_columns(is_number=numbers.gather(rows["event"]))
    read = (pl.col("is_number") & (pl.col("direction") == TO_HOST)).cum_max().over("place")
    acting = rows.filter(read & (pl.col("direction") == TO_DEVICE))["place"].n_unique()
    return acting > MAJORITY * len(case.lengths)


def ended_by_exchanges(case: Case) -> pl.Series:
    """For each item of the plan whether it is a wait during most of which the device does nothing but communicate.

    An exchange is over when the last rank has come: what ends such a wait is not on this rank.
    """
    items, events = case.plan.items, case.trace.events
    waits = items.filter(pl.col("kind") == native.WAIT, pl.col("event").is_not_null())
    talks = case.slices.filter(pl.col("part") == "collective").sort("start_ns")
    if talks.is_empty():
        return pl.repeat(False, len(items), dtype=pl.Boolean, eager=True)
    begin, ns = events["start_ns"].gather(waits["event"]), events["dur_ns"].gather(waits["event"])
    talked = _ns_until(talks, begin + ns) - _ns_until(talks, begin)
    ended = waits["item"].filter(talked > MAJORITY * ns)
    return items["item"].is_in(ended.implode())


def _direction_by_name(case: Case, named: pl.Series) -> pl.DataFrame:
    """named_by, direction: of events that waits are charged to, the direction of the copy before the first wait in each."""
    waits, events = _copies_waited_for(case), case.trace.events
    wanted = events["id"].is_in(named.implode())
    around = pl.select(pl.when(wanted).then(events["id"]).otherwise(ancestors(events, wanted))).to_series()
    rows = waits.select("direction", named_by=around.gather(waits["event"])).drop_nulls()
    return rows.unique("named_by", keep="first", maintain_order=True)


def _copies_waited_for(case: Case) -> pl.DataFrame:
    """event, place (of the step), direction: of the waits right behind a copy, in order."""
    copies = copy_items(case).select("item", "direction")
    items = case.plan.items.join(copies, on="item", how="left", maintain_order="left")
    is_wait = pl.col("kind") == native.WAIT
    behind = pl.when(~is_wait).then(pl.col("direction").fill_null("")).forward_fill()
    place = pl.col("last").cum_sum().shift(1, fill_value=0)
    known = items.select("event", place=place, direction=behind, is_wait=is_wait)
    wanted = pl.col("is_wait") & pl.col("event").is_not_null() & (pl.col("direction") != "")
    return known.filter(wanted).drop("is_wait")


def _ns_until(slices: pl.DataFrame, moments: pl.Series) -> pl.Series:
    """How much time of slices that follow one another is before each moment."""
    before = slices["start_ns"].search_sorted(moments, side="right").cast(pl.Int64) - 1
    at = before.clip(lower_bound=0)
    done = (slices["ns"].cum_sum() - slices["ns"]).gather(at)
    lasted = (moments - slices["start_ns"].gather(at)).clip(lower_bound=0)
    before_each: pl.Series = done + pl.select(pl.min_horizontal(lasted, slices["ns"].gather(at))).to_series()
    return before_each
