"""Part of a compiled program that a step calls again and again depends only on what is the same in all of these calls."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.device_work import free_of_work, without_work, work_of_instructions
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.xla.hlo_module import read_module
from stepscope.analysis.xla.ops import Program
from stepscope.analysis.xla.repeated_calls import RepeatedCalls, repeated_calls
from stepscope.analysis.xla.same_work import SameWork, same_work
from stepscope.names import short_name
from stepscope.registers.policy.findings import TOP_NAMES
from stepscope.registers.policy.useless_work import REPEATED_WORK_LEAST

_PREFIX = "jit_"


def find(case: Case) -> Finding | None:
    """The work of all calls of a step but the first, of the program in which it takes most of the step."""
    if case.trace.info.framework != "jax" or case.is_tpu or case.device is None:
        return None
    best: tuple[int, RepeatedCalls, SameWork, pl.DataFrame, pl.DataFrame] | None = None
    for calls in repeated_calls(case.trace, case.device, max(1, len(case.lengths))):
        work = same_work(read_module(calls.hlo), calls.changing, [one.number for one in calls.same])
        chosen = _repeats(case, calls, work.names)
        owned = free_of_work(case, chosen["event"])
        ns = case.per_step(owned)
        if ns >= REPEATED_WORK_LEAST * case.step_ns and (best is None or ns > best[0]):
            best = (ns, calls, work, chosen, owned)
    if best is None:
        return None
    ns, calls, work, chosen, owned = best
    count = round(len(chosen) / max(1, len(case.lengths)))
    evidence = _described(calls, work) | {"kernels_per_step": count}
    return timed(case, RULE, owned, without_work(case, chosen), _detail(case, ns, calls, work), evidence)


def _repeats(case: Case, calls: RepeatedCalls, names: frozenset[str]) -> pl.DataFrame:
    """event, least, most: the work of these instructions in all runs of a step but the first, and what is left of it.

    At worst, each new argument that arrives in a step needs a run of its own.
    """
    mine = work_of_instructions(case, Program(calls.hlo, calls.name), names)
    place = pl.col("run").rank("dense").over("step") - 1
    repeats = mine.with_columns(place=place).filter(pl.col("place") > 0)
    return repeats.select(
        "event", least=pl.lit(0.0), most=pl.when(pl.col("place") < calls.arriving).then(1.0).otherwise(0.0)
    )


def _arguments(calls: RepeatedCalls) -> list[str]:
    """The arguments that stay the same, as the function calls them."""
    return list(dict.fromkeys(one.root for one in calls.same if one.root))[:TOP_NAMES]


def _described(calls: RepeatedCalls, work: SameWork) -> dict[str, object]:
    """What is called, how often, and with which arguments that stay the same."""
    found: dict[str, object] = {
        "program": calls.name,
        "calls_per_step": round(calls.calls),
        "arguments": _arguments(calls),
    }
    return found | ({"scope": work.scope} if work.scope else {})


def _detail(case: Case, ns: int, calls: RepeatedCalls, work: SameWork) -> str:
    function = short_name(calls.name.removeprefix(_PREFIX))
    named = ", ".join(short_name(one) for one in _arguments(calls)) or "arguments"
    inside = f", mostly in {short_name(work.scope)}," if work.scope else ""
    often = "once" if calls.arriving == 1 else f"{calls.arriving:,} times"
    return (
        f"{case.of_step(ns)}{inside} computes again what an earlier call has computed: a step calls {function} {calls.calls:,.0f} times,"
        f" and this part needs only weights and {named}, which is new {often} a step."
    )


RULE: Rule[Case] = Rule(
    code="repeated-work",
    title="Part of a compiled program computes the same result in every call",
    turn=143,
    page="kernels",
    owns="kernels, copies and gaps of a JAX program that steps call 4 times or more, in all of these calls but the first, if they depend only on weights and on arguments of which fewer than half as many arrive as there are calls (copied to the device, or returned by a program): the encoder of a prompt in each step of a sampler, for one. From a tenth of the step on. Numbers, random keys, whatever has the shape of a result, and data that was on the device before are taken to change with each call",
    change="only the first call of a step does this work; at worst one call for each new argument",
    fix={
        "jax": "Compute it once per step in a function of its own (encode = jax.jit(encode_text); context = encode(params, tokens)), and pass the result to the function that is called again and again, in place of what it is computed from.",
        ANY: "Compute it once per step, and pass the result to the function that is called again and again.",
    },
    find=find,
    needs_device=True,
)
