"""How many windows stay, and that nothing but our own goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.capture.files import retention
from stepscope.capture.files.published import Published
from stepscope.capture.files.retention import MOST_WINDOWS
from stepscope.capture.process.troubles import CaptureWarning, Troubles
from tests.capture.running import sidecars, traces


def recorded(folder: Path, windows: int, *, repeat: int = 0, **options: Any) -> stepscope.Profiler:
    """So many windows of one step, and one of the next."""
    prof = stepscope.Profiler(
        folder,
        backends=("host",),
        schedule=stepscope.schedule(skip=1, active=1, repeat=repeat),
        stacks=False,
        memory=False,
        telemetry=False,
        **options,
    )
    with prof:
        for _ in range(2 * windows):
            prof.step()
    return prof


@pytest.mark.filterwarnings("ignore::stepscope.capture.process.troubles.CaptureWarning")
def test_the_newest_are_kept(tmp_path: Path) -> None:
    prof = recorded(tmp_path, 5, keep=2)
    assert traces(tmp_path) == prof.files and len(prof.files) == 2
    assert [note["window"] for note in sidecars(tmp_path)] == [3, 4]
    (told,) = [row for row in prof.problems if row["code"] == "windows-removed"]
    assert told["detail"].startswith("3 so far") and "the newest 2 windows are kept" in told["detail"]
    assert sidecars(tmp_path)[-1]["problems"] == prof.problems


def test_it_is_said_once(tmp_path: Path) -> None:
    with pytest.warns(CaptureWarning, match="Older windows") as told:
        recorded(tmp_path, 5, keep=1)
    assert len(told) == 1


@pytest.mark.filterwarnings("ignore::stepscope.capture.process.troubles.CaptureWarning")
def test_without_an_end_there_is_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "MOST_WINDOWS", 3)
    assert MOST_WINDOWS == 50
    assert len(recorded(tmp_path / "endless", 6).files) == 3
    assert len(recorded(tmp_path / "six", 6, repeat=6).files) == 6
    assert len(recorded(tmp_path / "all", 6, keep=None).files) == 6
    assert len(traces(tmp_path / "all")) == 6


@pytest.mark.filterwarnings("ignore::stepscope.capture.process.troubles.CaptureWarning")
def test_without_an_end_bytes_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest window stays even if it alone is too large."""
    monkeypatch.setattr(retention, "MOST_BYTES", 1)
    prof = recorded(tmp_path, 4)
    assert len(prof.files) == len(traces(tmp_path)) == 1
    assert sidecars(tmp_path)[0]["window"] == 3


@pytest.mark.filterwarnings("ignore::stepscope.capture.process.troubles.CaptureWarning")
def test_only_our_own_files_go(tmp_path: Path) -> None:
    others = recorded(tmp_path, 2, keep=None).files
    (tmp_path / "notes.txt").write_text("mine")
    prof = recorded(tmp_path, 3, keep=1)
    assert traces(tmp_path) == sorted([*others, *prof.files])
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.filterwarnings("ignore::stepscope.capture.process.troubles.CaptureWarning")
def test_a_file_in_the_place_of_ours_stays(tmp_path: Path) -> None:
    prof = stepscope.Profiler(
        tmp_path, backends=("host",), schedule=stepscope.schedule(active=1, repeat=0), stacks=False, keep=1
    )
    prof.start()
    prof.step()
    (first,) = prof.files
    draft = tmp_path / "draft"
    draft.write_text("of someone else")
    draft.replace(first)
    prof.step()
    prof.stop()
    assert first.read_text() == "of someone else"
    assert first not in prof.files


@pytest.mark.filterwarnings("ignore::stepscope.capture.process.troubles.CaptureWarning")
def test_an_empty_run_folder_goes_too(tmp_path: Path) -> None:
    def published(run: str, *names: str) -> Published:
        folder = tmp_path / "plugins" / "profile" / run
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            (folder / name).write_text("x")
        return Published([folder / name for name in names], {})

    kept = retention.Retention(retention.limits(1, is_endless=False), Troubles())
    kept.add([published("run1", "h.xplane.pb", "h.stepscope.json")])
    kept.add([published("run2", "h.xplane.pb", "h.stepscope.json")])
    (tmp_path / "plugins" / "profile" / "run2" / "other.xplane.pb").write_text("of another worker")
    kept.add([published("run3", "h.xplane.pb", "h.stepscope.json")])
    assert sorted(path.name for path in (tmp_path / "plugins" / "profile").iterdir()) == ["run2", "run3"]
    assert [path.name for path in (tmp_path / "plugins" / "profile" / "run2").iterdir()] == [
        "other.xplane.pb"
    ]


@pytest.mark.parametrize("keep", [0, -1, True, "all", 1.5])
def test_what_makes_no_sense(tmp_path: Path, keep: Any) -> None:
    with pytest.raises(ValueError, match="keep is how many windows stay"):
        stepscope.Profiler(tmp_path, keep=keep)
