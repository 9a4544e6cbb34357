"""Runs of XLA programs: compiled functions, single ops, and loops over either."""

from __future__ import annotations

from stepscope.analysis.findings.programs.program_runs import ProgramRuns, program_runs
from tests.builders.cases import case_of_text, step, steps


def run(at: int, program: str, kernels: int, read: bool = False) -> list[str]:
    """A run of a program: kernels of 2 µs, 1 µs apart, and maybe a copy to the host after it."""
    rows = [f"over gpu  {at}  {3 * kernels - 1}  {program}  module  -"]
    rows += [f"stream 7  {at + 3 * k}  2  fusion_{k}  kernel  -" for k in range(kernels)]
    return [*rows, f"stream 8  {at + 3 * kernels}  1  MemcpyD2H  copy  -"] if read else rows


def turns(count: int, read: bool = True) -> list[str]:
    return [row for k in range(count) for row in run(30 * k, "jit_turn", 5, read)]


def runs_of(lines: list[str], framework: str = "jax") -> ProgramRuns:
    found = program_runs(case_of_text(lines, framework=framework))
    assert found is not None
    return found


def test_a_function_has_more_kernels_than_an_op() -> None:
    found = runs_of(steps(*run(0, "jit_update", 5), *run(20, "jit_add", 1), *run(30, "jit_add", 1)))
    known = dict(found.starts.select("program", "is_compiled").unique().iter_rows())
    assert known == {"jit_update": True, "jit_add": False}
    assert found.loop is None
    assert found.turns.is_empty() and not found.is_read_each_turn


def test_gaps_are_those_inside_of_a_run() -> None:
    found = runs_of(steps(*run(0, "jit_update", 5), *run(500, "jit_update", 5)))
    assert found.work["gap_ns"].to_list() == 6 * [0, 1000, 1000, 1000, 1000]
    assert found.work["first"].sum() == 6


def test_kernels_that_overlap_have_less_than_no_gap_between_them() -> None:
    rows = ["over gpu  0  9  jit_update  module  -", "stream 7  0  6  one  kernel  -"]
    found = runs_of(steps(*rows, "stream 7  4  5  two  kernel  -"))
    assert found.work["gap_ns"].to_list() == 3 * [0, -2000]


def test_a_function_that_is_called_again_and_again_is_a_loop() -> None:
    found = runs_of(steps(*turns(30, read=False)))
    assert found.loop == found.body == "jit_turn"
    assert found.turns.to_list() == [30, 30, 30]
    assert not found.is_read_each_turn and not found.ends_by_value


def test_ops_and_few_calls_are_no_loop() -> None:
    assert runs_of(steps(*turns(9))).loop is None
    ops = [row for k in range(30) for row in run(30 * k, "jit_add", 1)]
    assert runs_of(steps(*ops)).loop is None


def test_a_function_may_be_repeated_between_ops() -> None:
    def between(calls: int) -> list[str]:
        ops = [row for k in range(30) for row in run(30 * k + 20, "jit_add", 1)]
        return steps(*turns(calls, read=False), *ops)

    assert runs_of(between(10)).repeated == {"jit_turn"} and runs_of(between(10)).loop is None
    assert not runs_of(between(9)).repeated


def test_a_loop_ends_by_a_value_if_that_is_read_and_its_turns_differ() -> None:
    assert runs_of(steps(*turns(30))).is_read_each_turn
    assert not runs_of(steps(*turns(30))).ends_by_value
    different = [row for k in range(3) for row in step(k, 1000 * k, *turns(28 + k))]
    assert runs_of(different).ends_by_value
    unread = [row for k in range(3) for row in step(k, 1000 * k, *turns(28 + k, read=False))]
    assert not runs_of(unread).ends_by_value


def test_without_programs_nothing_is_known() -> None:
    kernels = steps("stream 7  0  2  fusion  kernel  -")
    assert program_runs(case_of_text(kernels, framework="jax")) is None
    assert program_runs(case_of_text(steps(*turns(30)), framework="pytorch")) is None
