"""A Dask cluster: workers read their own files, what they read stays with them, and only summaries travel.

Every function here is pure, so what a lost worker held is computed again by another one, which Dask sees to by itself. Whatever is held,
by workers or here, is packed: as small tables, which is what ranks are, it takes up to fifty times the memory.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from stepscope.cluster.packed import Packed, apply, open_packed, pack
from stepscope.cluster.place import Progress, tree
from stepscope.cluster.work import Answer, Task, stay, travelling
from stepscope.errors import StepscopeError

if TYPE_CHECKING:
    from distributed import Client

RETRIES = 2
CONNECT_SECONDS = 10
_ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://(\[[0-9a-fA-F:.%]+\]|[^\s/:\[\]]+):\d{1,5}/?")


class OnDask:
    """The workers of a scheduler: an address, or a client that is connected already."""

    def __init__(self, where: str | Client) -> None:
        self._is_ours = isinstance(where, str)
        self._client = connected(where) if isinstance(where, str) else where
        self._told: dict[str, Packed] = {}

    def keep(
        self, function: Callable[[Task], Answer], tasks: Sequence[Task], progress: Progress
    ) -> list[Any]:
        """Futures, whose values stay on the workers; what travels of them comes while others are still at work."""
        from distributed import as_completed

        futures = self._submitted(partial(_analysed, function), tasks)
        told = self._submitted(_first, futures)
        of = {summary.key: future.key for summary, future in zip(told, futures, strict=True)}
        for number, summary in enumerate(as_completed(told, loop=self._client.loop), 1):
            if summary.status == "finished":
                self._told[of[summary.key]] = summary.result()
            progress(number, len(tasks))
        kept = [
            future if future.key in self._told else self._alone(function, task)
            for task, future in zip(tasks, futures, strict=True)
        ]
        lean = [each if isinstance(each, Answer) else self._lean(each) for each in kept]
        return [self._held(function, *each) for each in zip(tasks, lean, strict=True)]

    def _lean(self, kept: Any) -> Any:
        """What later stages want of it: workers need not hold what has come here already."""
        lean = self._later(_second, kept)
        self._told[lean.key] = self._told.pop(kept.key)
        return lean

    def _submitted(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        return [self._client.submit(function, each, retries=RETRIES, pure=False) for each in items]

    def _alone(self, function: Callable[[Task], Answer], task: Task) -> Any:
        """Once more, while nothing else runs: Dask also suspects what only waited on a worker that died.

        Who kills every worker that it is given to is given up; the others go on.
        """
        from distributed import as_completed

        [again] = self._submitted(partial(_analysed, function), [task])
        [summary] = self._submitted(_first, [again])
        for done in as_completed([summary], loop=self._client.loop):
            if done.status == "finished":
                self._told[again.key] = done.result()
                return again
        return _given_up(task, summary)

    def _held(self, function: Callable[[Task], Answer], task: Task, kept: Any) -> Any:
        """The value is with a worker: what a worker held that died later is made again, now that no worker is killed any more."""
        from distributed import KilledWorker

        if isinstance(kept, Answer) or not isinstance(kept.exception(), KilledWorker):
            return kept
        [again] = self._submitted(partial(_analysed, function), [task])
        self._told[again.key] = self._told.pop(kept.key)
        return self._lean(again)

    def answers(self, kept: Sequence[Any]) -> list[Answer]:
        """They have come already."""
        return [each if isinstance(each, Answer) else open_packed(self._told.pop(each.key)) for each in kept]

    def ask(
        self,
        function: Callable[..., Any],
        kept: Sequence[Any],
        *common: Any,
        beside: Sequence[Sequence[Any]] | None = None,
    ) -> list[Any]:
        """On the workers that hold the values."""
        shared = self._scattered(common)
        asked = [
            self._later(apply, function, each, *(() if beside is None else (list(beside[at]),)), *shared)
            for at, each in enumerate(kept)
        ]
        return [open_packed(each) for each in self._client.gather(asked)]

    def grouped(
        self,
        function: Callable[..., Any],
        join: Callable[..., Any],
        kept: Sequence[Any],
        members: Sequence[Sequence[int]],
        wanted: Sequence[Any],
        *common: Any,
    ) -> list[Any]:
        """In a tree over the workers for each group; its root stays there."""
        shared = self._scattered(common)
        leaves = [self._later(apply, function, each, *shared) for each in kept]
        return [
            tree(partial(self._later_joined, join, mine), [leaves[at] for at in numbers])
            for numbers, mine in zip(members, wanted, strict=True)
        ]

    def _later_joined(self, join: Callable[..., Any], wanted: Any, items: Sequence[Any]) -> Any:
        return self._later(apply, join, list(items), wanted)

    def _later(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._client.submit(function, *arguments, retries=RETRIES, pure=False)

    def _scattered(self, common: Sequence[Any]) -> list[Any]:
        return [self._client.scatter(each, broadcast=False, hash=False) for each in common]

    def close(self) -> None:
        """Leave; a client that was given to us stays connected."""
        if self._is_ours:
            self._client.close()


def _analysed(function: Callable[[Task], Answer], task: Task) -> tuple[Packed, Packed]:
    """What travels of the answer, and what stays."""
    answer = function(task)
    return pack(travelling(answer)), pack(stay(answer))


def _first(held: tuple[Packed, Packed]) -> Packed:
    return held[0]


def _second(held: tuple[Packed, Packed]) -> Packed:
    return held[1]


def address_of(text: str) -> str:
    """A scheduler's address as Dask wants it, also from the file that `dask scheduler --scheduler-file` writes."""
    found = text.strip()
    if found.endswith(".json"):
        try:
            found = str(msgspec.json.decode(Path(found).read_bytes())["address"])
        except (OSError, msgspec.DecodeError, KeyError, TypeError):
            raise StepscopeError(
                f"{text} is not a scheduler file.",
                fix="Write one with: dask scheduler --scheduler-file FILE.json",
            ) from None
    if "://" not in found:
        found = f"tcp://{found}"
    if not _ADDRESS.fullmatch(found):
        raise StepscopeError(
            f"{text!r} is not the address of a Dask scheduler.",
            fix="Give the one that dask scheduler prints, such as tcp://host:8786, or its scheduler file.",
        )
    return found


def connected(text: str) -> Client:
    """A client of the scheduler at this address, or of this scheduler file."""
    address = address_of(text)
    try:
        from distributed import Client
    except ImportError:
        raise StepscopeError(
            "A Dask cluster needs distributed, which is not installed.",
            fix="Try: pip install 'stepscope[dask]'",
        ) from None
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        line = str(error).split("\n", maxsplit=1)[0] or type(error).__name__
        raise StepscopeError(
            f"No Dask scheduler answers at {address}: {line}",
            fix="Start one with: dask scheduler, and give the address that it prints, such as tcp://host:8786",
        ) from None
    try:
        client.wait_for_workers(
            1, timeout=CONNECT_SECONDS
        )  # they may have been started with the scheduler, or again
    except asyncio.TimeoutError:  # before Python 3.11 not the one of the system
        client.close()
        raise StepscopeError(
            f"The Dask scheduler at {address} has no workers.",
            fix=f"Start some with: dask worker {address} --nthreads 1",
        ) from None
    return client


def _given_up(task: Task, future: Any) -> Answer:
    error = future.exception()
    line = f"{type(error).__name__}: {error}".split("\n", maxsplit=1)[0]
    return Answer(task, error=StepscopeError(f"{task.path} cannot be read: {line}"))
