"""A second program that computes the forward pass of the one that trains."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.xla.hlo_module import read_module
from stepscope.analysis.xla.repeats.forward_again import forward_again
from stepscope.trace.schema import conform
from stepscope.trace.trace import Trace
from tests.builders.cases import case_of
from tests.builders.hlo import program
from tests.builders.programs import program_trace, runs_in_steps

GIVEN = """
main:
  w = f32[64,96] parameter(0) op_name=params['w']
  v = f32[96,32] parameter(1) op_name=params['v']
  u = f32[32,10] parameter(2) op_name=params['u']
  x = f32[512,{width}] parameter(3) op_name=x
  labels = s32[512] parameter(4) op_name=labels
"""
FORWARD = """
  first = f32[512,96] dot(x, w) contracts=1,0 op_name=jit(f)/dot_general
  second = f32[512,32] dot(first, v) contracts=1,0
  logits = f32[512,10] dot(second, u) contracts=1,0
  {loss}
"""
PICK = """
main:
  data = f32[4096,64] parameter(0) op_name=data
  at = s32[] parameter(1) op_name=at
  picked = f32[512,64] dynamic-slice(data, at, at)
"""
LOOP = """
turn:
  given = (f32[64,64], f32[64,64]) parameter(0)
  x = f32[64,64] get-tuple-element(given) index=0
  w = f32[64,64] get-tuple-element(given) index=1
  next = f32[64,64] dot(x, w) contracts=1,0
  state = (f32[64,64], f32[64,64]) tuple(next, w)
main:
  x = f32[64,64] parameter(0) op_name=x
  w = f32[64,64] parameter(1) op_name=w
  start = (f32[64,64], f32[64,64]) tuple(x, w)
  loop = (f32[64,64], f32[64,64]) while(start) calls=turn {turns}
  last = f32[64,64] get-tuple-element(loop) index=0
  {rest}
"""
TURNS = ("trips=4", "")
REST = (
    "loss = f32[] reduce(last, x)",
    "again = (f32[64,64], f32[64,64]) while(start) calls=turn trips=8\n"
    "  back = f32[64,64] get-tuple-element(again) index=0\n"
    "  change = (f32[64,64], f32[]) tuple(back, last)",
)
LOSS = "loss = f32[] reduce(logits, labels)"
BACKWARD = """
  du = f32[32,10] dot(second, logits) contracts=0,0 op_name=jit(f)/transpose(jvp())/dot_general
  d2 = f32[512,32] dot(logits, u) contracts=1,1
  dv = f32[96,32] dot(first, d2) contracts=0,0
  d1 = f32[512,96] dot(d2, v) contracts=1,1
  dw = f32[64,96] dot(x, d1) contracts=0,0
  updated = (f32[64,96], f32[96,32], f32[32,10], f32[]) tuple(dw, dv, du, loss)
"""
PASS = ["first", "second", "logits"]
GRADIENTS = ["du", "d2", "dv", "d1", "dw"]


def found_in(
    result: str = LOSS,
    each: int = 40,
    runs: int = 1,
    width: int = 64,
    uploads: int = 0,
    picks: int = 0,
    extra: str = "",
) -> dict[str, Finding]:
    """Findings of a job that trains and evaluates each batch; `each` product of the evaluation takes so many µs."""
    forward = FORWARD.format(loss=result)
    codes = {
        "jit_evaluate": program(GIVEN.format(width=width) + forward),
        "jit_train": program(GIVEN.format(width=64) + extra + FORWARD.format(loss=LOSS) + BACKWARD),
    }
    codes["jit_pick"] = program(PICK)
    evaluating = [*((name, each) for name in PASS), (result.split()[0], 4)]
    training = [*((name, 40) for name in PASS), ("loss", 4), *((name, 40) for name in GRADIENTS)]
    work = (
        [("jit_pick", [("picked", 4)])] * picks
        + [("jit_evaluate", evaluating)] * runs
        + [("jit_train", training)]
    )
    trace = program_trace(_with_uploads(runs_in_steps(work), uploads), **codes)
    moved = trace.events.filter(pl.col("kind") == "copy")["id"]
    copies = pl.DataFrame({"event": moved}).with_columns(
        bytes=pl.lit(4 * 512 * 64, pl.Int64), direction=pl.lit("HtoD")
    )
    whole = Trace({**trace.tables, "copies": conform("copies", copies)}, trace.cold)
    return {one.code: one for one in apply_rules(case_of(whole))}


def _with_uploads(lines: list[str], uploads: int) -> list[str]:
    """So many copies to the device at the beginning of each step."""
    more = []
    for line in lines:
        more.append(line)
        if "ProfilerStep" in line:
            at = int(line.split()[1])
            more += [f"stream 7  {at + 2 * place}  1  MemcpyH2D  copy  -  -" for place in range(uploads)]
    return more


def test_metrics_of_the_batch_that_is_trained_on() -> None:
    found = found_in()
    assert next(iter(found)) == "repeated-forward"
    first = found["repeated-forward"]
    assert (first.evidence["program"], first.evidence["training"]) == ("jit_evaluate", "jit_train")
    assert "evaluate" in first.detail and "train" in first.detail
    assert first.certainty < 1
    # 127 of 485 µs go.
    assert first.share == pytest.approx(127 / 485, abs=0.02)
    assert first.speedup.low < 485 / 358 < first.speedup.high


@pytest.mark.parametrize(
    "given",
    [
        {"each": 1},  # a small part of the step
        {"width": 48},  # a batch of another shape
        {"runs": 2},  # of two batches, or for a line search
        {"uploads": 2},  # each program gets a batch of its own
        {"picks": 2},  # the same of data that is on the device already
        {  # a teacher, whose results training is given
            "result": "taught = f32[512,10] negate(logits)",
            "extra": "  taught = f32[512,10] parameter(5) op_name=taught\n",
        },
    ],
    ids=str,
)
def test_silent_where_the_pass_may_be_another_one(given: dict[str, object]) -> None:
    assert "repeated-forward" not in found_in(**given)  # type: ignore[arg-type]


def test_one_batch_that_is_copied_to_the_device_is_of_both() -> None:
    assert "repeated-forward" in found_in(uploads=1)


def test_one_batch_that_a_program_picks_is_of_both() -> None:
    assert "repeated-forward" in found_in(picks=1)


def test_loops_of_which_nobody_knows_how_often_they_turn() -> None:
    """Their products may be any number of those of training."""
    modules = [read_module(program(LOOP.format(turns=turns, rest=rest))) for rest in REST for turns in TURNS]
    known, unknown, training, uncertain = modules
    assert forward_again(training, known) is not None
    assert forward_again(training, unknown) is None
    assert forward_again(uncertain, known) is None
