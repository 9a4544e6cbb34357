"""Settings for debugging, read in real frameworks on the CPU, and modules that are not there or do not answer."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

import stepscope
from stepscope.analysis.debug_settings import noted_settings
from stepscope.capture.machine.debug_settings import look
from tests.capture.jobs import warm
from tests.capture.running import needs, sidecars

JOB = Path(__file__).with_name("debug_settings_job.py")


def noted(folder: Path, framework: str) -> list[str]:
    warm.told(framework, JOB, folder, framework)
    [note] = sidecars(folder)
    found: list[str] = note["debug_settings"]
    [trace] = stepscope.load(str(folder)).traces
    assert noted_settings(trace) == found
    return found


@needs("torch")
def test_of_pytorch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    assert noted(tmp_path, "torch") == [
        "torch.autograd.set_detect_anomaly",
        "torch.use_deterministic_algorithms",
        "CUDA_LAUNCH_BLOCKING=1",
    ]


@needs("jax")
def test_of_jax(tmp_path: Path) -> None:
    assert noted(tmp_path, "jax") == ["jax_debug_nans", "jax_disable_jit"]


@needs("tensorflow")
def test_of_tensorflow(tmp_path: Path) -> None:
    assert noted(tmp_path, "tensorflow") == [
        "tf.config.run_functions_eagerly",
        "tf.debugging.enable_check_numerics",
        "tf.data.experimental.enable_debug_mode",
    ]


def test_what_is_not_imported_or_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_LAUNCH_BLOCKING", raising=False)
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    assert look(["torch", "host"]) == []
    monkeypatch.delitem(sys.modules, "torch")
    assert look(["torch"]) == []
    assert "torch" not in sys.modules
