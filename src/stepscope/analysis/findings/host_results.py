"""Large results that are copied to the host, which then computes on them in the function that asked for the copy."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.account.host_timeline import within
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change, with_warm_caches
from stepscope.analysis.findings.copy_items import copy_items
from stepscope.analysis.host.causes import host_codes
from stepscope.lazy import dataclass
from stepscope.native.host.lineage import USER
from stepscope.registers.calibration.launches import STAGED_COPY_NS
from stepscope.registers.calibration.profiler import WARM_DISPATCH_WORST
from stepscope.registers.policy.findings import DETOUR_BYTES, LONG_PYTHON_NS, WORTH_A_FINDING
from stepscope.trace.scopes import ancestors


@dataclass(frozen=True)
class HostResults:
    """The copies, what the host computes on them, and the step in which the device does that and a small result is copied."""

    copies: pl.Series  # events
    owned: pl.DataFrame
    changed: Change


def host_results(case: Case) -> HostResults | None:
    """None where the host does not compute on what it gets, or not for long."""
    if case.device is None:
        return None
    work = copy_items(case).with_columns(next=pl.col("item").cast(pl.Int64).shift(-1))
    away = work.filter(pl.col("direction") == "DtoH", pl.col("bytes") >= DETOUR_BYTES)
    computing = _computing_after(case, away) if len(away) else away.clear()
    ns = int(computing["ns"].sum()) if len(computing) else 0
    if ns < WORTH_A_FINDING * case.played_ns * max(1, len(case.lengths)):
        return None
    copies, python = away["event"], computing["event"].unique()
    named = pl.col("named_by")
    owned = case.free(
        (pl.col("part").is_in(["copy", "sync"]) & named.is_in(copies.implode()))
        | ((pl.col("part") == "python") & named.is_in(python.implode()))
    )
    return HostResults(copies, owned, _on_device(case, away, python))


def _computing_after(case: Case, away: pl.DataFrame) -> pl.DataFrame:
    """Rows of the plan's host work: Python from the copy to the next launch, inside the function that copies."""
    host, items = case.plan.host, away["item"].cast(pl.Int64)
    until = away["next"].fill_null(len(case.plan.items))
    after = within(host["item"].cast(pl.Int64), items + 1, until)
    mine = _inside(case, _functions(case, away["event"])).gather(host["event"]).fill_null(False)
    return host.filter(after & mine & (host["cause"] == "python") & (host["recorded_ns"] >= LONG_PYTHON_NS))


def _functions(case: Case, copies: pl.Series) -> pl.Series:
    """The calls of the user's functions that the copies come from."""
    events = case.trace.events
    users = (events["kind"] == "python") & (host_codes(case.trace) == USER)
    links = case.trace.links.filter(pl.col("why") == "launch", pl.col("to").is_in(copies.implode()))
    found: pl.Series = ancestors(events, users).gather(links["from"]).drop_nulls().unique()
    return found


def _inside(case: Case, frames: pl.Series) -> pl.Series:
    """For every event whether it is one of these calls or inside one."""
    events = case.trace.events
    wanted = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(frames, True)
    return wanted | ancestors(events, wanted).is_not_null()


def _on_device(case: Case, away: pl.DataFrame, python: pl.Series) -> Change:
    """Neither the copy nor the computation takes time; the host still waits for the result."""
    mine = pl.col("item").is_in(away["item"].implode())
    staged = (
        mine & pl.col("cause").is_in(["dispatch", "sync", "copy"]) & (pl.col("recorded_ns") >= STAGED_COPY_NS)
    )
    computed = (pl.col("cause") == "python") & pl.col("event").is_in(python.implode())
    without = case.plan.with_host(staged | computed).with_device(mine)
    return Change(
        with_warm_caches(without, case.plan, WARM_DISPATCH_WORST), with_warm_caches(without, case.plan)
    )
