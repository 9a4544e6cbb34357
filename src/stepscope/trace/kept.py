"""Answers about a trace that many ask for, kept as long as the trace is."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from stepscope.trace.trace import Trace

T = TypeVar("T")


def kept_with_trace(answer: Callable[[Trace], T]) -> Callable[[Trace], T]:
    """The same function, which computes its answer once for each trace. Callers must not change what it returns."""
    known: WeakKeyDictionary[Trace, T] = WeakKeyDictionary()

    @wraps(answer)
    def ask(trace: Trace) -> T:
        found = known.get(trace)
        if found is None:
            found = known[trace] = answer(trace)
        return found

    return ask
