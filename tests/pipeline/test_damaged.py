"""A fixed sample of damaged profiles through the whole pipeline, one of most originals; `make soak` runs thousands."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.fuzz.cases import Case, case
from benchmarks.fuzz.drive import drive
from benchmarks.fuzz.originals import NAMES, original
from stepscope.reports.failures import RAISE
from tests.sample import SOAKS, in_soak

pytestmark = pytest.mark.thorough

CASES = 64 if SOAKS else len(NAMES)
# The server does much of the same once more.
SERVED_EVERY = 8


# What others of the list are read and judged by as well: the soak takes them, too.
ALSO_ELSEWHERE = (
    "exported", "jax-json", "kineto-graph", "kineto-streams", "plain", "torch-rocm-ranks", "xla-gpu-ranks", "xla-tpu-ranks",
)  # fmt: skip


@pytest.mark.parametrize(
    "group",
    [
        pytest.param(place, marks=[in_soak] if name in ALSO_ELSEWHERE else [], id=name)
        for place, name in enumerate(NAMES)
    ],
)
def test_no_section_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: int) -> None:
    """Those of one original together: what is compared with is made once. The original itself, where all of them are refused."""
    monkeypatch.setenv(RAISE, "1")
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path / "cache"))
    name = NAMES[group]
    found = set()
    for seed in range(group, CASES, len(NAMES)):
        made = case(seed)
        assert made.name == name
        found.add(drive(made, tmp_path / str(seed), serve=seed % SERVED_EVERY == 0))
    assert found <= {"read", "refused"}
    if SOAKS or "read" not in found:
        whole = Case(0, name, original(name).files, rows=0)
        assert drive(whole, tmp_path / "whole", serve=False) == "read"


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(3755, id="a sidecar with a negative rank"),
        pytest.param(5521, id="a shape that is no shape, of an op whose FLOPs do not need it"),
        pytest.param(9201, id="a thread without calls outside its spine"),
    ],
)
def test_what_the_soak_has_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path / "cache"))
    assert drive(case(seed), tmp_path / str(seed), serve=True) == "read"
