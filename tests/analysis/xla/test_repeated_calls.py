"""Which arguments of a program several of its runs in a step share."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.analysis.xla.repeated_calls import RepeatedCalls, repeated_calls
from stepscope.trace.schema import conform
from stepscope.trace.trace import Trace
from tests.builders.hlo import program
from tests.builders.programs import program_trace

STEPS, CALLS, STEP = 2, 6, 1000
CODE = """
main:
  weight = f32[64,64] parameter(0) op_name=params['w']
  state = f32[8,64] parameter(1) op_name=state
  tokens = s32[8,16] parameter(2) op_name=tokens
  other = {other}
  new = f32[8,64] add(state, state)
"""


def found_in(
    other: str = "f32[] parameter(3) op_name=t", sizes: tuple[int, ...] = (512,), code: bool = True
) -> list[RepeatedCalls]:
    """Of two steps with six runs each, into which arrays of these sizes are copied; `code`: whether a second program has one."""
    lines = []
    for step in range(STEPS):
        at = STEP * step
        lines.append(f"main  {at}  {STEP}  ProfilerStep#{step}  annotation  -  -")
        for place in range(len(sizes)):
            lines.append(f"main  {at + 1 + place}  1  cudaMemcpyAsync  runtime  MemcpyH2D  -")
            lines.append(f"stream 7  {at + 10 + 3 * place}  2  MemcpyH2D  copy  -  -")
        for call in range(CALLS):
            begin = at + 100 + 100 * call
            for name, kernel, start in (("jit_f", "new", begin), ("jit_g", "made", begin + 60)):
                lines.append(f"over modules  {start}  20  {name}  module  -  -")
                lines.append(f"main  {start - 50}  1  cudaLaunchKernel  runtime  {kernel}  -")
                lines.append(f"stream 7  {start}  20  {kernel}  kernel  -  {name}")
    codes = {"jit_f": program(CODE.format(other=other))}
    if code:
        codes["jit_g"] = program("main:\n  a = f32[3] parameter(0)\n  made = f32[3] add(a, a)\n")
    trace = program_trace(lines, **codes)
    copies = trace.events.filter(pl.col("kind") == "copy")["id"]
    moved = pl.DataFrame({"event": copies, "bytes": list(sizes) * STEPS}).with_columns(
        direction=pl.lit("HtoD")
    )
    whole = Trace({**trace.tables, "copies": conform("copies", moved)}, trace.cold)
    return repeated_calls(RankContext(0, whole, Options()).trace, 0, STEPS)


def test_tokens_that_arrive_once_a_step_are_the_same_in_its_calls() -> None:
    (found,) = found_in()
    assert (found.name, found.calls, found.arriving) == ("jit_f", CALLS, 1)
    assert [one.name for one in found.same] == ["tokens"]
    assert found.changing == {1, 3}  # the state and the time; the weight is neither


def test_two_arguments_of_one_size_share_what_arrives() -> None:
    (found,) = found_in("s32[8,16] parameter(3) op_name=negative", (512, 512))
    assert [one.name for one in found.same] == ["tokens", "negative"]
    assert found.arriving == 1


def test_what_arrives_twice_may_be_new_twice() -> None:
    (found,) = found_in(sizes=(512, 512))
    assert found.arriving == 2


def test_data_that_was_on_the_device_before_may_change() -> None:
    for other in (
        "f32[8,32] parameter(3) op_name=features",  # no leaf of a tree, as weights are
        "s32[8,32] parameter(3) op_name=batch['labels']",  # no numbers as weights have
        "f32[8] parameter(3) op_name=batch['t']",  # one number for each sample
    ):
        (found,) = found_in(other)
        assert 3 in found.changing
    (found,) = found_in("f32[64] parameter(3) op_name=params['bias']")
    assert 3 not in found.changing


def test_nothing_is_known_beside_programs_without_code() -> None:
    assert found_in(code=False) == []
