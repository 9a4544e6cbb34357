"""What must not reach the job: errors of our own threads, which Python would print on its stderr, and of what its loop calls."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])
_MOST_FAULTS = 20
_faults: list[tuple[str, BaseException]] = []


def guarded_thread(
    target: Callable[[], None], name: str, failed: Callable[[BaseException], None] | None = None
) -> threading.Thread | None:
    """A daemon that has started; None where the process may have no more. What it raises goes to `failed`, or is kept."""

    def run() -> None:
        try:
            target()
        except BaseException as error:
            try:
                (failed or keep)(error)
            except BaseException:  # whoever keeps the faults is at fault: nobody is left to tell
                return

    def keep(error: BaseException) -> None:
        if len(_faults) < _MOST_FAULTS:
            _faults.append((name, error))

    try:
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
    except RuntimeError:  # no more threads, or the interpreter is ending
        return None
    return thread


def taken_faults() -> list[tuple[str, BaseException]]:
    """The faults since the last time, with the names of their threads."""
    found = _faults[:]
    del _faults[: len(found)]
    return found


def guarded_method(method: Method) -> Method:
    """Nothing that fails in a Profiler's method reaches the loop; nor does anything happen in a forked child or inside itself."""

    @functools.wraps(method)
    def safe(self: Any, *arguments: Any, **options: Any) -> Any:
        if self._is_inert or self._is_busy:
            return None
        self._is_busy = True
        try:
            return method(self, *arguments, **options)
        except Exception as error:
            self._troubles.failed(f"Profiler.{method.__name__}", error)
            return None
        finally:
            self._is_busy = False

    return safe  # type: ignore[return-value]
