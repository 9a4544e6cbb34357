"""Arrays of NumPy that compiled functions of JAX are given: copies of a few, while a window records.

JAX copies them to the device, and once the call is over nothing has them any more. It calls one hook after each call of a function that
it has compiled (with which it looks for NaNs): where it is free, it is ours for a few calls.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

_MOST_CALLS = 512  # that are heard of in a window: each takes microseconds
_MOST_ARRAYS = 64
_MOST_PARTS = 64  # of a container that a function is given
_MOST_ARRAY_BYTES = 1 << 20  # to copy as much takes about 0.1 ms
_MOST_BYTES = 16 << 20


class GivenArrays:
    """Of one window; `wanted` says which arrays are copied."""

    def __init__(self, wanted: Callable[[Any], bool]) -> None:
        self._wanted = wanted
        self._calls = 0
        self._bytes = 0
        self._arrays: list[Any] = []
        self._hook: Callable[..., None] = self._note
        self._hooks: Any = None
        self._kind: Any = None

    def open(self) -> None:
        """Hear of calls from now on; of none, if JAX is another version, or the hook is taken."""
        try:
            hooks = sys.modules["jax._src.api"]._post_hook_state
            self._kind = sys.modules["numpy"].ndarray
            if self._is_full() or hooks.get_global() is not None:
                return
            hooks.set_global(self._hook)
            self._hooks = hooks
        except Exception:  # half imported, or another version
            return

    def close(self) -> None:
        """Hear of nothing more."""
        hooks, self._hooks = self._hooks, None
        try:
            if hooks is not None and hooks.get_global() is self._hook:
                hooks.set_global(None)
        except Exception:  # the interpreter ends
            return

    def taken(self) -> list[Any]:
        """The copies, and none of them again."""
        self.close()
        arrays, self._arrays = self._arrays, []
        return arrays

    def _is_full(self) -> bool:
        return self._calls >= _MOST_CALLS or len(self._arrays) >= _MOST_ARRAYS or self._bytes >= _MOST_BYTES

    def _note(self, function: Any, arguments: Any, options: Any, results: Any) -> None:
        """A compiled function was given these; whatever this raises would reach the job."""
        try:
            self._calls += 1
            for each in _arrays_in((*arguments, *(options or {}).values()), self._kind):
                if each.nbytes <= _MOST_ARRAY_BYTES and self._wanted(each) and not self._is_full():
                    self._bytes += each.nbytes
                    self._arrays.append(each.copy())
            if self._is_full():
                self.close()
        except Exception:  # what does not tell: nothing is known of it
            return


def _arrays_in(given: tuple[Any, ...], kind: Any) -> Iterator[Any]:
    """Arrays, and those in tuples, lists and dictionaries, as batches are."""
    for each in given:
        if type(each) is kind:
            yield each
        elif isinstance(each, (tuple, list, dict)):
            parts = each.values() if isinstance(each, dict) else each
            yield from (part for part in islice(parts, _MOST_PARTS) if type(part) is kind)
