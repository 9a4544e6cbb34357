"""Many simulated jobs at once: which ones are drawn, and what is kept of each."""

from __future__ import annotations

import json
import time
from argparse import Namespace
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.ranks.physics import trial
from benchmarks.ranks.physics.score import judge
from benchmarks.ranks.physics.trial import Draw, draws
from benchmarks.ranks.physics.trouble import DRAWS
from tests.benchmarks.test_ranks_physics_diagnosis import case_of
from tests.sample import in_soak


def test_every_kind_is_drawn_with_seeds_of_its_own(tmp_path: Path) -> None:
    options = Namespace(seed=7, cases=10, healthy=50, out=tmp_path, seconds=1.0)
    found = draws(options)
    assert Counter(draw.kind for draw in found) == {kind: 50 if kind == "healthy" else 10 for kind in DRAWS}
    assert sorted(draw.seed for draw in found) == list(range(7000, 7150))


def test_the_largest_jobs_come_first(tmp_path: Path) -> None:
    options = Namespace(seed=7, cases=10, healthy=50, out=tmp_path, seconds=1.0)
    ranks = [draw.ranks for draw in draws(options)]
    assert ranks == sorted(ranks, reverse=True)
    assert set(ranks) == {64, 128, 256, 512}


def test_no_case_is_begun_after_its_time(tmp_path: Path) -> None:
    assert Draw(1, "healthy", 64, tmp_path, until=time.time() - 1).read() is None
    assert not list(tmp_path.iterdir())


@in_soak
def test_the_answer_is_kept_and_can_be_judged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "random_case", lambda seed, kind, ranks: case_of(kind))
    line = Draw(7000, "slow-device", 64, tmp_path, until=time.time() + 600).read()
    assert line is not None
    truth = json.loads((tmp_path / "case7000" / "truth.json").read_text())
    assert truth["kind"] == "slow-device"
    assert {path.name for path in tmp_path.iterdir()} == {"case7000", "case7000.report.json"}
    verdict = judge(tmp_path / "case7000", reuse=True)
    assert f"first {verdict.first}" in line
