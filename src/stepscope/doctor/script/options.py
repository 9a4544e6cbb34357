"""Checks of options: what is asked of a profile, and was not switched on."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from stepscope.doctor.check import Checks, Sign
from stepscope.doctor.script.keras import TENSORBOARD
from stepscope.doctor.script.profilers import LEGACY, Held
from stepscope.doctor.script.source import Script, constant, last_part
from stepscope.doctor.script.subject import PAIRS, WITHS, TrainingScript

CHECKS: Checks[TrainingScript] = Checks("script")
_NEEDS = {
    "export_stacks": ("with_stack",),
    "export_memory_timeline": ("record_shapes", "profile_memory", "with_stack"),
}
_WAITS = (
    "block_until_ready",
    "device_get",
    "effects_barrier",
    "item",
    "float",
    "asarray",
    "array",
    "tolist",
    "print",
    "assert_allclose",
)


@CHECKS.add("option-missing")
def option_missing(subject: TrainingScript) -> Iterator[Sign]:
    """What is called on the profiler against the options that it was made with."""
    for held in subject.torch:
        if held.made.has_unknown_keywords:
            continue
        for what, options in (*_asked_methods(held), *_asked_groups(subject, held)):
            lacking = [name for name in options if not _may_be_on(held, name)]
            if lacking:
                yield Sign(
                    f"Line {held.line}: {what} needs {', '.join(lacking)}.",
                    options=", ".join(f"{name}=True" for name in lacking),
                )


def _may_be_on(held: Held, name: str) -> bool:
    node = held.made.keyword(name)
    return (node is not None and constant(node) not in (False, None)) or (
        node is not None and not isinstance(node, ast.Constant)
    )


def _asked_methods(held: Held) -> Iterator[tuple[str, tuple[str, ...]]]:
    return ((f"{method}()", options) for method, options in _NEEDS.items() if method in held.asked)


def _asked_groups(subject: TrainingScript, held: Held) -> Iterator[tuple[str, tuple[str, ...]]]:
    if "key_averages" in held.asked and len(subject.torch) == 1:
        for call in subject.script.calls:
            if call.method == "key_averages" and call.is_on("group_by_input_shape"):
                yield "key_averages(group_by_input_shape=True)", ("record_shapes",)
            if call.method == "key_averages" and constant(call.keyword("group_by_stack_n")):
                yield "key_averages(group_by_stack_n=…)", ("with_stack",)
    if held.made.is_on("with_modules"):
        yield "with_modules=True", ("with_stack",)


@CHECKS.add("no-device-activity")
def no_device_activity(subject: TrainingScript) -> Iterator[Sign]:
    """A device in the script, and none in the activities."""
    if not _uses_gpu(subject):
        return
    for held in subject.torch:
        activities = held.made.keyword("activities")
        listed = activities.elts if isinstance(activities, ast.List | ast.Tuple | ast.Set) else []
        only_cpu = listed and all(last_part(each) == "CPU" for each in listed)
        if only_cpu:
            yield Sign(f"Line {held.line}: activities={ast.unparse(activities) if activities else ''}")
        device = held.made.keyword("use_cuda") or held.made.keyword("use_device")
        if (
            held.made.name == LEGACY
            and device is None
            and not held.made.has_unknown_keywords
            and not held.made.node.args
        ):
            yield Sign(f"Line {held.line}: {LEGACY}() without use_device.", "legacy")


def _uses_gpu(subject: TrainingScript) -> bool:
    for node in ast.walk(subject.script.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "cuda":
            return True
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.fullmatch(r"cuda(:\d+)?", node.value)
        ):
            return True
    return False


@CHECKS.add("device-tracer-off")
def device_tracer_off(subject: TrainingScript) -> Iterator[Sign]:
    """The level given as 0, as an argument or on an options object."""
    for call in subject.script.calls:
        if constant(call.keyword("device_tracer_level")) == 0:
            yield Sign(f"Line {call.line}: device_tracer_level=0.")
    for node in ast.walk(subject.script.tree):
        if isinstance(node, ast.Assign) and constant(node.value) == 0:
            for target in node.targets:
                if isinstance(target, ast.Attribute) and target.attr == "device_tracer_level":
                    yield Sign(f"Line {node.lineno}: {ast.unparse(node)}.")


@CHECKS.add("no-block-until-ready")
def no_block_until_ready(subject: TrainingScript) -> Iterator[Sign]:
    """A trace of JAX in a script that never waits for a result."""
    for call, inside in subject.regions(PAIRS[1].start, PAIRS[1].stops, WITHS[1]):
        calls = [node for node in inside if isinstance(node, ast.Call)]
        waits = any(each.method in _WAITS for each in subject.script.calls)
        # Where the work is compiled elsewhere, the waiting may be there as well.
        if calls and not waits and _compiles_here(subject.script):
            yield Sign(f"{call.name} in line {call.line}; block_until_ready is called nowhere.")


def _compiles_here(script: Script) -> bool:
    nodes = (node for node in ast.walk(script.tree) if isinstance(node, ast.Attribute | ast.Name))
    return any(script.name_of(node) in ("jax.jit", "jax.pmap") for node in nodes)


@CHECKS.add("keras-profile-batch")
def keras_profile_batch(subject: TrainingScript) -> Iterator[Sign]:
    """profile_batch that begins with 1."""
    for call in subject.script.calls:
        if TENSORBOARD.search(call.name):
            given = call.keyword("profile_batch")
            first = given.elts[0] if isinstance(given, ast.Tuple | ast.List) and given.elts else given
            value = constant(first)
            if (value == 1 and value is not True) or (
                isinstance(value, str) and value.split(",")[0].strip() == "1"
            ):
                yield Sign(f"Line {call.line}: profile_batch={ast.unparse(given) if given else ''}")


@CHECKS.add("nothing-records")
def nothing_records(subject: TrainingScript) -> Iterator[Sign]:
    """No call that would start one, by name or by a callback."""
    known = re.compile(r"(?i)profil|nsys|nvtx|xprof|TensorBoard$")
    callbacks = [call for call in subject.script.calls if TENSORBOARD.search(call.name)]
    silent = [
        call
        for call in callbacks
        if constant(call.keyword("profile_batch")) in (None, 0)
        and not isinstance(call.keyword("profile_batch"), ast.Tuple | ast.List | ast.Name)
    ]
    others = [
        call
        for call in subject.script.calls
        if known.search(call.name or call.method) and call not in callbacks
    ]
    if subject.script.error or subject.records() or others or len(silent) < len(callbacks):
        return
    yield Sign(
        f"Line {silent[0].line}: TensorBoard(…) without profile_batch."
        if silent
        else "No call of a profiler was found."
    )
