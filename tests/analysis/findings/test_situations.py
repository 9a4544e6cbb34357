"""Advice that fits the situation."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any, cast

import pytest

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.registry import built_in_rules
from stepscope.analysis.findings.situations import TRAINING_ONLY, fitted
from stepscope.analysis.kernels.device_peaks import peaks

TRAINS = re.compile(
    r"optimi[sz]er|learning rate|\bloss|gradient|training|GradScaler|DataLoader|backward", re.IGNORECASE
)


def case(workload: str | None, framework: str = "pytorch", device: str = "NVIDIA H100") -> Case:
    """As much of a case as is asked for."""
    info = SimpleNamespace(framework=framework)
    known: Any = SimpleNamespace(
        workload=workload,
        trace=SimpleNamespace(info=info),
        peaks=peaks({"name": device}),
        is_tpu="TPU" in device,
    )
    return cast("Case", known)


def fixes(workload: str | None, framework: str, device: str = "NVIDIA H100") -> dict[str, str]:
    """What to change by each finding that is left."""
    found = [rule.finding("", rule.fix_for(framework)) for rule in built_in_rules()]
    return {finding.code: finding.fix for finding in fitted(case(workload, framework, device), found)}


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow", "jax"])
def test_no_training_advice_in_inference(framework: str) -> None:
    found = fixes("inference", framework)
    assert not set(found) & set(TRAINING_ONLY)
    assert {code: fix for code, fix in found.items() if TRAINS.search(fix)} == {}


def test_training_keeps_its_advice() -> None:
    assert set(fixes("training", "pytorch")) == {rule.code for rule in built_in_rules()}
    assert "fused=True" in fixes(None, "pytorch")["optimizer-loop"]


def test_volta_and_turing_have_tensor_cores_for_fp16_alone() -> None:
    """Neither TF32 nor bfloat16 can be advised there."""
    for device in ("Tesla V100-SXM2-32GB", "Tesla T4"):
        fix = fixes("training", "pytorch", device)["fp32-matmul"]
        assert "float16" in fix
        assert "bfloat16" not in fix
        assert "TF32" not in fix
