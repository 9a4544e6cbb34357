"""What stepscope calibrate measured comes before the data sheet; a bad file counts as none."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.analysis.kernels.device_peaks import listed_peaks, peaks
from stepscope.analysis.kernels.measured_peaks import MeasuredDevice, calibration, location, measured, save

H200 = {"id": 0, "name": "NVIDIA H200"}
OWN = MeasuredDevice(
    name="NVIDIA H200", by="torch 2.11", when="2026-11-16", flops_per_s={"bf16": 700e12}, bytes_per_s=4.2e12
)


@pytest.fixture(autouse=True)
def _file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_CALIBRATION", str(tmp_path / "folder" / "own.json"))


def test_measured_figures_replace_those_of_the_sheet() -> None:
    """Those that were not measured stay; MFU is still a share of the sheet's peak."""
    save(OWN)
    found = peaks(H200)
    assert found is not None
    assert (found.source, found.bytes_per_s) == ("measured", 4.2e12)
    assert found.own_flops_per_s("bf16") == 700e12
    assert found.own_flops_per_s("fp32") == 67e12
    assert found.best_flops_per_s("bf16") == 989.4e12
    sheet = listed_peaks(H200)
    assert sheet is not None
    assert sheet.source == "data sheet"


def test_a_device_without_a_sheet() -> None:
    save(MeasuredDevice(name="Abacus 9000", by="jax 0.9", when="2026-11-16", bytes_per_s=1e12))
    found = peaks({"name": "Abacus 9000"})
    assert found is not None
    assert found.bytes_per_s == 1e12
    assert peaks({"name": "Abacus 9001"}) is None


def test_saving_again_replaces_the_entry_of_the_same_name() -> None:
    save(OWN)
    save(MeasuredDevice(name="other", by="torch 2.11", when="2026-11-16"))
    save(OWN)
    assert [each.name for each in calibration().devices] == ["other", "NVIDIA H200"]


@pytest.mark.parametrize("text", ["", "{", '{"schema": "stepscope.calibration/9"}', '{"devices": 7}', "[]"])
def test_a_bad_file_counts_as_none(text: str) -> None:
    location().parent.mkdir(parents=True)
    location().write_text(text, "utf-8")
    assert measured("NVIDIA H200") is None


def test_the_folder_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("STEPSCOPE_CALIBRATION")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert location() == tmp_path / "stepscope" / "calibration.json"
