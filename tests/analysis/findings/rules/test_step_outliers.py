"""Slow steps are explained by the function that runs in them and not in the others."""

from __future__ import annotations

from dataclasses import replace

from stepscope.analysis.findings.rules.steps.step_outliers import RULE
from tests.builders.cases import case_of_text, gemm


def loop(*, evaluates: bool) -> list[str]:
    """Ten steps of 200 µs, but for one of 1 ms."""
    lines, now = [], 0
    for number in range(10):
        slow = number == 6
        length = 1000 if slow else 200
        lines.append(f"main  {now}  {length}  ProfilerStep#{number}  annotation  -")
        lines.append(f"main  {now}  {length}  train.py(3): step  python  -")
        if slow and evaluates:
            lines.append(f"main  {now + 10}  800  train.py(20): evaluate  python  -")
            lines.append(f"main  {now + 20}  700  numpy/a.py(5): mean  python  -")
        begin = now + length - 100
        lines += gemm(begin, 90)
        now += length
    return lines


def test_the_function_that_runs_in_the_slow_step_alone_explains_it() -> None:
    (found,) = RULE.findings(case_of_text(loop(evaluates=True)))
    assert "in which evaluate (train.py:20) runs" in found.detail
    assert found.evidence["names"][0] == {"name": "train.py(20): evaluate", "ns_per_step": 80_000}


def test_without_such_a_function_the_longest_name_is_given() -> None:
    (found,) = RULE.findings(case_of_text(loop(evaluates=False)))
    assert "mostly in step (train.py:3)" in found.detail


def test_steps_that_are_inferred_promise_nothing() -> None:
    """A long one may be other work, or several in one."""
    case = case_of_text(loop(evaluates=True))
    (marked,) = RULE.findings(case)
    (found,) = RULE.findings(replace(case, steps=replace(case.steps, source="inferred")))
    assert marked.speedup.low > 1
    assert (found.class_, found.speedup.high, found.saves_ns_per_step) == ("advice", 1.0, 0)
    assert found.share == marked.share
    assert found.detail.endswith("so nothing is promised.")
