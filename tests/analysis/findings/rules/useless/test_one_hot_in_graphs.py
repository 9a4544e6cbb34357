"""Products with one-hot matrices in graphs of TensorFlow, whose shapes no profile has."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rules.useless.one_hot_product import find
from tests.builders.jobs.scoped_ops import Op, case_of_ops

LAYER = "user_1/dense_1"
GRADIENT: Op = ("_MklMatMul", f"gradient_tape/{LAYER}/MatMul/MatMul", 300)
OF_INPUT: Op = ("_MklMatMul", f"gradient_tape/{LAYER}/MatMul/MatMul_1", 100)
PRODUCT: Op = ("_MklMatMul", f"{LAYER}/MatMul", 300)
FUSED: Op = ("_MklNativeFusedMatMul", f"{LAYER}/Relu", 300)


def ids(*between: Op, product: Op = PRODUCT, after: int = 20) -> list[Op]:
    """A matrix of 150 µs, ops that come before its product, and those after it, which fill the step."""
    made: Op = ("OneHot", "user_1/one_hot", 150)
    ops = [made, *between, product, ("Sum", "user_1/Sum", after), GRADIENT]
    return [*ops, ("AssignSubVariableOp", "sgd/AssignSubVariableOp", 1000 - sum(us for _, _, us in ops))]


def found_in(ops: list[Op]) -> Finding | None:
    return find(case_of_ops(ops, in_one_turn=True))


@pytest.mark.parametrize("product", [PRODUCT, FUSED])
def test_the_matrix_its_product_and_the_gradient_go(product: Op) -> None:
    found = found_in(ids(product=product))
    assert found is not None
    assert found.share == pytest.approx(0.75, abs=0.01)
    assert found.evidence["ops"] == [product[1]]
    assert found.speedup.low < 1 / (1 - 0.75 * 0.95) < found.speedup.high
    assert "tf.gather" in found.fix


def test_matrices_that_are_joined_first_count_as_well() -> None:
    joined = found_in(ids(("Reshape", "user_1/Reshape", 1), ("ConcatV2", "user_1/concat", 80)))
    assert joined is not None
    assert joined.share == pytest.approx(0.83, abs=0.01)


def test_an_input_with_a_gradient_is_no_one_hot_matrix() -> None:
    assert found_in([*ids()[:-1], OF_INPUT]) is None


def test_labels_are_multiplied_with_what_the_model_says() -> None:
    assert found_in(ids(("Mul", "mul", 10))) is None


@pytest.mark.parametrize(("length", "after"), [(300, 150), (300, 60), (25, 5)])
def test_a_product_of_a_narrow_matrix_or_another_one(length: int, after: int) -> None:
    """It makes about as much as it reads, or has not read all of what took so long to make."""
    product = (*PRODUCT[:2], length)
    assert found_in(ids(product=product, after=after)) is None


def test_what_runs_in_another_turn_is_not_known_to_read_it() -> None:
    assert find(case_of_ops(ids())) is None
