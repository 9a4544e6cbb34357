"""Files: whole or not there, never over another; one run for all workers; and what is cut out of them."""

from __future__ import annotations

import gzip
import json
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from stepscope.capture.backends import cut_kineto, cut_xplane
from stepscope.capture.files.identity import Identity
from stepscope.capture.files.run_folder import run_of
from stepscope.capture.files.writer import Incomplete, Recorded, Staging, is_whole, move_new, replace_json
from stepscope.capture.process.host_spans import Span, cut
from tests.builders.xspace_bytes import PlaneBytes, Unsigned, space


def staged(folder: Path, text: str = "{}") -> tuple[Staging, Recorded]:
    staging = Staging(folder, "w")
    path = staging.folder("torch") / "trace.json"
    path.write_text(text)
    return staging, Recorded(path, ".trace.json")


def test_names_that_are_taken_are_left_alone(tmp_path: Path) -> None:
    for number in range(3):
        staging, file = staged(tmp_path, f"[{number}]")
        staging.publish([file], tmp_path, lambda attempt: f"name{attempt}", {"number": number})
        staging.remove()
    assert [(tmp_path / f"name{n}.trace.json").read_text() for n in range(3)] == ["[0]", "[1]", "[2]"]
    notes = [json.loads((tmp_path / f"name{n}.stepscope.json").read_text()) for n in range(3)]
    assert [note["file"] for note in notes] == [f"name{n}.trace.json" for n in range(3)]
    assert len(list(tmp_path.iterdir())) == 6


def test_threads_never_get_the_same_name(tmp_path: Path) -> None:
    def publish() -> None:
        staging, file = staged(tmp_path)
        staging.publish([file], tmp_path, lambda attempt: f"name{attempt}", {})
        staging.remove()

    threads = [threading.Thread(target=publish) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(tmp_path.glob("name*.trace.json"))) == 16


def test_a_file_that_was_cut_is_not_published(tmp_path: Path) -> None:
    staging, file = staged(tmp_path, '{"traceEvents": [')
    with pytest.raises(Incomplete):
        staging.publish([file], tmp_path, lambda attempt: "name", {})
    assert list(tmp_path.glob("name*")) == []


def test_whole_files(tmp_path: Path) -> None:
    packed = gzip.compress(b"{}" * 1000)
    contents = {
        "a.json": (b"{}\n", b"{"),
        "a.json.gz": (packed, packed[:-3]),
        "a.xplane.pb": (b"\x0a\x02\x08\x01", b"\x0a\x03\x08\x01"),
        "b.xplane.pb": (b"\x0a\x00", b"\x08\x01"),
        "a.txt": (b"x", b""),
    }
    for name, (good, bad) in contents.items():
        path = tmp_path / name
        path.write_bytes(good)
        assert is_whole(path), name
        path.write_bytes(bad)
        assert not is_whole(path), name


def test_moving_never_replaces(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("new")
    (tmp_path / "b").write_text("old")
    with pytest.raises(FileExistsError):
        move_new(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_text() == "old"


def test_moving_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr(os, "link", no_links)
    (tmp_path / "a").write_text("new")
    move_new(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_text() == "new"
    (tmp_path / "a").write_text("newer")
    with pytest.raises(FileExistsError):
        move_new(tmp_path / "a", tmp_path / "b")


def test_a_sidecar_changes_at_once(tmp_path: Path) -> None:
    replace_json(tmp_path / "x.stepscope.json", {"a": 1})
    replace_json(tmp_path / "x.stepscope.json", {"a": 2})
    assert json.loads((tmp_path / "x.stepscope.json").read_text()) == {"a": 2}
    assert len(list(tmp_path.iterdir())) == 1


WORKER = Identity(host="h", pid=1, rank=0, world_size=4, job="job")


def test_workers_of_a_job_join_one_run(tmp_path: Path) -> None:
    runs = [run_of(tmp_path, replace(WORKER, rank=rank), 0) for rank in range(4)]
    assert len(set(runs)) == 1
    assert run_of(tmp_path, WORKER, 1) != runs[0]
    assert run_of(tmp_path, replace(WORKER, job="other"), 0) != runs[0]


def test_the_same_job_again_is_another_run(tmp_path: Path) -> None:
    first = [run_of(tmp_path, replace(WORKER, rank=rank), 0) for rank in range(4)]
    second = [run_of(tmp_path, replace(WORKER, rank=rank), 0) for rank in (2, 0, 1, 3)]
    assert len({*first}) == len({*second}) == 1
    assert first[0] != second[0]


def test_a_marker_of_an_earlier_job_is_not_joined(tmp_path: Path) -> None:
    first = run_of(tmp_path, replace(WORKER, rank=0), 0)
    for marker in (tmp_path / ".stepscope-runs").iterdir():
        os.utime(marker, (1, 1))
    assert run_of(tmp_path, replace(WORKER, rank=1), 0) != first


def test_a_worker_on_its_own_leaves_no_marker(tmp_path: Path) -> None:
    assert run_of(tmp_path, replace(WORKER, job=""), 0) != run_of(tmp_path, replace(WORKER, job=""), 0)
    assert list(tmp_path.iterdir()) == []


def test_sampled_spans_are_cut_at_exact_ones() -> None:
    exact = [Span(1, "a", "annotation", None, None, 10, 20)]
    sampled = [Span(1, "f", "python", None, None, 5, 30), Span(2, "g", "python", None, None, 5, 30)]
    assert [(s.name, s.start_ns, s.end_ns) for s in cut(sampled, exact)] == [
        ("f", 5, 10),
        ("f", 10, 20),
        ("f", 20, 30),
        ("g", 5, 30),
    ]


KINETO = """ {
    "schemaVersion": 1,
    "baseTimeNanoseconds": 1000000000,
    "traceEvents": [
  {
    "ph": "M", "name": "process_name", "ts": 0.0, "pid": 1, "args": {"name": "}"}
  },
  {
    "ph": "X", "cat": "cpu_op", "name": "before", "ts": 1.000, "dur": 1.000
  },
  {
    "ph": "X", "cat": "cpu_op", "name": "in", "ts": 6.000, "dur": 1.000
  },
  {
    "ph": "X", "cat": "python_function", "name": "around", "ts": 0.000, "dur": 50.000
  },
  {
    "ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": 1.500
  },
  {
    "ph": "X", "cat": "cpu_op", "name": "after", "ts": 11.000, "dur": 1.000
  }
  ],"traceName": "x" }
"""


@pytest.mark.parametrize("last", ["after", "in"])
def test_cutting_a_kineto_file(tmp_path: Path, last: str) -> None:
    path = tmp_path / "x.pt.trace.json"
    path.write_text(KINETO)
    stretch = (1_000_005_000, 1_000_010_000) if last == "in" else (1_000_005_000, 1_000_020_000)
    cut_kineto.cut(path, [stretch])
    names = [event["name"] for event in json.loads(path.read_text())["traceEvents"]]
    expected = ["process_name", "in", "around", "[memory]"]
    assert names == (expected if last == "in" else [*expected, "after"])


def test_cutting_an_xplane_file(tmp_path: Path) -> None:
    host, about = PlaneBytes("/host:CPU"), PlaneBytes("Task Environment")
    events = [
        host.event("before", 1_000_000),
        host.event("in", 6_000_000, id=7),
        host.event("after", 11_000_000),
    ]
    host.line("main", [*events, host.event("counted", times=3)], time_ns=2)
    about.fact("profile_start_time", Unsigned(1_000_000_000))
    path = tmp_path / "x.xplane.pb"
    path.write_bytes(space(host, about, hosts=["h"]))
    cut_xplane.cut(path, [(1_000_005_000, 1_000_010_000)])
    kept = PlaneBytes("/host:CPU", dict(host.event_ids), dict(host.stat_ids))
    kept.line("main", [kept.event("in", 6_000_000, id=7), kept.event("counted", times=3)], time_ns=2)
    assert path.read_bytes() == space(kept, about, hosts=["h"])


def test_without_the_plane_the_moment_counts_at_which_the_session_was_asked_for(tmp_path: Path) -> None:
    """TensorFlow 2.15 writes none: its session begins a little after it was asked for."""
    host = PlaneBytes("/host:CPU")
    late = 100_000  # ns
    events = [
        host.event("before", 1_000_000_000),
        host.event("in", 5_000_000_000),
        host.event("after", 11_000_000_000),
    ]
    host.line("main", events, time_ns=2)
    path = tmp_path / "x.xplane.pb"
    path.write_bytes(space(host, hosts=["h"]))
    asked = 1_000_000_000
    cut_xplane.cut(path, [(asked + late + 5_000_000, asked + late + 10_000_000)], asked)
    kept = PlaneBytes("/host:CPU", dict(host.event_ids), dict(host.stat_ids))
    kept.line("main", [kept.event("in", 5_000_000_000)], time_ns=2)
    assert path.read_bytes() == space(kept, hosts=["h"])


def test_an_xplane_file_without_a_clock_cannot_be_cut(tmp_path: Path) -> None:
    path = tmp_path / "x.xplane.pb"
    path.write_bytes(space(PlaneBytes("/host:CPU")))
    with pytest.raises(ValueError, match="when its session began"):
        cut_xplane.cut(path, [(0, 1)])
