"""Work comes before what waits for it."""

from __future__ import annotations

from stepscope.diffs.data.model import Line
from stepscope.diffs.explain.lines import put_causes_first


def line(kind: str, difference: float, relative: float | None = None) -> Line:
    return Line(title=kind, kind=kind, difference=difference, relative=relative, name=kind)


def order(*lines: Line) -> list[str]:
    return [each.kind for each in put_causes_first(list(lines))]


def test_dispatch_after_the_wait_that_caused_it() -> None:
    assert order(line("dispatch", 4.0, 0.5), line("sync", 1.0, 0.5)) == ["sync", "dispatch"]


def test_a_wait_that_is_far_smaller_caused_nothing() -> None:
    assert order(line("dispatch", 40.0, 0.5), line("sync", 1.0, 0.5)) == ["dispatch", "sync"]


def test_a_wait_of_one_run_shows_what_its_host_does_next() -> None:
    others = line("input", 4.0, 2.0), line("python", 2.0)
    assert order(*others, line("sync", 1.0)) == ["sync", "input", "python"]
    assert order(*others, line("sync", 1.0, 0.5)) == ["input", "python", "sync"]


def test_less_of_a_wait_does_not_cause_more_input() -> None:
    assert order(line("input", 4.0, 2.0), line("sync", -1.0, -1.0)) == ["input", "sync"]
