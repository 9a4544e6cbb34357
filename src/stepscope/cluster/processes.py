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

from stepscope.cluster.place import Progress, in_groups
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

    def ask(
        self,
        function: Callable[..., Any],
        kept: Sequence[Any],
        *common: Any,
        beside: Sequence[Sequence[Any]] | None = None,
    ) -> list[Any]:
        """Some ranks at a time in each process."""
        if beside is None:
            return self._all(_each, (function,), kept, common)
        pairs = [(_staying(each), other) for each, other in zip(kept, beside, strict=True)]
        return self._all(_each_beside, (function,), pairs, common)

    def grouped(
        self,
        function: Callable[..., Any],
        join: Callable[..., Any],
        kept: Sequence[Any],
        members: Sequence[Sequence[int]],
        wanted: Sequence[Any],
        *common: Any,
    ) -> list[Any]:
        """Level by level, some nodes at a time in each process; every node is a file."""
        folder = self._spilled.name
        leaves = self._all(_store_each, (function, folder), kept, common)
        levels = [[leaves[at] for at in numbers] for numbers in members]
        is_first = True
        while is_first or any(len(level) > 1 for level in levels):
            nodes = [(at, group) for at, level in enumerate(levels) for group in in_groups(level)]
            tables = self._all(_join_each, (join, folder), [(group, wanted[at]) for at, group in nodes], ())
            levels = [[] for _ in members]
            for (at, _), table in zip(nodes, tables, strict=True):
                levels[at].append(table)
            is_first = False
        return [level[0] for level in levels]

    def _all(
        self,
        work: Callable[..., Any],
        first: tuple[Any, ...],
        kept: Sequence[Any],
        common: Sequence[Any],
    ) -> list[Any]:
        return [found for group in self._groups(work, first, kept, common) for found in group]

    def _groups(
        self,
        work: Callable[..., Any],
        first: tuple[Any, ...],
        kept: Sequence[Any],
        common: Sequence[Any],
    ) -> Iterator[Any]:
        """What the work gives for each few ranks, in their order. Few of them take less time than to send them away."""
        groups = [[_staying(each) for each in group] for group in in_groups(kept)]
        if self._pool is None or self.workers == 1 or len(groups) == 1:
            for group in groups:
                yield work(*first, group, common)
            return
        stored = [self._stored(each) for each in common]
        try:
            futures = [self._pool.submit(work, *first, group, stored) for group in groups]
        except BrokenProcessPool:
            futures = []
        for at, group in enumerate(groups):
            try:
                yield futures[at].result()
            except (BrokenProcessPool, CancelledError, IndexError):
                yield work(*first, group, common)

    def _stored(self, value: Any) -> Any:
        """A table as a file, which is written once and not sent with each question."""
        if not isinstance(value, pl.DataFrame):
            return value
        return _write(value, self._spilled.name)

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


def _write(table: pl.DataFrame, folder: str) -> _Table:
    handle, name = tempfile.mkstemp(suffix=".arrow", dir=folder)
    os.close(handle)
    table.write_ipc(name, compression="uncompressed")
    return _Table(name)


def _read(value: Any) -> Any:
    return pl.read_ipc(Path(value.path)) if isinstance(value, _Table) else value


def _staying(value: Any) -> Any:
    return stay(value) if isinstance(value, Answer) else value


def _each(function: Callable[..., Any], group: Sequence[Any], common: Sequence[Any]) -> list[Any]:
    told = [_read(value) for value in common]
    return [function(_read(each), *told) for each in group]


def _each_beside(
    function: Callable[..., Any], group: Sequence[tuple[Any, Sequence[_Table]]], common: Sequence[Any]
) -> list[Any]:
    told = [_read(value) for value in common]
    # Ranks next to each other are of the same groups.
    tables = {table: _read(table) for table in {table for _, others in group for table in others}}
    return [function(each, [tables[table] for table in others], *told) for each, others in group]


def _store_each(
    function: Callable[..., Any], folder: str, group: Sequence[Any], common: Sequence[Any]
) -> list[_Table]:
    return [_write(found, folder) for found in _each(function, group, common)]


def _join_each(
    join: Callable[..., Any],
    folder: str,
    group: Sequence[tuple[Sequence[_Table], Any]],
    common: Sequence[Any],
) -> list[_Table]:
    return [_write(join([_read(table) for table in tables], wanted), folder) for tables, wanted in group]


def _given_up(task: Task) -> Answer:
    what = f"{task.path} ended the process that read it, {TRIES} times."
    return Answer(
        task,
        error=StepscopeError(
            what, fix="It may want more memory than there is: record fewer steps, or load it alone."
        ),
    )
