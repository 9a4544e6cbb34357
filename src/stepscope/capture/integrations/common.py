"""What the integrations share: base classes that may be missing, and the Profiler with its usual schedule."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from stepscope.capture.annotate.annotate import Annotation
from stepscope.capture.profiler import Profiler
from stepscope.capture.schedule import schedule
from stepscope.errors import StepscopeError

# Past compilation and the first epochs of caches, and short: what a loop that nobody bounded can afford.
SCHEDULE = schedule(skip=10, warmup=2, active=5)


class FrameworkMissing(StepscopeError, ImportError):
    """An integration is used without its framework."""


def base(places: Sequence[str], name: str, framework: str, install: str) -> Any:
    """The class to derive from: of the first of these modules that is imported, else that can be; else one that says so."""
    for place in sorted(places, key=lambda each: each not in sys.modules):
        try:
            return getattr(import_module(place), name)
        except (ImportError, AttributeError):
            continue

    class Missing:
        def __init__(self, *_arguments: Any, **_options: Any) -> None:
            what = type(self).__name__
            raise FrameworkMissing(f"{what} needs {framework}, which is not installed.", fix=install)

    return Missing


def profiler(folder: str | os.PathLike[str], options: dict[str, Any]) -> Profiler:
    """As the user wants it, with a schedule if none was given."""
    return Profiler(folder, **({"schedule": SCHEDULE} | options))


class Spans:
    """Annotations that one callback opens and another closes."""

    def __init__(self) -> None:
        self._open: dict[str, list[Annotation]] = {}

    def begin(self, key: str, name: str | None = None) -> None:
        """Something begins."""
        span = Annotation(name or key)
        span.__enter__()
        self._open.setdefault(key, []).append(span)

    def end(self, key: str) -> None:
        """It is over; nothing happens if it never began."""
        opened = self._open.get(key)
        if opened:
            opened.pop().__exit__(None, None, None)

    def end_all(self) -> None:
        """The loop was left in the middle."""
        for key in list(self._open):
            while self._open[key]:
                self.end(key)
