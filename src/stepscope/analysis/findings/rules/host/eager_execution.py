"""The step runs op by op instead of compiled."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.host.launch_bound import captured, count_calls, is_eager, slow_launches
from stepscope.analysis.host.causes import host_codes
from stepscope.analysis.host.eager_calls import CALL, FUNCTION_CALL
from stepscope.analysis.kernels.calls import MATRIX_OPS
from stepscope.native.host.lineage import FRAMEWORK
from stepscope.registers.calibration.kernels import (
    FUSED_ELEMENTWISE_LEAST,
    FUSED_ELEMENTWISE_MOST,
)
from stepscope.registers.policy.findings import (
    ACCOUNT_SAVES,
    EAGER_DISTINCT_CALLS,
    KERNELS_OF_EAGER_CALL,
)

_LOOP_TITLE = "A Python loop calls compiled programs one by one"
_LOOP_FIX = "Put the loop itself under jax.jit: jax.lax.scan or jax.lax.fori_loop instead of Python, with what changes from call to call as its carry."
_EXECUTOR = r"^Executor"  # of functions that are compiled already


def find(case: Case) -> Finding | None:
    """Slow launches of JAX or TensorFlow, where the step is many programs or ops."""
    if not is_eager(case):
        return None
    launches = slow_launches(case)
    if launches is None:
        return None
    owned = pl.concat([launches.owned, by_framework(case)])
    left = _left_by_account(case, owned)
    calls = count_calls(case)
    looped = len(calls) < EAGER_DISTINCT_CALLS and _are_compiled(case, calls)
    evidence = launches.evidence | {"calls_per_step": round(sum(calls.values()))}
    found = timed(
        case,
        RULE,
        owned,
        _compiled_step(case, is_fused=not looped),
        launches.detail + (_describe_loop(calls) if looped else ""),
        evidence,
        accounted=left,
        title=_LOOP_TITLE if looped else "",
    )
    if looped:
        found.fix = _LOOP_FIX
    return found


def _describe_loop(calls: Mapping[str, float]) -> str:
    name = max(calls, key=lambda each: calls[each])
    return f" A step calls {name} {calls[name]:,.0f} times."


def _are_compiled(case: Case, calls: Mapping[str, float]) -> bool:
    """Whether the calls are of programs with several kernels each, which a compiler has fused already; without a device, they may be."""
    if not case.has_device:
        return True
    kernels = len(case.kernels.drop_nulls("step")) / max(1, len(case.lengths))
    return kernels > KERNELS_OF_EAGER_CALL * sum(calls.values())


def _left_by_account(case: Case, owned: pl.DataFrame) -> Interval | None:
    """What a traced function leaves on a CPU: no dispatch of single ops, and less of the ops other than products.

    It simplifies its graph, runs ops side by side, and writes into buffers that are free: none of this can an op by itself.
    """
    if case.trace.info.framework != "tensorflow":
        return None
    name = pl.col("name").cast(pl.String)
    share = case.per_step(owned.filter(~name.str.contains(_EXECUTOR))) / case.step_ns
    computed = case.free(pl.col("part") == "host_compute", name.str.contains(CALL))
    computed = computed.filter(~name.str.contains(FUNCTION_CALL) & ~name.str.contains(MATRIX_OPS))
    simple = case.per_step(computed) / case.step_ns
    return Interval(
        1 - share - (1 - FUSED_ELEMENTWISE_LEAST) * simple,
        1 - share - (1 - FUSED_ELEMENTWISE_MOST) * simple,
        1 - ACCOUNT_SAVES * share,
    )


def by_framework(case: Case) -> pl.DataFrame:
    """Python of the framework itself in a step that is not compiled: it goes through it op by op, and would do so once."""
    python = case.free(pl.col("part") == "python")
    if not is_eager(case):
        return python.clear()
    is_its = host_codes(case.trace).gather(python["named_by"]) == FRAMEWORK
    return python.filter(is_its.fill_null(False))


def _compiled_step(case: Case, *, is_fused: bool) -> Change:
    """The step as one compiled program: launched at once, with its elementwise kernels fused; those of compiled programs only at best."""
    simple = pl.col("event").is_in(
        case.kernels.filter(~pl.col("eligible").fill_null(False))["event"].implode()
    )
    glue = pl.col("cause").is_in(["python", "compile", "sync"])
    launched = captured(case)
    return Change(
        launched.smallest.with_host(glue)
        .with_device(simple, FUSED_ELEMENTWISE_MOST if is_fused else 1.0)
        .without_waits(),
        launched.largest.with_host(glue).with_device(simple, FUSED_ELEMENTWISE_LEAST).without_waits(),
    )


RULE: Rule[Case] = Rule(
    code="eager-execution",
    title="The step runs op by op instead of compiled",
    turn=140,
    page="ops",
    owns="`dispatch`, and the framework's own `python`, if JAX or TensorFlow runs a step as 20 or more programs or ops: five different ones, or one program of JAX as often",
    change="as `launch-bound`, and kernels other than products are fused (25 to 35 % remain; of a loop over compiled programs only at best). For TensorFlow on a CPU, all dispatch of single ops goes, at worst 85 % of it",
    fix={
        "tensorflow": "Wrap the whole training step in @tf.function (jit_compile=True also fuses its ops).",
        ANY: "Put the whole training step, gradients and update included, under one jax.jit.",
    },
    find=find,
)
