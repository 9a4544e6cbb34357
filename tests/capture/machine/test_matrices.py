"""Entries that are not zero, counted in huge matrices of real frameworks on the CPU, and where nothing is to be looked at."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.analysis.matrices import sampled_matrices
from stepscope.capture.machine import matrices
from stepscope.capture.machine.matrices import SWITCH
from tests.capture.jobs import warm
from tests.capture.running import needs, sidecars, told
from tests.patience import measured

SIDE = 4096
DIAGONAL = 1 / SIDE


@needs("torch")
def test_of_pytorch(tmp_path: Path) -> None:
    """A machine that is busy takes too long for all matrices to be looked at, and so does a fork: its memory is copied as it is looked at."""

    def attempt(number: int) -> None:
        folder = tmp_path / str(number)
        found = told("matrices_job", "torch", folder, **{SWITCH: "cpu"})
        [note] = sidecars(folder)
        diagonal, weight = note["matrices"]
        assert diagonal == {
            "framework": "torch",
            "shape": [SIDE, SIDE],
            "dtype": "float32",
            "rows": 241,
            "nonzero": pytest.approx(DIAGONAL),
        }
        assert (weight["shape"], weight["nonzero"]) == ([2 * SIDE, SIDE], pytest.approx(1, abs=0.01))
        assert found["again"] == note["matrices"]
        [trace] = stepscope.load(str(folder)).traces
        read = sampled_matrices(trace)
        assert [(each.shape, each.nonzero) for each in read] == [
            (tuple(each["shape"]), each["nonzero"]) for each in note["matrices"]
        ]
        assert found["seconds"] < 2
        assert found["others"] == []
        assert found["touched"] == []

    measured(attempt)


@needs("jax")
def test_of_jax(tmp_path: Path) -> None:
    """A machine that is busy compiles too slowly for all matrices to be looked at."""

    def attempt(number: int) -> None:
        folder = tmp_path / str(number)
        found = told("matrices_job", "jax", folder, **{SWITCH: "cpu"})
        [note] = sidecars(folder)
        assert len(note["matrices"]) == 2
        diagonal, full = note["matrices"]
        made = (diagonal["framework"], diagonal["dtype"], diagonal["shape"])
        assert made == ("jax", "bfloat16", [SIDE, SIDE])
        assert diagonal["nonzero"] == pytest.approx(DIAGONAL)
        assert (full["shape"], full["nonzero"]) == ([2 * SIDE, SIDE], 1)
        assert found["again"] == note["matrices"]
        assert found["seconds"] < 0.5  # compiled already
        assert found["others"] == []

    measured(attempt)


@needs("torch")
def test_of_pytorch_without_a_gpu_unasked(tmp_path: Path) -> None:
    warm.told("torch", "matrices_job", "torch", tmp_path, **{SWITCH: "1"})
    [note] = sidecars(tmp_path)
    assert [SIDE, SIDE] in [each["shape"] for each in note["matrices"]]


@pytest.mark.parametrize(
    ("framework", "wanted", "arguments"),
    [
        pytest.param(name, wanted, arguments, marks=needs(name))
        for name, wanted, arguments in (
            ("torch", "0", []),
            ("torch", "cpu", ["fails"]),
            ("jax", "0", []),
            ("jax", "1", []),
            ("jax", "cpu", ["fails"]),
        )
    ],
)
def test_turned_off_without_a_gpu_or_in_a_job_that_fails(
    framework: str, wanted: str, arguments: list[str], tmp_path: Path
) -> None:
    warm.told(framework, "matrices_job", framework, tmp_path, *arguments, **{SWITCH: wanted})
    assert [note["matrices"] for note in sidecars(tmp_path)] == [[]]


class Array:
    """As much of an array of JAX as is asked."""

    def __init__(self, *shape: int, dtype: str = "float32", devices: int = 1, platform: str = "gpu") -> None:
        self.shape, self.dtype, self.ndim = shape, dtype, len(shape)
        self.is_fully_addressable = True
        self._count = devices
        self._platform = platform

    def is_deleted(self) -> bool:
        return False

    def devices(self) -> list[Any]:
        return [types.SimpleNamespace(platform=self._platform) for _ in range(self._count)]


def chosen(*arrays: Array) -> list[tuple[int, ...]]:
    """The shapes that are looked at, in order."""
    huge = [each for each in arrays if matrices._is_huge_array(each, ("gpu",))]
    return [each.shape for each in matrices._chosen(huge, id)]


def test_matrices_that_are_not_looked_at() -> None:
    assert chosen(Array(8192, 8192)) == [(8192, 8192)]
    assert chosen(Array(8192, 8192, devices=2)) == []
    assert chosen(Array(8192, 8192, platform="cpu")) == []
    assert chosen(Array(8192, 8192, dtype="int32")) == []
    assert chosen(Array(2048, 4096, dtype="bfloat16")) == []  # 16 MiB
    assert chosen(Array(1_000_000, 512)) == []
    assert chosen(Array(4, 8192, 8192)) == []


def test_a_few_of_each_shape_and_few_shapes() -> None:
    arrays = [Array(8192, 4096 + n) for n in range(9)] + [Array(4096, 4096) for _ in range(9)]
    found = chosen(*arrays)
    assert found[:4] == [(4096, 4096)] * 4  # square ones first
    assert len(set(found)) == 4


def test_what_fails_or_is_not_imported_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = types.ModuleType("torch")
    monkeypatch.setitem(sys.modules, "torch", broken)
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    assert matrices.look(["torch", "jax"]) == []
    assert "jax" not in sys.modules


class Rows:
    """A matrix of which only the sampled rows matter: how many entries are not zero in each."""

    def __init__(self, counts: list[int]) -> None:
        self.counts, self.shape = counts, (len(counts), len(counts))

    def __getitem__(self, rows: slice) -> Rows:
        return Rows(self.counts[rows])

    def __len__(self) -> int:
        return len(self.counts)

    def __ne__(self, _: object) -> Rows:  # type: ignore[override]
        return self

    def __hash__(self) -> int:
        return id(self)

    def sum(self) -> Total:
        return Total(sum(self.counts))


class Total(int):
    """A number as a tensor has it."""

    def __add__(self, other: int) -> Total:
        return Total(int(self) + int(other))

    def item(self) -> int:
        return int(self)


def test_the_first_node_of_a_sorted_graph_is_no_sample_of_the_others() -> None:
    """It has more edges than all others of a sample together."""
    rows, count = matrices._count_in_tensor(Rows([100_000] + [10] * 39_999))
    assert rows == 255
    assert count == 10 * rows
