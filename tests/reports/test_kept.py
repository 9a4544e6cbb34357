"""Reports that are kept: the same as made afresh, without Polars, and only as long as nothing they depend on has changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import copy

import msgspec
import pytest

import stepscope
from stepscope.profiles.answers import identify_run
from stepscope.profiles.find.catalog import scan
from stepscope.profiles.find.runs import RING
from stepscope.profiles.find.sidecars import LIGHT_ENDING
from stepscope.reports import kept as reports
from stepscope.reports.kept import Asked, KeptReports, find_kept
from stepscope.reports.model.report import Problem
from stepscope.reports.render.write import RENDERERS
from stepscope.reports.report import Report
from stepscope.trace.problems import problem
from tests.profiles.find.test_sidecars import note

SAMPLE = Path(stepscope.__file__).parent / "samples" / "tiny_gpt.pt.trace.json.gz"
STEM = "h_1.1700000000000000000"
NAME = f"{STEM}.pt.trace.json.gz"
WARM = """
import sys
from stepscope.cli import main
sys.argv = ["stepscope", "report", sys.argv[1], *sys.argv[2:]]
try:
    main()
finally:
    print("polars" in sys.modules, file=sys.stderr)
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A profile of its own, and a cache of its own."""
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "logs").mkdir()
    return Path(copy(SAMPLE, tmp_path / "logs" / NAME))


def found(file: Path) -> KeptReports:
    """What is kept of it."""
    kept = find_kept(str(file))
    assert kept is not None
    return kept


def run(file: Path, *options: str) -> tuple[str, bool]:
    """What the command prints, and whether it needed Polars."""
    command = [sys.executable, "-c", WARM, str(file), *options]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    return ended.stdout, ended.stderr.strip().endswith("True")


def test_a_warm_report_is_the_same_and_does_without_polars(file: Path) -> None:
    cold, needed = run(file)
    assert needed
    assert run(file) == (cold, False)
    assert run(file, "--format", "md")[1]  # another number of rows is another report
    assert not run(file, "--format", "md")[1]
    assert run(file, "--no-cache")[1]


def test_a_folder_is_found_without_polars_too(file: Path) -> None:
    cold, _ = run(file.parent)
    assert run(file.parent) == (cold, False)


def test_a_kept_report_has_everything(file: Path) -> None:
    made = stepscope.report(file)
    kept = found(file).keep(Asked(), made)
    again = found(file).get(Asked())
    assert isinstance(again, Report)
    assert msgspec.json.encode(again) == msgspec.json.encode(kept)
    assert json.loads(msgspec.json.encode(again)) == json.loads(msgspec.json.encode(made))
    for form in RENDERERS:
        assert form.render(again, sections=None, limit=0) == form.render(kept, sections=None, limit=0)
    assert str(again) == str(made)


OPTIONS = (
    Asked(step="1"), Asked(step_name="x"), Asked(whole=True), Asked(rank=0), Asked(loaded_rank=0), Asked(limit=3),
    Asked(sections=("ops",)), Asked(sections=("ops", "steps")), Asked(ops_by=("scope",)),
)  # fmt: skip


def test_every_option_is_another_report() -> None:
    assert len({asked.name for asked in (Asked(), *OPTIONS)}) == 1 + len(OPTIONS)


def _touched(file: Path) -> None:
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 1))


def _sidecar(file: Path) -> None:
    note(file.parent, STEM, rank=1)


def _light(file: Path) -> None:
    (file.parent / f"{STEM}{LIGHT_ENDING}").write_bytes(b"{}")


def _captures(file: Path) -> None:
    (file.parent / "capture_traces").mkdir()
    (file.parent / "capture_traces" / "bs_1.json").write_text("{}")


def _calibration(file: Path) -> None:
    place = Path(os.environ["STEPSCOPE_CALIBRATION"])
    place.write_text("{}")


CHANGES: tuple[Callable[[Path], None], ...] = (_touched, _sidecar, _light, _captures, _calibration)


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changes_the_report_is_made_again(
    change: Callable[[Path], None], file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPSCOPE_CALIBRATION", str(tmp_path / "calibration.json"))
    found(file).keep(Asked(), stepscope.report(file))
    assert found(file).get(Asked()) is not None
    change(file)
    assert found(file).get(Asked()) is None


def test_other_runs_and_leftovers_beside_it_change_the_report_of_a_folder(file: Path) -> None:
    before = found(file.parent)
    (file.parent / "h_1.2.pt.trace.json.tmp").write_text("{")
    assert found(file.parent).answers.identity != before.answers.identity
    assert found(file).answers.identity.key != before.answers.identity.key


def test_another_version_of_the_code_is_another_report(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = found(file).answers.identity
    monkeypatch.setattr("stepscope.profiles.answers.sources_digest", lambda: "another")
    assert found(file).answers.identity != before


def test_a_report_of_a_moment_is_not_kept(file: Path) -> None:
    made = stepscope.report(file)
    made.problems.append(Problem(code="cache-unwritable", severity="info", title="", detail=""))
    found(file).keep(Asked(), made)
    assert found(file).get(Asked()) is None
    assert all(problem(code).code for code in reports.PASSING - {"analysis-failed", "unreadable-file"})


def test_a_file_that_changes_meanwhile_is_not_kept(file: Path) -> None:
    before = found(file)
    made = stepscope.report(file)
    _touched(file)
    before.keep(Asked(), made)
    assert before.get(Asked()) is None


def test_a_ring_changes_without_a_sign_of_it(file: Path) -> None:
    (found_run,) = scan(str(file)).runs
    ring = replace(found_run, entries=tuple(replace(each, format_hint=RING) for each in found_run.entries))
    assert identify_run(found_run) is not None
    assert identify_run(ring) is None


def test_with_plug_ins_no_report_is_kept(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "have_a_say", lambda: True)
    assert find_kept(str(file)) is None


def test_what_is_wrong_with_a_path_is_said_by_who_reads_it(tmp_path: Path) -> None:
    assert find_kept(str(tmp_path / "absent")) is None
    assert find_kept(str(tmp_path)) is None
