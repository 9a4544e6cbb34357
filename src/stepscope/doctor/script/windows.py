"""Checks of what is recorded: schedules, step markers, warm-up, and whether the window is ever reached."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from stepscope.doctor.check import Checks, Sign
from stepscope.doctor.script.profilers import Held
from stepscope.doctor.script.source import Call, constant, last_part
from stepscope.doctor.script.subject import LOOPS, PAIRS, WITHS, TrainingScript

CHECKS: Checks[TrainingScript] = Checks("script", [])
_SCHEDULES = (
    "torch.profiler.schedule",
    "torch.profiler.profiler.schedule",
    "stepscope.schedule",
    "stepscope.capture.schedule",
)
_MARKS = ("record_function", "annotate", "StepTraceAnnotation", "Trace", "step")
LONG_WINDOW = 100


@CHECKS.add(
    "schedule-without-step",
    "A schedule is given, but step() is never called",
    cause="The schedule counts calls of prof.step(). Without them the profiler stays in its first phase: on_trace_ready is never called and "
    "export fails.",
    fix="Call prof.step() at the end of each step.",
    severity="error",
)
def schedule_without_step(subject: TrainingScript) -> Iterator[Sign]:
    """A schedule, and no step()."""
    for held in subject.held:
        if held.has_schedule and not held.does("step") and not subject.script.calls_of("stepscope.step"):
            name = min(held.names, default="prof")
            as_name = "" if held.names else f", and `as {name}` in the with statement"
            yield Sign(
                f"Line {held.line}: schedule=…, and no {name}.step().",
                f"Call {name}.step() at the end of each step{as_name}.",
            )


@CHECKS.add(
    "no-step-marker",
    "Nothing marks the steps",
    cause="Tools then say `No step marker observed`, or take the whole recording for one step. stepscope finds steps that repeat, but "
    "cannot know where the loop begins one.",
    fix="PyTorch: prof.step() at the end of each step. TensorFlow: with tf.profiler.experimental.Trace('train', step_num=step, _r=1). JAX: "
    "with jax.profiler.StepTraceAnnotation('train', step_num=step). Anywhere: stepscope's prof.step().",
)
def no_step_marker(subject: TrainingScript) -> Iterator[Sign]:
    """A loop that trains while a profiler runs, and nothing in the script that marks a step."""
    for held in subject.held:
        inside = [node for part in held.body for node in ast.walk(part)]
        loops = subject.training_loops(inside)
        if loops and not held.has_schedule and not held.does("step") and not _is_marked(loops):
            name = min(held.names, default="prof")
            yield Sign(
                f"The loop in line {_line(loops[0])} calls no {name}.step().",
                f"Call {name}.step() at the end of each step.",
            )
    for pair, block, marker in (
        (PAIRS[0], WITHS[0], "tf.profiler.experimental.Trace('train', step_num=step, _r=1)"),
        (PAIRS[1], WITHS[1], "jax.profiler.StepTraceAnnotation('train', step_num=step)"),
    ):
        for call, nodes in subject.regions(pair.start, pair.stops, block):
            loops = subject.training_loops(nodes)
            if loops and not any(each.method in _MARKS[:-1] for each in subject.script.calls):
                yield Sign(
                    f"{call.name} in line {call.line}; nothing marks the steps of the loop in line {_line(loops[0])}.",
                    f"with {marker}: round the body of the loop.",
                )


def _is_marked(loops: list[ast.AST]) -> bool:
    calls = (node for loop in loops for node in ast.walk(loop) if isinstance(node, ast.Call))
    return any(last_part(call.func) in _MARKS[:-1] for call in calls)


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


@CHECKS.add(
    "trace-without-root",
    "Trace marks no step",
    cause="TensorFlow counts a Trace as a step only if it has step_num and _r=1; XProf then says `No step marker observed`.",
    fix="tf.profiler.experimental.Trace('train', step_num=step, _r=1)",
)
def trace_without_root(subject: TrainingScript) -> Iterator[Sign]:
    """step_num without _r."""
    for call in subject.script.calls_of("tensorflow.profiler.experimental.Trace"):
        if (
            call.keyword("step_num") is not None
            and call.keyword("_r") is None
            and not call.has_unknown_keywords
        ):
            yield Sign(f"Line {call.line}: step_num without _r=1.")


@CHECKS.add(
    "no-warmup",
    "The schedule has no warm-up",
    cause="The first step of a window pays for starting CUPTI: its first kernels are missing, and its times are too long.",
    fix="schedule(warmup=1, …) at least.",
)
def no_warmup(subject: TrainingScript) -> Iterator[Sign]:
    """warmup=0, in PyTorch's schedule or in ours."""
    for call in subject.script.calls_of(*_SCHEDULES):
        if constant(call.keyword("warmup")) == 0:
            yield Sign(f"Line {call.line}: warmup=0.")


@CHECKS.add(
    "window-never-reached",
    "The loop ends before the window begins",
    cause="The schedule skips, waits and warms up for more steps than the loop has: nothing is recorded, or only the warm-up.",
    fix="Shorten skip, wait and warmup, or run more steps.",
    severity="error",
)
def window_never_reached(subject: TrainingScript) -> Iterator[Sign]:
    """Schedules and loops whose lengths are written out."""
    loops = [
        length
        for node in ast.walk(subject.script.tree)
        if isinstance(node, LOOPS)
        for length in [_length(node)]
        if length
    ]
    is_sure = loops and len(loops) == sum(_steps(node) for node in ast.walk(subject.script.tree))
    for call in subject.script.calls_of(*_SCHEDULES):
        before = _before(call)
        if before is not None and is_sure and max(loops) <= before:
            yield Sign(f"Line {call.line}: {before} steps come before the window; the loop has {max(loops)}.")


def _length(loop: ast.AST) -> int | None:
    """The number of rounds of `for … in range(N)`, where step() is called in it."""
    if not _steps(loop) or not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call):
        return None
    if last_part(loop.iter.func) != "range" or not loop.iter.args:
        return None
    limits = [constant(each) for each in loop.iter.args]
    if not all(isinstance(limit, int) for limit in limits):
        return None
    numbers = [limit for limit in limits if isinstance(limit, int)]
    return len(range(*numbers)) if len(numbers) <= 3 else None


def _steps(node: ast.AST) -> bool:
    """Whether this is a loop that calls step() on something that looks like a profiler."""
    if not isinstance(node, LOOPS):
        return False
    receivers = (
        each.func.value
        for each in ast.walk(node)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == "step"
    )
    return any(re.match(r"(?i)p$|prof", last_part(receiver)) for receiver in receivers)


def _before(call: Call) -> int | None:
    """Steps before the first recorded one; None if that is not written out."""
    total = 0
    for name in ("skip_first", "skip", "wait", "warmup"):
        node = call.keyword(name)
        value = constant(node)
        if node is not None and not isinstance(value, int):
            return None
        total += value if isinstance(value, int) else 0
    return total if call.node.keywords and not call.node.args and not call.has_unknown_keywords else None


@CHECKS.add(
    "long-window",
    "The window is so long that the trace will be huge",
    cause="A step takes one to fifty megabytes with stacks. Traces of more than a few hundred megabytes open in hardly any viewer.",
    fix="A few steps suffice: schedule(wait=5, warmup=2, active=5, repeat=1).",
    severity="info",
)
def long_window(subject: TrainingScript) -> Iterator[Sign]:
    """A long `active`, or no schedule and a loop over all data without a break."""
    for call in subject.script.calls_of(*_SCHEDULES):
        active = constant(call.keyword("active"))
        if isinstance(active, int) and active > LONG_WINDOW:
            yield Sign(f"Line {call.line}: active={active}.")
    for held in subject.torch:
        loop = _endless_loop(subject, held)
        if loop is not None and not held.has_schedule and not held.does("stop"):
            yield Sign(f"Line {held.line}: no schedule; the loop in line {_line(loop)} goes over all data.")


def _endless_loop(subject: TrainingScript, held: Held) -> ast.AST | None:
    inside = [node for part in held.body for node in ast.walk(part)]
    for loop in subject.training_loops(inside):
        is_short = any(isinstance(node, ast.Break | ast.Return) for node in ast.walk(loop))
        if (
            isinstance(loop, ast.For)
            and not is_short
            and not re.search(r"\brange\(|islice|zip\(|\[", ast.unparse(loop.iter))
        ):
            return loop
    return None
