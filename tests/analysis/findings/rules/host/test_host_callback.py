"""Programs that call Python functions on the host while they run."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.rules.host.host_callback import RULE
from tests.builders.cases import case_of_text, findings_of, gemm, steps

JAX = {"framework": "jax"}


def calling_back(name: str, kind: str, length: int = 700) -> list[str]:
    """Steps of 1000 µs that compute for 250 µs, and a callback with its copy of 100 µs to the host."""
    return steps(
        *gemm(5, 100, 15),
        f"main  120  {length}  {name}  {kind}  -",
        "main  121  105  MemcpyD2H  runtime  MemcpyD2H",
        "stream 7  123  100  MemcpyD2H  copy  -",
        f"main  230  {length - 120}  $watch.py:12 record  python  -",
        *gemm(840, 150, 850),
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("debug_callback.3", "span"),
        ("xla_ffi_python_gpu_callback", "span"),
        ("$callback.py:815 _wrapped_callback", "python"),
        ("EagerPyFunc:EagerPyFunc", "op"),
    ],
)
def test_the_device_waits_for_a_callback(name: str, kind: str) -> None:
    """With the callback go its Python, its copy and its wait: 250 of 1000 µs are left, and some launches."""
    found = RULE.findings(case_of_text(calling_back(name, kind), **JAX))
    assert [each.code for each in found] == ["host-callback"]
    assert 2.5 < found[0].speedup.mid < 4.2
    assert found[0].share > 0.6


def test_no_other_rule_claims_the_callback() -> None:
    codes = {each.code for each in findings_of(calling_back("io_callback", "span"), **JAX)}
    assert "host-callback" in codes
    assert not codes & {"host-python", "exposed-copy"}


def test_functions_that_only_have_such_a_name_are_none() -> None:
    case = case_of_text(calling_back("$train.py:12 on_callback", "python"), **JAX)
    assert RULE.findings(case) == []
