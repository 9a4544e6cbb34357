"""How long tests wait for what other threads and processes do: only what hangs takes so long, also on a slow or busy machine."""

from __future__ import annotations

import time
from collections.abc import Iterator

PATIENCE_S = 300
_PAUSE_S = 0.02


def tries(seconds: float = PATIENCE_S) -> Iterator[int]:
    """Count the looks at something that is going to change, with a little time between them, until patience ends."""
    deadline = time.monotonic() + seconds
    number = 0
    while number == 0 or time.monotonic() < deadline:
        yield number
        number += 1
        time.sleep(_PAUSE_S)
