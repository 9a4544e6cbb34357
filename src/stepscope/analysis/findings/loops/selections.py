"""Loops that select their pieces by boolean masks: `x[kind == r]` compares, counts, waits for the count, and gathers.

What a mask selects of a layer's output is another thing in every step, and only batching the loop helps. Where a loop selects indices,
such as the edges of a relation, no profile shows whether they are the same in every step. If they are, as those of a fixed graph, they can
be selected once, ahead of training, and the loop stays. Their kinds are integers; what is selected by numbers that the step has computed,
such as how well boxes match, is another thing in every step as well.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.host.loops import Loops
from stepscope.analysis.replay.plan import Plan
from stepscope.registers.policy.findings import MAJORITY
from stepscope.trace.columns import repeated
from stepscope.trace.lookup import events_named
from stepscope.trace.scopes import ancestors, sums_below

_COUNTS = ("aten::nonzero", "aten::masked_select")
_SELECTS = ("aten::index", "aten::where", *_COUNTS)
_INTEGERS = r"^\W*(long|int)\b"
_NUMBERS = r"^\W*(c10::)?(float|double|Half|BFloat16)\b"
_COMPARES = ("aten::eq", "aten::ne", "aten::lt", "aten::le", "aten::gt", "aten::ge")


def selected_once(case: Case, loops: Loops) -> Plan | None:
    """The step without making masks in its loops, and selecting by them; None unless most turns select indices."""
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
    gathers = events_named(events, lambda known: known.is_in(_SELECTS)) & (sums_below(events, counts) > 0)
    kinds = compares & ~_takes(case, _NUMBERS)
    frames = _in_most_turns(loops, gathers & _takes(case, _INTEGERS)) & _in_most_turns(loops, kinds)
    if not frames:
        return None
    in_loop = loops.loop_of.is_in(list(frames)).fill_null(False)
    chosen = in_loop & (gathers | compares)
    return chosen | (ancestors(events, chosen).is_not_null() & in_loop)


def _takes(case: Case, dtype: str) -> pl.Series:
    """Which ops have these as their first input."""
    ops = case.trace.ops
    chosen = ops["event"].filter(ops["dtypes"].cast(pl.String).str.contains(dtype).fill_null(False))
    return repeated(False, len(case.trace.events), pl.Boolean).scatter(chosen, True)


def _in_most_turns(loops: Loops, wanted: pl.Series) -> set[int]:
    """The loops that have one of these events in most of their turns."""
    by_frame = pl.DataFrame({"frame": loops.loop_of.filter(wanted)}).drop_nulls()["frame"].value_counts()
    often = pl.col("count") >= MAJORITY * pl.col("iterations")
    return set(loops.found.join(by_frame, on="frame").filter(often)["frame"].to_list())
