"""A loop inside of a compiled program that runs small kernels turn by turn."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.registers.policy.compute import SMALL_KERNEL_NS
from stepscope.registers.policy.device_findings import LOOP_ADVICE_LEAST, TURNS_OF_LOOP


def find(case: Case) -> Finding | None:
    """Kernels that one step runs again and again, each too short to fill the device."""
    if not case.runs_programs or case.kernels.is_empty():
        return None
    mine = turning_kernels(case)
    owned = case.free(
        pl.col("part").is_in(["compute", "gap"]), pl.col("named_by").is_in(mine["event"].implode())
    )
    ns = case.per_step(owned)
    if ns < LOOP_ADVICE_LEAST * case.step_ns:
        return None
    steps = max(1, len(case.lengths))
    count, usual = round(len(mine) / steps), float(mine["dur_ns"].median() or 0)  # type: ignore[arg-type]
    detail = (
        f"{case.of_step(ns)} is spent in {count:,} kernels that a loop inside the program runs turn by turn, "
        f"half of them shorter than {usual / 1000:.1f} µs."
    )
    found = RULE.finding(
        detail=detail,
        fix=RULE.fix.get(case.trace.info.framework or "", RULE.fix[ANY]),
        evidence={"names": case.top_names(owned), "kernels_per_step": count},
        share=round(min(1.0, ns / case.step_ns), 4),
    )
    case.claim(owned)
    return found


def turning_kernels(case: Case) -> pl.DataFrame:
    """event, dur_ns of the kernels that run in many turns of a step and are mostly short."""
    steps = max(1, len(case.lengths))
    turns = pl.len().over("name") >= TURNS_OF_LOOP * steps
    short = pl.col("dur_ns").median().over("name") < SMALL_KERNEL_NS
    return case.kernels.drop_nulls("step").filter(turns & short).select("event", "dur_ns")


RULE: Rule[Case] = Rule(
    code="small-kernels-in-loop",
    title="A loop inside the program runs many small kernels",
    turn=206,
    page="kernels",
    class_="advice",  # how much of a loop can leave it, its code alone says
    owns="`compute` and `gap` of kernels that a compiled program runs 64 times or more in a step, if half of the calls are short",
    change="nothing is promised: how much can leave the loop depends on what each iteration needs from the previous one",
    fix={
        "jax": "Take out of the loop (lax.scan, fori_loop, while_loop) what does not depend on its carry, as one large product before it; join products of the same input (the gates of a cell) into one; try lax.scan(..., unroll=4).",
        "tensorflow": "Take out of the loop (tf.while_loop, the cell of an RNN) what does not depend on its state, as one large product before it; join products of the same input into one.",
        ANY: "Take out of the loop what does not depend on the turn before, as one large product.",
    },
    find=find,
    needs_device=True,
)
