"""Marks the wait for data: a loader whose `next` is an annotation that the report knows as input."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from stepscope.capture.annotate import Annotation

NAME = "input_pipeline"
Batch = TypeVar("Batch")


class Input(Generic[Batch]):
    """The loader itself, in everything but the time it takes: length and attributes are those of the loader."""

    def __init__(self, loader: Iterable[Batch], waited: Callable[[int], None]) -> None:
        self._loader = loader
        self._waited = waited

    def __iter__(self) -> Iterator[Batch]:
        batches = iter(self._loader)
        while True:
            start = time.perf_counter_ns()
            with Annotation(NAME):
                try:
                    batch = next(batches)
                except StopIteration:
                    return
            self._waited(time.perf_counter_ns() - start)
            yield batch

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
