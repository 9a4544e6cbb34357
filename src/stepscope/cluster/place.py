"""A place where work is done. What it keeps is only ever used through `ask` and `reduced`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from stepscope.cluster.work import Answer, Task

# Told how many ranks are done, and how many there are.
Progress = Callable[[int, int], None]
FAN_IN = 16  # so many tables are put together at once


class Place(Protocol):
    """This process, local processes, or a cluster."""

    def keep(
        self, function: Callable[[Task], Answer], tasks: Sequence[Task], progress: Progress
    ) -> list[Any]:
        """Do the work on each task; what comes out stays there."""

    def ask(self, function: Callable[..., Any], kept: Sequence[Any], *common: Any) -> list[Any]:
        """The function of each thing that was kept, and of what all have in common."""

    def reduced(
        self, function: Callable[..., Any], join: Callable[..., Any], kept: Sequence[Any], *common: Any
    ) -> Any:
        """The function of each thing that was kept, put together in a tree."""

    def close(self) -> None:
        """Let go of everything."""


def tree(join: Callable[[Sequence[Any]], Any], items: Sequence[Any]) -> Any:
    """All items as one, some at a time."""
    level = list(items)
    while len(level) > 1:
        level = [join(level[at : at + FAN_IN]) for at in range(0, len(level), FAN_IN)]
    return level[0] if level else join([])


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

    def ask(self, function: Callable[..., Any], kept: Sequence[Any], *common: Any) -> list[Any]:
        """One after the other."""
        return [function(each, *common) for each in kept]

    def reduced(
        self, function: Callable[..., Any], join: Callable[..., Any], kept: Sequence[Any], *common: Any
    ) -> Any:
        """In a tree all the same: sums are added in the same order everywhere."""
        return tree(join, self.ask(function, kept, *common))

    def close(self) -> None:
        """Nothing is held."""
