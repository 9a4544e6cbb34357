"""Checks of a profiler's life cycle: created, started, stopped, and used where it has an effect."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from stepscope.doctor.check import Checks, Sign
from stepscope.doctor.script.profilers import OURS, TORCH, Held
from stepscope.doctor.script.source import Function, Script, last_part
from stepscope.doctor.script.subject import PAIRS, WITHS, TrainingScript

CHECKS: Checks[TrainingScript] = Checks("script", [])
_MODULES = ("torch.profiler", "jax.profiler", "torch.autograd.profiler")
_TRACERS = ("tensorflow.function", "jax.jit", "jax.pmap", "torch.compile", "torch.jit.script")
_FOR_THE_HOST = (
    *TORCH,
    *WITHS,
    *(pair.start for pair in PAIRS),
    *(stop for pair in PAIRS for stop in pair.stops),
    "tensorflow.profiler.experimental.Trace",
    "jax.profiler.TraceAnnotation",
    "jax.profiler.StepTraceAnnotation",
)
_STARTS = ("start", "__enter__", "start_trace", "prepare_trace")
_STOPS = ("stop", "__exit__", "stop_trace")
_SHADOWED = ("torch", "tensorflow", "jax", "tensorboard", "stepscope", "profile", "cProfile")


@CHECKS.add(
    "script-syntax",
    "The script cannot be parsed",
    cause="It is not Python 3, or has a syntax error: the job would not start either.",
    fix="Fix the line.",
    severity="error",
)
def script_syntax(subject: TrainingScript) -> Iterator[Sign]:
    """What the parser says."""
    if subject.script.error:
        yield Sign(f"{subject.script.path}, {subject.script.error}")


@CHECKS.add(
    "profiler-never-started",
    "A profiler is imported or made, but never started",
    cause="torch.profiler.profile(…) records nothing until it is entered by `with`, or start() is called.",
    fix="Use `with torch.profiler.profile(…) as prof:` around the loop, or call prof.start() before it and prof.stop() after.",
)
def profiler_never_started(subject: TrainingScript) -> Iterator[Sign]:
    """Objects that are never started, and imports that are never used."""
    for held in subject.held:
        if not held.is_entered and not held.does(*_STARTS):
            name = min(held.names, default="")
            known = f"{name} = {held.made.name}(…)" if name else f"{held.made.name}(…)"
            yield Sign(
                f"Line {held.line}: {known} is neither entered by `with` nor started.", _how_to_start(held)
            )
    for line, name in _unused_imports(subject.script):
        yield Sign(f"Line {line}: {name} is imported and never used.")


def _how_to_start(held: Held) -> str:
    name = min(held.names, default="prof")
    return f"Use `with {held.made.name}(…) as {name}:` around the loop, or call {name}.start() before it and {name}.stop() after."


def _unused_imports(script: Script) -> Iterator[tuple[int, str]]:
    """Imports of a profiler whose name is mentioned nowhere, not even in __all__."""
    used = {node.id for node in ast.walk(script.tree) if isinstance(node, ast.Name)}
    used |= {
        node.value
        for node in ast.walk(script.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    for node in ast.walk(script.tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                if full in (*TORCH, *OURS, *_MODULES) and (alias.asname or alias.name) not in used:
                    yield node.lineno, full
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in _MODULES and not _mentions_module(script, alias, used):
                    yield node.lineno, alias.name


def _mentions_module(script: Script, alias: ast.alias, used: set[str]) -> bool:
    if alias.asname:
        return alias.asname in used
    names = {script.name_of(node) for node in ast.walk(script.tree) if isinstance(node, ast.Attribute)}
    return any(f"{name}.".startswith(f"{alias.name}.") for name in names)


@CHECKS.add(
    "profiler-never-stopped",
    "A profiler is started and never stopped",
    cause="The profile is written when the profiler stops. Without stop() the job ends and nothing is written, "
    "without any trace on the disk.",
    fix="Stop it in a finally block, or use `with`.",
    severity="error",
)
def profiler_never_stopped(subject: TrainingScript) -> Iterator[Sign]:
    """start() without stop(), for objects and for functions."""
    for held in subject.held:
        if held.asked & {*_STARTS} and not held.is_entered and not held.does(*_STOPS):
            name = min(held.names, default="prof")
            yield Sign(
                f"Line {held.line}: {name} is started, but {name}.stop() is never called.",
                f"try: … finally: {name}.stop(); or use `with {held.made.name}(…) as {name}:`.",
            )
    for pair in PAIRS:
        started = subject.script.calls_of(pair.start)
        if started and not any(_is_named(subject.script, stop) for stop in pair.stops):
            yield Sign(f"Line {started[0].line}: {pair.shown}, but its end is never called.", pair.fix)


def _is_named(script: Script, name: str) -> bool:
    """Called, or handed on, for example to atexit."""
    nodes = (node for node in ast.walk(script.tree) if isinstance(node, ast.Attribute | ast.Name))
    return any(script.name_of(node) == name for node in nodes)


@CHECKS.add(
    "stop-skipped-on-error",
    "An exception in the loop loses the profile",
    cause="stop() comes after the loop and is not reached when a step fails, or the job is interrupted.",
    fix="Put the loop into try: … finally: with stop() in it, or use `with`.",
    severity="info",
)
def stop_skipped_on_error(subject: TrainingScript) -> Iterator[Sign]:
    """A start and a stop in one function with a training loop between them, and no finally."""
    for pair in PAIRS[:2]:
        for call, inside in subject.regions(pair.start, pair.stops, ""):
            stops = [each for each in subject.script.calls_of(*pair.stops) if each.line > call.line]
            is_safe = any(_in_finally(subject.script, each.node) for each in stops)
            if stops and not is_safe and subject.training_loops(inside):
                yield Sign(f"Line {stops[0].line}: {stops[0].method}() is not in a finally block.", pair.fix)


def _in_finally(script: Script, node: ast.AST) -> bool:
    around = [node, *script.around(node)]
    return any(
        isinstance(outer, ast.Try) and any(inner in outer.finalbody for inner in around) for outer in around
    ) or any(
        isinstance(outer, Function) and outer.name in ("__exit__", "on_train_end", "teardown")
        for outer in around
    )


@CHECKS.add(
    "profiler-in-traced-function",
    "A profiler is used inside a function that is traced",
    cause="The body of a function under tf.function, jax.jit or torch.compile runs once, while it is traced. A profiler or annotation in it "
    "starts and stops then, and sees nothing of the steps.",
    fix="Move it outside, around the call of the function. Inside, use tf.name_scope or jax.named_scope.",
    severity="error",
)
def profiler_in_traced_function(subject: TrainingScript) -> Iterator[Sign]:
    """Calls of profilers, with a traced function around them."""
    traced = set(_traced_by_name(subject.script))
    for call in subject.script.calls_of(*_FOR_THE_HOST):
        for function in subject.script.functions_around(call.node):
            tracer = next(
                filter(None, map(subject.script.name_of, map(_undone, function.decorator_list))), ""
            )
            if tracer in _TRACERS or function.name in traced or _partial_tracer(subject.script, function):
                yield Sign(
                    f"Line {call.line}: {call.name} inside {function.name}(), which is traced ({tracer or 'jit'}).",
                    f"Move it to where {function.name}() is called.",
                )
                break


def _undone(decorator: ast.expr) -> ast.expr:
    """tf.function for @tf.function(jit_compile=True)."""
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def _partial_tracer(script: Script, function: Function) -> bool:
    """@partial(jax.jit, static_argnums=0)"""
    return any(
        isinstance(each, ast.Call)
        and last_part(each.func) == "partial"
        and each.args
        and script.name_of(each.args[0]) in _TRACERS
        for each in function.decorator_list
    )


def _traced_by_name(script: Script) -> Iterator[str]:
    """step = jax.jit(train_step)"""
    for call in script.calls_of(*_TRACERS):
        if call.node.args and isinstance(call.node.args[0], ast.Name):
            yield call.node.args[0].id


@CHECKS.add(
    "two-profilers",
    "A profiler is started inside another one",
    cause="Only one of them receives device events; the other ends early or stays empty.",
    fix="Use one profiler, and record_function or annotate for the inner region.",
    severity="error",
)
def two_profilers(subject: TrainingScript) -> Iterator[Sign]:
    """A profiler that is made in the body of another one's `with`."""
    blocks = [(held.line, held.body) for held in subject.held if held.body]
    makers = (*TORCH, *OURS, *WITHS, *(pair.start for pair in PAIRS[:2]))
    for line, body in blocks:
        inside = {node for part in body for node in ast.walk(part) if isinstance(node, ast.Call)}
        for call in subject.script.calls_of(*makers):
            if call.node in inside:
                yield Sign(f"Line {call.line}: {call.name} inside the `with` of line {line}.")


@CHECKS.add(
    "shadowed-module",
    "A file next to the script hides a package",
    cause="Python looks in the script's own folder first: a file profile.py or torch.py there is imported instead of the package.",
    fix="Rename the file.",
)
def shadowed_module(subject: TrainingScript) -> Iterator[Sign]:
    """Names of packages among the files in its folder."""
    folder = Path(subject.script.path).parent
    if (folder / "__init__.py").exists():
        return  # a package's modules are imported by their full names
    for name in _SHADOWED:
        beside = folder / f"{name}.py"
        if beside.is_file() and beside.name != Path(subject.script.path).name:
            yield Sign(
                f"{beside} hides the module {name}.", f"Rename {beside.name}, and delete its __pycache__."
            )
