"""The host's time without the profiler, within bounds: a plan whose steps can be replayed as the job runs.

Launching ops is what a profiler slows most, by a factor that differs from job to job and from machine to machine. What is
left of it is taken, in this order, from: the light window, launch by launch (light.py); the host's own step lengths, which the capture notes while nothing holds the host
up; the unprofiled step, where the host decides how long it is; the range that was measured for such recordings. User code
and input are recorded more cheaply, at a cost per event (profiler_cost.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import polars as pl

from stepscope.analysis.basis import UNPROFILED, Basis, step_basis
from stepscope.analysis.input_facts import input_facts
from stepscope.analysis.replay.light import LightHost
from stepscope.analysis.replay.plan import FAST, SLOW, SPEEDS, USUAL, Plan, recorded_plan, sums
from stepscope.analysis.replay.profiler_cost import ProfilerCost
from stepscope.analysis.steps.find import Steps
from stepscope.lazy import dataclass
from stepscope.native.host import replay as native
from stepscope.registers.calibration.launches import FRAMEWORK_PAUSE_NS
from stepscope.registers.calibration.profiler import (
    DISPATCH_LEFT_JAX_HIGH,
    DISPATCH_LEFT_JAX_LOW,
    DISPATCH_LEFT_JAX_MID,
    DISPATCH_LEFT_LEAST,
    DISPATCH_LEFT_WITH_OPS_HIGH,
    DISPATCH_LEFT_WITH_OPS_LOW,
    DISPATCH_LEFT_WITH_OPS_MID,
    DISPATCH_LEFT_WITH_STACKS_HIGH,
    DISPATCH_LEFT_WITH_STACKS_LOW,
    DISPATCH_LEFT_WITH_STACKS_MID,
    EVENT_COST_FAST,
    EVENT_COST_SLOW,
    FITTED_DISPATCH_ERROR,
    LIGHT_ERROR,
    LIGHT_LEFT_LEAST,
    LIGHT_LEFT_LEAST_ALONE,
    LIGHT_LEFT_MOST,
    REPLAY_ERROR,
)
from stepscope.registers.policy.findings import DISPATCH_SEARCH_ROUNDS, LEAST_HOST_LEFT, STEP_DECIDED_BY_HOST
from stepscope.trace.trace import Trace


@dataclass(frozen=True)
class DispatchLeft:
    """What is left of the recorded time of dispatch without the profiler, and how that is known."""

    fast: float
    usual: float
    slow: float
    source: str  # host: its own step lengths; step: the unprofiled one; others: that, which hides it; light: the window; measured: jobs like it


_JAX = DispatchLeft(DISPATCH_LEFT_JAX_LOW, DISPATCH_LEFT_JAX_MID, DISPATCH_LEFT_JAX_HIGH, "measured")
_WITH_OPS = DispatchLeft(
    DISPATCH_LEFT_WITH_OPS_LOW, DISPATCH_LEFT_WITH_OPS_MID, DISPATCH_LEFT_WITH_OPS_HIGH, "measured"
)
_WITH_STACKS = DispatchLeft(
    DISPATCH_LEFT_WITH_STACKS_LOW, DISPATCH_LEFT_WITH_STACKS_MID, DISPATCH_LEFT_WITH_STACKS_HIGH, "measured"
)


def plan(trace: Trace, steps: Steps, device: int | None, light: LightHost | None = None) -> Plan:
    """The steps of one device, ready to be replayed as they run without the profiler."""
    recorded, spans = recorded_plan(trace, steps, device)
    if recorded.host.is_empty():
        return recorded
    if light is not None:
        basis = step_basis(trace, 0.0, steps.source)
        return _as_long(_as_light(recorded, light), basis, steps, _has_workers(trace))
    lost = _profiler_ns(recorded, ProfilerCost(trace), spans)
    made = _with_event_costs(recorded, lost)
    basis = step_basis(trace, 0.0, steps.source)
    if basis.source == UNPROFILED and _computes(made):
        return _as_long_on_host(made, basis.ns, len(steps.host))
    return with_dispatch(made, dispatch_left(trace, steps, made))


def _computes(made: Plan) -> bool:
    """Whether the host itself does the work of the step."""
    return bool((made.host["cause"] == "host_compute").any())


def _as_long_on_host(made: Plan, step_ns: float, count: int) -> Plan:
    """Where the host computes, its ops and their dispatch take what the unprofiled step leaves to them, but no longer than recorded."""
    mine = _is_dispatch() | (pl.col("cause") == "host_compute")
    others = float(made.host.filter(~mine)[USUAL].sum()) / max(1, count)
    working = float(made.host.filter(mine)["recorded_ns"].sum()) / max(1, count)
    share = min(1.0, max(DISPATCH_LEFT_LEAST, (step_ns - others) / working)) if working else 1.0
    return with_dispatch(made, _around(share, "step"), mine)


def dispatch_left(trace: Trace, steps: Steps, made: Plan) -> DispatchLeft:
    """What is left of the time of dispatch, from the best source that this recording has."""
    usual = _usual_range(trace)
    basis = step_basis(trace, 0.0, steps.source)
    if basis.source != UNPROFILED:
        return usual
    found = _fit_to_host(made, basis, steps, "recorded_ns", (DISPATCH_LEFT_LEAST, 1.0), _has_workers(trace))
    if found is not None:
        return _around(found, "host")
    found = _fit_to_step(made, basis.ns)
    return usual if found is None else _around(found, "step")


def with_dispatch(made: Plan, left: DispatchLeft, mine: pl.Expr | None = None) -> Plan:
    """The plan with what is left of its dispatch, or of other work of the host."""
    scaled = _is_dispatch() if mine is None else mine
    changed = [
        pl.when(scaled).then(pl.col("recorded_ns") * share).otherwise(name).cast(pl.Int64).alias(name)
        for name, share in ((FAST, left.fast), (USUAL, left.usual), (SLOW, left.slow))
    ]
    return replace(made, host=made.host.with_columns(changed))


def _as_light(made: Plan, light: LightHost) -> Plan:
    """The host's time as in the light window: the recorded one times the factor of each item."""
    known = made.items.join(light.calls, on="event", how="left", maintain_order="left")
    known = known.join(light.steps, on="step", how="left", maintain_order="left")
    factor = pl.when(pl.col("last") == 1).then("edge_factor").otherwise("factor")
    factors = known.select(factor.fill_null(light.factor)).to_series().gather(made.host["item"])
    shorter = (made.host["recorded_ns"] * factors).cast(pl.Int64)
    return replace(made, host=made.host.with_columns(shorter.alias(name) for name in SPEEDS))


def _as_long(made: Plan, basis: Basis, steps: Steps, has_workers: bool) -> Plan:
    """Even a light window costs the host something: its own lengths say how much, or the step where it decides about that."""
    left = DispatchLeft(1.0, 1.0, 1.0, "light")
    bounds_of_light = LIGHT_LEFT_LEAST_ALONE, LIGHT_LEFT_MOST
    alone = _fit_to_host(made, basis, steps, USUAL, bounds_of_light, has_workers)
    if alone is not None:
        left = DispatchLeft(alone, alone, alone, "host")
    elif basis.source == UNPROFILED:
        left = _fit_light_to_step(made, basis.ns)
    speeds = (
        (FAST, left.fast, 1 - LIGHT_ERROR),
        (USUAL, left.usual, 1.0),
        (SLOW, left.slow, 1 + LIGHT_ERROR),
    )
    columns = [
        (_scaled(made, share).host[USUAL] * error).cast(pl.Int64).alias(name) for name, share, error in speeds
    ]
    return replace(made, host=made.host.with_columns(columns))


def _fit_light_to_step(made: Plan, step_ns: float) -> DispatchLeft:
    """The share at which the replayed step is as long as the unprofiled one; the least where the light steps were still slower.

    Where the step is nearly as long with any smaller share, the device or other work of the host decides about it, and the
    share is the most that dispatch may take: then the middle between that and the least is expected.
    """

    def replayed(share: float) -> float:
        return _scaled(made, share).step_ns()

    fitted = _search(replayed, step_ns, LIGHT_LEFT_LEAST, LIGHT_LEFT_MOST)
    least = replayed(LIGHT_LEFT_LEAST)
    if fitted is not None:
        if least < (1 - REPLAY_ERROR) * step_ns:
            return DispatchLeft(fitted, fitted, fitted, "step")
        return DispatchLeft(LIGHT_LEFT_LEAST, (LIGHT_LEFT_LEAST * fitted) ** 0.5, fitted, "others")
    decides = replayed(1.0) - least >= STEP_DECIDED_BY_HOST * step_ns
    share = LIGHT_LEFT_LEAST if decides and step_ns < least else 1.0
    return DispatchLeft(share, share, share, "step")


def _scaled(made: Plan, share: float) -> Plan:
    """With another time of dispatch: input and user code vary by themselves, and say nothing about the profiler."""
    scaled = pl.when(_is_dispatch()).then(pl.col(USUAL) * share).otherwise(USUAL).cast(pl.Int64)
    return replace(made, host=made.host.with_columns(scaled.alias(USUAL)))


def _is_dispatch() -> pl.Expr:
    pause = (pl.col("cause") == "unexplained") & (pl.col("recorded_ns") < FRAMEWORK_PAUSE_NS)
    return pl.col("cause").is_in(["dispatch", "sync", "device_gap"]) | pause


def _usual_range(trace: Trace) -> DispatchLeft:
    """By what was recorded: each option costs the host time."""
    if trace.info.framework == "jax":
        return _JAX
    return _WITH_STACKS if bool((trace.events["kind"] == "python").any()) else _WITH_OPS


def _around(share: float, source: str) -> DispatchLeft:
    low, high = share * (1 - FITTED_DISPATCH_ERROR), share * (1 + FITTED_DISPATCH_ERROR)
    return DispatchLeft(low, share, min(1.0, high), source)


def _has_workers(trace: Trace) -> bool:
    return bool(input_facts(trace).has_workers)


def _fit_to_host(
    made: Plan, basis: Basis, steps: Steps, column: str, bounds: tuple[float, float], has_workers: bool
) -> float | None:
    """The share of dispatch at which the host's work of a step is as long as its own step without the profiler.

    None where that is not known: a step that waits for the device inside has no length of the host alone. Waiting for batches that
    workers make is not in it: the host's own steps end where it is held up.
    """
    count = max(1, len(steps.host))
    least, most = bounds
    waits = int((made.items["kind"] == native.WAIT).sum())
    dispatch = float(made.host.filter(_is_dispatch())[column].sum()) / count
    own = ~_is_dispatch() & (pl.col("cause") != "input") if has_workers else ~_is_dispatch()
    others = float(made.host.filter(own)[USUAL].sum()) / count
    if not basis.host_ns or waits > count or not dispatch:  # one may be at the end of a step
        return None
    share = (basis.host_ns - others) / dispatch
    return share if least <= share <= most else None


def _fit_to_step(made: Plan, step_ns: float) -> float | None:
    """The share at which the replayed step is as long as the unprofiled one; none where the device decides how long it is."""

    def replayed(share: float) -> float:
        return with_dispatch(made, DispatchLeft(share, share, share, "")).step_ns()

    return _search(replayed, step_ns, DISPATCH_LEFT_LEAST, 1.0)


def _search(replayed: Callable[[float], float], step_ns: float, low: float, high: float) -> float | None:
    """The share between two at which the replayed step has that length, if the share decides about it at all."""
    shortest, longest = replayed(low), replayed(high)
    if longest - shortest < STEP_DECIDED_BY_HOST * step_ns or not shortest < step_ns < longest:
        return None
    for _ in range(DISPATCH_SEARCH_ROUNDS):
        middle = (low + high) / 2
        low, high = (middle, high) if replayed(middle) < step_ns else (low, middle)
    return (low + high) / 2


def _profiler_ns(made: Plan, cost: ProfilerCost, spans: pl.DataFrame) -> pl.Series:
    """What the profiler took of the host's time before each item, on its thread and the main one."""
    added = cost.added_ns(spans["track"], spans["start_ns"], spans["end_ns"])
    also = cost.added_ns(spans["main"], spans["start_ns"], spans["end_ns"])
    elsewhere = (spans["track"] != spans["main"]).cast(pl.Int64)
    none = pl.repeat(0, len(made.items), dtype=pl.Int64, eager=True)
    return none.scatter(spans["gap"], added + also * elsewhere)


def _with_event_costs(made: Plan, lost: pl.Series) -> Plan:
    """The host's time without the cost of the events, taken evenly from all before an item."""
    host = made.host
    total = sums(host["recorded_ns"], made.until)
    scales = {USUAL: 1.0, FAST: EVENT_COST_FAST, SLOW: EVENT_COST_SLOW}
    columns = []
    for name, scale in scales.items():
        left = pl.select((1 - scale * lost / total).clip(LEAST_HOST_LEFT, 1.0).fill_nan(1.0)).to_series()
        columns.append((host["recorded_ns"] * left.gather(host["item"])).cast(pl.Int64).alias(name))
    return replace(made, host=host.with_columns(columns))
