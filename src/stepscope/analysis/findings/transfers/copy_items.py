"""Copies as items of the replay plan."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.transfers.staging import sent_through_host
from stepscope.native.host import replay as native


def copy_items(case: Case) -> pl.DataFrame:
    """The plan's items that are device work, in order, with bytes and direction where they are copies that no communication makes."""
    copies = case.trace.copies.select("event", "bytes", direction=pl.col("direction").cast(pl.String))
    copies = copies.filter(~pl.col("event").is_in(sent_through_host(case.trace).implode()))
    work = case.plan.items.filter(pl.col("kind") == native.WORK, pl.col("event").is_not_null())
    return work.join(copies, on="event", how="left", maintain_order="left")
