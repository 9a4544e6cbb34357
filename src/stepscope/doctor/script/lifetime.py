"""Checks of a profiler's life cycle: created, started, stopped, and used where it has an effect."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from stepscope.doctor.check import Checks, Sign
from stepscope.doctor.script.profilers import OURS, TORCH
from stepscope.doctor.script.source import Function, Script, last_part
from stepscope.doctor.script.subject import PAIRS, WITHS, TrainingScript

CHECKS: Checks[TrainingScript] = Checks("script")
_MODULES = (
    "torch.profiler",
    "jax.profiler",
    "torch.autograd.profiler",
    "tensorflow.profiler",
    "tensorflow.profiler.experimental",
    "tensorflow.python.profiler",
    "tensorflow.python.profiler.profiler",
    "tensorflow.python.profiler.profiler_v2",
    "tensorflow.python.eager.profiler",
)
_TRACERS = (
    "tensorflow.function", "jax.jit", "jax.pmap", "torch.compile", "torch.jit.script", "flax.nnx.jit", "equinox.filter_jit",
)  # fmt: skip
# Keras compiles these methods of a model.
_OF_MODELS = ("train_step", "test_step", "predict_step", "call")
_MODELS = re.compile(r"(^|\.)keras\.(models\.)?(Model|Sequential)$|(^|\.)keras\.layers\.Layer$")
_ANNOTATIONS = (
    "tensorflow.profiler.experimental.Trace",
    "jax.profiler.TraceAnnotation",
    "jax.profiler.StepTraceAnnotation",
)
_SWITCHES = (
    *TORCH,
    *OURS,
    *WITHS,
    *(pair.start for pair in PAIRS),
    *(stop for pair in PAIRS for stop in pair.stops),
)
_STARTS = ("start", "__enter__", "start_trace", "prepare_trace")
_STOPS = ("stop", "__exit__", "stop_trace")
_SHADOWED = ("torch", "tensorflow", "jax", "tensorboard", "stepscope", "profile", "cProfile")


@CHECKS.add("script-syntax")
def script_syntax(subject: TrainingScript) -> Iterator[Sign]:
    """What the parser says."""
    if subject.script.error:
        yield Sign(f"{subject.script.path}, {subject.script.error}")


@CHECKS.add("profiler-never-started")
def profiler_never_started(subject: TrainingScript) -> Iterator[Sign]:
    """Objects that are never started, and imports that are never used."""
    for held in subject.held:
        if not held.is_entered and not held.does(*_STARTS):
            name = min(held.names, default="")
            known = f"{name} = {held.made.name}(…)" if name else f"{held.made.name}(…)"
            yield Sign(
                f"Line {held.line}: {known} is neither entered by `with` nor started.",
                maker=held.made.name,
                name=name or "prof",
            )
    for line, name in _unused_imports(subject.script):
        maker = name if name in (*TORCH, *OURS) else "torch.profiler.profile"
        case = name.split(".", 1)[0] if name.startswith(("tensorflow.", "jax.")) else ""
        yield Sign(f"Line {line}: {name} is imported and never used.", case, maker=maker, name="prof")


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
                if full in (*TORCH, *OURS, *WITHS, *_MODULES) and (alias.asname or alias.name) not in used:
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


@CHECKS.add("profiler-never-stopped")
def profiler_never_stopped(subject: TrainingScript) -> Iterator[Sign]:
    """start() without stop(), for objects and for functions."""
    for held in subject.held:
        # Ours stops by itself when the job ends.
        if (
            held.made.name not in OURS
            and held.asked & {*_STARTS}
            and not held.is_entered
            and not held.does(*_STOPS)
        ):
            name = min(held.names, default="prof")
            yield Sign(
                f"Line {held.line}: {name} is started, but {name}.stop() is never called.",
                maker=held.made.name,
                name=name,
            )
    for pair in PAIRS:
        started = subject.script.calls_of(pair.start)
        if started and not any(_is_named(subject.script, stop) for stop in pair.stops):
            yield Sign(f"Line {started[0].line}: {pair.shown}, but its end is never called.", pair.case)


def _is_named(script: Script, name: str) -> bool:
    """Called, or handed on, for example to atexit."""
    nodes = (node for node in ast.walk(script.tree) if isinstance(node, ast.Attribute | ast.Name))
    return any(script.name_of(node) == name for node in nodes)


@CHECKS.add("stop-skipped-on-error")
def stop_skipped_on_error(subject: TrainingScript) -> Iterator[Sign]:
    """A start and a stop in one function with a training loop between them, and no finally."""
    for pair in PAIRS[:2]:
        for call, inside in subject.regions(pair.start, pair.stops, ""):
            stops = [each for each in subject.script.calls_of(*pair.stops) if each.line > call.line]
            is_safe = any(_in_finally(subject.script, each.node) for each in stops)
            if stops and not is_safe and subject.training_loops(inside):
                yield Sign(f"Line {stops[0].line}: {stops[0].method}() is not in a finally block.", pair.case)


def _in_finally(script: Script, node: ast.AST) -> bool:
    around = [node, *script.around(node)]
    return any(
        isinstance(outer, ast.Try) and any(inner in outer.finalbody for inner in around) for outer in around
    ) or any(
        isinstance(outer, Function) and outer.name in ("__exit__", "on_train_end", "teardown")
        for outer in around
    )


@CHECKS.add("profiler-inside-function")
def profiler_inside_function(subject: TrainingScript) -> Iterator[Sign]:
    """Profilers that are started or stopped in a function that is traced, or in one that it calls."""
    return _inside_traced(subject.script, _SWITCHES)


@CHECKS.add("profiler-in-traced-function")
def profiler_in_traced_function(subject: TrainingScript) -> Iterator[Sign]:
    """Annotations for the host there."""
    return _inside_traced(subject.script, _ANNOTATIONS)


def _inside_traced(script: Script, names: tuple[str, ...]) -> Iterator[Sign]:
    traced = _traced_functions(script)
    for call in script.calls_of(*names):
        function = next((each for each in script.functions_around(call.node) if each in traced), None)
        if function is not None:
            what = f"Line {call.line}: {call.name} inside {function.name}(), which is traced ({traced[function]})."
            yield Sign(what, function=function.name)


def _traced_functions(script: Script) -> dict[Function, str]:
    """The functions whose body runs only while it is traced, and by what; also those that such a function calls."""
    by_name = dict(_traced_by_name(script))
    found = {
        function: tracer
        for function in script.functions.values()
        if (tracer := _tracer(script, function) or by_name.get(function.name, ""))
    }
    waiting = list(found)
    while waiting:
        function = waiting.pop()
        for node in ast.walk(function):
            called = script.functions.get(last_part(node.func)) if isinstance(node, ast.Call) else None
            if called is not None and called not in found:
                found[called] = f"by {function.name}()"
                waiting.append(called)
    return found


def _tracer(script: Script, function: Function) -> str:
    """The decorator that traces it, or Keras, which compiles the steps of a model."""
    names = map(script.name_of, map(_undone, function.decorator_list))
    decorator = next((name for name in names if name in _TRACERS), "")
    if decorator or _partial_tracer(script, function):
        return decorator or "jit"
    owner = script.parent(function)
    is_of_model = isinstance(owner, ast.ClassDef) and any(
        _MODELS.search(script.name_of(base)) for base in owner.bases
    )
    return "Keras" if is_of_model and function.name in _OF_MODELS else ""


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


def _traced_by_name(script: Script) -> Iterator[tuple[str, str]]:
    """step = jax.jit(train_step), self.step = tf.function(self._step)"""
    for call in script.calls_of(*_TRACERS):
        if call.node.args and last_part(call.node.args[0]):
            yield last_part(call.node.args[0]), call.name


@CHECKS.add("two-profilers")
def two_profilers(subject: TrainingScript) -> Iterator[Sign]:
    """A profiler that is made in the body of another one's `with`."""
    blocks = [(held.line, held.body) for held in subject.held if held.body]
    makers = (*TORCH, *OURS, *WITHS, *(pair.start for pair in PAIRS[:2]))
    for line, body in blocks:
        inside = {node for part in body for node in ast.walk(part) if isinstance(node, ast.Call)}
        for call in subject.script.calls_of(*makers):
            if call.node in inside:
                yield Sign(f"Line {call.line}: {call.name} inside the `with` of line {line}.")


@CHECKS.add("shadowed-module")
def shadowed_module(subject: TrainingScript) -> Iterator[Sign]:
    """Names of packages among the files in its folder."""
    folder = Path(subject.script.path).parent
    if (folder / "__init__.py").exists():
        return  # a package's modules are imported by their full names
    for name in _SHADOWED:
        beside = folder / f"{name}.py"
        if beside.is_file() and beside.name != Path(subject.script.path).name:
            yield Sign(f"{beside} hides the module {name}.", file=beside.name)
