"""Checks of what is recorded: schedules, step markers, warm-up, and whether the window is ever reached."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from stepscope.doctor.check import Checks, Sign
from stepscope.doctor.script.keras import unreached_batches
from stepscope.doctor.script.profilers import LEGACY, Held
from stepscope.doctor.script.source import Call, Script, constant, last_part
from stepscope.doctor.script.subject import LOOPS, PAIRS, WITHS, TrainingScript

CHECKS: Checks[TrainingScript] = Checks("script")
_SCHEDULES = (
    "torch.profiler.schedule",
    "torch.profiler.profiler.schedule",
    "stepscope.schedule",
    "stepscope.capture.schedule",
)
_MARKS = ("record_function", "annotate", "StepTraceAnnotation", "Trace", "step")
LONG_WINDOW = 100


@CHECKS.add("schedule-without-step")
def schedule_without_step(subject: TrainingScript) -> Iterator[Sign]:
    """A schedule, and no step()."""
    for held in subject.held:
        if held.has_schedule and not held.does("step") and not subject.script.calls_of("stepscope.step"):
            name = min(held.names, default="prof")
            yield Sign(
                f"Line {held.line}: schedule=…, and no {name}.step().",
                "" if held.names else "unnamed",
                name=name,
            )


@CHECKS.add("no-step-marker")
def no_step_marker(subject: TrainingScript) -> Iterator[Sign]:
    """A loop that trains while a profiler runs, and nothing in the script that marks a step."""
    for held in subject.held:
        inside = [node for part in held.body for node in ast.walk(part)]
        loops = subject.training_loops(inside)
        is_old = held.made.name == LEGACY  # it has no step()
        if loops and not is_old and not held.has_schedule and not held.does("step") and not _is_marked(loops):
            name = min(held.names, default="prof")
            yield Sign(
                f"The loop in line {_line(loops[0])} calls no {name}.step().",
                name=name,
            )
    for pair, block in zip(PAIRS[:2], WITHS, strict=True):
        for call, nodes in subject.regions(pair.start, pair.stops, block):
            loops = subject.training_loops(nodes)
            if loops and not any(each.method in _MARKS[:-1] for each in subject.script.calls):
                yield Sign(
                    f"{call.name} in line {call.line}; nothing marks the steps of the loop in line {_line(loops[0])}.",
                    pair.case,
                )


def _is_marked(loops: list[ast.AST]) -> bool:
    calls = (node for loop in loops for node in ast.walk(loop) if isinstance(node, ast.Call))
    return any(last_part(call.func) in _MARKS[:-1] for call in calls)


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


@CHECKS.add("trace-without-root")
def trace_without_root(subject: TrainingScript) -> Iterator[Sign]:
    """step_num without _r, or neither in a loop whose steps nothing else marks."""
    calls = [
        call
        for call in subject.script.calls_of("tensorflow.profiler.experimental.Trace")
        if not call.has_unknown_keywords
    ]
    numbered = [call for call in calls if call.keyword("step_num") is not None]
    for call in numbered:
        if call.keyword("_r") is None:
            yield Sign(f"Line {call.line}: step_num without _r=1.")
    if numbered or subject.held:
        return  # the others are regions inside of steps
    for call in calls:
        if call.keyword("_r") is not None or any(
            isinstance(each, LOOPS) for each in subject.script.around(call.node)
        ):
            yield Sign(f"Line {call.line}: {ast.unparse(call.node)} without step_num.")


@CHECKS.add("no-warmup")
def no_warmup(subject: TrainingScript) -> Iterator[Sign]:
    """warmup=0, in PyTorch's schedule or in ours."""
    for call in subject.script.calls_of(*_SCHEDULES):
        if constant(call.keyword("warmup")) == 0:
            yield Sign(f"Line {call.line}: warmup=0.")


@CHECKS.add("window-never-reached")
def window_never_reached(subject: TrainingScript) -> Iterator[Sign]:
    """Schedules and loops whose lengths are written out."""
    loops = [
        length
        for node in ast.walk(subject.script.tree)
        if isinstance(node, LOOPS)
        for length in [_length(subject.script, node)]
        if length
    ]
    is_sure = loops and len(loops) == sum(_steps(node) for node in ast.walk(subject.script.tree))
    for call in subject.script.calls_of(*_SCHEDULES):
        before = _before(subject.script, call)
        if before is not None and is_sure and max(loops) <= before:
            yield Sign(f"Line {call.line}: {before} steps come before the window; the loop has {max(loops)}.")
    yield from unreached_batches(subject.script)


def _length(script: Script, loop: ast.AST) -> int | None:
    """The number of rounds of `for … in range(N)`, where step() is called in it."""
    if not _steps(loop) or not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call):
        return None
    if last_part(loop.iter.func) != "range" or not loop.iter.args:
        return None
    limits = [script.number(each) for each in loop.iter.args]
    numbers = [limit for limit in limits if limit is not None]
    return (
        len(range(*numbers))
        if len(numbers) == len(limits) <= 3 and (len(numbers) < 3 or numbers[2])
        else None
    )


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


def _before(script: Script, call: Call) -> int | None:
    """Steps before the first recorded one; None if that is not written out."""
    total = 0
    for name in ("skip_first", "skip", "wait", "warmup"):
        node = call.keyword(name)
        value = script.number(node)
        if node is not None and value is None:
            return None
        total += value or 0
    return total if call.node.keywords and not call.node.args and not call.has_unknown_keywords else None


@CHECKS.add("long-window")
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
