"""Programs that compute the same in each of their calls within a step."""

from __future__ import annotations

from functools import cache

import polars as pl
import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding
from stepscope.trace.schema import conform
from stepscope.trace.trace import Trace
from tests.builders.cases import case_of
from tests.builders.hlo import program
from tests.builders.programs import program_trace

TURNS = 4
CODE = """
body:
  p = (f32[16,64], f32[64,64]) parameter(0)
  h = f32[16,64] get-tuple-element(p) index=0
  m = f32[64,64] get-tuple-element(p) index=1
  layer = f32[16,64] dot(h, m) contracts=1,0 op_name=jit(denoise)/encode_text/while/body/dot_general
  root = (f32[16,64], f32[64,64]) tuple(layer, m)
main:
  w = f32[64,64] parameter(0) op_name=params['w']
  latent = f32[32,64] parameter(1) op_name=latent
  time = f32[] parameter(2) op_name=t
  tokens = s32[16] parameter(3) op_name=tokens
  rows = f32[16,64] gather(w, tokens) op_name=jit(denoise)/encode_text/gather
  start = (f32[16,64], f32[64,64]) tuple(rows, w)
  loop = (f32[16,64], f32[64,64]) while(start) calls=body trips=4
  text = f32[16,64] get-tuple-element(loop) index=0
  mixed = f32[32,64] dot(latent, w) contracts=1,0
  new = f32[32,64] fusion(mixed, text, time) calls=body
  {result}
"""
PREPARES = """
main:
  given = s32[32] parameter(0)
  one = s32[16] slice(given)
"""
ALONE = "done = f32[32,64] copy(new)"
RETURNED = "picked = s32[16] negate(tokens)\n  done = (f32[32,64], s32[16]) tuple(new, picked)"


@cache
def found_in(
    calls: int = 8,
    uploads: int = 1,
    bytes_: int = 64,
    result: str = ALONE,
    prepared: int = 0,
    layer: int = 50,
    rest: int = 200,
) -> dict[str, Finding]:
    """Findings of steps in which the program runs so often: four layers of so many µs of the tokens alone, and another kernel.

    `uploads` of an array of so many `bytes_`, and `prepared` runs of a program that returns one like it, in each step.
    """
    lines: list[str] = []
    length = calls * (TURNS * (layer + 1) + rest + 30) + 400
    for step in range(3):
        at = length * step
        lines.append(f"main  {at}  {length}  ProfilerStep#{step}  annotation  -  -")
        begin, launched = at + 20, at + 2

        def run(name: str, kernels: list[tuple[str, int]]) -> None:
            nonlocal begin, launched
            total = sum(each + 1 for _, each in kernels)
            lines.append(f"over modules  {begin}  {total}  {name}  module  -  -")
            for kernel, dur in kernels:
                lines.append(f"main  {launched}  1  cudaLaunchKernel  runtime  {kernel}  -")
                lines.append(f"stream 7  {begin}  {dur}  {kernel}  kernel  -  {name}")
                launched, begin = launched + 1, begin + dur + 1

        for _ in range(uploads):
            lines.append(f"main  {launched}  1  cudaMemcpyAsync  runtime  MemcpyH2D  -")
            lines.append(f"stream 7  {begin}  2  MemcpyH2D  copy  -  -")
            launched, begin = launched + 1, begin + 3
        for _ in range(prepared):
            run("jit_prepare", [("one", 2)])
        for _ in range(calls):
            run("jit_denoise", [("rows", 5), *[("layer", layer)] * TURNS, ("mixed", rest), ("new", 5)])
        lines.append(
            f"main  {launched + 1}  {at + length - 6 - launched}  cudaDeviceSynchronize  runtime  -  -"
        )
    codes = {"jit_denoise": program(CODE.format(result=result)), "jit_prepare": program(PREPARES)}
    trace = _with_copies(program_trace(lines, **codes), bytes_)
    return {one.code: one for one in apply_rules(case_of(trace))}


def _with_copies(trace: Trace, bytes_: int) -> Trace:
    moved = trace.events.filter(pl.col("kind") == "copy")["id"]
    copies = pl.DataFrame({"event": moved}).with_columns(
        bytes=pl.lit(bytes_, pl.Int64), direction=pl.lit("HtoD")
    )
    return Trace({**trace.tables, "copies": conform("copies", copies)}, trace.cold)


def test_what_depends_on_the_tokens_alone_is_first() -> None:
    found = found_in()
    assert next(iter(found)) == "repeated-work"
    first = found["repeated-work"]
    assert first.evidence["program"] == "jit_denoise"
    assert first.evidence["arguments"] == ["tokens"]
    assert first.evidence["calls_per_step"] == 8
    assert first.evidence["scope"] == "encode_text"
    assert first.evidence["kernels_per_step"] == 7 * (1 + TURNS)
    assert "denoise 8 times" in first.detail and "tokens" in first.detail
    # Of 8 · 413 µs, 7 · 210 µs go.
    assert first.share == pytest.approx(7 * 210 / 3900, abs=0.02)
    assert first.speedup.low < 1.6 < first.speedup.mid < 1.75 < first.speedup.high


@pytest.mark.parametrize(
    "given",
    [
        {"uploads": 8},  # new tokens for each call
        {"uploads": 0},  # they may have been on the device before, for all calls
        {"bytes_": 128},  # the upload is of something else
        {"prepared": 8, "uploads": 0},  # another program makes new ones for each call
        {"result": RETURNED},  # the program returns those of the next call
        {"calls": 3},
        {"layer": 2},  # a small part of the step
    ],
    ids=str,
)
def test_silent_where_the_argument_may_change_or_little_depends_on_it(given: dict[str, object]) -> None:
    assert "repeated-work" not in found_in(**given)


def test_a_program_may_make_the_argument_once_a_step() -> None:
    assert "repeated-work" in found_in(prepared=1, uploads=0)


def test_at_worst_each_new_argument_needs_a_call() -> None:
    once, often = (found_in(uploads=count)["repeated-work"].speedup for count in (1, 4))
    assert often.low < once.low - 0.1
    assert often.mid < once.mid < often.high
