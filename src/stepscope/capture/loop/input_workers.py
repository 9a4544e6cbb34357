"""What the worker processes of a PyTorch DataLoader do: each times its batches and looks at its own stack meanwhile.

The loader is handed to its workers with one function more to run when they start, and gets its own back at once. Workers look for
a file in a folder of ours before each batch: only while it is there do they measure, and leave the result next to it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

from stepscope.capture.process.guarded import guarded_thread
from stepscope.capture.process.stacks import read_stack
from stepscope.capture.process.troubles import tell

_ON = "on"
_SAMPLE_SECONDS = 0.002
_MOST_STAGES = 200
_DEEPEST = 1_000


class Workers:
    """The workers of one loader, seen from the loop."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="stepscope-input-"))

    def on(self) -> None:
        """They begin to measure."""
        for path in self.folder.glob("*.json"):
            path.unlink(missing_ok=True)
        (self.folder / _ON).touch()

    def off(self) -> list[dict[str, Any]]:
        """They stop; what each found."""
        (self.folder / _ON).unlink(missing_ok=True)
        return [json.loads(path.read_text()) for path in sorted(self.folder.glob("worker-*.json"))]

    def close(self) -> None:
        """Nothing is left of the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


def iterate(loader: Any, make: Callable[[Any], Any] = iter) -> tuple[Any, Workers | None]:
    """The loader's iterator, and its workers where it has any that can be watched and are not yet."""
    data = sys.modules.get("torch.utils.data")
    if data is None or not isinstance(loader, data.DataLoader) or not loader.num_workers:
        return make(loader), None
    own = loader.worker_init_fn
    if isinstance(own, InWorker):
        return make(loader), None
    try:
        workers = Workers()
    except OSError:  # no folder for temporary files
        return make(loader), None
    loader.worker_init_fn = InWorker(str(workers.folder), own)
    try:
        return make(loader), workers
    finally:
        loader.worker_init_fn = own


class InWorker:
    """Runs when a worker starts, after the user's own function. Goes to the worker by fork or by pickle."""

    def __init__(self, folder: str, own: Callable[[int], None] | None) -> None:
        self._folder = folder
        self._own = own

    def __call__(self, number: int) -> None:
        if self._own is not None:
            self._own(number)
        try:
            _measure_fetchers(_Measured(self._folder, number))
        except Exception as error:  # another version of PyTorch: the worker works unmeasured
            tell(f"the workers of the DataLoader could not be watched: {type(error).__name__}: {error}")


class _Measured:
    """The figures of one worker."""

    def __init__(self, folder: str, number: int) -> None:
        self._folder, self._number = folder, number
        self._marker = os.path.join(folder, _ON)  # noqa: PTH118 (asked before each batch)
        self._fetches = [0, 0]
        self._collates = [0, 0]
        self._stages: dict[str, list[float]] = {}
        self._sampler: threading.Thread | None = None
        self._watched: CodeType | None = None
        self._busy = threading.Event()
        self._was_on = False

    def is_on(self) -> bool:
        """Whether a window is open; figures of an earlier one are forgotten."""
        on = os.path.exists(self._marker)  # noqa: PTH110
        if on and not self._was_on:
            self._fetches, self._collates, self._stages = [0, 0], [0, 0], {}
        self._was_on = on
        return on

    def fetched(self, fetch: Callable[..., Any], *arguments: Any) -> Any:
        """One batch, measured."""
        if not self.is_on():
            return fetch(*arguments)
        self._sample()
        self._busy.set()
        start = time.perf_counter_ns()
        try:
            return fetch(*arguments)
        finally:
            self._busy.clear()
            _add(self._fetches, time.perf_counter_ns() - start)
            self._write()

    def collated(self, collate: Callable[[Any], Any], items: Any) -> Any:
        """Items put together, measured."""
        start = time.perf_counter_ns()
        try:
            return collate(items)
        finally:
            _add(self._collates, time.perf_counter_ns() - start)

    def _sample(self) -> None:
        if self._sampler is None:
            me = threading.get_ident()
            self._sampler = guarded_thread(lambda: self._look(me), "stepscope-input")

    def _look(self, thread: int) -> None:
        last = time.perf_counter_ns()
        while True:
            self._busy.wait()
            time.sleep(_SAMPLE_SECONDS)
            now = time.perf_counter_ns()
            passed, last = min(now - last, 50_000_000), now
            frame = sys._current_frames().get(thread)
            stack = read_stack(frame, _DEEPEST) if frame is not None else []
            del frame
            if self._busy.is_set():
                self._seen(stack, passed)

    def _seen(self, stack: list[tuple[CodeType, dict[str, Any]]], passed: int) -> None:
        """The functions between the batch and the innermost one; each counts once."""
        fetching = [code is _Measured.fetched.__code__ for code, _ in stack]
        if True not in fetching:
            return
        names = [
            f"{code.co_filename}({code.co_firstlineno}): {code.co_name}"
            for code, known in stack[: fetching.index(True)]
            if known.get("__name__") != __name__
        ]
        if not names:
            return
        for name in dict.fromkeys(names):
            if name in self._stages or len(self._stages) < _MOST_STAGES:
                row = self._stages.setdefault(name, [0, 0])
                row[0] += passed
                row[1] += passed if name == names[0] else 0

    def _write(self) -> None:
        found = {
            "worker": self._number,
            "pid": os.getpid(),
            "batches": self._fetches[0],
            "fetch_ns": self._fetches[1],
            "collate_ns": self._collates[1],
            "stages": [{"name": n, "total_ns": t, "self_ns": s} for n, (t, s) in list(self._stages.items())],
        }
        path = Path(self._folder, f"worker-{self._number}.json")
        try:
            draft = path.with_suffix(".new")
            draft.write_text(json.dumps(found))
            draft.replace(path)
        except OSError:  # the loop is over and its folder gone
            pass


def _add(row: list[int], duration_ns: int) -> None:
    row[0] += 1
    row[1] += duration_ns


def _measure_fetchers(measured: _Measured) -> None:
    """In a worker process, which has these classes to itself."""
    from torch.utils.data._utils import fetch as fetchers

    for kind in (fetchers._MapDatasetFetcher, fetchers._IterableDatasetFetcher):
        own_fetch, own_init = kind.fetch, kind.__init__

        def timed(self: Any, index: Any, own: Any = own_fetch) -> Any:
            return measured.fetched(own, self, index)

        def made(self: Any, *arguments: Any, own: Any = own_init, **options: Any) -> None:
            own(self, *arguments, **options)
            collate = self.collate_fn
            self.collate_fn = lambda items: measured.collated(collate, items)

        kind.fetch, kind.__init__ = timed, made
