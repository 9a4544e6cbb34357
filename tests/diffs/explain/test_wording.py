"""The phrases of a diff, word by word."""

from __future__ import annotations

import pytest

from stepscope.diffs.data.model import Batch, Row, Tail
from stepscope.diffs.explain import wording


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.032, "+3.2 %"), (-0.123, "−12 %"), (0.0, "+0.0 %"), (9.0, "+900 %"), (17.2, "18×")],
)
def test_relative_changes(value: float, words: str) -> None:
    assert wording.format_share_change(value) == words


@pytest.mark.parametrize(
    ("part", "name", "words"),
    [
        ("input", "load", "waiting for input in load"),
        ("python", "$train.py:12 step", "Python code: step (train.py:12)"),
        ("dispatch", "aten::mm", "dispatch: aten::mm"),
        ("host_compute", "sort", "host compute: sort"),
    ],
)
def test_names_in_parts(part: str, name: str, words: str) -> None:
    assert wording.describe_named(part, name) == words


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (None, 1.0, "f is called once per step, only in B"),
        (2.5, 0.0, "f is called 2.5 times per step, only in A"),
        (1.0, 12_000.0, "f is called once per step in A, 12,000 times in B"),
    ],
)
def test_numbers_of_calls(a: float | None, b: float | None, words: str) -> None:
    assert wording.describe_calls("f", a, b) == words


def test_batches() -> None:
    step = Row(name="step", a=10.0, b=15.0, difference=5.0)
    batch = Batch(ratio=1.5, share=1.0, example="mm [32] → [48]")
    assert wording.describe_batch(batch) == "B's batch is 1.5× A's"
    assert wording.describe_batch_detail(batch, step) == "mm [32] → [48]; time per sample +0.0 %"
    unknown = Row(name="step", a=None, b=None, difference=0.0)
    assert wording.describe_batch_detail(batch, unknown).endswith("; the time per sample is unknown")


def test_slow_steps_of_both_runs() -> None:
    tail = Tail(
        a_slow=3, b_slow=1, a_steps=10, b_steps=12, a_excess_ns=5.0, b_excess_ns=1.0, times=2.5, part="io"
    )
    assert (
        wording.describe_slow_steps(tail) == "3 of 10 steps in A take 2.5 times as long as usual (B: 1 of 12)"
    )
    assert wording.describe_tail_cause(tail) == "mostly io"
