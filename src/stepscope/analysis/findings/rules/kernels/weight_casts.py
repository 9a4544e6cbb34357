"""Weights in fp32 that autocast casts to 16 bits whenever they are used, in inference."""

from __future__ import annotations

import msgspec
import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.dispatched import at_or_below
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.replay.plan import Plan
from stepscope.analysis.serving.workload import INFERENCE
from stepscope.registers.policy.findings import WORTH_A_FINDING
from stepscope.trace.lookup import rows_by_event

_CAST = "aten::to"
_WITH_WEIGHTS = r"^aten::(linear|matmul|mm|_?conv(olution|_?(transpose)?\d?d))$"
_TABLES = ("aten::matmul", "aten::mm")  # their second operand is a weight only as a table
_TABLE = 2  # sides of a matrix


def find(case: Case) -> Finding | None:
    """Training casts each weight once a step, as it must: they change. In inference they do not."""
    if case.workload != INFERENCE or case.trace.info.framework != "pytorch":
        return None
    casts = _casts(case)
    weights = casts.filter("weight")
    if weights.is_empty():
        return None
    inside = at_or_below(case.trace.events, weights["cast"])
    work = _launched(case, inside)
    named = pl.concat([inside, work]).implode()
    owned = case.free(pl.col("part").is_in(["compute", "dispatch"]), pl.col("named_by").is_in(named))
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    count = len(weights) / max(1, len(case.lengths))
    detail = f"{case.of_step(ns)} casts weights that never change, {count:,.0f} times a step."
    return timed(case, RULE, owned, _without_autocast(case, casts), detail, {"casts_per_step": round(count)})


def _casts(case: Case) -> pl.DataFrame:
    """cast, outer, weight: the casts of autocast, the op that they are for, and whether a weight is cast.

    Under autocast an op casts what it is given and then calls itself.
    """
    events = case.trace.events
    ops = events.filter(pl.col("kind") == "op").select("id", "name", outer="parent").drop_nulls("outer")
    again = events["name"].gather(ops["outer"]) == ops["name"]
    wrapped = ops["outer"].filter(again.fill_null(False)).unique()
    casting = case.ops.filter(
        pl.col("name").cast(pl.String) == _CAST, pl.col("device_total_ns") > 0, pl.col("shapes").is_not_null()
    )
    found = casting.select(cast="event", shapes=pl.col("shapes").cast(pl.String)).join(
        ops.select(cast="id", outer="outer"), on="cast", maintain_order="left"
    )
    found = found.filter(pl.col("outer").is_in(wrapped.implode()))
    row = rows_by_event(case.trace.ops["event"], len(events)).gather(found["outer"])
    found = found.with_columns(
        name=events["name"].gather(found["outer"]).cast(pl.String),
        given=case.trace.ops["shapes"].gather(row).cast(pl.String),
    )
    keys = ["name", "given", "shapes"]
    distinct = found.select(keys).unique(maintain_order=True)
    judged = [_is_weight(*each) for each in distinct.iter_rows()]
    known = distinct.with_columns(weight=pl.Series(judged, dtype=pl.Boolean))
    return found.join(known, on=keys, nulls_equal=True, maintain_order="left").select(
        "cast", "outer", "weight"
    )


def _is_weight(name: str | None, given: str | None, cast: str | None) -> bool:
    """Whether what is cast is an operand after the first of an op that has weights there."""
    if not pl.Series([name or ""]).str.contains(_WITH_WEIGHTS)[0]:
        return False
    operands, tensors = _shapes(given), _shapes(cast)
    if not operands or not tensors or tensors[0] not in operands[1:] or tensors[0] == operands[0]:
        return False
    return name not in _TABLES or len(tensors[0]) <= _TABLE


def _shapes(text: str | None) -> list[list[object]]:
    try:
        found = msgspec.json.decode(text or "[]")
    except msgspec.DecodeError:
        return []
    return [each for each in found if isinstance(each, list)] if isinstance(found, list) else []


def _without_autocast(case: Case, casts: pl.DataFrame) -> Change:
    """Nothing is cast, neither weights nor what is computed; at most, the ops around the casts take no time either."""
    inside = at_or_below(case.trace.events, casts["cast"])
    around = pl.concat([inside, casts["outer"]]).unique()
    return Change(_without(case, inside), _without(case, around))


def _launched(case: Case, ops: pl.Series) -> pl.Series:
    found: pl.Series = case.trace.kernels.filter(pl.col("op").is_in(ops.implode()))["event"]
    return found


def _without(case: Case, ops: pl.Series) -> Plan:
    """The steps without these ops and what they launch; what is inside them and not listed stays."""
    plan = case.plan.with_device(pl.col("event").is_in(_launched(case, ops).implode()))
    return plan.with_host(pl.col("event").is_in(ops.implode()) & (pl.col("cause") == "dispatch"))


RULE: Rule[Case] = Rule(
    code="weight-casts",
    title="Weights are cast to 16 bits again and again",
    turn=145,
    page="ops",
    owns="kernels and dispatch of autocast's weight casts, in inference",
    change="autocast casts nothing; at best, the ops around the casts take no host time either",
    fix={
        "pytorch": "Keep the weights in the type that autocast casts them to: model.to(torch.bfloat16) (or torch.float16) once after loading, and run without autocast.",
        ANY: "Keep the weights in 16 bits.",
    },
    find=find,
    needs_device=True,
)
