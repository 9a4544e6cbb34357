"""A compiled function runs as several programs, with Python between them."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.promise import saving, timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.host.graph_breaks import Breaks, graph_breaks
from stepscope.registers.policy.findings import TOP_NAMES, WORTH_A_FINDING

_HOLDS_UP = ("dispatch", "sync", "python", "unexplained")


def find(case: Case) -> Finding | None:
    """Breaks, as far as the device waits inside the function; where it does not, they are only mentioned."""
    breaks = graph_breaks(case.trace)
    if breaks is None:
        return None
    owned = case.free(pl.col("part").is_in(_HOLDS_UP))
    owned = owned.filter(breaks.inside.gather(owned["named_by"]).fill_null(False))
    ns = case.per_step(owned)
    count = len(breaks.inner) / max(1, len(case.lengths))
    detail = f"Compiled functions break {count:,.0f} times per step"
    evidence = {"breaks_per_step": round(count, 1)}
    if ns >= WORTH_A_FINDING * case.step_ns:
        detail += f", and the device waits inside them for {case.of_step(ns)}."
        found = timed(case, RULE, owned, _unbroken(case, breaks), detail, evidence)
    else:
        found = saving(
            case,
            RULE,
            0,
            Interval(),
            f"{detail}; the device hardly waits for that.",
            {"names": [], **evidence},
        )
        found.class_ = "advice"
    found.where = breaks.places[:TOP_NAMES]
    return found


def _unbroken(case: Case, breaks: Breaks) -> Change:
    """Nothing waits inside the functions, and no Python runs between the programs; at most, one is launched for several."""
    host = pl.lit(breaks.inside.gather(case.plan.host["event"]).fill_null(False))
    items = pl.lit(breaks.inside.gather(case.plan.items["event"]).fill_null(False))
    smallest = case.plan.without_waits(items).with_host(host & (pl.col("cause") == "python"))
    pieces = 1 + len(breaks.inner) / max(1, len(breaks.outer))
    return Change(smallest, smallest.with_host(host & (pl.col("cause") == "dispatch"), 1 / pieces))


RULE: Rule[Case] = Rule(
    code="graph-break",
    title="Compiled functions break into several programs",
    turn=97,
    page="ops",
    owns="`dispatch`, `sync` and `python` inside functions of torch.compile in which one compiled region continues another; advice below 5 % of the step",
    change="nothing waits inside the functions and no Python runs between their programs; at best, one launch replaces several",
    fix={
        ANY: "Let one program hold the function: take print, logging, .item(), .cpu() and data-dependent branches out of it (TORCH_LOGS=graph_breaks names each with its reason; torch.compile(…, fullgraph=True) refuses them).",
    },
    find=find,
    needs_device=True,
)
