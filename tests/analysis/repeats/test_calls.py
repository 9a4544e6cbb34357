"""What it costs to find out which calls return the same: the work grows with the ops, not with ops times calls."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from stepscope.analysis.repeats import calls
from stepscope.analysis.repeats.calls import Frame
from stepscope.analysis.repeats.kinds import may_hold_integers
from stepscope.analysis.repeats.op_call import Op, OpCall
from stepscope.analysis.repeats.results import result_sizes
from stepscope.analysis.repeats.step_ops import StepOps

ALIKE, IN_PAIRS = "alike", "in pairs"


def call(place: int, home: int | None, name: str, *shapes: list[int]) -> OpCall:
    kinds = ["float"] * len(shapes)
    op = Op(f"aten::{name}", json.dumps(shapes), json.dumps(kinds), json.dumps([""] * len(shapes)))
    return OpCall(place, 1, 10 * place, home, op, result_sizes(op), may_hold_integers(op))


def loop(turns: int, kind: str) -> tuple[list[Frame], list[OpCall]]:
    """A loop that calls a module and then ops of its own; all calls are alike, or always two of them."""
    ops: list[OpCall] = []
    frames: list[Frame] = []
    for turn in range(turns):
        event, width = 100_000 + turn, 8 if kind == ALIKE else 8 + turn // 2
        start = 10 * len(ops) - 5
        ops.append(call(len(ops), event, "linear", [4, 16], [width, 16], [width]))
        ops.append(call(len(ops), event, "relu", [4, width]))
        frames.append(Frame(event, 1, start, 10 * len(ops) - 6, "nn.Module: Encoder_0", None))
        ops.append(call(len(ops), None, "linear", [4, width], [3, width], [3]))
        ops.append(call(len(ops), None, "add", [4, 3], [4, 3]))
    return frames, ops


def instructions(ask: Callable[[], Any]) -> int:
    """How many instructions of Python the package runs to answer; these do not depend on the machine."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        if "repeats" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        ask()
    finally:
        sys.settrace(before)
    return count


def cost(turns: int, kind: str) -> int:
    frames, ops = loop(turns, kind)
    return instructions(lambda: calls._needless(frames, StepOps(ops, frozenset(), frozenset(), []), True))


@pytest.mark.parametrize("kind", [ALIKE, IN_PAIRS])
def test_the_work_grows_with_the_ops(kind: str) -> None:
    few, many = cost(20, kind), cost(160, kind)
    assert 1000 < few < many < 1.2 * 8 * few


def test_the_loops_have_what_is_looked_for() -> None:
    for kind in (ALIKE, IN_PAIRS):
        frames, ops = loop(8, kind)
        arrays = call(0, None, "to", [4, 16])
        given = StepOps([arrays, *ops[1:]], frozenset(), frozenset({0}), [])
        assert len(calls._needless(frames[1:], given, True).events) >= 3
