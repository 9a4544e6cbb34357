"""Answers that are kept with their trace."""

from __future__ import annotations

import gc

from stepscope.trace.kept import kept_with_trace
from stepscope.trace.trace import Trace
from tests.builders import traces


def test_each_trace_is_asked_once_and_let_go() -> None:
    asked: list[int] = []

    @kept_with_trace
    def count(trace: Trace) -> list[int]:
        asked.append(len(trace.events))
        return [len(trace.events)]

    one, other = traces.trace(), traces.trace()
    assert count(one) is count(one)
    assert count(other) is not count(one)
    assert len(asked) == 2
    del one, other
    gc.collect()
    count(traces.trace())
    assert len(asked) == 3
