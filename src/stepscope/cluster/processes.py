"""Local processes, spawned and never forked: Polars' threads do not survive a fork. One Polars thread in each.

A process that dies (killed for its memory, mostly) takes the others of its pool with it; what was not done yet is begun again, at
last one by one, so that only the file that kills is given up.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from stepscope.cluster.place import Here, Progress, tree
from stepscope.cluster.work import Answer, Task, stay
from stepscope.errors import StepscopeError

TRIES = 3
_ONE_THREAD = "POLARS_MAX_THREADS"


class Processes:
    """So many processes of this machine."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = max(1, workers or os.cpu_count() or 1)
        self._spilled = tempfile.TemporaryDirectory(prefix="stepscope-ranks-", ignore_cleanup_errors=True)

    def keep(
        self, function: Callable[[Task], Answer], tasks: Sequence[Task], progress: Progress
    ) -> list[Any]:
        """Side by side; each answer comes back without the calls of its rank, which lie in a file."""
        waiting = {task.place: replace(task, spill=self._spilled.name) for task in tasks}
        done: dict[int, Answer] = {}
        for attempt in range(TRIES):
            # At last alone: then it is known whose fault it is.
            rounds = (
                [[task] for task in waiting.values()] if attempt == TRIES - 1 else [list(waiting.values())]
            )
            for group in rounds:
                for answer in self._round(function, group):
                    done[answer.task.place] = answer
                    waiting.pop(answer.task.place)
                    progress(len(done), len(tasks))
            if not waiting:
                break
        done |= {place: _given_up(task) for place, task in waiting.items()}
        return [done[task.place] for task in tasks]

    def _round(self, function: Callable[[Task], Answer], tasks: Sequence[Task]) -> Iterator[Answer]:
        """What can be done until a process dies."""
        if not tasks:
            return
        with _spawned(min(self.workers, len(tasks))) as pool:
            futures: list[Future[Answer]] = []
            try:
                futures = [pool.submit(function, task) for task in tasks]
            except BrokenProcessPool:
                pass
            for future in as_completed(futures):
                try:
                    yield future.result()
                except BrokenProcessPool:
                    continue

    def ask(self, function: Callable[..., Any], kept: Sequence[Any], *common: Any) -> list[Any]:
        """Here: what is left to do takes less time than to start a process."""
        return Here().ask(function, kept, *common)

    def reduced(
        self, function: Callable[..., Any], join: Callable[..., Any], kept: Sequence[Any], *common: Any
    ) -> Any:
        """Here, a few files at a time."""
        return tree(join, [function(stay(each), *common) for each in kept])

    def close(self) -> None:
        """Remove the files."""
        self._spilled.cleanup()


@contextmanager
def _spawned(workers: int) -> Iterator[ProcessPoolExecutor]:
    before = os.environ.get(_ONE_THREAD)
    os.environ[_ONE_THREAD] = "1"  # is read when Polars is imported, which in a new process is after this
    try:
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, mp_context=spawn) as pool:
            yield pool
    finally:
        if before is None:
            os.environ.pop(_ONE_THREAD, None)
        else:
            os.environ[_ONE_THREAD] = before


def _given_up(task: Task) -> Answer:
    what = f"{task.path} ended the process that read it, {TRIES} times."
    return Answer(
        task,
        error=StepscopeError(
            what, fix="It may want more memory than there is: record fewer steps, or load it alone."
        ),
    )
