"""A setting for debugging was left on: every step pays for checks that only look for errors."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from stepscope.analysis.debug_settings import noted_settings
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change, with_warm_caches
from stepscope.analysis.findings.dispatched import left_without, without_whole_calls
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.profiler_doubt import withdraw
from stepscope.analysis.findings.promise import saving, timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.host.blocking_launches import SETTING as BLOCKING
from stepscope.analysis.host.blocking_launches import blocking_launches
from stepscope.analysis.host.functions import Calls
from stepscope.lazy import dataclass
from stepscope.registers.calibration.launches import (
    WITHOUT_ANOMALY_LEAST,
    WITHOUT_ANOMALY_MOST,
)
from stepscope.registers.calibration.profiler import PROFILED_LAUNCH_COST_NS, PROFILED_LAUNCH_NS
from stepscope.registers.policy.findings import MAJORITY, WORTH_SHOWING
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors, at_or_inside
from stepscope.trace.trace import Trace

_ANOMALY = "torch.autograd.set_detect_anomaly"
# What a launch takes that does not wait: without the profiler at best, with it at worst.
_FREE_LAUNCH_NS = (PROFILED_LAUNCH_NS - PROFILED_LAUNCH_COST_NS, PROFILED_LAUNCH_NS)
_UNSET = "Unset CUDA_LAUNCH_BLOCKING (in the environment of the job, or os.environ in the script), and set it only to find the launch that fails."
_NODE = r"^autograd::engine::evaluate_function: "
# What the engine itself calls for each gradient, and what an op calls for each node of the graph.
_OF_NODES = r"^aten::(isnan|_is_any_true|any|item)$"
_KEEPS_STACK = r"(^|[/\\])torch[/\\]fx[/\\]traceback\.py\(\d+\): format_stack$"
# Checks that other code does not make: the runtime's hook, and the ops of the callback; tf.debugging.check_numerics makes another op.
_OF_JAX = r"^\$(dispatch|api)\.py:\d+ (_?check_special(_array)?|_nan_check_posthook)$"
_OF_TENSORFLOW = (
    r"(^|:)(CheckNumericsV2|DebugNumericSummaryV2|DebugIdentityV[23])$"
    r"|tensorflow[/\\]python[/\\]debug[/\\]lib[/\\](check_numerics|dumping)_callback\.py\(\d+\): "
)
_NAMES = {
    "jax": ("jax_debug_nans", "jax_debug_infs"),
    "tensorflow": (
        "tf.debugging.enable_check_numerics",
        "tf.debugging.experimental.enable_dump_debug_info",
    ),
}


@dataclass(frozen=True)
class _Checks:
    """What a setting adds: `calls` with what they launch, and the stacks that ops keep for the nodes that they make.

    `keeps_stack`: for every event whether it is an op whose own time is mostly that; `hides_stacks`: the recording does not show it.
    """

    setting: str
    calls: Calls
    keeps_stack: pl.Series | None = None
    hides_stacks: bool = False

    def owns(self, slices: pl.DataFrame) -> pl.Series:
        """The slices of the calls, and of ops that were seen to keep a stack."""
        mine = self.calls.owns(slices)
        if self.keeps_stack is None or self.hides_stacks:
            return mine
        return mine | self.keeps_stack.gather(slices["named_by"]).fill_null(False)


def find(case: Case) -> Finding | None:
    """The checks, with what they launch and wait for; or launches that wait for their kernels."""
    checks = _find_checks(case.trace)
    if checks is None:
        return _of_blocking_launches(case) if case.trace.info.framework == "pytorch" else None
    owned = case.unclaimed.filter(checks.owns(case.unclaimed))
    ns = case.per_step(owned)
    if ns < WORTH_SHOWING * case.step_ns:
        return None
    detail = f"{checks.setting} is on: {case.of_step(ns)} goes to its checks."
    if checks.hides_stacks:
        detail += (
            " It also keeps a stack of Python for each node of the graph, inside of the forward pass's ops."
        )
    left = left_without(case, checks.calls, owned)
    found = timed(case, RULE, owned, _without(case, checks), detail, accounted=left)
    if checks.hides_stacks and not case.replay_fits:
        withdraw(found)
        found.detail += " What that takes, only a recording with stacks shows."
    found.evidence["setting"] = checks.setting
    found.fix = f"Switch {checks.setting} off, and use it only to look for an error."
    return found


def _of_blocking_launches(case: Case) -> Finding | None:
    """Host and device take turns: without the setting, a launch takes as long as elsewhere, and the host runs ahead."""
    waiting = blocking_launches(case.trace)
    if case.device is None or waiting.is_empty():
        return None
    left = _left_without_blocking(case, waiting)
    if 1 - left.mid < WORTH_SHOWING:
        return None
    detail = f"Nearly all launches return only when their kernel is done, as with {BLOCKING}"
    if BLOCKING in noted_settings(case.trace):
        detail = f"{BLOCKING} is set, so that each launch of a kernel returns only when that is done"
    owned = case.free(
        pl.col("part") == "sync", pl.col("named_by").is_in(_with_ops(case.trace, waiting).implode())
    )
    case.claim(owned)
    evidence = {"names": case.top_names(owned), "setting": BLOCKING, "estimate": "account"}
    detail += ": host and device take turns."
    found = saving(case, RULE, case.per_step(owned), left, detail, evidence, work=case.work_share(case.plan))
    found.fix = _UNSET
    return found


def _with_ops(trace: Trace, calls: pl.Series) -> pl.Series:
    """The calls and all ops around them, which name what happens in them."""
    events = trace.events
    found, outer = calls, ancestors(events, events["kind"] == "op")
    around = calls
    while len(around):
        around = outer.gather(around).drop_nulls().unique()
        found = pl.concat([found, around])
    return found


def _left_without_blocking(case: Case, waiting: pl.Series) -> Interval:
    """The steps as recorded, but the host waits for none of these launches, and each takes what it takes elsewhere.

    What such a launch takes itself is not known apart from its wait, so that the replay of the unchanged steps says nothing.
    """
    calls = pl.repeat(False, len(case.trace.events), dtype=pl.Boolean, eager=True).scatter(waiting, True)
    launched = pl.col("event").is_in(Calls(case.trace, calls).launched.implode())
    plan = case.plan.without_waits(pl.col("event").is_in(waiting.implode()))
    best, worst = (
        replace(
            plan, items=plan.items.with_columns(added_ns=pl.when(launched).then(ns).otherwise("added_ns"))
        )
        for ns in _FREE_LAUNCH_NS
    )
    ends = [min(1.0, each.as_recorded().step_ns() / case.step_ns) for each in (best, worst)]
    return Interval(ends[0], (ends[0] * ends[1]) ** 0.5, ends[1])


def _find_checks(trace: Trace) -> _Checks | None:
    framework = trace.info.framework
    if framework == "pytorch":
        return _anomaly_mode(trace)
    pattern = {"jax": _OF_JAX, "tensorflow": _OF_TENSORFLOW}.get(framework or "")
    if pattern is None:
        return None
    mine = is_named(trace.events, pattern) & trace.events["kind"].is_in(["python", "op", "span"])
    if not mine.any():
        return None
    noted = [each for each in noted_settings(trace) if each in _NAMES[framework or ""]]
    setting = noted[0] if noted else _NAMES[framework or ""][0]
    return _Checks(setting, Calls(trace, at_or_inside(trace.events, mine)))


def _anomaly_mode(trace: Trace) -> _Checks | None:
    """Most nodes of the backward pass are followed by a check, in their own call: a hook would be Python in between."""
    events = trace.events
    nodes = is_named(events, _NODE)
    if not nodes.any():
        return None
    above = events["parent"]
    checks = is_named(events, _OF_NODES) & nodes.gather(above).fill_null(False)
    finds_nan = checks & is_named(events, r"^aten::isnan$")
    # Gradients that are added up are no outputs of a node.
    giving = nodes & ~is_named(events, r"AccumulateGrad$")
    if above.filter(finds_nan).n_unique() <= MAJORITY * int(giving.sum()):
        return None
    in_op = (events["kind"] == "op").gather(above).fill_null(False)
    stacks = is_named(events, _KEEPS_STACK) & in_op
    calls = Calls(trace, at_or_inside(events, checks | stacks))
    if not stacks.any():
        return _Checks(_ANOMALY, calls, _in_forward_ops(trace), hides_stacks=True)
    keeping = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True)
    return _Checks(_ANOMALY, calls, keeping.scatter(above.filter(stacks).unique(), True))


def _without(case: Case, checks: _Checks) -> Change:
    """No checks, nothing that they launch, no waits for it; of ops that keep a stack, a small part of their own time is left."""
    plan = without_whole_calls(case.plan, checks.calls)
    if checks.keeps_stack is None:
        return Change(plan, with_warm_caches(plan, case.plan))
    ops = pl.lit(checks.keeps_stack.gather(case.plan.host["event"]).fill_null(False))
    surely, best = (plan.with_host(ops, left) for left in (WITHOUT_ANOMALY_MOST, WITHOUT_ANOMALY_LEAST))
    return Change(surely, with_warm_caches(best, case.plan))


def _in_forward_ops(trace: Trace) -> pl.Series:
    """For every event whether it is an op that makes a node of the graph: numbered, and not in the backward pass."""
    events = trace.events
    numbered = trace.ops.filter(pl.col("sequence").is_not_null())["event"]
    mine = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(numbered, True)
    return mine & ~at_or_inside(events, is_named(events, _NODE))


RULE: Rule[Case] = Rule(
    code="debug-setting",
    title="A setting for debugging was left on",
    turn=72,
    owns="what a setting for debugging adds: in PyTorch the checks of anomaly detection after each node of the backward pass and the stacks that nodes keep, or the time that launches wait with `CUDA_LAUNCH_BLOCKING=1` (of at least 100 launches of kernels 90 % return only when their kernel is done, or more than half if the sidecar notes the setting), in JAX the checks of `jax_debug_nans` and `jax_debug_infs`, in TensorFlow those of `enable_check_numerics` and `enable_dump_debug_info`",
    change="the checks take no time, nor what they launch and wait for, nor the stacks; ops that keep a stack, or if the recording has no Python stacks, ops of the forward pass that make nodes, take 3 to 12 % of their own time on the host; without a device, a recording without stacks gets advice. Launches no longer wait: each takes what it takes elsewhere, and the host runs ahead of the device",
    fix={
        "pytorch": "Switch torch.autograd.set_detect_anomaly off and unset CUDA_LAUNCH_BLOCKING, and use them only to look for an error.",
        "jax": "Switch jax_debug_nans and jax_debug_infs off, and use them only to look for an error.",
        "tensorflow": "Take tf.debugging.enable_check_numerics out, and use it only to look for an error.",
        ANY: "Switch the setting off, and use it only to look for an error.",
    },
    find=find,
)
