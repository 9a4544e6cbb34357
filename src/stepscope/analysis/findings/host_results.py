"""Large results that are copied to the host, which then computes on them in the function that asked for the copy.

Runtimes such as that of JAX copy on a thread of their own: such a copy belongs to the function that waits while it runs.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.account.host_timeline import within
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change, with_warm_caches
from stepscope.analysis.findings.transfers.copy_items import copy_items
from stepscope.analysis.host.causes import host_codes, is_wait
from stepscope.lazy import dataclass
from stepscope.native.host.lineage import FRAMEWORK, GARBAGE, USER
from stepscope.registers.calibration.launches import STAGED_COPY_NS
from stepscope.registers.calibration.profiler import WARM_DISPATCH_WORST
from stepscope.registers.policy.device_findings import DETOUR_BYTES
from stepscope.registers.policy.findings import LONG_PYTHON_NS, WORTH_A_FINDING
from stepscope.registers.policy.useless_work import SMALL_RESULT, SMALL_RESULT_AFTERWARDS
from stepscope.trace.scopes import ancestors, at_or_inside
from stepscope.trace.trace import Trace


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
    copies, python, waits = (
        away["event"],
        computing["event"].unique(),
        _inside(case, _waits(case, away["event"])),
    )
    named, waited = pl.col("named_by"), pl.col("named_by").is_in(waits.arg_true().implode())
    owned = case.free(
        (pl.col("part").is_in(["copy", "sync"]) & (named.is_in(copies.implode()) | waited))
        | ((pl.col("part") == "python") & named.is_in(python.implode()))
    )
    return HostResults(copies, owned, _on_device(case, away, computing, waits))


def _computing_after(case: Case, away: pl.DataFrame) -> pl.DataFrame:
    """Rows of the plan's host work: long Python of those."""
    host = case.plan.host
    return host.filter(_python_after(case, away) & (host["recorded_ns"] >= LONG_PYTHON_NS))


def _python_after(case: Case, away: pl.DataFrame) -> pl.Series:
    """For each row of the plan's host work whether it is Python from the copy to the next launch, inside the function that copies."""
    host = case.plan.host
    mine = _inside(case, _functions(case, away["event"])).gather(host["event"]).fill_null(False)
    return _after(case, away) & mine & (host["cause"] == "python")


def _after(case: Case, away: pl.DataFrame) -> pl.Series:
    """For each row of the plan's host work whether it is between a copy and the next launch."""
    until = away["next"].fill_null(len(case.plan.items))
    return within(case.plan.host["item"].cast(pl.Int64), away["item"].cast(pl.Int64) + 1, until)


def _functions(case: Case, copies: pl.Series) -> pl.Series:
    """The calls of the user's functions that the copies come from."""
    asked = pl.concat([_launches(case, copies)["from"], _waits(case, copies)])
    found: pl.Series = users_calls(case.trace).gather(asked).drop_nulls().unique()
    return found


def users_calls(trace: Trace) -> pl.Series:
    """For every event the call of a user's function that it is in, or null."""
    events = trace.events
    return ancestors(events, (events["kind"] == "python") & (host_codes(trace) == USER))


def _launches(case: Case, copies: pl.Series) -> pl.DataFrame:
    return case.trace.links.filter(pl.col("why") == "launch", pl.col("to").is_in(copies.implode()))


def _waits(case: Case, copies: pl.Series) -> pl.Series:
    """The waits of users' functions during which copies begin that no function of theirs launched: outermost events."""
    events, users = case.trace.events, users_calls(case.trace)
    launches = _launches(case, copies)
    launched = launches["to"].filter(users.gather(launches["from"]).is_not_null())
    others = copies.filter(~copies.is_in(launched.implode()))
    waits = is_wait(case.trace) & users.is_not_null()
    outermost = events.filter(waits & ancestors(events, waits).is_null()).sort("start_ns")
    begun = pl.DataFrame({"at": events["start_ns"].gather(others)}).sort("at")
    ends = outermost.select("id", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
    during = begun.join_asof(ends, left_on="at", right_on="start_ns").filter(pl.col("at") < pl.col("end_ns"))
    found: pl.Series = during["id"].unique()
    return found


def _inside(case: Case, frames: pl.Series) -> pl.Series:
    """For every event whether it is one of these calls or inside one."""
    events = case.trace.events
    wanted = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(frames, True)
    return at_or_inside(events, wanted)


def _on_device(case: Case, away: pl.DataFrame, computing: pl.DataFrame, waits: pl.Series) -> Change:
    """Neither the copy nor the computation takes time, nor does the memory of both; the host still waits for the result.

    What takes little of the computation may work on the small result already, and so may what comes after its longest part,
    unless that takes about as long: counts and comparisons cost more than the search for the largest. It goes only at most, and so
    does what comes before the longest part, such as a mask, however short it is.
    """
    mine = pl.col("item").is_in(away["item"].implode())
    waiting = pl.lit(waits.gather(case.plan.host["event"]).fill_null(False))
    calls = pl.col("cause").is_in(["dispatch", "sync", "copy"]) & (pl.col("recorded_ns") >= STAGED_COPY_NS)
    freed = _freed(case, away) | _freed_by_callers(case, away)
    copied = case.plan.with_host(((mine | waiting) & calls) | freed).with_device(mine)
    python = (pl.col("cause") == "python") & pl.col("event").is_in(computing["event"].unique().implode())
    rows = case.plan.host.select("item", "recorded_ns", row=pl.int_range(pl.len()), python=python)
    longest = (
        rows.filter("python")
        .sort("recorded_ns", "row", descending=[True, False])
        .unique("item", keep="first", maintain_order=True)
    )
    found = rows.join(
        longest.select("item", most="recorded_ns", at="row"), on="item", how="left", maintain_order="left"
    )
    share = pl.when(pl.col("row") <= pl.col("at")).then(SMALL_RESULT).otherwise(SMALL_RESULT_AFTERWARDS)
    surely = found.select((pl.col("recorded_ns") >= share * pl.col("most")).fill_null(False)).to_series()
    before = found.select((pl.col("row") < pl.col("at")).fill_null(False)).to_series()
    before &= _python_after(case, away)
    return Change(
        with_warm_caches(copied.with_host(python & pl.lit(surely)), case.plan, WARM_DISPATCH_WORST),
        with_warm_caches(copied.with_host(python | pl.lit(before)), case.plan),
    )


def _freed(case: Case, away: pl.DataFrame) -> pl.Expr:
    """Runtimes free what they copied when they are called again, before the next launch."""
    garbage = (host_codes(case.trace) == GARBAGE).gather(case.plan.host["event"]).fill_null(False)
    following = pl.col("item").cast(pl.Int64).is_in(away["next"].drop_nulls().implode())
    return pl.lit(garbage) & following & (pl.col("recorded_ns") >= LONG_PYTHON_NS)


def _freed_by_callers(case: Case, away: pl.DataFrame) -> pl.Expr:
    """What a function held is freed when it returns: then the framework's code that called it seems to work by itself, and for long.

    Wrappers such as `decorate_context` of torch.inference_mode have nothing else to do before the next launch.
    """
    callers = _callers(case.trace.events, _functions(case, away["event"]))
    wrappers = callers.filter((host_codes(case.trace) == FRAMEWORK).gather(callers))
    mine = pl.col("event").is_in(wrappers.implode()) & (pl.col("cause") == "python")
    return pl.lit(_after(case, away)) & mine & (pl.col("recorded_ns") >= LONG_PYTHON_NS)


def _callers(events: pl.DataFrame, calls: pl.Series) -> pl.Series:
    """All events that some calls are inside of."""
    found, above = calls.clear(), events["parent"].gather(calls).drop_nulls().unique()
    while len(above):
        found = pl.concat([found, above])
        above = events["parent"].gather(above).drop_nulls().unique()
    return found.unique()
