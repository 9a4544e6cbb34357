"""Sampled Python frames in an XPlane file: on the thread that steps, nested with what the collector wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.capture.backends import python_frames
from stepscope.capture.backends.python_frames import add_frames
from stepscope.capture.process.host_spans import Span
from stepscope.formats import read
from stepscope.formats.source import Source
from stepscope.trace.trace import Trace
from tests.builders.xspace_bytes import PlaneBytes, Unsigned, space

START = 1_000_000_000
US = 1_000
STEP, OUTER, INNER = "train", "job.py(3): step", "/site-packages/numpy/fft.py(58): rfft"


def environment() -> PlaneBytes:
    about = PlaneBytes("Task Environment")
    about.fact("profile_start_time", Unsigned(START))
    return about


def file_of(folder: Path, *more: str, about: bool = True) -> Path:
    """A thread of the framework, and one with a step of 100 µs that holds an op of 20 µs."""
    host = PlaneBytes("/host:CPU")
    host.line("tf_Compute/7", [host.event("work", 0, 5_000_000)], ident=7)
    events = [host.event(STEP, 10_000_000, 100_000_000, step_num=1), host.event("op", 50_000_000, 20_000_000)]
    events += [host.event(name, 0, 1_000) for name in more]
    host.line("python", events, ident=8, time_ns=2 * US)
    path = folder / "x.xplane.pb"
    path.write_bytes(space(host, *([environment()] if about else []), hosts=["h"]))
    return path


def span(name: str, start_us: int, end_us: int) -> Span:
    """On a clock that began 5 µs after the session."""
    return Span(1, name, "python", None, None, (start_us - 5) * US, (end_us - 5) * US)


def frames_of(trace: Trace) -> list[tuple[str, float, float]]:
    rows = trace.events.filter(trace.events["kind"] == "python").sort(
        "start_ns", "dur_ns", descending=[False, True]
    )
    first = trace.events.filter(trace.events["name"].cast(str) == STEP)["start_ns"][0]
    return [
        (name, (start - first) / US + 12, dur / US)
        for name, start, dur in rows.select("name", "start_ns", "dur_ns").iter_rows()
    ]


def test_frames_are_cut_where_events_of_their_thread_reach_across_their_ends(tmp_path: Path) -> None:
    path = file_of(tmp_path)
    spans = [span(OUTER, 20, 90), span(INNER, 30, 60)]
    add_frames(path, spans, START + 5 * US, STEP)
    trace = read(Source(str(path)))
    assert frames_of(trace) == [
        (OUTER, 20, 70), (INNER, 30, 22), (INNER, 52, 8),
    ]  # fmt: skip
    events = trace.events
    tracks = events.filter(events["name"].cast(str).is_in([STEP, OUTER, INNER, "op"]))["track"]
    assert tracks.n_unique() == 1
    assert dict(trace.problems.select("code", "count").iter_rows()) == {}
    assert events.filter(events["kind"] == "python")["step"].n_unique() == 1


def test_a_frame_holds_the_whole_of_a_long_call_that_it_seems_to_end_in(tmp_path: Path) -> None:
    """Samples are two milliseconds apart: the end between two of them is known within one."""
    host = PlaneBytes("/host:CPU")
    host.line(
        "python",
        [host.event(STEP, 0, 20_000_000_000, step_num=1), host.event("call", 4_000_000_000, 8_000_000_000)],
    )
    path = tmp_path / "x.xplane.pb"
    path.write_bytes(space(host, environment(), hosts=["h"]))
    add_frames(path, [span(OUTER, 2_500, 11_200)], START + 5 * US, STEP)
    events = read(Source(str(path))).events
    rows = events.select("name", "start_ns", "dur_ns", "parent").rows()
    assert [(str(name), start // US, dur // US) for name, start, dur, _ in rows] == [
        (STEP, 0, 20_000), (OUTER, 2_500, 9_500), ("call", 4_000, 8_000),
    ]  # fmt: skip
    assert rows[2][3] == 1


def test_a_function_with_thousands_of_calls_stays_one_piece(tmp_path: Path) -> None:
    host = PlaneBytes("/host:CPU")
    calls = [host.event("op", 1_000_000 * k, 500_000) for k in range(1, 5_000)]
    host.line("python", [host.event(STEP, 0, 5_000_000_000, step_num=1), *calls])
    path = tmp_path / "x.xplane.pb"
    path.write_bytes(space(host, environment(), hosts=["h"]))
    add_frames(path, [span(OUTER, 10, 4_500), span(INNER, 11, 4_400)], START + 5 * US, STEP)
    assert [name for name, *_ in frames_of(read(Source(str(path))))] == [OUTER, INNER]


def test_frames_of_the_profiler_itself_are_enough(tmp_path: Path) -> None:
    path = file_of(tmp_path, "$job.py:3 step")
    before = path.read_bytes()
    add_frames(path, [span(OUTER, 20, 90)], START + 5 * US, STEP)
    assert path.read_bytes() == before


def test_without_a_clock_the_file_stays_as_it_is(tmp_path: Path) -> None:
    path = file_of(tmp_path, about=False)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="when its session began"):
        add_frames(path, [span(OUTER, 20, 90)], START + 5 * US, STEP)
    assert path.read_bytes() == before


def test_a_large_file_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_frames, "LARGEST_FILE", 10)
    path = file_of(tmp_path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="larger than"):
        add_frames(path, [span(OUTER, 20, 90)], START + 5 * US, STEP)
    assert path.read_bytes() == before


def test_without_steps_the_python_thread_gets_them(tmp_path: Path) -> None:
    path = file_of(tmp_path)
    add_frames(path, [span(OUTER, 20, 90)], START + 5 * US, "another")
    assert len(frames_of(read(Source(str(path))))) == 1


def test_a_cut_file_is_left_to_whoever_reads_it(tmp_path: Path) -> None:
    path = file_of(tmp_path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ValueError, match="runs out"):
        add_frames(path, [span(OUTER, 20, 90)], START + 5 * US, STEP)
