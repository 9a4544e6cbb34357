"""What a compiler tries on the device, and what else runs there meanwhile."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.programs.trials import find_trials
from tests.builders.cases import case_of_text, findings_of, gemm, steps

COMPILER = "main  0  600  backend_compile  span  -"


def launch(track: str, at: int, begin: int, length: int, kernel: str, program: str) -> list[str]:
    """A call of 8 µs on that thread, and the kernel that it launches, in a run of a program."""
    return [
        f"{track}  {at}  8  cuLaunchKernelEx  runtime  {kernel}",
        f"stream 7  {begin}  {length}  {kernel}  kernel  -",
        f"over gpu  {begin}  {length}  {program}  module  -",
    ]


def recompiled(*rows: str, framework: str = "jax") -> Finding:
    found = {one.code: one for one in findings_of(steps(COMPILER, *rows), framework=framework)}
    return found["recompilation"]


CANDIDATE = launch("tf_compile/1", 100, 120, 400, "candidate", "gemm_fusion_dot")
AUGMENT = launch("main", 605, 620, 10, "crop", "jit_augment")


@pytest.mark.parametrize(("thread", "at"), [("tf_execute/2", 500), ("main", 610)])
def test_another_program_of_the_step_is_no_trial(thread: str, at: int) -> None:
    """600 µs of compiling one program in each step, and 300 of another on the device, which stay."""
    train = launch(thread, at, 640, 300, "train_fusion", "jit_train")
    found = recompiled(
        *CANDIDATE, *AUGMENT, *train, "main  620  330  $array.py:1 block_until_ready  python  -"
    )
    assert found.left_ns_per_step is not None
    assert found.left_ns_per_step.low >= 300_000 / 1.04
    assert found.speedup.high <= 1000 / 300 * 1.04
    assert found.speedup.mid > 2


def test_candidates_go_with_the_compiler_on_whatever_thread_it_launches_them() -> None:
    case = case_of_text(steps(COMPILER, *CANDIDATE, *AUGMENT), framework="jax")
    tried = case.plan.items.filter(find_trials(case))["event"].drop_nulls()
    assert case.trace.events["name"].gather(tried).cast(str).to_list() == 3 * ["candidate"]


def test_what_runs_right_after_its_compilation_is_the_program_itself() -> None:
    """A kernel of 300 µs is compiled for 600 in each step: it is no trial, although the host did nothing else before it."""
    found = recompiled(*gemm(600, 300), framework="pytorch")
    assert found.left_ns_per_step is not None
    assert found.left_ns_per_step.mid >= 300_000


def test_without_names_of_programs_a_thread_that_compiles_nothing_tries_nothing() -> None:
    """As where PyTorch compiles in the background."""
    rows = ["other  0  600  torch/_inductor/compile_fx.py(1): compile_fx  python  -"]
    case = case_of_text(steps(*rows, *gemm(100, 300)))
    assert not find_trials(case).any()
