"""Lengths of samples, counted in a real PyTorch and JAX on the CPU, and what a job notices of that: nothing."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.analysis.lengths import counted_lengths
from stepscope.capture.machine.lengths import Lengths
from stepscope.capture.machine.matrices import SWITCH
from tests.capture.jobs import warm
from tests.capture.running import needs, sidecars

JOB = Path(__file__).with_name("lengths_job.py")
JAX_JOB = JOB.with_name("lengths_of_jax_job.py")
UNTOUCHED = {"restored": True, "listening": False, "compiles": 1}


def counted(folder: Path, how: str, wanted: str = "1") -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What the sidecar has, and what the job tells."""
    found = warm.told(warm.DYNAMO, JOB, folder, how, **{SWITCH: wanted})
    [note] = sidecars(folder)
    assert note["kept"] == []  # no memory of a GPU
    return _without_counts(note["lengths"]), {name: found[name] for name in UNTOUCHED}


def _without_counts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows; all samples are counted, in parts that their mean lies between the ends of."""
    for each in rows:
        samples, positions = each["shape"]
        counts = each.pop("counts")
        ends = [part * positions / len(counts) for part in range(len(counts) + 1)]
        assert sum(counts) == samples * each["calls"]
        least, most = (
            sum(count * end for count, end in zip(counts, side, strict=True)) / sum(counts)
            for side in (ends[:-1], ends[1:])
        )
        assert least <= each["mean"] <= most
    return rows


def row(
    of: str, shape: list[int], mean: float, longest: float, calls: int = 3, framework: str = "torch"
) -> dict[str, Any]:
    return {
        "framework": framework,
        "of": of,
        "shape": shape,
        "calls": calls,
        "mean": mean,
        "longest": longest,
    }


PADDED = row("ids", [4, 64], 18.0, 32.0)


@needs("torch")
def test_ids_masks_and_lengths_that_are_told(tmp_path: Path) -> None:
    rows, found = counted(tmp_path, "usual")
    assert rows == [
        PADDED,
        row("ids", [4, 48], 47.75, 48.0),
        row("mask", [4, 64], 18.0, 32.0, calls=6),
        row("lengths", [3, 100], 40.0, 50.0),
    ]
    assert found == UNTOUCHED
    [trace] = stepscope.load(str(tmp_path)).traces
    read = counted_lengths(trace)
    assert [(each.of, each.positions, each.longest_share) for each in read] == [
        ("ids", 64, 0.5),
        ("ids", 48, 1.0),
        ("mask", 64, 0.5),
        ("lengths", 100, 0.5),
    ]
    assert read[0].mean_share == 18 / 64


@needs("torch")
@pytest.mark.parametrize(
    ("how", "rows"), [("inference", [PADDED]), ("full", []), ("traced", [PADDED]), ("wrong", [])]
)
def test_other_ways_to_call_them(how: str, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    """What torch.compile has compiled is compiled once: attention, which it looks up in each call, is left as it is."""
    assert counted(tmp_path, how) == (rows, UNTOUCHED)


@needs("torch")
def test_turned_off(tmp_path: Path) -> None:
    assert counted(tmp_path, "usual", "0") == ([], UNTOUCHED)


@needs("jax")
@pytest.mark.parametrize("how", ["device", "numpy"])
def test_ids_and_masks_that_functions_of_jax_are_given(how: str, tmp_path: Path) -> None:
    """Whether they were on the device before the call, or not. What is on it besides is none of them."""
    found = warm.told("jax", JAX_JOB, tmp_path, how)
    [note] = sidecars(tmp_path)
    assert _without_counts(note["lengths"]) == [
        row("ids", [4, 64], 18.0, 32.0, framework="jax"),
        row("mask", [4, 64], 18.0, 32.0, framework="jax"),
    ]
    assert (found["hook"], found["heard"]) == (False, 0)


@needs("jax")
def test_a_hook_that_is_taken_stays_as_it_is(tmp_path: Path) -> None:
    found = warm.told("jax", JAX_JOB, tmp_path, "taken")
    [note] = sidecars(tmp_path)
    assert note["lengths"] == []
    assert found["hook"]
    assert found["heard"] >= 4


def test_what_fails_or_is_not_imported_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    broken = Lengths()
    broken.start(["torch", "jax"])
    broken.note("embedding", (1, 2), {})
    assert broken.count() == []
    monkeypatch.delitem(sys.modules, "torch")
    absent = Lengths()
    absent.start(["torch"])
    assert absent.count() == []
    assert "torch" not in sys.modules
