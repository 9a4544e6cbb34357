"""The step runs op by op instead of compiled."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.host.launch_bound import captured, is_eager, slow_launches
from stepscope.analysis.host.causes import host_codes
from stepscope.analysis.host.eager_calls import CALL, FUNCTION_CALL
from stepscope.analysis.kernels.calls import MATRIX_OPS
from stepscope.native.host.lineage import FRAMEWORK
from stepscope.registers.calibration.kernels import (
    FUSED_ELEMENTWISE_LEAST,
    FUSED_ELEMENTWISE_MOST,
)
from stepscope.registers.policy.findings import ACCOUNT_SAVES

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
    return timed(case, RULE, owned, _compiled_step(case), launches.detail, launches.evidence, accounted=left)


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


def _compiled_step(case: Case) -> Change:
    """The step as one compiled program: launched at once, with its elementwise kernels fused."""
    simple = pl.col("event").is_in(
        case.kernels.filter(~pl.col("eligible").fill_null(False))["event"].implode()
    )
    glue = pl.col("cause").is_in(["python", "compile", "sync"])
    launched = captured(case)
    return Change(
        launched.smallest.with_host(glue).with_device(simple, FUSED_ELEMENTWISE_MOST).without_waits(),
        launched.largest.with_host(glue).with_device(simple, FUSED_ELEMENTWISE_LEAST).without_waits(),
    )


RULE: Rule[Case] = Rule(
    code="eager-execution",
    title="The step runs op by op instead of compiled",
    turn=140,
    page="ops",
    owns="`dispatch`, and the framework's own `python`, if JAX or TensorFlow runs a step as 20 or more programs or ops",
    change="as `launch-bound`, and kernels other than products are fused (25 to 35 % remain). For TensorFlow on a CPU, all dispatch of single ops goes, at worst 85 % of it",
    fix={
        "tensorflow": "Wrap the whole training step in @tf.function (jit_compile=True also fuses its ops).",
        ANY: "Put the whole training step, gradients and update included, under one jax.jit.",
    },
    find=find,
)
