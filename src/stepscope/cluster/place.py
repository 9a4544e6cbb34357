"""A place where work is done. What it keeps is only ever used through `ask` and `grouped`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from stepscope.cluster.work import Answer, Task, travelling

# Told how many ranks are done, and how many there are.
Progress = Callable[[int, int], None]
FAN_IN = 16  # so many tables are put together at once


class Place(Protocol):
    """This process, local processes, or a cluster."""

    def keep(
        self, function: Callable[[Task], Answer], tasks: Sequence[Task], progress: Progress
    ) -> list[Any]:
        """Do the work on each task; what comes out stays there."""

    def answers(self, kept: Sequence[Any]) -> list[Answer]:
        """What travels of the things that were kept."""

    def ask(
        self,
        function: Callable[..., Any],
        kept: Sequence[Any],
        *common: Any,
        beside: Sequence[Sequence[Any]] | None = None,
    ) -> list[Any]:
        """The function of each thing that was kept, of its list in `beside` if that is given, and of what all have in common."""

    def grouped(
        self,
        function: Callable[..., Any],
        join: Callable[..., Any],
        kept: Sequence[Any],
        members: Sequence[Sequence[int]],
        wanted: Sequence[Any],
        *common: Any,
    ) -> list[Any]:
        """For each group the function of its members, numbers of things that were kept, put together in a tree and kept.

        `join` is given a list, and what is `wanted` of the group.
        """

    def close(self) -> None:
        """Let go of everything."""


def in_groups(items: Sequence[Any]) -> list[Sequence[Any]]:
    """As many together as a node of the tree joins."""
    return [items[at : at + FAN_IN] for at in range(0, len(items), FAN_IN)]


def tree(join: Callable[[Sequence[Any]], Any], items: Sequence[Any]) -> Any:
    """All items as one, some at a time."""
    level = [join(group) for group in in_groups(items)]
    while len(level) > 1:
        level = [join(group) for group in in_groups(level)]
    return level[0] if level else join([])


def _join_with(join: Callable[..., Any], wanted: Any, items: Sequence[Any]) -> Any:
    return join(items, wanted)


class Here:
    """This process."""

    def keep(
        self, function: Callable[[Task], Answer], tasks: Sequence[Task], progress: Progress
    ) -> list[Any]:
        """One after the other."""
        kept = []
        for number, task in enumerate(tasks, 1):
            kept.append(function(task))
            progress(number, len(tasks))
        return kept

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
        """One after the other."""
        return [
            function(each, *(() if beside is None else (beside[at],)), *common)
            for at, each in enumerate(kept)
        ]

    def grouped(
        self,
        function: Callable[..., Any],
        join: Callable[..., Any],
        kept: Sequence[Any],
        members: Sequence[Sequence[int]],
        wanted: Sequence[Any],
        *common: Any,
    ) -> list[Any]:
        """One group after the other."""
        leaves = [function(each, *common) for each in kept]
        return [
            tree(partial(_join_with, join, mine), [leaves[at] for at in numbers])
            for numbers, mine in zip(members, wanted, strict=True)
        ]

    def close(self) -> None:
        """Nothing is held."""
