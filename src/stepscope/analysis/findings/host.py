"""Findings about the host: it makes input, compiles, waits, runs Python, or launches too slowly."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from stepscope.analysis.account.host_timeline import within
from stepscope.analysis.findings.advice import advice
from stepscope.analysis.findings.finding import Case, Finding, of_part, timed
from stepscope.analysis.findings.side_effects import FOLLOWING
from stepscope.analysis.host.causes import host_codes
from stepscope.analysis.replay.plan import Plan
from stepscope.native.host.lineage import COMPILE
from stepscope.registers.calibration.kernels import (
    FUSED_ELEMENTWISE,
    FUSED_OPTIMIZER_LAUNCHES,
    FUSED_OPTIMIZER_TRAFFIC,
)
from stepscope.registers.calibration.launches import (
    FIRST_CALL_NS,
    FRAMEWORK_PAUSE_NS,
    GRAPH_GAP_NS,
    GRAPH_LAUNCH_NS,
)
from stepscope.registers.policy.findings import (
    EAGER_CALLS,
    EAGER_DISTINCT_CALLS,
    LAUNCH_BOUND_LEAST,
    LAUNCH_GAIN_AFTER_FIXES,
    LAUNCH_GAIN_LEAST,
    LONGEST_WORTH_NAMING,
    MAJORITY,
    NAMED_STEPS,
    OPTIMIZER_KERNELS,
    UNEXPLAINED_LEAST,
    WARM_UP_STEPS,
    WORTH_A_FINDING,
)
from stepscope.trace.frames import take_largest, take_mean, take_median
from stepscope.trace.scopes import ancestors
from stepscope.units import duration

_TRACES = r"trace_to_jaxpr|create_pjit_jaxpr|infer_params|graph_building|func_graph"
_TRIALS = (*FOLLOWING, "compute", "copy", "python")  # a compiler tries its programs on the device


def input_bound(case: Case) -> Finding | None:
    """The device waits for the next batch."""
    return of_part(
        case,
        "input-bound",
        case.free(pl.col("part") == "input"),
        "The device waits for data",
        lambda: case.plan.with_host(pl.col("cause") == "input"),
        WORTH_A_FINDING,
    )


def recompilation(case: Case) -> Finding | None:
    """Programs are compiled inside the steps; what was launched to find the fastest code goes with it."""
    owned = case.free(pl.col("part") == "compile")

    def changed() -> Plan:
        return _compiled(case)

    tracing = owned.filter(pl.col("name").cast(pl.String).str.contains(_TRACES))
    if int(tracing["ns"].sum()) > MAJORITY * int(owned["ns"].sum()):
        return of_part(
            case, "retracing", owned, "Functions are traced again during the steps", changed, follow=_TRIALS
        )
    return of_part(
        case, "recompilation", owned, "Programs are compiled during the steps", changed, follow=_TRIALS
    )


def _compiled(case: Case) -> Plan:
    """The plan without compilation, and without the work that compiling launched."""
    host = case.plan.host.group_by("item").agg(
        compiling=pl.col("ns").filter(pl.col("cause") == "compile").sum(), all=pl.col("ns").sum()
    )
    trials = host.filter(pl.col("compiling") > MAJORITY * pl.col("all"))["item"].implode()
    spans = case.trace.events.filter(host_codes(case.trace) == COMPILE).select(
        "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")
    )
    spans = spans.sort("start_ns")
    inside = within(case.plan.items["at"], spans["start_ns"], spans["end_ns"])
    chosen = pl.col("item").is_in(trials) | pl.lit(inside)
    meanwhile = case.plan.items["item"].filter(inside).implode()
    # The first call with a new shape also loads and chooses kernels.
    first_call = (pl.col("cause") == "dispatch") & (pl.col("recorded_ns") > FIRST_CALL_NS)
    return (
        case.plan.with_host((pl.col("cause") == "compile") | pl.col("item").is_in(meanwhile) | first_call)
        .with_device(chosen)
        .without_waits(chosen)
    )


def host_python(case: Case) -> Finding | None:
    """User code runs while the device has nothing to do. Without a device, user code is what computes."""
    if case.device is None:
        return None
    return of_part(
        case,
        "host-python",
        case.free(pl.col("part") == "python"),
        "The device waits for Python code",
        lambda: case.plan.with_host(pl.col("cause") == "python"),
        WORTH_A_FINDING,
    )


def device_sync(case: Case) -> Finding | None:
    """The host waits for the device, and the queue runs dry."""
    owned = case.free(pl.col("part") == "sync")
    title = "The host waits for the device inside the step"
    found = of_part(case, "device-sync", owned, title, case.plan.without_waits)
    case.awaits = found is not None
    return found


def in_optimizer(events: pl.DataFrame) -> pl.Series:
    """For every event whether it is inside the optimizer's step."""
    is_optimizer = (events["role"] == "optimizer").fill_null(False)
    return ancestors(events, is_optimizer).is_not_null() | is_optimizer


def optimizer_loop(case: Case) -> Finding | None:
    """The optimizer updates parameters one by one: launches, and many passes over the same memory."""
    inside = in_optimizer(case.trace.events)
    links = case.trace.links.filter(pl.col("why") == "launch")
    mine = links.filter(inside.gather(links["from"]))["to"]
    kernels_per_step = len(mine) / case.step_count
    dispatch = case.free(pl.col("part") == "dispatch")
    dispatch = dispatch.filter(inside.gather(dispatch["named_by"]).fill_null(False))
    ns = case.per_step(dispatch)
    # A fused or foreach optimizer launches a few kernels for all parameters together.
    if kernels_per_step < OPTIMIZER_KERNELS or ns < WORTH_A_FINDING * case.step_ns:
        return None
    compute = case.free(pl.col("part") == "compute", pl.col("named_by").is_in(mine.implode()))
    owned = pl.concat([dispatch, compute])
    host = case.plan.host["event"].is_not_null() & inside.gather(case.plan.host["event"]).fill_null(False)
    case.apart = host
    changed = case.plan.with_host(pl.lit(host), FUSED_OPTIMIZER_LAUNCHES).with_device(
        pl.col("event").is_in(mine.implode()), FUSED_OPTIMIZER_TRAFFIC
    )
    detail = (
        f"{case.of_step(case.per_step(owned))} goes into the optimizer, which launches {kernels_per_step:,.0f} small "
        f"kernels per step."
    )
    evidence = {"kernels_per_step": round(kernels_per_step)}
    return timed(
        case, "optimizer-loop", owned, changed, "The optimizer launches many small kernels", detail, evidence
    )


def launch_bound(case: Case) -> Finding | None:
    """The host cannot launch work as fast as the device does it."""
    owned = case.free(pl.col("part") == "dispatch")
    ns = case.per_step(owned)
    if ns < LAUNCH_BOUND_LEAST * case.step_ns:
        return None
    changed = captured(case)
    if not _launches_too_slowly(case, changed):
        return None
    work = case.trace.events.filter((pl.col("kind") == "kernel") & pl.col("step").is_not_null())
    per_step, typical = len(work) / max(1, len(case.lengths)), take_median(work["dur_ns"])
    detail = f"The framework's own work between ops takes {case.of_step(ns)}."
    if len(work):
        detail = (
            f"The device idles {case.of_step(ns)} while the host launches {per_step:,.0f} kernels, half of them "
            f"shorter than {duration(typical)}."
        )
    evidence = {"kernels_per_step": round(per_step), "median_kernel_ns": typical}
    if _is_eager(case):
        code, title, changed = (
            "eager-execution",
            "The step runs op by op instead of compiled",
            _compiled_step(case),
        )
    else:
        code = "launch-bound"
        title = (
            "The host launches work too slowly"
            if case.has_device
            else "The framework takes long between the ops"
        )
    return timed(case, code, owned, changed, title, detail, evidence)


def _launches_too_slowly(case: Case, changed: Plan) -> bool:
    """Whether faster launches would help: without the profiler's share, and what other findings mend already.

    A queue that is emptied again and again by waits never fills, and launching looks slow until they are gone; a slow
    optimizer could be hidden by launching the rest sooner, but it is better mended itself.
    """
    known = case.plan.without_waits() if case.awaits else case.plan
    after = changed.without_waits() if case.awaits else changed
    if case.apart is not None:
        known, after = (one.with_host(pl.lit(case.apart), FUSED_OPTIMIZER_LAUNCHES) for one in (known, after))
    if known is case.plan:
        return case.played_ns - changed.step_ns() >= LAUNCH_GAIN_LEAST * case.played_ns
    before = known.step_ns()
    return before - after.step_ns() >= LAUNCH_GAIN_AFTER_FIXES * before


def captured(case: Case) -> Plan:
    """The step launched as one graph: no framework between the kernels, which follow one another closely."""
    pause = (pl.col("cause") == "unexplained") & (pl.col("recorded_ns") < FRAMEWORK_PAUSE_NS)
    mine = pl.lit(True) if case.apart is None else ~pl.lit(case.apart)
    plan = case.plan.with_host(((pl.col("cause") == "dispatch") | pause) & mine)
    closer = plan.items.with_columns(
        device_ns=pl.when(pl.col("device_ns") > 0).then(pl.col("device_ns") + GRAPH_GAP_NS).otherwise(0),
        added_ns=pl.when(pl.col("last") == 1).then(GRAPH_LAUNCH_NS).otherwise(0).cast(pl.Int64),
    )
    return replace(plan, items=closer)


def _compiled_step(case: Case) -> Plan:
    """The step as one compiled program: launched at once, with its elementwise kernels fused."""
    simple = case.kernels.filter(~pl.col("eligible").fill_null(False))["event"].implode()
    glue = pl.col("cause").is_in(["python", "compile", "sync"])
    fused = captured(case).with_host(glue).with_device(pl.col("event").is_in(simple), FUSED_ELEMENTWISE)
    return fused.without_waits()


def _is_eager(case: Case) -> bool:
    """JAX and TensorFlow compile whole steps; many programs or ops in one step say that this one does not."""
    if case.trace.info.framework not in ("jax", "tensorflow"):
        return False
    events = case.trace.events.filter(pl.col("step").is_not_null())
    names = events["name"].cast(pl.String)
    calls = names.str.contains(r"^PjitFunction\(|^Eager(Local|Remote)?Execute")
    distinct = names.filter(calls).n_unique()
    return int(calls.sum()) / max(1, len(case.lengths)) >= EAGER_CALLS and distinct >= EAGER_DISTINCT_CALLS


def step_outliers(case: Case) -> Finding | None:
    """Steps that take much longer than the others."""
    slow = case.outliers
    median = take_median(case.lengths["ns"])
    mean = take_mean(case.lengths["ns"])
    extra = int((slow["ns"] - int(median)).sum() / max(1, len(case.lengths))) if len(slow) else 0
    if not mean or extra < WORTH_A_FINDING * mean:
        return None
    numbers = slow["step"].to_list()
    inside = case.all_slices.filter(
        pl.col("step").is_in(slow["step"].implode()), ~pl.col("part").is_in(["compute"])
    )
    names = case.top_names(inside)
    mostly = f", mostly in {names[0]['name']}" if names and names[0]["name"] else ""
    told = ", ".join(map(str, numbers[:NAMED_STEPS])) + ("…" if len(numbers) > NAMED_STEPS else "")
    many = len(numbers) > 1
    average, longest = take_mean(slow["ns"]), float(take_largest(slow["ns"]))
    at_most = f" and {duration(longest)} at most" if many and longest > LONGEST_WORTH_NAMING * average else ""
    detail = (
        f"Step{'s' if many else ''} {told} took {duration(average)}{' on average' if many else ''}{at_most}"
        f" where {duration(median)} is usual{mostly}."
    )
    found = Finding(
        code="step-outliers",
        class_="time",
        title="Some steps are much slower than the others",
        detail=detail,
        fix=advice("step-outliers", case.trace.info.framework),
        evidence={"steps": numbers, "names": names, "median_ns": int(median)},
        share=round(extra / mean, 4),
        saves_ns_per_step=extra,
        speedup=round(mean / (mean - extra), 3),
        speedup_max=round(mean / (mean - extra), 3),
    )
    return _as_warm_up(found, case) if _are_first(case) else found


def _are_first(case: Case) -> bool:
    """Whether the slow steps are the few that the recording begins with, of many."""
    first = case.lengths.sort("step")["step"].head(len(case.outliers))
    return len(first) <= WARM_UP_STEPS and set(first) == set(case.outliers["step"])


def _as_warm_up(found: Finding, case: Case) -> Finding:
    """They are paid once in a job: nothing to save in the others."""
    return replace(
        found,
        code="warm-up",
        class_="advice",
        title="The first steps of the recording are warm-up",
        fix=advice("warm-up", case.trace.info.framework),
        saves_ns_per_step=0,
        speedup=1.0,
        speedup_max=1.0,
    )


def idle_unexplained(case: Case) -> Finding | None:
    """Idle time that no event explains."""
    owned = case.free(pl.col("part") == "unexplained")
    ns = case.per_step(owned)
    if ns < UNEXPLAINED_LEAST * case.step_ns:
        return None
    detail = f"The device idles {case.of_step(ns)} and nothing was recorded on the host meanwhile."
    changed = case.plan.with_host(
        (pl.col("cause") == "unexplained") & (pl.col("recorded_ns") >= FRAMEWORK_PAUSE_NS)
    )
    title = "The device idles, and the profile does not say why"
    if case.device is None:
        title, detail = (text.replace("The device idles", "Nothing runs") for text in (title, detail))
    found = timed(case, "idle-unexplained", owned, changed, title, detail)
    # What it is must be known before anyone can promise that it goes away.
    return replace(found, class_="advice")
