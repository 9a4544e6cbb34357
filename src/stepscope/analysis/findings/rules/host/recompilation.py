"""Programs are compiled inside the steps."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change, with_warm_caches
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.programs.first_runs import first_runs
from stepscope.analysis.findings.programs.trials import find_trials
from stepscope.analysis.findings.promise import lacks_much, left_as_a_whole, of_part
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.side_effects import FOLLOWING
from stepscope.analysis.findings.spread import OF_FIRST_RUNS
from stepscope.analysis.host.kernel_loads import loading_launches
from stepscope.analysis.replay.plan import Plan
from stepscope.registers.calibration.launches import (
    FIRST_CALL_NS,
)
from stepscope.registers.policy.findings import MAJORITY, STEPS_TO_KNOW_WARM_UP, WORTH_SHOWING

_TRACES = r"trace_to_jaxpr|create_pjit_jaxpr|infer_params|graph_building|func_graph|^Eager\w+Execute: "
_TRIALS = (*FOLLOWING, "compute", "copy", "python")  # a compiler tries its programs on the device


def find(case: Case) -> Finding | None:
    """What was launched to find the fastest code goes with the compilation. To load a kernel's code is not to compile it."""
    loads = loading_launches(case.trace)
    owned = case.free(pl.col("part") == "compile", ~pl.col("named_by").is_in(loads.implode()))
    return None if is_tracing(owned) else compiling(case, RULE, owned)


def is_tracing(owned: pl.DataFrame) -> bool:
    """Whether most of the compilation is the tracing of functions."""
    tracing = owned.filter(pl.col("name").cast(pl.String).str.contains(_TRACES))
    return int(tracing["ns"].sum()) > MAJORITY * int(owned["ns"].sum())


def compiling(case: Case, rule: Rule[Case], owned: pl.DataFrame) -> Finding | None:
    """The finding of this rule about time that goes into compiling; in the first step alone it is warm-up."""
    steps = owned["step"].unique()
    if len(case.lengths) >= STEPS_TO_KNOW_WARM_UP and len(steps) == 1 and steps[0] == case.lengths["step"][0]:
        return None
    first = first_runs(case)
    if first is None:
        return of_part(
            case,
            rule,
            owned,
            lambda: _change(case),
            follow=_TRIALS,
            account=left_as_a_whole,
            choose_spread=lambda _: OF_FIRST_RUNS if lacks_much(case) else None,
        )
    if case.per_step(owned) < WORTH_SHOWING * case.step_ns:
        return None
    whole = pl.concat([owned, first.around])
    return of_part(
        case,
        rule,
        whole,
        lambda: _change(case),
        follow=_TRIALS,
        account=first.left,
        choose_spread=lambda _: OF_FIRST_RUNS,
    )


def _change(case: Case) -> Change:
    """Nothing is compiled; at most, the caches of what follows stay warm, too. Work that was not recorded is not the compiler's."""
    without = _compiled(case)
    return Change(without, with_warm_caches(without, case.plan), unseen_stays=True)


def _compiled(case: Case) -> Plan:
    """The plan without compilation, and without the work that compiling launched."""
    chosen = find_trials(case)
    meanwhile = case.plan.items["item"].filter(chosen).implode()
    # The first call with a new shape also loads and chooses kernels.
    first_call = (pl.col("cause") == "dispatch") & (pl.col("recorded_ns") > FIRST_CALL_NS)
    return (
        case.plan.with_host((pl.col("cause") == "compile") | pl.col("item").is_in(meanwhile) | first_call)
        .with_device(pl.lit(chosen))
        .without_waits(pl.lit(chosen))
    )


RULE: Rule[Case] = Rule(
    code="recompilation",
    title="Programs are compiled during the steps",
    turn=60,
    owns="`compile`; for JAX on a CPU, also the dispatch and Python of the calls that compile",
    change="compilation, the autotuning kernels that it launches and slow first calls take no time, while programs of the job stay; at best, dispatch is also as fast as with warm caches; at worst, time of the step that the replay lacks stays. For JAX on a CPU the rest of the calls that compile goes as well, and 20 to 90 % of the time of first runs remains; where the sizes of arguments differ, all have the largest one, at worst one beyond those recorded",
    fix={
        "pytorch": "Find what changes with TORCH_LOGS=recompiles; mark sizes that vary with torch._dynamo.mark_dynamic, pad batches to one shape, and warm up before measuring.",
        "tensorflow": "Give tf.function an input_signature, or pad to one shape; pass Python numbers as tensors.",
        "jax": "Keep shapes and dtypes the same from step to step; JAX_LOG_COMPILES=1 says what was compiled. Mark true constants as static_argnums.",
        ANY: "Keep shapes the same from step to step, and compile before the loop.",
    },
    find=find,
)
