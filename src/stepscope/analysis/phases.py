"""What the parts of a step are called in the program: its outermost annotations, and the account of each.

A phase is an annotation on the thread that marks the steps, inside a step and inside no other annotation, that comes up
more than once. Its parts are the account of the wall time between its begin and its end on the host, while the device idles, and
the device's work that it launched. A device runs behind its host: it may do that while the host is in the next phase.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.account.account import Account
from stepscope.analysis.device.use import time_before
from stepscope.analysis.parts import BUSY_PARTS
from stepscope.analysis.steps.find import Steps
from stepscope.registers.policy.tables import PHASE_LEAST, PHASES_SHOWN
from stepscope.trace.frames import conform
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

PHASES = {
    "name": pl.String,
    "calls": pl.Int64,
    "total_ns": pl.Int64,
    "part": pl.String,
    "ns": pl.Int64,
}
_SPANS = {"name": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64, "event": pl.UInt32}
_NUMBERED = r"#\d+$|\.\d+$"


def phases(trace: Trace, steps: Steps, account: Account, device: int | None) -> pl.DataFrame:
    """name, calls, total_ns, part, ns: a row for each part of each phase, the longest phase first."""
    spans = phase_spans(trace, steps)
    step_ns = int((steps.host["end_ns"] - steps.host["start_ns"]).sum()) if len(steps.host) else 0
    named = (
        spans.group_by("name")
        .agg(pl.len().alias("calls"), (pl.col("end_ns") - pl.col("start_ns")).sum().alias("total_ns"))
        .filter((pl.col("calls") > 1) & (pl.col("total_ns") >= PHASE_LEAST * step_ns))
        .sort("total_ns", "name", descending=[True, False])
        .head(PHASES_SHOWN)
    )
    if named.is_empty():
        return pl.DataFrame(schema=PHASES)
    kept = spans.join(named.select("name"), on="name", how="semi")
    slices = account.of_device(device)
    launched, rest = _by_launch(trace, slices)
    parts = pl.concat([_parts(kept, rest), _launched_parts(kept, launched)])
    parts = parts.group_by("name", "part", maintain_order=True).agg(pl.col("ns").sum())
    return conform(named.join(parts, on="name", how="left", maintain_order="left"), PHASES)


def phase_spans(trace: Trace, steps: Steps) -> pl.DataFrame:
    """name, start_ns, end_ns and event of the outermost annotations in steps, without the steps themselves."""
    events = trace.events
    marks = (events["kind"] == "annotation") & (events["dur_ns"] > 0) & events["step"].is_not_null()
    mine = marks & events["track"].is_in(steps.host["track"].unique().implode())
    if not mine.any():
        return pl.DataFrame(schema=_SPANS)
    is_step = (events["role"] == "step").fill_null(False)
    if steps.source == "annotation" and steps.name is not None:
        is_step |= (events["name"].cast(pl.String) == steps.name).fill_null(False)
    inner = mine & ~is_step
    outermost = events.filter(inner & ancestors(events, inner).is_null())
    return outermost.select(
        pl.col("name").cast(pl.String).str.replace(_NUMBERED, ""),
        "start_ns",
        end_ns=pl.col("start_ns") + pl.col("dur_ns"),
        event="id",
    )


def _by_launch(trace: Trace, slices: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Slices of device work with the moment of its launch (at), and all others: also those whose launch was not recorded."""
    launches = trace.links.filter(pl.col("why") == "launch").unique("to", keep="first")
    calls = launches.select(named_by="to", at=trace.events["start_ns"].gather(launches["from"]))
    busy = slices.filter(pl.col("part").is_in(BUSY_PARTS)).select("part", "start_ns", "end_ns", "named_by")
    joined = busy.join(calls, on="named_by", how="left", maintain_order="left")
    idle = slices.filter(~pl.col("part").is_in(BUSY_PARTS)).select("part", "start_ns", "end_ns")
    lost = joined.filter(pl.col("at").is_null()).select("part", "start_ns", "end_ns")
    return joined.drop_nulls("at"), pl.concat([idle, lost])


def _launched_parts(spans: pl.DataFrame, launched: pl.DataFrame) -> pl.DataFrame:
    """name, part, ns: the device's work that the spans of each name launched, whenever it ran."""
    begun = spans.select("name", "end_ns", at="start_ns").sort("at")
    work = launched.select("part", "at", ns=pl.col("end_ns") - pl.col("start_ns")).sort("at")
    found = work.join_asof(begun, on="at", strategy="backward").filter(pl.col("at") < pl.col("end_ns"))
    sums = found.group_by("name", "part", maintain_order=True).agg(pl.col("ns").sum())
    return sums.select("name", "ns", pl.col("part").cast(pl.String))


def _parts(spans: pl.DataFrame, slices: pl.DataFrame) -> pl.DataFrame:
    """name, part, ns: how much of each part lies in the spans of each name."""
    found = []
    # Narrow, and in order as accounts are: there may be millions of slices.
    narrow = slices.select("part", "start_ns", "end_ns")
    edges = pl.concat([spans["end_ns"], spans["start_ns"]])
    for (part,), rows in narrow.group_by("part", maintain_order=True):
        ordered = rows if rows["start_ns"].is_sorted() else rows.sort("start_ns")
        before = time_before(edges, ordered)  # of ends and starts at once: it sums all slices
        inside = before.head(len(spans)) - before.tail(len(spans))
        sums = spans.select("name", ns=inside).group_by("name").agg(pl.col("ns").sum())
        found.append(sums.filter(pl.col("ns") > 0).select("name", "ns", part=pl.lit(str(part))))
    schema = {"name": pl.String, "ns": pl.Int64, "part": pl.String}
    return pl.concat(found) if found else pl.DataFrame(schema=schema)
