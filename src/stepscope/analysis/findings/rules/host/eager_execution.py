"""The step runs op by op instead of compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.programs.eager_programs import left_of_programs
from stepscope.analysis.findings.programs.eager_updates import eager_updates
from stepscope.analysis.findings.programs.host_programs import program_of
from stepscope.analysis.findings.programs.own_functions import computing, has_few_between, own_functions
from stepscope.analysis.findings.programs.program_runs import (
    ProgramRuns,
    are_calls,
    called_name,
    program_runs,
)
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.host.launch_bound import (
    captured,
    count_calls,
    is_eager,
    slow_launches,
)
from stepscope.analysis.findings.spread import OF_PYTHON, OF_TURNS, Spread
from stepscope.analysis.host.causes import host_codes
from stepscope.analysis.host.eager_calls import CALL, FUNCTION_CALL
from stepscope.analysis.host.functions import where
from stepscope.analysis.host.place import Place
from stepscope.analysis.host.program_calls import PROGRAM_CALLS, called_function, name_call
from stepscope.analysis.kernels.calls import MATRIX_OPS
from stepscope.analysis.replay.plan import SPEEDS, USUAL, Plan
from stepscope.native.host.lineage import FRAMEWORK
from stepscope.registers.calibration.kernels import (
    FUSED_ELEMENTWISE_LEAST,
    FUSED_ELEMENTWISE_MOST,
)
from stepscope.registers.calibration.launches import (
    FUSED_GAP_BEST_NS,
    FUSED_GAP_WORST_NS,
    PROGRAM_GAP_BEST_NS,
    PROGRAM_GAP_WORST_NS,
    TURN_LAUNCHES_LEAST,
    TURN_LAUNCHES_MOST,
    WHILE_TURN_BEST_NS,
    WHILE_TURN_WORST_NS,
)
from stepscope.registers.policy.findings import (
    ACCOUNT_SAVES,
    EAGER_CALLS,
    EAGER_DISTINCT_CALLS,
    KERNELS_OF_EAGER_CALL,
    TOP_NAMES,
    WORTH_SHOWING,
)
from stepscope.trace.frames import take
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors, sums_below

_LOOP_TITLE = "A Python loop calls compiled programs one by one"
_LOOP_FIX = "Put the loop itself under jax.jit: jax.lax.scan or jax.lax.fori_loop instead of Python, with what changes from call to call as its carry."
_UNTIL_FIX = " If a value decides when it ends, jax.lax.while_loop tests it on the device."
_GLUE = ["python", "compile", "sync"]
_LAUNCHES_OF_RUN = r"^(\[\d+\] )?GpuExecutable::ExecuteThunks"
_UPDATES_GRAPH = r"^command_buffer::update"
_EXECUTOR = r"^Executor"  # of functions that are compiled already


def find(case: Case) -> Finding | None:
    """Slow launches of JAX or TensorFlow, where the step is many programs or ops."""
    if not is_eager(case):
        return None
    launches = slow_launches(case)
    if launches is None:
        return None
    owned = _without_updates(case, pl.concat([launches.owned, by_framework(case)]))
    calls, runs = count_calls(case), program_runs(case)
    body = _body(case, calls, runs)
    looped = body is not None
    left = _left_by_account(case, owned, calls)
    evidence = launches.evidence | {"calls_per_step": round(sum(calls.values()))}
    change, spread = _compile(case, runs, is_loop=looped)
    found = timed(
        case,
        RULE,
        owned,
        change,
        launches.detail + ("" if body is None else _describe_loop(case, body, calls, runs)),
        evidence,
        accounted=left,
        title=_LOOP_TITLE if looped else "",
        spread=spread,
    )
    if body is not None:
        found.where = _callers(case, body)
        found.fix = _LOOP_FIX + (_UNTIL_FIX if runs is not None and runs.is_read_between(body) else "")
    return found


def _without_updates(case: Case, owned: pl.DataFrame) -> pl.DataFrame:
    """Without the calls that go with the copies they make, which are the larger part of it: those are left to `device-copies`."""
    updates = eager_updates(case)
    if updates is None:
        return owned
    return owned.filter(~pl.col("slice").is_in(updates.slices(case)["slice"].implode()))


def _compile(case: Case, runs: ProgramRuns | None, *, is_loop: bool) -> tuple[Change, Spread | None]:
    """What compiling the step changes, and how far gains spread if that is unusual."""
    if runs is None:
        return _compiled_step(case, is_fused=not is_loop), None
    own = _own_python(case)
    launching = _launching(case, runs, own)
    return _joined_programs(case, runs, own, launching), _choose_spread(case, runs, own, launching)


def _body(case: Case, calls: Mapping[str, float], runs: ProgramRuns | None) -> str | None:
    """The program that Python calls again and again, instead of single ops."""
    if runs is not None:
        return runs.body if runs.loop is not None or not _own_python(case).any() else None
    body = _body_by_calls(case, calls)
    if body is not None:
        return body
    if len(calls) >= EAGER_DISTINCT_CALLS or not _are_compiled(case, calls):
        return None
    often = _count_programs(calls)
    size = computing(case.trace, list(often))
    return max(often, key=lambda name: (often[name], size.get(name, 0)))


def _body_by_calls(case: Case, calls: Mapping[str, float]) -> str | None:
    """The same where no device runs programs that the recording names."""
    often = _count_programs(calls)
    own = own_functions(case.trace, [name for name, count in often.items() if count >= EAGER_CALLS])
    if not own:
        return None
    most = max(sorted(own), key=lambda name: often[name])
    return most if has_few_between(sum(often.values()), sum(often[name] for name in own)) else None


def _count_programs(calls: Mapping[str, float]) -> dict[str, float]:
    return {program_of(called_function(name)): count for name, count in calls.items()}


def _describe_loop(case: Case, body: str, calls: Mapping[str, float], runs: ProgramRuns | None) -> str:
    name = called_name(case.trace.events, body)
    turns = calls.get(name_call(name), 0.0) if runs is None else runs.runs_in_a_step(body)
    is_read = runs is not None and runs.is_read_between(body)
    read = ", and the host reads a result after nearly every call" if is_read else ""
    return f" A step calls {name} {turns:,.0f} times{read}."


def _callers(case: Case, body: str) -> list[Place]:
    """The functions with the loop: what calls the program, of the job if that is known."""
    events = case.trace.events
    calls = are_calls(events, [body]) & events["step"].is_not_null()
    around = ancestors(events, events["kind"] == "python").filter(calls)
    return where(case.trace, around.drop_nulls().unique(maintain_order=True))[:TOP_NAMES]


def _are_compiled(case: Case, calls: Mapping[str, float]) -> bool:
    """Whether the calls are of programs with several kernels each, which a compiler has fused already; without a device, they may be."""
    if not case.has_device:
        return True
    kernels = len(case.kernels.drop_nulls("step")) / max(1, len(case.lengths))
    return kernels > KERNELS_OF_EAGER_CALL * sum(calls.values())


def _left_by_account(case: Case, owned: pl.DataFrame, calls: Mapping[str, float]) -> Interval | None:
    """What a compiled program or traced function leaves on a CPU: no dispatch of single ops, and less of the ops other than products.

    It simplifies its graph, runs ops side by side, and writes into buffers that are free: none of this can an op by itself.
    """
    if case.trace.info.framework == "jax":
        looped = [program_of(called_function(name)) for name, often in calls.items() if often >= EAGER_CALLS]
        return None if case.has_device else left_of_programs(case, owned, looped)
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
    glue = pl.col("cause").is_in(_GLUE)
    launched = captured(case)
    return Change(
        launched.smallest.with_host(glue)
        .with_device(simple, FUSED_ELEMENTWISE_MOST if is_fused else 1.0)
        .without_waits(),
        launched.largest.with_host(glue).with_device(simple, FUSED_ELEMENTWISE_LEAST).without_waits(),
    )


def _joined_programs(case: Case, runs: ProgramRuns, own: pl.Series, launching: Mapping[str, float]) -> Change:
    """The same where the programs are known: functions that are compiled already stay as they are, and the ops between them are fused."""
    launched = captured(case)
    turn_least, turn_most = _turn_ns(runs)
    smallest = _join_runs(
        case,
        runs,
        launched.smallest,
        FUSED_ELEMENTWISE_MOST,
        gaps=(PROGRAM_GAP_WORST_NS, FUSED_GAP_WORST_NS),
        turn_ns=turn_most,
    )
    largest = _join_runs(
        case,
        runs,
        launched.largest,
        FUSED_ELEMENTWISE_LEAST,
        gaps=(PROGRAM_GAP_BEST_NS, FUSED_GAP_BEST_NS),
        turn_ns=turn_least,
    )
    joined = runs.calls_of_compiled(case.trace.events, runs.repeated)
    calls = joined
    if runs.loop is None and own.any():  # between the calls, so that they may stay apart
        calls = runs.calls_of_compiled(case.trace.events, ())
        smallest = _with_waits_of(smallest, case.plan)
    kept = take(calls.is_not_null(), case.plan.host["event"]).fill_null(False) | own
    smallest = _with_host_of(smallest, case.plan, kept)
    smallest = _with_launches(smallest, runs, launching, TURN_LAUNCHES_MOST)
    largest = _with_launches(largest, runs, launching, TURN_LAUNCHES_LEAST)
    return Change(smallest, _with_host_of(largest, case.plan, _is_in_longest(case, joined)))


def _launching(case: Case, runs: ProgramRuns, own: pl.Series) -> dict[str, float]:
    """How long XLA takes to launch what functions run that are called again and again, by program: a compiled loop does so in each turn.

    Arguments, results and buffers are those of the whole loop, and so is what a graph needs to find them. Where the host reads a
    result in each turn, what a turn takes beside its body is known, and has its launches; calls that Python code keeps apart stay.
    """
    if runs.body is None or runs.is_read_each_turn or (runs.loop is None and own.any()):
        return {}
    events = case.trace.events
    updating = pl.select(pl.when(is_named(events, _UPDATES_GRAPH)).then(events["dur_ns"]).otherwise(0))
    launching = events["dur_ns"] - sums_below(events, updating.to_series())
    chosen = is_named(events, _LAUNCHES_OF_RUN) & events["step"].is_not_null()
    left, found = _left_without_profiler(case, runs), {}
    for program in runs.repeated:
        inside = ancestors(events, are_calls(events, [program])).is_not_null()
        ns = int(launching.filter(chosen & inside).sum())
        found[program] = left * ns / max(1, len(case.lengths)) / runs.runs_in_a_step(program)
    return found


def _left_without_profiler(case: Case, runs: ProgramRuns) -> float:
    """What is left of the recorded time of calls of compiled functions."""
    host = case.plan.host
    calls = runs.calls_of_compiled(case.trace.events, ())
    mine = host.filter(take(calls.is_not_null(), host["event"]).fill_null(False))
    return int(mine[USUAL].sum()) / max(1, int(mine["recorded_ns"].sum()))


def _own_python(case: Case) -> pl.Series:
    """Host work that no program takes over: Python code that calls nothing of the framework, such as a simulator in NumPy.

    None if that is little beside the device's work: every step has some lines of its own.
    """
    events, host = case.trace.events, case.plan.host
    is_call = is_named(events, PROGRAM_CALLS)
    called = sums_below(events, is_call)
    is_framework = host_codes(case.trace) == FRAMEWORK
    alone = (called == 0) & ~is_framework & (ancestors(events, is_call | is_framework).is_null())
    found: pl.Series = (host["cause"] == "python") & take(alone, host["named_by"]).fill_null(False)
    ns = int(host[USUAL].filter(found).sum()) / max(1, len(case.lengths))
    return found & (ns >= WORTH_SHOWING * case.work_ns(case.plan))


def _is_in_longest(case: Case, calls: pl.Series) -> pl.Series:
    """Host work of the compiled function that takes the longest to call: a step that is one program is called like it."""
    host = case.plan.host
    by_call = pl.DataFrame(
        {"name": take(case.trace.events["name"], take(calls, host["event"])), "ns": host["ns"]}
    )
    longest = by_call.drop_nulls("name").group_by("name").agg(pl.col("ns").sum()).top_k(1, by="ns")["name"]
    return by_call.select(pl.col("name").is_in(longest.implode()).fill_null(False)).to_series()


def _with_host_of(plan: Plan, before: Plan, kept: pl.Series) -> Plan:
    """The plan with some of the host's work as it was."""
    columns = [
        pl.when(kept).then(before.host[name]).otherwise(pl.col(name)).alias(name)
        for name in (*SPEEDS, "recorded_ns")
    ]
    return replace(plan, host=plan.host.with_columns(columns))


def _with_waits_of(plan: Plan, before: Plan) -> Plan:
    """The plan with the waits as they were: Python code that stays may need what it waits for."""
    plan = replace(plan, items=plan.items.with_columns(kind=before.items["kind"]))
    return _with_host_of(plan, before, before.host["cause"] == "sync")


def _with_launches(plan: Plan, runs: ProgramRuns, launching: Mapping[str, float], share: float) -> Plan:
    """The plan in which launching takes a share of such a time before each run of a program."""
    if not launching:
        return plan
    ns = pl.col("program").replace_strict(launching, default=0.0, return_dtype=pl.Float64) * share
    firsts = runs.work.filter("first").select("event", launching=ns.cast(pl.Int64))
    items = plan.items.join(firsts, on="event", how="left", maintain_order="left")
    added = items["added_ns"] + items["launching"].fill_null(0)
    return replace(plan, items=plan.items.with_columns(added_ns=added))


def _choose_spread(
    case: Case, runs: ProgramRuns, own: pl.Series, launching: Mapping[str, float]
) -> Spread | None:
    """Where Python code stays beside the programs, what replaces the single ops may be Python code as well."""
    launching_ns = sum(ns * runs.runs_in_a_step(program) for program, ns in launching.items())
    if _may_end_by_value(runs) or launching_ns > case.work_ns(case.plan):
        return OF_TURNS
    return OF_PYTHON if runs.loop is None and own.any() else None


def _may_end_by_value(runs: ProgramRuns) -> bool:
    """Whether the recording leaves open if a value decides when the loop ends, or is only read, as for a log."""
    return runs.loop is not None and runs.is_read_each_turn and not runs.ends_by_value


def _turn_ns(runs: ProgramRuns) -> tuple[int, int]:
    """What a turn of the loop takes beside its body: little, unless a value on the device decides whether it is the last."""
    if runs.loop is None or not runs.is_read_each_turn:
        return 0, 0
    return (WHILE_TURN_BEST_NS if runs.ends_by_value else 0), WHILE_TURN_WORST_NS


def _join_runs(
    case: Case, runs: ProgramRuns, launched: Plan, fused: float, *, gaps: tuple[int, int], turn_ns: int
) -> Plan:
    """`gaps`: the longest inside of a compiled function, since the profiler makes them longer, and that before a fused kernel."""
    longest, between = gaps
    products = case.kernels.filter(pl.col("eligible").fill_null(False))["event"].implode()
    known = runs.work.select(
        "event",
        "is_compiled",
        inside=pl.col("gap_ns").clip(upper_bound=longest),
        turn=pl.when(pl.col("first") & (pl.col("program") == pl.lit(runs.loop, pl.String)))
        .then(turn_ns)
        .otherwise(0),
    )
    items = launched.items.join(known, on="event", how="left", maintain_order="left")
    kept = pl.col("is_compiled").fill_null(False)
    is_op = ~pl.col("is_compiled").fill_null(True) & ~pl.col("event").is_in(products).fill_null(False)
    gap = pl.when(kept).then(pl.col("inside") + pl.col("turn")).otherwise(between)
    left = pl.when(is_op).then(fused).otherwise(1.0)
    plan = replace(launched, items=items.with_columns(gap_ns=gap.cast(pl.Int64)))
    plan = plan.with_host(pl.col("cause").is_in(_GLUE)).with_device(pl.lit(True), left).without_waits()
    return replace(plan, items=plan.items.drop("is_compiled", "inside", "turn"))


RULE: Rule[Case] = Rule(
    code="eager-execution",
    title="The step runs op by op instead of compiled",
    turn=140,
    page="ops",
    owns="`dispatch`, and the framework's own `python`, if JAX or TensorFlow runs a step as 10 or more programs or ops: five different ones, or one program of JAX as often; without the calls that `device-copies` owns with the copies they make",
    change="as `launch-bound`, and kernels other than products are fused (25 to 35 % remain). Where a profile of JAX names the programs of its kernels, those of compiled functions stay as they are, and only single ops are fused; at least the longest call of a compiled function stays, at most all of them, and Python code that calls no program; if this is less than 3 % of the device's work, it does not count, and functions that a step calls 10 times or more are not called one by one any more; if the host reads a result after each call of a loop over one function, a turn takes 10 to 20 µs more, at best nothing where steps have equal numbers of turns; else each turn of a loop over functions launches what they run, which takes 75 to 95 % of what XLA needs for it in a call. For TensorFlow on a CPU, all dispatch of single ops goes, at worst 85 % of it; so it does for JAX, where compiled functions stay, but not their calls if there are 10 or more; single ops are fused and take at most the time of their arrays, and buffers that they update are not copied",
    fix={
        "tensorflow": "Wrap the whole training step in @tf.function (jit_compile=True also fuses its ops).",
        ANY: "Put the whole training step, gradients and update included, under one jax.jit.",
    },
    find=find,
)
