"""Rings beside complete files: which wins, what belongs together, what is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from stepscope.capture.process.troubles import Troubles
from stepscope.capture.ring.ring import open_ring
from stepscope.profiles.find.catalog import scan
from stepscope.profiles.find.runs import RING
from stepscope.profiles.load import load
from stepscope.ring_layout import ANNOTATION
from tests.builders.files import put

TIME = 1_790_000_000_000_000_000
MINUTE = 60 * 1_000_000_000


def ring(folder: Path, worker: str = "h_1", recording: str | None = None, **facts: Any) -> Path:
    """A ring that was left with these facts."""
    kept = open_ring(folder, worker, Troubles(), 64)
    assert kept is not None
    known = {"backend": "torch", "worker": worker, "window": 0, "start_unix_ns": TIME, "host": "h"} | facts
    if recording is not None:
        known["recording"] = recording
    kept.open_window(1, **known)
    kept.end(kept.begin(ANNOTATION, "forward", 10), 20)
    kept.keep()
    return kept.path


def complete(folder: Path, stem: str, **fields: Any) -> Path:
    """A file of PyTorch with its sidecar."""
    put(folder, f"{stem}.pt.trace.json")
    note = {
        "schema": "stepscope.capture/1",
        "backend": "torch",
        "run": "r",
        "window": 0,
        "start_unix_ns": TIME,
    }
    (folder / f"{stem}.stepscope.json").write_text(json.dumps(note | fields))
    return folder / f"{stem}.pt.trace.json"


def codes(folder: Path) -> list[str]:
    """Of all problems."""
    found: list[str] = load(folder, cache=False).problems["code"].to_list()
    return found


def test_a_ring_alone(tmp_path: Path) -> None:
    path = ring(tmp_path, rank=3, world_size=8)
    profile = load(tmp_path, cache=False)
    assert profile.ranks == [3]
    assert profile.traces[0].info.path == str(path)


def test_the_complete_file_of_its_window_wins(tmp_path: Path) -> None:
    path = ring(tmp_path, recording="abc")
    file = complete(tmp_path, f"h_1.{TIME}", recording="abc")
    catalog = scan(tmp_path)
    assert [[entry.path for entry in run.entries] for run in catalog.runs] == [[str(file)]]
    assert [item.reason for item in catalog.skipped if item.path == str(path)] == [
        f"kept until the window was written: {file.name}"
    ]
    assert "capture-killed" not in codes(tmp_path)


def test_a_sidecar_without_its_file_does_not_win(tmp_path: Path) -> None:
    """The process was killed between the two."""
    ring(tmp_path, recording="abc")
    complete(tmp_path, f"h_1.{TIME}", recording="abc").unlink()
    assert [run.entries[0].format_hint for run in scan(tmp_path).runs] == [RING]


def test_without_an_open_window_any_complete_file_tells_more(tmp_path: Path) -> None:
    ring(tmp_path, recording="abc", window=None)
    complete(tmp_path, f"h_1.{TIME}", recording="abc", window=4)
    assert [run.entries[0].format_hint for run in scan(tmp_path).runs] == ["kineto"]


def test_a_later_window_comes_after_the_complete_one(tmp_path: Path) -> None:
    ring(tmp_path, recording="abc", window=1, start_unix_ns=TIME + MINUTE)
    complete(tmp_path, f"h_1.{TIME}", recording="abc")
    complete(tmp_path, f"h_2.{TIME - 60 * MINUTE}", recording="earlier", run="s")
    runs = scan(tmp_path).runs
    assert [run.entries[0].format_hint for run in runs] == ["kineto", RING, "kineto"]
    assert {"capture-killed", "other-runs"} <= set(codes(tmp_path))


def test_a_newer_job_that_was_killed_comes_first(tmp_path: Path) -> None:
    ring(tmp_path, recording="abc", start_unix_ns=TIME + MINUTE)
    complete(tmp_path, f"h_2.{TIME}", recording="another")
    assert [run.entries[0].format_hint for run in scan(tmp_path).runs] == [RING, "kineto"]


def test_ranks_that_were_killed_are_one_run(tmp_path: Path) -> None:
    for rank in range(4):
        ring(tmp_path, f"h_{rank}", rank=rank, world_size=4, job="j", start_unix_ns=TIME + rank)
    assert load(tmp_path, cache=False).ranks == [0, 1, 2, 3]


def test_the_same_job_twice_is_two_runs(tmp_path: Path) -> None:
    for time in (TIME, TIME + 60 * MINUTE):
        for rank in range(2):
            facts = {"rank": rank, "world_size": 2, "job": "j"}
            ring(tmp_path, f"h_{rank}", start_unix_ns=time, recording=f"{rank}{time}", **facts)
    assert [len(run.entries) for run in scan(tmp_path).runs] == [2, 2]


def test_a_rank_that_was_killed_joins_the_others(tmp_path: Path) -> None:
    for rank in range(3):
        complete(tmp_path, f"h_{rank}.{TIME + rank}", rank=rank, world_size=4, job="j", recording=f"r{rank}")
    ring(tmp_path, "h_3", rank=3, world_size=4, job="j")
    profile = load(tmp_path, cache=False)
    assert profile.ranks == [0, 1, 2, 3]
    assert [trace.info.format for trace in profile.traces] == ["kineto"] * 3 + ["stepscope-ring"]


def test_a_rank_joins_run_folders_too(tmp_path: Path) -> None:
    """TensorFlow and JAX have a folder for each run; the ring lies above it."""
    from tests.builders.xspace_bytes import PlaneBytes, space

    folder = tmp_path / "plugins" / "profile" / "2026_09_21_13_46_40"
    folder.mkdir(parents=True)
    plane = PlaneBytes("/host:CPU")
    plane.line("t", [plane.event("x", 1, 5)], time_ns=TIME)
    (folder / "h.xplane.pb").write_bytes(space(plane))
    facts: dict[str, Any] = {
        "rank": 0,
        "world_size": 2,
        "job": "j",
        "start_unix_ns": 1_789_998_400_000_000_000,
    }
    note = {"schema": "stepscope.capture/1", "backend": "jax", "run": "r", "recording": "a"} | facts
    (folder / "h.stepscope.json").write_text(json.dumps(note))
    ring(tmp_path, "h_2", **facts | {"rank": 1, "backend": "jax"})
    assert [len(run.entries) for run in scan(tmp_path).runs] == [2]


def test_the_hidden_folder_of_its_worker_is_not_told_again(tmp_path: Path) -> None:
    ring(tmp_path, "h_7")
    (tmp_path / ".recording-h_7-0a1b2c3d").mkdir()
    assert "never-stopped" not in codes(tmp_path)
    (tmp_path / ".recording-h_8-0a1b2c3d").mkdir()
    assert "never-stopped" in codes(tmp_path)


def test_a_damaged_ring_does_not_hide_the_rest(tmp_path: Path) -> None:
    (tmp_path / "h_9.stepscope.ring").write_bytes(b"\x89SSRING\n\x09")
    complete(tmp_path, f"h_1.{TIME}")
    assert len(load(tmp_path, cache=False).traces) == 1
