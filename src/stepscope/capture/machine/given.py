"""Arrays that compiled functions of JAX are given: a few of them, while a window records, as copies where they are NumPy's.

JAX copies those of NumPy to the device, and once the call is over nothing has them any more; nor has it most batches that were sent before
the call. It calls one hook after each call of a function that it has compiled (with which it looks for NaNs): where it is free, it is
ours for a few calls.
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
    """Of one window; `wanted` says which arrays are taken."""

    def __init__(self, wanted: Callable[[Any], bool]) -> None:
        self._wanted = wanted
        self._calls = 0
        self._bytes = 0
        self._arrays: list[Any] = []
        self._hook: Callable[..., None] = self._note
        self._hooks: Any = None
        self._kinds: tuple[Any, Any] = (None, None)  # of arrays: NumPy's and JAX's

    def open(self) -> None:
        """Hear of calls from now on; of none, if JAX is another version, or the hook is taken."""
        try:
            hooks = sys.modules["jax._src.api"]._post_hook_state
            of_jax = getattr(sys.modules.get("jax._src.array"), "ArrayImpl", None)
            self._kinds = sys.modules["numpy"].ndarray, of_jax
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
        """The copies and the arrays of JAX, and none of them again."""
        self.close()
        arrays, self._arrays = self._arrays, []
        return arrays

    def _is_full(self) -> bool:
        return self._calls >= _MOST_CALLS or len(self._arrays) >= _MOST_ARRAYS or self._bytes >= _MOST_BYTES

    def _note(self, function: Any, arguments: Any, options: Any, results: Any) -> None:
        """A compiled function was given these; whatever this raises would reach the job."""
        try:
            self._calls += 1
            for each in _arrays_in((*arguments, *(options or {}).values()), self._kinds):
                if each.nbytes <= _MOST_ARRAY_BYTES and self._wanted(each) and not self._is_full():
                    self._take(each)
            if self._is_full():
                self.close()
        except Exception:  # what does not tell: nothing is known of it
            return

    def _take(self, array: Any) -> None:
        """A copy of what may change; what may not is taken once."""
        if type(array) is self._kinds[0]:
            array = array.copy()
        elif any(array is each for each in self._arrays):
            return
        self._bytes += array.nbytes
        self._arrays.append(array)


def _arrays_in(given: tuple[Any, ...], kinds: tuple[Any, Any]) -> Iterator[Any]:
    """Arrays, and those in tuples, lists and dictionaries, as batches are."""
    for each in given:
        if type(each) in kinds:
            yield each
        elif isinstance(each, (tuple, list, dict)):
            parts = each.values() if isinstance(each, dict) else each
            yield from (part for part in islice(parts, _MOST_PARTS) if type(part) in kinds)
