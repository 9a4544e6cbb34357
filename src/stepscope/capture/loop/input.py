"""Marks the wait for data: a loader whose `next` is an annotation that the report knows as input."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from stepscope.capture.annotate.annotate import Annotation
from stepscope.capture.loop.input_workers import Workers, iterate

NAME = "input_pipeline"
Batch = TypeVar("Batch")


class Waits:
    """What the loop waited for while a window was open, and what the loaders' worker processes did meanwhile."""

    def __init__(self) -> None:
        self.is_open = False
        self._batches = 0
        self._wait_ns = 0
        self._workers: list[Workers] = []

    def open(self) -> None:
        """A window begins."""
        self.is_open, self._batches, self._wait_ns = True, 0, 0
        for workers in self._workers:
            workers.on()

    def close(self) -> dict[str, Any]:
        """It ends; for the sidecar."""
        self.is_open = False
        told = [row for workers in self._workers for row in workers.off()]
        return {"batches": self._batches, "wait_ns": self._wait_ns, "workers": told}

    def waited(self, duration_ns: int) -> None:
        """One batch came."""
        if self.is_open:
            self._batches += 1
            self._wait_ns += duration_ns

    def begin(self, loader: Iterable[Batch]) -> tuple[Iterator[Batch], Workers | None]:
        """The loader's iterator, with its workers watched where it has any."""
        batches, workers = iterate(loader)
        if workers is not None:
            self.watch(workers)
        return batches, workers

    def watch(self, workers: Workers) -> None:
        """These workers measure while a window is open."""
        self._workers.append(workers)
        if self.is_open:
            workers.on()

    def end(self, workers: Workers) -> None:
        """The loader is exhausted. Persistent workers begin again with the next epoch, and are then new to us."""
        if not self.is_open:
            self._workers.remove(workers)
            workers.close()

    def forget(self) -> None:
        """The Profiler has stopped."""
        for workers in self._workers:
            workers.close()
        self._workers.clear()


class Input(Generic[Batch]):
    """The loader itself, in everything but the time it takes: length and attributes are those of the loader."""

    def __init__(self, loader: Iterable[Batch], waits: Waits) -> None:
        self._loader = loader
        self._waits = waits

    def __iter__(self) -> Iterator[Batch]:
        batches, workers = self._waits.begin(self._loader)
        try:
            while True:
                with Annotation(NAME):
                    start = time.perf_counter_ns()
                    try:
                        batch = next(batches)
                    except StopIteration:
                        return
                    took = time.perf_counter_ns() - start
                self._waits.waited(took)
                yield batch
        finally:
            if workers is not None:
                self._waits.end(workers)

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
