"""Gradients of weights that a learning rate of zero freezes, in programs of JAX and in PyTorch's optimizers."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rules.useless.useless_backward import RULE
from stepscope.analysis.frozen_facts import noted_zeros, trained_shapes
from stepscope.trace.trace import Trace
from tests.analysis.findings.rules.host_training import (
    Call,
    backward,
    case_of_calls,
    forward,
    gradient,
    optimizer,
)
from tests.analysis.xla.test_frozen_weights import CODE
from tests.builders.cases import case_of
from tests.builders.hlo import program
from tests.builders.programs import program_trace

ZERO = [{"framework": "jax", "name": "encoder"}]
HEAD, BODY = "[1000,512]", "[512,4096]"


def noted(trace: Trace, rows: object) -> Trace:
    """The trace with these rows of the capture."""
    info = dataclasses.replace(trace.info, capture={"frozen": rows})
    return Trace({**trace.tables, "traces": info.frame()}, trace.cold)


def found_in(rows: object, back: int = 400, op: str = "transpose(jvp())") -> dict[str, Finding]:
    """Three steps of 1000 µs, of which the gradients of the body take so long."""
    code = CODE.format(scale="rate", head_scale="other", mask="one", weight="updated", head="head")
    code = code.replace(
        "of_body = f32[8,8] dot(x, back)", f"of_body = f32[8,8] dot(x, back) op_name=jit(step)/{op}/dot"
    )
    kernels = (
        ("features", 150),
        ("out", 50),
        ("back", back),
        ("of_body", 100),
        ("of_head", 50),
        ("state", 100),
    )
    lines: list[str] = []
    for step in range(3):
        at = 1000 * step
        lines.append(f"main  {at}  1000  ProfilerStep#{step}  annotation  -  -")
        lines.append(f"over modules  {at + 20}  950  jit_step  module  -  -")
        begin = at + 20
        for place, (name, dur) in enumerate(kernels):
            lines.append(f"main  {at + 2 + 2 * place}  1  cudaLaunchKernel  runtime  {name}  -")
            lines.append(f"stream 7  {begin}  {dur}  {name}  kernel  -  jit_step")
            begin += dur + 1
        lines.append(f"main  {at + 16}  980  cudaDeviceSynchronize  runtime  -  -")
    trace = noted(program_trace(lines, jit_step=program(code)), rows)
    return {one.code: one for one in apply_rules(case_of(trace))}


def test_a_program_whose_encoder_has_a_learning_rate_of_zero() -> None:
    found = found_in(ZERO)["useless-backward"]
    assert "lrs['encoder'] is zero" in found.detail
    assert found.evidence["weights"] == 1
    # Of 1000 µs, 603 go.
    assert found.speedup.low < 1000 / 397 < found.speedup.high
    assert found.speedup.low > 2


@pytest.mark.parametrize("given", [{"rows": []}, {"rows": None}, {"rows": ZERO, "op": "jvp()"}], ids=str)
def test_a_program_of_which_nothing_is_known_or_that_makes_no_gradients(given: dict[str, Any]) -> None:
    assert "useless-backward" not in found_in(**given)


def training(rows: object) -> Case:
    """A head and a body that one optimizer updates, on a CPU."""
    updates = [Call("aten::add_", 1, f"[{shape},{shape}]") for shape in (HEAD, BODY)]
    case = case_of_calls(
        forward(150), backward(50), gradient(HEAD), backward(500), gradient(BODY), optimizer(*updates)
    )
    return case_of(noted(case.trace, rows))


def group(name: str = "SGD", trained: object = ([1000, 512],)) -> list[dict[str, Any]]:
    shapes = list(trained) if isinstance(trained, tuple) else trained
    return [{"framework": "torch", "optimizer": name, "frozen": [[512, 4096]], "trained": shapes}]


def test_a_group_of_pytorch_whose_learning_rate_is_zero() -> None:
    (found,) = RULE.findings(training(group()))
    assert found.speedup.low < 1000 / 495 < found.speedup.high


@pytest.mark.parametrize(
    "rows",
    [[], group("AdamW"), group(trained=()), group(trained="x"), group(trained=([1, "2"],)), [3], {"a": 1}],
    ids=str,
)
def test_groups_of_another_optimizer_and_notes_that_make_no_sense(rows: object) -> None:
    assert RULE.findings(training(rows)) == []


def test_what_a_note_says() -> None:
    trace = training([*ZERO, {"framework": "jax", "name": 3}, *group()]).trace
    assert noted_zeros(trace) == ["encoder"]
    assert trained_shapes(trace) == {"SGD": {HEAD: 1}}
