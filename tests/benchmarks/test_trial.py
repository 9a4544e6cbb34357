"""The arithmetic of a trial: gains, promises that came true, totals; and the files that travel."""

from __future__ import annotations

import gzip
import json
import lzma
import sys
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.recordings.archive import FIXTURES
from benchmarks.trial import bundle, timing
from benchmarks.trial.columns import join_numbers, split_numbers
from benchmarks.trial.interval import Interval, gain, is_right, measured_once, promise
from benchmarks.trial.jobs import Spec, list_files, load
from benchmarks.trial.look import Look
from benchmarks.trial.recording import plan_run
from benchmarks.trial.score import judge, look_at, read_results, read_verdicts
from benchmarks.trial.table import Row, as_json, bound, lines, markdown, total_lines, totals
from stepscope.analysis.findings.finding import Finding

JOB = """
FRAMEWORK = "torch"
KIND = "inference"
HEALTHY = False
MISTAKE = "sleeps"
FIX = "does not"

def build(fixed):
    return lambda i: None
"""


@dataclass
class Found:
    """A finding as a report with intervals has it."""

    code: str
    speedup: Any
    class_: str = "time"
    title: str = "A title"


def test_the_gain_is_the_range_that_the_rounds_span() -> None:
    found = gain([[200, 100], [240, 100], [210, 100]])
    assert found == Interval(2.0, 2.1, 2.4)
    assert gain([[200, 100]], samples=(1, 4)) == Interval(8.0, 8.0, 8.0)
    assert gain([[200, 0]]) is None
    assert gain([]) is None


@pytest.mark.parametrize(
    ("promised", "truth", "right"),
    [
        ((1.5, 2.0, 3.0), (1.9, 2.0, 2.1), True),
        ((1.5, 2.0, 3.0), (2.8, 3.2, 3.5), True),  # overlaps, and the middle is 7 % outside
        ((1.5, 2.0, 3.0), (3.1, 3.2, 3.3), False),  # near, without a value in common
        ((1.5, 2.0, 3.0), (2.9, 3.6, 4.0), False),  # overlaps, and the middle is 20 % outside
        ((2.0, 2.5, 3.0), (1.6, 1.8, 2.1), True),
        ((2.0, 2.5, 3.0), (1.2, 1.5, 2.1), False),
        ((2.0, 2.0, 2.0), (1.9, 2.0, 2.1), True),
        ((45.0, 100.0, 100.0), (164.0, 170.0, 175.0), True),  # shown as more than 100
        ((45.0, 90.0, 99.0), (164.0, 170.0, 175.0), False),
    ],
)
def test_a_promise_is_right(
    promised: tuple[float, float, float], truth: tuple[float, float, float], right: bool
) -> None:
    assert is_right(Interval(*promised), Interval(*truth)) is right


def test_promises_of_every_age_are_intervals() -> None:
    of_today = SimpleNamespace(speedup=2.0, speedup_max=3.0)
    assert promise(of_today) == Interval(2.0, 2.0, 3.0)
    assert promise(SimpleNamespace(speedup=2.0)) == Interval(2.0, 2.0, 2.0)
    ends = {"low": 1.5, "mid": 2.0, "high": 3.0}
    assert (
        promise(Found("x", SimpleNamespace(**ends))) == promise(Found("x", ends)) == Interval(1.5, 2.0, 3.0)
    )


def test_what_the_reports_findings_promise() -> None:
    found = Finding(code="x", class_="time", title="", detail="")
    assert promise(found).mid == 1.0


def test_a_width() -> None:
    assert Interval(1.0, 1.2, 1.5).width == 1.5
    assert measured_once(2.0).width == pytest.approx(1.21)


def test_bound_by_the_device_or_by_the_host() -> None:
    assert [bound(busy, 100) for busy in (95, 30, None)] == ["device", "host", ""]
    assert bound(10, None) == ""


def row(name: str, found: list[Found], truth: tuple[float, float, float] | None, **more: Any) -> Row:
    return Row(
        name=name,
        healthy=truth is None,
        truth=Interval(*truth) if truth else None,
        findings=tuple(found),
        **more,
    )


SYNC = Found("device-sync", {"low": 1.8, "mid": 2.0, "high": 2.7})
LAUNCH = Found("launch-bound", {"low": 3.0, "mid": 4.0, "high": 6.0})
ADVICE = Found("small-batch", 4.0, class_="advice")


@pytest.mark.parametrize(
    ("judged", "cause", "right", "calm"),
    [
        (row("good", [SYNC, LAUNCH], (1.9, 2.0, 2.1), expect=("device-sync",)), True, True, None),
        (row("second", [LAUNCH, SYNC], (1.9, 2.0, 2.1), expect=("device-sync",)), False, True, None),
        (row("missed", [LAUNCH], (1.9, 2.0, 2.1), expect=("device-sync",)), False, False, None),
        (row("not judged", [LAUNCH], (3.9, 4.0, 4.1)), None, True, None),
        (row("nothing", [], (3.9, 4.0, 4.1)), None, False, None),
        (row("little to gain", [SYNC], (0.9, 1.2, 1.3)), None, None, False),
        (row("little, as said", [Found("x", 1.25)], (1.0, 1.2, 1.3)), None, None, True),
        (row("healthy", [ADVICE], None), None, None, True),
        (row("loud", [Found("x", 1.06)], None), None, None, False),
        (row("calm", [Found("x", 1.04)], None), None, None, True),
        (row("failed", [], (3.9, 4.0, 4.1), error="crashed"), None, None, None),
    ],
    ids=lambda value: value.name if isinstance(value, Row) else "",
)
def test_one_job(judged: Row, cause: bool | None, right: bool | None, calm: bool | None) -> None:
    assert (judged.cause, judged.right, judged.calm) == (cause, right, calm)


def test_totals_over_jobs() -> None:
    rows = [
        row(
            "a",
            [SYNC],
            (1.9, 2.0, 2.1),
            expect=("device-sync",),
            bound="host",
            replayed_ns=110,
            unprofiled_ns=100,
        ),
        row("b", [LAUNCH], (1.9, 2.0, 2.1), bound="device", replayed_ns=98, unprofiled_ns=100),
        row("c", [], None, bound="device", replayed_ns=150, unprofiled_ns=100, stated_ns=101),
        row("d", [], (2.0, 2.0, 2.0), error="crashed"),
    ]
    found = totals(rows)
    assert found["jobs"] == 3
    assert found["cause"] == (1, 1) and found["not_judged"] == 1
    assert found["promise"] == (1, 2)
    assert found["width"] == {"device": 2.0, "host": 1.5, "all": 1.75}
    assert found["healthy_calm"] == (1, 1)
    assert found["replay_error"] == {"device": 0.26, "host": 0.1, "all": 0.1}
    assert found["replay_near"] == (2, 3)
    assert found["stated_error"] == {"device": 0.01, "all": 0.01}
    assert "cause first: 1 of 1 (100%); 1 not judged yet" in total_lines(found)
    table = "\n".join(lines(rows))
    assert "not judged: crashed" in table and "1.90–2.00–2.10" in table
    assert json.loads(json.dumps([as_json(one) for one in rows]))[0]["right"] is True


def test_the_table_of_the_documentation() -> None:
    made = markdown(
        [row("a", [SYNC], (1.9, 2.0, 2.1), mistake="a|b", expect=("device-sync",)), row("b", [], None)]
    )
    assert made[2:] == [
        "| a | a\\|b | 1.90–2.00–2.10 | 1.80–2.00–2.70 | `device-sync` | first | right |",
        "| b |  | healthy | - | none |  | calm |",
    ]


def test_totals_without_jobs() -> None:
    assert totals([])["cause"] == (0, 0)
    assert total_lines(totals([]))


def result(**more: Any) -> dict[str, Any]:
    measured = {"gain": {"low": 1.9, "mid": 2.0, "high": 2.1}, "step_ns": {"slow": 90, "fixed": 50}}
    return {"name": "job", "healthy": False, "mistake": "m", "error": "", **measured, **more}


def test_what_was_measured_beside_what_was_said() -> None:
    seen = Look((SYNC,), busy_ns=50, replayed_ns=105, stated_ns=99)
    found = judge(result(unprofiled_ns=[98, 102]), seen, {"job": {"expect": ["device-sync"]}})
    assert (found.cause, found.right, found.bound, found.unprofiled_ns) == (True, True, "host", 100)
    assert found.replay_error == pytest.approx(0.05)
    assert judge(result(), seen, {}).cause is None
    assert judge(result(expect=["device-sync"]), seen, {}).cause is True
    assert judge(result(), seen, {}).unprofiled_ns == 90


def test_jobs_that_cannot_be_judged(tmp_path: Path) -> None:
    assert judge(result(gain=None, error="crashed"), Look((), None, None), {}).error == "crashed"
    assert judge(result(), look_at(tmp_path / "none"), {}).error == "no recording"
    (tmp_path / "empty").mkdir()
    assert judge(result(), look_at(tmp_path / "empty"), {}).error
    assert read_verdicts(tmp_path / "verdicts.json") == {}


@dataclass
class Loop:
    """Steps that are counted, and waits."""

    done: int = 0
    seen: Counter[str] = field(default_factory=Counter)

    def step(self, _: int) -> None:
        self.done += 1

    def finish(self) -> None:
        self.seen["waits"] += 1


def test_steps_run_free_between_two_waits() -> None:
    loop = Loop()
    assert timing.time_steps(loop.step, loop.finish, count(), 7) > 0
    assert (loop.done, loop.seen["waits"]) == (7, 2)
    timing.time_waited(loop.step, loop.finish, count(), 0.001)
    assert loop.seen["waits"] == 2 + 11


@pytest.mark.parametrize(
    ("mean", "seconds", "workers", "steps"),
    [
        (0.001, 0.3, 1, 300),
        (0.1, 0.3, 1, 10),
        (0.5, 0.3, 1, 3),
        (2.0, 0.3, 1, 2),
        (0.1, 0.3, 4, 12),
        (0.5, 0.3, 16, 3),  # not for so long
    ],
)
def test_how_many_steps_a_round_has(mean: float, seconds: float, workers: int, steps: int) -> None:
    assert timing.count_steps(mean, seconds, workers=workers) == steps


@pytest.mark.parametrize(
    ("lengths", "mean", "most_steps"),
    [
        ([5.0, 0.2, 0.1], 0.1, 30),  # compiles, tunes, is warm
        ([0.01 * 1.01**number for number in range(5000)], None, 5000),  # never
    ],
)
def test_warming_up_ends(
    lengths: list[float], mean: float | None, most_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, loop = [0.0], Loop()

    def step(number: int) -> None:
        loop.step(number)
        now[0] += lengths[min(number, len(lengths) - 1)]

    monkeypatch.setattr("benchmarks.trial.timing.time.perf_counter", lambda: now[0])
    found = timing.warm_up(step, loop.finish, count())
    assert mean is None or found == pytest.approx(mean)
    assert loop.done < most_steps


def test_a_run_that_shows_the_unprofiled_step() -> None:
    assert [plan_run(0.01, 1), plan_run(0.01, 16), plan_run(0.2, 1), plan_run(9.0, 1)] == [20, 32, 6, 4]


def test_jobs_are_listed_without_importing_them(tmp_path: Path) -> None:
    (tmp_path / "01_sleeper.py").write_text(JOB)
    (tmp_path / "02_broken.py").write_text("raise OSError")
    (tmp_path / "smoke.py").write_text("raise OSError")
    found = list_files(tmp_path)
    assert [(one.name, one.framework) for one in found] == [("01_sleeper", "torch"), ("02_broken", "")]
    assert list_files(tmp_path, "broken") == found[1:]
    assert Spec(**json.loads(found[0].text())) == found[0]


def test_a_job_is_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "07_sleeper.py").write_text(JOB)
    job = load(list_files(tmp_path)[0])
    assert (job.kind, job.mistake, job.healthy) == ("inference", "sleeps", False)
    assert "build" not in job.facts()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"7",
        b'{"ts": 1794819684558.075, "dur": 003, "id": 100000, "id": 99999, "x": -12345.60}\n',
        b'{"ts": 1794819684558075924321, "a": [1,22,333333,4]}',
        b"1 2\x00 3",
        ' {"name": "µ 12345 – 00012", "ts": 54321}'.encode() * 3,
    ],
)
def test_numbers_come_back(data: bytes) -> None:
    assert join_numbers(split_numbers(data)) == data


@pytest.mark.parametrize(
    "path", sorted((FIXTURES / "diagnosis").glob("torch_item*.gz")), ids=lambda path: path.name
)
def test_a_real_trace_comes_back_and_packs_better(path: Path) -> None:
    data = gzip.decompress(path.read_bytes())
    packed = split_numbers(data)
    assert join_numbers(packed) == data
    assert len(lzma.compress(packed, preset=1)) < 0.5 * len(lzma.compress(data, preset=1))


def test_bundles_come_out_as_they_went_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "LARGEST", 3000)
    monkeypatch.setattr(bundle, "OPENED", tmp_path / "opened")
    out, sent = tmp_path / "out", tmp_path / "sent"
    for number in range(4):
        folder = out / f"{number}_job"
        (folder / "ours").mkdir(parents=True)
        (folder / "result.json").write_text(json.dumps(result(name=folder.name)))
        (folder / "ours" / "trace.json").write_text('{"ts": 123456}')
        (folder / "ours" / "job.stepscope-light").write_bytes(gzip.compress(b'{"ts": 1}'))
        (folder / "ours" / "cut.json.gz").write_bytes(gzip.compress(b'{"ts": 1}')[:-9])
        (folder / "ours" / "job.xplane.pb").write_bytes(b"\0\1")
    assert len(bundle.bundle(out, sent)) == len(list(sent.glob("trial.*.tar"))) > 1
    opened = bundle.open_bundles(sent)
    assert read_results(opened) == read_results(out) and len(read_results(out)) == 4
    ours = opened / "3_job" / "ours"
    assert (ours / "trace.json").read_text() == '{"ts": 123456}'
    assert gzip.decompress((ours / "job.stepscope-light").read_bytes()) == b'{"ts": 1}'
    assert (ours / "cut.json.gz").read_bytes() == (out / "3_job" / "ours" / "cut.json.gz").read_bytes()
    assert (ours / "job.xplane.pb").read_bytes() == b"\0\1"
    assert bundle.open_bundles(sent) == opened
    assert bundle.open_bundles(out) == out
