"""Callbacks and hooks in real frameworks, and what they say without."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.capture.running import environment, needs, sidecars, told
from tests.sample import in_soak

MODULES = {
    "keras": ("StepscopeCallback",),
    "lightning": ("StepscopeCallback", "StepscopeProfiler"),
    "transformers": ("StepscopeCallback",),
    "session": ("StepscopeHook",),
}


def check(found: dict[str, Any], total: int) -> None:
    """Three steps were recorded, the steps around them timed, and the report explains them."""
    assert (found["steps"], found["partial"], found["problems"]) == (3, 0, [])
    steps = found["capture"]["steps"]
    assert [steps[part]["first"] for part in ("before", "warmup", "inside", "after")] == [0, 2, 3, 6]
    assert sum(len(part["durations_ns"]) for part in steps.values()) == total
    assert found["runtime"] >= 0.99
    assert sum(found["parts"].values()) > 0


@needs("keras", "tensorflow")
@pytest.mark.parametrize(
    "backend", ["tensorflow", *(pytest.param(name, marks=in_soak) for name in ("jax", "torch"))]
)
def test_keras(tmp_path: Path, backend: str) -> None:
    pytest.importorskip(backend)
    found = told("integrations_job", "keras", tmp_path, KERAS_BACKEND=backend)
    check(found["keras"], 16)
    assert found["is_callback"]
    assert found["keras"]["capture"]["backend"] == backend
    if backend != "tensorflow":
        assert found["keras"]["roles"]["input"] >= 3


@needs("lightning", "torch")
def test_lightning(tmp_path: Path) -> None:
    found = told("integrations_job", "lightning", tmp_path)
    check(found["callback"], 8)
    check(found["profiler"], 8)
    names = found["profiler"]["names"]
    assert any(name.endswith("training_step") for name in names)
    assert found["profiler"]["roles"]["input"] >= 6


@needs("transformers", "torch", "accelerate")
def test_transformers(tmp_path: Path) -> None:
    found = told("integrations_job", "transformers", tmp_path)
    check(found["trainer"], 10)


@needs("tensorflow")
def test_session(tmp_path: Path) -> None:
    found = told("integrations_job", "session", tmp_path)
    check(found["session"], 10)
    assert any("MatMul" in name for name in found["session"]["ops"])
    (note,) = sidecars(tmp_path)
    assert "tfevents." in note["file"]
    assert note["backend"] == "session"


@pytest.mark.parametrize("module", MODULES)
def test_without_the_framework(module: str) -> None:
    """It can be imported; using it says what to install."""
    script = (
        "import sys\n"
        "for name in ('keras', 'tf_keras', 'lightning', 'pytorch_lightning', 'transformers', 'tensorflow'):\n"
        "    sys.modules[name] = None\n"
        f"from stepscope.capture.integrations import {module}\n"
        f"for name in {MODULES[module]!r}:\n"
        "    try:\n"
        f"        getattr({module}, name)('logs')\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], env=environment(), capture_output=True, text=True, check=True
    )
    assert ended.stdout.count("which is not installed.\nInstall it: pip install") == len(MODULES[module])
