"""Gradients that nothing uses, on a CPU: the ops of the backward pass compute by themselves."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.rules.useless.useless_backward import RULE
from tests.analysis.findings.rules.host_training import (
    Call,
    backward,
    case_of_calls,
    forward,
    gradient,
    optimizer,
)

HEAD, BODY = "[1000,512]", "[512,4096]"


def update(shape: str, *names: str) -> list[Call]:
    return [Call(name, 1, f"[{shape},{shape}]") for name in names or ("aten::add_",)]


def steps_that_update(*updates: Call, body: int = 500) -> tuple[Call, ...]:
    """A forward pass, a backward pass through the head and on through the body, and an optimizer step."""
    return (forward(150), backward(50), gradient(HEAD), backward(body), gradient(BODY), optimizer(*updates))


def test_a_backbone_that_the_optimizer_was_not_given() -> None:
    found = {each.code: each for each in apply_rules(case_of_calls(*steps_that_update(*update(HEAD))))}
    assert "host-python" not in found, "the op of most of the step has a better explanation"
    speedup = found["useless-backward"].speedup
    assert speedup.low < 1000 / 495 < speedup.high
    assert speedup.low > 1.6


@pytest.mark.parametrize(
    "updates", [[*update(HEAD), *update(BODY)], update("[7,7]"), update("[]"), []], ids=str
)
def test_gradients_that_are_used_or_whose_use_is_not_known(updates: list[Call]) -> None:
    assert RULE.findings(case_of_calls(*steps_that_update(*updates))) == []


def test_a_body_that_takes_little() -> None:
    assert RULE.findings(case_of_calls(*steps_that_update(*update(HEAD), body=10))) == []


def test_layers_of_one_shape_are_told_apart_by_the_op_that_comes_once() -> None:
    """AdamW multiplies each parameter twice, and adds its update once."""
    updates = update(HEAD, "aten::mul_", "aten::mul_", "aten::lerp_", "aten::addcdiv_")
    layers = (forward(100), backward(50), gradient(HEAD), backward(300), gradient(HEAD), backward(300))
    case = case_of_calls(*layers, gradient(BODY), gradient(BODY), optimizer(*updates))
    (found,) = RULE.findings(case)
    assert found.share == pytest.approx(0.6, abs=0.02)


def test_gradients_that_two_passes_sum_up_are_used() -> None:
    """Each pass on its own: a forward op comes in between, on the same thread."""
    one = (forward(100), backward(100), gradient(BODY), backward(50), gradient(HEAD))
    case = case_of_calls(*one, *one, optimizer(*update(BODY), *update(HEAD)))
    assert RULE.findings(case) == []
