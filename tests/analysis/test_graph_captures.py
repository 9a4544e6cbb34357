"""Recordings of graphs that are captured."""

from __future__ import annotations

import pytest

from stepscope.analysis.graph_captures import only_captures
from stepscope.analysis.steps.find import find_steps
from tests.builders.inline import trace_of

HEAD = "track  start  dur  name  kind  launches\n"
STEP = "main  0  100  ProfilerStep#0  annotation  -\nmain  2  4  cudaLaunchKernel  runtime  gemm\nstream 7  4  8  gemm  kernel  -\n"
NEXT = (
    STEP.replace("#0", "#1")
    .replace("  0  100", "  100  100")
    .replace("  2  4", "  102  4")
    .replace("  4  8", "  104  8")
    + "main  110  2  aten::mm  op  -\nmain  120  2  aten::mm  op  -\n"
)
CAPTURE = "{thread}  {begin}  2  cudaStreamBeginCapture  runtime  -\n{thread}  {end}  2  cudaStreamEndCapture  runtime  -\n"
LAUNCH = "main  90  2  cudaGraphLaunch  runtime  -\n"


def capture(begin: int, end: int, thread: str = "main") -> str:
    """Of one graph."""
    return CAPTURE.format(thread=thread, begin=begin, end=end)


@pytest.mark.parametrize(
    ("text", "only"),
    [
        (STEP, False),
        (STEP + capture(10, 80), True),
        (STEP + capture(10, 40) + capture(50, 80), True),
        (STEP + capture(10, 40), False),
        (STEP + capture(10, 80) + LAUNCH, False),  # captured again in each step
        (STEP + capture(10, 40) + capture(10, 40, "other"), False),  # side by side
        (STEP + CAPTURE.format(thread="main", begin=10, end=80).splitlines()[0], False),  # never ends
        (STEP + capture(10, 80) + NEXT, False),
    ],
)
def test_whether_all_steps_are_captures(text: str, only: bool) -> None:
    trace = trace_of(HEAD + text)
    assert only_captures(trace, find_steps(trace)) is only
