"""User code runs while the device has nothing to do."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.account.host_timeline import within
from stepscope.analysis.basis import is_broken
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change, with_warm_caches
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.promise import of_part, saving
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.host.eager_execution import by_framework
from stepscope.analysis.findings.staging import is_staging, uploads
from stepscope.analysis.host.functions import calls_of
from stepscope.analysis.replay.plan import Plan
from stepscope.names import short_name
from stepscope.registers.calibration.launches import SHORT_READ_NS
from stepscope.registers.policy.findings import (
    DOMINANT_FUNCTION,
    LONG_PYTHON_NS,
    MAJORITY,
    UPLOADS_AFTER_PYTHON,
    WORTH_A_FINDING,
)


def find(case: Case) -> Finding | None:
    """Without a device, user code is what computes, but one function may be most of the step."""
    if case.device is None:
        return _find_dominant(case)
    others = by_framework(case)
    owned = case.free(pl.col("part") == "python", ~pl.col("slice").is_in(others["slice"].implode()))
    named = others["named_by"].unique().implode()
    changed = (pl.col("cause") == "python") & ~pl.col("named_by").is_in(named)
    found = of_part(case, RULE, owned, lambda: _without_calls(case, changed, owned), WORTH_A_FINDING)
    if found is not None:
        found.where = case.places(owned)
    return found


def _without_calls(case: Case, python: pl.Expr, owned: pl.DataFrame) -> Change:
    """The Python takes no time; at most the whole calls go: their ops, their copies and waits, and the launches of those."""
    smallest = case.plan.with_host(python)
    calls = calls_of(case.trace, _longest_functions(case, owned))
    inside = calls.inside.gather(case.plan.host["event"]).fill_null(False)
    launched = pl.col("event").is_in(calls.launched.implode())
    items = case.plan.items.filter(launched & (pl.col("device_ns") < SHORT_READ_NS))["item"].implode()
    waits = pl.col("event").is_in(calls.waits.implode())
    copied = pl.col("event").is_in(calls.copies.implode()) | pl.col("item").is_in(items)
    largest = smallest.with_host(pl.lit(inside)).with_device(copied).without_waits(waits)
    return Change(smallest, with_warm_caches(_without_uploads(case, largest, python), case.plan))


def _without_uploads(case: Case, plan: Plan, python: pl.Expr) -> Plan:
    """What takes the result: arrays that the code makes are then sent to the device."""
    made = case.plan.host.filter(python, pl.col("recorded_ns") >= LONG_PYTHON_NS)["item"].unique()
    sent = case.plan.items.filter(pl.col("event").is_in(uploads(case).implode()))["item"]
    after = sent.filter(within(sent, made, made + UPLOADS_AFTER_PYTHON)).implode()
    mine = pl.col("item").is_in(after)
    return plan.with_host(
        (mine & pl.col("cause").is_in(["dispatch", "sync"])) | is_staging(case)
    ).with_device(mine)


def _longest_functions(case: Case, owned: pl.DataFrame) -> pl.Series:
    """The functions that most of the time is charged to."""
    summed = (
        owned.group_by("named_by").agg(pl.col("ns").sum(), pl.col("name").first()).sort("ns", descending=True)
    )
    names = summed.group_by("name", maintain_order=True).agg(pl.col("ns").sum(), pl.col("named_by").first())
    ranked = names.sort("ns", descending=True)
    share = ranked["ns"].cum_sum() - ranked["ns"]
    longest: pl.Series = ranked["named_by"].filter(share < MAJORITY * int(ranked["ns"].sum()))
    return longest


def _find_dominant(case: Case) -> Finding | None:
    """How much faster the function or op can become is unknown, so that only the bound is given."""
    computing = case.free(pl.col("part").is_in(["python", "host_compute"]), pl.col("name").is_not_null())
    names = case.top_names(computing, 1)
    if is_broken(case.trace) or not names or names[0]["ns_per_step"] < DOMINANT_FUNCTION * case.step_ns:
        return None
    owned = computing.filter(pl.col("name").cast(pl.String) == names[0]["name"])
    ns = case.per_step(owned)
    case.claim(owned)
    at_best = Interval(1 - ns / case.step_ns, 1.0, 1.0)
    return saving(
        case, RULE, ns, at_best, f"{case.of_step(ns)} in {short_name(names[0]['name'])}.", {"names": names}
    )


RULE: Rule[Case] = Rule(
    code="host-python",
    title="The device waits for Python code",
    turn=110,
    title_without_device="One function takes most of the step",
    owns="`python`; without a device, the function or op that takes half of the step or more",
    change="your code between launches takes no time; at most, nor do the ops, copies and waits of the functions that take most of it. Without a device nothing, so that only the bound is given",
    fix={
        ANY: "Move this code out of the step, vectorise it, or run it in the background.",
    },
    fix_without_device={
        ANY: "Make this function faster, or call it less often: vectorise it, compile it, use more cores, or keep its results. The rest of the step matters less.",
    },
    find=find,
)
