"""How each framework names a piece of work: while it runs, and while it is being traced into a graph.

Every question here is asked on every annotation, so each answer is one call into the framework's own C code.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

Scope = AbstractContextManager[Any]


@dataclass(frozen=True)
class Framework:
    """One framework's answers."""

    name: str
    is_recording: Callable[[], object]
    is_tracing: Callable[[], object]
    span: Callable[[str], Scope]
    scope: Callable[[str], Scope]


def _never() -> bool:
    return False


def _torch(torch: Any) -> Framework | None:
    """Tracing is not asked here: `annotate` itself must see it, in code that dynamo can follow."""
    if not hasattr(torch, "profiler") or not hasattr(torch.autograd, "_profiler_enabled"):
        return None  # still being imported
    record = torch.profiler.record_function
    return Framework("torch", torch.autograd._profiler_enabled, _never, record, record)


def _tensorflow(tf: Any) -> Framework | None:
    context = sys.modules.get("tensorflow.python.eager.context")
    trace = sys.modules.get("tensorflow.python.profiler.trace")
    ops = sys.modules.get("tensorflow.python.framework.ops")
    if context is None or trace is None or ops is None or not hasattr(tf, "name_scope"):
        return None
    graphs = ops._default_graph_stack
    is_tracing = (lambda: graphs.stack) if context.executing_eagerly() else _always
    # A function since TensorFlow 2.16; before, a flag that the profiler sets.
    is_recording = trace.enabled if callable(trace.enabled) else lambda: trace.enabled
    return Framework(
        "tensorflow", is_recording, is_tracing, trace.Trace, lambda name: tf.name_scope(fit(name))
    )


def _always() -> bool:
    return True


def _jax(jax: Any) -> Framework | None:
    profiler = sys.modules.get("jax.profiler") or getattr(jax, "profiler", None)
    core = sys.modules.get("jax._src.core")
    if profiler is None or core is None or not hasattr(jax, "named_scope"):
        return None
    span = profiler.TraceAnnotation
    return Framework("jax", span.is_enabled, _jax_tracing(core), span, jax.named_scope)


def _jax_tracing(core: Any) -> Callable[[], object]:
    """The trace that is not the one of plain evaluation; older versions have only a slower question."""
    try:
        state, plain = core.trace_state_strong_ref, core.eval_trace
        _ = state.value
        return lambda: state.value is not plain
    except AttributeError:
        clean = core.trace_state_clean
        return lambda: not clean()


_MAKERS = (("torch", _torch), ("tensorflow", _tensorflow), ("jax", _jax))
loaded: tuple[Framework, ...] = ()
# All questions of all frameworks: while every answer is no, an annotation has nothing to do.
questions: tuple[Callable[[], object], ...] = ()
modules_seen = 0


def look_again() -> None:
    """Something was imported: perhaps a framework."""
    global loaded, questions, modules_seen
    modules_seen = len(sys.modules)
    found = [_made(name, make) for name, make in _MAKERS]
    loaded = tuple(each for each in found if each is not None)
    asked = [ask for each in loaded for ask in (each.is_recording, each.is_tracing)]
    questions = tuple(ask for ask in asked if ask is not _never)


def _made(name: str, make: Callable[[Any], Framework | None]) -> Framework | None:
    module = sys.modules.get(name)
    if module is None:
        return None
    known = next((each for each in loaded if each.name == name), None)
    if known is not None:
        return known
    try:
        made = make(module)
        if made is not None:  # asked in the job's own code from now on, where nothing may be raised
            made.is_recording(), made.is_tracing()
        return made
    except Exception:  # half imported, or of a version that calls things otherwise
        return None


_UNFIT = re.compile(r"[^A-Za-z0-9_.\\/>-]")


def fit(name: str) -> str:
    """A name that TensorFlow accepts for a scope."""
    text = _UNFIT.sub("_", name)
    return text if re.match(r"[A-Za-z0-9.]", text) else f"scope{text}"
