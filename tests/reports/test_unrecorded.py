"""Ranks whose communication the profile does not show: that is said, and calm is not claimed."""

from __future__ import annotations

import json
from pathlib import Path

import stepscope
from tests.builders.jobs.gloo_ranks import OFFSETS, recorded, recording


def test_no_collectives_at_all(tmp_path: Path) -> None:
    report = stepscope.report(recorded(tmp_path / "in", calls=False))
    (problem,) = [each for each in report.problems if each.code == "no-collectives"]
    assert (problem.severity, problem.count) == ("warning", len(OFFSETS))
    assert report.collectives.straggler is None
    (gap,) = [each for each in report.coverage.gaps if each.what == "collectives"]
    assert f"{len(OFFSETS)} ranks" in gap.reason


def test_collectives_on_one_rank_alone(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "in", calls=False)
    (folder / "rank0.pt.trace.json").write_text(json.dumps(recording(0)))
    report = stepscope.report(folder, sections=["steps", "collectives"])
    (problem,) = [each for each in report.problems if each.code == "unmatched-collectives"]
    assert "Ranks 0 have collectives in their steps, ranks 1–3 none" in problem.detail


def test_collectives_that_match_are_no_problem(tmp_path: Path) -> None:
    report = stepscope.report(recorded(tmp_path / "in"), sections=["steps", "collectives", "coverage"])
    assert not {"no-collectives", "unmatched-collectives"} & {each.code for each in report.problems}
    assert "collectives" not in [each.what for each in report.coverage.gaps]
    late = report.collectives.straggler
    assert late is not None and late.rank == 2
