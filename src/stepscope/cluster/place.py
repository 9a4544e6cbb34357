"""A place where work is done. What it keeps is only ever used through `ask` and `reduced`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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

    def ask(self, function: Callable[..., Any], kept: Sequence[Any], *common: Any) -> list[Any]:
        """The function of each thing that was kept, and of what all have in common."""

    def reduced(
        self, function: Callable[..., Any], join: Callable[..., Any], kept: Sequence[Any], *common: Any
    ) -> Any:
        """The function of each thing that was kept, put together in a tree."""

    def close(self) -> None:
        """Let go of everything."""


def in_groups(items: Sequence[Any]) -> list[Sequence[Any]]:
    """As many together as a node of the tree joins."""
    return [items[at : at + FAN_IN] for at in range(0, len(items), FAN_IN)]


def tree(join: Callable[[Sequence[Any]], Any], items: Iterable[Any], *, above_leaves: bool = False) -> Any:
    """All items as one, some at a time; no more of them are held than one node for each level has.

    `above_leaves`: the items are nodes already. Sums are added in the same order, however the leaves were made.
    """
    levels: list[list[Any]] = [[]]
    for item in items:
        _add(levels, 0, item, join)
    if above_leaves and not any(levels):
        return join([])
    at = 0
    while at < len(levels):
        rest, is_root = levels[at], at == len(levels) - 1
        if is_root and len(rest) == 1 and (at or above_leaves):
            return rest[0]
        if is_root:
            return join(rest)
        if rest:
            _add(levels, at + 1, join(rest), join)
        at += 1
    return join([])


def _add(levels: list[list[Any]], at: int, item: Any, join: Callable[[Sequence[Any]], Any]) -> None:
    """A full node goes up, as one."""
    if at == len(levels):
        levels.append([])
    levels[at].append(item)
    if len(levels[at]) == FAN_IN:
        whole, levels[at] = levels[at], []
        _add(levels, at + 1, join(whole), join)


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

    def ask(self, function: Callable[..., Any], kept: Sequence[Any], *common: Any) -> list[Any]:
        """One after the other."""
        return [function(each, *common) for each in kept]

    def reduced(
        self, function: Callable[..., Any], join: Callable[..., Any], kept: Sequence[Any], *common: Any
    ) -> Any:
        """In a tree all the same: sums are added in the same order everywhere."""
        return tree(join, (function(each, *common) for each in kept))

    def close(self) -> None:
        """Nothing is held."""
