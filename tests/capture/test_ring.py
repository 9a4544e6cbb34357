"""The ring: what goes in comes out, whatever is cut, torn, full or missing, and the job never notices."""

from __future__ import annotations

import errno
import os
import re
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import stepscope
from stepscope.capture.process import active
from stepscope.capture.process.troubles import Troubles
from stepscope.capture.ring import file as ring_file
from stepscope.capture.ring import ring
from stepscope.capture.ring.file import file_system
from stepscope.capture.ring.ring import Ring, open_ring
from stepscope.formats.ring import areas, facts
from stepscope.ring_layout import ANNOTATION, EVENTS_AT, NAMES, OP, PYTHON, STEPS, TEXT
from stepscope.trace.trace import Trace

SMALL = 128


def made(folder: Path, event_words: int = SMALL) -> Ring:
    """A ring in which a window is open; its times count from 0."""
    found = open_ring(folder, "h_1", Troubles(), event_words)
    assert found is not None
    found.open_window(0, backend="host", window=0, start_unix_ns=1)
    return found


def add(kept: Ring, name: str, start_ns: int, end_ns: int, kind: str = ANNOTATION) -> None:
    """One that has ended."""
    kept.end(kept.begin(kind, name, start_ns), end_ns)


def keep(kept: Ring) -> Path:
    """The file as it is found when the process was killed a moment later than the copier came by."""
    kept.keep()
    return kept.path


def read(path: Path) -> Trace:
    """What a reader makes of it."""
    return stepscope.load(path, cache=False).traces[0]


def names(trace: Trace) -> list[str]:
    """Of the events, in the order of time."""
    return list(trace.events.sort("start_ns")["name"].cast(pl.String))


def are_in_a_row(spans: pl.DataFrame) -> bool:
    """Whether none is missing between the first and the last: they begin every 10 ns."""
    starts = spans["start_ns"].sort().to_list()
    return all(after - before == 10 for before, after in pairwise(starts))


def problems(trace: Trace) -> dict[str, str]:
    """Details by code."""
    return dict(trace.problems.select("code", "detail").iter_rows())


@pytest.fixture(params=[True, False], ids=["mapped", "copied"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Both ways in which a ring reaches its file, whatever this machine's disk is."""
    is_mapped = bool(request.param)
    if is_mapped and not hasattr(os, "posix_fallocate"):
        pytest.skip("nothing is mapped here")
    monkeypatch.setattr(ring_file, "_is_safe_to_map", lambda _: is_mapped)
    return is_mapped


def test_what_goes_in_comes_out(tmp_path: Path, way: bool) -> None:
    kept = made(tmp_path)
    kept.moments[3] = 9_000
    kept.tell(number=3, at_ns=1)
    add(kept, "forward", 2_000, 5_000)
    add(kept, "my_kernel", 6_000, 7_000, OP)
    kept.seen(PYTHON, "model.py(7): forward", threading.get_ident(), 2_500, 4_500)
    kept.look({"unix_ns": 1_790_000_000_000_000_000, "cpu_percent": 3, "rss_bytes": 12})
    trace = read(keep(kept))
    done = trace.events.filter(~pl.col("name").cast(pl.String).str.contains("unfinished")).sort("start_ns")
    assert names(trace)[:4] == ["step 3", "forward", "model.py(7): forward", "my_kernel"]
    assert done["dur_ns"].to_list() == [9_000, 3_000, 2_000, 1_000]
    assert done["kind"].cast(pl.String).to_list() == ["annotation", "annotation", "python", "op"]
    assert len(trace.ops) == 1
    assert trace.counters["value"].to_list() == [12.0]
    assert trace.info.capture["telemetry"]["samples"][0]["cpu_percent"] == 3
    assert threading.current_thread().name in trace.tracks["thread"].to_list()


def test_what_was_open_at_the_end(tmp_path: Path, way: bool) -> None:
    kept = made(tmp_path)
    add(kept, "again", 10, 20)
    kept.begin(ANNOTATION, "outer", 30)
    add(kept, "again", 40, 50)
    kept.begin(ANNOTATION, "again", 60)
    add(kept, "again", 70, 80)
    kept.end(0, 90)
    trace = read(keep(kept))
    assert "inside of outer > again" in problems(trace)["capture-killed"]
    again = trace.events.filter(pl.col("name").cast(pl.String) == "again").sort("start_ns")
    assert again["dur_ns"].to_list()[:2] + again["dur_ns"].to_list()[3:] == [10, 10, 10]
    assert again["dur_ns"][2] >= 30


def test_the_newest_stay(tmp_path: Path, way: bool) -> None:
    kept = made(tmp_path)
    for number in range(1000):
        add(kept, f"a{number % 7}", 10 * number + 1, 10 * number + 5)
    trace = read(keep(kept))
    spans = trace.events.filter(pl.col("name").cast(pl.String).str.starts_with("a"))
    assert SMALL // 2 - 2 <= len(spans) <= SMALL // 2
    assert are_in_a_row(spans)
    assert re.match(r"93[5-8] older events", problems(trace)["buffer-overflow"])


def test_a_window_forgets_the_one_before(tmp_path: Path, way: bool) -> None:
    kept = made(tmp_path)
    for number in range(20):
        add(kept, "first", 10 * number + 1, 10 * number + 5)
    kept.open_window(1_000_000, window=1)
    add(kept, "second", 1_000_001, 1_000_005)
    trace = read(keep(kept))
    assert "first" not in names(trace)
    assert "second" in names(trace)


def test_an_end_without_its_beginning_is_nothing(tmp_path: Path) -> None:
    kept = made(tmp_path)
    code = kept.begin(ANNOTATION, "a", 10)
    kept.open_window(100, window=1)
    kept.end(code, 110)
    add(kept, "a", 120, 130)
    trace = read(keep(kept))
    found = trace.events.filter(pl.col("name").cast(pl.String) == "a")
    assert found["dur_ns"].to_list() == [10]


def test_a_torn_name_is_not_read(tmp_path: Path) -> None:
    kept = made(tmp_path)
    add(kept, "whole", 1, 5)
    add(kept, "torn", 11, 15)
    path = keep(kept)
    data = bytearray(path.read_bytes())
    data[data.index(b"torn", NAMES.offset)] ^= 1
    path.write_bytes(data)
    assert {"whole", "(name not kept)"} <= set(names(read(path)))


def test_more_names_than_there_is_room_for(tmp_path: Path) -> None:
    kept = made(tmp_path, 1 << 15)
    for number in range(NAMES.slots + 5):
        add(kept, f"name {number}", 10 * number + 1, 10 * number + 2)
    found = names(read(keep(kept)))
    assert {"name 0", f"name {NAMES.slots - 1}", "(name not kept)"} <= set(found)
    assert found.count("(name not kept)") == 5


def test_long_names_keep_both_ends(tmp_path: Path) -> None:
    kept = made(tmp_path)
    add(kept, "/far" * 200 + "/model.py(7): forward", 1, 2)
    (name,) = [each for each in names(read(keep(kept))) if "far" in each]
    assert name.startswith("/far/far") and name.endswith("/model.py(7): forward")
    assert len(name.encode()) == NAMES.slot - TEXT.size - 1


def test_threads_write_side_by_side(tmp_path: Path, way: bool) -> None:
    kept = made(tmp_path, 1 << 15)

    def write(mine: int) -> None:
        for number in range(1000):
            add(kept, f"t{mine}", 10 * number + 1, 10 * number + 2)

    threads = [threading.Thread(target=write, args=(each,)) for each in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = read(keep(kept)).events
    counted = found.filter(pl.col("name").cast(pl.String).str.starts_with("t")).group_by("name").len()
    assert sorted(counted["len"]) == [1000] * 8


def test_steps_beyond_the_circle(tmp_path: Path) -> None:
    """In a window each is written as it ends."""
    options: dict[str, Any] = {"stacks": False, "memory": False, "telemetry": False}
    steps = stepscope.schedule(active=10**9)
    prof = stepscope.Profiler(tmp_path, backends=("host",), schedule=steps, **options)
    prof.start()
    count = 2 * STEPS.slots + 100
    for _ in range(count):
        prof.step()
    (path,) = tmp_path.glob("*.stepscope.ring")
    prof._ring.ring.copy() if not prof._ring.ring._file.is_mapped else None  # type: ignore[union-attr]
    data = path.read_bytes()
    prof.stop()
    assert not path.exists()
    ends = ends_in(data)
    assert list(ends) == list(range(count - STEPS.slots, count))
    assert sorted(ends.values()) == list(ends.values())


def ends_in(data: bytes) -> dict[int, int]:
    """When the steps in the ring ended."""
    found = areas.opened(memoryview(data), "ring")
    return facts.step_ends(found, facts.read_facts(found).known)


def test_steps_outside_of_windows_are_looked_at_now_and_then(tmp_path: Path) -> None:
    prof = stepscope.Profiler(tmp_path, schedule=stepscope.schedule(skip=10**9, active=1))
    prof.start()
    for count in (5, 50, 50_000, 3):
        for _ in range(count):
            prof.step()
        prof._ring.look_at_steps()
    ring = prof._ring.ring
    assert ring is not None
    if not ring._file.is_mapped:
        ring.copy()
    ends = ends_in(ring.path.read_bytes())
    prof.stop()
    assert max(ends) == 50_057
    assert len(ends) >= 64
    assert sorted(ends.values()) == list(ends.values())


def test_a_disk_that_fills_up_makes_the_ring_smaller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One chunk of events, and no more room: the newest of them stay, and nobody is ended by SIGBUS."""
    troubles = Troubles()
    monkeypatch.setattr(ring_file, "_is_safe_to_map", lambda _: True)
    kept = open_ring(tmp_path, "h_1", troubles, 1 << 20)
    assert kept is not None
    kept.open_window(0, backend="host", window=0, start_unix_ns=1)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    for number in range(200_000):
        add(kept, "a", 10 * number + 1, 10 * number + 2)
    assert kept.path.stat().st_size < EVENTS_AT + (3 << 20)
    trace = read(keep(kept))
    spans = trace.events.filter(pl.col("name").cast(pl.String) == "a")
    assert [row["code"] for row in troubles.rows()] == ["ring-failed"]
    assert 60_000 < len(spans) < 140_000
    assert are_in_a_row(spans)


@pytest.mark.parametrize("function", ["posix_fallocate", "ftruncate", "open"])
def test_no_ring_is_no_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    """Recording goes on in memory; the sidecar says that it would not have survived."""
    monkeypatch.setattr(ring_file, "_is_safe_to_map", lambda _: True)
    own = getattr(os, function)

    def refused(*arguments: Any, **options: Any) -> Any:
        if function == "open" and not str(arguments[0]).endswith(".stepscope.ring"):
            return own(*arguments, **options)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, function, refused)
    with stepscope.profile(tmp_path, backends=("host",)) as prof:
        for _ in range(3):
            with stepscope.annotate("work"):
                pass
            prof.step()
    assert len(prof.files) == 1
    assert [row["code"] for row in prof.problems] == ["ring-failed"]
    assert list(tmp_path.glob("*.stepscope.ring")) == []


def test_a_ring_that_breaks_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    class Broken:
        def __setitem__(self, *_: object) -> None:
            raise MemoryError("of ours")

    with stepscope.profile(tmp_path, backends=("host",), stacks=False) as prof:
        assert active.ring is not None
        monkeypatch.setattr(active.ring, "_words", Broken())
        with stepscope.annotate("work"):
            pass
        assert active.ring is None
        prof.step()
    assert len(prof.files) == 1
    assert [row["code"] for row in prof.problems] == ["ring-failed"]
    assert list(recwarn) == []


def test_copying_that_fails_ends_quietly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ring_file, "_is_safe_to_map", lambda _: False)
    monkeypatch.setattr(ring_file, "COPY_SECONDS", 0.001)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    troubles = Troubles()
    kept = open_ring(tmp_path, "h_1", troubles, SMALL)
    assert kept is not None
    kept.watch(lambda: None)
    assert kept._copier is not None and kept._copier._thread is not None
    kept._copier._thread.join(timeout=60)
    kept.remove()
    assert [row["code"] for row in troubles.rows()] == ["ring-failed"]
    assert capfd.readouterr().err == ""


def test_nothing_is_left_when_all_was_written(tmp_path: Path, way: bool) -> None:
    with stepscope.profile(tmp_path, backends=("host",)) as prof:
        assert len(list(tmp_path.glob("*.stepscope.ring"))) == 1
        prof.step()
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".json"]
    (sidecar,) = tmp_path.glob("*.stepscope.json")
    assert '"recording": "' in sidecar.read_text()


def test_only_what_happens_in_a_region_is_kept(tmp_path: Path) -> None:
    prof = stepscope.Profiler(tmp_path, backends=("host",), regions=True, stacks=False)
    prof.start()
    with stepscope.annotate("outside"):
        pass
    with prof.region("train"), stepscope.annotate("inside"):
        pass
    (path,) = tmp_path.glob("*.stepscope.ring")
    data = path.read_bytes()
    prof.stop()
    (tmp_path / "copy.stepscope.ring").write_bytes(data)
    assert "inside" in names(read(tmp_path / "copy.stepscope.ring"))
    assert "outside" not in names(read(tmp_path / "copy.stepscope.ring"))


def test_a_recording_that_goes_on_says_so(tmp_path: Path) -> None:
    with stepscope.profile(tmp_path, backends=("host",)) as prof:
        prof.step()
        (path,) = tmp_path.glob("*.stepscope.ring")
        assert problems(read(path)).keys() & {"capture-running", "capture-killed"} == {"capture-running"}


def test_file_systems_are_known_by_their_mount(tmp_path: Path) -> None:
    assert file_system(Path("/proc")) in ("proc", "")
    assert file_system(tmp_path / "not there") == ""


@pytest.mark.parametrize("size", [SMALL, ring.EVENT_WORDS])
def test_an_untouched_ring_costs_next_to_nothing(tmp_path: Path, size: int) -> None:
    kept = made(tmp_path, size)
    used: Callable[[], int] = lambda: kept.path.stat().st_blocks * 512  # noqa: E731
    assert used() <= 6 << 20
    kept.remove()
