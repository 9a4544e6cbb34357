"""Generation by a program of JAX that is given all tokens, again for each new one."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding
from stepscope.trace.schema import conform
from stepscope.trace.trace import Trace
from tests.analysis.xla.repeats.test_token_work import CODE, WRITE, layer
from tests.builders.cases import case_of
from tests.builders.hlo import program
from tests.builders.programs import program_trace, runs_in_steps

WORK = [("queries", 150), ("scores", 60), ("kept", 90), ("values", 60), ("logits", 150), ("best", 4)]
WRITES = (
    "main:\n  tokens = s32[2,32] parameter(0)\n  best = s32[2] parameter(1)\n  place = s32[] parameter(2)\n"
)


# A program that makes texts, or something else.
MADE = "main:\n  place = s32[] parameter(0)\n  made = {shape} broadcast(place)\n"


def found_in(
    calls: int = 8,
    writes: str = WRITE,
    other: int = 0,
    apart: int = 0,
    short: int = 1,
    made: str = "",
    copied: int = 0,
) -> dict[str, Finding]:
    """Findings of steps that call the program so often, each beside `other` µs of another one; `apart`: which writes the token.

    `made`: the shape of what a third one returns in each step; `copied`: the bytes that are copied to the device in each.
    """
    work = [(name, max(1, dur // short)) for name, dur in WORK]
    runs = [("jit_next", [*work, *([("new", 2)] if writes else [])])]
    if other:
        runs.append(("jit_other", [("busy", other)]))
    steps = (runs + [("jit_write", [("new", 2)])] * apart) * calls
    lines = runs_in_steps(steps + [("jit_made", [("made", 2)])] * bool(made))
    codes = {
        "jit_next": program(CODE + layer() + writes),
        "jit_other": program("main:\n  a = f32[8] parameter(0)\n  busy = f32[8] add(a, a)\n"),
        "jit_write": program(WRITES + WRITE),
        "jit_made": program(MADE.format(shape=made or "s32[2,32]")),
    }
    if copied:
        starts = [int(line.split()[1]) for line in lines if "ProfilerStep" in line]
        for at in starts:
            lines.append(f"main  {at}  1  cudaMemcpyAsync  runtime  MemcpyH2D  -")
            lines.append(f"stream 7  {at + 2}  2  MemcpyH2D  copy  -  -")
    trace = with_bytes(program_trace(lines, **codes), copied)
    return {one.code: one for one in apply_rules(case_of(trace))}


def with_bytes(trace: Trace, copied: int) -> Trace:
    """The trace whose copies to the device are so large."""
    copies = trace.events.filter(pl.col("kind") == "copy").select(
        event="id", bytes=pl.lit(copied, pl.Int64), direction=pl.lit("HtoD")
    )
    return Trace({**trace.tables, "copies": conform("copies", copies)}, trace.cold)


def test_each_token_runs_all_positions_again() -> None:
    found = found_in()
    assert next(iter(found)) == "recomputed-prefix"
    first = found["recomputed-prefix"]
    assert first.evidence["tokens"] == 32
    assert "32 positions" in first.detail
    assert "dynamic_update_slice" in first.fix
    # At best a position takes a thirty-second of 514 µs, at worst twice that, and a call for the prompt remains.
    assert 3 < first.speedup.low < first.speedup.high < 32


def test_the_token_may_be_written_by_another_program() -> None:
    assert "recomputed-prefix" in found_in(writes="", apart=1)


@pytest.mark.parametrize(
    "given",
    [
        {"writes": ""},  # a server that scores texts
        {"other": 20_000},  # a small part of the step
        {"short": 100},  # kernels as short as those of one position
    ],
    ids=str,
)
def test_silent_where_no_token_is_written_or_little_is_computed(given: dict[str, object]) -> None:
    found = found_in(**given)  # type: ignore[arg-type]
    assert "recomputed-prefix" not in found or found["recomputed-prefix"].speedup.high < 1.05


def test_the_prompt_is_computed_once_in_any_case() -> None:
    """Of 32 positions 8 calls write 8: the others are the prompt, which takes three quarters of a call."""
    few, many = (found_in(calls=calls)["recomputed-prefix"].speedup for calls in (8, 16))
    assert few.high < 8 / 0.75
    assert few.mid < many.mid


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"writes": "", "apart": 1},
        {"copied": 4},  # the place of the token
        {"made": "s32[2,3]"},  # anything but a text
    ],
    ids=str,
)
def test_a_step_of_one_token_goes_on_with_the_text_of_the_step_before(given: dict[str, object]) -> None:
    """Six kernels take 514 of 540 µs; with a cache, 2 to 4 µs each, and no step computes a prompt."""
    first = found_in(calls=1, **given)["recomputed-prefix"]  # type: ignore[arg-type]
    assert first.speedup.low > 6
    assert first.speedup.high < 540 / (540 - 514)


@pytest.mark.parametrize(
    "given",
    [
        {"made": "s32[2,32]"},  # made on the device
        {"copied": 4 * 2 * 32},  # or on the host
    ],
    ids=str,
)
def test_a_step_of_one_token_of_a_new_text_computes_its_prompt(given: dict[str, object]) -> None:
    found = found_in(calls=1, **given)  # type: ignore[arg-type]
    assert "recomputed-prefix" not in found or found["recomputed-prefix"].speedup.high < 1.05
