"""A job: a step to run again and again, as it is and mended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Step = Callable[[int], None]


@dataclass(frozen=True)
class Job:
    """`slow` and `mended` build a step function; `samples` are per step, where the mended one does more of them."""

    name: str
    code: str  # the finding that the planted bottleneck must give
    slow: Callable[[], Step]
    mended: Callable[[], Step]
    samples: tuple[int, int] = (1, 1)
    steps: int = 4
    options: dict[str, Any] = field(default_factory=dict)
    healthy: bool = False  # no bottleneck was planted: the mended job is a job of its own
