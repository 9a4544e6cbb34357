"""How tests live with slow and busy machines: how long they wait for others, and what they do about a moment that spoils a measurement."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

PATIENCE_S = 300
# From the first look to the last: who looks all the time takes it from the one that is waited for.
_PAUSE_S, _LONGER, _LONGEST_PAUSE_S = 0.01, 1.3, 0.15
_MEASUREMENTS = 4


def tries(seconds: float = PATIENCE_S) -> Iterator[int]:
    """Count the looks at something that is going to change, with a little time between them, until patience ends."""
    deadline = time.monotonic() + seconds
    number, pause = 0, _PAUSE_S
    while number == 0 or time.monotonic() < deadline:
        yield number
        number += 1
        time.sleep(pause)
        pause = min(_LONGER * pause, _LONGEST_PAUSE_S)


def measured(check: Callable[[int], None], times: int = _MEASUREMENTS) -> None:
    """Measure and check, with the number of the attempt, until it holds.

    For what is told by durations: a machine that stands still at the wrong moment spoils one measurement, and what is wrong
    spoils all of them.
    """
    for number in range(times):
        try:
            return check(number)
        except AssertionError:
            if number == times - 1:
                raise
    return None
