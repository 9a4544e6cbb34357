"""When a DataLoader of PyTorch starts worker processes, how long that takes, and how long the first batch is waited for.

Loaders without persistent workers start them for every epoch, which a window of a few steps may miss. Two moments are noted each
time that processes are started, and nothing for any other batch.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from stepscope.capture.process.on_import import after_import

# The last ones are kept: those around a window.
KEPT = 64
_MODULE = "torch.utils.data.dataloader"
_NEXT = "_next_data"


class LoaderStarts:
    """The starts of workers in the job's process, with the steps that they are in."""

    def __init__(self, number: Callable[[], int]) -> None:
        self._number = number
        self._rows: deque[dict[str, int]] = deque(maxlen=KEPT)

    def open(self) -> None:
        """Hear of starts from now on."""
        global _listener
        _listener = self
        after_import(_MODULE, _watch)

    def close(self) -> None:
        """Hear of none any more."""
        global _listener
        if _listener is self:
            _listener = None

    def started(self, workers: int, start_ns: int) -> dict[str, int]:
        """A loader has started its workers; the row, to which the wait for the first batch is added."""
        row = {"step": self._number(), "workers": workers, "start_ns": start_ns}
        self._rows.append(row)
        return row

    def rows(self) -> list[dict[str, int]]:
        """For the sidecar."""
        return [dict(row) for row in self._rows]


_listener: LoaderStarts | None = None


def _watch(module: Any) -> None:
    kind = module._MultiProcessingDataLoaderIter
    make = kind.__init__
    if getattr(make, "tells_stepscope", False):
        return

    def __init__(self: Any, *arguments: Any, **options: Any) -> None:
        began = perf_counter_ns()
        make(self, *arguments, **options)
        _tell(self, perf_counter_ns() - began)

    __init__.__doc__ = make.__doc__
    __init__.tells_stepscope = True  # type: ignore[attr-defined]
    kind.__init__ = __init__


def _tell(iterator: Any, start_ns: int) -> None:
    listener = _listener
    if listener is None:
        return
    try:
        _time_first_batch(iterator, listener.started(int(iterator._num_workers), start_ns))
    except Exception:  # another version of PyTorch
        pass


def _time_first_batch(iterator: Any, row: dict[str, int]) -> None:
    """Once: the iterator has its own method back before that is called.

    The iterator must not be kept alive by this, since its workers end with it.
    """
    following = getattr(type(iterator), _NEXT, None)
    if following is None or _NEXT in vars(iterator):
        return
    me = weakref.ref(iterator)

    def first() -> Any:
        found = me()
        vars(found).pop(_NEXT, None)
        began = perf_counter_ns()
        try:
            return following(found)
        finally:
            row["wait_ns"] = perf_counter_ns() - began

    setattr(iterator, _NEXT, first)
