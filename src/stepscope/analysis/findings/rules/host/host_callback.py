"""A program on the device stops for Python on the host: callbacks."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change, with_warm_caches
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.host.functions import Calls
from stepscope.registers.policy.findings import WORTH_SHOWING
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import at_or_inside
from stepscope.trace.trace import Trace

# JAX: instructions of the program, the runtime's calls, frames of jax/_src/callback.py and its predecessors; TensorFlow: ops.
_CALLBACK = (
    r"^(debug|pure|io|outside|host)_callback([._]\d+)*$|python_[cg]pu_callback|^\$(callback|mlir)\.py:\d+ _wrapped_callback$"
    r"|^\$host_callback\.py:\d+ |(^|:)(Eager)?PyFunc(Stateless)?$"
)
# What JAX does in Python for each call of a program with effects, which it cannot dispatch the fast way.
_SLOW_CALL = r"^\$pjit\.py:\d+ (cache_miss|_run_python_pjit|_pjit_call_impl_python)$"
_OWNED = ("python", "host_compute", "sync", "copy", "dispatch", "device_gap", "unexplained", "compile")


def find(case: Case) -> Finding | None:
    """The callbacks with their copies and waits."""
    calls = callbacks(case.trace)
    if calls is None:
        return None
    mine = case.unclaimed.filter(calls.owns(case.unclaimed))
    owned = mine.filter(pl.col("part").is_in(_OWNED))
    ns = case.per_step(owned)
    if ns < WORTH_SHOWING * case.step_ns:
        return None
    detail = f"{case.of_step(ns)} goes to Python functions that the program calls on the host, and to the copies and waits for them."
    found = timed(case, RULE, owned, _without(case, calls), detail)
    found.where = case.places(owned)
    return found


def callbacks(trace: Trace) -> Calls | None:
    """The calls from programs into Python; None where there are none."""
    events = trace.events
    is_call = _named(events, _CALLBACK)
    return Calls(trace, at_or_inside(events, is_call)) if is_call.any() else None


def _named(events: pl.DataFrame, pattern: str) -> pl.Series:
    return is_named(events, pattern) & events["kind"].is_in(["python", "span", "op"])


def _without(case: Case, calls: Calls) -> Change:
    """No callbacks, no copies and waits for them, and no slow calls; at most the rest of the dispatch is faster, too."""
    inside = calls.inside | _slow_calls(case.trace.events)
    gone = inside.gather(case.plan.host["event"]).fill_null(False)
    made = pl.col("event").is_in(calls.launched.implode())
    waits = pl.col("event").is_in(calls.waits.implode())
    plan = case.plan.with_host(pl.lit(gone)).with_device(made).without_waits(waits)
    return Change(plan, with_warm_caches(plan, case.plan))


def _slow_calls(events: pl.DataFrame) -> pl.Series:
    """The Python of calls that a callback keeps from the fast way: a program with effects is never dispatched without Python."""
    slow = _named(events, _SLOW_CALL)
    if not slow.any():
        return slow
    return at_or_inside(events, slow) & (events["kind"] == "python")


RULE: Rule[Case] = Rule(
    code="host-callback",
    title="The program waits for Python callbacks",
    turn=75,
    owns="callbacks from compiled programs into Python (`debug`, `pure` and `io_callback` of JAX, `py_function` of TensorFlow), with their copies and waits",
    change="they take no time, nor do their copies and waits, nor the Python that JAX needs to call a program with effects",
    fix={
        "jax": "Compute this in the program and return its result: jnp instead of NumPy, statistics as auxiliary outputs that are read every 100 steps.",
        "tensorflow": "Replace tf.py_function and tf.numpy_function by TensorFlow ops; return values and read them every 100 steps.",
        ANY: "Compute this on the device and return its result.",
    },
    find=find,
    needs_device=True,
)
