"""Names for parts of a step: `annotate`, `op` and `step`. They cost nothing measurable while nothing records."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from sys import modules
from threading import get_ident
from time import perf_counter_ns
from types import TracebackType
from typing import Any, TypeVar

from stepscope.capture.annotate import native_scopes
from stepscope.capture.annotate.native_scopes import Framework
from stepscope.capture.process import active, host_spans
from stepscope.capture.process.troubles import tell
from stepscope.ring_layout import ANNOTATION

Function = TypeVar("Function", bound=Callable[..., Any])
Plain = TypeVar("Plain", bound=Callable[..., Any])


def as_it_is(function: Plain) -> Plain:
    """Make AutoGraph, which rewrites all that a tf.function calls, leave the function alone."""
    function.autograph_info__ = {}  # type: ignore[attr-defined]
    return function


# Whether dynamo is following this very code, which must then be code that it can follow. Torch's own function once torch is
# there; until then `bool`, which says no at the speed of C.
_is_compiling: Callable[[], bool] = bool
_torch_span: Any = None


def look_for_torch() -> None:
    """Learn how torch says that it is compiling."""
    global _is_compiling, _torch_span
    torch = sys.modules.get("torch")
    compiler: Any = getattr(torch, "compiler", None)
    if torch is not None and hasattr(compiler, "is_dynamo_compiling") and hasattr(torch, "profiler"):
        _torch_span = torch.profiler.record_function
        _is_compiling = compiler.is_dynamo_compiling


look_for_torch()


@as_it_is
def is_compiling() -> bool:
    """Whether dynamo is following the code that asks."""
    if _is_compiling is bool and "torch" in modules:
        look_for_torch()
    return _is_compiling()


@as_it_is
def annotate(name: str) -> Named:
    """Name what happens inside: `with annotate("forward"): …`, or `@annotate("forward")` on a function.

    PyTorch sees a `record_function`, TensorFlow a `Trace` and a name scope, JAX a `TraceAnnotation` and a `named_scope`.
    """
    if _is_compiling is bool and "torch" in modules:
        look_for_torch()
    if _is_compiling():
        # What dynamo knows: it keeps or drops the span as it is told to, and says so once.
        return _torch_span(name)  # type: ignore[no-any-return]
    return _names.get(name) or _named(name)


def is_wanted() -> bool:
    """Whether anyone records, or a graph is being traced."""
    if len(modules) != native_scopes.modules_seen:
        native_scopes.look_again()
    for ask in native_scopes.questions:
        if ask():
            return True
    return active.is_timing


class Named:
    """What `annotate` gives, the same for every use of a name: while nothing records, nothing is made and nothing kept.

    May be entered again at any time, also while it is open, and by several threads.
    """

    __slots__ = ("_name", "_open")

    def __init__(self, name: str) -> None:
        self._name = name
        self._open: dict[int, list[Annotation]] = {}

    def __enter__(self) -> Named:
        # `is_wanted`, written out: one call less is a tenth of the whole.
        if len(modules) != native_scopes.modules_seen:
            native_scopes.look_again()
        for ask in native_scopes.questions:
            if ask():
                self._begin()
                return self
        if active.is_timing:
            self._begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._open:
            self._end()

    def __call__(self, function: Function) -> Function:
        name = self._name

        @functools.wraps(function)
        def named(*arguments: Any, **options: Any) -> Any:
            if is_compiling():
                return function(*arguments, **options)
            with Annotation(name):
                return function(*arguments, **options)

        return named  # type: ignore[return-value]

    def _begin(self) -> None:
        one = Annotation(self._name)
        self._open.setdefault(get_ident(), []).append(one)
        one._open()

    def _end(self) -> None:
        """The innermost of this thread; none where recording began in between."""
        thread = get_ident()
        mine = self._open.get(thread)
        if mine:
            one = mine.pop()
            if not mine:
                del self._open[thread]
            one._close()


_names: dict[str, Named] = {}
# Names that are made anew for each step would fill the memory.
_MOST_NAMES = 1000


def _named(name: str) -> Named:
    made = Named(name)
    if len(_names) < _MOST_NAMES:
        return _names.setdefault(name, made)
    return made


class Annotation:
    """One piece of work under its name, if a window is open."""

    __slots__ = ("_in_ring", "_name", "_opened", "_start")
    kind = "annotation"
    _kind_in_ring = ANNOTATION

    def __init__(self, name: str) -> None:
        self._name = name
        self._opened: list[AbstractContextManager[Any]] | None = None
        self._start = self._in_ring = 0

    def __enter__(self) -> Annotation:
        if is_wanted():
            self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened is not None:
            self._close()

    def _open(self) -> None:
        self._opened = []
        now, ring = perf_counter_ns(), active.ring
        if ring is not None:  # before the frameworks' spans, in which no call of ours is to be seen
            self._in_ring = ring.begin(self._kind_in_ring, self._name, now)
        try:
            for framework in native_scopes.loaded:
                self._open_in(framework)
            if active.nvtx is not None:
                self._enter(active.nvtx(self._name))
        except Exception as error:
            tell_once(f"the annotation {self._name!r} could not be made: {type(error).__name__}: {error}")
        self._start = perf_counter_ns() if self._opened else now

    def _open_in(self, framework: Framework) -> None:
        if framework.is_tracing():
            self._enter(framework.scope(self._name))
        if framework.is_recording():
            self._enter(framework.span(self._name))

    def _enter(self, scope: AbstractContextManager[Any]) -> None:
        scope.__enter__()
        # Not `append`: a call in here would be in the user's profile.
        self._opened = [*(self._opened or ()), scope]

    def _close(self) -> None:
        opened, self._opened = self._opened or [], None
        now = perf_counter_ns()
        recorder = host_spans.current  # another thread may close the window meanwhile
        if recorder is not None:
            recorder.add(self._name, self.kind, self._start, now)
        if active.is_timing:
            active.note_phase(self._name, now - self._start)
        for scope in reversed(opened):
            try:
                scope.__exit__(None, None, None)
            except Exception as error:
                tell_once(
                    f"the annotation {self._name!r} could not be ended: {type(error).__name__}: {error}"
                )
        ring = active.ring
        if ring is not None and self._in_ring:
            ring.end(self._in_ring, now)


_told: set[str] = set()


def tell_once(text: str) -> None:
    """A warning, once for each text."""
    if text not in _told and len(_told) < 100:
        _told.add(text)
        tell(text)


@as_it_is
def step() -> None:
    """End the current step, like `step()` of the running Profiler, for code without access to it."""
    if is_compiling():
        return
    if active.profiler is not None:
        active.profiler.step()
    elif active.first_step is not None:
        active.first_step()
