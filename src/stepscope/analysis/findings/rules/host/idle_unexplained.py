"""Idle time that no event explains."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.analysis.account.places import END, places
from stepscope.analysis.cut_off import is_cut
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.promise import saving
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.registers.policy.findings import TOP_NAMES, UNEXPLAINED_LEAST


def find(case: Case) -> Finding | None:
    """Silences of the host that are longer than a framework's own pauses."""
    # Perhaps what explains the time is missing, or nothing was recorded but the steps.
    if is_cut(case.trace) or case.trace.events["kind"].is_in(["annotation"]).all():
        return None
    owned = case.free(pl.col("part") == "unexplained")
    ns = case.per_step(owned)
    if ns < UNEXPLAINED_LEAST * case.step_ns:
        return None
    what = (
        "the device idles, and nothing was recorded on the host meanwhile"
        if case.device is not None
        else "nothing was recorded"
    )
    detail = f"For {case.of_step(ns)}, {what}."
    case.claim(owned)
    return saving(case, RULE, ns, Interval(), detail, {"names": _names(case, owned)})


def _names(case: Case, owned: pl.DataFrame) -> list[dict[str, Any]]:
    """What the time comes before, the most of it first; the ends of all steps are one place, named by one of the markers."""
    rows = owned.select("ns", pl.col("name").cast(pl.String).fill_null(""), place=places(case.trace, owned))
    is_end, marker = pl.col("place") == END, pl.col("name").min().over("place")
    rows = rows.with_columns(name=pl.when(is_end).then(marker).otherwise("name"))
    summed = rows.group_by("name", "place").agg(ns=(pl.col("ns").sum() / case.step_count).cast(pl.Int64))
    longest = summed.sort("ns", "name", descending=[True, False]).head(TOP_NAMES)
    return longest.select("name", "place", ns_per_step="ns").to_dicts()


RULE: Rule[Case] = Rule(
    code="idle-unexplained",
    title="The device idles, and the profile does not say why",
    title_without_device="Nothing runs, and the profile does not say why",
    turn=220,
    class_="advice",  # what it is must be known before anyone can promise that it goes away
    owns="`unexplained`; not in a truncated or damaged file, nor in one that contains only steps",
    change="nothing: time without a known cause promises nothing",
    fix={
        "pytorch": "Record with with_stack=True, or put record_function around the code between ops, so that this time gets a name.",
        ANY: "Annotate the code between operations, so that this time gets a name.",
    },
    find=find,
)
