"""When each step ended: what recording costs shows only against the steps around the window."""

from __future__ import annotations

import itertools
from collections import deque
from typing import Any

# Of a run of a million steps, these nearest to the window are kept.
KEPT = 64


def _row(first: int, moments: list[int]) -> dict[str, Any]:
    """Durations between moments; the first moment is where step `first` began."""
    return {"first": first, "durations_ns": [b - a for a, b in itertools.pairwise(moments)]}


class StepTimes:
    """Moments on the `perf_counter` clock, cut into before, warm-up, inside and after."""

    def __init__(self, start_ns: int) -> None:
        self.recent: deque[int] = deque([start_ns], maxlen=KEPT + 1)
        self._before: dict[str, Any] = _row(0, [])
        self._warmup: dict[str, Any] = _row(0, [])
        self._inside: dict[str, Any] = _row(0, [])
        self._is_cut = False

    def cut_before(self, step: int, now_ns: int) -> None:
        """The step that begins now is recorded lightly, or gets ready for that: what comes before the window ends here."""
        self._before = self._taken(step)
        self._is_cut = True
        self.recent = deque([now_ns], maxlen=KEPT + 1)

    def restart(self, now_ns: int) -> list[int]:
        """The moments since the last cut; those that follow count from now."""
        moments = list(self.recent)
        self.recent = deque([now_ns], maxlen=KEPT + 1)
        return moments

    def enter_warmup(self, step: int, now_ns: int) -> None:
        """The step that begins now is the first to warm up."""
        if not self._is_cut:
            self._before = self._taken(step)
        self._is_cut = False
        self.recent = deque([now_ns], maxlen=KEPT + 1)

    def enter_window(self, step: int, now_ns: int, *, was_warmup: bool) -> None:
        """The step that begins now is the first to be recorded."""
        taken = self._taken(step)
        if was_warmup:
            self._warmup = taken
        else:
            self._before, self._warmup = self._before if self._is_cut else taken, _row(step, [])
            self._is_cut = False
        self.recent = deque([now_ns])

    def close_window(self, step: int) -> None:
        """The step that begins now is not recorded any more."""
        self._inside = self._taken(step)
        self.recent = deque(maxlen=KEPT + 1)

    def leave_window(self, now_ns: int) -> None:
        """The files are written: steps after the window count from now."""
        self.recent = deque([now_ns])

    def forget_after(self) -> None:
        """From here on only the last steps are kept: they come before the next window."""
        self.recent = deque(self.recent, maxlen=KEPT + 1)

    def _taken(self, step: int) -> dict[str, Any]:
        moments = list(self.recent)
        return _row(step - (len(moments) - 1), moments)

    def rows(self, after_first: int) -> dict[str, Any]:
        """For the sidecar; what came after is what is in `recent`."""
        after = list(self.recent)[: KEPT + 1]
        return {
            "before": self._before,
            "warmup": self._warmup,
            "inside": self._inside,
            "after": _row(after_first, after),
        }
