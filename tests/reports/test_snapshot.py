"""A memory snapshot in the report: the peak first, where the history shows one, then what is held."""

from __future__ import annotations

from pathlib import Path

import stepscope
from stepscope.reports.model.report import Report
from stepscope.reports.render.brief import as_brief
from stepscope.reports.wording.sentence import write_sentence
from tests.builders.snapshots import MIB, Job, in_model, script, training


def reported(job: Job, folder: Path) -> Report:
    return stepscope.report(job.write(folder / "snapshot.pickle"))


def after_training() -> Job:
    """A job whose activations are gone when the snapshot is taken: 128 MiB of weights and state stay."""
    return training(3, weights=32 * MIB, batch=100 * MIB)


def test_the_sentence_and_the_screen_begin_with_the_peak(tmp_path: Path) -> None:
    report = reported(after_training(), tmp_path)
    (device,) = report.memory.snapshot
    assert device.peak is not None
    assert device.peak.bytes > device.allocated_bytes + 400 * MIB
    assert report.sentence.startswith("The peak on device 0 was ")
    assert "before the snapshot was taken: 400 MiB activations, " in report.sentence
    assert report.sentence.endswith("was still in use.")
    text = as_brief(report)
    assert text.index("what held the peak") < text.index("what holds the memory")
    shown = text[text.index("what held the peak") : text.index("what holds the memory")]
    assert "activations" in shown and "train.py:10" in shown
    assert "memory snapshot\n" in text.splitlines(keepends=True)[0]


def test_lines_are_named_where_nothing_shows_a_kind(tmp_path: Path) -> None:
    report = reported(after_training(), tmp_path)
    (device,) = report.memory.snapshot
    assert device.peak is not None
    for kind in device.peak.kinds:
        kind.kind = "unknown"
    for line in device.peak.lines:
        line.kind = "unknown"
    held = write_sentence(report).split("taken: ")[1]
    assert held.startswith("400 MiB by train.py:10, ")
    shown = as_brief(report).split("what held the peak")[1].split("what holds the memory")[0]
    assert "train.py:10" in shown and "train.py:12" in shown
    assert "line unknown" in shown  # gradients: the backward pass has no Python stack


def test_what_is_held_at_the_end_is_its_own_peak(tmp_path: Path) -> None:
    job = Job()
    job.take(8 * MIB, script(3))
    report = reported(job, tmp_path)
    assert report.memory.snapshot[0].peak is None
    assert report.sentence == "8.00 MiB is in use on device 0, for purposes unknown."
    assert "what held the peak" not in as_brief(report)


def test_a_failed_request_is_looked_at_when_it_failed(tmp_path: Path) -> None:
    job = training(4)
    job.fail(900 * MIB, in_model(21, script(10)))
    text = as_brief(reported(job, tmp_path))
    assert "when the request failed" in text
    assert "what held the peak" not in text
