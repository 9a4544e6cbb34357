"""Checks of options: what is asked of a profile, and was not switched on."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from stepscope.doctor.check import Checks, Sign
from stepscope.doctor.script.profilers import LEGACY, Held
from stepscope.doctor.script.source import Script, constant, last_part
from stepscope.doctor.script.subject import PAIRS, WITHS, TrainingScript

CHECKS: Checks[TrainingScript] = Checks("script", [])
_NEEDS = {
    "export_stacks": ("with_stack",),
    "export_memory_timeline": ("record_shapes", "profile_memory", "with_stack"),
}
_TENSORBOARD = re.compile(r"(^|\.)keras\.callbacks\.TensorBoard$")
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


@CHECKS.add(
    "option-missing",
    "Something is asked of the profile that was not recorded",
    cause="export_stacks needs with_stack, export_memory_timeline needs record_shapes, profile_memory and with_stack: PyTorch raises an error "
    "after the job has run. Groups by shape or stack stay empty without record_shapes or with_stack, modules without with_stack.",
    fix="Switch the option on where the profiler is made.",
    severity="error",
)
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
                    f"torch.profiler.profile({', '.join(f'{name}=True' for name in lacking)}, …)",
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


@CHECKS.add(
    "no-device-activity",
    "The script uses a GPU, but only the CPU is recorded",
    cause="activities=[ProfilerActivity.CPU] leaves out kernels and copies; the old torch.autograd.profiler does so unless use_device is given.",
    fix="activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], or leave activities out: all that are there are recorded then.",
)
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
            yield Sign(
                f"Line {held.line}: {LEGACY}() without use_device.",
                "Use torch.profiler.profile instead.",
                severity="info",
            )


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


@CHECKS.add(
    "device-tracer-off",
    "The device's tracer is switched off",
    cause="With device_tracer_level=0 TensorFlow and JAX record host rows only.",
    fix="Leave device_tracer_level out, or set it to 1.",
)
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


@CHECKS.add(
    "no-block-until-ready",
    "The trace may stop before the device has finished",
    cause="JAX returns before the work is done. If nothing waits for the last step, stop_trace comes too early and its device rows are missing.",
    fix="jax.block_until_ready(result) before stop_trace, or at the end of the `with` block.",
)
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


@CHECKS.add(
    "keras-profile-batch",
    "Keras profiles its first batch",
    cause="The first batch traces and compiles the model: the profile shows that, and not a usual step.",
    fix="TensorBoard(log_dir, profile_batch=(10, 15))",
)
def keras_profile_batch(subject: TrainingScript) -> Iterator[Sign]:
    """profile_batch that begins with 1."""
    for call in subject.script.calls:
        if _TENSORBOARD.search(call.name):
            given = call.keyword("profile_batch")
            first = given.elts[0] if isinstance(given, ast.Tuple | ast.List) and given.elts else given
            value = constant(first)
            if (value == 1 and value is not True) or (
                isinstance(value, str) and value.split(",")[0].strip() == "1"
            ):
                yield Sign(f"Line {call.line}: profile_batch={ast.unparse(given) if given else ''}")


@CHECKS.add(
    "nothing-records",
    "Nothing in this script records a profile",
    cause="No profiler of PyTorch, TensorFlow, JAX or stepscope is used here. Keras' TensorBoard callback records none unless profile_batch is given.",
    fix="with stepscope.profile('logs') as prof: round the loop, and prof.step() in it; or stepscope run -- python train.py.",
    severity="info",
)
def nothing_records(subject: TrainingScript) -> Iterator[Sign]:
    """No call that would start one, by name or by a callback."""
    known = re.compile(r"(?i)profil|nsys|nvtx|xprof|TensorBoard$")
    callbacks = [call for call in subject.script.calls if _TENSORBOARD.search(call.name)]
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
