"""The frameworks record for one profiler at a time, and one that the job starts itself comes first: ours then lets go.

Their functions that start and stop a profiler are wrapped, and do what they did; before the job starts one, ours has stopped.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from stepscope.capture.process.on_import import after_import

_turns: dict[str, Turn] = {}
_others: set[str] = set()
_is_ours = False
_is_watching = False


class AnotherProfiler(RuntimeError):
    """Whose turn it is not."""

    def __init__(self, framework: str) -> None:
        super().__init__(f"another profiler of {framework} is running, which the job started itself")


class Turn:
    """Of one collector: from `take` until it is released, or the job wants to record."""

    def __init__(self, framework: str, let_go: Callable[[], None]) -> None:
        self._framework = framework
        self._let_go = let_go
        self._was_lost = False

    def take(self) -> None:
        """Ours, unless the job is recording."""
        if self._framework in _others:
            raise AnotherProfiler(self._framework)
        _turns[self._framework] = self

    def check(self) -> None:
        """Raises if the job has taken over since."""
        if self._was_lost:
            raise AnotherProfiler(self._framework)

    def release(self) -> None:
        """No longer ours."""
        if _turns.get(self._framework) is self:
            del _turns[self._framework]

    def lose(self) -> None:
        """The job starts a profiler now. It must not notice us, whatever fails."""
        self.release()
        self._was_lost = True
        try:
            with ours():
                self._let_go()
        except Exception:
            pass


def unmarked(*_name: Any, **_options: Any) -> AbstractContextManager[None]:
    """In the place of a step's marker, once the profile is the job's."""
    return nullcontext()


@contextmanager
def ours() -> Iterator[None]:
    """What is started and stopped inside is our own."""
    global _is_ours
    before, _is_ours = _is_ours, True
    try:
        yield
    finally:
        _is_ours = before


def watch() -> None:
    """From now on, in the frameworks that are imported and in those that will be."""
    global _is_watching
    if not _is_watching:
        _is_watching = True
        after_import("torch.autograd.profiler", _watch_torch)
        after_import("tensorflow.python.profiler.profiler_v2", _watch_tensorflow)
        after_import("jax._src.profiler", _watch_jax)


def _watch_torch(module: Any) -> None:
    for name in ("_prepare_profiler", "_enable_profiler"):
        setattr(module, name, _started("torch", getattr(module, name)))
    module._disable_profiler = _stopped("torch", module._disable_profiler)


def _watch_tensorflow(module: Any) -> None:
    start, stop = _started("tensorflow", module.start), _stopped("tensorflow", module.stop)
    public = getattr(getattr(sys.modules.get("tensorflow"), "profiler", None), "experimental", None)
    for place in (module, public):
        if place is not None:
            place.start, place.stop = start, stop


def _watch_jax(module: Any) -> None:
    start, stop = _started("jax", module.start_trace), _stopped("jax", module.stop_trace)
    public: Any = sys.modules.get("jax.profiler")
    for place in (module, public):
        if place is not None:
            place.start_trace, place.stop_trace = start, stop


def _started(framework: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def start(*arguments: Any, **options: Any) -> Any:
        if _is_ours:
            return function(*arguments, **options)
        turn = _turns.get(framework)
        if turn is not None:
            turn.lose()
        result = function(*arguments, **options)
        _others.add(framework)
        return result

    return start


def _stopped(framework: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def stop(*arguments: Any, **options: Any) -> Any:
        if not _is_ours:
            _others.discard(framework)
        return function(*arguments, **options)

    return stop
