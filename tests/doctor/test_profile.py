"""Files and folders with one defect each get that check's result; good ones get no failure."""

from __future__ import annotations

import gzip
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stepscope import formats
from stepscope.analysis.capture_quality import content as capture_content
from stepscope.analysis.options import Options
from stepscope.doctor.diagnose import diagnose
from stepscope.doctor.profile import CHECKS, folder
from stepscope.doctor.profile.problems import KNOWN
from stepscope.doctor.result import Diagnosis, Result
from stepscope.errors import NothingFound, StepscopeError
from stepscope.formats import gzip_stream as packed
from stepscope.formats import source
from stepscope.formats.chrome.scan import driver as json_drive
from stepscope.formats.reader import Progress
from stepscope.formats.source import Source
from stepscope.formats.tf1 import event_file as tf_events
from stepscope.formats.tf1 import records as tf_records
from stepscope.problems import folder as folder_problems
from stepscope.problems.catalogue import CATALOGUE
from stepscope.profiles.load import load
from stepscope.reports.build import build
from stepscope.reports.model.report import Problem
from stepscope.reports.sections import problems
from stepscope.trace.trace import Trace
from tests.builders.kineto_steps import document, good, on_host
from tests.builders.tf_wire import CPU, VERSION, node, traced
from tests.cli.run import environment
from tests.doctor.files import WRONG, Way, kineto, put, records
from tests.test_docs import first_column

ROOT = Path(__file__).parent.parent.parent
SAMPLE = ROOT / "src" / "stepscope" / "samples" / "tiny_gpt.pt.trace.json.gz"
# Told by the doctor alone: without a profile there is no report, and the rest is in its coverage or no defect of the capture.
DOCTOR_ONLY = {
    "nothing-found",
    "not-a-profile",
    "wrong-logdir",
    "huge-trace",
    "no-shapes",
    "no-stacks",
    "no-memory",
}
# Folders without a profile have no report.
WITHOUT_REPORT = {"leftover-files", "never-stopped"}
# Told by the report alone: ranks have to be compared with one another, which takes longer than a doctor should.
REPORT_ONLY = {
    "unequal-steps", "unequal-collectives", "ambiguous-groups", "no-collectives", "unmatched-collectives",
}  # fmt: skip
# Provoked below by more than a file.
BY_HAND = {
    "huge-trace", "event-cap", "mostly-python", "analysis-failed", "file-changed", "cache-unwritable", "gzip-bomb", "unreadable",
    "large-member", "crc-unchecked", "too-many-events",
}  # fmt: skip


def told(found: Diagnosis) -> set[str]:
    """The codes of all results; no check may have broken."""
    assert [each for each in found.not_looked_at if "could not be answered" in each.reason] == []
    return {result.code for result in found.results}


@pytest.mark.parametrize(
    ("code", "way"),
    [
        pytest.param(code, way, id=f"{code}-{place}")
        for code, ways in WRONG.items()
        for place, way in enumerate(ways)
    ],
)
def test_a_defect_is_noticed(tmp_path: Path, code: str, way: Way) -> None:
    """By the doctor, and in the same words by the report, where there is one."""
    path = str(way(tmp_path))
    found = diagnose(path)
    assert code in told(found)
    result = next(result for result in found.results if result.code == code)
    assert result.evidence and result.title
    if code in KNOWN and code not in WITHOUT_REPORT:
        report = build(load(path), Options(), sections=["problems"])
        assert words_of(report.problems, code) == words_of(found.results, code)
        assert {cause for _, cause, _ in words_of(report.problems, code)} == {CATALOGUE[code].cause}


def words_of(found: Iterable[Problem | Result], code: str) -> list[tuple[str, str, str]]:
    """Title, cause and fix of what has this code."""
    return [(each.title, each.cause, each.fix) for each in found if each.code == code]


def test_every_check_is_provoked() -> None:
    assert {check.code for check in CHECKS} == {*WRONG, *BY_HAND}, (
        "provoke it in WRONG of tests/doctor/files.py"
    )


def test_a_good_profile_has_no_failure(tmp_path: Path) -> None:
    found = diagnose(str(kineto()(tmp_path)))
    assert [(result.code, result.evidence) for result in found.failures] == []
    assert told(found) <= {"no-stacks", "no-memory"}


@pytest.mark.parametrize("framework", ["jax", "tensorflow"])
def test_no_one_but_pytorch_is_sent_to_its_options(framework: str) -> None:
    found = diagnose(str(ROOT / "tests" / "fixtures" / framework))
    remarks = [result for result in found.results if result.code in {"no-stacks", "no-shapes", "no-memory"}]
    assert [result.fix for result in remarks if "torch.profiler" in result.fix] == []


def test_the_sample_has_no_failure() -> None:
    assert diagnose(str(SAMPLE)).failures == []


def test_codes_are_those_of_the_report() -> None:
    """Whatever the report calls a problem, the doctor calls by the same name."""
    documented = set(first_column((ROOT / "docs" / "problems.md").read_text("utf-8")))
    assert set(KNOWN) | REPORT_ONLY == documented
    assert {check.code for check in CHECKS} - set(KNOWN) == DOCTOR_ONLY
    assert {entry.code for entry in folder_problems.ENTRIES} == DOCTOR_ONLY


def test_a_problem_that_nobody_knows_is_told(tmp_path: Path) -> None:
    put(tmp_path, document(good()), "h_1.17.pt.trace.json")
    note = b'{"schema": "stepscope.capture/1", "problems": [{"code": "from-the-future", "title": "New", "severity": "error"}]}'
    put(tmp_path, note, "h_1.17.stepscope.json")
    assert [result.code for result in diagnose(str(tmp_path)).failures] == ["from-the-future"]


def test_a_huge_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(kineto()(tmp_path))
    monkeypatch.setattr(folder, "LARGE_FILE", 100)
    assert "huge-trace" in told(diagnose(path))
    monkeypatch.setattr(folder, "LARGE_FILE", 1 << 30)
    monkeypatch.setattr(folder, "MANY_EVENTS", 5)
    assert "huge-trace" in told(diagnose(path))


def test_the_cap_of_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_content, "TRACE_JSON_EVENTS", 3)
    process = {"ph": "M", "name": "process_name", "pid": 701, "args": {"name": "/host:CPU"}}
    device = {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "/device:GPU:0"}}
    events = [
        process,
        device,
        *(on_host("", f"PjitFunction(f{place})", place, pid=701) for place in range(4)),
    ]
    path = put(
        tmp_path,
        document(events).replace(b"schemaVersion", b"displayTimeUnit").replace(b"deviceProperties", b"x"),
        "a.trace.json",
    )
    found = diagnose(str(path))
    if "event-cap" not in told(found):
        pytest.fail(str(found.results))


def test_mostly_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_content, "MANY_EVENTS", 10)
    calls = [on_host("python_function", f"a.py({place}): f", 110 + place / 10, 0.05) for place in range(100)]
    assert "mostly-python" in told(diagnose(str(kineto(*calls)(tmp_path))))


def test_a_broken_analysis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> list[object]:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(problems, "capture_checks", broken)
    assert "analysis-failed" in told(diagnose(str(kineto()(tmp_path))))


def test_a_file_that_is_still_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = formats.read

    def read(source: Source, progress: Progress) -> Trace:
        found = real(source, progress)
        os.utime(source.path, ns=(1, 1))
        return found

    monkeypatch.setattr(formats, "read", read)
    assert "file-changed" in told(diagnose(str(kineto()(tmp_path))))


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, document(good()), "rank0.pt.trace.json")
    put(tmp_path, document(good()), "rank1.pt.trace.json")
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path / "rank0.pt.trace.json" / "cache"))
    assert "cache-unwritable" in told(diagnose(str(tmp_path)))


def test_a_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (packed, source):
        if hasattr(module, "BOMB_BYTES"):
            monkeypatch.setattr(module, "BOMB_BYTES", 1 << 16)
    filler = b" " * (4 << 20)
    data = document(good())
    path = put(tmp_path, gzip.compress(data[:-1] + filler + b"}"), "a.pt.trace.json.gz")
    assert "gzip-bomb" in told(diagnose(str(path)))


def test_a_disk_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, gzip.compress(document(good())), "a.pt.trace.json.gz")
    real = Source._unpacked

    def failing(self: Source, *arguments: Any) -> Iterator[Any]:
        yield from real(self, *arguments)
        raise OSError("Input/output error")

    monkeypatch.setattr(Source, "_unpacked", failing)
    assert "unreadable" in told(diagnose(str(path), cache=False))


def test_a_large_member(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_drive, "LARGEST_HEADER_BYTES", 1000)
    assert "large-member" in told(diagnose(str(kineto(large=[1] * 1000)(tmp_path))))


def test_checksums_that_were_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tf_records, "CHECKED_BYTES", 10)
    assert "crc-unchecked" in told(diagnose(str(WRONG["bad-allocations"][0](tmp_path))))


def test_more_nodes_than_any_run_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tf_events, "MOST_NODES", 1)
    data = VERSION + traced("run_1", (CPU, [node("a", 0, 5), node("b", 5, 5)]))
    assert "too-many-events" in told(diagnose(str(records(data)(tmp_path))))


def test_a_path_that_is_not_there_says_how_that_comes(tmp_path: Path) -> None:
    with pytest.raises(NothingFound) as caught:
        diagnose(str(tmp_path / "logs"))
    assert "killed during its window" in str(caught.value.fix)


def test_a_pattern_that_matches_nothing(tmp_path: Path) -> None:
    with pytest.raises(StepscopeError):
        diagnose(str(tmp_path / "*.json"))


def test_where_a_profile_may_be(tmp_path: Path) -> None:
    put(tmp_path, document(good()), "there/a.pt.trace.json")
    (tmp_path / "here").mkdir()
    found = diagnose(str(tmp_path / "here"))
    assert str(tmp_path / "there") in found.failures[0].fix


KILLED = """
import os, signal, stepscope
with stepscope.profile("logs") as prof:
    for _ in range(3):
        prof.step()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_job_of_our_own(tmp_path: Path) -> None:
    """Our capture leaves its ring, and the doctor knows it."""
    ended = subprocess.run(
        [sys.executable, "-c", KILLED], cwd=tmp_path, env=environment(), check=False, capture_output=True
    )
    assert ended.returncode == -signal.SIGKILL
    found = diagnose(str(tmp_path / "logs"))
    assert "capture-killed" in {result.code for result in found.failures}
    assert {"nothing-found", "never-stopped"} & {result.code for result in found.failures} == set()


def test_a_killed_keras_job(tmp_path: Path) -> None:
    """What such a job leaves: event files, and no profile."""
    found = diagnose(str(ROOT / "tests" / "fixtures" / "doctor" / "keras_killed"))
    assert [result.code for result in found.failures] == ["nothing-found"]
    assert re.search("event file without a profile", found.failures[0].evidence)


@pytest.mark.parametrize("folder", ["train", "fit/20261116-041500/train", "validation"])
def test_keras_that_never_reached_its_batches(tmp_path: Path, folder: str) -> None:
    """Event files of scalars, and no plugins/profile: other tools show an empty tab."""
    put(tmp_path, VERSION, f"{folder}/events.out.tfevents.1794802500.host.77.0.v2")
    found = diagnose(str(tmp_path))
    assert [result.code for result in found.failures] == ["nothing-found"]
    assert "Keras" in found.failures[0].title and "profile_batch" in found.failures[0].fix


def test_a_killed_torch_job() -> None:
    """The window before the one in which it was killed is whole."""
    found = diagnose(str(ROOT / "tests" / "fixtures" / "doctor" / "torch_killed"))
    assert found.failures == []


@pytest.mark.corpus
@pytest.mark.skipif("STEPSCOPE_CORPUS" not in os.environ, reason="wants STEPSCOPE_CORPUS")
@pytest.mark.parametrize(
    ("path", "failing"),
    [
        ("h200/jax_cupti_conflict", {"no-device-events"}),
        ("h200/jax_gpu", set()),
        ("h200/gpt_bf16_eager.pt.trace.json.gz", set()),
        ("h200/dqn_launch_bound.pt.trace.json.gz", set()),
        ("h200/resnet_input_bound.pt.trace.json.gz", set()),
        ("tensorflow/keras_callback", set()),
        ("tensorflow/custom_loop", set()),
    ],
)
def test_the_corpus(path: str, failing: set[str]) -> None:
    found = diagnose(str(Path(os.environ["STEPSCOPE_CORPUS"]) / path))
    assert {result.code for result in found.failures} == failing
