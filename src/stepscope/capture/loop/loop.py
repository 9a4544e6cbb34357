"""Where a step of a training loop ends, judged by what the loop does: updates of optimizers, batches, and markers of its own.

A marker (a Keras batch, a JAX step marker) is a step. Without markers a step is one update of the model: with gradient
accumulation many batches, with several optimizers one round of all of them. It ends where the next batch is asked for, or,
in a loop without a loader, with the last update of the round. Only where no optimizer is heard of is each batch a step; and
only where nothing else is heard of, each call of the program that was the first to be called again and again, and still is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal

Source = Literal["dispatch", "loader", "optimizer", "marker", "call"]
_SURENESS: dict[Source | None, int] = {
    None: 0,
    "dispatch": 1,
    "loader": 2,
    "optimizer": 3,
    "marker": 4,
    "call": 5,
}
# A program that is called so often is what a loop repeats.
_REPEATED = 3
_MOST_PROGRAMS = 10_000
# A program that was called so many times as often as the first one, since that was called last, is the loop: the first one
# prepared something.
_TAKES_OVER = 10
# An optimizer that is compiled cannot be heard: after so many batches without an update, batches are steps.
_MOST_BATCHES_AN_UPDATE = 64


class Loop:
    """Calls `begin` before the first step, and `step` where one ends. One thread is the loop; others are not listened to."""

    def __init__(self, begin: Callable[[], None], step: Callable[[], None]) -> None:
        self._begin = begin
        self._step = step
        self.source: Source | None = None
        self._thread = 0
        self._made: set[int] = set()
        self._round: set[int] = set()
        self._expected: set[int] | None = None
        self._has_fetched = False
        self._unused_batches = 0
        self._dispatches: dict[object, int] = {}
        self._anchor: object = None
        self._anchor_calls = 0

    def optimizer_made(self, optimizer: int) -> None:
        """There is an optimizer of this id."""
        if not self._made and self.source == "loader":
            self.source = None  # what was counted were batches of something before training
        if len(self._made) < 10_000:
            self._made.add(optimizer)

    def fetching(self) -> None:
        """A batch is about to be asked for."""
        if self.source == "optimizer":
            if self._thread == threading.get_ident():
                self._has_fetched = True
                if self._round:
                    self._close()
        elif self._made and self._unused_batches < _MOST_BATCHES_AN_UPDATE:
            if self.source is None:
                self._has_fetched = True
                self._unused_batches += 1
                self._begin()
        elif self._is_told_by("loader"):
            if self._has_fetched:
                self._step()
            self._has_fetched = True

    def updating(self, optimizer: int) -> None:
        """An optimizer is about to update the model."""
        if not self._is_told_by("optimizer"):
            return
        if optimizer in self._round:  # again, and no batch between: the step was over before
            self._expected = set(self._round)
            self._close()
        elif self._expected is None and not self._has_fetched:
            self._expected = self._made | {optimizer}

    def updated(self, optimizer: int) -> None:
        """It has."""
        if not self._is_told_by("optimizer"):
            return
        self._round.add(optimizer)
        if self._expected is not None and self._round >= self._expected:
            self._close()

    def dispatching(self, program: object) -> None:
        """A whole program (a graph, a traced function) is about to be called, or has been."""
        if program == self._anchor:
            self._anchor_calls += 1
            self._dispatches.clear()
            if self._is_told_by("dispatch"):
                self._step()
            return
        if len(self._dispatches) < _MOST_PROGRAMS or program in self._dispatches:
            self._dispatches[program] = self._dispatches.get(program, 0) + 1
        enough = max(_REPEATED, _TAKES_OVER * self._anchor_calls)
        if self._dispatches.get(program, 0) >= enough and self._is_told_by("dispatch"):
            if self._anchor is not None:
                self._begin()
            self._anchor, self._anchor_calls = program, self._dispatches[program]
            self._dispatches.clear()

    def marker_begins(self) -> None:
        """The loop itself says that a step begins."""
        self._is_told_by("marker")

    def marker_ends(self) -> None:
        """And that it is over."""
        if self._is_told_by("marker"):
            self._step()

    def called(self) -> bool:
        """The loop calls stepscope's own `step`: nothing else counts any more."""
        return self._is_told_by("call")

    def _is_told_by(self, source: Source) -> bool:
        """Whether this source says where steps end. A surer one takes over."""
        if source == self.source:
            return self._thread == threading.get_ident()
        if _SURENESS[source] < _SURENESS[self.source]:
            return False
        self.source, self._thread = source, threading.get_ident()
        self._round.clear()
        self._begin()
        return True

    def _close(self) -> None:
        self._round.clear()
        self._step()
