"""What a job is, and what jobs of one framework share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Step = Callable[[Any], object]
Parts = tuple[Step, Iterator[Any]]
Job = Callable[[int], Parts]


def repeat(make: Callable[[], Any]) -> Iterator[Any]:
    """Batches without end, each made when it is wanted."""
    while True:
        yield make()
