"""Loops that select their pieces by boolean masks: `x[kind == r]` compares, counts, waits for the count, and gathers.

No profile shows whether the masks are the same in every step. If they are, as those of a fixed graph, they can be made once, ahead of
training, and the loop stays; if they are not, only batching the loop helps.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.host.loops import Loops
from stepscope.analysis.replay.plan import Plan
from stepscope.registers.policy.findings import MAJORITY
from stepscope.trace.lookup import events_named
from stepscope.trace.scopes import ancestors, sums_below

_COUNTS = ("aten::nonzero", "aten::masked_select")
_SELECTS = ("aten::index", "aten::where", *_COUNTS)
_COMPARES = ("aten::eq", "aten::ne", "aten::lt", "aten::le", "aten::gt", "aten::ge")


def selected_once(case: Case, loops: Loops) -> Plan | None:
    """The step without making masks in its loops, and gathering by them; None if most turns select nothing."""
    chosen = _selections(case, loops)
    if chosen is None:
        return None
    links = case.trace.links.filter(pl.col("why") == "launch")
    launched = links["to"].filter(chosen.gather(links["from"]))
    host = pl.lit(chosen.gather(case.plan.host["event"]).fill_null(False))
    waits = pl.lit(chosen.gather(case.plan.items["event"]).fill_null(False))
    return (
        case.plan.with_host(host)
        .without_waits(waits)
        .with_device(pl.col("event").is_in(launched.implode()).fill_null(False))
    )


def _selections(case: Case, loops: Loops) -> pl.Series | None:
    """Which events make masks in loops, or gather by them; None if most turns make none.

    A mask that the loop only picks, as of the tokens of an expert, the step has made from its data: it differs every time.
    """
    events = case.trace.events
    counts = events_named(events, lambda known: known.is_in(_COUNTS))
    compares = events_named(events, lambda known: known.is_in(_COMPARES))
    frames = _in_most_turns(loops, counts) & _in_most_turns(loops, compares)
    if not frames:
        return None
    in_loop = loops.loop_of.is_in(list(frames)).fill_null(False)
    gathers = events_named(events, lambda known: known.is_in(_SELECTS)) & (sums_below(events, counts) > 0)
    chosen = in_loop & (gathers | compares)
    return chosen | (ancestors(events, chosen).is_not_null() & in_loop)


def _in_most_turns(loops: Loops, wanted: pl.Series) -> set[int]:
    """The loops that have one of these events in most of their turns."""
    by_frame = pl.DataFrame({"frame": loops.loop_of.filter(wanted)}).drop_nulls()["frame"].value_counts()
    often = pl.col("count") >= MAJORITY * pl.col("iterations")
    return set(loops.found.join(by_frame, on="frame").filter(often)["frame"].to_list())
