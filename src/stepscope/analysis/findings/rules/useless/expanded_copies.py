"""Copies that repeat a tensor for an attention or a product that could read it as it is."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.dispatched import at_or_below
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_kernels
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.ops.expanded import OPS, Call, Repeated, repeating_copies
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors

_FROM_MEMORY = ("hbm", "l2")


def find(case: Case) -> Finding | None:
    """Copies of PyTorch's ops that are larger than what they repeat, and what reads them."""
    if case.runs_programs:
        return None
    found = repeating_copies(_calls(case))
    if not found:
        return None
    copies = _kernels_of(case, [each.copy for each in found])
    chosen = pl.concat([copies.select("event", least=pl.lit(0.0), most=pl.lit(0.0)), _readers(case, found)])
    most = max(found, key=lambda each: each.elements)
    why = f"copies tensors to repeat what they hold {most.times:,.0f} times, for an op that reads nothing else from them."
    evidence = {"times": round(most.times), "elements": most.elements}
    return of_kernels(case, RULE, chosen, why, owned=copies["event"], evidence=evidence)


def _calls(case: Case) -> list[Call]:
    """The ops that expand, copy and read, in order, thread by thread."""
    events = case.trace.events
    is_op = (events["kind"] == "op").fill_null(False)
    own = is_op & ancestors(events, is_op).is_null()
    wanted = is_op & is_named(events, OPS) & events["step"].is_not_null()
    if not wanted.any():
        return []
    tops = events.filter(own).select("id", "track", "start_ns").sort("track", "start_ns")
    tops = tops.select(top="id", turn=pl.int_range(pl.len()).over("track"))
    inside = pl.when(own).then(events["id"]).otherwise(ancestors(events, own))
    rows = (
        events.with_columns(top=inside, is_own=own)
        .filter(wanted)
        .select("id", "track", "start_ns", "name", "top", "is_own")
    )
    texts = case.trace.ops.select(
        id="event", shapes=pl.col("shapes").cast(pl.String), inputs=pl.col("concrete_inputs").cast(pl.String)
    )
    rows = rows.join(tops, on="top").join(texts, on="id").sort("track", "start_ns", "id")
    columns = ("id", "track", pl.col("name").cast(pl.String), "shapes", "inputs", "turn", "is_own")
    return [Call(*row) for row in rows.select(columns).iter_rows()]


def _kernels_of(case: Case, ops: list[int]) -> pl.DataFrame:
    """event, op of the kernels that these ops launch."""
    inside = at_or_below(case.trace.events, pl.Series("event", ops, dtype=pl.UInt32).unique())
    return case.trace.kernels.select("event", "op").filter(pl.col("op").is_in(inside.implode()))


def _readers(case: Case, found: list[Repeated]) -> pl.DataFrame:
    """event, least, most of what reads the copies: where memory decides, it reads less; at worst, as much time goes as the memory takes for the rest."""
    events = case.trace.events
    left = dict.fromkeys((each.reader for each in found), 1.0)
    for each in found:
        left[each.reader] = min(left[each.reader], each.left)
    readers = pl.DataFrame(
        {"reader": list(left), "left": list(left.values())}, schema={"reader": pl.UInt32, "left": pl.Float64}
    )
    is_reader = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(readers["reader"], True)
    mine = pl.when(is_reader).then(events["id"]).otherwise(ancestors(events, is_reader))
    of_op = events.select(reader=mine).to_series()
    kernels = case.trace.kernels.select("event", reader=of_op.gather(case.trace.kernels["op"])).drop_nulls()
    known = case.compute.kernels.filter(pl.col("bound").is_in(_FROM_MEMORY), pl.col("time_ns") > 0)
    known = known.select("event", reached=(pl.col("least_ns") / pl.col("time_ns")).clip(0, 1))
    rows = kernels.join(readers, on="reader").join(known.drop_nulls(), on="event")
    return rows.select("event", least="left", most=1 - pl.col("reached") * (1 - pl.col("left")))


RULE: Rule[Case] = Rule(
    code="expanded-copies",
    title="Copies repeat what could be read as it is",
    turn=187,
    page="kernels",
    owns="kernels of PyTorch that copy an expanded tensor (repeat_interleave, repeat, expand and reshape or contiguous, index_select of heads) of at least twice the elements, if the next attention or batched product takes the copy",
    change="they take no time; where the memory decides how long that op takes, it reads what was repeated once: at best its time shrinks as the bytes do, at worst by what the memory needs for the others",
    fix={
        "pytorch": "Pass keys and values as they are: scaled_dot_product_attention(q, k, v, enable_gqa=True) lets several query heads share them; so does folding these heads into the length of the query where there is no mask, as in decoding: q.view(batch, kv_heads, heads // kv_heads * length, dim). In products, broadcast or fold the repeated dimension instead of calling repeat, repeat_interleave or expand(…).contiguous().",
        ANY: "Pass what is repeated as it is, and broadcast it where it is used.",
    },
    find=find,
    needs_device=True,
)
