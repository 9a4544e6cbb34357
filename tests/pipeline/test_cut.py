"""A packed recording of which only the first half was copied, from the file to the report."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import stepscope

SAMPLE = Path(stepscope.__file__).parent / "samples" / "tiny_gpt.pt.trace.json.gz"


@pytest.fixture
def half(tmp_path: Path) -> Path:
    """The first half of the packed bytes of a real profile."""
    data = SAMPLE.read_bytes()
    path = tmp_path / SAMPLE.name
    path.write_bytes(data[: len(data) // 2])
    return path


def test_every_event_before_the_cut_is_read(half: Path) -> None:
    whole, kept = (stepscope.load(path, cache=False).traces[0] for path in (SAMPLE, half))
    assert 0.25 < len(kept.events) / len(whole.events) < 0.75
    count_kept, count_whole = (
        Counter(trace.events.select("name", "dur_ns").rows()) for trace in (kept, whole)
    )
    assert count_kept <= count_whole
    assert {"damaged-gzip", "truncated"} <= set(kept.problems["code"])


def test_the_report_says_so_and_its_parts_still_sum_to_the_steps(half: Path) -> None:
    report = stepscope.report(stepscope.load(half, cache=False))
    shown = {problem.code: problem for problem in report.problems}
    assert shown["damaged-gzip"].severity == "error"
    assert "ends too early" in shown["damaged-gzip"].detail
    assert report.steps.rows
    assert all(sum(row.parts.values()) == row.duration_ns for row in report.steps.rows)
