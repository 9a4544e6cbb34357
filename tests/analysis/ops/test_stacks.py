"""The stack of each call: frames inside out, one for calls from the same place, the forward op's for its backward."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.ops.calls import op_calls, ops_table
from stepscope.analysis.ops.stacks import NO_STACK, stacks_of
from tests.builders.inline import trace_of

CALLS = """
    track    start  dur  name                                          kind
    main         0  100  ProfilerStep#1                                annotation
    main         0   50  train.py(1): step                             python
    main         1   20  <built-in method add of Tensor at 0x7f01>     python
    main         2    5  aten::add                                     op
    main        22   20  <built-in method add of Tensor at 0x7f02>     python
    main        23    5  aten::add                                     op
    main        60   20  eval.py(9): check                             python
    main        61    5  aten::add                                     op
    main        90    5  aten::add                                     op
    """


def stacks(text: str) -> list[str]:
    trace = trace_of(text)
    return stacks_of(trace, op_calls(trace)["event"]).to_list()


def test_frames_inside_out_without_addresses() -> None:
    inner = "<built-in method add of Tensor> ← train.py(1): step"
    assert stacks(CALLS) == [inner, inner, "eval.py(9): check", NO_STACK]


def test_annotations_where_no_python_was_recorded() -> None:
    text = CALLS.replace("python    ", "annotation")
    assert stacks(text)[2:] == ["eval.py(9): check", NO_STACK]
    assert (
        stacks(CALLS.replace("train.py(1): step                             python", "x  counter"))[3]
        == NO_STACK
    )


def test_ops_split_by_stack_sum_to_the_ops() -> None:
    trace = trace_of(CALLS)
    calls = op_calls(trace)
    split = ops_table(calls.with_columns(stack=stacks_of(trace, calls["event"])), ("name", "stack"))
    whole = ops_table(calls)
    assert len(split) == 3
    assert int(split["host_self_ns"].sum()) == int(whole["host_self_ns"].sum())
    assert dict(split.group_by("stack").agg(pl.col("calls").sum()).iter_rows())[NO_STACK] == 1
