"""Passes of one model that end in heads of their own, and those that have to be several."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.rules.useless.repeated_pass import find
from tests.builders.jobs.scoped_ops import Op, case_of_ops


def run(model: str, *heads: str) -> list[Op]:
    """A call of the model, 300 µs of it in layers before the heads, with its backward pass."""
    back = f"gradient_tape/{model}"
    return [
        ("_FusedConv2D", f"{model}/conv/Relu", 100),
        *[("_FusedMatMul", f"{model}/{head}/BiasAdd", 5) for head in heads],
        *[("MatMul", f"{back}/{head}/MatMul/MatMul", 5) for head in heads],
        ("Conv2DBackpropFilter", f"{back}/conv/convolution/Conv2DBackpropFilter", 200),
    ]


def test_a_pass_for_each_head_may_be_one() -> None:
    found = find(case_of_ops([*run("face_1", "age"), *run("face_3", "pose"), *run("face_5", "smile")]))
    assert found is not None
    assert found.evidence["passes"] == 3
    assert found.evidence["heads"] == ["age", "pose", "smile"]
    assert found.share == pytest.approx(0.9, abs=0.01)
    assert found.speedup.mid == pytest.approx(1 / (1 - 0.9 * 2 / 3), rel=0.02)


def test_the_same_function_called_for_each_head_by_another_model_of_the_name() -> None:
    """What models have in common is their layers, not their names."""
    other = [("MatMul", "face_7/project/MatMul", 400), ("MatMul", "face_7/last/MatMul", 5)]
    assert find(case_of_ops([*run("face_1", "age"), *other])) is None


@pytest.mark.parametrize(
    "passes",
    [
        [run("twin_1", "out"), run("twin_3", "out"), run("twin_5", "out")],
        [run("actor_1", "value"), run("actor_3", "policy", "value")],
        [run("face_1", "age", "pose", "smile")],
    ],
    ids=["pairs", "a value of the next state", "one pass"],
)
def test_passes_over_other_data_stay(passes: list[list[Op]]) -> None:
    assert find(case_of_ops([op for each in passes for op in each])) is None


def test_a_batch_for_each_pass() -> None:
    batch: Op = ("IteratorGetNext", "IteratorGetNext", 5)
    assert find(case_of_ops([batch, *run("face_1", "age"), *run("face_3", "pose")])) is not None
    assert find(case_of_ops([batch, *run("face_1", "age"), batch, *run("face_3", "pose")])) is None
