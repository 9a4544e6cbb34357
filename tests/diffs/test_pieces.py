"""What a diff is made of: Student's t, Holm's rule, matching, batches."""

from __future__ import annotations

import pytest

from stepscope.diffs.data.match import KERNELS, OPS, match
from stepscope.diffs.explain.batch import detect_by_input, find_factor
from stepscope.reports.model.report import Input, InputStage, Profile, Report, Steps
from stepscope.statistics.student_t import MANY, quantile, two_sided


@pytest.mark.parametrize(
    ("t", "df", "chance"),
    [(12.706, 1, 0.05), (2.776, 4, 0.05), (2.228, 10, 0.05), (9.925, 2, 0.01), (1.96, MANY, 0.05)],
)
def test_student(t: float, df: float, chance: float) -> None:
    """Against the printed tables."""
    assert two_sided(t, df) == pytest.approx(chance, rel=2e-3)
    assert quantile(chance, df) == pytest.approx(t, rel=1e-3)


def test_ops_are_matched_by_all_then_by_less() -> None:
    a = [("mm", "l1", "[2]"), ("mm", "l2", "[2]"), ("add", None, "[1]"), ("old", None, None)]
    b = [("mm", "l1", "[2]"), ("mm", "l2", "[4]"), ("add", None, "[3]"), ("new", None, None)]
    found = {(pair.a[:1], pair.b[:1]): pair.by for pair in match(a, b, OPS)}
    assert found == {
        ((a[0],), (b[0],)): "name, scope and shapes",
        ((a[1],), (b[1],)): "name and scope",
        ((a[2],), (b[2],)): "name",
        ((a[3],), ()): "a",
        ((), (b[3],)): "b",
    }


def test_another_kernel_of_the_same_op_is_the_same_row() -> None:
    found = match([("sgemm", "mm", "fp32")], [("hgemm", "mm", "bf16")], KERNELS)
    assert [(pair.by, len(pair.a), len(pair.b)) for pair in found] == [("op", 1, 1)]


@pytest.mark.parametrize(
    ("a", "b", "factor"),
    [
        ("[[32, 64], [64, 10]]", "[[64, 64], [64, 10]]", 2),
        ("[[32, 64]]", "[[48, 64]]", 1.5),
        ("[[32, 64]]", "[[64, 96]]", None),
        ("[[32, 64]]", "[[32, 64, 1]]", None),
        ("[[0, 64]]", "[[8, 64]]", None),
    ],
)
def test_factors_of_shapes(a: str, b: str, factor: float | None) -> None:
    found = find_factor(a, b)
    assert (float(found) if found is not None else None) == factor


def pipeline(samples: int, batch_stage: str = "Iterator::BatchV2") -> Report:
    """Of ten steps; one sample more was begun."""
    calls = {"Iterator::Prefetch": 10, batch_stage: 11, "Iterator::Shuffle": 10 * samples + 1}
    stages = [
        InputStage(name=name, kind="other", total_ns=0, self_ns=0, calls=count)
        for name, count in calls.items()
    ]
    return Report(profile=Profile(path=""), steps=Steps(count=10), input=Input(stages=stages))


@pytest.mark.parametrize(
    ("a", "b", "factor"), [(128, 256, 2), (96, 32, 1 / 3), (128, 128, None), (128, 131, None)]
)
def test_batches_by_the_input_pipeline(a: int, b: int, factor: float | None) -> None:
    found = detect_by_input(pipeline(a), pipeline(b, "Iterator::MapAndBatch"))
    assert (found.ratio if found else None) == (pytest.approx(factor) if factor else None)
