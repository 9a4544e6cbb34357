"""What engines write into the names of their executions."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.analysis.serving.names import CAPTURES, EXECUTION, Execution, parse


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("execute_context_1(888_788544)_generation_0(0)", Execution("vLLM", "prefill", 1, 888)),
        ("execute_context_2(100)_generation_3(3)", Execution("vLLM", "mixed", 5, 103)),
        ("execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)", Execution("vLLM", "decode", 32, 32)),
        ("execute_context_1(?)_generation_0(0)", Execution("vLLM", "prefill", 1, None)),
        ("execute_new_0_cached_14", Execution("vLLM", "decode", 14, 14)),
        ("execute_new_2_cached_14", Execution("vLLM", "mixed", 16, None)),
        ("step[DECODE bs=32]", Execution("SGLang", "decode", 32, 32)),
        ("step[EXTEND bs=4 toks=1024]", Execution("SGLang", "extend", 4, 1024)),
        ("step[IDLE]", Execution("SGLang", "other", None, None)),
        ("[Executor] _forward_step 7: 1 ctx reqs, 12 gen reqs", Execution("TensorRT-LLM", "mixed", 13, None)),
        ("[Executor] _forward_step 8: 0 ctx reqs, 12 gen reqs", Execution("TensorRT-LLM", "decode", 12, 12)),
    ],
)  # fmt: skip
def test_names(name: str, expected: Execution) -> None:
    """Phase, requests and tokens; None where the name does not say."""
    assert parse(name) == expected
    assert re.search(EXECUTION, name)


@pytest.mark.parametrize(
    "name", ["run_model_7", "execute", "step[decode]", "ProfilerStep#3", "capture_32_DECODE", ""]
)
def test_other_names(name: str) -> None:
    """They are not executions, whatever they resemble."""
    assert parse(name) is None
    assert not re.search(EXECUTION, name)


def test_captures() -> None:
    assert re.search(CAPTURES, "capture_32_FULL")
    assert not re.search(CAPTURES, "capture_the_flag")


@given(st.text(max_size=60), st.sampled_from(["", "execute_context_", "step[", "execute_new_1_cached_"]))
def test_any_name(text: str, start: str) -> None:
    """A name is parsed exactly where the common pattern finds it."""
    assert (parse(start + text) is not None) == bool(re.search(EXECUTION, start + text))
