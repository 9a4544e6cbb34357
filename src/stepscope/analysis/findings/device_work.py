"""Time of the account that belongs to work of the device: what it takes, the gaps before it, and its launches."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case

LAUNCHING = ("dispatch", "unexplained")  # what the host does from one kernel of a program to the next
_OF_WORK = ("compute", "copy", "device_gap")


def free_of_work(case: Case, events: pl.Series) -> pl.DataFrame:
    """The free time of this work, of the gaps before it, and in which the device waits for it to be launched."""
    launches = case.trace.links.filter(pl.col("why") == "launch", pl.col("to").is_in(events.implode()))
    works = pl.col("part").is_in(_OF_WORK) & pl.col("named_by").is_in(events.implode())
    waits = (pl.col("part") == "dispatch") & pl.col("named_by").is_in(launches["from"].implode())
    return case.free(works | waits)
