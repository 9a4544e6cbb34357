"""Advice about an op that takes most of a step on the host."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.analysis.findings.cheaper_ops import advise_on_op
from stepscope.analysis.findings.rules.host.host_python import RULE
from tests.builders.cases import case_of_text, steps


@pytest.mark.parametrize(
    ("name", "framework", "advice"),
    [
        ("Conv2DBackpropFilter", "tensorflow", "set_intra_op_parallelism_threads"),
        ("aten::mkldnn_convolution", "pytorch", "torch.set_num_threads"),
        ("dot.3", "jax", "less to compute"),
        ("RandomStandardNormal", "tensorflow", "random numbers"),
        ("while/body/StatelessRandomUniformV2", "tensorflow", "random numbers"),
        ("aten::normal_", "pytorch", "random numbers"),
        ("aten::native_batch_norm", "pytorch", "less to compute"),
    ],
)
def test_ops_get_advice_about_ops(name: str, framework: str, advice: str) -> None:
    assert advice in (advise_on_op(name, framework) or "")


@pytest.mark.parametrize(("name", "framework"), [("EagerPyFunc", "tensorflow"), ("work", None)])
def test_what_is_python_or_foreign_does_not(name: str, framework: str | None) -> None:
    assert advise_on_op(name, framework) is None


@pytest.mark.parametrize(("name", "is_op"), [("Conv2D", True), ("PyFunc", False)])
def test_the_finding_about_one_op(name: str, is_op: bool) -> None:
    case = case_of_text(steps(f"main  0  900  {name}  op  -"), framework="tensorflow")
    alone = replace(case, device=None)
    alone.trace.info.devices.clear()
    (found,) = RULE.findings(alone)
    assert ("op of the framework" in found.fix) == is_op
    assert ("vectorise" in found.fix) != is_op
