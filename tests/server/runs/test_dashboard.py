"""Figures of all runs: kept, bounded, and made in the background; the list itself reads no profile."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stepscope.gate.trend import StepNoise
from stepscope.profiles.find.catalog import scan
from stepscope.reports.kept import Asked, kept_reports
from stepscope.reports.model.report import Profile
from stepscope.reports.report import Report
from stepscope.server.runs import dashboard
from stepscope.server.runs.dashboard import Dashboard, changes
from stepscope.server.runs.figures import KeptFigures, RunFigures, figures_of, make_figures
from stepscope.server.runs.listed import ListedRun, listed
from tests.patience import tries

SAMPLE = Path(__file__).resolve().parents[3] / "src/stepscope/samples/tiny_gpt.pt.trace.json.gz"
MS = 1_000_000


def _runs(folder: Path, count: int) -> list[ListedRun]:
    for number in range(count):
        path = folder / f"job{number}" / "tiny.pt.trace.json.gz"
        path.parent.mkdir(parents=True)
        shutil.copy(SAMPLE, path)
        os.utime(path, ns=(number * 10**9, number * 10**9))
    return [listed(run, str(folder)) for run in scan(str(folder)).runs]


def _finished(board: Dashboard) -> None:
    if board._thread is not None:
        board._thread.join(60)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path / "cache"))


def test_figures_of_a_real_run_are_kept_for_the_next_server(tmp_path: Path) -> None:
    (run,) = _runs(tmp_path / "logs", 1)
    board = Dashboard()
    assert board.shown([run])["figures"] == {}
    _finished(board)
    found = board.shown([run])["figures"][run.id]
    assert (found.framework, found.devices, found.steps) == ("pytorch", "NVIDIA H200", 3)
    assert found.finding.code == "launch-bound" and found.step_ns > 0 and found.peak_bytes > 0
    assert found.noise is not None

    def never(_: ListedRun) -> RunFigures:
        raise AssertionError("it was kept")

    assert Dashboard(make=never).shown([run])["figures"] == {run.id: found}


def test_files_that_have_changed_have_no_figures_yet(tmp_path: Path) -> None:
    (run,) = _runs(tmp_path / "logs", 1)
    KeptFigures().keep(run, RunFigures(steps=7))
    assert KeptFigures().get(run) == RunFigures(steps=7)
    os.utime(run.run.entries[0].path)
    assert KeptFigures().get(run) is None


def test_damaged_entries_are_replaced(tmp_path: Path) -> None:
    (run,) = _runs(tmp_path / "logs", 1)
    KeptFigures().keep(run, RunFigures(steps=7))
    (answer,) = (tmp_path / "cache").glob("*/*.answer")
    answer.write_bytes(b"{nonsense")
    assert KeptFigures().get(run) is None
    KeptFigures().keep(run, RunFigures(steps=8))
    assert KeptFigures().get(run) == RunFigures(steps=8)


def test_background_work_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboard, "MOST_MADE", 2)
    made: list[str] = []

    def make(run: ListedRun) -> RunFigures:
        made.append(run.id)
        return RunFigures()

    runs = _runs(tmp_path / "logs", 4)
    board = Dashboard(make=make)
    for _ in range(3):
        board.shown(runs)
        _finished(board)
    assert made == [run.id for run in runs[:2]], "the newest first, and no more than that"
    assert board.shown(runs)["waiting"] == []


def test_a_run_that_cannot_be_read_is_tried_once(tmp_path: Path) -> None:
    tried: list[str] = []

    def make(run: ListedRun) -> RunFigures:
        tried.append(run.id)
        raise ValueError("damaged")

    runs = _runs(tmp_path / "logs", 1)
    board = Dashboard(make=make)
    for _ in range(3):
        board.shown(runs)
        _finished(board)
    assert len(tried) == 1


def test_a_report_that_was_made_for_someone_is_noted(tmp_path: Path) -> None:
    (run,) = _runs(tmp_path / "logs", 1)
    board = Dashboard(make=lambda _: RunFigures())
    board.note(run, b"no report")
    made = Report(profile=Profile(path="x", framework="jax"))
    board.note(run, msgspec.json.encode(made))
    assert board.shown([run])["figures"] == {run.id: figures_of(made)}


def test_a_report_is_noted_after_it_was_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboard, "NOTE_AFTER_S", 0.01)
    (run,) = _runs(tmp_path / "logs", 1)
    board = Dashboard(make=lambda _: RunFigures())
    made = Report(profile=Profile(path="x", framework="jax"))
    board.note_later(run, msgspec.json.encode(made))
    board.note_later(run, b"asked for twice")
    assert any(board._in_memory(run) is not None for _ in tries())
    assert board.shown([run])["figures"] == {run.id: figures_of(made)}


def test_changes_are_since_the_run_before_of_the_same_job(tmp_path: Path) -> None:
    runs = _runs(tmp_path / "logs", 4)[::-1]
    jobs = dict(zip((run.id for run in runs), ("a", "b", "a", "a"), strict=True))

    def figures(ms: float, **more: Any) -> RunFigures:
        noise = StepNoise(mean_ns=ms * MS, error_ns=0.01 * MS, freedom=10, run_share=0.01, run_least_ns=0)
        return RunFigures(noise=noise, **more)

    known = dict(zip(jobs, (figures(10), figures(99), figures(20), figures(20, ranks=2)), strict=True))
    found = changes(runs, jobs, known)
    assert list(found) == [runs[2].id], "other jobs and other numbers of ranks are not compared"
    assert found[runs[2].id]["since"] == runs[0].id
    assert found[runs[2].id]["verdict"] == "slower"


def test_make_figures_reads_the_run(tmp_path: Path) -> None:
    (run,) = _runs(tmp_path / "logs", 1)
    assert make_figures(run).findings >= 1


def test_a_kept_report_gives_the_figures(tmp_path: Path) -> None:
    (run,) = _runs(tmp_path / "logs", 1)
    made = Report(profile=Profile(path="x", framework="jax"))
    kept = kept_reports(run.run)
    assert kept is not None
    kept.keep(Asked(), made)
    assert KeptFigures().get(run) == figures_of(made)
    (answer,) = (each for each in (tmp_path / "cache").glob("*/*.answer") if each.stat().st_size < 1000)
    assert b"jax" in answer.read_bytes(), "the next look decodes no report"
