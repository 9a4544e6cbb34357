"""Which changes are tried, in which order, and what is said of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from stepscope.errors import StepscopeError
from stepscope.reports.model.report import Finding, Interval
from stepscope.trial.conduct import Runner, choose_changes, conduct
from stepscope.trial.run import Ran, Timed
from stepscope.trial.text import outcome_lines, plan_words

MS = 1_000_000


def finding(code: str, speedup: float = 2.0) -> Finding:
    return Finding(code=code, class_="time", title=code, detail="", saves_ns_per_step=5 * MS, speedup=Interval(speedup - 0.2, speedup, speedup + 0.2))  # fmt: skip


def ran(changes: Sequence[str], ms: float, losses: Sequence[float | None] = (1.0,), **facts: object) -> Ran:
    result = Timed("enough", 20, round(20 * ms * MS), [], 0, "optimizer", list(losses), 1_000, dict.fromkeys(changes, ""))  # fmt: skip
    return Ran(tuple(changes), result, **facts)  # type: ignore[arg-type]


def scripted(ms: dict[str, float], losses: dict[str, float] | None = None) -> tuple[Runner, list[str]]:
    """A runner with known step times, and the order in which it was asked."""
    asked: list[str] = []

    def run(changes: Sequence[str]) -> Ran:
        name = changes[0] if changes else ""
        asked.append(name)
        if name not in ms:
            return ran(changes, 0, failure="ended with exit code 1", tail=("boom",))
        return ran(changes, ms[name], [(losses or {}).get(name, 1.0)] * 8)

    return run, asked


def test_findings_decide_what_is_tried_first() -> None:
    found = choose_changes([finding("input-bound"), finding("launch-bound")], ["torch"], (), False)
    assert list(found) == ["workers", "fused-optimizer", "compile", "compile-reduce-overhead"]
    assert found["workers"] is not None and found["workers"].code == "input-bound"


def test_all_and_only() -> None:
    every = choose_changes([finding("input-bound")], ["torch"], (), True)
    assert next(iter(every)) == "workers"
    assert {"bf16", "channels-last", "cudnn-benchmark"} <= every.keys()
    assert not {"tf-xla", "jax-tf32"} & every.keys()
    assert list(choose_changes([], ["torch"], ["bf16"], False)) == ["bf16"]
    assert list(choose_changes([], ["torch"], ["fp32-matmul"], False)) == ["bf16", "tf32"]
    with pytest.raises(StepscopeError, match="Nothing to try"):
        choose_changes([], ["torch"], ["nonsense"], False)


def test_runs_alternate_and_a_change_that_failed_is_not_run_again(tmp_path: Path) -> None:
    run, asked = scripted({"": 10.0, "bf16": 5.0})
    outcome = conduct({"bf16": finding("mixed-precision"), "compile": None}, run, 3, lambda _: None, tmp_path)
    assert asked == ["", "bf16", "compile", "", "bf16", "", "bf16", ""]
    bf16, compiled = outcome.tried
    assert bf16.measured is not None and bf16.measured.mid == pytest.approx(2.0)
    assert bf16.verdict(outcome.unchanged) == "faster"
    assert (compiled.failure, compiled.tail) == ("ended with exit code 1", ("boom",))
    assert outcome.winners == ["bf16"]
    text = "\n".join(outcome_lines(outcome))
    assert "2.00 (1.80–2.20)" in text
    assert "faster; loss as before" in text
    assert "    boom" in text


def test_a_change_that_spoils_the_loss_does_not_win(tmp_path: Path) -> None:
    run, _ = scripted({"": 10.0, "bf16": 5.0}, {"bf16": 3.0})
    outcome = conduct({"bf16": None}, run, 2, lambda _: None, tmp_path)
    assert outcome.tried[0].is_loss_close is False
    assert outcome.winners == []
    assert "the loss differs (1 → 3)" in "\n".join(outcome_lines(outcome))


def test_a_job_that_fails_unchanged_ends_the_trial(tmp_path: Path) -> None:
    run, _ = scripted({})
    with pytest.raises(StepscopeError, match="The unchanged job ended with exit code 1") as caught:
        conduct({"bf16": None}, run, 2, lambda _: None, tmp_path)
    assert "boom" in str(caught.value)


def test_nothing_below_the_difference_of_unchanged_runs_is_a_verdict(tmp_path: Path) -> None:
    times = iter([10.0, 9.0, 11.0, 9.5, 10.0])

    def run(changes: Sequence[str]) -> Ran:
        return ran(changes, next(times))

    outcome = conduct({"bf16": None}, run, 2, lambda _: None, tmp_path)
    assert outcome.unchanged == pytest.approx(0.1)
    assert outcome.tried[0].verdict(outcome.unchanged) == "within noise"


def test_losses_are_compared_at_the_same_steps(tmp_path: Path) -> None:
    """A faster run trains for longer, and its last loss is lower for that alone."""
    falling: list[float | None] = [1 / (1 + step) for step in range(100)]

    def run(changes: Sequence[str]) -> Ran:
        return ran(changes, 5.0 if changes else 10.0, falling if changes else falling[:40])

    (found,) = conduct({"bf16": None}, run, 2, lambda _: None, tmp_path).tried
    assert found.is_loss_close
    assert found.loss == found.unchanged_loss


def test_a_loss_that_is_lost_differs(tmp_path: Path) -> None:
    def run(changes: Sequence[str]) -> Ran:
        return ran(changes, 10.0, [1.0, None if changes else 0.9])

    (found,) = conduct({"bf16": None}, run, 2, lambda _: None, tmp_path).tried
    assert found.is_loss_close is False


def test_ctrl_c_shows_the_complete_rounds(tmp_path: Path) -> None:
    left = [6]

    def run(changes: Sequence[str]) -> Ran:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return ran(changes, 5.0 if changes else 10.0)

    outcome = conduct({"bf16": None}, run, 3, lambda _: None, tmp_path)
    assert (outcome.rounds, outcome.is_interrupted) == (2, True)
    assert "what 2 complete rounds show" in "\n".join(outcome_lines(outcome))
    left[0] = 2
    with pytest.raises(KeyboardInterrupt):
        conduct({"bf16": None}, run, 3, lambda _: None, tmp_path)


def test_a_part_of_the_advice_gets_no_promise(tmp_path: Path) -> None:
    run, _ = scripted({"": 10.0, "compile": 9.0, "compile-reduce-overhead": 5.0, "tf32": 5.0, "bf16": 4.0})
    products = finding("fp32-matmul")
    products.evidence = {"tf32": {"low": 1.5, "mid": 1.6, "high": 1.7}}
    chosen = choose_changes([finding("launch-bound"), products], ["torch"], ["compile", "compile-reduce-overhead", "tf32", "bf16"], False)  # fmt: skip
    tried = {each.name: each for each in conduct(chosen, run, 2, lambda _: None, tmp_path).tried}
    assert (tried["compile"].code, tried["compile"].promised) == ("launch-bound", None)
    assert tried["compile-reduce-overhead"].promised is None  # the optimizer and the loss stay eager
    assert tried["tf32"].promised == Interval(1.5, 1.6, 1.7)
    assert tried["bf16"].promised == Interval(1.8, 2.0, 2.2)
    products.evidence["bf16"] = {"low": 2.3, "mid": 2.4, "high": 2.5}
    (half,) = conduct({"bf16": products}, run, 2, lambda _: None, tmp_path).tried
    assert half.promised == Interval(2.3, 2.4, 2.5)  # the finding's own is for TF32, too


def test_what_is_going_to_be_tried() -> None:
    found = [finding("input-bound"), finding("device-sync")]
    wanted = choose_changes(found, ["torch"], (), False)
    assert plan_words(found, wanted) == "Trying workers. Findings without a change from outside: device-sync."
    assert plan_words([], {"tf32": None}) == "Trying tf32."
    assert "(device-sync)" in plan_words(found[1:], {})
    assert plan_words([], {}).startswith("No findings")
