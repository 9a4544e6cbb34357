"""Calibrating without a device is an error with a fix; what is measured is printed and kept."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from typer.testing import CliRunner

from stepscope.analysis.kernels.measured_peaks import MeasuredDevice, measured
from stepscope.calibrate import measure as module
from stepscope.calibrate.with_torch import measure_with_torch
from stepscope.cli.app import app

RUN = CliRunner()


def test_a_machine_without_a_framework(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    result = RUN.invoke(app, ["calibrate"])
    assert result.exit_code == 1
    assert "Neither torch nor jax is installed" in result.output


def test_a_machine_without_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: object())
    monkeypatch.setattr(module, "_with", lambda name, said: None)
    result = RUN.invoke(app, ["calibrate"])
    assert result.exit_code == 1
    assert "There is no GPU or TPU" in result.output


def test_torch_without_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = ModuleType("torch")
    torch.cuda = SimpleNamespace(is_available=lambda: False)  # type: ignore[attr-defined]
    monkeypatch.setitem(__import__("sys").modules, "torch", torch)
    assert measure_with_torch(lambda what: None) is None


def test_what_was_measured_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STEPSCOPE_CALIBRATION", str(tmp_path / "own.json"))
    own = MeasuredDevice(
        name="NVIDIA H200",
        by="torch 2.11",
        when="2026-11-16",
        flops_per_s={"bf16": 700e12},
        bytes_per_s=4.2e12,
        launch_ns=2_500,
    )
    monkeypatch.setattr("stepscope.calibrate.measure.measure", lambda said: own)
    assert RUN.invoke(app, ["calibrate", "--dry-run"]).exit_code == 0
    assert measured("NVIDIA H200") is None
    result = RUN.invoke(app, ["calibrate"])
    assert "700.0 TFLOP/s" in result.output
    assert "4200.0 GB/s" in result.output
    assert measured("NVIDIA H200") == own
