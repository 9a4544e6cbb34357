"""Local processes, spawned and never forked: Polars' threads do not survive a fork. One Polars thread in each.

A process that dies (killed for its memory, mostly) takes the others of its pool with it; what was not done yet is begun again, at
last one by one, so that only the file that kills is given up. The pool stays for the later stages, in which each process takes
as many ranks at once as a node of the tree.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.cluster.place import Progress, in_groups, tree
from stepscope.cluster.work import Answer, Task, stay, travelling
from stepscope.errors import StepscopeError

TRIES = 3
_ONE_THREAD = "POLARS_MAX_THREADS"


class Processes:
    """Some processes of this machine."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = max(1, workers or os.cpu_count() or 1)
        self._spilled = tempfile.TemporaryDirectory(prefix="stepscope-ranks-", ignore_cleanup_errors=True)
        self._pool: ProcessPoolExecutor | None = None
        self._threads = os.environ.get(_ONE_THREAD)

    def keep(
        self, function: Callable[[Task], Answer], tasks: Sequence[Task], progress: Progress
    ) -> list[Any]:
        """Side by side; each answer comes back without the calls of its rank, which are in a file."""
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
        futures: list[Future[Answer]] = []
        try:
            futures = [self._opened().submit(function, task) for task in tasks]
        except BrokenProcessPool:
            self._end_pool()
        for future in as_completed(futures):
            try:
                yield future.result()
            except (BrokenProcessPool, CancelledError):
                self._end_pool()

    def answers(self, kept: Sequence[Any]) -> list[Answer]:
        """They are here."""
        return [travelling(each) for each in kept]

    def ask(self, function: Callable[..., Any], kept: Sequence[Any], *common: Any) -> list[Any]:
        """Some ranks at a time in each process."""
        return [found for group in self._groups(_each, (function,), kept, common) for found in group]

    def reduced(
        self, function: Callable[..., Any], join: Callable[..., Any], kept: Sequence[Any], *common: Any
    ) -> Any:
        """The leaves of the tree in the processes, the rest of it here."""
        return tree(join, self._groups(_joined, (function, join), kept, common), above_leaves=True)

    def _groups(
        self,
        work: Callable[..., Any],
        functions: tuple[Callable[..., Any], ...],
        kept: Sequence[Any],
        common: Sequence[Any],
    ) -> Iterator[Any]:
        """What the work gives for each few ranks, in their order. Few of them take less time than to send them away."""
        groups = [[stay(each) for each in group] for group in in_groups(kept)]
        if self._pool is None or self.workers == 1 or len(groups) == 1:
            for group in groups:
                yield work(*functions, group, common)
            return
        stored = [self._stored(each) for each in common]
        try:
            futures = [self._pool.submit(work, *functions, group, stored) for group in groups]
        except BrokenProcessPool:
            futures = []
        for at, group in enumerate(groups):
            try:
                yield futures[at].result()
            except (BrokenProcessPool, CancelledError, IndexError):
                yield work(*functions, group, common)

    def _stored(self, value: Any) -> Any:
        """A table as a file, which is written once and not sent with each question."""
        if not isinstance(value, pl.DataFrame):
            return value
        handle, name = tempfile.mkstemp(suffix=".arrow", dir=self._spilled.name)
        os.close(handle)
        value.write_ipc(name, compression="uncompressed")
        return _Table(name)

    def _opened(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # Is read when Polars is imported, which in a new process is after this.
            os.environ[_ONE_THREAD] = "1"
            spawn = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.workers, mp_context=spawn)
        return self._pool

    def _end_pool(self) -> None:
        if self._pool is None:
            return
        self._pool.shutdown(cancel_futures=True)
        self._pool = None
        if self._threads is None:
            os.environ.pop(_ONE_THREAD, None)
        else:
            os.environ[_ONE_THREAD] = self._threads

    def close(self) -> None:
        """End the processes and remove the files."""
        self._end_pool()
        self._spilled.cleanup()


@dataclass(frozen=True)
class _Table:
    """Where a table is."""

    path: str


def _loaded(common: Sequence[Any]) -> list[Any]:
    return [pl.read_ipc(Path(each.path)) if isinstance(each, _Table) else each for each in common]


def _each(function: Callable[..., Any], group: Sequence[Any], common: Sequence[Any]) -> list[Any]:
    told = _loaded(common)
    return [function(each, *told) for each in group]


def _joined(
    function: Callable[..., Any], join: Callable[..., Any], group: Sequence[Any], common: Sequence[Any]
) -> Any:
    return join(_each(function, group, common))


def _given_up(task: Task) -> Answer:
    what = f"{task.path} ended the process that read it, {TRIES} times."
    return Answer(
        task,
        error=StepscopeError(
            what, fix="It may want more memory than there is: record fewer steps, or load it alone."
        ),
    )
