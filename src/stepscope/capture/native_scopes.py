"""How each framework names a stretch of work: while it runs, and while it is being traced into a graph.

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
    is_recording: Callable[[], bool]
    is_tracing: Callable[[], bool]
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
    if context is None or trace is None or not hasattr(tf, "name_scope"):
        return None
    eager: Callable[[], bool] = context.executing_eagerly

    def is_graph() -> bool:
        return not eager()

    return Framework(
        "tensorflow", trace.enabled, is_graph, trace.Trace, lambda name: tf.name_scope(fit(name))
    )


def _jax(jax: Any) -> Framework | None:
    profiler = sys.modules.get("jax.profiler") or getattr(jax, "profiler", None)
    core = sys.modules.get("jax._src.core")
    if profiler is None or core is None or not hasattr(jax, "named_scope"):
        return None
    span = profiler.TraceAnnotation
    context = getattr(core, "trace_ctx", None)
    top: Callable[[], bool] | None = getattr(context, "is_top_level", None)
    clean = top or getattr(core, "trace_state_clean", None) or (lambda: True)
    return Framework("jax", span.is_enabled, lambda: not clean(), span, jax.named_scope)


_MAKERS = (("torch", _torch), ("tensorflow", _tensorflow), ("jax", _jax))
_loaded: tuple[Framework, ...] = ()
_modules_seen = 0


def frameworks() -> tuple[Framework, ...]:
    """Those that are imported by now. Looked for again whenever anything was imported."""
    global _loaded, _modules_seen
    if len(sys.modules) != _modules_seen:
        _modules_seen = len(sys.modules)
        _loaded = tuple(found for name, make in _MAKERS if (found := _made(name, make)) is not None)
    return _loaded


def _made(name: str, make: Callable[[Any], Framework | None]) -> Framework | None:
    module = sys.modules.get(name)
    if module is None:
        return None
    known = next((each for each in _loaded if each.name == name), None)
    if known is not None:
        return known
    try:
        return make(module)
    except Exception:  # half imported, or of a version that calls things otherwise
        return None


_UNFIT = re.compile(r"[^A-Za-z0-9_.\\/>-]")


def fit(name: str) -> str:
    """A name that TensorFlow accepts for a scope."""
    text = _UNFIT.sub("_", name)
    return text if re.match(r"[A-Za-z0-9.]", text) else f"scope{text}"
