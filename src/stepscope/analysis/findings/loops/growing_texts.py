"""A text that PyTorch computes again on a CPU for each new token: the turns of the loop, and what a turn over the new token alone leaves of their ops.

Each request begins with a turn over its prompt, which stays. In the others an op that is given all tokens (one of its sides is their number)
computes one: it reads its weights for that one, and takes no less time than it takes to call it.
"""

from __future__ import annotations

import math

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.loops.growing_products import growing_weights, linear_calls
from stepscope.analysis.findings.loops.padded_texts import padded_turns
from stepscope.analysis.findings.programs.host_ops import left_of_step
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import Rule
from stepscope.analysis.findings.spread import OF_READS
from stepscope.analysis.formulas.constants import ITEM_BYTES
from stepscope.analysis.shapes import arrays_in
from stepscope.registers.calibration.host_ops import (
    HOST_RECURRENT_CALL_MOST,
    HOST_TOKEN_OP_LEAST_NS,
    HOST_TOKEN_OP_MOST_NS,
    HOST_WEIGHT_BYTES_FAST,
    HOST_WEIGHT_BYTES_SLOWLY,
)
from stepscope.registers.policy.findings import LOOP_LEAST, MAJORITY
from stepscope.registers.policy.repeated_work import PREFIX_LEAST_ON_HOST
from stepscope.trace.frames import take_mean
from stepscope.trace.scopes import ancestors

_RECURRENT = ("aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu")
_PARTS = ("host_compute", "dispatch")  # a short op is dispatch


def find_growing_text(case: Case, rule: Rule[Case]) -> Finding | None:
    """A finding about all turns but those over a prompt."""
    calls = _outermost(case, pl.concat([linear_calls(case), _recurrent_calls(case)]).sort("start_ns"))
    turns = _growing_turns(case, calls)
    if turns is None:
        turns = padded_turns(case, calls)
        mine = None if turns is None else calls.filter(pl.col("rows").is_in(turns["rows"].unique().implode()))
        if turns is None or mine is None or not _take_most(case, calls, mine):
            return None
    tokens = take_mean(turns["tokens"].unique())
    if tokens < PREFIX_LEAST_ON_HOST or turns["again"].sum() == 0:
        return None
    owned = _shortened(case, turns.filter("again"), calls)
    ns = case.per_step(owned)
    if ns < LOOP_LEAST * case.step_ns:
        return None
    detail = (
        f"{case.of_step(ns)} computes all of about {tokens:,.0f} tokens again to get one more, "
        f"{turns['again'].sum() / case.step_count:,.0f} times."
    )
    left = left_of_step(case, owned)
    return timed(
        case, rule, owned, case.plan, detail, {"tokens": round(tokens)}, accounted=left, spread=OF_READS
    )


def _growing_turns(case: Case, calls: pl.DataFrame) -> pl.DataFrame | None:
    """The turns over a text that grows from one to the next."""
    growing = growing_weights(calls)
    mine = calls.join(growing.select("weight", "grown"), on="weight", maintain_order="left")
    return None if growing.is_empty() or not _take_most(case, calls, mine) else _turns(case, mine)


def _outermost(case: Case, calls: pl.DataFrame) -> pl.DataFrame:
    """Those that are inside of no other."""
    events = case.trace.events
    known = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(calls["event"], True)
    return calls.filter(ancestors(events, known).gather(calls["event"]).is_null())


def _recurrent_calls(case: Case) -> pl.DataFrame:
    """The same columns of recurrent layers: the rows are all time steps of all sequences.

    Each call brings the weights into another order first, which takes longer than to read them.
    """
    ops = case.ops.filter(pl.col("name").cast(pl.String).is_in(_RECURRENT), pl.col("step").is_not_null())
    rows = []
    for event, name, text in ops.select(
        "event", pl.col("name").cast(pl.String), pl.col("shapes").cast(pl.String)
    ).iter_rows():
        arrays = arrays_in(text)
        if arrays and len(arrays[0]) > 1 and min(arrays[0]) > 0:
            weights = sum(math.prod(each) for each in arrays[1:] if len(each) == 2)
            key = f"{name} {arrays[0][-1]}"
            rows.append((event, name, text, key, math.prod(arrays[0][:-1]), weights))
    schema = {
        "event": pl.UInt32,
        "name": pl.String,
        "shapes": pl.String,
        "weight": pl.String,
        "rows": pl.Int64,
        "weight_numbers": pl.Int64,
    }
    found = pl.DataFrame(rows, schema=schema, orient="row")
    return found.with_columns(start_ns=case.trace.events["start_ns"].gather(found["event"]))


def _take_most(case: Case, calls: pl.DataFrame, mine: pl.DataFrame) -> bool:
    """Whether these take most of the time of all calls."""
    lengths = case.trace.events["dur_ns"]
    total = int(lengths.gather(calls["event"]).sum())
    return int(lengths.gather(mine["event"]).sum()) > MAJORITY * total


def _turns(case: Case, mine: pl.DataFrame) -> pl.DataFrame:
    """start_ns, end_ns, rows, tokens, again of the turns, in their order; `again`: over a text that the turn before was over, too.

    Where requests begin in the recording, its first turn is over a prompt as well.
    """
    ends = pl.col("start_ns") + case.trace.events["dur_ns"].gather(mine["event"])
    turns = (
        mine.with_columns(turn=pl.col("rows").rle_id(), end_ns=ends)
        .group_by("turn", maintain_order=True)
        .agg(pl.col("start_ns", "rows", "grown").first(), pl.col("end_ns").max())
    )
    after = pl.col("rows").diff() == pl.col("grown")
    begins = bool(turns.select((~after).any()).item())
    turns = turns.with_columns(again=after.fill_null(not begins), tokens=pl.col("rows") / pl.col("grown"))
    # What follows the last product, up to the next turn of the request, is of this one.
    following = pl.when(pl.col("again").shift(-1)).then(pl.col("start_ns").shift(-1))
    return turns.with_columns(end_ns=pl.coalesce(following, "end_ns"))


def _shortened(case: Case, turns: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """The free slices of ops that are given all tokens of such a turn, with `least` and `most`."""
    free = case.free(pl.col("part").is_in(_PARTS)).sort("start_ns")
    spans = turns.select("start_ns", "rows", "tokens", turn_end_ns="end_ns")
    slices = free.join_asof(spans, on="start_ns").filter(pl.col("start_ns") < pl.col("turn_end_ns"))
    ops = case.trace.ops.select(named_by="event", shapes=pl.col("shapes").cast(pl.String))
    slices = slices.join(ops, on="named_by", how="inner", maintain_order="left").drop_nulls("shapes")
    known = slices.select("shapes", "rows", "tokens").unique(maintain_order=True)
    over_all = known.filter(pl.Series([_is_over_all(*each) for each in known.iter_rows()], dtype=pl.Boolean))
    slices = slices.join(over_all, on=["shapes", "rows", "tokens"], how="semi", maintain_order="left")
    slices = slices.with_columns(op=_product_or_own(case, slices["named_by"], calls["event"]))
    slow = pl.when(pl.col("name").is_in(_RECURRENT)).then(HOST_RECURRENT_CALL_MOST).otherwise(0.0)
    weights = calls.select(op="event", bytes=ITEM_BYTES["float"] * pl.col("weight_numbers"), slow=slow)
    slices = slices.join(weights, on="op", how="left", maintain_order="left")
    taken = pl.col("ns").sum().over("op").clip(lower_bound=1)
    read_ns = pl.col("bytes").fill_null(0) / taken

    def share(of_tokens: float, op_ns: float, bytes_per_ns: float, slow: pl.Expr) -> pl.Expr:
        own = (of_tokens / pl.col("tokens"), op_ns / taken, read_ns / bytes_per_ns, slow.fill_null(0.0))
        return pl.max_horizontal(*own).clip(upper_bound=1.0)

    return slices.with_columns(
        least=share(1.0, HOST_TOKEN_OP_LEAST_NS, HOST_WEIGHT_BYTES_FAST, pl.lit(0.0)),
        most=share(2.0, HOST_TOKEN_OP_MOST_NS, HOST_WEIGHT_BYTES_SLOWLY, pl.col("slow")),
    )


def _is_over_all(shapes: str, rows: int, tokens: float) -> bool:
    """Whether one of these arrays has as many rows as all tokens of the turn."""
    return any(rows in each or round(tokens) in each for each in arrays_in(shapes))


def _product_or_own(case: Case, named_by: pl.Series, products: pl.Series) -> pl.Series:
    """The product that an op is or belongs to, else the op."""
    events = case.trace.events
    known = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(products, True)
    nearest = (
        pl.when(~known).then(pl.coalesce(ancestors(events, known), events["id"])).otherwise(events["id"])
    )
    return pl.select(nearest).to_series().gather(named_by)
