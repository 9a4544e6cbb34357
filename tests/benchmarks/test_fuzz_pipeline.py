"""The fuzzer of the pipeline: the same cases every time, faults that are seen, and runs that go on where one ended."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from benchmarks.fuzz import documents, drive, made_torch, pipeline
from benchmarks.fuzz.asking import Fault, ask_server
from benchmarks.fuzz.cases import Case, case
from benchmarks.fuzz.originals import NAMES, original, write
from stepscope.server.app import App


def test_a_case_can_be_made_again() -> None:
    assert case(21) == case(21)
    assert {case(seed).name for seed in range(len(NAMES))} == set(NAMES)


def test_documents_stay_documents() -> None:
    """Otherwise only the scanner would be tried."""
    (data,) = made_torch.files(steps=1).values()
    made = [documents.damaged(random.Random(seed), data) for seed in range(60)]
    assert len({text for text, _ in made}) > 50
    assert {rows is None for _, rows in made} == {True, False}
    for text, _ in made:
        json.loads(text.decode(errors="replace"))


def test_a_lost_section_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError("")

    drive.healthy("plain")
    monkeypatch.setattr("stepscope.analysis.context.op_calls", fail)
    with pytest.raises(KeyError):
        drive.drive(Case(0, "plain", original("plain").files), tmp_path, serve=False)


def test_lost_rows_are_seen(tmp_path: Path) -> None:
    document = made_torch.document()
    kept = [event for event in document["traceEvents"] if event.get("cat") != "kernel"]
    (name,) = original("torch-cuda").files
    files = {name: json.dumps({**document, "traceEvents": kept}).encode()}
    with pytest.raises(drive.Lost, match="bad rows cost"):
        drive.drive(Case(0, "torch-cuda", files, rows=1), tmp_path, serve=False)


def test_a_fault_of_the_server_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    write(original("plain").files, tmp_path)
    monkeypatch.setattr(App, "_api", fail)
    with pytest.raises(Fault, match="ZeroDivisionError"):
        ask_server(tmp_path, random.Random(0), None)


def test_the_next_run_goes_on(tmp_path: Path) -> None:
    state = pipeline.State(pipeline.generator(), [0, 1, 3])
    assert pipeline.open_seeds(state, 3, 10) == [2, 4, 5]
    assert pipeline.open_seeds(state, 100, 6) == [2, 4, 5]
    (tmp_path / "state.json").write_text('{"generator": "another", "passed": [1]}')
    assert pipeline.state_of(tmp_path / "state.json").passed == []


def test_seeds_that_passed_are_written_down(tmp_path: Path) -> None:
    assert pipeline.main(["--count", "1", "--upto", "9", "--out", str(tmp_path)]) == 0
    assert pipeline.state_of(tmp_path / "state.json").passed == [0]
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_too_much_memory_is_seen_and_the_case_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pipeline.main(["--count", "1", "--memory", "60", "--out", str(tmp_path)]) == 1
    assert "FAILED 0" in capsys.readouterr().err
    assert pipeline.state_of(tmp_path / "state.json").passed == []
