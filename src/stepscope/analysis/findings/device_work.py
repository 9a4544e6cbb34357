"""Time of the account that belongs to work of the device: what it takes, the gaps before it, and its launches."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.promise import shorten_kernels
from stepscope.analysis.replay.plan import Plan

LAUNCHING = ("dispatch", "unexplained")  # what the host does from one kernel of a program to the next
_OF_WORK = ("compute", "copy", "device_gap")


def free_of_work(case: Case, events: pl.Series) -> pl.DataFrame:
    """The free time of this work, of the gaps before it, and in which the device waits for it to be launched."""
    launches = case.trace.links.filter(pl.col("why") == "launch", pl.col("to").is_in(events.implode()))
    works = pl.col("part").is_in(_OF_WORK) & pl.col("named_by").is_in(events.implode())
    waits = (pl.col("part") == "dispatch") & pl.col("named_by").is_in(launches["from"].implode())
    return case.free(works | waits)


def launched_less(plan: Plan, chosen: pl.DataFrame, left: str) -> Plan:
    """Only what is left of the launches of some work takes the host's time; `chosen` has event, and that share in a column."""
    items = plan.items.join(chosen, on="event", how="left", maintain_order="left")
    share = items[left].fill_null(1.0).gather(plan.host["item"])
    return plan.with_host(pl.lit(share < 1) & pl.col("cause").is_in(LAUNCHING), pl.lit(share))


def without_work(case: Case, chosen: pl.DataFrame) -> Change:
    """Work of the device is neither done nor launched; `chosen` has event, least and most: what is left of it."""
    change = shorten_kernels(case, chosen)
    return Change(
        launched_less(change.smallest, chosen, "most"), launched_less(change.largest, chosen, "least")
    )
