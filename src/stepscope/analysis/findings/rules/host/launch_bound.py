"""The host cannot launch work as fast as the device does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.loops.alike_turns import begins_turn, kernels_of_alike_turns
from stepscope.analysis.findings.profiler_doubt import withdraw, without_doubt
from stepscope.analysis.findings.programs.largest_program import call_of_largest, in_largest_program
from stepscope.analysis.findings.programs.wrappers import advise_on_wrapper
from stepscope.analysis.findings.promise import left_by_replay, timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.host import optimizer_loop
from stepscope.analysis.findings.rules.host.debug_setting import RULE as DEBUG_SETTING
from stepscope.analysis.findings.rules.host.device_sync import ACT_TOGETHER
from stepscope.analysis.findings.rules.host.device_sync import RULE as DEVICE_SYNC
from stepscope.analysis.findings.rules.host.distribution_checks import RULE as DISTRIBUTION_CHECKS
from stepscope.analysis.findings.rules.steps.warm_up import is_cold
from stepscope.analysis.findings.transfers.staging import is_staging
from stepscope.analysis.findings.transfers.waits import acts_on_values
from stepscope.analysis.host.causes import is_wait
from stepscope.analysis.host.program_calls import PROGRAM_CALL, PROGRAM_CALLS
from stepscope.analysis.replay.plan import Plan
from stepscope.analysis.serving.workload import INFERENCE
from stepscope.lazy import dataclass
from stepscope.registers.calibration.kernels import (
    FUSED_OPTIMIZER_LAUNCHES,
)
from stepscope.registers.calibration.launches import (
    FRAMEWORK_PAUSE_NS,
    GRAPH_GAP_BEST_NS,
    GRAPH_GAP_WORST_NS,
    GRAPH_LAUNCH_NS,
    LEAST_WAIT_CALL_NS,
    PROGRAM_GAP_BEST_NS,
    PROGRAM_GAP_WORST_NS,
)
from stepscope.registers.policy.compute import FEWEST_PIECES
from stepscope.registers.policy.findings import (
    EAGER_CALLS,
    EAGER_DISTINCT_CALLS,
    LAUNCH_BOUND_LEAST,
    LAUNCH_GAIN_AFTER_FIXES,
    LAUNCH_GAIN_LEAST,
    LAUNCHES_LEAST,
    LONGEST_LAUNCH_NS,
    ONE_PROGRAM_MOST,
    SURE_GAIN,
    UNSURE_LAUNCHES,
    WAITS_BEFORE_LAUNCHES,
)
from stepscope.registers.policy.ranking import LAUNCHES_BESIDE_CAUSE
from stepscope.trace.frames import take_median
from stepscope.trace.graphs import graph_work
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors
from stepscope.units import duration, times


def find(case: Case) -> Finding | None:
    """The step launched as one graph would be faster; ops that should be compiled are a finding of their own."""
    launches = slow_launches(case)
    if launches is None or is_eager(case) or not has_launches(case) or has_data_dependent_shapes(case):
        return None
    if not launches_enough(case) or is_cold(case):
        return None
    if _is_one_program(case):
        return _advise_more_in_a_call(case, launches)
    waits = waits_per_step(case) if case.has_device else 0
    first = _first_stage(case, waits)
    if first is not None:
        _say_second_stage(case, launches, first)
        return None
    if case.device is not None and case.trace.info.framework == "jax" and not _repeats_largest(case):
        return _find_beside_program(case, launches)
    title = RULE.title_for(case.has_device)
    graph = launches.changed
    changed = Change(_launched_less(case), graph.largest) if case.has_device else graph
    found = timed(case, RULE, launches.owned, changed, launches.detail, launches.evidence, title=title)
    if OUTSIDE_GRAPHS in found.evidence and not case.runs_programs:
        found.fix = _REST_OF_INFERENCE if case.workload == INFERENCE else _REST
    turn = kernels_of_alike_turns(case.plan.items) if waits >= WAITS_BEFORE_LAUNCHES else None
    if turn is not None and not case.runs_programs:
        found.detail += _TURNS.format(waits, turn)
        found.evidence[KERNELS_OF_TURN] = turn
        found.fix = _GRAPH_OF_TOKEN if case.workload == INFERENCE else _GRAPH_OF_TURN
    elif waits >= WAITS_BEFORE_LAUNCHES:
        case.changes.pop(RULE.code, None)
        withdraw(found)
        found.detail += _WAITS.format(waits)
        if not case.runs_programs and acts_on_values(case):
            found.fix = f"{ACT_TOGETHER} {found.fix}"
        return found
    return behind_causes(case.earlier, without_doubt(case, found, graph.smallest))


def _repeats_largest(case: Case) -> bool:
    """Whether a step of JAX calls its largest program again and again: those calls can become one."""
    return count_calls(case).get(call_of_largest(case) or "", 0.0) >= FEWEST_PIECES


def _find_beside_program(case: Case, launches: Launches) -> Finding | None:
    """What a step of JAX launches beside its largest program, which is one graph already: advice, since its own call stays as it is.

    What such programs cost inside of the largest depends on what they are for: no trial has measured that yet.
    """
    calls = count_calls(case)
    if sum(calls.values()) < FEWEST_PIECES:
        return None
    kept = in_largest_program(case)
    owned = launches.owned.filter(~kept.gather(launches.owned["named_by"]).fill_null(False))
    ns = case.per_step(owned)
    if ns < LAUNCH_BOUND_LEAST * case.step_ns:
        return None
    beside = _launching(case) & ~pl.lit(kept.gather(case.plan.host["event"]).fill_null(False))
    change = Change(case.plan.with_host(beside, 1 / FEWEST_PIECES), case.plan.with_host(beside))
    detail = f"A step calls {sum(calls.values()):,.0f} programs, and takes {case.of_step(ns)} to launch those beside the largest."
    evidence = {**launches.evidence, PROGRAMS: round(sum(calls.values()))}
    found = timed(case, RULE, owned, change, detail, evidence)
    found.fix = _INTO_PROGRAM
    if found.speedup.mid < SURE_GAIN:
        return None
    found.detail += f" Inside of it, that would be a speed-up of at most {times(found.speedup.high)}×; how much of it comes true, the profile does not show."
    case.changes.pop(RULE.code, None)
    withdraw(found)
    return found


def _is_one_program(case: Case) -> bool:
    """Whether a step of JAX calls one compiled function, and no more of it can be compiled."""
    return case.trace.info.framework == "jax" and 0 < sum(count_calls(case).values()) <= ONE_PROGRAM_MOST


def _advise_more_in_a_call(case: Case, launches: Launches) -> Finding:
    """Whether a step can be larger, or run together with the next ones, is up to the job: nothing is promised."""
    wrapped = advise_on_wrapper(case, launches.owned["named_by"], launches.owned["ns"])
    found = RULE.finding(
        detail=f"{launches.detail} The step is one program already.",
        fix=wrapped or (_MORE_REQUESTS if case.workload == INFERENCE else _MORE_IN_A_CALL),
        title=RULE.title_for(case.has_device),
        evidence={"names": case.top_names(launches.owned), **launches.evidence, ONE_PROGRAM: True},
        share=round(min(1.0, case.per_step(launches.owned) / case.step_ns), 4),
    )
    found.class_ = "advice"
    case.claim(launches.owned)
    return found


def behind_causes(earlier: Sequence[Finding], found: Finding | None) -> Finding | None:
    """Launches that need not be there at all are better left out than put into a graph: that comes first, if it gains."""
    if found is not None and any(each.code in _CAUSES and _gains(each) for each in earlier):
        found.certainty *= LAUNCHES_BESIDE_CAUSE
    return found


def _gains(cause: Finding) -> bool:
    """Casts may bring nothing wherever the host decides, since they are few of its launches: there, the middle says it."""
    return cause.speedup.low > 1 or (cause.code == _CASTS and cause.speedup.mid >= SURE_GAIN)


_CASTS = "weight-casts"
_CAUSES = (
    "debug-setting",
    "optimizer-loop",
    _CASTS,
    "recomputed-weights",
    "sequential-scan",
    "grad-in-inference",
    "dropout-in-inference",
)
_WAITS = " The host waits for the device {:.0f} times in a step, which no graph can hold as a whole, so nothing is promised."
_TURNS = " The host waits for the device {:.0f} times in a step, with about {:,.0f} kernels between two waits: a graph can hold those, and is launched once for each turn."
KERNELS_OF_TURN = "kernels_per_turn"  # in the evidence
_GRAPH_OF_TOKEN = "Launch the model as one graph for each token or turn of the loop: a cache of a fixed size (cache_implementation='static' in transformers) and torch.compile(model.forward, mode='reduce-overhead', fullgraph=True), or an engine that has CUDA graphs (vLLM, TensorRT-LLM)."
_GRAPH_OF_TURN = "Launch each turn of the loop as one graph: torch.compile(…, mode='reduce-overhead') around what a turn runs between two waits, or torch.cuda.make_graphed_callables."
_WRAPPER = r"^EagerExecute$"
_CALLS = rf"{PROGRAM_CALLS}|^Eager(Local|Remote)?Execute"
_DATA_DEPENDENT = r"^aten::(nonzero|masked_select|_?unique\w*)$"
_REPEATS = "aten::repeat_interleave"
_BY_A_NUMBER = r"^\[\[[\d, ]*\](, *\[\]){3}\]$"  # what is repeated is the only tensor
PROGRAMS = "programs_per_step"  # in the evidence, of JAX
ONE_PROGRAM = "one_program"  # in the evidence
_UNROLL = "Loops inside of the program launch less with unroll= in jax.lax.scan."
_MORE_IN_A_CALL = f"Compute more in each call of the program: a larger batch, or several steps at once, with jax.lax.scan over a stack of batches that are on the device. {_UNROLL}"
_MORE_REQUESTS = f"Compute more requests in each call of the program. {_UNROLL}"
OUTSIDE_GRAPHS = "kernels_outside_graphs_per_step"  # in the evidence
_INTO_PROGRAM = "Put what runs beside the largest program into it: index, cast and reduce arrays inside of the function under jax.jit (pass it the array and the index), since each op of JAX outside of one is a program of its own."
_REST = "Bring the rest of the step into the graphs that it has already: what runs between the compiled regions (casts, the loss, gradients that are added up, the optimizer), with torch.compile around the whole step (fullgraph=True shows what breaks a graph) and a fused optimizer, or one torch.cuda.graph of forward, backward and optimizer."
_REST_OF_INFERENCE = "Bring the rest of the step into the graphs that it has already: sampling, casts and copies between them (fullgraph=True shows what breaks a graph); or compute more requests in one batch."


def _first_stage(case: Case, waits: float) -> Finding | None:
    """What has to go before a graph can hold the step: checks for errors, each with a wait, or waits again and again."""
    known = {found.code: found for found in case.earlier}
    checks = known.get(DEBUG_SETTING.code)
    if checks is not None:
        return checks
    if waits < WAITS_BEFORE_LAUNCHES:
        return None
    return known.get(DEVICE_SYNC.code) or known.get(DISTRIBUTION_CHECKS.code)


def _say_second_stage(case: Case, launches: Launches, first: Finding) -> None:
    """The graph comes after what keeps the step from being one, and is said with that."""
    change = case.changes.get(first.code)
    if change is None:
        return
    both = case.gain(left_by_replay(case, change.combined(launches.changed))).speedup
    first.evidence = {**first.evidence, "then": RULE.code, "then_speedup": round(both.high, 2)}
    first.detail += f" Launched as one graph after that, the speed-up would be up to {both.high:.1f}×."


@dataclass(frozen=True)
class Launches:
    """Launching that holds the device up, and the plan in which it does not."""

    owned: pl.DataFrame
    changed: Change
    detail: str
    evidence: dict[str, Any]


def slow_launches(case: Case) -> Launches | None:
    """What launching costs, if faster launches would help."""
    owned = case.free(pl.col("part") == "dispatch", ~is_staging(case))
    ns = case.per_step(owned)
    if ns < LAUNCH_BOUND_LEAST * case.step_ns:
        return None
    changed = captured(case)
    if not _launches_too_slowly(case, changed):
        return None
    detail, evidence = _described(case, ns)
    return Launches(owned, changed, detail, evidence)


def _described(case: Case, ns: int) -> tuple[str, dict[str, Any]]:
    """What the host launches meanwhile, in words and as evidence; what is in graphs already needs no launch of its own."""
    work, graphed = _kernels(case)
    steps = max(1, len(case.lengths))
    alone = work.filter(~pl.col("id").is_in(graphed["event"].implode()))
    typical = take_median(alone["dur_ns"])
    evidence = {"kernels_per_step": round(len(work) / steps), "median_kernel_ns": typical}
    if work.is_empty():
        return f"The framework's own work between ops takes {case.of_step(ns)}.", evidence
    what = f"{len(alone) / steps:,.0f} kernels"
    if len(alone) < len(work):
        evidence |= {OUTSIDE_GRAPHS: round(len(alone) / steps)}
        what = f"{len(alone) / steps:,.0f} of {len(work) / steps:,.0f} kernels one by one, outside of the graphs that the step has already"
    half = f", half of them shorter than {duration(typical)}" if len(alone) else ""
    return f"The device idles {case.of_step(ns)} while the host launches {what}{half}.", evidence


def _kernels(case: Case) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The kernels of the steps, and the launches of graphs with their work."""
    work = case.trace.events.filter((pl.col("kind") == "kernel") & pl.col("step").is_not_null())
    return work, graph_work(case.trace)


def launches_enough(case: Case) -> bool:
    """Whether an eager step launches so much that launching less could make a difference: graphs count once."""
    if case.device is None or case.runs_programs:
        return True
    work, graphed = _kernels(case)
    inside = work["id"].is_in(graphed["event"].implode())
    graphs = graphed.filter(pl.col("event").is_in(work["id"].implode()))["launch"].n_unique()
    return int((~inside).sum()) + graphs >= LAUNCHES_LEAST * len(case.lengths)


def has_launches(case: Case) -> bool:
    """Whether the host's time is launching: a longer interval between two launches is something else."""
    if case.device is None:
        return True
    launches = int((case.plan.items["device_ns"] > 0).sum())
    launching = (pl.col("cause") == "dispatch") & ~is_staging(case)
    dispatch = int(case.plan.host.filter(launching)["ns"].sum())
    return dispatch < LONGEST_LAUNCH_NS * launches


def has_data_dependent_shapes(case: Case) -> bool:
    """Ops whose result has as many rows as the data say: neither a graph nor a program can hold the step."""
    events = case.trace.events
    inside = events.filter(pl.col("step").is_not_null(), pl.col("kind") == "op")
    names = inside["name"].unique().cast(pl.String)
    if names.str.contains(_DATA_DEPENDENT).any():
        return True
    return (names == _REPEATS).any() and _repeats_by_data(case, inside)


def _repeats_by_data(case: Case, inside: pl.DataFrame) -> bool:
    """Whether a tensor says how often; heads of keys are repeated by a number, which any graph can hold."""
    repeats = inside.filter(pl.col("name").cast(pl.String) == _REPEATS)["id"]
    shapes = case.trace.ops.filter(pl.col("event").is_in(repeats.implode()))["shapes"].cast(pl.String)
    return len(shapes) < len(repeats) or not shapes.str.contains(_BY_A_NUMBER).fill_null(False).all()


def waits_per_step(case: Case) -> float:
    """How often the host waits for the device inside a step, for longer than a call takes."""
    waits = case.trace.events.filter(is_wait(case.trace), pl.col("step").is_not_null())
    return int((waits["dur_ns"] >= LEAST_WAIT_CALL_NS).sum()) / max(1, len(case.lengths))


def _launches_too_slowly(case: Case, change: Change) -> bool:
    """Whether faster launches would help: without the profiler's share, and what other findings fix already.

    A queue that is emptied again and again by waits never fills, and launching looks slow until they are gone; a slow
    optimizer could be hidden by launching the rest sooner, but it is better fixed itself.
    """
    known, after = case.plan, change.largest
    if case.has_found(DEVICE_SYNC.code):
        known, after = known.without_waits(), after.without_waits()
    apart = _found_optimizer(case)
    if apart is not None:
        known, after = (one.with_host(pl.lit(apart), FUSED_OPTIMIZER_LAUNCHES) for one in (known, after))
    if known is case.plan:
        return case.played_ns - after.step_ns() >= LAUNCH_GAIN_LEAST * case.played_ns
    before = known.step_ns()
    return before - after.step_ns() >= LAUNCH_GAIN_AFTER_FIXES * before


def _found_optimizer(case: Case) -> pl.Series | None:
    """The host time of the plan that a finding about the optimizer owns."""
    return optimizer_loop.host_time(case) if case.has_found(optimizer_loop.RULE.code) else None


def captured(case: Case) -> Change:
    """The step launched as one graph: no framework between the kernels, which follow one another closely."""
    gaps = (
        (PROGRAM_GAP_WORST_NS, PROGRAM_GAP_BEST_NS)
        if case.runs_programs
        else (GRAPH_GAP_WORST_NS, GRAPH_GAP_BEST_NS)
    )
    return Change(*(_captured(case, gap) for gap in gaps))


def _launched_less(case: Case) -> Plan:
    """Half of the launches: the least that launching less can mean is that two pieces become one."""
    return case.plan.with_host(_launching(case), 1 / FEWEST_PIECES)


def _launching(case: Case) -> pl.Expr:
    """The framework's part of the host's work, but for that of an optimizer with a finding of its own."""
    pause = (pl.col("cause") == "unexplained") & (pl.col("recorded_ns") < FRAMEWORK_PAUSE_NS)
    apart = _found_optimizer(case)
    mine = pl.lit(True) if apart is None else ~pl.lit(apart)
    return ((pl.col("cause") == "dispatch") | pause) & mine


def _captured(case: Case, gap_ns: int) -> Plan:
    plan = case.plan.with_host(_launching(case))
    closer = plan.items.with_columns(
        gap_ns=pl.lit(gap_ns, pl.Int64),
        added_ns=pl.when(_launches_graph(case)).then(GRAPH_LAUNCH_NS).otherwise(0).cast(pl.Int64),
    )
    return replace(plan, items=closer)


def _launches_graph(case: Case) -> pl.Expr:
    """Where a graph is launched: once in each step, or behind each wait if the turns between these are alike."""
    if case.runs_programs or kernels_of_alike_turns(case.plan.items) is None:
        return pl.col("last") == 1
    return begins_turn()


def is_eager(case: Case) -> bool:
    """JAX and TensorFlow compile whole steps; many programs or ops in one step say that this one does not."""
    if not case.runs_programs:
        return False
    calls = count_calls(case)
    return sum(calls.values()) >= EAGER_CALLS and (
        len(calls) >= EAGER_DISTINCT_CALLS or loops_over_calls(calls)
    )


def count_calls(case: Case) -> dict[str, float]:
    """How often a step calls each program, or op of the eager runtime.

    Both frameworks record a call twice, one event around the other: JAX by the same name, TensorFlow without a name around that of
    the op. Calls inside of a call, as while a function is traced, are its own.
    """
    events = case.trace.events
    calls = is_named(events, _CALLS)
    around = ancestors(events, calls).filter(calls).drop_nulls().unique()
    calls &= ~(is_named(events, _WRAPPER) & events["id"].is_in(around.implode()))
    outer = calls & ancestors(events, calls).is_null() & events["step"].is_not_null()
    counts = events["name"].filter(outer).value_counts()
    return {str(name): count / max(1, len(case.lengths)) for name, count in counts.iter_rows()}


def loops_over_calls(calls: Mapping[str, float]) -> bool:
    """Whether a step calls one program of JAX again and again."""
    return any(name.startswith(PROGRAM_CALL) and often >= EAGER_CALLS for name, often in calls.items())


RULE: Rule[Case] = Rule(
    code="launch-bound",
    title="The host launches work too slowly",
    title_without_device="The framework takes long between the ops",
    turn=150,
    page="device",
    owns="`dispatch`",
    change="half of the launches disappear, as when two passes become one; at best, the step is launched as one graph: 0.3 to 1 µs between kernels, 2 to 4 µs between those of XLA programs. If the unprofiled step is unknown, as `host-python`. Nothing if an eager step launches fewer than five kernels and graphs, or a step of JAX one program; a few programs of JAX get advice, as do steps in which the host waits for the device ten times or more, unless nearly all kernels are in turns between two waits that launch 50 or more, and about as many: then each turn is a graph",
    certainty=UNSURE_LAUNCHES,
    fix={
        "pytorch": "Launch less, bigger work: torch.compile(model, mode='reduce-overhead') (CUDA graphs), or a larger batch. Fused optimizers: fused=True.",
        "tensorflow": "Wrap the whole step in tf.function(jit_compile=True).",
        "jax": "Put the whole step under one jax.jit; loop with jax.lax.scan instead of Python.",
        ANY: "Launch less, bigger work: compile or capture the step, or raise the batch size.",
    },
    fix_without_device={
        "pytorch": "Do more in each op: torch.compile(model), a larger batch, and foreach=True or fused=True in the optimizer.",
        ANY: "Do more in each op: compile the step, or raise the batch size.",
    },
    find=find,
)
