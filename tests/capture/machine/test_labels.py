"""Ignored labels of losses, counted in a real PyTorch on the CPU, and what a job notices of that: nothing."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.analysis.labels import counted_labels
from stepscope.capture.machine.labels import Labels
from stepscope.capture.machine.matrices import SWITCH
from tests.capture.jobs import warm
from tests.capture.running import needs, sidecars

UNTOUCHED = {"restored": True, "listening": False}

JOB = Path(__file__).with_name("labels_job.py")


def counted(folder: Path, how: str, wanted: str = "cpu") -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What the sidecar has, and what the job tells."""
    found = warm.told(warm.DYNAMO, JOB, folder, how, **{SWITCH: wanted})
    [note] = sidecars(folder)
    return note["labels"], {name: found[name] for name in (*UNTOUCHED, "compiles")}


def row(shape: list[int], rows: int, ignored: float) -> dict[str, Any]:
    return {
        "framework": "torch",
        "shape": shape,
        "dtype": "float32",
        "calls": 3,
        "labels": 3 * rows,
        "ignored": ignored,
    }


@needs("torch")
def test_losses_of_many_classes(tmp_path: Path) -> None:
    rows, found = counted(tmp_path, "usual")
    assert rows == [
        row([1200, 2048], 1200, 0.75),
        row([2, 2048, 700], 1400, 0.25),
        row([1000, 2500], 1000, 0.25),
    ]
    assert found == {**UNTOUCHED, "compiles": 0}
    [trace] = stepscope.load(str(tmp_path)).traces
    read = counted_labels(trace)
    assert [(each.rows, each.classes, each.ignored) for each in read] == [
        (1200, 2048, 0.75),
        (1400, 2048, 0.25),
        (1000, 2500, 0.25),
    ]


@needs("torch")
@pytest.mark.parametrize(("how", "compiles"), [("small", 0), ("traced", 2)])
def test_what_is_not_counted_and_what_is_compiled_once(how: str, compiles: int, tmp_path: Path) -> None:
    rows, found = counted(tmp_path, how)
    assert rows == []
    assert found == {**UNTOUCHED, "compiles": compiles}


@needs("torch")
def test_a_call_that_fails_raises_what_it_raised(tmp_path: Path) -> None:
    rows, found = counted(tmp_path, "wrong")
    assert rows == [row([1200, 2048], 1200, 3 / 1200)]
    assert found == {**UNTOUCHED, "compiles": 0}


@needs("torch")
@pytest.mark.parametrize("wanted", ["0", "1"])
def test_turned_off_or_without_a_gpu(wanted: str, tmp_path: Path) -> None:
    assert counted(tmp_path, "usual", wanted) == ([], {**UNTOUCHED, "compiles": 0})


def test_what_fails_or_is_not_imported_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    broken = Labels()
    broken.start(["torch"])
    broken.note("nll_loss_nd", (1, 2), {})
    assert broken.count() == []
    monkeypatch.delitem(sys.modules, "torch")
    absent = Labels()
    absent.start(["torch"])
    assert absent.count() == []
    assert "torch" not in sys.modules
