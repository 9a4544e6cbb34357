"""Figures: well-formed drawings that stand alone."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from stepscope.errors import StepscopeError
from stepscope.reports.figures import FIGURES
from stepscope.reports.figures.axes import Frame, binary_ticks, duration_words, ticks
from stepscope.reports.figures.figure import WIDTH
from stepscope.reports.figures.steps import COLUMNS, columns_of
from stepscope.reports.model.report import Profile, StepRow
from stepscope.reports.report import Report
from tests.builders.reports import HOSTILE, MS, report

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_xml(name: str) -> None:
    drawing = report(hostile=HOSTILE).figure(name)
    root = ElementTree.fromstring(drawing.svg(alone=True))
    assert root.tag == f"{SVG}svg"
    assert list(root.iter(f"{SVG}rect")) or list(root.iter(f"{SVG}path"))
    assert root.find(f"{SVG}style") is not None
    assert "<style>" in drawing._repr_html_()


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_is_drawn_outside(name: str) -> None:
    drawing = report().figure(name)
    for rect in ElementTree.fromstring(drawing.svg()).iter(f"{SVG}rect"):
        x, y, width, height = (float(rect.get(key, "0")) for key in ("x", "y", "width", "height"))
        assert 0 <= x <= x + width <= WIDTH + 0.1
        assert 0 <= y <= y + height <= drawing.height + 0.1


def test_the_account_fills_its_width() -> None:
    rects = list(ElementTree.fromstring(report().figure("account").svg()).iter(f"{SVG}rect"))
    assert sum(float(rect.get("width", "0")) for rect in rects) == pytest.approx(WIDTH, abs=0.1)
    assert [rect.get("class") for rect in rects] == ["p-compute", "p-input"]
    assert rects[1].findtext(f"{SVG}title") == "input: 4.00 ms, 27.6 %\nThe device waits for the next batch."


def test_unknown_and_empty_figures() -> None:
    with pytest.raises(StepscopeError, match="no figure nonsense"):
        report().figure("nonsense")
    with pytest.raises(StepscopeError, match="nothing to draw for steps"):
        Report(profile=Profile(path="x")).figure("steps")


def test_saved(tmp_path: Path) -> None:
    report().figure("steps").save(tmp_path / "steps.svg")
    assert ElementTree.parse(tmp_path / "steps.svg").getroot().tag == f"{SVG}svg"


@pytest.mark.parametrize("count", [1, COLUMNS, COLUMNS + 1, 10_000])
def test_many_steps_are_put_together(count: int) -> None:
    rows = [
        StepRow(rank=0, device=0, step=i, start_ns=0, duration_ns=MS, parts={"compute": MS}, outlier=i == count - 1)
        for i in range(count)
    ]  # fmt: skip
    columns = columns_of(rows)
    assert len(columns) <= COLUMNS
    assert all(column.ns == MS and column.parts == {"compute": MS} for column in columns)
    assert [column.is_outlier for column in columns] == [False] * (len(columns) - 1) + [True]


@pytest.mark.parametrize(
    ("top", "expected"), [(10, [0, 2, 4, 6, 8, 10]), (9.9, [0, 2, 4, 6, 8]), (0, [0]), (1.3, [0, 0.5, 1])]
)
def test_ticks(top: float, expected: list[float]) -> None:
    assert ticks(top) == pytest.approx(expected)


def test_units_of_ticks() -> None:
    assert [duration_words(5e6)(tick) for tick in ticks(5e6, 2)] == ["0 ms", "2.5 ms", "5 ms"]
    assert binary_ticks(3 * 1024**3, 3) == [0, 1024**3, 2 * 1024**3, 3 * 1024**3]
    assert Frame(0, 100, 0, 1, 0).up(0) == 100
